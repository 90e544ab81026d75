/* Checkpoints: the state of a training between two epochs. Random numbers have no state, because orders belong to epochs.
 * Behind the header (apps/common/model_arrays.h) are
 *
 *   figures   float64: scale and rate; objectives of the last W, of the best one and of PCA; errors of the best W, of
 *             Euclidean distance and of PCA
 *   weights   float32: W with which the next epoch begins
 *   best      float32: the W with the fewest errors
 *   pca       float32: the W of PCA
 *   pairs     u32: two points of each pair, similar ones first
 *
 * With the pairs and PCA a run that is resumed compares no rows with each other.
 */
#include <inttypes.h>
#include <math.h>

#include "apps/common/json.h"
#include "apps/common/model_arrays.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"
#include "apps/common/resume.h"
#include "apps/dml/run.h"

#define KIND "metric-checkpoint"
#define FIGURES 8

_Static_assert(sizeof(struct dml_pair) == 2 * sizeof(uint32_t), "pairs are written as they are");

/* The options that must be the same. A run may go on with more epochs. */
static json_t *make_terms(const struct dml_run *run) {
  const struct pawl_metric_options *is = &run->is;
  json_t *terms = json_object();
  apps_term(terms, "--rank", "%" PRIu32, is->rank);
  apps_term(terms, "--neighbours", "%" PRIu32, is->neighbours);
  apps_term(terms, "--margin", "%.17g", is->margin);
  apps_term(terms, "--weight", "%.17g", is->weight);
  apps_term(terms, "--rate", "%.17g", is->rate);
  apps_term(terms, "--k", "%" PRIu32, is->k);
  apps_term(terms, "--valid-split", "%.17g", is->held_share);
  apps_term(terms, "--batch", "%" PRIu64, is->batch);
  apps_term(terms, "--seed", "%" PRIu64, is->seed);
  return terms;
}

/* --- writing ---------------------------------------------------------------------------------------------- */

static pawl_status fill(FILE *file, const void *context) {
  const struct dml_run *run = context;
  const struct pawl_metric_result *best = &run->result;
  size_t size = dml_weights_size(&run->weights);
  json_t *header = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "kind", KIND, "epoch",
                             (json_int_t)run->epoch, "undone", (json_int_t)run->undone, "best", (json_int_t)best->best,
                             "undone_at_best", (json_int_t)run->undone_at_best, "similar",
                             (json_int_t)run->pairs.similar, "pairs", (json_int_t)run->pairs.count, "digest",
                             apps_json_wide(pawl_mlr_rows_digest(run->rows)), "options", make_terms(run));
  const double figures[FIGURES] = {
      run->scale,  run->rate,          run->objective, best->objective, best->first_objective,
      best->error, best->euclid_error, best->pca_error};
  const struct apps_array arrays[] = {{figures, FIGURES, 8},
                                      {run->weights.at, size, 4},
                                      {run->best, size, 4},
                                      {run->pca, size, 4},
                                      {run->pairs.at, 2 * run->pairs.count, 4}};
  return apps_arrays_write(file, header, arrays, sizeof arrays / sizeof *arrays);
}

pawl_status dml_checkpoint_write(struct dml_run *run) {
  pawl_status status = apps_state_place(run->is.checkpoint, KIND, run->error);
  return status ? status : apps_model_write(run->is.checkpoint, fill, run, run->error);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static bool read_counts(struct dml_run *run, const json_t *header, uint64_t *pairs_out) {
  uint64_t most = (uint64_t)run->paired * 2 * run->is.neighbours, similar = 0;
  bool is_fine = apps_model_count(header, "epoch", 0, INT64_MAX, &run->epoch) &&
                 apps_model_count(header, "undone", 0, run->epoch, &run->undone) &&
                 apps_model_count(header, "best", 0, run->epoch, &run->result.best) &&
                 apps_model_count(header, "undone_at_best", 0, run->undone, &run->undone_at_best) &&
                 apps_model_count(header, "pairs", 2, most, pairs_out) &&
                 apps_model_count(header, "similar", 1, *pairs_out - 1, &similar);
  run->pairs.similar = (size_t)similar;
  return is_fine && run->epoch - run->result.best >= run->undone - run->undone_at_best;
}

static void take_figures(struct dml_run *run, const double *figures) {
  struct pawl_metric_result *best = &run->result;
  run->scale = figures[0];
  run->rate = figures[1];
  run->objective = figures[2];
  best->objective = figures[3];
  best->first_objective = figures[4];
  best->error = figures[5];
  best->euclid_error = figures[6];
  best->pca_error = figures[7];
  run->loss = (struct dml_loss){1 - run->is.margin, run->is.weight};
}

static pawl_status read_arrays(struct dml_run *run, struct apps_arrays *arrays, uint64_t pairs, char *why) {
  size_t size = dml_weights_size(&run->weights);
  double figures[FIGURES];
  bool is_whole = true;
  pawl_status status = apps_arrays_into(arrays, figures, FIGURES, 8, why);
  if (!status) status = apps_arrays_into(arrays, run->weights.at, size, 4, why);
  if (!status) status = apps_arrays_into(arrays, run->best, size, 4, why);
  if (!status) status = apps_arrays_into(arrays, run->pca, size, 4, why);
  if (!status && dml_run_reserve_pairs(run, (size_t)pairs)) status = apps_say(why, PAWL_NO_MEMORY, "out of memory");
  if (!status) status = apps_arrays_into(arrays, run->pairs.at, 2 * (size_t)pairs, 4, why);
  if (status) return status;
  run->pairs.count = (size_t)pairs;
  for (int i = 0; i < FIGURES; i++) is_whole &= isfinite(figures[i]) && figures[i] >= 0;
  if (!is_whole || !apps_arrays_are_over(arrays) || !(figures[0] > 0) || !apps_is_finite(run->weights.at, size) ||
      !apps_is_finite(run->best, size) || !apps_is_finite(run->pca, size) || !dml_run_has_points(run))
    return apps_say(why, PAWL_CORRUPT, "the checkpoint is damaged");
  take_figures(run, figures);
  return PAWL_OK;
}

static pawl_status decode(const char *bytes, size_t size, void *context, char *why) {
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  struct dml_run *run = context;
  json_t *header = NULL;
  uint64_t pairs = 0;
  pawl_status status = apps_arrays_open(&arrays, KIND, &header, why);
  if (status) return status;
  status = apps_state_compare(header, make_terms(run), pawl_mlr_rows_digest(run->rows), why);
  if (!status && !read_counts(run, header, &pairs))
    status = apps_say(why, PAWL_CORRUPT, "invalid numbers in the header");
  if (!status) status = read_arrays(run, &arrays, pairs, why);
  json_decref(header);
  if (!status) run->result.resumed = run->epoch;
  return status;
}

pawl_status dml_checkpoint_read(struct dml_run *run) {
  char why[APPS_TEXT_MAX] = "";
  pawl_status status = apps_model_read(run->is.checkpoint, decode, run, why);
  if (!status) dml_run_map(run);
  return status ? apps_say(run->error, status, "cannot resume: %.480s", why) : PAWL_OK;
}
