/* Trainings: the slope against finite differences, both methods against a plain solver, the bound on the distance to the
 * optimum, interruptions, checkpoints, and rows that cannot be learned. */
#include "apps/common/absence_test.h"
#include "apps/mlr/evaluate.h"
#include "apps/mlr/reference_test.h"
#include "apps/mlr/scene_test.h"
#include "base/memory.h"

static const struct blobs usual = {90, 4, 6, 1.5, 3, false};

/* --- the slope -------------------------------------------------------------------------------------------- */

static double loss_at(const struct mlr_matrix *matrix, const struct pawl_mlr_rows *rows) {
  const struct mlr_view view = {.rows = rows};
  struct pawl_mlr_score score;
  struct apps_crew *crew;
  assert_int_equal(apps_crew_create(2, &crew), PAWL_OK);
  assert_int_equal(mlr_evaluate(matrix, &view, crew, 2, NULL, &score), PAWL_OK);
  apps_crew_destroy(crew);
  return score.loss * (double)score.judged;
}

static void check_slope(bool is_dense, bool has_bias, double factor) {
  struct blobs is = usual;
  struct mlr_matrix matrix, slope;
  struct apps_random random = apps_random_of(5, 5, 5, 5);
  is.is_dense = is_dense;
  struct pawl_mlr_rows *rows = make_blobs(is);
  size_t features = (size_t)rows->info.features;
  assert_int_equal(mlr_matrix_init(&matrix, 4, features, has_bias, is_dense), PAWL_OK);
  assert_int_equal(mlr_matrix_init(&slope, 4, features, has_bias, is_dense), PAWL_OK);
  for (size_t i = 0; i < mlr_matrix_size(&matrix); i++) matrix.at[i] = normal_of(&random) / factor;
  matrix.factor = factor;
  assert_int_equal(mlr_slope(&matrix, rows, mlr_matrix_target(&slope)), PAWL_OK);
  for (size_t i = 0; i < mlr_matrix_size(&matrix); i++) {
    const double step = 1e-5;
    double at = matrix.at[i];
    matrix.at[i] = at + step / factor;
    double above = loss_at(&matrix, rows);
    matrix.at[i] = at - step / factor;
    double wanted = (above - loss_at(&matrix, rows)) / (2 * step);
    matrix.at[i] = at;
    if (fabs(slope.at[i] - wanted) > 1e-6 * (1 + fabs(wanted))) fail_msg("%zu: %g, not %g", i, slope.at[i], wanted);
  }
  struct reference reference = reference_of(rows, 0, has_bias);
  mlr_matrix_settle(&matrix);
  double *other = calloc(mlr_matrix_size(&matrix), sizeof *other);
  assert_true(fabs(reference_objective(&reference, matrix.at, other) - loss_at(&matrix, rows)) < 1e-9);
  for (size_t i = 0; i < mlr_matrix_size(&matrix); i++) assert_true(fabs(other[i] - slope.at[i]) < 1e-9);
  free(other);
  mlr_matrix_fini(&matrix);
  mlr_matrix_fini(&slope);
  pawl_mlr_rows_destroy(rows);
}

static void test_the_slope_is_that_of_finite_differences(void **state) {
  (void)state;
  check_slope(false, true, 1);
  check_slope(false, false, 1);
  check_slope(true, true, 1);
  check_slope(true, false, 0.01);
}

/* --- the optimum ------------------------------------------------------------------------------------------ */

struct watch {
  double optimum;
  uint64_t epochs;
};

/* A bound that is below the true distance would be a false certificate. */
static void check_bound(void *context, const struct pawl_mlr_progress *is) {
  struct watch *watch = context;
  watch->epochs++;
  if (isnan(is->gap)) return;
  if (!(is->gap * is->objective >= is->objective - watch->optimum - 1e-9 * watch->optimum))
    fail_msg("epoch %g: bound %g, distance %g", (double)is->epoch, is->gap * is->objective,
             is->objective - watch->optimum);
}

static void check_optimum(struct blobs is, enum pawl_mlr_method method, double l2, bool no_bias, double precision) {
  struct pawl_mlr_rows *rows = make_blobs(is);
  struct reference reference = reference_of(rows, l2, !no_bias);
  struct watch watch = {.optimum = reference_minimum(&reference, 4000)};
  struct pawl_mlr_options options = options_of(method, l2);
  struct pawl_mlr_result result;
  options.no_bias = no_bias;
  options.tolerance = precision;
  options.progress = check_bound;
  options.context = &watch;
  if (method == PAWL_MLR_SGD) options.epochs = 3000, options.batch = 8;
  struct pawl_mlr_model *model = trained(rows, NULL, &options, &result);
  assert_string_equal(result.why, "converged");
  assert_true(result.is_certain && result.gap <= precision && !result.advice);
  assert_true(watch.epochs == result.epochs && result.epochs > 0);
  double above = result.objective - watch.optimum;
  if (!(above <= precision * result.objective && above >= -1e-7 * watch.optimum))
    fail_msg("%u classes: %.12g, not %.12g", is.classes, result.objective, watch.optimum);
  assert_true(fabs(reference_objective(&reference, model->matrix.at, NULL) - result.objective) <
              1e-9 * result.objective);
  pawl_mlr_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
}

static void test_sdca_finds_the_optimum_and_its_bound_holds(void **state) {
  (void)state;
  struct blobs dense = usual, two = usual, many = {200, 70, 4, 0.5, 9, false};
  dense.is_dense = true;
  two.classes = 2;
  check_optimum(usual, PAWL_MLR_SDCA, 1, false, 1e-8);
  check_optimum(usual, PAWL_MLR_SDCA, 0.1, true, 1e-6);
  check_optimum(usual, PAWL_MLR_SDCA, 100, false, 1e-9);
  check_optimum(dense, PAWL_MLR_SDCA, 1, false, 1e-8);
  check_optimum(two, PAWL_MLR_SDCA, 2, true, 1e-8);
  check_optimum(many, PAWL_MLR_SDCA, 1, false, 1e-5); /* sparse duals */
}

static void test_sgd_comes_near_the_optimum_and_its_bound_holds(void **state) {
  (void)state;
  struct blobs dense = usual;
  dense.is_dense = true;
  check_optimum(usual, PAWL_MLR_SGD, 1, false, 0.01);
  check_optimum(dense, PAWL_MLR_SGD, 10, true, 0.01);
}

/* A softmax of two classes is a logistic regression whose penalty is half as large. */
static void test_two_classes_are_a_logistic_regression(void **state) {
  (void)state;
  struct blobs two = usual;
  two.classes = 2;
  struct pawl_mlr_rows *rows = make_blobs(two);
  struct pawl_mlr_options options = options_of(PAWL_MLR_SDCA, 2);
  struct pawl_mlr_result result;
  options.tolerance = 1e-10;
  struct pawl_mlr_model *model = trained(rows, NULL, &options, &result);
  double sum = 0;
  for (size_t d = 0; d <= rows->info.features; d++) {
    double *w = model->matrix.at + 2 * d;
    assert_true(fabs(w[0] + w[1]) < 1e-9);
    sum += 0.5 * pow(w[1] - w[0], 2); /* l2 = 1 */
  }
  for (size_t i = 0; i < rows->info.rows; i++) {
    double score = model->matrix.at[2 * rows->info.features + 1] - model->matrix.at[2 * rows->info.features];
    for (uint64_t n = rows->starts[i]; n < rows->starts[i + 1]; n++)
      score += (model->matrix.at[2 * rows->at[n] + 1] - model->matrix.at[2 * rows->at[n]]) * (double)rows->values[n];
    sum += log1p(exp(rows->classes[i] ? -score : score));
  }
  assert_true(fabs(sum - result.objective) < 1e-8 * sum);
  pawl_mlr_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
}

/* --- ends ------------------------------------------------------------------------------------------------- */

static void test_a_run_that_misses_its_tolerance_is_not_certain(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_blobs(usual);
  struct pawl_mlr_options options = options_of(PAWL_MLR_SDCA, 0.01);
  struct pawl_mlr_result result;
  options.tolerance = 1e-9;
  options.epochs = 2;
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  assert_string_equal(result.why, "epochs");
  assert_true(!result.is_certain && result.advice && result.gap > 1e-9);
  options = options_of(PAWL_MLR_SGD, 0.01);
  options.epochs = 2;
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(result.is_certain); /* no tolerance was asked for */
  options.tolerance = 1e-9;
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(!result.is_certain && result.advice);
  pawl_mlr_rows_destroy(rows);
}

static void test_a_run_that_diverges_is_no_success(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_blobs(usual);
  struct pawl_mlr_options options = options_of(PAWL_MLR_SGD, 0);
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result result;
  char error[PAWL_MLR_TEXT] = "";
  options.rate = 1e30;
  options.schedule = PAWL_MLR_CONSTANT;
  options.epochs = 300;
  pawl_status status = pawl_mlr_train(rows, NULL, &options, &model, &result, error);
  if (!status) assert_string_equal(result.why, "diverged");
  pawl_mlr_model_destroy(model);
  options.rate = 300; /* finite weights that are worse than none */
  options.epochs = 3;
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  assert_string_equal(result.why, "diverged");
  assert_true(!result.is_certain && strstr(result.advice, "--rate"));
  pawl_mlr_rows_destroy(rows);
}

static void test_values_too_large_to_square_are_reported(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = rows_of_text("a 1:3e38 2:3e38\nb 1:-3e38\nc 2:1\n");
  struct pawl_mlr_options options = options_of(PAWL_MLR_SGD, 1);
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result result;
  char error[PAWL_MLR_TEXT] = "";
  options.rate = 1e30;
  options.epochs = 50;
  pawl_status status = pawl_mlr_train(rows, NULL, &options, &model, &result, error);
  assert_true(status == PAWL_DIVERGED || (status == PAWL_OK && isfinite(result.objective)));
  if (status) assert_non_null(strstr(error, "diverged"));
  pawl_mlr_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
}

static void check_refused(const char *text, const char *wanted) {
  struct pawl_mlr_rows *rows = rows_of_text(text);
  struct pawl_mlr_options options = options_of(PAWL_MLR_SDCA, 1);
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result result;
  char error[PAWL_MLR_TEXT] = "";
  assert_int_equal(pawl_mlr_train(rows, NULL, &options, &model, &result, error), PAWL_INVALID);
  if (!strstr(error, wanted)) fail_msg("%s", error);
  assert_null(model);
  pawl_mlr_rows_destroy(rows);
}

static void test_rows_that_cannot_be_learned_are_refused(void **state) {
  (void)state;
  check_refused("cat 1:1\ncat 2:1\n", "all rows have the label 'cat'; two classes at least are needed");
}

/* Rows without features differ by nothing: the constant terms learn how often each class occurs. */
static void test_rows_without_features_have_the_shares_of_their_classes(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = rows_of_text("1\n2 #\n1 #\n1 #\n");
  struct pawl_mlr_options options = options_of(PAWL_MLR_SDCA, 0.01);
  struct pawl_mlr_score score;
  double probabilities[8];
  char error[PAWL_MLR_TEXT] = "";
  options.tolerance = 1e-6;
  struct pawl_mlr_model *model = trained(rows, NULL, &options, NULL);
  assert_int_equal(pawl_mlr_predict(model, rows, 1, NULL, probabilities, NULL, &score, error), PAWL_OK);
  assert_true(fabs(probabilities[0] - 0.75) < 5e-3);
  pawl_mlr_model_destroy(model);
  options.no_bias = true; /* nothing at all to learn */
  struct pawl_mlr_result result;
  model = trained(rows, NULL, &options, &result);
  assert_true(fabs(result.objective - 4 * log(2)) < 1e-9);
  pawl_mlr_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
}

/* --- the same model --------------------------------------------------------------------------------------- */

struct stop {
  uint64_t at, asked;
};

static bool stop_there(void *context) {
  struct stop *stop = context;
  return ++stop->asked > stop->at;
}

static void check_resumed(struct blobs is, enum pawl_mlr_method method) {
  struct pawl_mlr_rows *rows = make_blobs(is);
  struct pawl_mlr_options options = options_of(method, 0.5);
  struct pawl_mlr_result result;
  options.epochs = 7;
  if (method == PAWL_MLR_SDCA) options.tolerance = 1e-12;
  if (method == PAWL_MLR_SGD) options.batch = 16;
  options.threads = 1;
  struct pawl_mlr_model *whole = trained(rows, NULL, &options, NULL);
  options.checkpoint = path_of("state");
  for (uint64_t at = 1; at < 30; at += 3) {
    struct stop stop = {.at = at};
    options.stopping = stop_there;
    options.context = &stop;
    options.resume = false;
    options.checkpoint_every = 1 + at % 2;
    pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
    options.stopping = NULL;
    options.resume = true;
    options.threads = 3;
    struct pawl_mlr_model *resumed = trained(rows, NULL, &options, &result);
    assert_int_equal(result.epochs, 7);
    assert_same_model(whole, resumed);
    pawl_mlr_model_destroy(resumed);
    resumed = trained(rows, NULL, &options, &result); /* a training that is over */
    assert_int_equal(result.resumed, 7);
    pawl_mlr_model_destroy(resumed);
  }
  pawl_mlr_model_destroy(whole);
  pawl_mlr_rows_destroy(rows);
}

static void test_resumed_trainings_and_any_number_of_threads_give_the_same_model(void **state) {
  (void)state;
  struct blobs dense = usual, many = {140, 70, 4, 0.5, 9, false};
  dense.is_dense = true;
  check_resumed(usual, PAWL_MLR_SGD);
  check_resumed(dense, PAWL_MLR_SGD);
  check_resumed(usual, PAWL_MLR_SDCA);
  check_resumed(many, PAWL_MLR_SDCA);
}

/* A later version may choose otherwise. */
static void test_a_resumed_training_has_the_rate_that_was_chosen(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_blobs(usual);
  struct pawl_mlr_options options = options_of(PAWL_MLR_SGD, 1);
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result result;
  char error[PAWL_MLR_TEXT] = "";
  options.epochs = 3;
  options.tolerance = 0;
  options.checkpoint = path_of("chosen");
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  double wanted = result.rate / 3;
  set_header(options.checkpoint, "multiclass-checkpoint", "rate", json_real(wanted));
  options.resume = true;
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(result.rate == wanted);
  set_header(options.checkpoint, "multiclass-checkpoint", "rate", json_real(-1));
  assert_int_equal(pawl_mlr_train(rows, NULL, &options, &model, &result, error), PAWL_CORRUPT);
  pawl_mlr_rows_destroy(rows);
}

static void test_a_run_that_is_stopped_before_its_first_step_has_no_model(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_blobs(usual);
  struct pawl_mlr_options options = options_of(PAWL_MLR_SGD, 1);
  struct stop stop = {.at = 0};
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result result;
  char error[PAWL_MLR_TEXT] = "";
  options.stopping = stop_there;
  options.context = &stop;
  assert_int_equal(pawl_mlr_train(rows, NULL, &options, &model, &result, error), PAWL_CANCELLED);
  assert_null(model);
  pawl_mlr_rows_destroy(rows);
}

static void note_epoch(void *context, const struct pawl_mlr_progress *progress) {
  note_step(context, progress->epoch, progress->unsaved);
}

static void test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_blobs(usual);
  struct pawl_mlr_options options = options_of(PAWL_MLR_SGD, 1);
  struct pawl_mlr_result result;
  struct absence absence = {.from = 1, .back = 3};
  begin_absence(&absence, path_of("here"));
  options.tolerance = 0;
  options.epochs = 5;
  options.checkpoint = path_of("here/state");
  options.progress = note_epoch;
  options.context = &absence;
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));

  assert_true(result.epochs == 5 && absence.unsaved == 2); /* of 1 and 2 */
  assert_string_equal(result.unsaved, "");
  absence.back = 0;
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  assert_non_null(strstr(result.unsaved, "here/state: No such file"));
  write_notes(path_of("notes"));
  struct pawl_mlr_model *model = NULL;
  char error[PAWL_MLR_TEXT] = "";
  options.checkpoint = path_of("notes");
  assert_int_equal(pawl_mlr_train(rows, NULL, &options, &model, &result, error), PAWL_EXISTS);
  assert_non_null(strstr(error, "notes is there already and is no checkpoint"));
  pawl_mlr_rows_destroy(rows);
}

static void check_not_resumed(const struct pawl_mlr_rows *rows, struct pawl_mlr_options options, const char *wanted) {
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result result;
  char error[PAWL_MLR_TEXT] = "";
  options.resume = true;
  assert_int_equal(pawl_mlr_train(rows, NULL, &options, &model, &result, error), PAWL_MISMATCH);
  if (!strstr(error, wanted)) fail_msg("%s", error);
}

static void test_a_checkpoint_of_other_rows_or_options_is_refused(void **state) {
  (void)state;
  struct blobs changed = usual;
  changed.noise = 1.51;
  struct pawl_mlr_rows *rows = make_blobs(usual), *others = make_blobs(changed);
  struct pawl_mlr_options options = options_of(PAWL_MLR_SGD, 1), other;
  struct pawl_mlr_result result;
  options.epochs = 2;
  options.checkpoint = path_of("refused");
  pawl_mlr_model_destroy(trained(rows, NULL, &options, NULL));
  check_not_resumed(others, options, "a training with other rows"); /* the rate was chosen from the rows */
  other = options, other.l2 = 2;
  check_not_resumed(rows, other, "--l2 was 1 and is now 2");
  other = options, other.epochs = 3;
  check_not_resumed(rows, other, "--epochs was 2 and is now 3");
  other = options, other.method = PAWL_MLR_SDCA, other.epochs = 0;
  check_not_resumed(rows, other, "--method was sgd and is now sdca");
  options = options_of(PAWL_MLR_SDCA, 1);
  options.epochs = 1;
  options.tolerance = 1e-6;
  options.checkpoint = path_of("longer");
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  assert_false(result.is_certain);
  options.resume = true;
  options.epochs = 1000; /* SDCA may go on for longer */
  pawl_mlr_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(result.is_certain && result.resumed == 1);
  pawl_mlr_rows_destroy(rows);
  pawl_mlr_rows_destroy(others);
}

/* --- test rows -------------------------------------------------------------------------------------------- */

static void test_labels_and_features_that_training_has_not_seen_are_counted(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = rows_of_text("a 2:1 5:1\nb 9:1\na 2:1\nb 9:1 5:1\n");
  struct pawl_mlr_rows *test = rows_of_text("b 1:7 9:1\nzebra 2:1\na 2:1 3:1 4:1\n");
  struct pawl_mlr_options options = options_of(PAWL_MLR_SDCA, 0.1);
  struct pawl_mlr_result result;
  struct pawl_mlr_score score;
  uint32_t classes[3];
  uint64_t confusion[4];
  double probabilities[6];
  char error[PAWL_MLR_TEXT] = "";
  struct pawl_mlr_model *model = trained(rows, test, &options, &result);
  assert_int_equal(result.test_judged, 2);
  assert_int_equal(result.test_unknown_labels, 1);
  assert_true(result.test_error == 0);
  assert_int_equal(pawl_mlr_predict(model, test, 2, classes, probabilities, confusion, &score, error), PAWL_OK);
  assert_int_equal(score.unknown_labels, 1);
  assert_int_equal(score.unknown_values, 3);
  assert_int_equal(score.judged, 2);
  assert_true(classes[0] == 1 && classes[1] == 0 && classes[2] == 0);
  assert_true(confusion[0] == 1 && confusion[3] == 1 && confusion[1] == 0 && confusion[2] == 0);
  for (int i = 0; i < 3; i++) assert_true(fabs(probabilities[2 * i] + probabilities[2 * i + 1] - 1) < 1e-12);
  pawl_mlr_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
  pawl_mlr_rows_destroy(test);
}

static void test_options_that_contradict_each_other_are_refused(void **state) {
  (void)state;
  struct pawl_mlr_options options = options_of(PAWL_MLR_SDCA, 0);
  char error[PAWL_MLR_TEXT] = "";
  assert_true(!pawl_mlr_check(&options, error) && strstr(error, "l2 must be at least"));
  options = options_of(PAWL_MLR_SDCA, 1), options.rate = 1;
  assert_true(!pawl_mlr_check(&options, error) && strstr(error, "sdca has no learning rate"));
  options = options_of(PAWL_MLR_SGD, 0), options.tolerance = 0.1;
  assert_true(!pawl_mlr_check(&options, error) && strstr(error, "without a penalty"));
  options = options_of(PAWL_MLR_SGD, (double)NAN);
  assert_true(!pawl_mlr_check(&options, error) && strstr(error, "l2 must be"));
  options = options_of(PAWL_MLR_SGD, 1), options.resume = true;
  assert_true(!pawl_mlr_check(&options, error) && strstr(error, "no checkpoint was named"));
  options = (struct pawl_mlr_options){.method = PAWL_MLR_SGD};
  assert_true(!pawl_mlr_check(&options, error) && strstr(error, "pawl_mlr_options_init"));
}

static void check_memory(enum pawl_mlr_method method, bool is_dense) {
  struct blobs is = {40, 3, 3, 1, 1, is_dense};
  struct pawl_mlr_rows *rows = make_blobs(is);
  struct pawl_mlr_options options = options_of(method, 1);
  options.epochs = 2;
  options.threads = 1;
  options.checkpoint = path_of("memory");
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pawl_mlr_model *model = NULL;
    struct pawl_mlr_result result;
    char error[PAWL_MLR_TEXT] = "";
    pwi_memory_fail_after(n);
    pawl_status status = pawl_mlr_train(rows, rows, &options, &model, &result, error);
    bool has_failed = pwi_memory_fail_cancel();
    assert_true(status == (has_failed ? PAWL_NO_MEMORY : PAWL_OK) || (has_failed && !status));
    assert_true(!status || error[0]);
    pawl_mlr_model_destroy(model);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!has_failed) break;
  }
  pawl_mlr_rows_destroy(rows);
}

static void test_without_memory_trainings_say_so(void **state) {
  (void)state;
  check_memory(PAWL_MLR_SGD, true);
  check_memory(PAWL_MLR_SDCA, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_slope_is_that_of_finite_differences),
      cmocka_unit_test(test_sdca_finds_the_optimum_and_its_bound_holds),
      cmocka_unit_test(test_sgd_comes_near_the_optimum_and_its_bound_holds),
      cmocka_unit_test(test_two_classes_are_a_logistic_regression),
      cmocka_unit_test(test_a_run_that_misses_its_tolerance_is_not_certain),
      cmocka_unit_test(test_a_run_that_diverges_is_no_success),
      cmocka_unit_test(test_values_too_large_to_square_are_reported),
      cmocka_unit_test(test_rows_that_cannot_be_learned_are_refused),
      cmocka_unit_test(test_rows_without_features_have_the_shares_of_their_classes),
      cmocka_unit_test(test_resumed_trainings_and_any_number_of_threads_give_the_same_model),
      cmocka_unit_test(test_a_resumed_training_has_the_rate_that_was_chosen),
      cmocka_unit_test(test_a_run_that_is_stopped_before_its_first_step_has_no_model),
      cmocka_unit_test(test_a_checkpoint_that_cannot_be_written_does_not_end_the_training),
      cmocka_unit_test(test_a_checkpoint_of_other_rows_or_options_is_refused),
      cmocka_unit_test(test_labels_and_features_that_training_has_not_seen_are_counted),
      cmocka_unit_test(test_options_that_contradict_each_other_are_refused),
      cmocka_unit_test(test_without_memory_trainings_say_so),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
