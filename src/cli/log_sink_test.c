/* How a line of the log looks. */
#include "base/testing.h"
#include "cli/cli.h"

static void test_line_of_a_real_node_has_the_date(void **state) {
  char text[128];
  (void)state;
  struct pawl_log_line line = {PAWL_LOG_WARN, INT64_C(1000000000123456789), "s1", "link.down peer=w1"};
  size_t length = pwi_cli_log_format(&line, text, sizeof text);
  assert_int_equal(length, strlen(text));
  assert_string_equal(text, "2001-09-09T01:46:40.123456Z warn s1 link.down peer=w1\n");
}

static void test_line_of_a_simulated_node_has_seconds(void **state) {
  char text[128];
  (void)state;
  struct pawl_log_line line = {PAWL_LOG_INFO, INT64_C(1500000000), "s1", "x"};
  pwi_cli_log_format(&line, text, sizeof text);
  assert_string_equal(text, "1.500000 info s1 x\n");
}

static void test_long_line_is_cut_off_and_still_ends(void **state) {
  char text[32];
  (void)state;
  struct pawl_log_line line = {PAWL_LOG_ERROR, 0, "node", "a text that is too long for what there is"};
  assert_int_equal(pwi_cli_log_format(&line, text, sizeof text), 31);
  assert_int_equal(strlen(text), 31);
  assert_int_equal(text[30], '\n');
}

static void test_unknown_level_is_refused(void **state) {
  (void)state;
  assert_true(pwi_cli_log_level("debug") && pwi_cli_log_level("error"));
  assert_false(pwi_cli_log_level("loud") || pwi_cli_log_level("") || pwi_cli_log_level("WARN"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_line_of_a_real_node_has_the_date),
      cmocka_unit_test(test_line_of_a_simulated_node_has_seconds),
      cmocka_unit_test(test_long_line_is_cut_off_and_still_ends),
      cmocka_unit_test(test_unknown_level_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
