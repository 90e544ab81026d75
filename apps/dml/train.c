/* Training: epochs of steps on batches of pairs in random order. An epoch that raises the objective is undone, and the rate
 * is halved; so the objective never rises, whatever the rate. After each epoch the held-out rows are classified, and the
 * weights with the fewest errors are kept. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/common/blas.h"
#include "apps/common/clock.h"
#include "apps/common/guess.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/random.h"
#include "apps/common/resume.h"
#include "apps/dml/options.h"
#include "apps/dml/run.h"

#define PATIENCE 5 /* epochs without a better error, after which training ends */
enum { FOR_ORDER = 43 };

bool dml_run_is_stopping(struct dml_run *run) {
  if (!run->is_stopping && run->is.stopping) run->is_stopping = run->is.stopping(run->is.context);
  return run->is_stopping;
}

void dml_run_map(struct dml_run *run) {
  dml_weights_map(&run->weights, run->points.at, run->points.count, run->mapped.at);
}

pawl_status dml_run_measure(struct dml_run *run, const struct dml_points *all, double *error_out) {
  const struct dml_points paired = dml_points_part(all, 0, run->paired),
                          held = dml_points_part(all, run->paired, run->held);
  uint64_t wrong = 0;
  pawl_status status = dml_nearest_wrong(&paired, &held, run->is.k, run->crew, run->is.threads, &wrong);
  *error_out = (double)wrong / (double)run->held;
  return status;
}

static size_t bytes_of_weights(const struct dml_run *run) {
  return dml_weights_size(&run->weights) * sizeof *run->weights.at;
}

/* --- epochs ----------------------------------------------------------------------------------------------- */

uint64_t dml_run_steps(const struct dml_run *run) { return (run->pairs.count + run->is.batch - 1) / run->is.batch; }

size_t dml_run_size(const struct dml_run *run, uint64_t step) {
  uint64_t left = run->pairs.count - step * run->is.batch;
  return (size_t)(left < run->is.batch ? left : run->is.batch);
}

void dml_run_shuffle(struct dml_run *run, uint64_t epoch) {
  struct apps_random random = apps_random_of(run->is.seed, FOR_ORDER, epoch, 0);
  apps_shuffle(&random, run->pair_order, run->pairs.count);
}

pawl_status dml_run_step(struct dml_run *run, uint64_t step, size_t begin, size_t end) {
  const uint32_t *numbers = run->pair_order + step * run->is.batch + begin;
  const struct dml_pairs pairs =
      dml_batch_fill(&run->batch, &run->loss, &run->pairs, numbers, end - begin, &run->points, &run->weights);
  return run->target.apply(run->target.context, &pairs, run->rate * run->scale / (double)dml_run_size(run, step));
}

static pawl_status take_steps(struct dml_run *run) {
  pawl_status status = PAWL_OK;
  if (run->shared) return dml_shared_steps(run);
  dml_run_shuffle(run, run->epoch);
  for (uint64_t step = 0; !status && step < dml_run_steps(run) && !dml_run_is_stopping(run); step++)
    status = dml_run_step(run, step, 0, dml_run_size(run, step));
  return status;
}

static void undo(struct dml_run *run) {
  memcpy(run->weights.at, run->before, bytes_of_weights(run));
  run->undone++;
  run->rate /= 2;
}

/* Of equal errors a lower objective is better. */
static void keep_best(struct dml_run *run, double error) {
  struct pawl_metric_result *best = &run->result;
  if (error > best->error || (error >= best->error && run->objective >= best->objective)) return;
  best->error = error;
  best->objective = run->objective;
  best->best = run->epoch;
  run->undone_at_best = run->undone;
  memcpy(run->best, run->weights.at, bytes_of_weights(run));
}

static void tell(struct dml_run *run, struct pawl_metric_progress *progress, int64_t begun) {
  progress->epoch = run->epoch;
  progress->epochs = run->is.epochs;
  progress->unsaved = run->result.unsaved;
  progress->best_error = run->result.error;
  progress->seconds = apps_seconds_since(run->begun_ns);
  progress->pairs_per_s = (double)run->pairs.count / fmax(apps_seconds_since(begun), 1e-9);
  if (run->shared) dml_shared_note(run, progress);
  if (run->is.progress) run->is.progress(run->is.context, progress);
}

/* An epoch that the caller stops leaves the weights as they were before. */
static pawl_status run_epoch(struct dml_run *run) {
  struct pawl_metric_progress progress = {.rate = run->rate, .error = (double)NAN};
  int64_t begun = apps_now();
  memcpy(run->before, run->weights.at, bytes_of_weights(run));
  pawl_status status = take_steps(run);
  if (status || run->is_stopping) return status;
  dml_run_map(run);
  progress.objective = dml_objective(&run->loss, &run->pairs, &run->mapped);
  run->epoch++;
  progress.is_undone = !(progress.objective <= run->objective);
  if (progress.is_undone) {
    undo(run);
  } else {
    run->objective = progress.objective;
    status = dml_run_measure(run, &run->mapped, &progress.error);
    if (status) return apps_say(run->error, status, "no memory to classify the held-out rows");
    keep_best(run, progress.error);
  }
  tell(run, &progress, begun);
  return PAWL_OK;
}

/* Undone epochs do not count: they have only found the rate. */
static bool is_exhausted(const struct dml_run *run) {
  return run->epoch - run->result.best - (run->undone - run->undone_at_best) >= PATIENCE;
}

static bool is_over(const struct dml_run *run) { return run->epoch >= run->is.epochs || is_exhausted(run); }

static void save_if_due(struct dml_run *run) {
  if (!run->is.checkpoint || run->is_stopping) return;
  if (is_over(run) || run->epoch % run->is.checkpoint_every == 0)
    apps_state_note(dml_checkpoint_write(run), run->error, run->result.unsaved);
}

static pawl_status run_epochs(struct dml_run *run) {
  pawl_status status = run->is.checkpoint && !run->is.resume ? dml_checkpoint_write(run) : PAWL_OK;
  while (!status && !is_over(run) && !dml_run_is_stopping(run)) {
    status = run_epoch(run);
    if (!status) save_if_due(run);
  }
  run->result.why = is_exhausted(run) ? "no better" : run->is_stopping ? "interrupted" : "epochs";
  if (!status && run->is_stopping && run->epoch == 0)
    return apps_say(run->error, PAWL_CANCELLED, "interrupted before the first epoch was complete");
  return status;
}

/* --- test rows -------------------------------------------------------------------------------------------- */

static pawl_status read_test(struct dml_run *run, struct dml_points *to) {
  const struct pawl_metric_model *model = run->model;
  const uint32_t *labels = pawl_mlr_rows_classes(run->test);
  struct dml_reader reader;
  pawl_status status =
      dml_reader_init(&reader, run->test, &model->frame, model->ids, model->about.is_images, run->error);
  uint32_t *classes = status ? NULL : dml_model_match_labels(model, run->test);
  if (!status && !classes) status = PAWL_NO_MEMORY;
  for (size_t i = 0; !status && i < to->count; i++) {
    bool has_label = labels[i] != PAWL_MLR_NO_CLASS;
    dml_reader_get(&reader, i, to->at + i * to->width);
    to->classes[i] = has_label ? classes[labels[i]] : PAWL_MLR_NO_CLASS;
    run->result.test_judged += to->classes[i] != PAWL_MLR_NO_CLASS;
    run->result.test_unknown_labels += has_label && to->classes[i] == PAWL_MLR_NO_CLASS;
  }
  apps_free(classes);
  dml_reader_fini(&reader);
  return status;
}

static pawl_status judge_test(struct dml_run *run, const struct dml_points *points, const struct dml_points *queries,
                              double *error_out) {
  uint64_t wrong = 0;
  pawl_status status = dml_nearest_wrong(points, queries, run->is.k, run->crew, run->is.threads, &wrong);
  *error_out = run->result.test_judged ? (double)wrong / (double)run->result.test_judged : (double)NAN;
  return status;
}

/* Judges W = `weights`; `mapped` has W x of all rows afterwards. */
static pawl_status judge_weights(struct dml_run *run, const float *weights, const struct dml_points *test,
                                 struct dml_points *mapped, double *error_out) {
  memcpy(run->weights.at, weights, bytes_of_weights(run));
  memcpy(mapped->classes, test->classes, test->count * sizeof *mapped->classes);
  dml_run_map(run);
  dml_weights_map(&run->weights, test->at, test->count, mapped->at);
  return judge_test(run, &run->mapped, mapped, error_out);
}

pawl_status dml_run_test(struct dml_run *run) {
  struct pawl_metric_result *result = &run->result;
  struct pawl_mlr_rows_info info;
  struct dml_points test, mapped = {.count = 0};
  pawl_mlr_rows_info(run->test, &info);
  pawl_status status = dml_points_init(&test, (size_t)info.rows, run->points.width);
  if (!status) status = dml_points_init(&mapped, test.count, run->weights.rank);
  if (!status) status = read_test(run, &test);
  if (!status) status = judge_test(run, &run->points, &test, &result->test_euclid_error);
  if (!status) status = judge_weights(run, run->pca, &test, &mapped, &result->test_pca_error);
  if (!status) status = judge_weights(run, run->best, &test, &mapped, &result->test_error);
  dml_points_fini(&test);
  dml_points_fini(&mapped);
  return status == PAWL_NO_MEMORY ? apps_say(run->error, status, "no memory for the test rows") : status;
}

/* --- the end ---------------------------------------------------------------------------------------------- */

/* The error of the most frequent class as the answer for all held-out rows. NAN: no memory. */
static double guess(const struct dml_run *run) {
  const uint32_t *classes = run->points.classes;
  uint32_t most = 0, best = 0;
  size_t right = 0;
  for (size_t i = 0; i < run->paired; i++) most = classes[i] > most ? classes[i] : most;
  size_t *counts = apps_alloc_zero((size_t)most + 1, sizeof *counts);
  if (!counts) return (double)NAN;
  for (size_t i = 0; i < run->paired; i++) counts[classes[i]]++;
  for (uint32_t c = 1; c <= most; c++) best = counts[c] > counts[best] ? c : best;
  for (size_t i = run->paired; i < run->paired + run->held; i++) right += classes[i] == best;
  apps_free(counts);
  return 1 - (double)right / (double)run->held;
}

static bool is_no_guess(const struct dml_run *run) {
  return apps_beats_guess(run->result.error, run->result.guess_error, (double)run->held);
}

static const char *advice(const struct dml_run *run) {
  if (run->undone == run->epoch) return "a lower --rate, or more --epochs: no epoch lowered the objective";
  if (run->result.euclid_error <= 0) return "Euclidean distance: it makes no error on these rows";
  if (!is_no_guess(run)) return "more rows, or other features: classes may not depend on these";
  return "another --rank, more --neighbours, a larger --margin, or more rows";
}

static void conclude(struct dml_run *run) {
  struct pawl_metric_result *result = &run->result;
  struct pawl_metric_about *about = &run->model->about;
  result->is_better = result->error < result->euclid_error && is_no_guess(run);
  result->advice = result->is_better ? NULL : advice(run);
  result->epochs = run->epoch;
  result->undone = run->undone;
  result->held = run->held;
  result->similar = run->pairs.similar;
  result->dissimilar = run->pairs.count - run->pairs.similar;
  result->seconds = apps_seconds_since(run->begun_ns);
  result->pairs_per_s = (double)run->pairs.count * (double)(run->epoch - result->resumed) / fmax(result->seconds, 1e-9);
  result->threads = run->is.threads;
  about->epochs = result->best;
  about->objective = result->objective;
  about->error = result->error;
  about->euclid_error = result->euclid_error;
  about->pca_error = result->pca_error;
}

static pawl_status finish(struct dml_run *run) {
  run->result.test_error = run->result.test_euclid_error = run->result.test_pca_error = (double)NAN;
  pawl_status status = run->test ? dml_run_test(run) : PAWL_OK;
  if (status) return status;
  run->result.guess_error = guess(run);
  if (isnan(run->result.guess_error)) return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  memcpy(run->weights.at, run->best, bytes_of_weights(run));
  dml_run_map(run);
  conclude(run);
  run->model->weights = run->weights.at;
  run->weights.at = NULL;
  run->model->points = run->mapped;
  run->mapped = (struct dml_points){.count = 0};
  return PAWL_OK;
}

void dml_run_fini(struct dml_run *run) {
  dml_batch_fini(&run->batch);
  dml_weights_fini(&run->weights);
  dml_points_fini(&run->points);
  dml_points_fini(&run->mapped);
  apps_free(run->pairs.at);
  apps_free(run->pair_order);
  apps_free(run->order);
  apps_free(run->before);
  apps_free(run->best);
  apps_free(run->pca);
  pawl_metric_model_destroy(run->model);
  apps_crew_destroy(run->crew);
}

pawl_status dml_run_train(struct dml_run *run, struct pawl_metric_model **model_out,
                          struct pawl_metric_result *result_out) {
  (void)apps_blas_threads(1); /* the crew has threads of its own */
  if (apps_crew_create(run->is.threads, &run->crew)) return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  pawl_status status = dml_run_prepare(run);
  if (!status) status = run_epochs(run);
  if (!status) status = finish(run);
  if (!status) {
    *model_out = run->model;
    *result_out = run->result;
    run->model = NULL;
  }
  dml_run_fini(run);
  return status;
}

pawl_status pawl_metric_train(const struct pawl_mlr_rows *rows, const struct pawl_mlr_rows *test,
                              const struct pawl_metric_options *options, struct pawl_metric_model **model_out,
                              struct pawl_metric_result *result_out, char error[PAWL_METRIC_TEXT]) {
  char room[PAWL_METRIC_TEXT];
  struct dml_run run = {.rows = rows, .test = test, .error = error ? error : room, .begun_ns = apps_now()};
  run.error[0] = 0;
  if (!dml_options_resolve(options, &run.is, error)) return PAWL_INVALID;
  return dml_run_train(&run, model_out, result_out);
}
