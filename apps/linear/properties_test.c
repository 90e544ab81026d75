/* labels: long
 * timeout: 3600
 *
 * Many random problems of every kind: see property_test.h. */
#include "apps/linear/property_test.h"

static void test_every_kind_of_data_reaches_the_optimum_and_says_so(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_AUTO, 1, 6);
  check_kinds(PAWL_LINEAR_METHOD_AUTO, 1000, 40);
}

static void test_block_steps_never_end_above_the_start_nor_say_what_is_not_so(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_BLOCKS, 100, 2);
  check_kinds(PAWL_LINEAR_METHOD_BLOCKS, 2000, 30);
}

/* Duplicated columns, least squares, l1 0.05: it was said to have converged at 0.27 % above the optimum. */
static void test_steps_that_creep_are_not_said_to_have_arrived(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_BLOCKS, 1036, 2);
}

static void test_rows_of_the_hinge_that_are_dealt_out_never_say_what_is_not_so(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_DUAL, 300, 2);
  check_kinds(PAWL_LINEAR_METHOD_DUAL, 3000, 12);
}

static void test_gradient_steps_never_end_above_the_start_nor_say_what_is_not_so(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_SUBGRADIENT, 4000, 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_kind_of_data_reaches_the_optimum_and_says_so),
      cmocka_unit_test(test_block_steps_never_end_above_the_start_nor_say_what_is_not_so),
      cmocka_unit_test(test_steps_that_creep_are_not_said_to_have_arrived),
      cmocka_unit_test(test_rows_of_the_hinge_that_are_dealt_out_never_say_what_is_not_so),
      cmocka_unit_test(test_gradient_steps_never_end_above_the_start_nor_say_what_is_not_so),
  };
  return cmocka_run_group_tests_name("apps.linear.properties", tests, open_cluster, close_cluster);
}
