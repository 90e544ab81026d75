/* Newton training of dense rows, which begins with rounds of L-BFGS: of data that needs no more than these, and
 * of data that does.
 *
 * How good a model is, is proven without a solver. The objective is strongly convex with l2, so
 *
 *   F(w) - F* <= |F'(w)|^2 / (2 l2)          (without a bias) */
#define FEATURES_MOST 1200
#include "apps/linear/control.h"
#include "apps/linear/train/train_test.h"

static struct rows rows;
static struct pawl_linear_options options;
static struct pawl_linear_point point;
static const char *path;
static struct outcome outcome;

/* The bound above, as a part of the objective. */
static double distance_of(const struct problem *problem, const double *w) {
  double square = 0;
  static double slopes[ROWS_MOST];
  for (size_t i = 0; i < problem->rows->count; i++) {
    double z = 0;
    for (size_t j = 1; j <= problem->rows->features; j++) z += x_of(problem, i, j) * w[j];
    slopes[i] = linear_loss_slope(problem->loss, y_of(problem, i), z);
  }
  for (size_t j = 1; j <= problem->rows->features; j++) {
    double g = problem->l2 * w[j];
    for (size_t i = 0; i < problem->rows->count; i++) g += slopes[i] * x_of(problem, i, j);
    square += g * g;
  }
  return square / (2 * problem->l2) / objective_of(problem, w);
}

static double last_shown;

static void check_round(void *context, const struct pawl_linear_progress *progress) {
  count_round(context, progress);
  if (strcmp(progress->stage, "training") != 0) return;
  if (!(progress->objective <= last_shown)) fail_msg("%.9g after %.9g", progress->objective, last_shown);
  last_shown = progress->objective;
}

/* Trains with every loss, with l2 in proportion to its highest curvature. Workers send the upper triangle of a Hessian once or more if `is_curved`, and never else. */
static void check(double l2_of_curvature, double tolerance, double within, bool is_curved) {
  static const enum pawl_linear_loss losses[] = {PAWL_LINEAR_LOGISTIC, PAWL_LINEAR_SQUARED_HINGE, PAWL_LINEAR_SQUARED};
  static const double curvatures[] = {0.25, 2, 1};
  uint64_t hessian = rows.features * rows.features / 2 * sizeof(double);
  for (size_t i = 0; i < 3; i++) {
    struct problem problem = {.rows = &rows, .loss = losses[i], .l2 = l2_of_curvature * curvatures[i]};
    begin_options(&options, &problem, &point, &path, &outcome);
    options.method = PAWL_LINEAR_METHOD_NEWTON;
    options.tolerance = tolerance;
    options.reading.piece_bytes = 1 << 19;
    options.progress = check_round;
    last_shown = INFINITY;
    must_train(&options, 2, &outcome);
    assert_string_equal(outcome.last.why, "converged");
    double distance = distance_of(&problem, outcome.w[0]);
    if (getenv("SHOW"))
      print_message("loss %d: %.2g above after %llu rounds, %llu bytes\n", (int)losses[i], distance,
                    (unsigned long long)outcome.last.rounds, (unsigned long long)outcome.last.bytes_sent);
    if (!(distance <= within)) fail_msg("loss %d: up to %.2g above the optimum", (int)losses[i], distance);
    assert_int_equal(outcome.last.bytes_sent >= hessian, is_curved);
  }
}

static void test_features_of_like_size_need_no_hessian(void **state) {
  (void)state;
  draw_dense(&rows, "even", 400, 1200, 1, 3);
  check(200, 1e-3, 1e-3, false);
}

static void test_unscaled_features_get_newton_steps_in_the_end(void **state) {
  (void)state;
  draw_dense(&rows, "uneven", 400, 300, 100, 4);
  check(0.4, 1e-9, 1e-5, true);
}

/* There is nothing to take of a step at the optimum. */
static void test_a_model_that_is_the_optimum_already_is_kept(void **state) {
  (void)state;
  draw_dense(&rows, "even", 300, 200, 1, 5);
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 10};
  begin_options(&options, &problem, &point, &path, &outcome);
  options.method = PAWL_LINEAR_METHOD_NEWTON;
  options.tolerance = LINEAR_NEVER_DONE;
  options.rounds = 12; /* far beyond */
  must_train(&options, 2, &outcome);
  assert_int_equal(outcome.last.rounds, 12);
  assert_true(distance_of(&problem, outcome.w[0]) <= 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_features_of_like_size_need_no_hessian),
      cmocka_unit_test(test_unscaled_features_get_newton_steps_in_the_end),
      cmocka_unit_test(test_a_model_that_is_the_optimum_already_is_kept),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
