/* Losses: by hand, against differences, and far out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apps/linear/losses.h"

#define NUMBER(NAME, prefix, is_regression, is_curved) PAWL_LINEAR_##NAME,
static const enum pawl_linear_loss all[] = {LINEAR_LOSSES(NUMBER)};

static void close_to(double a, double b, double within) {
  if (!(fabs(a - b) <= within * (1 + fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

static void test_losses_are_what_one_computes_by_hand(void **state) {
  (void)state;
  close_to(linear_loss_value(PAWL_LINEAR_LOGISTIC, 1, 0), 0.6931471805599453, 1e-15);
  close_to(linear_loss_value(PAWL_LINEAR_LOGISTIC, -1, 2), 2.1269280110429727, 1e-15);
  close_to(linear_loss_value(PAWL_LINEAR_HINGE, -1, 0.25), 1.25, 0);
  close_to(linear_loss_value(PAWL_LINEAR_HINGE, 1, 1.5), 0, 0);
  close_to(linear_loss_value(PAWL_LINEAR_SQUARED_HINGE, 1, -1), 4, 0);
  close_to(linear_loss_value(PAWL_LINEAR_SQUARED_HINGE, -1, -1), 0, 0);
  close_to(linear_loss_value(PAWL_LINEAR_SQUARED, 3.5, 1.5), 2, 0);
  close_to(linear_loss_slope(PAWL_LINEAR_LOGISTIC, 1, 0), -0.5, 0);
  close_to(linear_loss_slope(PAWL_LINEAR_LOGISTIC, -1, 0), 0.5, 0);
  close_to(linear_loss_curvature(PAWL_LINEAR_LOGISTIC, 1, 0), 0.25, 0);
  close_to(linear_sigmoid(2), 0.8807970779778823, 1e-15);
  close_to(linear_sigmoid(-2), 0.11920292202211755, 1e-15);
}

/* At points that are no kinks, central differences give the slope of the value and the curvature of the
 * slope. */
static void test_slope_and_curvature_are_the_derivatives(void **state) {
  (void)state;
  const double h = 1e-5;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (int y = -1; y <= 1; y += 2)
      for (double z = -3.03; z < 3.1; z += 0.25) {
        double up = linear_loss_value(all[i], y, z + h), down = linear_loss_value(all[i], y, z - h);
        close_to(linear_loss_slope(all[i], y, z), (up - down) / (2 * h), 1e-7);
        up = linear_loss_slope(all[i], y, z + h), down = linear_loss_slope(all[i], y, z - h);
        close_to(linear_loss_curvature(all[i], y, z), (up - down) / (2 * h), 1e-7);
      }
}

static void test_the_logistic_loss_holds_far_out(void **state) {
  (void)state;
  const double far[] = {40, 800, 1e5, 1e300};
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    double z = far[i];
    close_to(linear_loss_value(PAWL_LINEAR_LOGISTIC, -1, z), z, 1e-15);
    close_to(linear_loss_value(PAWL_LINEAR_LOGISTIC, 1, z), exp(-z), 0);
    close_to(linear_loss_slope(PAWL_LINEAR_LOGISTIC, -1, z), 1, 0);
    close_to(linear_loss_slope(PAWL_LINEAR_LOGISTIC, 1, z), -exp(-z), 1e-15);
    assert_true(linear_loss_curvature(PAWL_LINEAR_LOGISTIC, 1, z) >= 0);
    assert_true(linear_loss_curvature(PAWL_LINEAR_LOGISTIC, 1, -z) <= exp(-z));
    close_to(linear_sigmoid(z), 1, 1e-15);
    close_to(linear_sigmoid(-z), exp(-z), 1e-15);
  }
  /* Small losses keep their digits: log(1 + e) would be 0. */
  assert_true(linear_loss_value(PAWL_LINEAR_LOGISTIC, 1, 50) > 1.9e-22);
}

static void test_what_is_no_number_stays_none(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    assert_true(isnan(linear_loss_value(all[i], 1, (double)NAN)));
    if (all[i] != PAWL_LINEAR_HINGE) assert_true(isnan(linear_loss_slope(all[i], 1, (double)NAN)));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_losses_are_what_one_computes_by_hand),
      cmocka_unit_test(test_slope_and_curvature_are_the_derivatives),
      cmocka_unit_test(test_the_logistic_loss_holds_far_out),
      cmocka_unit_test(test_what_is_no_number_stays_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
