/* Delays that fade, and the allowance that peers get for them. */
#include "base/testing.h"
#include "net/tcp/delay.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define BEGIN (12345 * SECOND) /* clocks have an arbitrary zero */

static void test_a_delay_counts_half_after_five_seconds(void **state) {
  (void)state;
  struct pwi_delay delay = {0};
  assert_int_equal(pwi_delay_recent(&delay, BEGIN), 0);
  pwi_delay_note(&delay, 200 * MS, BEGIN);
  assert_int_equal(pwi_delay_recent(&delay, BEGIN), 200 * MS);
  assert_int_equal(pwi_delay_recent(&delay, BEGIN + 5 * SECOND), 100 * MS);
  assert_int_equal(pwi_delay_recent(&delay, BEGIN + 10 * SECOND), 50 * MS);
  assert_int_equal(pwi_delay_recent(&delay, BEGIN + 1000 * SECOND), 0);
}

static void test_it_never_grows_by_itself(void **state) {
  (void)state;
  struct pwi_delay delay = {0};
  pwi_delay_note(&delay, 999 * MS, BEGIN);
  int64_t before = INT64_MAX;
  for (int64_t now = BEGIN; now < BEGIN + 200 * SECOND; now += 7 * MS) {
    int64_t recent = pwi_delay_recent(&delay, now);
    assert_true(recent <= before && recent >= 0);
    before = recent;
  }
}

static void test_the_worst_delay_counts_until_a_later_one_is_worse(void **state) {
  (void)state;
  struct pwi_delay delay = {0};
  pwi_delay_note(&delay, 400 * MS, BEGIN);
  pwi_delay_note(&delay, 100 * MS, BEGIN + SECOND);
  assert_int_equal(pwi_delay_recent(&delay, BEGIN + 5 * SECOND), 200 * MS);
  pwi_delay_note(&delay, 300 * MS, BEGIN + 5 * SECOND);
  assert_int_equal(pwi_delay_recent(&delay, BEGIN + 5 * SECOND), 300 * MS);
}

static void test_a_process_that_was_stopped_says_nothing_about_the_machine(void **state) {
  (void)state;
  struct pwi_delay delay = {0};
  pwi_delay_note(&delay, SECOND, BEGIN);
  pwi_delay_note(&delay, 100 * SECOND, BEGIN);
  assert_int_equal(pwi_delay_recent(&delay, BEGIN), 0);
}

static void test_peers_get_four_times_the_delay_beyond_50_ms_and_at_most_two_seconds(void **state) {
  (void)state;
  assert_int_equal(pwi_delay_allowance(0), 0);
  assert_int_equal(pwi_delay_allowance(50 * MS), 0);
  assert_int_equal(pwi_delay_allowance(80 * MS), 120 * MS);
  assert_int_equal(pwi_delay_allowance(900 * MS), 2 * SECOND);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_delay_counts_half_after_five_seconds),
      cmocka_unit_test(test_it_never_grows_by_itself),
      cmocka_unit_test(test_the_worst_delay_counts_until_a_later_one_is_worse),
      cmocka_unit_test(test_a_process_that_was_stopped_says_nothing_about_the_machine),
      cmocka_unit_test(test_peers_get_four_times_the_delay_beyond_50_ms_and_at_most_two_seconds),
  };
  return cmocka_run_group_tests_name("net.tcp.delay", tests, NULL, NULL);
}
