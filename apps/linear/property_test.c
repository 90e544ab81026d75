/* cost: 15
 *
 * Some random problems of every kind: see property_test.h; properties_test.c has more of them. */
#include "apps/linear/property_test.h"

static void test_every_kind_of_data_reaches_the_optimum_and_says_so(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_AUTO, 1, 1);
}

static void test_block_steps_never_end_above_the_start_nor_say_what_is_not_so(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_BLOCKS, 100, 1);
}

/* As hard300.svm was, of which the first round made 1,743,201 out of 8,318. */
static void test_steps_that_overshoot_are_taken_back(void **state) {
  (void)state;
  static double w[FEATURES_MOST + 1];
  static struct outcome outcome;
  struct counts counts = {0};
  for (uint64_t seed = 1; seed <= 4; seed++) {
    struct problem problem = {.rows = &drawn, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1};
    draw_problem(LONG, false, seed);
    double best = solve_plainly(&problem, w);
    const char *wrong = judge(&problem, PAWL_LINEAR_METHOD_BLOCKS, 1, 0, best, &counts, &outcome);
    if (wrong) fail_msg("seed %d %s: %.9g for %.9g", (int)seed, wrong, objective_of(&problem, outcome.w[0]), best);
  }
  assert_int_equal(counts.unconverged, 0);
}

static void test_rows_of_the_hinge_that_are_dealt_out_never_say_what_is_not_so(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_DUAL, 300, 1);
}

static void test_gradient_steps_never_end_above_the_start_nor_say_what_is_not_so(void **state) {
  (void)state;
  check_kinds(PAWL_LINEAR_METHOD_SUBGRADIENT, 200, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_kind_of_data_reaches_the_optimum_and_says_so),
      cmocka_unit_test(test_block_steps_never_end_above_the_start_nor_say_what_is_not_so),
      cmocka_unit_test(test_steps_that_overshoot_are_taken_back),
      cmocka_unit_test(test_rows_of_the_hinge_that_are_dealt_out_never_say_what_is_not_so),
      cmocka_unit_test(test_gradient_steps_never_end_above_the_start_nor_say_what_is_not_so),
  };
  return cmocka_run_group_tests_name("apps.linear.property", tests, open_cluster, close_cluster);
}
