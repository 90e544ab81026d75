/* Training: the steps of a serial reference, noise that is found, rows of any scale, hard rows, rates that are too high, and
 * the same model with any number of threads. */
#include "apps/dml/reference_test.h"
#include "apps/dml/scene_test.h"
#include "base/memory.h"

#define HISTORY 64

struct history {
  size_t count, stop_after; /* 0: no stop */
  struct pawl_metric_progress at[HISTORY];
};

static void note(void *context, const struct pawl_metric_progress *progress) {
  struct history *history = context;
  assert_true(history->count < HISTORY);
  history->at[history->count++] = *progress;
}

static bool stop_there(void *context) {
  const struct history *history = context;
  return history->count >= history->stop_after;
}

/* --- how good the metric is --------------------------------------------------------------------------------- */

static double square_by(const struct pawl_metric_model *model, const double *x) {
  double sum = 0;
  for (size_t r = 0; r < model->about.rank; r++) {
    double u = 0;
    for (size_t d = 0; d < model->about.features; d++)
      u += (double)model->weights[r * model->about.features + d] * x[d];
    sum += u * u;
  }
  return sum;
}

static void test_steps_are_those_of_the_serial_reference(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture((struct mixture){120, 5, 0.7, 1, 8});
  struct pawl_metric_options options = options_of(5);
  struct pawl_metric_result result;
  struct history history = {0};
  static struct plain plain;
  options.epochs = 3;
  options.rate = 0.1;
  options.progress = note;
  options.context = &history;
  struct pawl_metric_model *model = trained(rows, NULL, &options, &result);
  plain_points(&plain, rows, model, 1, 0.2);
  plain_pairs(&plain, 5);
  assert_int_equal(plain.similar, result.similar);
  assert_int_equal(plain.pairs, result.similar + result.dissimilar);
  assert_true(plain_error(&plain) == result.euclid_error && result.pca_error == result.euclid_error);
  (void)plain_scale(&plain);
  double first = plain_objective(&plain, 0.8, 2), step = 0.1 / (6 * plain_largest(&plain));
  assert_true(fabs(first - result.first_objective) < 1e-4 * first);
  for (uint64_t epoch = 0; epoch < 3; epoch++) {
    plain_epoch(&plain, 1, epoch, 32, 0.8, 2, step);
    double objective = plain_objective(&plain, 0.8, 2);
    print_message("objective %g, of the serial reference %g\n", history.at[epoch].objective, objective);
    assert_false(history.at[epoch].is_undone);
    assert_true(fabs(history.at[epoch].objective - objective) < 2e-3 * objective);
    assert_true(history.at[epoch].error == plain_error(&plain));
    if (result.best == epoch + 1)
      for (size_t i = 0; i + 1 < plain.paired; i++) {
        double x[PLAIN_WIDTH];
        for (size_t d = 0; d < 5; d++) x[d] = plain.x[i][d] - plain.x[i + 1][d];
        double square = plain_square(&plain, plain.x[i], plain.x[i + 1]);
        assert_true(fabs(square_by(model, x) - square) < 1e-2 * square);
      }
  }
  assert_true(result.best > 0); /* so that distances have been compared */
  pawl_metric_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
}

/* Most features are noise, which PCA prefers: the metric finds the two that tell the class. */
static void test_a_metric_finds_what_tells_the_class(void **state) {
  (void)state;
  struct mixture other = usual;
  other.seed = 4;
  struct pawl_mlr_rows *rows = make_mixture(usual), *test = make_mixture(other);
  struct pawl_metric_options options = options_of(0);
  struct pawl_metric_result result;
  struct pawl_metric_score score;
  uint32_t classes[300];
  char error[PAWL_METRIC_TEXT] = "";
  options.epochs = 60;
  struct pawl_metric_model *model = trained(rows, test, &options, &result);
  print_message("errors: %.3f of %.3f; test %.3f of %.3f\n", result.error, result.euclid_error, result.test_error,
                result.test_euclid_error);
  assert_true(result.is_better && !result.advice && result.best > 0 && result.objective < result.first_objective);
  assert_true(result.error < 0.7 * result.euclid_error && result.test_error < 0.8 * result.test_euclid_error);
  assert_int_equal(result.held, 60);
  assert_int_equal(pawl_metric_predict(model, test, 2, classes, &score, error), PAWL_OK);
  assert_true(score.judged == 300 && result.test_judged == 300);
  assert_true((double)score.wrong / 300 == result.test_error);
  pawl_metric_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
  pawl_mlr_rows_destroy(test);
}

/* The model is the epoch with the lowest error, and of those the one with the lowest objective; the objective never rises. */
static void test_the_best_epoch_is_kept(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture(usual);
  struct pawl_metric_options options = options_of(4);
  struct pawl_metric_result result;
  struct history history = {0};
  options.progress = note;
  options.context = &history;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  double least = result.pca_error, objective = result.first_objective;
  uint64_t best = 0;
  for (size_t i = 0; i < history.count; i++) {
    const struct pawl_metric_progress *is = &history.at[i];
    assert_true(is->is_undone || is->objective <= objective);
    if (is->is_undone) continue;
    objective = is->objective;
    if (is->error <= least) best = is->epoch;
    least = fmin(least, is->error);
    assert_true(is->best_error == least);
  }
  assert_true(history.count == result.epochs && result.best == best && result.error == least);
  assert_true(result.epochs == 20 || (strcmp(result.why, "no better") == 0 && result.epochs >= best + 5));
  pawl_mlr_rows_destroy(rows);
}

/* --- rows of all kinds -------------------------------------------------------------------------------------- */

static void test_the_scale_of_rows_does_not_matter(void **state) {
  (void)state;
  const double scales[] = {1e6, 1e-6, 1e30, 1e-30};
  struct pawl_mlr_rows *rows = make_mixture(usual);
  struct pawl_metric_options options = options_of(4);
  struct pawl_metric_result one, other;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &one));
  for (size_t i = 0; i < 4; i++) {
    struct mixture scaled = usual;
    scaled.scale = scales[i];
    struct pawl_mlr_rows *others = make_mixture(scaled);
    pawl_metric_model_destroy(trained(others, others, &options, &other));
    assert_true(fabs(other.euclid_error - one.euclid_error) < 0.02 && fabs(other.error - one.error) < 0.05);
    assert_true(fabs(other.first_objective - one.first_objective) < 0.01 * one.first_objective);
    pawl_mlr_rows_destroy(others);
  }
  pawl_mlr_rows_destroy(rows);
}

/* Constant features, also large ones, and features of very different size: finite models, whose figures are right. */
static void test_hard_rows_give_finite_models(void **state) {
  (void)state;
  const char *const powers[][3] = {
      {"", "1000000", ""}, {"e6", "0", "e-6"}, {"", "1e30", ""}, {"e-6", "1000000", "e-6"}};
  for (size_t f = 0; f < 4; f++) {
    char text[4000] = "";
    size_t at = 0;
    for (int i = 0; i < 40; i++)
      at += (size_t)snprintf(text + at, sizeof text - at, "%d 1:%d%s 2:%s 3:%d%s\n", i % 2, i % 2 * 5 + i % 3,
                             powers[f][0], powers[f][1], i * 7 % 11, powers[f][2]);
    struct pawl_mlr_rows *rows = rows_of_text(text);
    struct pawl_metric_options options = options_of(2);
    struct pawl_metric_result result;
    struct pawl_metric_model *model = trained(rows, rows, &options, &result);
    assert_true(isfinite(result.objective) && result.objective <= result.first_objective);
    assert_true(result.error <= result.pca_error);
    for (size_t i = 0; i < model->points.count * 2; i++) assert_true(isfinite(model->points.at[i]));
    pawl_metric_model_destroy(model);
    pawl_mlr_rows_destroy(rows);
  }
}

/* Each row is there three times: distances of 0 are no problem, and neither are equal rows of two classes. */
static void test_duplicates_are_learned(void **state) {
  (void)state;
  char text[4000] = "";
  size_t at = 0;
  for (int i = 0; i < 60; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%d 1:%d 2:%d\n", i == 7 ? 1 : i / 3 % 2,
                           i / 3 % 2 * 3 + i / 3 % 5, i / 3 * 5 % 7);
  struct pawl_mlr_rows *rows = rows_of_text(text);
  struct pawl_metric_options options = options_of(2);
  struct pawl_metric_result result;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(isfinite(result.objective) && result.error <= result.pca_error);
  pawl_mlr_rows_destroy(rows);
}

static void check_refused(const char *text, const struct pawl_metric_options *options, const char *wanted) {
  struct pawl_mlr_rows *rows = rows_of_text(text);
  struct pawl_metric_model *model = NULL;
  struct pawl_metric_result result;
  char error[PAWL_METRIC_TEXT] = "";
  assert_int_equal(pawl_metric_train(rows, NULL, options, &model, &result, error), PAWL_INVALID);
  if (!strstr(error, wanted) || model) fail_msg("%s", error);
  pawl_mlr_rows_destroy(rows);
}

static void test_rows_that_cannot_be_learned_are_refused(void **state) {
  (void)state;
  struct pawl_metric_options options = options_of(1), high = options_of(3);
  check_refused("1 1:3\n1 1:4\n1 1:5\n1 1:6\n", &options, "all rows have the same label, '1'");
  check_refused("1 1:3\n2 1:4\n", &options, "only 2 rows have a label");
  check_refused("1 1:3\n2 1:3\n1 1:3\n2 1:3\n1 1:3\n2 1:3\n", &options, "all rows are equal");
  check_refused("1 1:3\n2 1:4\n3 1:5\n4 1:6\n5 1:7\n", &options, "have the same class; give more rows");
  check_refused("1 1:3 2:1\n2 1:4\n1 1:5\n2 1:6\n", &high, "the rank 3 is above the number of features, 2");
  check_refused("1\n2\n1\n2\n", &options, "no row has a feature");
}

static void test_rows_without_a_label_are_left_out(void **state) {
  (void)state;
  const char *path = path_of("bare.csv");
  struct pawl_mlr_rows *rows = NULL;
  struct pawl_data_options reading;
  struct pawl_metric_options options = options_of(1);
  struct pawl_metric_model *model = NULL;
  struct pawl_metric_result result;
  char error[PAWL_METRIC_TEXT] = "";
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (int i = 0; i < 30; i++)
    fprintf(file, "%s,%d,%d\n", i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "", i % 3 * 4 + i % 5, i);
  fclose(file);
  pawl_data_options_init(&reading);
  reading.labels_optional = true;
  reading.format = PAWL_DATA_CSV;
  if (pawl_mlr_rows_read(&path, 1, &reading, 1, &rows, error)) fail_msg("%s", error);
  model = trained(rows, NULL, &options, &result);
  assert_int_equal(model->about.rows, 20);
  pawl_metric_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
}

/* --- rates, threads, interruptions -------------------------------------------------------------------------- */

/* A rate far too high: epochs are undone until the rate fits, and the objective never rises. */
static void test_a_rate_that_is_too_high_is_halved(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture(usual);
  struct pawl_metric_options options = options_of(4);
  struct pawl_metric_result result;
  struct history history = {0};
  options.rate = 1e5;
  options.epochs = 40;
  options.progress = note;
  options.context = &history;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(history.at[0].is_undone && history.at[1].rate == 5e4);
  assert_true(result.undone >= 5 && result.undone < result.epochs);
  assert_true(result.best > 0 && result.objective < result.first_objective);
  options.rate = 1e9;
  options.epochs = 3;
  history.count = 0;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(result.undone == 3 && result.best == 0 && result.error == result.pca_error);
  assert_true(result.is_better || strstr(result.advice, "a lower --rate"));
  pawl_mlr_rows_destroy(rows);
}

/* Rows whose class is drawn by lot: nothing can be learned that holds for other rows, and the result must not say so. */
static void test_a_metric_without_a_gain_is_not_called_better(void **state) {
  (void)state;
  char text[4000] = "";
  size_t at = 0;
  for (int i = 0; i < 60; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%d 1:%d\n", i % 2, i % 2 * 100 + i % 10);
  struct pawl_mlr_rows *rows = rows_of_text(text); /* Euclidean distance makes no error */
  struct pawl_metric_options options = options_of(1);
  struct pawl_metric_result result;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(!result.is_better && result.error == 0 && result.euclid_error == 0);
  assert_non_null(strstr(result.advice, "it makes no error on these rows"));
  pawl_mlr_rows_destroy(rows);
}

/* Classes by lot have nothing to do with the features, and the lot decides which of the errors is lowest. */
static void test_a_metric_of_noise_is_not_called_better(void **state) {
  (void)state;
  struct apps_random random = apps_random_of(3, 41, 0, 0);
  for (uint32_t i = 0; i < 12; i++) {
    char text[4000] = "";
    size_t at = 0;
    struct pawl_metric_options options = options_of(1);
    struct pawl_metric_result result;
    for (int row = 0; row < 200; row++)
      at += (size_t)snprintf(text + at, sizeof text - at, "%d 1:%d 2:%d\n", (int)apps_random_below(&random, 2),
                             (int)apps_random_below(&random, 100), (int)apps_random_below(&random, 100));
    struct pawl_mlr_rows *rows = rows_of_text(text);
    pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
    assert_false(result.is_better);
    assert_true(result.guess_error > 0.25 && result.guess_error < 0.75 && result.advice);
    pawl_mlr_rows_destroy(rows);
  }
}

static void test_any_number_of_threads_gives_the_same_model(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture(usual);
  struct pawl_metric_options options = options_of(4);
  options.threads = 1;
  struct pawl_metric_model *one = trained(rows, NULL, &options, NULL);
  for (uint32_t threads = 2; threads <= 5; threads++) {
    options.threads = threads;
    struct pawl_metric_model *other = trained(rows, NULL, &options, NULL);
    assert_same_model(one, other);
    pawl_metric_model_destroy(other);
  }
  pawl_metric_model_destroy(one);
  pawl_mlr_rows_destroy(rows);
}

static void test_a_run_that_is_stopped_keeps_the_best_model(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture(usual);
  struct pawl_metric_options options = options_of(4);
  struct pawl_metric_model *model = NULL;
  struct pawl_metric_result result;
  struct history history = {.stop_after = 0};
  char error[PAWL_METRIC_TEXT] = "";
  options.progress = note;
  options.stopping = stop_there;
  options.context = &history;
  assert_int_equal(pawl_metric_train(rows, NULL, &options, &model, &result, error), PAWL_CANCELLED);
  assert_null(model);
  history.stop_after = 2;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(result.epochs == 2 && strcmp(result.why, "interrupted") == 0);
  pawl_mlr_rows_destroy(rows);
}

/* --- the rest ----------------------------------------------------------------------------------------------- */

static void check_options(struct pawl_metric_options options, const char *wanted) {
  char error[PAWL_METRIC_TEXT] = "";
  assert_true(!pawl_metric_check(&options, error) && strstr(error, wanted));
}

static void test_options_that_make_no_sense_are_refused(void **state) {
  (void)state;
  struct pawl_metric_options is = options_of(1);
  char error[PAWL_METRIC_TEXT] = "";
  assert_true(pawl_metric_check(&is, error));
  is = options_of(1), is.k = 0, check_options(is, "k must be");
  is = options_of(1), is.neighbours = 101, check_options(is, "number of neighbours");
  is = options_of(1), is.margin = 1.1, check_options(is, "the margin");
  is = options_of(1), is.weight = 0, check_options(is, "the weight");
  is = options_of(1), is.rate = (double)NAN, check_options(is, "the rate");
  is = options_of(1), is.held_share = 0, check_options(is, "held-out");
  check_options((struct pawl_metric_options){.rank = 3}, "pawl_metric_options_init");
}

static void test_without_memory_trainings_say_so(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture((struct mixture){20, 3, 0.5, 1, 2});
  struct pawl_metric_options options = options_of(2);
  options.epochs = 2;
  options.threads = 1;
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pawl_metric_model *model = NULL;
    struct pawl_metric_result result;
    char error[PAWL_METRIC_TEXT] = "";
    pwi_memory_fail_after(n);
    pawl_status status = pawl_metric_train(rows, rows, &options, &model, &result, error);
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_true(!status || error[0]);
    pawl_metric_model_destroy(model);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!has_failed) break;
  }
  pawl_mlr_rows_destroy(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps_are_those_of_the_serial_reference),
      cmocka_unit_test(test_a_metric_finds_what_tells_the_class),
      cmocka_unit_test(test_the_best_epoch_is_kept),
      cmocka_unit_test(test_the_scale_of_rows_does_not_matter),
      cmocka_unit_test(test_hard_rows_give_finite_models),
      cmocka_unit_test(test_duplicates_are_learned),
      cmocka_unit_test(test_rows_that_cannot_be_learned_are_refused),
      cmocka_unit_test(test_rows_without_a_label_are_left_out),
      cmocka_unit_test(test_a_rate_that_is_too_high_is_halved),
      cmocka_unit_test(test_a_metric_without_a_gain_is_not_called_better),
      cmocka_unit_test(test_a_metric_of_noise_is_not_called_better),
      cmocka_unit_test(test_any_number_of_threads_gives_the_same_model),
      cmocka_unit_test(test_a_run_that_is_stopped_keeps_the_best_model),
      cmocka_unit_test(test_options_that_make_no_sense_are_refused),
      cmocka_unit_test(test_without_memory_trainings_say_so),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
