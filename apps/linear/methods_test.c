/* cost: 30
 *
 * The other methods, against a serial solver: the dual one to the optimum, gradients and streams near it. */
#include "apps/linear/train/train_test.h"

static struct rows rows;
static struct pawl_linear_options options;
static struct pawl_linear_point point;
static const char *path;
static struct outcome outcome;
static double w[FEATURES_MOST + 1];

static int begin(void **state) {
  int status = open_cluster(state);
  if (status) return status;
  draw_rows(&rows, "rows", 400, 40, 1, false, 7);
  return 0;
}

static void test_the_hinge_by_its_dual(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 1};
  double best = solve_hinge(&problem, w);
  for (uint32_t workers = 1; workers <= 3; workers++) {
    begin_options(&options, &problem, &point, &path, &outcome);
    options.tolerance = 1e-3;
    must_train(&options, workers, &outcome);
    assert_string_equal(outcome.last.why, "converged");
    check_model(&problem, &outcome, 0, best, 1e-3);
  }
}

static void test_the_hinge_with_a_bias_weights_and_delay(void **state) {
  (void)state;
  struct problem problem = {
      .rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 4, .bias = true, .penalises_bias = true, .class_weights = {2, 1}};
  double best = solve_hinge(&problem, w);
  for (uint32_t tau = 0; tau <= 4; tau += 4) {
    begin_options(&options, &problem, &point, &path, &outcome);
    options.tau = tau;
    options.tolerance = 1e-3;
    must_train(&options, 3, &outcome);
    assert_string_equal(outcome.last.why, "converged");
    check_model(&problem, &outcome, 0, best, 1e-3);
  }
}

static void test_a_path_of_the_dual_method(void **state) {
  (void)state;
  static const struct pawl_linear_point points[] = {{0, 10}, {0, 1}};
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 1};
  begin_options(&options, &problem, &point, &path, &outcome);
  options.points = points;
  options.point_count = 2;
  options.tolerance = 1e-3;
  must_train(&options, 2, &outcome);
  for (size_t i = 0; i < 2; i++) {
    problem.l2 = points[i].l2;
    check_model(&problem, &outcome, i, solve_hinge(&problem, w), 1e-3);
  }
}

static size_t count_nonzeros(const double *weights) {
  size_t count = 0;
  for (size_t j = 1; j <= rows.features; j++) count += weights[j] != 0;
  return count;
}

static void test_subgradients_come_within_a_hundredth(void **state) {
  (void)state;
  static const enum pawl_linear_loss losses[] = {PAWL_LINEAR_LOGISTIC, PAWL_LINEAR_SQUARED_HINGE};
  for (size_t i = 0; i < 2; i++) {
    struct problem problem = {.rows = &rows, .loss = losses[i], .l1 = 1, .l2 = 3, .bias = true};
    double best = solve(&problem, w);
    begin_options(&options, &problem, &point, &path, &outcome);
    options.method = PAWL_LINEAR_METHOD_SUBGRADIENT;
    options.tolerance = 1e-2;
    must_train(&options, 3, &outcome);
    assert_string_equal(outcome.last.why, "converged");
    check_model(&problem, &outcome, 0, best, 1e-2);
  }
}

/* The servers take each step, with a row function. */
static void test_gradient_steps_are_those_of_a_serial_program(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 3, .l2 = 2, .bias = true};
  enum { STEPS = 7 };
  take_steps(&problem, 0.004, STEPS, w);
  for (uint32_t workers = 1; workers <= 3; workers += 2) {
    begin_options(&options, &problem, &point, &path, &outcome);
    options.method = PAWL_LINEAR_METHOD_SUBGRADIENT;
    options.rate = 0.004;
    options.rounds = STEPS;
    options.tolerance = 1e-15;
    must_train(&options, workers, &outcome);
    check_stepped(&rows, outcome.w[0], w);
    assert_int_equal(outcome.results[0].nonzeros, count_nonzeros(w));
    check_model(&problem, &outcome, 0, objective_of(&problem, w), 1e-9);
  }
}

static void test_a_rate_that_is_too_high_is_lowered(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  double best = solve(&problem, w);
  begin_options(&options, &problem, &point, &path, &outcome);
  options.method = PAWL_LINEAR_METHOD_SUBGRADIENT;
  options.rate = 50;
  must_train(&options, 2, &outcome);
  check_model(&problem, &outcome, 0, best, 1e-2);
}

/* Streams see a minibatch at a time, and end near the optimum and not at it. */
static void stream(enum pawl_linear_method method, const struct problem *problem, uint32_t tau, double rate,
                   double within) {
  double best = solve(problem, w);
  begin_options(&options, problem, &point, &path, &outcome);
  options.method = method;
  options.minibatch = 10;
  options.rounds = 40;
  options.rate = rate;
  options.tau = tau;
  must_train(&options, 2, &outcome);
  assert_string_equal(outcome.last.why, "streamed");
  assert_int_equal(outcome.last.rounds, 40);
  check_model(problem, &outcome, 0, best, within);
}

static void test_sgd_comes_near(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  stream(PAWL_LINEAR_METHOD_SGD, &problem, 0, 0, 0.05);
  problem.l1 = 0.5;
  stream(PAWL_LINEAR_METHOD_SGD, &problem, 3, 0, 0.05);
}

static void test_adagrad_comes_near(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  stream(PAWL_LINEAR_METHOD_ADAGRAD, &problem, 0, 0, 0.05);
}

static void test_ftrl_comes_near(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true};
  stream(PAWL_LINEAR_METHOD_FTRL, &problem, 0, 0, 0.05);
  stream(PAWL_LINEAR_METHOD_FTRL, &problem, 4, 0, 0.05);
}

static void test_streams_learn_the_other_losses_too(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_SQUARED_HINGE, .l2 = 1, .bias = true};
  stream(PAWL_LINEAR_METHOD_SGD, &problem, 0, 0.1, 0.1);
  problem.loss = PAWL_LINEAR_SQUARED;
  stream(PAWL_LINEAR_METHOD_SGD, &problem, 0, 0.1, 0.1);
}

static void test_a_third_label_in_the_middle_of_a_stream_ends_it(void **state) {
  (void)state;
  static struct rows odd;
  struct problem problem = {.rows = &odd, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1};
  odd = rows;
  odd.labels[odd.count - 1] = 7;
  write_rows(&odd, "odd");
  begin_options(&options, &problem, &point, &path, &outcome);
  options.method = PAWL_LINEAR_METHOD_SGD;
  options.reading.piece_bytes = 4000;
  assert_int_equal(train(&options, 1, &outcome), PAWL_INVALID);
  assert_non_null(strstr(outcome.error, "label 7"));
}

static bool stop(void *context) {
  (void)context;
  return true;
}

enum { COPIES = 200 };

/* A pass over copies of the rows that takes some seconds, and gives a tick after one. */
static void begin_long_pass(const struct problem *problem, bool (*stopping)(void *context)) {
  static char copy[160];
  static const char *paths[] = {copy};
  char command[600];
  begin_options(&options, problem, &point, &path, &outcome);
  snprintf(copy, sizeof copy, "%s/long", folder);
  snprintf(command, sizeof command, "for i in $(seq %d); do cat %s; done > %s", COPIES, rows.path, copy);
  assert_int_equal(system(command), 0);
  options.paths = paths;
  options.method = PAWL_LINEAR_METHOD_SGD;
  options.minibatch = 1;
  options.rate = 0.05;
  options.reading.piece_bytes = 20000;
  options.stopping = stopping;
}

static void check_learned(const struct problem *problem) {
  double zeros[FEATURES_MOST + 1] = {0};
  assert_int_equal(outcome.models, 1);
  assert_int_equal(outcome.results[0].nonzeros, rows.features);
  assert_true(objective_of(problem, outcome.w[0]) < 0.9 * objective_of(problem, zeros));
}

static void test_a_stream_that_is_interrupted_in_its_first_pass_keeps_what_it_learned(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  begin_long_pass(&problem, stop);
  must_train(&options, 1, &outcome);
  assert_string_equal(outcome.last.why, "interrupted");
  check_learned(&problem);
}

/* A worker that comes in the middle of the only pass, and how many workers that pass had. */
static struct hand hands[2];
static bool is_loading;
static uint32_t workers_of_pass;

/* Called by the ticks of rounds. */
static bool send_for_another(void *context) {
  (void)context;
  bool is_pass = !is_loading && !hands[1].job;
  is_loading = false;
  if (!is_pass) return false;
  hands[1].job = hands[0].job;
  assert_int_equal(pthread_create(&hands[1].thread, NULL, labour, &hands[1]), 0);
  return false;
}

static void watch_pass(void *context, const struct pawl_linear_progress *progress) {
  count_round(context, progress);
  is_loading = strcmp(progress->stage, "loading") == 0;
  if (strcmp(progress->stage, "training") == 0) workers_of_pass = progress->workers;
}

static void test_a_worker_that_comes_in_the_middle_of_a_pass_helps_with_it(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  begin_long_pass(&problem, send_for_another);
  options.job = hands[0].job = "joined";
  options.workers_most = 2;
  options.progress = watch_pass;
  assert_int_equal(pthread_create(&hands[0].thread, NULL, labour, &hands[0]), 0);
  pawl_status status = pawl_linear_train(session, &options, NULL, &outcome.last, outcome.error);
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome.error, outcome.told);
  assert_non_null(hands[1].job); /* the pass took long enough */
  for (int i = 0; i < 2; i++) {
    pthread_join(hands[i].thread, NULL);
    assert_int_equal(hands[i].outcome, PAWL_OK);
  }
  assert_int_equal(workers_of_pass, 2);
  assert_non_null(strstr(outcome.told, "moved to"));
  assert_string_equal(outcome.last.why, "streamed");
  assert_int_equal(outcome.last.rounds, 1);
  assert_int_equal(outcome.last.rows, COPIES * rows.count);
  problem.l2 = 0; /* a penalty for all copies is next to nothing for one */
  check_learned(&problem);
}

static void test_the_hinge_with_more_workers_than_rows(void **state) {
  (void)state;
  static struct rows few;
  struct problem problem = {.rows = &few, .loss = PAWL_LINEAR_HINGE, .l2 = 1, .bias = true, .penalises_bias = true};
  draw_rows(&few, "few", 3, 4, 0, false, 3);
  few.labels[0] = -1;
  few.labels[1] = few.labels[2] = 1;
  write_rows(&few, "few");
  begin_options(&options, &problem, &point, &path, &outcome);
  options.tau = 2;
  options.tolerance = 1e-3;
  must_train(&options, 5, &outcome);
  check_model(&problem, &outcome, 0, solve_hinge(&problem, w), 1e-3);
}

/* --- beginnings, and going on --------------------------------------------------------------------------- */

/* One pass in steps that are next to nothing: what it ends with is what it began with. */
static void test_gradients_and_streams_begin_with_the_model_that_they_are_given(void **state) {
  (void)state;
  static const enum pawl_linear_method methods[] = {PAWL_LINEAR_METHOD_SUBGRADIENT, PAWL_LINEAR_METHOD_SGD,
                                                    PAWL_LINEAR_METHOD_ADAGRAD};
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  double best = solve(&problem, w), weights[FEATURES_MOST];
  uint64_t ids[FEATURES_MOST];
  struct pawl_linear_model model = {.about.loss = PAWL_LINEAR_LOGISTIC,
                                    .about.labels = {-1, 1},
                                    .about.has_bias = true,
                                    .about.bias = w[0],
                                    .about.features = rows.features,
                                    .about.nonzeros = rows.features,
                                    .ids = ids,
                                    .weights = weights};
  for (size_t j = 0; j < rows.features; j++) {
    ids[j] = j + 1;
    weights[j] = w[j + 1];
  }
  for (size_t i = 0; i < 3; i++) {
    begin_options(&options, &problem, &point, &path, &outcome);
    options.method = methods[i];
    options.start = &model;
    options.rate = 1e-9;
    options.rounds = 1;
    must_train(&options, 2, &outcome);
    check_model(&problem, &outcome, 0, best, 1e-4);
  }
}

static void go_on(const struct problem *problem, enum pawl_linear_method method, const char *job, double best,
                  double within) {
  char checkpoints[160];
  snprintf(checkpoints, sizeof checkpoints, "%s/%s", folder, job);
  for (int turn = 0; turn < 2; turn++) {
    begin_options(&options, problem, &point, &path, &outcome);
    options.method = method;
    options.checkpoints = checkpoints;
    options.job = job;
    options.resume = turn == 1;
    options.rounds = turn == 0 ? 20 : 1;
    options.minibatch = 10;
    options.tolerance = 1e-9;
    must_train(&options, turn == 0 ? 2 : 3, &outcome);
  }
  assert_non_null(strstr(outcome.told, "resuming from round 20"));
  check_model(problem, &outcome, 0, best, within); /* one round from zeros would not get there */
}

static void test_other_methods_go_on_from_a_checkpoint_too(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 5};
  go_on(&problem, PAWL_LINEAR_METHOD_DUAL, "on-dual", solve_hinge(&problem, w), 1e-2);
  problem = (struct problem){.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  double best = solve(&problem, w);
  go_on(&problem, PAWL_LINEAR_METHOD_SGD, "on-sgd", best, 0.02);
  go_on(&problem, PAWL_LINEAR_METHOD_FTRL, "on-ftrl", best, 0.12);
  go_on(&problem, PAWL_LINEAR_METHOD_SUBGRADIENT, "on-gradient", best, 0.2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_hinge_by_its_dual),
      cmocka_unit_test(test_the_hinge_with_a_bias_weights_and_delay),
      cmocka_unit_test(test_a_path_of_the_dual_method),
      cmocka_unit_test(test_subgradients_come_within_a_hundredth),
      cmocka_unit_test(test_gradient_steps_are_those_of_a_serial_program),
      cmocka_unit_test(test_a_rate_that_is_too_high_is_lowered),
      cmocka_unit_test(test_sgd_comes_near),
      cmocka_unit_test(test_adagrad_comes_near),
      cmocka_unit_test(test_ftrl_comes_near),
      cmocka_unit_test(test_streams_learn_the_other_losses_too),
      cmocka_unit_test(test_a_third_label_in_the_middle_of_a_stream_ends_it),
      cmocka_unit_test(test_a_stream_that_is_interrupted_in_its_first_pass_keeps_what_it_learned),
      cmocka_unit_test(test_a_worker_that_comes_in_the_middle_of_a_pass_helps_with_it),
      cmocka_unit_test(test_the_hinge_with_more_workers_than_rows),
      cmocka_unit_test(test_gradients_and_streams_begin_with_the_model_that_they_are_given),
      cmocka_unit_test(test_other_methods_go_on_from_a_checkpoint_too),
  };
  return cmocka_run_group_tests_name("apps.linear.methods", tests, begin, close_cluster);
}
