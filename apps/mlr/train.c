/* Training: epochs, and what happens between them: weights are measured, checkpoints written. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/common/blas.h"
#include "apps/common/clock.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/random.h"
#include "apps/common/resume.h"
#include "apps/mlr/options.h"
#include "apps/mlr/run.h"

enum { MLR_FOR_ORDER = 1 }; /* purpose of random numbers */

void mlr_run_shuffle(struct mlr_run *run, uint64_t epoch) {
  struct apps_random random = apps_random_of(run->is.seed, MLR_FOR_ORDER, epoch, 0);
  apps_shuffle(&random, run->order, (size_t)run->rows->info.rows);
}

bool mlr_run_is_stopping(struct mlr_run *run) {
  if (!run->is_stopping && run->is.stopping) run->is_stopping = run->is.stopping(run->is.context);
  return run->is_stopping;
}

/* --- measuring -------------------------------------------------------------------------------------------- */

pawl_status mlr_run_diverged(struct mlr_run *run) {
  const char *advice = run->is.method == PAWL_MLR_SGD ? "; use a lower learning rate than" : "; use a higher l2 than";
  return apps_say(run->error, PAWL_DIVERGED, "the training diverged in epoch %" PRIu64 ": weights are not finite%s %g",
                  run->progress.epoch, advice, run->is.method == PAWL_MLR_SGD ? run->is.rate : run->is.l2);
}

static pawl_status no_memory(struct mlr_run *run) {
  return apps_say(run->error, PAWL_NO_MEMORY, "no memory to measure %" PRIu32 " classes", run->model->about.classes);
}

pawl_status mlr_run_measure(struct mlr_run *run) {
  struct pawl_mlr_score score;
  const struct mlr_matrix *matrix = &run->model->matrix;
  if (mlr_evaluate(matrix, &run->view, run->crew, run->is.threads, NULL, &score)) return no_memory(run);
  run->objective = score.loss * (double)score.judged + run->is.l2 / 2 * mlr_matrix_square(matrix);
  run->progress.objective = run->objective;
  run->progress.train_error = (double)score.wrong / (double)score.judged;
  return isfinite(run->objective) && mlr_model_is_finite(run->model) ? PAWL_OK : mlr_run_diverged(run);
}

static pawl_status measure_test(struct mlr_run *run) {
  struct pawl_mlr_score score;
  if (!run->test) return PAWL_OK;
  if (mlr_evaluate(&run->model->matrix, &run->test_view, run->crew, run->is.threads, NULL, &score))
    return no_memory(run);
  run->progress.test_error = score.judged ? (double)score.wrong / (double)score.judged : (double)NAN;
  run->result.test_loss = score.loss;
  run->result.test_judged = score.judged;
  run->result.test_unknown_labels = score.unknown_labels + score.unlabelled;
  return PAWL_OK;
}

static bool is_converged(const struct mlr_run *run) {
  return run->is.tolerance > 0 && run->gap <= run->is.tolerance * run->objective;
}

static pawl_status measure(struct mlr_run *run, bool is_last) {
  pawl_status status = mlr_run_measure(run);
  if (!status) status = run->method->bound(run, is_last, &run->gap);
  if (!status) status = measure_test(run);
  run->is_measured = true;
  run->progress.gap = run->objective > 0 ? run->gap / run->objective : 0;
  run->progress.seconds = apps_seconds_since(run->begun_ns);
  return status;
}

/* --- epochs ----------------------------------------------------------------------------------------------- */

static bool is_last(const struct mlr_run *run) { return run->is_stopping || run->epoch == run->is.epochs; }

static pawl_status run_epoch(struct mlr_run *run) {
  int64_t begun = apps_now();
  run->progress.epoch = run->epoch + 1;
  pawl_status status = run->method->pass(run, run->epoch);
  double seconds = apps_seconds_since(begun);
  run->result.train_s += seconds;
  if (status) return status;
  if (!run->is_stopping) {
    run->epoch++;
    run->passes++;
    run->progress.rows_per_s = (double)run->rows->info.rows / fmax(seconds, 1e-9);
  }
  status = measure(run, is_last(run));
  run->progress.train_s = run->result.train_s;
  if (!status && !run->is_stopping && run->is.progress) run->is.progress(run->is.context, &run->progress);
  bool is_over = is_last(run) || is_converged(run);
  if (!status && run->is.checkpoint && !run->is_stopping && (is_over || run->epoch % run->is.checkpoint_every == 0))
    apps_state_note(mlr_checkpoint_write(run), run->error, run->result.unsaved);
  return status;
}

/* --- before and after ------------------------------------------------------------------------------------- */

static pawl_status check_rows(struct mlr_run *run) {
  const struct pawl_mlr_rows_info *info = &run->rows->info;
  if (info->rows == 0) return apps_say(run->error, PAWL_INVALID, "there are no rows to train on");
  if (info->unlabelled > 0)
    return apps_say(run->error, PAWL_INVALID, "%" PRIu64 " rows have no label, which training needs", info->unlabelled);
  if (info->classes < 2)
    return apps_say(run->error, PAWL_INVALID, "all rows have the label '%s'; two classes at least are needed",
                    apps_names_get(&run->rows->labels, 0));
  return PAWL_OK;
}

pawl_status mlr_run_make_model(struct mlr_run *run) {
  const struct pawl_mlr_rows_info *info = &run->rows->info;
  const struct pawl_mlr_about about = {.has_bias = !run->is.no_bias,
                                       .method = run->is.method,
                                       .l2 = run->is.l2,
                                       .rows = info->rows,
                                       .seed = run->is.seed,
                                       .binary = info->binary,
                                       .unit_rows = info->unit_rows,
                                       .hash_bits = info->hash_bits,
                                       .columns = info->columns,
                                       .label_column = info->label_column};
  pawl_status status = mlr_model_create(run->rows, &about, &run->model);
  if (status)
    return apps_say(run->error, status, "no memory for the weights of %" PRIu32 " classes and %" PRIu64 " features",
                    info->classes, info->features);
  run->target = mlr_matrix_target(&run->model->matrix);
  return PAWL_OK;
}

/* How good the shares of the classes are as the prediction of all test rows, and the most frequent class. */
static pawl_status guess_test(struct mlr_run *run) {
  double rows = 0, most = 0, loss = 0;
  uint32_t classes = run->model->about.classes;
  size_t *counts = apps_alloc_zero(classes, sizeof *counts);
  if (!counts) return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  for (size_t i = 0; i < (size_t)run->test->info.rows; i++) {
    uint32_t own = mlr_view_class(&run->test_view, i);
    if (own == PAWL_MLR_NO_CLASS) continue;
    rows++;
    counts[own]++;
  }
  for (uint32_t c = 0; c < classes; c++) {
    most = fmax(most, (double)counts[c]);
    if (counts[c] > 0) loss -= (double)counts[c] / rows * log((double)counts[c] / rows);
  }
  apps_free(counts);
  run->guess = rows > 0 ? (struct apps_figures){loss, 1 - most / rows} : (struct apps_figures){NAN, NAN};
  return PAWL_OK;
}

static pawl_status make_views(struct mlr_run *run) {
  const struct pawl_mlr_model *model = run->model;
  run->view.rows = run->rows;
  run->guess = (struct apps_figures){NAN, NAN};
  if (!run->test) return PAWL_OK;
  pawl_status status = mlr_view_init(&run->test_view, run->test, model->ids, model->about.features,
                                     model->about.is_images, &model->labels, run->error);
  return status ? status : guess_test(run);
}

static pawl_status prepare(struct mlr_run *run) {
  pawl_status status = check_rows(run);
  if (!status) status = mlr_run_make_model(run);
  if (!status) status = make_views(run);
  if (status) return status;
  run->order = apps_alloc_zero((size_t)run->rows->info.rows, sizeof *run->order);
  if (!run->order || apps_crew_create(run->is.threads, &run->crew))
    return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  (void)apps_blas_threads(1); /* the crew has threads of its own */
  status = run->method->begin(run);
  if (status || !run->is.checkpoint) return status;
  return run->is.resume ? mlr_checkpoint_read(run) : mlr_checkpoint_write(run);
}

static const char *reason(const struct mlr_run *run) {
  double start = (double)run->rows->info.rows * log((double)run->model->about.classes); /* of weights 0 */
  if (is_converged(run)) return "converged";
  if (run->is_stopping && run->epoch < run->is.epochs) return "interrupted";
  bool may_diverge = run->is.method == PAWL_MLR_SGD; /* the dual of SDCA rises in every step */
  return may_diverge && run->objective > start ? "diverged" : "epochs";
}

static const char *advice(const struct pawl_mlr_options *is, const char *why) {
  if (strcmp(why, "diverged") == 0) return "a lower --rate, or --method sdca";
  return is->method == PAWL_MLR_SGD ? "more --epochs, or --method sdca" : "more --epochs, a higher --tolerance or --l2";
}

static void conclude(struct mlr_run *run) {
  struct pawl_mlr_result *result = &run->result;
  struct pawl_mlr_about *about = &run->model->about;
  const struct pawl_mlr_progress *progress = &run->progress;
  result->why = reason(run);
  result->is_certain =
      strcmp(result->why, "converged") == 0 || (strcmp(result->why, "epochs") == 0 && run->is.tolerance == 0);
  result->advice = result->is_certain ? NULL : advice(&run->is, result->why);
  result->epochs = about->epochs = run->epoch;
  result->objective = about->objective = run->objective;
  result->gap = about->gap = progress->gap;
  result->train_error = about->train_error = progress->train_error;
  result->test_error = progress->test_error;
  const struct apps_figures test = {result->test_loss, result->test_error};
  result->test_guess_error = run->guess.error;
  result->is_guessing = apps_is_guess(&test, &run->guess, (double)result->test_judged);
  result->seconds = apps_seconds_since(run->begun_ns);
  result->rows_per_s = (double)run->rows->info.rows * (double)run->passes / fmax(result->train_s, 1e-9);
  result->threads = run->is.threads;
}

static pawl_status train(struct mlr_run *run) {
  pawl_status status = PAWL_OK;
  bool is_over = false;
  while (!status && !is_over && run->epoch < run->is.epochs && !mlr_run_is_stopping(run)) {
    status = run_epoch(run);
    is_over = !status && is_converged(run);
  }
  if (!status && run->is_stopping && run->epoch == 0 && !run->is_measured)
    return apps_say(run->error, PAWL_CANCELLED, "interrupted before the first step");
  if (!status && !run->is_measured) status = measure(run, true); /* a checkpoint of the last epoch was resumed */
  if (!status) conclude(run);
  return status;
}

static void fini(struct mlr_run *run) {
  apps_crew_destroy(run->crew);
  apps_free(run->order);
  apps_free(run->squares);
  mlr_duals_fini(&run->duals);
  mlr_view_fini(&run->test_view);
  pawl_mlr_model_destroy(run->model);
}

pawl_status mlr_run_train(struct mlr_run *run, struct pawl_mlr_model **model_out, struct pawl_mlr_result *result_out) {
  run->rate_given = run->is.rate;
  run->progress = (struct pawl_mlr_progress){.unsaved = run->result.unsaved,
                                             .epochs = run->is.epochs,
                                             .test_error = (double)NAN,
                                             .gap = (double)NAN,
                                             .rate = (double)NAN};
  run->result.test_loss = (double)NAN;
  pawl_status status = prepare(run);
  if (!status) status = train(run);
  if (!status) {
    *model_out = run->model;
    *result_out = run->result;
    run->model = NULL;
  }
  fini(run);
  return status;
}

pawl_status pawl_mlr_train(const struct pawl_mlr_rows *rows, const struct pawl_mlr_rows *test,
                           const struct pawl_mlr_options *options, struct pawl_mlr_model **model_out,
                           struct pawl_mlr_result *result_out, char error[PAWL_MLR_TEXT]) {
  struct mlr_run run = {.rows = rows, .test = test, .error = error, .begun_ns = apps_now()};
  if (!mlr_options_resolve(options, &run.is, error)) return PAWL_INVALID;
  run.method = run.is.method == PAWL_MLR_SGD ? &mlr_sgd : &mlr_sdca;
  return mlr_run_train(&run, model_out, result_out);
}
