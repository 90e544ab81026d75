/* Predictions of a linear model over a data set: see cli/models/predict_run.h. */
#include "cli/models/predict_run.h"

#include <errno.h>

#include "base/memory.h"

/* --- lines ---------------------------------------------------------------------------------------------------------------- */

pawl_status pwi_predict_lines_init(struct pwi_predict_lines *lines, size_t pieces) {
  if (!lines->file) return PAWL_OK;
  lines->waiting = pwi_alloc_zero(pieces ? pieces : 1, sizeof *lines->waiting);
  if (!lines->waiting) return PAWL_NO_MEMORY;
  lines->pieces = pieces;
  return PAWL_OK;
}

void pwi_predict_lines_fini(struct pwi_predict_lines *lines) {
  for (size_t i = 0; i < lines->pieces; i++) pwi_free(lines->waiting[i].scores);
  pwi_free(lines->waiting);
  lines->waiting = NULL;
  lines->pieces = 0;
}

/* Labels are written with the digits of a float, scores so that they read back unchanged. */
static void print_row(const struct pwi_predict_lines *lines, double score) {
  const struct pawl_linear_about *about = lines->about;
  double label = about->labels[score > 0];
  if (lines->what == PWI_PREDICT_SCORES || about->is_regression)
    fprintf(lines->file, "%.17g\n", score);
  else if (lines->what == PWI_PREDICT_PROBABILITIES)
    fprintf(lines->file, "%.9g %.9g\n", label, pawl_linear_probability(score));
  else
    fprintf(lines->file, "%.9g\n", label);
}

static void print_piece(const struct pwi_predict_lines *lines, struct pwi_predict_scores *piece) {
  for (size_t i = 0; i < piece->rows; i++) print_row(lines, piece->scores[i]);
  pwi_free(piece->scores);
  piece->scores = NULL;
}

pawl_status pwi_predict_lines_take(struct pwi_predict_lines *lines, size_t piece, double *scores, size_t rows) {
  if (!lines->file) {
    pwi_free(scores);
    return PAWL_OK;
  }
  lines->waiting[piece] = (struct pwi_predict_scores){scores, rows, true};
  errno = 0;
  while (lines->next < lines->pieces && lines->waiting[lines->next].is_there)
    print_piece(lines, &lines->waiting[lines->next++]);
  if (ferror(lines->file)) lines->problem = errno ? errno : EIO;
  return lines->problem ? PAWL_IO : PAWL_OK;
}

/* --- features that a model does not know ---------------------------------------------------------------------------------- */

pawl_status pwi_predict_strangers_add(struct pwi_predict_strangers *strangers, const struct pawl_batch *batch) {
  strangers->all_entries += batch->entries;
  for (size_t i = 0; i < batch->entries; i++) {
    bool is_zero = batch->ids[i] == 0 && !strangers->zero_based;
    if (!is_zero && batch->ids[i] <= strangers->features) continue;
    strangers->has_zero |= is_zero;
    strangers->entries++;
    if (strangers->ids.count >= PWI_PREDICT_STRANGERS_MAX) continue;
    pawl_status status = pwi_idmap_put(&strangers->ids, batch->ids[i] + 1, strangers); /* the map has no key 0 */
    if (status) return status;
  }
  return PAWL_OK;
}

void pwi_predict_strangers_fini(struct pwi_predict_strangers *strangers) { pwi_idmap_fini(&strangers->ids); }

/* --- all of it ------------------------------------------------------------------------------------------------------------ */

static pawl_status take_piece(struct pwi_predict *predict, size_t piece, const struct pawl_batch *batch) {
  double *scores = pwi_alloc_zero(batch->rows ? batch->rows : 1, sizeof *scores);
  if (!scores) return PAWL_NO_MEMORY;
  pawl_linear_scorer_run(predict->scorer, batch, scores);
  pawl_status status = pawl_linear_metrics_add(predict->metrics, batch, scores);
  if (status == PAWL_OK) status = pwi_predict_strangers_add(&predict->strangers, batch);
  if (status == PAWL_OK) return pwi_predict_lines_take(&predict->lines, piece, scores, batch->rows);
  pwi_free(scores);
  return status;
}

static pawl_status take(void *context, size_t piece, struct pawl_batch *batch) {
  pawl_status status = take_piece(context, piece, batch);
  pawl_batch_destroy(batch);
  return status;
}

pawl_status pwi_predict_run(struct pwi_predict *predict, struct pawl_data *data, uint32_t threads) {
  struct pawl_data_info info;
  pawl_data_info(data, &info);
  pawl_linear_model_about(predict->model, &predict->about);
  predict->strangers.features = predict->about.features;
  predict->strangers.zero_based = predict->about.zero_based;
  predict->lines.about = &predict->about;
  pawl_status status = pwi_predict_lines_init(&predict->lines, info.pieces);
  if (status == PAWL_OK) status = pawl_linear_scorer_create(predict->model, &predict->scorer);
  if (status == PAWL_OK) status = pawl_linear_metrics_create(predict->model, predict->penalty, &predict->metrics);
  if (status == PAWL_OK) status = pawl_data_read_all(data, 0, info.pieces, threads, take, predict);
  return status;
}
