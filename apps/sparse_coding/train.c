/* Training: epochs of steps, and what happens between them. An epoch is
 *
 *   1. steps on batches of rows in random order: codes, pairs to the target, then the dictionary from the sums;
 *   2. the measurement: codes of all rows with the dictionary as it now is. It gives the objective and the gap, and fresh
 *      sums, so that no old code weighs in the next epoch.
 *
 * Where steps no longer lower the objective by enough, batches grow. When a batch has all rows, an epoch is a step from the
 * sums of the last measurement: then dictionary and codes are minimised in turn, and the objective never rises.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/common/clock.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/random.h"
#include "apps/common/resume.h"
#include "apps/sparse_coding/options.h"
#include "apps/sparse_coding/run.h"

#define ROUNDS 4           /* of block coordinate descent after a measurement */
#define LITTLE 0.1         /* an epoch that wins less than this share of the gap makes batches grow */
#define GROWTH 4           /* times */
#define DEFAULT_LAMBDA 1.2 /* divided by sqrt(features), times the mean length of the rows */
#define DEFAULT_MOST 0.25  /* times the mean length, for few features */
#define LEAST_LAMBDA                                                                                                   \
  1e-9 /* times the length of the longest row: below it the objective is lost in the rounding of squares */

static size_t rows_of(const struct sparse_run *run) { return (size_t)run->rows->info.rows; }

static bool is_stopping(void *context) {
  struct sparse_run *run = context;
  if (!run->is_stopping && run->is.stopping) run->is_stopping = run->is.stopping(run->is.context);
  return run->is_stopping;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

uint64_t sparse_run_steps(const struct sparse_run *run) { return (rows_of(run) + run->batch - 1) / run->batch; }

size_t sparse_run_size(const struct sparse_run *run, uint64_t step) {
  uint64_t left = rows_of(run) - step * run->batch;
  return (size_t)(left < run->batch ? left : run->batch);
}

void sparse_run_shuffle(struct sparse_run *run, uint64_t epoch) {
  struct apps_random random = apps_random_of(run->is.seed, SPARSE_FOR_ORDER, epoch, 0);
  apps_shuffle(&random, run->order, rows_of(run));
}

/* In the first epoch the sums grow; later ones begin with those of all rows, which shrink to make room for new ones. */
double sparse_run_keep(const struct sparse_run *run, uint64_t epoch, uint64_t step) {
  return epoch > 0 ? 1 - (double)sparse_run_size(run, step) / (double)rows_of(run) : 1;
}

pawl_status sparse_run_code(struct sparse_run *run, uint64_t step, size_t begin, size_t end, double keep) {
  size_t chunk = run->encoder.chunk, first = (size_t)(step * run->batch);
  pawl_status status = PAWL_OK;
  sparse_dictionary_refresh(&run->dictionary);
  for (size_t at = begin; !status && at < end; at += chunk) {
    status = sparse_encoder_run(&run->encoder, &run->view, run->order, first + at, end - at < chunk ? end - at : chunk);
    const struct sparse_pairs pairs = sparse_encoder_pairs(&run->encoder);
    if (!status) status = run->target.apply(run->target.context, &pairs, at == begin ? keep : 1);
  }
  return status;
}

static pawl_status learn(struct sparse_run *run, uint64_t step) {
  size_t count = sparse_run_size(run, step);
  pawl_status status = sparse_run_code(run, step, 0, count, sparse_run_keep(run, run->epoch, step));
  if (status) return status;
  sparse_dictionary_step(&run->dictionary, &run->sums, run->scratch);
  run->coded += count;
  return PAWL_OK;
}

static pawl_status take_steps(struct sparse_run *run) {
  pawl_status status = PAWL_OK;
  for (int i = 0; run->epoch > 0 && i < ROUNDS; i++) sparse_dictionary_step(&run->dictionary, &run->sums, run->scratch);
  if (run->epoch > 0 && run->batch >= rows_of(run)) return PAWL_OK;
  if (run->shared) return sparse_shared_steps(run);
  sparse_run_shuffle(run, run->epoch);
  for (uint64_t step = 0; !status && step < sparse_run_steps(run) && !is_stopping(run); step++)
    status = learn(run, step);
  return status;
}

/* --- measuring -------------------------------------------------------------------------------------------- */

/* Says why rows could not be coded; PAWL_CANCELLED needs no sentence. */
static pawl_status explain(const struct sparse_run *run, pawl_status status) {
  return status == PAWL_NO_MEMORY ? apps_say(run->error, status, "no memory to measure the dictionary") : status;
}

static pawl_status measure_test(struct sparse_run *run) {
  struct pawl_sparse_score score;
  const struct sparse_outputs outputs = {.sums = NULL};
  if (!run->test) return PAWL_OK;
  pawl_status status = sparse_encoder_all(&run->encoder, &run->test_view, &outputs, &score);
  if (status) return explain(run, status);
  run->last.test_error = score.error;
  run->last.test_objective = score.objective;
  run->last.test_nonzeros = (double)score.nonzeros / (double)score.rows;
  return PAWL_OK;
}

pawl_status sparse_run_diverged(const struct sparse_run *run) {
  return apps_say(run->error, PAWL_DIVERGED,
                  "the training diverged in epoch %" PRIu64 ": the objective is not finite; are values of the rows too "
                  "large to be squared? Scale the rows",
                  run->epoch + 1);
}

static pawl_status measure(struct sparse_run *run) {
  const struct sparse_outputs outputs = {.sums = &run->sums, .uses = run->uses, .residuals = run->residuals};
  struct pawl_sparse_score score;
  sparse_dictionary_refresh(&run->dictionary);
  pawl_status status = sparse_encoder_all(&run->encoder, &run->view, &outputs, &score);
  if (status) return explain(run, status);
  run->coded += score.rows;
  double gap = score.gap + sparse_dictionary_gap(&run->dictionary, &run->sums, run->scratch);
  run->last = (struct sparse_figures){.epoch = run->epoch + 1,
                                      .objective = score.objective,
                                      .gap = gap / score.objective,
                                      .error = score.error,
                                      .nonzeros = (double)score.nonzeros / (double)score.rows,
                                      .unsolved = score.unsolved,
                                      .test_error = (double)NAN,
                                      .test_nonzeros = (double)NAN,
                                      .test_objective = (double)NAN};
  for (size_t j = 0; j < run->dictionary.atoms; j++) run->last.unused += run->uses[j] == 0;
  return isfinite(score.objective) && isfinite(gap) ? measure_test(run) : sparse_run_diverged(run);
}

static void keep_best(struct sparse_run *run) {
  if (run->best.epoch > 0 && run->last.objective >= run->best.objective) return;
  run->best = run->last;
  memcpy(run->model->atoms, run->dictionary.at, sparse_model_size(run->model) * sizeof *run->model->atoms);
  memcpy(run->model->uses, run->uses, run->dictionary.atoms * sizeof *run->model->uses);
}

/* --- epochs ----------------------------------------------------------------------------------------------- */

/* The gap alone is no end: codes and atoms together may still win more. So the last epoch must have won little, too. */
static bool is_converged(const struct sparse_run *run) {
  return run->best.epoch > 0 && run->best.gap <= run->is.tolerance && run->won <= run->is.tolerance;
}

/* Batches grow when an epoch has won less than a share of what the dictionary alone could win. */
static void choose_batch(struct sparse_run *run) {
  run->won = (run->previous - run->last.objective) / run->last.objective; /* NAN after the first epoch */
  if (run->won < LITTLE * run->last.gap)
    run->batch = run->batch > rows_of(run) / GROWTH ? rows_of(run) : run->batch * GROWTH;
  run->previous = run->last.objective;
}

static void tell(struct sparse_run *run, uint64_t batch, uint32_t replaced, uint64_t coded, double seconds) {
  struct pawl_sparse_progress *progress = &run->progress;
  const struct sparse_figures *last = &run->last;
  *progress = (struct pawl_sparse_progress){.epoch = run->epoch,
                                            .epochs = run->is.epochs,
                                            .objective = last->objective,
                                            .gap = last->gap,
                                            .error = last->error,
                                            .nonzeros = last->nonzeros,
                                            .test_error = last->test_error,
                                            .test_nonzeros = last->test_nonzeros,
                                            .batch = batch,
                                            .unused = last->unused,
                                            .replaced = replaced,
                                            .unsaved = run->result.unsaved,
                                            .seconds = apps_seconds_since(run->begun_ns),
                                            .rows_per_s = (double)coded / fmax(seconds, 1e-9)};
  if (run->shared) sparse_shared_note(run, progress);
  if (run->is.progress) run->is.progress(run->is.context, progress);
}

/* What follows a measurement: the dictionary of the next epoch. */
static pawl_status conclude_epoch(struct sparse_run *run, uint32_t *replaced_out) {
  keep_best(run);
  run->epoch++;
  choose_batch(run);
  bool is_over = run->epoch == run->is.epochs || is_converged(run);
  pawl_status status = sparse_run_replace_unused(run, replaced_out);
  run->replaced += *replaced_out;
  if (!status && run->is.checkpoint && (is_over || run->epoch % run->is.checkpoint_every == 0))
    apps_state_note(sparse_checkpoint_write(run), run->error, run->result.unsaved);
  return status;
}

/* Ends early, without a measurement, when the caller wants the training to end. */
static pawl_status run_epoch(struct sparse_run *run) {
  uint64_t batch = run->batch, coded = run->coded;
  uint32_t replaced = 0;
  int64_t begun = apps_now(), trained;
  pawl_status status = take_steps(run);
  trained = apps_now();
  run->result.train_s += (double)(trained - begun) * 1e-9;
  if (!status && run->is_stopping) return PAWL_OK;
  if (!status) status = measure(run);
  run->result.measure_s += apps_seconds_since(trained);
  if (!status) status = conclude_epoch(run, &replaced);
  if (status == PAWL_CANCELLED && run->is_stopping) return PAWL_OK;
  if (!status) tell(run, batch, replaced, run->coded - coded, apps_seconds_since(begun));
  return status;
}

/* --- before ----------------------------------------------------------------------------------------------- */

/* The length of the longest row, and the lambda if none was given. */
static pawl_status look_at_rows(struct sparse_run *run) {
  size_t rows = rows_of(run), features = run->dictionary.features;
  double sum = 0;
  for (size_t i = 0; i < rows; i++) {
    double square = 0;
    sparse_view_get(&run->view, i, run->scratch);
    for (size_t d = 0; d < features; d++) square += run->scratch[d] * run->scratch[d];
    run->longest = fmax(run->longest, sqrt(square));
    sum += sqrt(square);
  }
  if (!(run->longest > 0))
    return apps_say(run->error, PAWL_INVALID, "every row is 0%s; there is nothing to learn",
                    run->is.center ? " once its mean has been subtracted" : "");
  if (run->is.lambda == 0)
    run->is.lambda = fmin(DEFAULT_LAMBDA / sqrt((double)features), DEFAULT_MOST) * sum / (double)rows;
  if (run->is.lambda >= run->longest)
    return apps_say(run->error, PAWL_INVALID,
                    "lambda %.6g makes every code 0, whatever the dictionary, because the longest row has the length "
                    "%.6g; use a lower lambda",
                    run->is.lambda, run->longest);
  if (run->is.lambda < LEAST_LAMBDA * run->longest)
    return apps_say(run->error, PAWL_INVALID,
                    "lambda %.6g is too small for rows as long as %.6g: the objective would be lost in the rounding of "
                    "squares; use a lambda of %.6g or more, or scale the rows",
                    run->is.lambda, run->longest, LEAST_LAMBDA * run->longest);
  return PAWL_OK;
}

static pawl_status make_model(struct sparse_run *run) {
  const struct pawl_sparse_rows_info *info = &run->rows->info;
  run->about = (struct pawl_sparse_about){.atoms = run->is.atoms,
                                          .features = info->features,
                                          .centered = run->is.center,
                                          .unit_rows = run->is.unit_rows,
                                          .rows = info->rows,
                                          .seed = run->is.seed,
                                          .objective = (double)NAN,
                                          .gap = (double)NAN,
                                          .error = (double)NAN,
                                          .nonzeros = (double)NAN,
                                          .shape = info->shape,
                                          .binary = info->binary,
                                          .hash_bits = info->hash_bits,
                                          .columns = info->columns,
                                          .label_column = info->label_column};
  pawl_status status = sparse_model_create(&run->about, &run->model);
  if (!status) memcpy(run->model->ids, run->rows->is.ids, (size_t)info->features * sizeof *run->model->ids);
  return status;
}

static pawl_status allocate(struct sparse_run *run) {
  size_t atoms = run->is.atoms, features = (size_t)run->rows->info.features, rows = rows_of(run);
  pawl_status status = sparse_dictionary_init(&run->dictionary, atoms, features);
  if (!status) status = sparse_sums_init(&run->sums, atoms, features);
  if (!status) status = make_model(run);
  if (status) return status;
  run->target = sparse_sums_target(&run->sums);
  run->scratch = apps_alloc_zero(features + 1, SPARSE_GROUP * sizeof *run->scratch);
  run->order = apps_alloc_zero(rows, sizeof *run->order);
  run->uses = apps_alloc_zero(atoms, sizeof *run->uses);
  run->residuals = apps_alloc_zero(rows, sizeof *run->residuals);
  return run->scratch && run->order && run->uses && run->residuals ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status make_views(struct sparse_run *run) {
  const uint64_t *ids = run->rows->is.ids;
  pawl_status status = sparse_view_init(&run->view, run->rows, ids, &run->about, run->error);
  if (status || !run->test) return status;
  if (run->test->info.rows == 0) return apps_say(run->error, PAWL_INVALID, "there are no test rows");
  return sparse_view_init(&run->test_view, run->test, ids, &run->about, run->error);
}

pawl_status sparse_run_prepare(struct sparse_run *run) {
  const struct pawl_sparse_rows_info *info = &run->rows->info;
  if (info->rows == 0) return apps_say(run->error, PAWL_INVALID, "there are no rows to train on");
  if (info->features == 0) return apps_say(run->error, PAWL_INVALID, "no row has a feature; there is nothing to learn");
  pawl_status status = allocate(run);
  if (status)
    return apps_say(run->error, status, "no memory for %" PRIu32 " atoms of %" PRIu64 " features", run->is.atoms,
                    info->features);
  status = make_views(run);
  if (!status) status = look_at_rows(run);
  if (status) return status;
  run->batch = run->is.batch < info->rows ? run->is.batch : info->rows;
  run->result.batch = run->batch;
  if (sparse_encoder_init(&run->encoder, &run->dictionary, run->is.lambda, run->is.code_tolerance, run->is.threads))
    return apps_say(run->error, PAWL_NO_MEMORY, "no memory to code rows of %" PRIu64 " features", info->features);
  run->encoder.stopping = is_stopping;
  run->encoder.context = run;
  return PAWL_OK;
}

static pawl_status begin(struct sparse_run *run) {
  pawl_status status = sparse_run_prepare(run);
  if (!status) status = sparse_run_draw_atoms(run);
  if (status || !run->is.checkpoint) return status;
  return run->is.resume ? sparse_checkpoint_read(run) : sparse_checkpoint_write(run);
}

/* --- after ------------------------------------------------------------------------------------------------ */

/* A run that was interrupted in its first epoch keeps the dictionary as it is, unmeasured. */
static void keep_unmeasured(struct sparse_run *run) {
  run->best = (struct sparse_figures){.objective = (double)NAN,
                                      .gap = (double)NAN,
                                      .error = (double)NAN,
                                      .nonzeros = (double)NAN,
                                      .test_error = (double)NAN,
                                      .test_nonzeros = (double)NAN,
                                      .test_objective = (double)NAN};
  memcpy(run->model->atoms, run->dictionary.at, sparse_model_size(run->model) * sizeof *run->model->atoms);
}

static const char *advice(const struct sparse_run *run, const char *why) {
  if (strcmp(why, "epochs") != 0) return "letting it run to its end";
  return run->best.unsolved > 0 ? "a higher --lambda, a higher --tolerance, or more --epochs"
                                : "more --epochs, or a higher --tolerance";
}

static void conclude(struct sparse_run *run) {
  struct pawl_sparse_result *result = &run->result;
  struct pawl_sparse_about *about = &run->model->about;
  const struct sparse_figures *best = &run->best;
  result->why = is_converged(run) ? "converged" : run->epoch < run->is.epochs ? "interrupted" : "epochs";
  result->is_certain = is_converged(run);
  result->advice = result->is_certain ? NULL : advice(run, result->why);
  result->epochs = run->epoch;
  result->best = about->epochs = best->epoch;
  result->lambda = about->lambda = run->is.lambda;
  result->objective = about->objective = best->objective;
  result->gap = about->gap = best->gap;
  result->error = about->error = best->error;
  result->nonzeros = about->nonzeros = best->nonzeros;
  result->test_error = best->test_error;
  result->test_nonzeros = best->test_nonzeros;
  result->test_objective = best->test_objective;
  result->test_rows = run->test ? run->test->info.rows : 0;
  result->unsolved = best->unsolved;
  result->unused = best->unused;
  result->replaced = run->replaced;
  result->seconds = apps_seconds_since(run->begun_ns);
  result->rows_per_s = (double)run->coded / fmax(result->train_s + result->measure_s, 1e-9);
  result->threads = run->is.threads;
}

static pawl_status train(struct sparse_run *run) {
  pawl_status status = PAWL_OK;
  while (!status && !is_converged(run) && run->epoch < run->is.epochs && !is_stopping(run)) status = run_epoch(run);
  if (!status && run->coded == 0 && run->best.epoch == 0)
    return apps_say(run->error, PAWL_CANCELLED, "interrupted before the first step");
  if (!status && run->best.epoch == 0) keep_unmeasured(run);
  if (!status) conclude(run);
  return status;
}

void sparse_run_fini(struct sparse_run *run) {
  sparse_encoder_fini(&run->encoder);
  sparse_view_fini(&run->view);
  sparse_view_fini(&run->test_view);
  apps_free(run->residuals);
  apps_free(run->uses);
  apps_free(run->order);
  apps_free(run->scratch);
  pawl_sparse_model_destroy(run->model);
  sparse_sums_fini(&run->sums);
  sparse_dictionary_fini(&run->dictionary);
}

pawl_status sparse_run_train(struct sparse_run *run, struct pawl_sparse_model **model_out,
                             struct pawl_sparse_result *result_out) {
  run->lambda_given = run->is.lambda;
  run->previous = run->won = (double)NAN;
  pawl_status status = begin(run);
  if (!status) status = train(run);
  if (!status) {
    *model_out = run->model;
    *result_out = run->result;
    run->model = NULL;
  }
  sparse_run_fini(run);
  return status;
}

pawl_status pawl_sparse_train(const struct pawl_sparse_rows *rows, const struct pawl_sparse_rows *test,
                              const struct pawl_sparse_options *options, struct pawl_sparse_model **model_out,
                              struct pawl_sparse_result *result_out, char error[PAWL_SPARSE_TEXT]) {
  struct sparse_run run = {.rows = rows, .test = test, .error = error, .begun_ns = apps_now()};
  if (!sparse_options_resolve(options, &run.is, error)) return PAWL_INVALID;
  return sparse_run_train(&run, model_out, result_out);
}
