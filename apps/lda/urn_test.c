/* Urns: every topic is drawn by its count, whichever way the urn is filled. */
#include "base/testing.h"
#include "apps/lda/random.h"
#include "apps/lda/urn.h"

enum { TOPICS = 1003 };

static struct lda_urn urn;
static int32_t counts[TOPICS];

static int begin(void **state) {
  (void)state;
  return lda_urn_init(&urn, TOPICS) ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  lda_urn_fini(&urn);
  return 0;
}

static void check_what_is_there(void) {
  uint64_t sum = 0;
  uint32_t count = 0;
  for (uint32_t k = 0; k < TOPICS; k++) {
    if (counts[k] <= 0) continue;
    assert_int_equal(urn.topics[count++], k);
    sum += (uint64_t)counts[k];
  }
  assert_int_equal(urn.count, count);
  assert_int_equal(urn.sum, sum);
}

/* Draws with evenly spread numbers hit each token as often. */
static void check_draws(void) {
  enum { DRAWS = 1 << 20 };
  static uint32_t drawn[TOPICS];
  memset(drawn, 0, sizeof drawn);
  for (uint64_t i = 0; i < DRAWS; i++) drawn[lda_urn_draw(&urn, (uint32_t)(i << 12) + 2048)]++;
  for (uint32_t k = 0; k < TOPICS; k++) {
    double wanted = counts[k] > 0 ? (double)counts[k] / (double)urn.sum * DRAWS : 0;
    assert_true((double)drawn[k] >= wanted - 2 * urn.count - 2 && (double)drawn[k] <= wanted + 2 * urn.count + 2);
    if (counts[k] <= 0) assert_int_equal(drawn[k], 0);
  }
}

static void test_tokens_of_a_rare_word_are_put_in(void **state) {
  (void)state;
  struct lda_random random = {5};
  for (int round = 0; round < 50; round++) {
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < 1 + 37 * round; i++) counts[lda_below((uint32_t)(lda_draw(&random) >> 32), TOPICS)]++;
    lda_urn_fill(&urn, counts, TOPICS);
    assert_true(urn.has_tokens);
    check_what_is_there();
    uint32_t found[TOPICS] = {0};
    for (uint64_t i = 0; i < urn.sum; i++) found[urn.tokens[i]]++;
    for (uint32_t k = 0; k < TOPICS; k++) assert_int_equal(found[k], counts[k]);
  }
  memset(counts, 0, sizeof counts);
  counts[3] = 7;
  counts[TOPICS - 1] = 25;
  lda_urn_fill(&urn, counts, TOPICS);
  check_draws();
}

static void test_a_frequent_word_has_an_alias_table(void **state) {
  (void)state;
  memset(counts, 0, sizeof counts);
  counts[0] = 1000;
  counts[500] = 30000;
  counts[1002] = 1;
  lda_urn_fill(&urn, counts, TOPICS);
  assert_false(urn.has_tokens);
  check_what_is_there();
  check_draws();
}

static void test_counts_below_zero_count_for_nothing(void **state) {
  (void)state;
  memset(counts, 0, sizeof counts);
  counts[1] = -4;
  counts[2] = 3;
  lda_urn_fill(&urn, counts, TOPICS);
  check_what_is_there();
  check_draws();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tokens_of_a_rare_word_are_put_in),
      cmocka_unit_test(test_a_frequent_word_has_an_alias_table),
      cmocka_unit_test(test_counts_below_zero_count_for_nothing),
  };
  return cmocka_run_group_tests_name("apps.lda.urn", tests, begin, end);
}
