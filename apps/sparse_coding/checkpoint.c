/* Checkpoints: the state of a training between two epochs. Random numbers have no state, because orders belong to epochs.
 * Behind the header (apps/common/model_arrays.h) are
 *
 *   figures      float64: objective, gap, error, non-zeros of the best dictionary; its three figures of the test rows; the
 *                objective of the last epoch, and what it won
 *   dictionary   float64: the atoms with which the next epoch begins
 *   c, a         float64: the sums of the last measurement (apps/sparse_coding/pairs.h)
 *   best         float64: the atoms of the best dictionary
 *   uses         u64: how many rows use each of them
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/common/json.h"
#include "apps/common/model_arrays.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"
#include "apps/common/resume.h"
#include "apps/sparse_coding/run.h"

#define KIND "sparse-coding-checkpoint"
#define FIGURES 9

/* The options that must be the same. A run may go on with more epochs or another tolerance. */
static json_t *make_terms(const struct sparse_run *run) {
  const struct pawl_sparse_options *is = &run->is;
  json_t *terms = json_object();
  apps_term(terms, "--atoms", "%" PRIu32, is->atoms);
  apps_term(terms, "--lambda", "%.17g", run->lambda_given);
  apps_term_flag(terms, "--center", is->center);
  apps_term_flag(terms, "--unit-rows", is->unit_rows);
  apps_term(terms, "--code-tolerance", "%.17g", is->code_tolerance);
  apps_term(terms, "--batch", "%" PRIu64, is->batch);
  apps_term(terms, "--seed", "%" PRIu64, is->seed);
  return terms;
}

/* --- writing ---------------------------------------------------------------------------------------------- */

static json_t *make_header(const struct sparse_run *run) {
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o}", "kind", KIND, "epoch", (json_int_t)run->epoch,
                   "batch", (json_int_t)run->batch, "replaced", (json_int_t)run->replaced, "best",
                   (json_int_t)run->best.epoch, "unsolved", (json_int_t)run->best.unsolved, "unused",
                   (json_int_t)run->best.unused, "lambda", run->is.lambda, "digest",
                   apps_json_wide(sparse_rows_digest(run->rows)), "options", make_terms(run));
}

static pawl_status fill(FILE *file, const void *context) {
  const struct sparse_run *run = context;
  const struct sparse_figures *best = &run->best;
  size_t atoms = run->dictionary.atoms, size = sparse_model_size(run->model);
  const double figures[FIGURES] = {best->objective,      best->gap,        best->error,
                                   best->nonzeros,       best->test_error, best->test_nonzeros,
                                   best->test_objective, run->previous,    run->won};
  const struct apps_array arrays[] = {{figures, FIGURES, 8},        {run->dictionary.at, size, 8},
                                      {run->sums.c, size, 8},       {run->sums.a, atoms * atoms, 8},
                                      {run->model->atoms, size, 8}, {run->model->uses, atoms, 8}};
  return apps_arrays_write(file, make_header(run), arrays, sizeof arrays / sizeof *arrays);
}

pawl_status sparse_checkpoint_write(struct sparse_run *run) {
  pawl_status status = apps_state_place(run->is.checkpoint, KIND, run->error);
  return status ? status : apps_model_write(run->is.checkpoint, fill, run, run->error);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static bool read_counts(struct sparse_run *run, const json_t *header) {
  struct sparse_figures *best = &run->best;
  return apps_model_count(header, "epoch", 0, INT64_MAX, &run->epoch) &&
         apps_model_count(header, "batch", 1, run->rows->info.rows, &run->batch) &&
         apps_model_count(header, "replaced", 0, INT64_MAX, &run->replaced) &&
         apps_model_count(header, "best", run->epoch > 0, run->epoch, &best->epoch) &&
         apps_model_count(header, "unsolved", 0, run->rows->info.rows, &best->unsolved) &&
         apps_model_count32(header, "unused", run->is.atoms, &best->unused);
}

static bool take_lambda(struct sparse_run *run, const json_t *header) {
  if (run->lambda_given == 0 && !apps_state_chosen(header, "lambda", 0, run->longest, &run->is.lambda)) return false;
  for (uint32_t i = 0; i < run->encoder.threads; i++) run->encoder.coders[i].lambda = run->is.lambda;
  return run->is.lambda > 0;
}

static bool is_finite(const double *numbers, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(numbers[i])) return false;
  return true;
}

static void take_figures(struct sparse_run *run, const double *figures) {
  struct sparse_figures *best = &run->best;
  best->objective = figures[0];
  best->gap = figures[1];
  best->error = figures[2];
  best->nonzeros = figures[3];
  best->test_error = figures[4];
  best->test_nonzeros = figures[5];
  best->test_objective = figures[6];
  run->previous = figures[7];
  run->won = figures[8];
}

static pawl_status read_numbers(struct sparse_run *run, struct apps_arrays *arrays, char *why) {
  size_t atoms = run->dictionary.atoms, size = sparse_model_size(run->model);
  double figures[FIGURES];
  pawl_status status = apps_arrays_into(arrays, figures, FIGURES, 8, why);
  if (!status) status = apps_arrays_into(arrays, run->dictionary.at, size, 8, why);
  if (!status) status = apps_arrays_into(arrays, run->sums.c, size, 8, why);
  if (!status) status = apps_arrays_into(arrays, run->sums.a, atoms * atoms, 8, why);
  if (!status) status = apps_arrays_into(arrays, run->model->atoms, size, 8, why);
  if (!status) status = apps_arrays_into(arrays, run->model->uses, atoms, 8, why);
  if (status) return status;
  if (!apps_arrays_are_over(arrays) || !is_finite(run->dictionary.at, size) || !is_finite(run->sums.c, size) ||
      !is_finite(run->sums.a, atoms * atoms) || !is_finite(run->model->atoms, size) ||
      (run->best.epoch > 0 && !is_finite(figures, 4)))
    return apps_say(why, PAWL_CORRUPT, "the checkpoint is damaged");
  take_figures(run, figures);
  return PAWL_OK;
}

static pawl_status decode(const char *bytes, size_t size, void *context, char *why) {
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  struct sparse_run *run = context;
  json_t *header = NULL;
  pawl_status status = apps_arrays_open(&arrays, KIND, &header, why);
  if (status) return status;
  status = apps_state_compare(header, make_terms(run), sparse_rows_digest(run->rows), why);
  if (!status && (!read_counts(run, header) || !take_lambda(run, header)))
    status = apps_say(why, PAWL_CORRUPT, "invalid numbers in the header");
  if (!status) status = read_numbers(run, &arrays, why);
  json_decref(header);
  if (!status) run->result.resumed = run->epoch;
  return status;
}

pawl_status sparse_checkpoint_read(struct sparse_run *run) {
  char why[APPS_TEXT_MAX] = "";
  pawl_status status = apps_model_read(run->is.checkpoint, decode, run, why);
  return status ? apps_say(run->error, status, "cannot resume: %.480s", why) : PAWL_OK;
}
