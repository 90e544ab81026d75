/* What the scheduler decides, from rounds that are made up: objectives that fall as those of real runs do. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/control.h"

static struct linear_control begin(enum pawl_linear_method method, double tolerance, uint32_t tau, uint32_t workers) {
  struct pawl_linear_options options;
  struct linear_control control;
  pawl_linear_options_init(&options);
  options.tolerance = tolerance;
  options.tau = tau;
  options.workers = options.workers_most = workers;
  options.rate = 0.5;
  linear_control_init(&control, &options, linear_method_of(method), 1000, 0.5);
  return control;
}

static struct linear_outcome whole(const struct linear_control *control, double objective) {
  return (struct linear_outcome){.is_whole = true,
                                 .was_full = control->is_full,
                                 .objective = objective,
                                 .violation = 10,
                                 .violation_max = 5,
                                 .before = NAN,
                                 .gap = NAN};
}

static void hear(struct linear_control *control, double objective) {
  struct linear_outcome outcome = whole(control, objective);
  linear_control_hear(control, &outcome);
}

static void measured(struct linear_control *control, double gap, double violation, double reach) {
  struct linear_distance distance = {gap, violation, reach, INFINITY};
  linear_control_measured(control, &distance);
}

/* Falls by `factor` from one full round to the next, until the distance is to be measured: then weights have `moved`. */
static bool is_done_where(double factor, double reach, double moved) {
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-3, 0, 1);
  double above = 1;
  for (int round = 0; round < 3000 && !control.wants_check; round++) {
    if (control.is_full) above *= factor;
    hear(&control, 100 + above);
  }
  assert_true(control.wants_check);
  struct linear_distance distance = {0.5, 0.09, reach, moved};
  linear_control_measured(&control, &distance);
  return control.is_done;
}

/* The same, towards an optimum of 100: whoever asks is told how far it is. */
static void hear_measured(struct linear_control *control, double objective) {
  hear(control, objective);
  if (control->wants_check) measured(control, (objective - 100) / objective, 10, 0);
}

/* --- blocks: when it stops ------------------------------------------------------------------------------ */

/* The objective falls towards 100 by a constant factor a round. Returns how far it was, as a part, when it
 * was done; 1 if it never was. */
static double stops_at(double tolerance, double factor, double first, int most) {
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, tolerance, 0, 1);
  double above = first;
  for (int round = 0; round < most && !control.is_done; round++) {
    hear_measured(&control, 100 + above);
    above *= factor;
  }
  above /= factor;
  return control.is_done ? above / (100 + above) : 1;
}

static void test_it_stops_near_the_optimum_whatever_the_factor(void **state) {
  (void)state;
  static const double factors[] = {0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99};
  static const double tolerances[] = {1e-2, 1e-4, 1e-6};
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
    for (size_t k = 0; k < 3; k++) {
      double left = stops_at(tolerances[k], factors[i], 1000, 5000);
      if (!(left <= tolerances[k])) fail_msg("factor %g: stopped at %g, not %g", factors[i], left, tolerances[k]);
      if (!(left > tolerances[k] * 1e-4 * pow(factors[i], 12)))
        fail_msg("factor %g: went on until %g, for %g", factors[i], left, tolerances[k]);
    }
}

static void test_a_tail_that_becomes_slow_does_not_stop_it_early(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  double quick = 500, slow = 1; /* a hundredth of what there is falls by 3 % a round */
  int round = 0;
  for (; round < 1000 && !control.is_done; round++) {
    hear_measured(&control, 100 + quick + slow);
    quick *= 0.4;
    slow *= 0.97;
  }
  assert_true(control.is_done);
  assert_true((quick + slow) / 0.97 / 100 <= 1e-4);
}

static void test_rounds_of_active_features_alone_do_not_stop_it(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  struct linear_outcome outcome = {.is_whole = true, .was_full = false, .objective = 100};
  for (int round = 0; round < 50; round++) linear_control_hear(&control, &outcome);
  assert_false(control.is_done);
}

static void test_what_seems_to_be_done_is_measured_before_it_is_said(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  for (int round = 0; round < 30 && !control.wants_check; round++) hear(&control, 100 + pow(0.1, round));
  assert_true(control.wants_check && !control.is_done);
  measured(&control, 0.5, 10, 0);
  assert_true(!control.wants_check && !control.is_done && control.gap == 0.5);
  hear(&control, 100); /* the violation is what it was, so the bound will be: no other look for a while */
  assert_false(control.wants_check);
  for (int round = 0; round < 60 && !control.wants_check; round++) hear(&control, 100);
  assert_true(control.wants_check);
  measured(&control, 9e-5, 10, 0);
  assert_true(control.is_done && !control.is_stuck);
}

static void test_where_nothing_moves_and_the_bound_is_not_met_it_is_stuck(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  for (int round = 0; round < 30 && !control.wants_check; round++) hear(&control, 100);
  measured(&control, 0.5, 10, 0);
  assert_true(control.is_stuck && !control.is_done);
}

static void test_a_violation_that_is_a_hundredth_of_the_first_is_done_without_a_bound(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-3, 0, 1);
  for (int round = 0; round < 30 && !control.wants_check; round++) hear(&control, 100);
  measured(&control, 0.5, 0.11, 0); /* it was 10 */
  assert_false(control.is_done);
  for (int round = 0; round < 60 && !control.wants_check; round++) hear(&control, 100);
  measured(&control, 0.5, 0.09, 2.1e-3); /* weights so long that what is left of the slopes may bring much */
  assert_false(control.is_done);
  for (int round = 0; round < 60 && !control.wants_check; round++) hear(&control, 100);
  measured(&control, 0.5, 0.09, 1.9e-3);
  assert_true(control.is_done);
}

static void test_slopes_that_are_left_count_by_how_far_weights_still_go(void **state) {
  (void)state;
  assert_true(is_done_where(0.1, 9e-3, 4e-4));
  assert_false(is_done_where(0.1, 9e-3, 6e-4));   /* they still go far */
  assert_false(is_done_where(0.1, 1.1e-2, 1e-6)); /* they may be far from where they will be */
  assert_false(is_done_where(0.95, 9e-3, 4e-4));  /* the same way in every round, and 39 times as far in the end */
  assert_true(is_done_where(0.95, 9e-3, 1e-5));
  assert_false(is_done_where(0.1, 9e-3, INFINITY)); /* it is not known how far they went */
}

static void test_nothing_can_be_less_than_nothing(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  for (int round = 0; round < 30 && !control.is_done; round++)
    hear(&control, 0); /* rows that are told apart, no penalty */
  assert_true(control.is_done);
}

static void test_the_least_tolerance_means_all_rounds(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, LINEAR_NEVER_DONE, 0, 1);
  for (int round = 0; round < 300; round++) {
    hear(&control, 100); /* it does not even tremble */
    assert_false(control.is_done);
  }
}

static void test_nothing_is_decided_by_an_objective_that_is_not_known(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  for (int round = 0; round < 20; round++) hear(&control, NAN);
  assert_false(control.goes_back); /* there is nothing to go back to */
  assert_true(control.damping > 1e6);
  assert_false(control.is_done);
  assert_int_equal(control.rounds, 20);
  assert_true(isnan(linear_control_left(&control)));
}

/* --- blocks: which features, and how far ---------------------------------------------------------------- */

static void test_full_rounds_come_first_and_then_every_third(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-9, 0, 1);
  for (int round = 0; round < 12; round++) {
    assert_int_equal(control.is_full, round % 3 == 0);
    hear(&control, 1000 / (round + 1.0));
  }
}

static void test_without_the_filter_every_round_is_full(void **state) {
  (void)state;
  struct pawl_linear_options options;
  struct linear_control control;
  pawl_linear_options_init(&options);
  options.keep_all = true;
  linear_control_init(&control, &options, &linear_blocks, 10, 0);
  for (int round = 0; round < 6; round++) {
    assert_true(control.is_full);
    hear(&control, 1000 / (round + 1.0));
  }
}

static void test_a_round_that_is_not_whole_makes_the_next_one_full(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  hear(&control, 1000);
  assert_false(control.is_full);
  double slack = control.slack;
  struct linear_outcome lost = {.is_whole = false, .objective = 1e-9, .violation_max = 1e9};
  linear_control_hear(&control, &lost);
  assert_true(control.is_full);
  assert_false(control.is_done); /* what half of the workers say is nothing to go by */
  assert_true(control.slack == slack);
  assert_true(control.previous == 1000 && control.best == 1000);
}

static void test_the_filter_lets_all_through_until_something_is_known(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  assert_true(control.slack >= 1e300 && isfinite(control.slack));
  hear(&control, 1000);
  assert_true(control.slack ==
              /* the largest violation over the number of rows (OSDI'14 5.1, as Yuan et al. 2012) */
              5.0 / 1000);
  linear_control_next(&control);
  assert_true(control.slack >= 1e300 && control.is_full && control.rounds == 0);
}

static void test_a_rise_goes_back_to_the_best_with_shorter_steps(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  hear(&control, 1000);
  assert_true(control.keeps && !control.goes_back);
  hear(&control, 900);
  assert_true(control.damping == 1 && control.keeps);
  hear(&control, 901);
  assert_true(control.goes_back && !control.keeps && control.best == 900);
  assert_true(control.damping == 2);
  assert_true(control.is_full);
  hear(&control, 1e14);
  assert_true(control.damping == 16 && control.goes_back);
  hear(&control, NAN);
  assert_true(control.damping == 128 && control.goes_back);
  for (int round = 0; round < 400; round++) hear(&control, 899 - round);
  assert_true(control.damping > 16 &&
              control.damping < 24); /* slowly back, and never again as long as those that failed */
  assert_false(control.is_stuck);
  for (int round = 0; round < 60; round++) hear(&control, 1e3 * (round + 1));
  assert_true(control.is_stuck && control.damping == 1e9);
}

static void test_a_first_round_that_rises_above_the_start_goes_back_to_it(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  struct linear_outcome outcome = whole(&control, 1e14);
  outcome.before = 8318;
  linear_control_hear(&control, &outcome);
  assert_true(control.goes_back && control.best == 8318);
}

static void test_a_rise_by_rounding_is_none(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  hear(&control, 1000);
  hear(&control, 1000 + 1e-5);
  assert_true(!control.goes_back && !control.keeps && control.damping == 1);
}

static void test_crowded_blocks_begin_with_shorter_steps_and_keep_them(void **state) {
  (void)state;
  struct pawl_linear_options options;
  struct linear_control control;
  pawl_linear_options_init(&options);
  linear_control_init(&control, &options, &linear_blocks, 1000, 3);
  assert_true(control.damping == 3);
  for (int round = 0; round < 50; round++) hear(&control, 1000.0 / (round + 1));
  assert_true(control.damping == 3);
}

static void test_a_new_penalty_keeps_the_damping_that_was_found(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  hear(&control, 1000);
  hear(&control, 1100);
  linear_control_next(&control);
  assert_true(control.damping == 2);
  hear(&control, 1e6); /* the objective of another penalty is not a rise */
  assert_true(control.damping < 2 && !control.goes_back);
}

static void test_what_is_left_is_guessed_from_how_it_falls(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_BLOCKS, 1e-4, 0, 1);
  double above = 1000;
  for (int round = 0; round < 30; round++, above *= 0.9) hear(&control, 100 + above);
  /* above / 100 is to become 1e-5, when it is measured */
  double really = log(1e-3 / above) / log(0.9), guess = linear_control_left(&control);
  assert_true(guess > really / 2 && guess < really * 2);
}

/* --- the dual method ------------------------------------------------------------------------------------ */

static void hear_gap(struct linear_control *control, double objective, double dual) {
  struct linear_outcome outcome = {.is_whole = true, .objective = objective, .dual = dual, .before = NAN};
  linear_control_hear(control, &outcome);
}

static void test_the_dual_method_is_done_when_the_gap_is_small(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_DUAL, 1e-3, 0, 2);
  hear_gap(&control, 200, 50);
  assert_false(control.is_done);
  hear_gap(&control, 101, 99);
  assert_false(control.is_done);
  hear_gap(&control, 100.05, 99.99);
  assert_true(control.is_done);
  assert_true(linear_control_left(&control) == 0);
}

static void test_the_dual_method_is_never_worse_than_its_beginning(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_DUAL, 1e-3, 0, 2);
  struct linear_outcome outcome = {.is_whole = true, .objective = 1e6, .dual = 5, .before = 100};
  linear_control_hear(&control, &outcome);
  assert_false(control.keeps);
  assert_true(control.best == 100);
  hear_gap(&control, 90, 6);
  assert_true(control.keeps);
}

static void test_the_dual_method_goes_on_while_somebody_is_missing(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_DUAL, 1e-3, 0, 2);
  struct linear_outcome outcome = {.is_whole = false, .objective = 100, .dual = 100};
  linear_control_hear(&control, &outcome);
  assert_false(control.is_done);
}

static void test_the_dual_method_steps_shorter_when_its_objective_falls(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_DUAL, 1e-3, 0, 4);
  assert_true(control.damping == 1);
  hear_gap(&control, 200, 50);
  hear_gap(&control, 200, 40);
  assert_true(control.damping == 2);
  for (int round = 0; round < 40; round++) hear_gap(&control, 200, 60 + round);
  /* never again as long as when they were too long */
  assert_true(control.damping > 1 && control.damping < 2);
  for (int round = 0; round < 40; round++) hear_gap(&control, 200, 50 - round);
  assert_true(control.damping == 8); /* twice the workers is always short enough */
}

static void test_with_delay_the_dual_method_begins_with_what_is_safe(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_DUAL, 1e-3, 4, 4);
  assert_true(control.damping == 4);
}

/* --- gradients ------------------------------------------------------------------------------------------ */

static void test_the_rate_of_gradients_is_halved_when_the_objective_rises(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_SUBGRADIENT, 1e-4, 0, 1);
  hear(&control, 1000);
  assert_true(control.rate == 0.5 && !control.goes_back);
  hear(&control, 2000);
  assert_true(control.rate == 0.25 && control.goes_back);
  hear(&control, 900);
  assert_true(control.rate == 0.25 && !control.goes_back);
  assert_false(control.is_done);
  hear(&control, 900 * (1 - 1e-7));
  assert_true(control.wants_check && !control.is_done);
  measured(&control, 1e-5, 1, 0);
  assert_true(control.is_done);
}

/* --- Newton steps --------------------------------------------------------------------------------------- */

static void hear_newton(struct linear_control *control, double objective, double gap, double left) {
  struct linear_outcome outcome = whole(control, objective);
  outcome.gap = gap;
  outcome.left = left;
  linear_control_hear(control, &outcome);
}

static void test_newton_steps_are_done_by_the_bound_or_by_what_the_quadratic_promised(void **state) {
  (void)state;
  struct linear_control control = begin(PAWL_LINEAR_METHOD_NEWTON, 1e-3, 0, 1);
  hear_newton(&control, 100, 0.9, 0.5);
  assert_false(control.is_done);
  hear_newton(&control, 99, 9e-4, 0.5);
  assert_true(control.is_done);
  control = begin(PAWL_LINEAR_METHOD_NEWTON, 1e-3, 0, 1);
  hear_newton(&control, 100, 0.9, INFINITY); /* with a ridge it promises less than there is */
  assert_false(control.is_done);
  hear_newton(&control, 99, 0.9, 1e-6);
  assert_true(control.is_done);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_stops_near_the_optimum_whatever_the_factor),
      cmocka_unit_test(test_a_tail_that_becomes_slow_does_not_stop_it_early),
      cmocka_unit_test(test_rounds_of_active_features_alone_do_not_stop_it),
      cmocka_unit_test(test_what_seems_to_be_done_is_measured_before_it_is_said),
      cmocka_unit_test(test_where_nothing_moves_and_the_bound_is_not_met_it_is_stuck),
      cmocka_unit_test(test_a_violation_that_is_a_hundredth_of_the_first_is_done_without_a_bound),
      cmocka_unit_test(test_slopes_that_are_left_count_by_how_far_weights_still_go),
      cmocka_unit_test(test_nothing_can_be_less_than_nothing),
      cmocka_unit_test(test_the_least_tolerance_means_all_rounds),
      cmocka_unit_test(test_nothing_is_decided_by_an_objective_that_is_not_known),
      cmocka_unit_test(test_full_rounds_come_first_and_then_every_third),
      cmocka_unit_test(test_without_the_filter_every_round_is_full),
      cmocka_unit_test(test_a_round_that_is_not_whole_makes_the_next_one_full),
      cmocka_unit_test(test_the_filter_lets_all_through_until_something_is_known),
      cmocka_unit_test(test_a_rise_goes_back_to_the_best_with_shorter_steps),
      cmocka_unit_test(test_a_first_round_that_rises_above_the_start_goes_back_to_it),
      cmocka_unit_test(test_a_rise_by_rounding_is_none),
      cmocka_unit_test(test_crowded_blocks_begin_with_shorter_steps_and_keep_them),
      cmocka_unit_test(test_a_new_penalty_keeps_the_damping_that_was_found),
      cmocka_unit_test(test_what_is_left_is_guessed_from_how_it_falls),
      cmocka_unit_test(test_the_dual_method_is_done_when_the_gap_is_small),
      cmocka_unit_test(test_the_dual_method_is_never_worse_than_its_beginning),
      cmocka_unit_test(test_the_dual_method_goes_on_while_somebody_is_missing),
      cmocka_unit_test(test_the_dual_method_steps_shorter_when_its_objective_falls),
      cmocka_unit_test(test_with_delay_the_dual_method_begins_with_what_is_safe),
      cmocka_unit_test(test_the_rate_of_gradients_is_halved_when_the_objective_rises),
      cmocka_unit_test(test_newton_steps_are_done_by_the_bound_or_by_what_the_quadratic_promised),
  };
  return cmocka_run_group_tests_name("apps.linear.control", tests, NULL, NULL);
}
