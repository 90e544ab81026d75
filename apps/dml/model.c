/* A model in memory, its text, and prediction. */
#include "apps/dml/model.h"

#include <inttypes.h>
#include <string.h>

#include "apps/common/blas.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/dml/nearest.h"
#include "apps/dml/weights.h"

#define CHUNK 2048 /* rows that are dense at the same time */

void pawl_metric_model_destroy(struct pawl_metric_model *model) {
  if (!model) return;
  dml_points_fini(&model->points);
  apps_free(model->weights);
  dml_frame_fini(&model->frame);
  apps_names_fini(&model->labels);
  apps_free(model->ids);
  apps_free(model);
}

void pawl_metric_model_about(const struct pawl_metric_model *model, struct pawl_metric_about *about_out) {
  *about_out = model->about;
}

const char *pawl_metric_model_label(const struct pawl_metric_model *model, uint32_t class_number) {
  return apps_names_get(&model->labels, class_number);
}

const uint32_t *pawl_metric_model_classes(const struct pawl_metric_model *model) { return model->points.classes; }

/* --- labels ----------------------------------------------------------------------------------------------- */

pawl_status dml_model_take_labels(struct pawl_metric_model *model, const struct pawl_mlr_rows *rows) {
  struct pawl_mlr_rows_info info;
  size_t size = 0, at = 0;
  pawl_mlr_rows_info(rows, &info);
  for (uint32_t i = 0; i < info.classes; i++) size += strlen(pawl_mlr_rows_label(rows, i)) + 1;
  char *text = apps_alloc(size + 1);
  if (!text) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < info.classes; i++) {
    size_t length = strlen(pawl_mlr_rows_label(rows, i)) + 1;
    memcpy(text + at, pawl_mlr_rows_label(rows, i), length);
    at += length;
  }
  if (apps_names_take(&model->labels, text, size, info.classes)) return PAWL_OK;
  apps_free(text);
  return PAWL_NO_MEMORY;
}

uint32_t *dml_model_match_labels(const struct pawl_metric_model *model, const struct pawl_mlr_rows *rows) {
  struct pawl_mlr_rows_info info;
  pawl_mlr_rows_info(rows, &info);
  uint32_t *classes = apps_alloc_zero((size_t)info.classes + 1, sizeof *classes);
  for (uint32_t i = 0; classes && i < info.classes; i++)
    if (!apps_names_find(&model->labels, pawl_mlr_rows_label(rows, i), &classes[i])) classes[i] = PAWL_MLR_NO_CLASS;
  return classes;
}

/* --- text ------------------------------------------------------------------------------------------------- */

static pawl_status fill_text(FILE *file, const void *context) {
  const struct pawl_metric_model *model = context;
  size_t features = (size_t)model->about.features;
  for (size_t d = 0; d < features; d++) fprintf(file, "%s%" PRIu64, d ? " " : "", model->ids[d]);
  fputc('\n', file);
  for (size_t r = 0; r < model->about.rank; r++) {
    for (size_t d = 0; d < features; d++)
      fprintf(file, "%s%.9g", d ? " " : "", (double)model->weights[r * features + d] * model->frame.scale);
    fputc('\n', file);
  }
  return PAWL_OK; /* the caller checks the stream */
}

pawl_status pawl_metric_model_export(const struct pawl_metric_model *model, const char *path,
                                     char error[PAWL_METRIC_TEXT]) {
  return apps_model_write(path, fill_text, model, error);
}

/* --- prediction ------------------------------------------------------------------------------------------- */

struct metric_prediction {
  const struct pawl_metric_model *model;
  struct dml_reader reader;
  const uint32_t *rows_classes;
  uint32_t *matched; /* by label of the rows: its class */
  uint32_t threads;
  struct apps_crew *crew;
  struct dml_points dense, mapped; /* of a chunk */
  uint32_t *numbers;
};

static void judge(const struct metric_prediction *is, size_t row, uint32_t predicted, struct pawl_metric_score *score) {
  uint32_t label = is->rows_classes[row], own = label == PAWL_MLR_NO_CLASS ? label : is->matched[label];
  score->rows++;
  score->unlabelled += label == PAWL_MLR_NO_CLASS;
  score->unknown_labels += label != PAWL_MLR_NO_CLASS && own == PAWL_MLR_NO_CLASS;
  score->judged += own != PAWL_MLR_NO_CLASS;
  score->wrong += own != PAWL_MLR_NO_CLASS && own != predicted;
}

static pawl_status predict_chunk(struct metric_prediction *is, size_t first, size_t count, uint32_t *classes_out,
                                 struct pawl_metric_score *score) {
  const struct pawl_metric_model *model = is->model;
  const struct dml_weights weights = {model->about.rank, (size_t)model->about.features, model->weights, is->crew};
  struct dml_points queries = dml_points_part(&is->mapped, 0, count);
  uint32_t k = model->about.k;
  for (size_t i = 0; i < count; i++) dml_reader_get(&is->reader, first + i, is->dense.at + i * is->dense.width);
  dml_weights_map(&weights, is->dense.at, count, is->mapped.at);
  pawl_status status = dml_nearest(&model->points, &queries, k, is->crew, is->threads, is->numbers);
  for (size_t i = 0; !status && i < count; i++) {
    classes_out[first + i] = dml_vote(model->points.classes, is->numbers + i * k, k);
    judge(is, first + i, classes_out[first + i], score);
  }
  return status;
}

static pawl_status predict_all(struct metric_prediction *is, const struct pawl_mlr_rows *rows, uint32_t *classes_out,
                               struct pawl_metric_score *score) {
  struct pawl_mlr_rows_info info;
  pawl_mlr_rows_info(rows, &info);
  size_t count = (size_t)info.rows, chunk = count < CHUNK ? count : CHUNK;
  is->rows_classes = pawl_mlr_rows_classes(rows);
  is->matched = dml_model_match_labels(is->model, rows);
  is->numbers = apps_alloc_zero(chunk + 1, is->model->about.k * sizeof *is->numbers);
  pawl_status status = is->matched && is->numbers ? apps_crew_create(is->threads, &is->crew) : PAWL_NO_MEMORY;
  if (!status) status = dml_points_init(&is->dense, chunk, (size_t)is->model->about.features);
  if (!status) status = dml_points_init(&is->mapped, chunk, is->model->about.rank);
  for (size_t first = 0; !status && first < count; first += chunk)
    status = predict_chunk(is, first, count - first < chunk ? count - first : chunk, classes_out, score);
  score->unknown_values = is->reader.unknown_values;
  return status;
}

pawl_status pawl_metric_predict(const struct pawl_metric_model *model, const struct pawl_mlr_rows *rows,
                                uint32_t threads, uint32_t *classes_out, struct pawl_metric_score *score_out,
                                char error[PAWL_METRIC_TEXT]) {
  struct metric_prediction is = {.model = model, .threads = threads ? threads : apps_crew_processors()};
  struct pawl_metric_score score = {.rows = 0};
  (void)apps_blas_threads(1); /* the crew has threads of its own */
  pawl_status status = dml_reader_init(&is.reader, rows, &model->frame, model->ids, model->about.is_images, error);
  if (!status) {
    status = predict_all(&is, rows, classes_out, &score);
    if (status) apps_say(error, status, "no memory to predict rows of %" PRIu64 " features", model->about.features);
  }
  if (!status) *score_out = score;
  apps_crew_destroy(is.crew);
  dml_points_fini(&is.dense);
  dml_points_fini(&is.mapped);
  apps_free(is.matched);
  apps_free(is.numbers);
  dml_reader_fini(&is.reader);
  return status;
}
