/* Gaps between ends of a worker's pushes, around a moment. */
#include "base/testing.h"
#include "field.h"

/* A push every 10 from 100 on, none between 200 and 500, the last at 600; two are open. */
static struct pwi_storm_entry entries[24];
static struct pwi_storm_journal journal = {.entries = entries, .count = 24};

static int fill(void **state) {
  (void)state;
  int64_t now = 100;
  for (size_t i = 0; i < 22; i++) {
    entries[i].ended_ns = now;
    now = now == 200 ? 500 : now + 10;
  }
  return 0;
}

static void test_a_gap_is_whole_whichever_part_of_it_is_looked_at(void **state) {
  (void)state;
  assert_int_equal(pwi_storm_gap(&journal, 210, 520), 300);
  assert_int_equal(pwi_storm_gap(&journal, 400, 450), 300);
  assert_int_equal(pwi_storm_gap(&journal, 150, 205), 300);
  assert_int_equal(pwi_storm_gap(&journal, 499, 560), 300);
}

static void test_outside_of_it_pushes_go_on(void **state) {
  (void)state;
  assert_int_equal(pwi_storm_gap(&journal, 110, 190), 10);
  assert_int_equal(pwi_storm_gap(&journal, 500, 590), 10);
}

static void test_a_worker_that_is_told_nothing_more_stands_still_until_the_end(void **state) {
  (void)state;
  assert_int_equal(pwi_storm_gap(&journal, 595, 1000), 400);
  assert_int_equal(pwi_storm_gap(&journal, 700, 1000), 400);
}

static void test_before_the_first_push_there_is_no_gap(void **state) {
  (void)state;
  struct pwi_storm_journal empty = {0};
  assert_int_equal(pwi_storm_gap(&journal, 10, 90), 0);
  assert_int_equal(pwi_storm_gap(&empty, 10, 90), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_gap_is_whole_whichever_part_of_it_is_looked_at),
      cmocka_unit_test(test_outside_of_it_pushes_go_on),
      cmocka_unit_test(test_a_worker_that_is_told_nothing_more_stands_still_until_the_end),
      cmocka_unit_test(test_before_the_first_push_there_is_no_gap),
  };
  return cmocka_run_group_tests(tests, fill, NULL);
}
