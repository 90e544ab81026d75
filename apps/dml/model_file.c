/* Files of models. Behind the header (apps/common/model_arrays.h) are
 *
 *   labels      of the classes, each with a 0 behind it
 *   ids         u64: of the features, ascending
 *   mean        float64: of each feature
 *   weights     float32: rank x features; W x is weights * (x - mean) * scale
 *   points      float32: rows x rank: W x of each row
 *   classes     u32: of each row
 */
#include <math.h>
#include <string.h>

#include <pawl/version.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/model_arrays.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"
#include "apps/dml/model.h"
#include "apps/dml/nearest.h"

#define KIND "metric"
#define RANK_MAX (1u << 20)

/* --- writing ---------------------------------------------------------------------------------------------- */

static json_t *make_header(const struct pawl_metric_model *model) {
  const struct pawl_metric_about *about = &model->about;
  return json_pack(
      "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:o}",
      "kind", KIND, "rank", (json_int_t)about->rank, "features", (json_int_t)about->features, "rows",
      (json_int_t)about->rows, "classes", (json_int_t)about->classes, "k", (json_int_t)about->k, "held_out",
      (json_int_t)about->held, "epochs", (json_int_t)about->epochs, "seed", apps_json_wide(about->seed), "scale",
      apps_json_number(model->frame.scale), "objective", apps_json_number(about->objective), "error",
      apps_json_number(about->error), "euclidean_error", apps_json_number(about->euclid_error), "pca_error",
      apps_json_number(about->pca_error), "images", (int)about->is_images, "binary", (int)about->binary, "unit_rows",
      (int)about->unit_rows, "hash_bits", (json_int_t)about->hash_bits, "columns", (json_int_t)about->columns,
      "label_column", (json_int_t)about->label_column, "label_bytes", (json_int_t)model->labels.size, "written_by",
      json_sprintf("pawl %s", pawl_version()));
}

pawl_status dml_model_fill(FILE *file, const void *context) {
  const struct pawl_metric_model *model = context;
  const struct pawl_metric_about *about = &model->about;
  const struct apps_array arrays[] = {
      {model->labels.text, model->labels.size, 1},
      {model->ids, (size_t)about->features, 8},
      {model->frame.mean, (size_t)about->features, 8},
      {model->weights, dml_model_size(model), 4},
      {model->points.at, (size_t)(about->rows * about->rank), 4},
      {model->points.classes, (size_t)about->rows, 4},
  };
  return apps_arrays_write(file, make_header(model), arrays, sizeof arrays / sizeof *arrays);
}

pawl_status pawl_metric_model_write(const struct pawl_metric_model *model, const char *path,
                                    char error[PAWL_METRIC_TEXT]) {
  return apps_model_write(path, dml_model_fill, model, error);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static const char *read_errors(const json_t *json, struct pawl_metric_about *about) {
  if (!apps_json_take_number(json, "objective", true, &about->objective)) return "objective";
  if (!apps_json_take_number(json, "error", true, &about->error)) return "error";
  if (!apps_json_take_number(json, "euclidean_error", true, &about->euclid_error)) return "euclidean_error";
  if (!apps_json_take_number(json, "pca_error", true, &about->pca_error)) return "pca_error";
  return NULL;
}

static const char *read_reading(const json_t *json, struct pawl_metric_about *about) {
  if (!apps_json_take_flag(json, "images", &about->is_images)) return "images";
  if (!apps_json_take_flag(json, "binary", &about->binary)) return "binary";
  if (!apps_json_take_flag(json, "unit_rows", &about->unit_rows)) return "unit_rows";
  if (!apps_model_count32(json, "hash_bits", 62, &about->hash_bits)) return "hash_bits";
  if (!apps_model_count(json, "columns", 0, INT64_MAX, &about->columns)) return "columns";
  if (!apps_model_count(json, "label_column", 0, about->columns, &about->label_column)) return "label_column";
  return NULL;
}

static const char *read_about(const json_t *json, struct pawl_metric_model *model, uint64_t *label_bytes) {
  struct pawl_metric_about *about = &model->about;
  double *scale = &model->frame.scale;
  if (!apps_model_count32(json, "rank", RANK_MAX, &about->rank) || about->rank < 1) return "rank";
  if (!apps_model_count(json, "features", 1, UINT32_MAX - 2, &about->features)) return "features";
  if (!apps_model_count(json, "rows", 1, UINT32_MAX - 1, &about->rows)) return "rows";
  if (!apps_model_count32(json, "classes", PAWL_LABELS_MAX, &about->classes) || about->classes < 1) return "classes";
  if (!apps_model_count32(json, "k", DML_NEAREST_MAX, &about->k) || about->k < 1) return "k";
  if (!apps_model_count(json, "held_out", 0, about->rows, &about->held)) return "held_out";
  if (!apps_model_count(json, "epochs", 0, INT64_MAX, &about->epochs)) return "epochs";
  if (!apps_json_wide_of(json_object_get(json, "seed"), &about->seed)) return "seed";
  if (!apps_json_take_number(json, "scale", false, scale) || !(*scale > 0)) return "scale";
  if (!apps_model_count(json, "label_bytes", 0, INT64_MAX, label_bytes)) return "label_bytes";
  const char *wrong = read_errors(json, about);
  return wrong ? wrong : read_reading(json, about);
}

static pawl_status read_labels(struct apps_arrays *arrays, struct pawl_metric_model *model, uint64_t bytes, char *why) {
  pawl_status status;
  char *text = apps_arrays_next(arrays, bytes, 1, &status);
  if (!text) return apps_arrays_lack(why, status, "labels");
  if (apps_names_take(&model->labels, text, (size_t)bytes, model->about.classes)) return PAWL_OK;
  apps_free(text);
  return apps_say(why, PAWL_CORRUPT, "the labels are damaged, or there is no memory for them");
}

static pawl_status read_features(struct apps_arrays *arrays, struct pawl_metric_model *model, char *why) {
  uint64_t features = model->about.features;
  pawl_status status;
  model->frame.features = (size_t)features;
  model->ids = apps_arrays_next(arrays, features, 8, &status);
  if (!model->ids) return apps_arrays_lack(why, status, "ids of features");
  if (!apps_are_rising(model->ids, features)) return apps_say(why, PAWL_CORRUPT, "the ids of features do not rise");
  model->frame.mean = apps_arrays_next(arrays, features, 8, &status);
  if (!model->frame.mean) return apps_arrays_lack(why, status, "means of features");
  for (size_t d = 0; d < features; d++)
    if (!isfinite(model->frame.mean[d])) return apps_say(why, PAWL_CORRUPT, "a mean is not finite");
  return PAWL_OK;
}

static pawl_status read_points(struct apps_arrays *arrays, struct pawl_metric_model *model, char *why) {
  const struct pawl_metric_about *about = &model->about;
  uint64_t size = about->rows * about->rank; /* below 2^52 */
  pawl_status status;
  model->weights = apps_arrays_next(arrays, dml_model_size(model), 4, &status);
  if (!model->weights) return apps_arrays_lack(why, status, "weights");
  if (!apps_is_finite(model->weights, dml_model_size(model)))
    return apps_say(why, PAWL_CORRUPT, "a weight is not finite");
  model->points = (struct dml_points){.count = (size_t)about->rows, .width = about->rank};
  model->points.at = apps_arrays_next(arrays, size, 4, &status);
  if (!model->points.at) return apps_arrays_lack(why, status, "points");
  if (!apps_is_finite(model->points.at, (size_t)size)) return apps_say(why, PAWL_CORRUPT, "a point is not finite");
  model->points.classes = apps_arrays_next(arrays, about->rows, 4, &status);
  if (!model->points.classes) return apps_arrays_lack(why, status, "classes");
  for (size_t i = 0; i < about->rows; i++)
    if (model->points.classes[i] >= about->classes) return apps_say(why, PAWL_CORRUPT, "row %zu has no class", i + 1);
  return PAWL_OK;
}

static pawl_status read_arrays(struct apps_arrays *arrays, const json_t *header, struct pawl_metric_model *model,
                               char *why) {
  uint64_t label_bytes = 0;
  const char *wrong = read_about(header, model, &label_bytes);
  if (wrong) return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
  pawl_status status = read_labels(arrays, model, label_bytes, why);
  if (!status) status = read_features(arrays, model, why);
  if (!status) status = read_points(arrays, model, why);
  if (!status && !apps_arrays_are_over(arrays))
    status = apps_say(why, PAWL_CORRUPT, "unexpected data after the classes");
  return status;
}

pawl_status dml_model_decode(const char *bytes, size_t size, struct pawl_metric_model **model_out, char *why) {
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  pawl_status status = apps_arrays_open(&arrays, KIND, &header, why);
  if (status) return status;
  struct pawl_metric_model *model = apps_alloc_zero(1, sizeof *model);
  status = model ? read_arrays(&arrays, header, model, why) : apps_say(why, PAWL_NO_MEMORY, "out of memory");
  json_decref(header);
  if (status)
    pawl_metric_model_destroy(model);
  else
    *model_out = model;
  return status;
}

static pawl_status decode(const char *bytes, size_t size, void *model_out, char *why) {
  return dml_model_decode(bytes, size, model_out, why);
}

pawl_status pawl_metric_model_read(const char *path, struct pawl_metric_model **model_out,
                                   char error[PAWL_METRIC_TEXT]) {
  return apps_model_read(path, decode, model_out, error);
}

bool pawl_metric_model_is(const char *path) { return apps_model_file_is(path, KIND); }
