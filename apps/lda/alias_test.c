/* Alias tables: the chance of every topic, added up from the cells, is its part of the weights. */
#include <math.h>

#include "base/testing.h"
#include "apps/lda/alias.h"
#include "apps/lda/random.h"

enum { MOST = 65000 };

static struct lda_alias alias;
static int32_t counts[MOST];
static double weights[MOST], chance[MOST], slack[MOST];

static int begin(void **state) {
  (void)state;
  memset(counts, 0, sizeof counts);
  return lda_alias_init(&alias, MOST) ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  lda_alias_fini(&alias);
  return 0;
}

/* Sums the chance of each topic over all cells, and the rounding error of these chances: a threshold has 32
 * bits. */
static void add_up(uint32_t topics) {
  memset(chance, 0, sizeof chance);
  memset(slack, 0, sizeof slack);
  assert_in_range(alias.count, 1, topics);
  double part = 1.0 / alias.count, last_bit = part / 4294967296.0;
  for (uint32_t i = 0; i < alias.count; i++) {
    const struct lda_cell *cell = &alias.cells[i];
    double own = cell->own == cell->other ? part : cell->threshold * last_bit;
    assert_true(cell->own < topics && cell->other < topics);
    chance[cell->own] += own;
    chance[cell->other] += part - own;
    slack[cell->own] += 1.01 * last_bit;
    slack[cell->other] += 1.01 * last_bit;
  }
}

static void must_be(uint32_t topic, double is, double more) {
  if (!(fabs(chance[topic] - is) <= slack[topic] + more + 1e-15))
    fail_msg("topic %u is drawn with %.17g, not %.17g", topic, chance[topic], is);
}

static void check_counts(uint32_t topics) {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < topics; k++) sum += (uint64_t)counts[k];
  lda_alias_of_counts(&alias, counts, topics, sum);
  add_up(topics);
  for (uint32_t k = 0; k < topics; k++) {
    must_be(k, (double)counts[k] / (double)sum, 0);
    if (counts[k] == 0) assert_true(chance[k] == 0);
    assert_true(slack[k] < 1.0 / (1 << 30));
  }
}

/* Weights are rounded to parts of 2^40, and none to nothing. */
static void check_weights(uint32_t topics) {
  double sum = 0;
  for (uint32_t k = 0; k < topics; k++) sum += weights[k];
  lda_alias_of_weights(&alias, weights, topics);
  add_up(topics);
  for (uint32_t k = 0; k < topics; k++) must_be(k, weights[k] / sum, (1 + topics * weights[k] / sum) * 0x1p-40);
}

static void test_chances_are_in_proportion_to_counts(void **state) {
  (void)state;
  struct lda_random random = {1};
  for (uint32_t topics = 1; topics <= 70; topics++) /* also those that are not multiples of 8 */
    for (int many = 0; many < 3; many++) {
      for (uint32_t k = 0; k < topics; k++) {
        uint32_t drawn = (uint32_t)(lda_draw(&random) >> 32);
        counts[k] = many == 0 ? (int32_t)(drawn % 3) : many == 1 ? (int32_t)(drawn % 1000) : (int32_t)(drawn >> 1);
      }
      counts[lda_draw(&random) % topics] += many == 0;
      if (many > 0) counts[topics - 1] = 17;
      check_counts(topics);
    }
}

static void test_topics_without_counts_are_never_drawn(void **state) {
  (void)state;
  struct lda_random random = {2};
  static const uint32_t some[] = {0, 7, 8, 15, 63, 99};
  for (size_t i = 0; i < 6; i++) counts[some[i]] = (int32_t)(i * i + 1);
  check_counts(100);
  assert_int_equal(alias.count, 6);
  for (int i = 0; i < 100000; i++) assert_true(counts[lda_alias_draw(&alias, (uint32_t)lda_draw(&random))] > 0);
  assert_true(counts[lda_alias_draw(&alias, 0)] > 0);
  assert_true(counts[lda_alias_draw(&alias, UINT32_MAX)] > 0);
}

static void test_a_single_topic_is_always_drawn(void **state) {
  (void)state;
  for (uint32_t at = 0; at < 20; at++) {
    memset(counts, 0, sizeof counts);
    counts[at] = at % 2 ? 1 : INT32_MAX;
    check_counts(20);
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += UINT32_MAX / 5)
      assert_int_equal(lda_alias_draw(&alias, (uint32_t)bits), at);
  }
  weights[0] = 0.3;
  check_weights(1);
  assert_int_equal(lda_alias_draw(&alias, UINT32_MAX), 0);
}

static void test_draws_are_as_the_cells_say(void **state) {
  (void)state;
  enum { DRAWS = 1 << 20 };
  uint32_t drawn[5] = {0};
  static const int32_t few[5] = {1, 0, 5, 100, 22};
  memcpy(counts, few, sizeof few);
  check_counts(5);
  /* evenly spread: no chance in it */
  for (uint32_t i = 0; i < DRAWS; i++) drawn[lda_alias_draw(&alias, i << 12)]++;
  for (uint32_t k = 0; k < 5; k++) assert_true(fabs(drawn[k] / (double)DRAWS - few[k] / 128.0) < 1e-5);
}

static void test_the_largest_counts_of_most_topics_do_not_overflow(void **state) {
  (void)state;
  for (uint32_t k = 0; k < MOST; k++) counts[k] = INT32_MAX;
  check_counts(MOST);
  for (uint32_t k = 0; k < MOST; k++) counts[k] = k % 2 ? INT32_MAX : 1;
  check_counts(MOST);
  /* one that gives to all others */
  for (uint32_t k = 0; k < MOST; k++) counts[k] = k == 12345 ? INT32_MAX : 1;
  check_counts(MOST);
  for (uint32_t k = 0; k < MOST; k++) counts[k] = INT32_MAX - (int32_t)(k % 3);
  check_counts(MOST);
}

static void test_chances_are_in_proportion_to_weights(void **state) {
  (void)state;
  struct lda_random random = {3};
  static const uint32_t sizes[] = {1, 2, 3, 8, 13, 100, 1000, MOST};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int kind = 0; kind < 3; kind++) {
      for (uint32_t k = 0; k < sizes[i]; k++) {
        double unit = (double)(lda_draw(&random) >> 11) * 0x1p-53;
        weights[k] = kind == 0 ? 0.1 : kind == 1 ? unit + 1e-9 : exp(60 * unit - 30);
      }
      check_weights(sizes[i]);
    }
}

static void test_weights_that_are_tiny_or_huge_keep_their_proportions(void **state) {
  (void)state;
  for (uint32_t k = 0; k < 10; k++) weights[k] = (k + 1) * 1e-300;
  check_weights(10);
  for (uint32_t k = 0; k < 10; k++) weights[k] = (k + 1) * 1e300;
  check_weights(10);
  weights[3] = 1e-300;
  check_weights(10);
}

#define WITH_ALIAS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_ALIAS(test_chances_are_in_proportion_to_counts),
      WITH_ALIAS(test_topics_without_counts_are_never_drawn),
      WITH_ALIAS(test_a_single_topic_is_always_drawn),
      WITH_ALIAS(test_draws_are_as_the_cells_say),
      WITH_ALIAS(test_the_largest_counts_of_most_topics_do_not_overflow),
      WITH_ALIAS(test_chances_are_in_proportion_to_weights),
      WITH_ALIAS(test_weights_that_are_tiny_or_huge_keep_their_proportions),
  };
  return cmocka_run_group_tests_name("apps.lda.alias", tests, NULL, NULL);
}
