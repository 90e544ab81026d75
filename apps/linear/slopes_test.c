/* Slopes in vectors against the plain ones of losses.h, near and far out. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/inside.h"
#include "apps/linear/losses.h"

#define NUMBER(NAME, prefix, is_regression, is_curved) PAWL_LINEAR_##NAME,
static const enum pawl_linear_loss all[] = {LINEAR_LOSSES(NUMBER)};
enum { LOSSES = sizeof all / sizeof *all };

enum { MOST = 4096 };

static float y[MOST], z[MOST], c[MOST], pairs[2 * MOST];

/* Scores from -200 to 200, denser around zero, and the far ends. */
static size_t fill(void) {
  static const float far[] = {0,     -0.0f,  1,     -1,     1e-30f,  -1e-30f,  1e-7f,   -1e-7f,  86.9f,
                              87,    87.1f,  88,    -88,    104,     -104,     1e4f,    -1e4f,   1e10f,
                              1e18f, -1e18f, 1e30f, -1e30f, FLT_MAX, -FLT_MAX, FLT_MIN, -FLT_MIN};
  const size_t extremes = sizeof far / sizeof *far;
  uint64_t random = 7;
  for (size_t i = 0; i < MOST; i++) {
    double part = (double)(linear_draw(&random) >> 11) * 0x1p-53 * 2 - 1;
    z[i] = i < 2 * extremes ? far[i / 2] : (float)(200 * part * part * part);
    y[i] = i % 2 ? 1 : -1;
    c[i] = i % 3 ? 1 : 2.5f;
  }
  return MOST;
}

static void near_to(double is, double should_be, double within, double score) {
  if (!(fabs(is - should_be) <= within * fabs(should_be) + 1e-37))
    fail_msg("%.9g instead of %.9g at the score %g", is, should_be, score);
}

static void test_slopes_are_those_of_the_plain_losses(void **state) {
  (void)state;
  size_t count = fill();
  for (size_t k = 0; k < LOSSES; k++) {
    if (!linear_loss_of(all[k])->slopes) continue;
    linear_slopes(all[k], count, y, z, c, pairs);
    for (size_t i = 0; i < count; i++) {
      double score = (double)z[i], slope = (double)c[i] * linear_loss_slope(all[k], (double)y[i], score);
      /* less than one in 10^37 is as good as nothing */
      if (all[k] == PAWL_LINEAR_LOGISTIC && score * (double)y[i] > 87) {
        assert_true(fabs((double)pairs[2 * i]) < 1e-37);
        continue;
      }
      if (fabs(slope) > FLT_MAX) { /* doubles have room where floats have none */
        assert_true(isinf(pairs[2 * i]));
        continue;
      }
      near_to((double)pairs[2 * i], slope, 1e-5, score);
    }
  }
}

/* The least curvature that losses.h promises: an eighth of that of a quadratic above the loss. */
static double least(enum pawl_linear_loss loss, double score) {
  if (linear_is_regression(loss)) return 1;
  if (loss == PAWL_LINEAR_SQUARED_HINGE) return 0.25;
  double away = fabs(score);
  return away < 1e-3 ? 0.25 / 8 : tanh(away / 2) / (2 * away) / 8;
}

static void test_curvatures_are_the_second_derivative_or_the_floor(void **state) {
  (void)state;
  size_t count = fill();
  for (size_t k = 0; k < LOSSES; k++) {
    if (!linear_loss_of(all[k])->slopes) continue;
    linear_slopes(all[k], count, y, z, c, pairs);
    for (size_t i = 0; i < count; i++) {
      double score = (double)z[i], derivative = linear_loss_curvature(all[k], (double)y[i], score);
      double expected = (double)c[i] * fmax(derivative, least(all[k], score));
      if (expected < 1e-30) expected = 0; /* too far out for floats */
      if (expected == 0)
        assert_true((double)pairs[2 * i + 1] < 1e-29);
      else
        near_to((double)pairs[2 * i + 1], expected, 1e-5, score);
      assert_true(pairs[2 * i + 1] >= 0);
    }
  }
}

/* What the floor is for: from any score, a step of slope over curvature is at most eight times one that makes
 * the loss fall. */
static void test_one_row_stepped_by_an_eighth_never_gets_worse(void **state) {
  (void)state;
  size_t count = fill();
  for (size_t k = 0; k < LOSSES; k++) {
    if (!linear_loss_of(all[k])->slopes) continue;
    linear_slopes(all[k], count, y, z, c, pairs);
    for (size_t i = 0; i < count; i++) {
      double score = (double)z[i], step = (double)pairs[2 * i] / (double)pairs[2 * i + 1] / 8;
      if (fabs(score) > 1e6 || !isfinite(step)) continue;
      double before = linear_loss_value(all[k], (double)y[i], score);
      double after = linear_loss_value(all[k], (double)y[i], score - step);
      assert_true(after <= before * (1 + 1e-6) + 1e-30);
    }
  }
}

static void test_sums_of_losses_are_those_of_the_plain_losses(void **state) {
  (void)state;
  static double scores[MOST];
  size_t filled = fill();
  for (size_t i = 0; i < filled; i++) scores[i] = fabs((double)z[i]) < 1e6 ? (double)z[i] : 0.5;
  for (size_t k = 0; k < LOSSES; k++)
    for (size_t count = 0; count < filled; count += 1 + count / 3) {
      double sum = 0;
      for (size_t i = 0; i < count; i++) sum += (double)c[i] * linear_loss_value(all[k], (double)y[i], scores[i]);
      near_to(linear_losses(all[k], count, y, scores, c), sum, 1e-6, (double)count);
    }
}

static void test_small_losses_keep_their_digits(void **state) {
  (void)state;
  const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (double score = 0; score < 80; score += 0.37) {
    double scores[8];
    for (size_t i = 0; i < 8; i++) scores[i] = score;
    near_to(linear_losses(PAWL_LINEAR_LOGISTIC, 8, ones, scores, ones), 8 * linear_log_loss(score), 1e-5, score);
  }
}

static void test_scores_without_bounds_give_losses_without(void **state) {
  (void)state;
  const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  double scores[8] = {0};
  scores[3] = -INFINITY;
  assert_true(isinf(linear_losses(PAWL_LINEAR_LOGISTIC, 8, ones, scores, ones)));
  scores[3] = 1e300;
  near_to(linear_losses(PAWL_LINEAR_LOGISTIC, 8, ones, scores, ones), 7 * log(2), 1e-6, 0);
  scores[3] = NAN;
  assert_true(isnan(linear_losses(PAWL_LINEAR_LOGISTIC, 8, ones, scores, ones)));
  const float lost[1] = {NAN}, one[1] = {1};
  float pair[2] = {0};
  linear_slopes(PAWL_LINEAR_LOGISTIC, 1, one, lost, one, pair);
  assert_true(isnan(pair[0]) || isnan(pair[1])); /* so that servers refuse it */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_slopes_are_those_of_the_plain_losses),
      cmocka_unit_test(test_curvatures_are_the_second_derivative_or_the_floor),
      cmocka_unit_test(test_one_row_stepped_by_an_eighth_never_gets_worse),
      cmocka_unit_test(test_sums_of_losses_are_those_of_the_plain_losses),
      cmocka_unit_test(test_small_losses_keep_their_digits),
      cmocka_unit_test(test_scores_without_bounds_give_losses_without),
  };
  return cmocka_run_group_tests_name("apps.linear.slopes", tests, NULL, NULL);
}
