/* cost: 18
 *
 * Training with --scale reaches the same objective as training on data that was divided beforehand, for every
 * method, loss and number of workers. The weights of the model are those of the undivided features. */
#include "apps/linear/scale.h"

#include "apps/linear/train/train_test.h"

static struct rows raw, scaled;
static struct pawl_linear_options options;
static struct pawl_linear_point point;
static const char *path;
static struct outcome outcome;
static double w[FEATURES_MOST + 1], by[FEATURES_MOST + 1];

/* --- one feature ---------------------------------------------------------------------------------------- */

static double scale_of(enum pawl_linear_scale scale, const double *x, size_t count, uint64_t rows) {
  struct linear_spread spread = {0};
  for (size_t i = 0; i < count; i++) {
    spread.most = fmax(spread.most, fabs(x[i]));
    spread.sum += x[i];
    spread.squares += x[i] * x[i];
  }
  return linear_scale_of(scale, &spread, rows);
}

static void test_max_is_the_largest_magnitude(void **state) {
  (void)state;
  assert_true(scale_of(PAWL_LINEAR_SCALE_MAX, (double[]){1, -8, 3}, 3, 10) == 8);
  assert_true(scale_of(PAWL_LINEAR_SCALE_MAX, (double[]){0, 0}, 2, 10) == 1);
}

static void test_a_deviation_counts_absent_values_as_zeros(void **state) {
  (void)state;
  assert_true(scale_of(PAWL_LINEAR_SCALE_DEVIATION, (double[]){4, -4}, 2, 2) == 4);
  assert_true(scale_of(PAWL_LINEAR_SCALE_DEVIATION, (double[]){4, -4}, 2, 8) == 2);
  assert_true(scale_of(PAWL_LINEAR_SCALE_DEVIATION, (double[]){2}, 1, 4) == (double)(float)sqrt(0.75));
}

static void test_a_feature_without_deviation_is_divided_by_its_value(void **state) {
  (void)state;
  double x[100];
  for (size_t i = 0; i < 100; i++) x[i] = (double)1000.1f;
  assert_true(scale_of(PAWL_LINEAR_SCALE_DEVIATION, x, 100, 100) == (double)1000.1f);
  assert_true(scale_of(PAWL_LINEAR_SCALE_DEVIATION, (double[]){0}, 1, 5) == 1);
  assert_true(scale_of(PAWL_LINEAR_SCALE_DEVIATION, (double[]){1e-44, -1e-44}, 2, 2) > 0);
}

/* In whatever order sums were added up. */
static void test_a_deviation_does_not_depend_on_the_order_of_rows(void **state) {
  (void)state;
  uint64_t random = 3;
  double x[400], there[400];
  for (int turn = 0; turn < 50; turn++) {
    for (size_t i = 0; i < 400; i++) x[i] = there[399 - i] = (double)(float)(1e3 * draw_normal(&random) + 50);
    assert_true(scale_of(PAWL_LINEAR_SCALE_DEVIATION, x, 400, 400) ==
                scale_of(PAWL_LINEAR_SCALE_DEVIATION, there, 400, 400));
  }
}

/* --- whole trainings ------------------------------------------------------------------------------------ */

/* Draws raw rows with features of sizes from 1e-3 to 1e4, and divides a copy of them by hand. The last feature
 * has the same value in every row. */
static void draw_both(enum pawl_linear_scale scale, bool is_regression) {
  draw_rows(&raw, "raw", 300, 20, 1, is_regression, 21);
  uint64_t random = 8;
  scaled = raw;
  for (size_t j = 1; j <= raw.features; j++) {
    double size = pow(10, -3 + 7 * draw_part(&random)), x[ROWS_MOST];
    for (size_t i = 0; i < raw.count; i++) {
      raw.x[i][j] = j == raw.features ? 1234 : (float)((double)raw.x[i][j] * size);
      x[i] = (double)raw.x[i][j];
    }
    by[j] = scale_of(scale, x, raw.count, raw.count);
    for (size_t i = 0; i < raw.count; i++) scaled.x[i][j] = (float)((double)raw.x[i][j] / by[j]);
  }
  write_rows(&raw, "raw");
  write_rows(&scaled, "scaled");
}

static void begin_scaled(const struct problem *problem, enum pawl_linear_scale scale, enum pawl_linear_method method) {
  begin_options(&options, problem, &point, &path, &outcome);
  path = raw.path;
  options.scale = scale;
  options.method = method;
  options.tolerance = 1e-4;
}

/* The weights of the scaled features. */
static void map_back(size_t point_of) {
  for (size_t j = 1; j <= raw.features; j++) outcome.w[point_of][j] *= by[j];
}

static void check_scaled(enum pawl_linear_loss loss, enum pawl_linear_method method, double l1, double l2) {
  for (enum pawl_linear_scale scale = PAWL_LINEAR_SCALE_MAX; scale <= PAWL_LINEAR_SCALE_DEVIATION; scale++) {
    struct problem problem = {&scaled, loss, l1, l2, true, loss == PAWL_LINEAR_HINGE, {0}};
    draw_both(scale, linear_is_regression(loss));
    double best = loss == PAWL_LINEAR_HINGE ? solve_hinge(&problem, w) : solve(&problem, w);
    begin_scaled(&problem, scale, method);
    must_train(&options, scale == PAWL_LINEAR_SCALE_MAX ? 3 : 1, &outcome);
    map_back(0);
    check_model(&problem, &outcome, 0, best, 1e-3);
  }
}

static void test_newton_steps_train_on_scaled_features(void **state) {
  (void)state;
  check_scaled(PAWL_LINEAR_LOGISTIC, PAWL_LINEAR_METHOD_NEWTON, 0, 1);
  check_scaled(PAWL_LINEAR_SQUARED, PAWL_LINEAR_METHOD_NEWTON, 0.5, 0.5);
}

static void test_block_steps_train_on_scaled_features(void **state) {
  (void)state;
  check_scaled(PAWL_LINEAR_LOGISTIC, PAWL_LINEAR_METHOD_BLOCKS, 1, 0);
  check_scaled(PAWL_LINEAR_SQUARED_HINGE, PAWL_LINEAR_METHOD_BLOCKS, 0, 1);
}

static void test_the_dual_trains_on_scaled_features(void **state) {
  (void)state;
  check_scaled(PAWL_LINEAR_HINGE, PAWL_LINEAR_METHOD_DUAL, 0, 1);
}

static void test_gradient_steps_train_on_scaled_features(void **state) {
  (void)state;
  check_scaled(PAWL_LINEAR_LOGISTIC, PAWL_LINEAR_METHOD_SUBGRADIENT, 0, 3);
}

static void test_a_path_of_penalties_is_scaled_once(void **state) {
  (void)state;
  static const struct pawl_linear_point path_of[] = {{3, 0}, {1, 0}, {0, 1}};
  draw_both(PAWL_LINEAR_SCALE_MAX, false);
  struct problem problem = {&scaled, PAWL_LINEAR_LOGISTIC, 0, 0, true, false, {0}};
  begin_scaled(&problem, PAWL_LINEAR_SCALE_MAX, PAWL_LINEAR_METHOD_BLOCKS);
  options.points = path_of;
  options.point_count = 3;
  must_train(&options, 2, &outcome);
  assert_int_equal(outcome.models, 3);
  for (size_t i = 0; i < 3; i++) {
    problem.l1 = path_of[i].l1;
    problem.l2 = path_of[i].l2;
    map_back(i);
    check_model(&problem, &outcome, i, solve(&problem, w), 1e-3);
  }
}

/* --- what a model of raw features means on the way ------------------------------------------------------ */

/* A model to start with is of raw features: begun with the best there is, nothing is left to do. */
static void test_a_model_to_start_with_is_of_raw_features(void **state) {
  (void)state;
  static uint64_t ids[FEATURES_MOST];
  static double weights[FEATURES_MOST];
  struct pawl_linear_model start = {.about.loss = PAWL_LINEAR_LOGISTIC,
                                    .about.labels = {-1, 1},
                                    .about.has_bias = true,
                                    .ids = ids,
                                    .weights = weights};
  draw_both(PAWL_LINEAR_SCALE_DEVIATION, false);
  struct problem problem = {&scaled, PAWL_LINEAR_LOGISTIC, 0, 1, true, false, {0}};
  double best = solve(&problem, w);
  start.about.bias = w[0];
  for (size_t j = 1; j <= raw.features; j++) {
    if (w[j] == 0) continue;
    ids[start.about.nonzeros] = j;
    weights[start.about.nonzeros++] = w[j] / by[j];
  }
  begin_scaled(&problem, PAWL_LINEAR_SCALE_DEVIATION, PAWL_LINEAR_METHOD_BLOCKS);
  options.start = &start;
  options.rounds = 1;
  must_train(&options, 2, &outcome);
  map_back(0);
  check_model(&problem, &outcome, 0, best, 1e-6);
}

/* Validation data is as it is in its file, and is judged by the model as it will be. */
static void test_validation_data_is_not_scaled(void **state) {
  (void)state;
  draw_both(PAWL_LINEAR_SCALE_MAX, false);
  struct problem problem = {&scaled, PAWL_LINEAR_LOGISTIC, 0, 1, true, false, {0}};
  const char *valid = raw.path;
  begin_scaled(&problem, PAWL_LINEAR_SCALE_MAX, PAWL_LINEAR_METHOD_BLOCKS);
  options.valid_paths = &valid;
  options.valid_count = 1;
  options.patience = 50;
  must_train(&options, 2, &outcome);
  double loss = 0;
  for (size_t i = 0; i < raw.count; i++) {
    double z = outcome.w[0][0];
    for (size_t j = 1; j <= raw.features; j++) z += outcome.w[0][j] * (double)raw.x[i][j];
    loss += linear_log_loss(raw.labels[i] * z);
  }
  loss /= (double)raw.count;
  if (!(fabs(outcome.last.valid_loss - loss) <= 1e-6 * loss))
    fail_msg("%.9g, and not %.9g", outcome.last.valid_loss, loss);
}

static void test_workers_agree_however_rows_are_dealt(void **state) {
  (void)state;
  double first[FEATURES_MOST + 1];
  draw_both(PAWL_LINEAR_SCALE_DEVIATION, false);
  struct problem problem = {&scaled, PAWL_LINEAR_LOGISTIC, 0, 1, true, false, {0}};
  for (uint32_t workers = 1; workers <= 4; workers++) {
    begin_scaled(&problem, PAWL_LINEAR_SCALE_DEVIATION, PAWL_LINEAR_METHOD_NEWTON);
    options.tolerance = 1e-9;
    must_train(&options, workers, &outcome);
    if (workers == 1) memcpy(first, outcome.w[0], sizeof first);
    for (size_t j = 0; j <= raw.features; j++)
      if (!(fabs(outcome.w[0][j] - first[j]) <= 1e-6 * fabs(first[j]) + 1e-12))
        fail_msg("feature %zu: %.12g, and %.12g with one worker", j, outcome.w[0][j], first[j]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_max_is_the_largest_magnitude),
      cmocka_unit_test(test_a_deviation_counts_absent_values_as_zeros),
      cmocka_unit_test(test_a_feature_without_deviation_is_divided_by_its_value),
      cmocka_unit_test(test_a_deviation_does_not_depend_on_the_order_of_rows),
      cmocka_unit_test(test_newton_steps_train_on_scaled_features),
      cmocka_unit_test(test_block_steps_train_on_scaled_features),
      cmocka_unit_test(test_the_dual_trains_on_scaled_features),
      cmocka_unit_test(test_gradient_steps_train_on_scaled_features),
      cmocka_unit_test(test_a_path_of_penalties_is_scaled_once),
      cmocka_unit_test(test_a_model_to_start_with_is_of_raw_features),
      cmocka_unit_test(test_validation_data_is_not_scaled),
      cmocka_unit_test(test_workers_agree_however_rows_are_dealt),
  };
  return cmocka_run_group_tests_name("apps.linear.scale", tests, open_cluster, close_cluster);
}
