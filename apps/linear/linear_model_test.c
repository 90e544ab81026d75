/* Linear models as a program sees them: this test includes no header of apps/linear.
 *
 * A serial solver in this file computes the least objective of a small problem. Training must come as near to
 * it as its tolerance says, and the model must predict the same after it was written and read. */
#include <math.h>
#include <pthread.h>

#include <pawl/lda.h>
#include <pawl/linear_model.h>

#include "apps/common/scene_test.h"

enum { ROWS = 60, FEATURES = 4, COLUMNS = FEATURES + 1, WORKERS = 2 };

static double x[ROWS][COLUMNS], y[ROWS]; /* x[i][0] is 1, for the bias */
static char path[256], error[PAWL_LINEAR_TEXT];
static const char *const paths[] = {path};

/* --- the problem ---------------------------------------------------------------------------------------- */

/* Labels 2 and 5. They follow from the first two features, except for every seventh row. */
static void write_problem(void) {
  uint32_t random = 1;
  snprintf(path, sizeof path, "%s/rows.svm", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (size_t i = 0; i < ROWS; i++) {
    x[i][0] = 1;
    for (size_t j = 1; j <= FEATURES; j++) {
      random = random * 1664525 + 1013904223;
      x[i][j] = (double)(random >> 24) / 64 - 2; /* exact in single precision */
    }
    y[i] = (x[i][1] - x[i][2] + 0.5 > 0) == (i % 7 != 0) ? 1 : -1;
    fprintf(file, "%d", y[i] > 0 ? 5 : 2);
    for (size_t j = 1; j <= FEATURES; j++) fprintf(file, " %zu:%.9g", j, x[i][j]);
    fputc('\n', file);
  }
  assert_int_equal(fclose(file), 0);
}

/* The objective of the logistic loss with the penalty l2, at w with the bias in w[0]; and its gradient. */
static double objective_at(const double *w, double l2, double *gradient) {
  double sum = 0;
  for (size_t j = 0; j < COLUMNS; j++) {
    double penalty = j > 0 ? l2 : 0;
    sum += penalty / 2 * w[j] * w[j];
    if (gradient) gradient[j] = penalty * w[j];
  }
  for (size_t i = 0; i < ROWS; i++) {
    double z = 0;
    for (size_t j = 0; j < COLUMNS; j++) z += w[j] * x[i][j];
    sum += log1p(exp(-y[i] * z));
    for (size_t j = 0; gradient && j < COLUMNS; j++) gradient[j] -= y[i] / (1 + exp(y[i] * z)) * x[i][j];
  }
  return sum;
}

/* The least objective, by gradient descent with a step of 1 over a bound on the curvature. */
static double solve_serially(double l2) {
  double w[COLUMNS] = {0}, gradient[COLUMNS], squares = 0;
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < COLUMNS; j++) squares += x[i][j] * x[i][j];
  for (int step = 0; step < 20000; step++) {
    objective_at(w, l2, gradient);
    for (size_t j = 0; j < COLUMNS; j++) w[j] -= gradient[j] / (squares / 4 + l2);
  }
  return objective_at(w, l2, NULL);
}

/* --- training ------------------------------------------------------------------------------------------- */

static void *work(void *job) {
  char text[PAWL_LINEAR_TEXT];
  struct pawl_session *own = open_as(pawl_session_address(base), true);
  pawl_status status = pawl_linear_work(own, job, PATIENCE, text);
  pawl_session_close(own, PATIENCE);
  return status ? "failed" : NULL;
}

static void begin(struct pawl_linear_options *options, const struct pawl_linear_point *points, size_t count) {
  pawl_linear_options_init(options);
  options->paths = paths;
  options->path_count = 1;
  options->points = points;
  options->point_count = count;
  options->workers = WORKERS;
  options->tolerance = 1e-6;
}

static struct pawl_linear_model *train(struct pawl_linear_options *options, struct pawl_linear_result *result_out) {
  static unsigned number;
  char job[32];
  struct pawl_linear_model *model = NULL;
  pthread_t threads[WORKERS];
  snprintf(job, sizeof job, "public%u", number++);
  options->job = job;
  for (size_t i = 0; i < WORKERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, job), 0);
  pawl_status status = pawl_linear_train(session, options, &model, result_out, error);
  for (size_t i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  if (status) fail_msg("%s: %s", pawl_status_text(status), error);
  return model;
}

static void weights_of(const struct pawl_linear_model *model, double *w) {
  struct pawl_linear_about about;
  pawl_linear_model_about(model, &about);
  memset(w, 0, COLUMNS * sizeof *w);
  w[0] = about.bias;
  for (size_t i = 0; i < about.nonzeros; i++) {
    assert_in_range(pawl_linear_model_ids(model)[i], 1, FEATURES);
    w[pawl_linear_model_ids(model)[i]] = pawl_linear_model_weights(model)[i];
  }
}

static void test_training_reaches_the_optimum_of_a_serial_solver(void **state) {
  (void)state;
  const struct pawl_linear_point point = {0, 0.5};
  struct pawl_linear_options options;
  struct pawl_linear_result result;
  struct pawl_linear_about about;
  double w[COLUMNS], best = solve_serially(point.l2);
  begin(&options, &point, 1);
  struct pawl_linear_model *model = train(&options, &result);
  weights_of(model, w);
  pawl_linear_model_about(model, &about);
  assert_string_equal(result.why, "converged");
  assert_true(result.is_certain && result.rows == ROWS && result.gap <= 1e-6);
  double is = objective_at(w, point.l2, NULL);
  if (!(is <= best * (1 + 1e-5) && is >= best * (1 - 1e-9))) fail_msg("%.12g instead of %.12g", is, best);
  assert_true(fabs(result.objective - is) <= 1e-6 * is && about.objective == result.objective);
  assert_true(about.labels[0] == 2 && about.labels[1] == 5 && about.l1 == 0 && about.l2 == 0.5);
  assert_true(about.loss == PAWL_LINEAR_LOGISTIC && about.has_bias && pawl_linear_width(&about) == FEATURES);
  pawl_linear_model_destroy(model);
}

static pawl_status keep_objective(void *context, size_t point, const struct pawl_linear_model *model,
                                  const struct pawl_linear_result *result) {
  assert_non_null(model);
  ((double *)context)[point] = result->objective;
  return PAWL_OK;
}

static void test_a_path_of_penalties_gives_one_model_each_and_returns_the_last(void **state) {
  (void)state;
  const struct pawl_linear_point points[] = {{0, 10}, {0, 1}};
  struct pawl_linear_options options;
  struct pawl_linear_result result;
  struct pawl_linear_about about;
  double objectives[2] = {NAN, NAN};
  begin(&options, points, 2);
  options.found = keep_objective;
  options.context = objectives;
  struct pawl_linear_model *model = train(&options, &result);
  pawl_linear_model_about(model, &about);
  assert_true(about.l2 == 1 && about.objective == objectives[1]);
  for (size_t i = 0; i < 2; i++) assert_true(fabs(objectives[i] / solve_serially(points[i].l2) - 1) <= 1e-5);
  pawl_linear_model_destroy(model);
}

static bool now(void *context) { return *(const bool *)context; }

static void stop_after_a_round(void *context, const struct pawl_linear_progress *progress) {
  if (strcmp(progress->stage, "training") == 0) *(bool *)context = true;
}

static void test_training_that_is_stopped_returns_the_model_so_far(void **state) {
  (void)state;
  const struct pawl_linear_point point = {0, 1};
  struct pawl_linear_options options;
  struct pawl_linear_result result;
  bool is_stopped = false;
  begin(&options, &point, 1);
  options.stopping = now;
  options.progress = stop_after_a_round;
  options.context = &is_stopped;
  struct pawl_linear_model *model = train(&options, &result);
  assert_non_null(model);
  assert_string_equal(result.why, "interrupted");
  assert_true(result.rounds == 1 && !result.is_certain);
  pawl_linear_model_destroy(model);
}

static void test_training_that_is_stopped_before_there_are_workers_has_no_model(void **state) {
  (void)state;
  const struct pawl_linear_point point = {0, 1};
  struct pawl_linear_options options;
  struct pawl_linear_result result;
  struct pawl_linear_model *model = (struct pawl_linear_model *)&point; /* must be overwritten */
  bool is_stopped = true;
  begin(&options, &point, 1);
  options.job = "nobody";
  options.stopping = now;
  options.context = &is_stopped;
  must(pawl_linear_train(session, &options, &model, &result, error));
  assert_null(model);
  assert_string_equal(result.why, "interrupted");
}

/* --- files and predictions ------------------------------------------------------------------------------ */

static struct pawl_batch *read_rows(void) {
  struct pawl_data *data;
  struct pawl_batch *batch;
  must(pawl_data_open(paths, 1, NULL, &data));
  must(pawl_data_read(data, 0, &batch));
  pawl_data_close(data);
  assert_int_equal(batch->rows, ROWS);
  return batch;
}

static void score(const struct pawl_linear_model *model, const struct pawl_batch *batch, double *scores) {
  struct pawl_linear_scorer *scorer;
  must(pawl_linear_scorer_create(model, &scorer));
  pawl_linear_scorer_run(scorer, batch, scores);
  pawl_linear_scorer_destroy(scorer);
}

static double objective_of(const struct pawl_linear_model *model, const struct pawl_linear_point *penalty,
                           const struct pawl_batch *batch, const double *scores) {
  struct pawl_linear_metrics *metrics;
  struct pawl_linear_figures figures;
  must(pawl_linear_metrics_create(model, penalty, &metrics));
  must(pawl_linear_metrics_add(metrics, batch, scores));
  must(pawl_linear_metrics_figures(metrics, &figures));
  pawl_linear_metrics_destroy(metrics);
  assert_true(figures.rows == ROWS && figures.unlabelled == 0 && figures.unknown == 0);
  return figures.objective;
}

static void test_a_model_that_was_written_and_read_predicts_the_same(void **state) {
  (void)state;
  const struct pawl_linear_point point = {0.3, 0.5}, other = {0, 2};
  struct pawl_linear_options options;
  struct pawl_linear_result result;
  double w[COLUMNS], scores[ROWS], again[ROWS];
  char file[300];
  begin(&options, &point, 1);
  struct pawl_linear_model *model = train(&options, &result), *read = NULL;
  struct pawl_batch *batch = read_rows();
  weights_of(model, w);
  score(model, batch, scores);
  for (size_t i = 0; i < ROWS; i++) {
    double z = 0;
    for (size_t j = 0; j < COLUMNS; j++) z += w[j] * x[i][j];
    assert_true(fabs(scores[i] - z) <= 1e-12 * (1 + fabs(z)));
  }
  assert_true(fabs(objective_of(model, NULL, batch, scores) / result.objective - 1) <= 1e-6);
  assert_true(fabs(objective_of(model, &other, batch, scores) / objective_at(w, 2, NULL) - 1) <= 1e-9);
  for (int format = PAWL_LINEAR_FORMAT_PAWL; format <= PAWL_LINEAR_FORMAT_NPY; format++) {
    snprintf(file, sizeof file, "%s/model.%d", folder, format);
    must(pawl_linear_model_write(model, file, (enum pawl_linear_format)format, error));
    must(pawl_linear_model_read(file, &read, error));
    score(read, batch, again);
    assert_memory_equal(scores, again, sizeof scores);
    pawl_linear_model_destroy(read);
  }
  assert_true(pawl_linear_probability(0) == 0.5 && pawl_linear_probability(-800) >= 0);
  pawl_batch_destroy(batch);
  pawl_linear_model_destroy(model);
}

static void test_a_file_of_another_kind_is_a_mismatch(void **state) {
  (void)state;
  const struct pawl_lda_about about = {.method = PAWL_LDA_GIBBS, .topics = 2, .words = 3, .beta = 0.01};
  const double alpha[] = {0.1, 0.1};
  struct pawl_lda_model *topics;
  struct pawl_linear_model *model = NULL;
  char file[300];
  snprintf(file, sizeof file, "%s/topics", folder);
  must(pawl_lda_model_create(&about, alpha, NULL, &topics));
  must(pawl_lda_model_write(topics, file, error));
  pawl_lda_model_destroy(topics);
  assert_int_equal(pawl_linear_model_read(file, &model, error), PAWL_MISMATCH);
  assert_non_null(strstr(error, "topic model"));
  assert_int_equal(pawl_linear_model_read(path, &model, error), PAWL_CORRUPT);
  assert_non_null(strstr(error, path));
  assert_int_equal(pawl_linear_model_read("/nowhere", &model, NULL), PAWL_NOT_FOUND);
  assert_null(model);
}

/* --- options -------------------------------------------------------------------------------------------- */

static void refuse(const struct pawl_linear_options *options, const char *words) {
  struct pawl_linear_model *model = NULL;
  struct pawl_linear_result result;
  assert_false(pawl_linear_check(options, error));
  if (!strstr(error, words)) fail_msg("'%s' is not in '%s'", words, error);
  assert_false(pawl_linear_check(options, NULL));
  error[0] = 0;
  assert_int_equal(pawl_linear_train(session, options, &model, &result, error), PAWL_INVALID);
  if (!strstr(error, words)) fail_msg("'%s' is not in '%s'", words, error);
  assert_int_equal(pawl_linear_train(session, options, &model, &result, NULL), PAWL_INVALID);
  assert_null(model);
}

static void test_bad_options_are_refused_with_a_message(void **state) {
  (void)state;
  struct pawl_linear_point point = {0, 1};
  struct pawl_linear_options options;
  begin(&options, &point, 1);
  assert_true(pawl_linear_check(&options, error));
  options.loss = (enum pawl_linear_loss)9;
  refuse(&options, "unknown loss");
  begin(&options, &point, 0);
  refuse(&options, "no penalty");
  begin(&options, &point, 1);
  point.l1 = -1;
  refuse(&options, "must not be negative");
  point.l1 = 1;
  options.loss = PAWL_LINEAR_HINGE;
  refuse(&options, "--l1");
  memset(&options, 0, sizeof options);
  refuse(&options, "pawl_linear_options_init");
}

/* A program that was built with a later header has a longer struct. */
static void test_an_option_of_a_later_header_is_refused_unless_it_is_zero(void **state) {
  (void)state;
  const struct pawl_linear_point point = {0, 1};
  struct {
    struct pawl_linear_options options;
    uint64_t later;
  } newer;
  pawl_linear_options_init_sized(&newer.options, sizeof newer);
  assert_true(newer.later == 0);
  begin(&newer.options, &point, 1);
  newer.options.struct_size = sizeof newer;
  assert_true(pawl_linear_check(&newer.options, error));
  newer.later = 1;
  assert_false(pawl_linear_check(&newer.options, error));
}

static int set_up(void **state) {
  if (open_cluster(state)) return -1;
  write_problem();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_training_reaches_the_optimum_of_a_serial_solver),
      cmocka_unit_test(test_a_path_of_penalties_gives_one_model_each_and_returns_the_last),
      cmocka_unit_test(test_training_that_is_stopped_returns_the_model_so_far),
      cmocka_unit_test(test_training_that_is_stopped_before_there_are_workers_has_no_model),
      cmocka_unit_test(test_a_model_that_was_written_and_read_predicts_the_same),
      cmocka_unit_test(test_a_file_of_another_kind_is_a_mismatch),
      cmocka_unit_test(test_bad_options_are_refused_with_a_message),
      cmocka_unit_test(test_an_option_of_a_later_header_is_refused_unless_it_is_zero),
  };
  return cmocka_run_group_tests(tests, set_up, close_cluster);
}
