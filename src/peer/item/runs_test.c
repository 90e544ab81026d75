/* Sets of keys against bitmaps. */
#include "base/testing.h"

#include "base/random.h"
#include "peer/item/runs.h"

#define ITEMS 200

static void fill(bool *bits, const struct pawl_items_keys *keys, size_t count) {
  memset(bits, 0, ITEMS);
  for (size_t i = 0; i < count; i++)
    for (uint64_t j = 0; j < keys[i].count; j++) bits[keys[i].start + j * keys[i].stride] = true;
}

/* Keys without duplicates, in any order. */
static size_t draw(struct pwi_random *random, struct pawl_items_keys *keys, bool *bits) {
  size_t count = 0;
  memset(bits, 0, ITEMS);
  for (int tries = 0; tries < 12; tries++) {
    struct pawl_items_keys run = {pwi_random_below(random, ITEMS), 0, 1 + pwi_random_below(random, 9)};
    uint64_t most = (ITEMS - 1 - run.start) / run.stride + 1;
    bool is_free = true;
    run.count = 1 + pwi_random_below(random, most);
    for (uint64_t j = 0; j < run.count; j++) is_free &= !bits[run.start + j * run.stride];
    if (!is_free) continue;
    for (uint64_t j = 0; j < run.count; j++) bits[run.start + j * run.stride] = true;
    keys[count++] = run;
  }
  return count;
}

/* Every key has another rank below `keys`, and comes back from it. */
static void check(const struct item_runs *runs, const bool *bits) {
  bool seen[ITEMS] = {0};
  uint32_t keys = 0;
  for (uint32_t key = 0; key < ITEMS; key++) {
    uint32_t rank = pwi_item_runs_rank(runs, key);
    assert_int_equal(rank != ITEM_NO_RANK, bits[key]);
    if (!bits[key]) continue;
    assert_true(rank < runs->keys && !seen[rank]);
    seen[rank] = true;
    assert_int_equal(pwi_item_runs_key(runs, rank), key);
    keys++;
  }
  assert_int_equal(keys, runs->keys);
  assert_int_equal(pwi_item_runs_rank(runs, ITEMS), ITEM_NO_RANK);
  assert_int_equal(pwi_item_runs_rank(runs, UINT64_MAX), ITEM_NO_RANK);
}

static void test_sets_are_what_was_written(void **state) {
  struct pawl_items_keys keys[16];
  struct pwi_random random;
  bool bits[ITEMS];
  uint64_t key;
  (void)state;
  pwi_random_init(&random, 1, 1);
  for (int i = 0; i < 3000; i++) {
    struct item_runs runs;
    size_t count = draw(&random, keys, bits);
    assert_int_equal(pwi_item_runs_make(keys, count, ITEMS, &runs, &key), PAWL_OK);
    check(&runs, bits);
    pwi_item_runs_fini(&runs);
  }
}

static void test_both_sides_find_the_same_common_keys(void **state) {
  struct pawl_items_keys keys[16];
  struct pwi_random random;
  bool left[ITEMS], right[ITEMS], both[ITEMS];
  uint64_t key;
  (void)state;
  pwi_random_init(&random, 2, 1);
  for (int i = 0; i < 3000; i++) {
    struct item_runs a, b, one, two;
    assert_int_equal(pwi_item_runs_make(keys, draw(&random, keys, left), ITEMS, &a, &key), PAWL_OK);
    assert_int_equal(pwi_item_runs_make(keys, draw(&random, keys, right), ITEMS, &b, &key), PAWL_OK);
    for (size_t j = 0; j < ITEMS; j++) both[j] = left[j] && right[j];
    assert_int_equal(pwi_item_runs_common(&a, &b, &one), PAWL_OK);
    assert_int_equal(pwi_item_runs_common(&b, &a, &two), PAWL_OK);
    check(&one, both);
    check(&two, both);
    for (uint32_t j = 0; j < ITEMS; j++) assert_int_equal(pwi_item_runs_rank(&one, j), pwi_item_runs_rank(&two, j));
    pwi_item_runs_fini(&a);
    pwi_item_runs_fini(&b);
    pwi_item_runs_fini(&one);
    pwi_item_runs_fini(&two);
  }
}

static void test_a_key_that_is_there_twice_is_named(void **state) {
  struct pwi_random random;
  bool bits[ITEMS], first[ITEMS];
  (void)state;
  pwi_random_init(&random, 3, 1);
  for (int i = 0; i < 2000; i++) {
    struct pawl_items_keys keys[17];
    struct item_runs runs;
    uint64_t key = 0;
    size_t count = draw(&random, keys, bits);
    keys[count] = (struct pawl_items_keys){pwi_random_below(&random, ITEMS), 1, 1 + pwi_random_below(&random, 4)};
    keys[count].count = 1 + pwi_random_below(&random, (ITEMS - 1 - keys[count].start) / keys[count].stride + 1);
    fill(first, &keys[count], 1);
    bool is_twice = false;
    for (size_t j = 0; j < ITEMS; j++) is_twice |= first[j] && bits[j];
    pawl_status status = pwi_item_runs_make(keys, count + 1, ITEMS, &runs, &key);
    assert_int_equal(status, is_twice ? PAWL_INVALID : PAWL_OK);
    if (!status) pwi_item_runs_fini(&runs);
  }
}

static void test_keys_beyond_the_items_are_refused(void **state) {
  const struct pawl_items_keys bad[] = {{10, 1, 1},         {0, 11, 1},         {9, 2, 1},         {1, 2, 9},
                                        {UINT64_MAX, 1, 1}, {0, UINT64_MAX, 1}, {1, 2, UINT64_MAX}};
  const struct pawl_items_keys good[] = {{9, 1, 77}, {0, 9, 0}};
  struct item_runs runs;
  uint64_t key;
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(pwi_item_runs_make(&bad[i], 1, 10, &runs, &key), PAWL_OUT_OF_SPAN);
  assert_int_equal(pwi_item_runs_make(good, 2, 10, &runs, &key), PAWL_OK);
  assert_int_equal(runs.keys, 10);
  assert_int_equal(runs.count, 1); /* merged */
  pwi_item_runs_fini(&runs);
}

/* Ten million items in a few bytes. */
static void test_regular_sets_are_small(void **state) {
  const struct pawl_items_keys all = {0, 10000000, 1}, every = {5, 10000000 / 64, 64};
  struct item_runs a, b, common;
  uint64_t key;
  (void)state;
  assert_int_equal(pwi_item_runs_make(&all, 1, 10000000, &a, &key), PAWL_OK);
  assert_int_equal(pwi_item_runs_make(&every, 1, 10000000, &b, &key), PAWL_OK);
  assert_int_equal(pwi_item_runs_common(&a, &b, &common), PAWL_OK);
  assert_true(common.keys == b.keys && pwi_item_runs_bytes(&common) < 1000);
  assert_int_equal(pwi_item_runs_rank(&common, 5 + 64 * 1000), 1000);
  pwi_item_runs_fini(&a);
  pwi_item_runs_fini(&b);
  pwi_item_runs_fini(&common);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sets_are_what_was_written),
      cmocka_unit_test(test_both_sides_find_the_same_common_keys),
      cmocka_unit_test(test_a_key_that_is_there_twice_is_named),
      cmocka_unit_test(test_keys_beyond_the_items_are_refused),
      cmocka_unit_test(test_regular_sets_are_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
