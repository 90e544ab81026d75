/* Files of models. Behind the header (apps/common/model_arrays.h) are
 *
 *   labels      of the classes, each with a 0 behind it
 *   ids         u64: of the features, ascending
 *   weights     float64: those of each feature for all classes; then the constant terms
 */
#include <math.h>
#include <string.h>

#include <pawl/version.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/model_arrays.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"
#include "apps/mlr/model.h"

#define KIND "multiclass"

/* --- writing ---------------------------------------------------------------------------------------------- */

static json_t *make_header(const struct pawl_mlr_model *model) {
  const struct pawl_mlr_about *about = &model->about;
  return json_pack(
      "{s:s, s:I, s:I, s:b, s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:o}", "kind",
      KIND, "classes", (json_int_t)about->classes, "features", (json_int_t)about->features, "bias",
      (int)about->has_bias, "method", pawl_mlr_method_name(about->method), "l2", apps_json_number(about->l2), "rows",
      (json_int_t)about->rows, "epochs", (json_int_t)about->epochs, "seed", apps_json_wide(about->seed), "objective",
      apps_json_number(about->objective), "gap", apps_json_number(about->gap), "train_error",
      apps_json_number(about->train_error), "images", (int)about->is_images, "binary", (int)about->binary, "unit_rows",
      (int)about->unit_rows, "hash_bits", (json_int_t)about->hash_bits, "columns", (json_int_t)about->columns,
      "label_column", (json_int_t)about->label_column, "label_bytes", (json_int_t)model->labels.size, "written_by",
      json_sprintf("pawl %s", pawl_version()));
}

pawl_status mlr_model_fill(FILE *file, const void *context) {
  const struct pawl_mlr_model *model = context;
  const struct apps_array arrays[] = {
      {model->labels.text, model->labels.size, 1},
      {model->ids, (size_t)model->about.features, 8},
      {model->matrix.at, mlr_matrix_size(&model->matrix), 8},
  };
  return apps_arrays_write(file, make_header(model), arrays, sizeof arrays / sizeof *arrays);
}

pawl_status pawl_mlr_model_write(const struct pawl_mlr_model *model, const char *path, char error[PAWL_MLR_TEXT]) {
  return apps_model_write(path, mlr_model_fill, model, error);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static bool take_method(const json_t *json, enum pawl_mlr_method *method_out) {
  const char *name = json_string_value(json_object_get(json, "method"));
  if (!name) return false;
  *method_out = strcmp(name, "sgd") == 0 ? PAWL_MLR_SGD : PAWL_MLR_SDCA;
  return strcmp(name, pawl_mlr_method_name(*method_out)) == 0;
}

static pawl_status read_about(const json_t *json, struct pawl_mlr_about *about, uint64_t *label_bytes, char *why) {
  const char *wrong = NULL;
  if (!apps_model_count32(json, "classes", PAWL_LABELS_MAX, &about->classes) || about->classes < 2) wrong = "classes";
  if (!apps_model_count(json, "features", 0, UINT32_MAX - 2, &about->features)) wrong = "features";
  if (!apps_json_take_flag(json, "bias", &about->has_bias)) wrong = "bias";
  if (!take_method(json, &about->method)) wrong = "method";
  if (!apps_json_take_number(json, "l2", false, &about->l2) || !(about->l2 >= 0)) wrong = "l2";
  if (!apps_model_count(json, "rows", 0, INT64_MAX, &about->rows)) wrong = "rows";
  if (!apps_model_count(json, "epochs", 0, INT64_MAX, &about->epochs)) wrong = "epochs";
  if (!apps_json_wide_of(json_object_get(json, "seed"), &about->seed)) wrong = "seed";
  if (!apps_json_take_number(json, "objective", true, &about->objective)) wrong = "objective";
  if (!apps_json_take_number(json, "gap", true, &about->gap)) wrong = "gap";
  if (!apps_json_take_number(json, "train_error", true, &about->train_error)) wrong = "train_error";
  if (!apps_json_take_flag(json, "images", &about->is_images)) wrong = "images";
  if (!apps_json_take_flag(json, "binary", &about->binary)) wrong = "binary";
  if (!apps_json_take_flag(json, "unit_rows", &about->unit_rows)) wrong = "unit_rows";
  if (!apps_model_count32(json, "hash_bits", 62, &about->hash_bits)) wrong = "hash_bits";
  if (!apps_model_count(json, "columns", 0, INT64_MAX, &about->columns)) wrong = "columns";
  if (!apps_model_count(json, "label_column", 0, about->columns, &about->label_column)) wrong = "label_column";
  if (!apps_model_count(json, "label_bytes", 0, INT64_MAX, label_bytes)) wrong = "label_bytes";
  if (wrong) return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
  return PAWL_OK;
}

static pawl_status read_labels(struct apps_arrays *arrays, struct pawl_mlr_model *model, uint64_t bytes, char *why) {
  pawl_status status;
  char *text = apps_arrays_next(arrays, bytes, 1, &status);
  if (!text) return apps_arrays_lack(why, status, "labels");
  if (apps_names_take(&model->labels, text, (size_t)bytes, model->about.classes)) return PAWL_OK;
  apps_free(text);
  return apps_say(why, PAWL_CORRUPT, "the labels are damaged, or there is no memory for them");
}

static pawl_status read_ids(struct apps_arrays *arrays, struct pawl_mlr_model *model, char *why) {
  pawl_status status;
  model->ids = apps_arrays_next(arrays, model->about.features, 8, &status);
  if (!model->ids) return apps_arrays_lack(why, status, "ids of features");
  if (!apps_are_rising(model->ids, model->about.features))
    return apps_say(why, PAWL_CORRUPT, "the ids of features do not rise");
  return PAWL_OK;
}

/* The matrix of a model that was read has no memory for dense rows: it is not trained any more. */
static pawl_status read_weights(struct apps_arrays *arrays, struct pawl_mlr_model *model, char *why) {
  const struct pawl_mlr_about *about = &model->about;
  pawl_status status;
  model->matrix = (struct mlr_matrix){
      .classes = about->classes, .features = (size_t)about->features, .has_bias = about->has_bias, .factor = 1};
  uint64_t count = (about->features + about->has_bias) * about->classes; /* below 2^57 */
  model->matrix.at = apps_arrays_next(arrays, count, 8, &status);
  if (!model->matrix.at) return apps_arrays_lack(why, status, "weights");
  return mlr_model_is_finite(model) ? PAWL_OK : apps_say(why, PAWL_CORRUPT, "a weight is not finite");
}

static pawl_status read_arrays(struct apps_arrays *arrays, const json_t *header, struct pawl_mlr_model *model,
                               char *why) {
  uint64_t label_bytes = 0;
  pawl_status status = read_about(header, &model->about, &label_bytes, why);
  if (!status) status = read_labels(arrays, model, label_bytes, why);
  if (!status) status = read_ids(arrays, model, why);
  if (!status) status = read_weights(arrays, model, why);
  if (!status && !apps_arrays_are_over(arrays))
    status = apps_say(why, PAWL_CORRUPT, "unexpected data after the weights");
  return status;
}

pawl_status mlr_model_decode(const char *bytes, size_t size, struct pawl_mlr_model **model_out, char *why) {
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  pawl_status status = apps_arrays_open(&arrays, KIND, &header, why);
  if (status) return status;
  struct pawl_mlr_model *model = apps_alloc_zero(1, sizeof *model);
  status = model ? read_arrays(&arrays, header, model, why) : apps_say(why, PAWL_NO_MEMORY, "out of memory");
  json_decref(header);
  if (status)
    pawl_mlr_model_destroy(model);
  else
    *model_out = model;
  return status;
}

static pawl_status decode(const char *bytes, size_t size, void *model_out, char *why) {
  return mlr_model_decode(bytes, size, model_out, why);
}

pawl_status pawl_mlr_model_read(const char *path, struct pawl_mlr_model **model_out, char error[PAWL_MLR_TEXT]) {
  return apps_model_read(path, decode, model_out, error);
}

bool pawl_mlr_model_is(const char *path) { return apps_model_file_is(path, KIND); }
