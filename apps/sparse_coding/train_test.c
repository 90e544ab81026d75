/* Training: the objective of a serial reference, bounds, dictionaries that are found again, hard rows, and the same model however
 * it is made. */
#include "apps/common/absence_test.h"
#include "apps/sparse_coding/reference_test.h"
#include "apps/sparse_coding/scene_test.h"
#include "base/memory.h"

#define HISTORY 200

struct history {
  size_t count;
  struct pawl_sparse_progress at[HISTORY];
};

static void note(void *context, const struct pawl_sparse_progress *progress) {
  struct history *history = context;
  assert_true(history->count < HISTORY);
  history->at[history->count++] = *progress;
}

/* --- how good the dictionary is ---------------------------------------------------------------------------- */

/* The atoms with which a training begins, if no two of the rows drawn are alike. */
static void draw_first(const struct sparse_view *view, uint64_t seed, size_t atoms, double *b) {
  size_t rows = (size_t)view->rows->info.rows, features = view->features;
  struct apps_random random = apps_random_of(seed, 22, 0, 0);
  uint32_t *order = apps_alloc_zero(rows, sizeof *order);
  apps_shuffle(&random, order, rows);
  for (size_t j = 0; j < atoms; j++) {
    double square = 0, *atom = b + j * features;
    sparse_view_get(view, order[j], atom);
    for (size_t d = 0; d < features; d++) square += atom[d] * atom[d];
    for (size_t d = 0; d < features; d++) atom[d] /= sqrt(square);
  }
  apps_free(order);
}

/* The model's own atoms as the reference's first ones: one epoch of each, and the objectives. */
static void test_an_epoch_is_that_of_the_serial_reference(void **state) {
  (void)state;
  struct mixture is = {150, 8, 10, 2, 0.1, 1, 5};
  struct pawl_sparse_rows *rows = make_mixture(is);
  struct pawl_sparse_options options = options_of(12, 0.2);
  struct pawl_sparse_about about;
  struct sparse_view view;
  struct history history = {0};
  char error[PAWL_SPARSE_TEXT] = "";
  options.epochs = 1;
  options.batch = 150; /* one step, so that the order of rows does not matter */
  options.code_tolerance = 1e-6;
  options.progress = note;
  options.context = &history;
  struct pawl_sparse_model *model = trained(rows, NULL, &options, NULL);
  pawl_sparse_model_about(model, &about);
  assert_int_equal(sparse_view_init(&view, rows, model->ids, &about, error), PAWL_OK);
  double b[12 * 8];
  draw_first(&view, options.seed, 12, b);
  double reference = plain_epoch(&view, 12, 150, 0.2, 1e-6, b);
  assert_true(fabs(about.objective - reference) < 1e-4 * reference);
  for (size_t i = 0; i < 12 * 8; i++) assert_true(fabs(model->atoms[i] - b[i]) < 1e-3);
  sparse_view_fini(&view);
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
}

/* After the same epochs with the same batches the objective is at most 1 % above that of the serial reference, which sees the
 * rows in another order. */
static void test_epochs_are_as_good_as_those_of_the_serial_reference(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_mixture((struct mixture){300, 10, 14, 3, 0.1, 1, 6});
  struct pawl_sparse_options options = options_of(16, 0.2);
  struct sparse_view view;
  char error[PAWL_SPARSE_TEXT] = "";
  double b[16 * 10], reference = 0;
  options.batch = 50;
  options.epochs = 4;
  options.tolerance = 3e-4;
  struct pawl_sparse_model *model = trained(rows, NULL, &options, NULL);
  assert_int_equal(sparse_view_init(&view, rows, model->ids, &model->about, error), PAWL_OK);
  draw_first(&view, options.seed, 16, b);
  for (int epoch = 0; epoch < 4; epoch++) reference = plain_epoch(&view, 16, 50, 0.2, 1e-4, b);
  print_message("objective %g, of the serial reference %g\n", model->about.objective, reference);
  assert_true(model->about.objective <= 1.01 * reference);
  sparse_view_fini(&view);
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
}

/* Rows are sums of hidden atoms: most of these are found. */
static void test_hidden_atoms_are_found(void **state) {
  (void)state;
  struct mixture is = {1500, 12, 12, 2, 0.02, 1, 7};
  struct pawl_sparse_rows *rows = make_mixture(is);
  struct pawl_sparse_options options = options_of(12, 0.1);
  struct pawl_sparse_result result;
  double hidden[12];
  size_t found = 0;
  options.tolerance = 1e-3;
  struct pawl_sparse_model *model = trained(rows, NULL, &options, &result);
  assert_string_equal(result.why, "converged");
  for (uint32_t k = 0; k < 12; k++) {
    double best = 0;
    hidden_atom(is, k, hidden);
    for (size_t j = 0; j < 12; j++) {
      double dot = 0;
      for (size_t d = 0; d < 12; d++) dot += hidden[d] * model->atoms[j * 12 + d];
      best = fmax(best, fabs(dot));
    }
    found += best > 0.95;
  }
  assert_true(found >= 10);
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
}

/* What is reported is what a plain computation says about the model; the best epoch is kept, and the objective falls. */
static void test_the_figures_are_those_of_the_model(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_mixture(usual),
                          *test = make_mixture((struct mixture){50, 16, 20, 3, 0.05, 1, 3});
  struct pawl_sparse_options options = options_of(24, 0.15);
  struct pawl_sparse_result result;
  struct pawl_sparse_score score;
  struct history history = {0};
  char error[PAWL_SPARSE_TEXT] = "";
  options.batch = 50;
  options.progress = note;
  options.context = &history;
  struct pawl_sparse_model *model = trained(rows, test, &options, &result);
  assert_true(result.is_certain && result.gap <= options.tolerance && !result.advice);
  assert_int_equal(history.count, result.epochs);
  for (size_t i = 0; i < history.count; i++) assert_true(result.objective <= history.at[i].objective);
  assert_true(result.objective == history.at[result.best - 1].objective);
  assert_true(result.objective < 0.99 * history.at[0].objective || history.count < 3);
  double sum = 0, x[16], a[24];
  struct sparse_view view;
  assert_int_equal(sparse_view_init(&view, rows, model->ids, &model->about, error), PAWL_OK);
  for (size_t i = 0; i < rows->info.rows; i++) {
    sparse_view_get(&view, i, x);
    sum += plain_code(24, 16, model->atoms, x, 0.15, 1e-7, a);
  }
  sparse_view_fini(&view);
  assert_true(result.objective >= sum * (1 - 1e-6) && result.objective <= sum * (1 + 1.1e-4));
  assert_int_equal(pawl_sparse_encode(model, rows, 3, NULL, NULL, &score, error), PAWL_OK);
  assert_true(fabs(score.objective - sum) < 1e-5 * sum);
  assert_true(fabs(score.error - result.error) < 1e-2 * result.error);
  assert_int_equal(pawl_sparse_encode(model, test, 1, NULL, NULL, &score, error), PAWL_OK);
  assert_true(result.test_rows == 50 && fabs(score.error - result.test_error) < 1e-2 * result.test_error);
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
  pawl_sparse_rows_destroy(test);
}

static void test_a_run_that_misses_its_tolerance_is_not_certain(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_mixture(usual);
  struct pawl_sparse_options options = options_of(24, 0.15);
  struct pawl_sparse_result result;
  options.tolerance = 1e-6;
  options.code_tolerance = 1e-7;
  options.epochs = 3;
  pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));
  assert_string_equal(result.why, "epochs");
  assert_true(!result.is_certain && strstr(result.advice, "--epochs") && result.gap > 1e-6);
  pawl_sparse_rows_destroy(rows);
}

/* --- hard rows ---------------------------------------------------------------------------------------------- */

/* Rows a million times as long give the same model, with a lambda that is as much larger. */
static void test_the_scale_of_rows_does_not_matter(void **state) {
  (void)state;
  struct mixture large = usual;
  large.scale = 1e6;
  struct pawl_sparse_rows *rows = make_mixture(usual), *large_rows = make_mixture(large);
  struct pawl_sparse_options options = options_of(24, 0);
  struct pawl_sparse_result result, large_result;
  pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));
  pawl_sparse_model_destroy(trained(large_rows, NULL, &options, &large_result));
  assert_true(fabs(large_result.lambda / result.lambda - 1e6) < 10);
  assert_true(fabs(large_result.objective / result.objective - 1e12) < 1e10);
  assert_true(result.is_certain && large_result.is_certain && result.epochs == large_result.epochs);
  pawl_sparse_rows_destroy(rows);
  pawl_sparse_rows_destroy(large_rows);
}

/* Trains on a text; the result must be finite, and no atom longer than 1. */
static struct pawl_sparse_result train_on(const char *text, struct pawl_sparse_options options) {
  struct pawl_sparse_rows *rows = rows_of_text(text);
  struct pawl_sparse_result result;
  struct pawl_sparse_model *model = trained(rows, rows, &options, &result);
  assert_true(isfinite(result.objective) && isfinite(result.gap) && isfinite(result.error));
  for (size_t j = 0; j < model->about.atoms; j++) {
    double square = 0;
    for (size_t d = 0; d < model->about.features; d++)
      square += model->atoms[j * model->about.features + d] * model->atoms[j * model->about.features + d];
    assert_true(square <= 1 + 1e-9);
  }
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
  return result;
}

static void test_hard_rows_are_learned(void **state) {
  (void)state;
  struct pawl_sparse_result one = train_on("1 1:3 2:4\n", options_of(5, 1));
  assert_true(one.is_certain && one.unused == 4 && fabs(one.objective - 4.5) < 1e-9); /* a = 4, 1/2 + 4 */
  struct pawl_sparse_result few = train_on("1 1:1\n2 2:1\n3 3:1\n", options_of(50, 0.1));
  assert_true(few.is_certain && few.unused == 47 && fabs(few.objective - 3 * (0.005 + 0.09)) < 1e-9);
  train_on("1 1:7 2:1\n2 1:7 2:2\n3 1:7 2:-3\n4 1:7\n", options_of(2, 0.5));        /* a constant feature */
  train_on("1\n2 1:1 3:2\n3\n4 2:1\n5\n", options_of(3, 0.1));                      /* rows of zeros */
  train_on("1 1:2 2:1\n1 1:2 2:1\n1 1:2 2:1\n", options_of(3, 0.1));                /* equal rows */
  train_on("1 1:1e30 2:1\n1 1:1 2:3e38\n1 1:-2e38\n", options_of(2, 0));            /* near the largest floats */
  train_on("1 1:1e-30 2:1e-31\n1 1:1e-31 2:3e-30\n1 1:-2e-30\n", options_of(2, 0)); /* tiny */
  train_on("1 1:1 2:5\n2 1:2 2:2\n3 1:4 2:0.1\n", options_of(2, 1e-6));             /* nearly no penalty */
}

static void check_refused(const char *text, struct pawl_sparse_options options, const char *wanted) {
  struct pawl_sparse_rows *rows = rows_of_text(text);
  struct pawl_sparse_model *model = NULL;
  struct pawl_sparse_result result;
  char error[PAWL_SPARSE_TEXT] = "";
  assert_int_equal(pawl_sparse_train(rows, NULL, &options, &model, &result, error), PAWL_INVALID);
  if (!strstr(error, wanted)) fail_msg("%s", error);
  assert_null(model);
  pawl_sparse_rows_destroy(rows);
}

static void test_rows_that_cannot_be_learned_are_refused(void **state) {
  (void)state;
  struct pawl_sparse_options centered = options_of(2, 0.1);
  centered.center = true;
  check_refused("1 1:3 2:4\n2 1:1\n", options_of(2, 5), "lambda 5 makes every code 0");
  check_refused("1 1:1e18 2:3e17\n2 1:-2e18\n", options_of(2, 1), "lambda 1 is too small for rows as long as 2e+18");
  check_refused("1 1:3 2:3\n2 1:-1 2:-1\n", centered, "every row is 0 once its mean has been subtracted");
  check_refused("1 1:0\n2 1:0\n", options_of(2, 0.1), "every row is 0; there is nothing to learn");
  check_refused("1 #\n2 #\n", options_of(2, 0.1), "no row has a feature");
}

/* An atom that no row uses is replaced by what rows lack: two groups of rows, and first atoms mostly of the larger group. */
static void test_unused_atoms_are_replaced(void **state) {
  (void)state;
  char *text = NULL;
  size_t size, replaced = 0;
  FILE *file = open_memstream(&text, &size);
  for (int i = 0; i < 200; i++) fprintf(file, "1 1:%d 2:%d\n", 100 + i % 7, i % 3); /* nearly one direction */
  fprintf(file, "2 3:50 4:50\n");
  fclose(file);
  struct pawl_sparse_rows *rows = rows_of_text(text);
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct pawl_sparse_options options = options_of(3, 1);
    struct pawl_sparse_result result;
    struct history history = {0};
    options.seed = seed;
    options.progress = note;
    options.context = &history;
    pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));
    assert_true(result.error < 1e-3 && history.at[0].unused >= history.at[0].replaced);
    bool has_won = result.objective < history.at[0].objective - 2000; /* half the square of the last row, nearly */
    assert_true(!has_won || history.at[0].replaced > 0);
    replaced += has_won;
  }
  assert_true(replaced > 0);
  pawl_sparse_rows_destroy(rows);
  free(text);
}

/* --- the same model ----------------------------------------------------------------------------------------- */

static void test_any_number_of_threads_gives_the_same_model(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_mixture(usual);
  struct pawl_sparse_options options = options_of(24, 0.15);
  options.batch = 100;
  options.epochs = 4;
  options.tolerance = 1e-5;
  options.code_tolerance = 1e-6;
  options.center = options.unit_rows = true;
  options.threads = 1;
  struct pawl_sparse_model *model = trained(rows, NULL, &options, NULL);
  const uint32_t threads[] = {2, 3, 7};
  for (size_t i = 0; i < 3; i++) {
    options.threads = threads[i];
    struct pawl_sparse_model *again = trained(rows, NULL, &options, NULL);
    assert_same_model(model, again);
    pawl_sparse_model_destroy(again);
  }
  options.seed = 2;
  struct pawl_sparse_model *other = trained(rows, NULL, &options, NULL);
  assert_memory_not_equal(model->atoms, other->atoms, sparse_model_size(model) * sizeof *model->atoms);
  pawl_sparse_model_destroy(other);
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
}

struct stop {
  uint64_t at, asked;
};

static bool stop_there(void *context) {
  struct stop *stop = context;
  return ++stop->asked > stop->at;
}

static void test_resumed_trainings_give_the_same_model(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_mixture(usual);
  struct pawl_sparse_options options = options_of(24, 0);
  struct pawl_sparse_result result, whole_result;
  options.batch = 150;
  options.epochs = 6;
  options.tolerance = 1e-5;
  options.code_tolerance = 1e-6;
  struct pawl_sparse_model *whole = trained(rows, rows, &options, &whole_result);
  options.checkpoint = path_of("state");
  for (uint64_t at = 2; at < 26; at += 4) {
    struct stop stop = {.at = at};
    options.stopping = stop_there;
    options.context = &stop;
    options.resume = false;
    options.checkpoint_every = 1 + at % 2;
    pawl_sparse_model_destroy(trained(rows, rows, &options, &result));
    assert_string_equal(result.why, "interrupted");
    options.stopping = NULL;
    options.resume = true;
    options.threads = 3;
    struct pawl_sparse_model *resumed = trained(rows, rows, &options, &result);
    assert_same_model(whole, resumed);
    assert_true(result.test_error == whole_result.test_error && result.best == whole_result.best);
    pawl_sparse_model_destroy(resumed);
    resumed = trained(rows, rows, &options, &result); /* a training that is over */
    assert_true(result.resumed == 6 && result.objective == whole_result.objective);
    assert_same_model(whole, resumed);
    pawl_sparse_model_destroy(resumed);
  }
  pawl_sparse_model_destroy(whole);
  pawl_sparse_rows_destroy(rows);
}

/* A later version may choose otherwise. */
static void test_a_resumed_training_has_the_lambda_that_was_chosen(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_mixture(usual);
  struct pawl_sparse_options options = options_of(24, 0);
  struct pawl_sparse_model *model = NULL;
  struct pawl_sparse_result result;
  char error[PAWL_SPARSE_TEXT] = "";
  options.epochs = 2;
  options.checkpoint = path_of("chosen");
  pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));
  double wanted = result.lambda / 3, before = result.nonzeros;
  set_header(options.checkpoint, "sparse-coding-checkpoint", "lambda", json_real(wanted));
  options.resume = true;
  options.epochs = 4;
  pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(result.lambda == wanted);
  assert_true(result.best > 2 && result.nonzeros > before); /* codes are made with it */
  set_header(options.checkpoint, "sparse-coding-checkpoint", "lambda", json_real(0));
  assert_int_equal(pawl_sparse_train(rows, NULL, &options, &model, &result, error), PAWL_CORRUPT);
  pawl_sparse_rows_destroy(rows);
}

static void note_epoch(void *context, const struct pawl_sparse_progress *progress) {
  note_step(context, progress->epoch, progress->unsaved);
}

static void test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_mixture(usual);
  struct pawl_sparse_options options = options_of(24, 0);
  struct pawl_sparse_result result;
  struct absence absence = {.from = 1, .back = 3};
  begin_absence(&absence, path_of("here"));
  options.tolerance = 1e-8;
  options.code_tolerance = 1e-9;
  options.epochs = 5;
  options.checkpoint = path_of("here/state");
  options.progress = note_epoch;
  options.context = &absence;
  pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));

  assert_true(result.epochs == 5 && absence.unsaved == 2); /* of 1 and 2 */
  assert_string_equal(result.unsaved, "");
  absence.back = 0;
  pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));
  assert_non_null(strstr(result.unsaved, "here/state: No such file"));
  write_notes(path_of("notes"));
  struct pawl_sparse_model *model = NULL;
  char error[PAWL_SPARSE_TEXT] = "";
  options.checkpoint = path_of("notes");
  assert_int_equal(pawl_sparse_train(rows, NULL, &options, &model, &result, error), PAWL_EXISTS);
  assert_non_null(strstr(error, "notes is there already and is no checkpoint"));
  pawl_sparse_rows_destroy(rows);
}

static void check_not_resumed(const struct pawl_sparse_rows *rows, struct pawl_sparse_options options,
                              const char *wanted) {
  struct pawl_sparse_model *model = NULL;
  struct pawl_sparse_result result;
  char error[PAWL_SPARSE_TEXT] = "";
  options.resume = true;
  assert_int_equal(pawl_sparse_train(rows, NULL, &options, &model, &result, error), PAWL_MISMATCH);
  if (!strstr(error, wanted)) fail_msg("%s", error);
}

static void test_a_checkpoint_of_other_rows_or_options_is_refused(void **state) {
  (void)state;
  struct mixture changed = usual;
  changed.noise = 0.06;
  struct pawl_sparse_rows *rows = make_mixture(usual), *others = make_mixture(changed);
  struct pawl_sparse_options options = options_of(10, 0.15), other;
  struct pawl_sparse_result result;
  options.epochs = 2;
  options.tolerance = 1e-4;
  options.code_tolerance = 1e-5;
  options.checkpoint = path_of("refused");
  pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));
  assert_false(result.is_certain);
  check_not_resumed(others, options, "a training with other rows");
  other = options, other.lambda = 0.2;
  check_not_resumed(rows, other, "--lambda was 0.15 and is now 0.2");
  other = options, other.atoms = 11;
  check_not_resumed(rows, other, "--atoms was 10 and is now 11");
  other = options, other.center = true;
  check_not_resumed(rows, other, "--center was off and is now on");
  options.resume = true;
  options.epochs = 300; /* a run may go on for longer */
  pawl_sparse_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(result.is_certain && result.resumed == 2);
  pawl_sparse_rows_destroy(rows);
  pawl_sparse_rows_destroy(others);
}

/* Before the first step there is nothing; in the first epoch there is a dictionary that was not measured. */
static void test_a_run_that_is_stopped_early_says_what_it_has(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_mixture(usual);
  struct pawl_sparse_options options = options_of(10, 0.15);
  struct stop stop = {.at = 0};
  struct pawl_sparse_model *model = NULL;
  struct pawl_sparse_result result;
  char error[PAWL_SPARSE_TEXT] = "";
  options.stopping = stop_there;
  options.context = &stop;
  options.batch = 10;
  assert_int_equal(pawl_sparse_train(rows, NULL, &options, &model, &result, error), PAWL_CANCELLED);
  assert_null(model);
  for (uint64_t at = 1; !model; at++) { /* the encoder asks, too, if the machine is slow */
    stop = (struct stop){.at = at};
    (void)!pawl_sparse_train(rows, NULL, &options, &model, &result, error);
  }
  assert_string_equal(result.why, "interrupted");
  assert_true(!result.is_certain && isnan(result.objective) && result.epochs == 0 && result.best == 0);
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
}

/* Codes with hundreds of non-zeros take seconds each, so the coder asks in the middle of a row. */
static void test_a_row_that_takes_long_does_not_hold_up_the_end(void **state) {
  (void)state;
  const struct mixture dense = {.rows = 600, .features = 300, .noise = 1, .scale = 1, .seed = 3};
  struct pawl_sparse_rows *rows = make_mixture(dense);
  struct pawl_sparse_options options = options_of(300, 1e-3);
  struct stop stop = {.at = 3};
  struct pawl_sparse_model *model = NULL;
  struct pawl_sparse_result result;
  char error[PAWL_SPARSE_TEXT] = "";
  options.stopping = stop_there;
  options.context = &stop;
  options.batch = 600;
  assert_int_equal(pawl_sparse_train(rows, NULL, &options, &model, &result, error), PAWL_CANCELLED);
  assert_string_equal(error, "interrupted before the first step");
  pawl_sparse_rows_destroy(rows);
}

/* --- the rest ----------------------------------------------------------------------------------------------- */

static void test_options_that_make_no_sense_are_refused(void **state) {
  (void)state;
  struct pawl_sparse_options options = options_of(0, 1);
  char error[PAWL_SPARSE_TEXT] = "";
  assert_true(!pawl_sparse_check(&options, error) && strstr(error, "number of atoms"));
  options = options_of(1, (double)NAN);
  assert_true(!pawl_sparse_check(&options, error) && strstr(error, "lambda must be"));
  options = options_of(1, -1);
  assert_true(!pawl_sparse_check(&options, error) && strstr(error, "lambda must be"));
  options = options_of(1, 1), options.tolerance = 1e-4;
  assert_true(!pawl_sparse_check(&options, error) && strstr(error, "at most half of the tolerance"));
  options = options_of(1, 1), options.resume = true;
  assert_true(!pawl_sparse_check(&options, error) && strstr(error, "no checkpoint was named"));
  options = (struct pawl_sparse_options){.atoms = 3};
  assert_true(!pawl_sparse_check(&options, error) && strstr(error, "pawl_sparse_options_init"));
}

static void test_without_memory_trainings_say_so(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = rows_of_text("1 1:3 2:4\n2 1:1 3:7\n3 2:8 3:1\n4 1:2 2:1 3:1\n");
  struct pawl_sparse_options options = options_of(6, 0.1);
  options.epochs = 2;
  options.threads = 1;
  options.checkpoint = path_of("memory");
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pawl_sparse_model *model = NULL;
    struct pawl_sparse_result result;
    char error[PAWL_SPARSE_TEXT] = "";
    pwi_memory_fail_after(n);
    pawl_status status = pawl_sparse_train(rows, rows, &options, &model, &result, error);
    bool has_failed = pwi_memory_fail_cancel();
    assert_true(status == (has_failed ? PAWL_NO_MEMORY : PAWL_OK) || (has_failed && !status));
    assert_true(!status || error[0]);
    pawl_sparse_model_destroy(model);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!has_failed) break;
  }
  pawl_sparse_rows_destroy(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_epoch_is_that_of_the_serial_reference),
      cmocka_unit_test(test_epochs_are_as_good_as_those_of_the_serial_reference),
      cmocka_unit_test(test_hidden_atoms_are_found),
      cmocka_unit_test(test_the_figures_are_those_of_the_model),
      cmocka_unit_test(test_a_run_that_misses_its_tolerance_is_not_certain),
      cmocka_unit_test(test_the_scale_of_rows_does_not_matter),
      cmocka_unit_test(test_hard_rows_are_learned),
      cmocka_unit_test(test_rows_that_cannot_be_learned_are_refused),
      cmocka_unit_test(test_unused_atoms_are_replaced),
      cmocka_unit_test(test_any_number_of_threads_gives_the_same_model),
      cmocka_unit_test(test_resumed_trainings_give_the_same_model),
      cmocka_unit_test(test_a_resumed_training_has_the_lambda_that_was_chosen),
      cmocka_unit_test(test_a_checkpoint_that_cannot_be_written_does_not_end_the_training),
      cmocka_unit_test(test_a_checkpoint_of_other_rows_or_options_is_refused),
      cmocka_unit_test(test_a_run_that_is_stopped_early_says_what_it_has),
      cmocka_unit_test(test_a_row_that_takes_long_does_not_hold_up_the_end),
      cmocka_unit_test(test_options_that_make_no_sense_are_refused),
      cmocka_unit_test(test_without_memory_trainings_say_so),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
