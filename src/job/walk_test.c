/* A worker's walk through its pieces, against arrays of marks. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "job/walk.h"

enum { PIECES = 40 };

static struct pwi_walk walk;
static struct pwi_rangeset yields;

static void open_walk(void) {
  walk = (struct pwi_walk){0};
  pwi_rangeset_init(&yields);
}

static void close_walk(void) {
  pwi_rangeset_fini(&walk.pieces);
  pwi_rangeset_fini(&yields);
}

static void give(uint64_t begin, uint64_t end) {
  assert_int_equal(pwi_rangeset_add(&walk.pieces, pawl_range_of(begin, end)), PAWL_OK);
}

static void expect_next(uint64_t most, uint64_t begin, uint64_t end) {
  struct pawl_range run = pwi_walk_next(&walk, most);
  assert_int_equal(run.begin, begin);
  assert_int_equal(run.end, end);
}

static void yield(uint32_t newcomers, uint32_t workers, uint64_t count) {
  assert_int_equal(pwi_walk_yields(&walk, newcomers, workers, &yields), PAWL_OK);
  assert_int_equal(pwi_rangeset_size(&yields), count);
  pwi_walk_yield(&walk, &yields);
}

static void test_pieces_come_in_order_run_by_run(void **state) {
  (void)state;
  open_walk();
  give(2, 7);
  give(9, 10);
  expect_next(3, 2, 5);
  expect_next(3, 5, 7);
  expect_next(UINT64_MAX, 9, 10);
  assert_true(pawl_range_is_empty(pwi_walk_next(&walk, 1)));
  walk.next = 0; /* another round */
  expect_next(UINT64_MAX, 2, 7);
  close_walk();
}

static void test_what_is_yielded_is_the_tail_of_what_is_left(void **state) {
  (void)state;
  open_walk();
  give(0, 6);
  give(10, 14);
  expect_next(2, 0, 2);
  yield(1, 2, 4);
  assert_int_equal(yields.ranges[0].begin, 10);
  yield(1, 2, 2);
  assert_int_equal(yields.ranges[0].begin, 4);
  expect_next(UINT64_MAX, 2, 4);
  yield(1, 2, 0);
  assert_true(pawl_range_is_empty(pwi_walk_next(&walk, 1)));
  close_walk();
}

static void test_a_worker_keeps_no_less_than_its_part(void **state) {
  (void)state;
  open_walk();
  give(0, 7);
  yield(2, 3, 4); /* of 7 pieces a third is 2.33 */
  yield(1, 4, 0); /* of 3 pieces nobody else gets a whole one */
  expect_next(UINT64_MAX, 0, 3);
  close_walk();
}

static void test_large_numbers_of_pieces_do_not_overflow(void **state) {
  (void)state;
  open_walk();
  give(0, PAWL_KEY_END - 1);
  assert_int_equal(pwi_walk_yields(&walk, UINT32_MAX - 1, UINT32_MAX, &yields), PAWL_OK);
  uint64_t kept = PAWL_KEY_END - 1 - pwi_rangeset_size(&yields);
  assert_in_range(kept, (PAWL_KEY_END - 1) / UINT32_MAX, (PAWL_KEY_END - 1) / UINT32_MAX + 1);
  close_walk();
}

/* Whatever is yielded in between: every piece is begun once, or yielded once. */
static void test_every_piece_is_begun_or_yielded(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 2000; seed++) {
    struct pwi_random random;
    uint32_t has[PIECES] = {0}, seen[PIECES] = {0};
    pwi_random_init(&random, seed, 0);
    open_walk();
    for (uint64_t i = 0; i < PIECES; i++)
      if (pwi_random_below(&random, 3) > 0) give(i, i + 1), has[i] = 1;
    for (struct pawl_range run = {0, 1}; !pawl_range_is_empty(run);) {
      run = pwi_walk_next(&walk, 1 + pwi_random_below(&random, 4));
      for (uint64_t i = run.begin; i < run.end; i++) seen[i]++;
      if (pwi_random_below(&random, 5) > 0) continue;
      uint32_t workers = 2 + (uint32_t)pwi_random_below(&random, 4);
      assert_int_equal(pwi_walk_yields(&walk, 1 + (uint32_t)pwi_random_below(&random, workers - 1), workers, &yields),
                       PAWL_OK);
      uint64_t allocations = pwi_memory_counts().allocations;
      pwi_walk_yield(&walk, &yields);
      assert_int_equal(pwi_memory_counts().allocations, allocations);
      for (size_t k = 0; k < yields.count; k++)
        for (uint64_t i = yields.ranges[k].begin; i < yields.ranges[k].end; i++) seen[i]++;
    }
    for (int i = 0; i < PIECES; i++)
      if (seen[i] != has[i]) fail_msg("seed %llu: piece %d was seen %u times", (unsigned long long)seed, i, seen[i]);
    close_walk();
  }
}

static void test_memory_that_ends_yields_nothing(void **state) {
  (void)state;
  open_walk();
  give(0, 4);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_walk_yields(&walk, 1, 2, &yields), PAWL_NO_MEMORY);
  (void)pwi_memory_fail_cancel();
  yield(1, 2, 2);
  close_walk();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pieces_come_in_order_run_by_run),
      cmocka_unit_test(test_what_is_yielded_is_the_tail_of_what_is_left),
      cmocka_unit_test(test_a_worker_keeps_no_less_than_its_part),
      cmocka_unit_test(test_large_numbers_of_pieces_do_not_overflow),
      cmocka_unit_test(test_every_piece_is_begun_or_yielded),
      cmocka_unit_test(test_memory_that_ends_yields_nothing),
  };
  return cmocka_run_group_tests_name("job.walk", tests, NULL, NULL);
}
