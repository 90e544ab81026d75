/* The description of a model as JSON: everything besides its weights. It is the head of pawl's format, the
 * last line of a LIBLINEAR model, and the file beside an .npy. docs/model-format.md lists the keys. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/version.h>

#include "apps/linear/model/inside.h"

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *pair(const double *values) { return json_pack("[o, o]", number(values[0]), number(values[1])); }

json_t *linear_about_make(const struct pawl_linear_model *model) {
  double class_weights[2];
  for (int i = 0; i < 2; i++) class_weights[i] = model->about.class_weights[i] != 0 ? model->about.class_weights[i] : 1;
  return json_pack(
      "{s:s, s:b, s:o, s:o, s:o, s:o, s:I, s:b, s:o, s:I, s:I, s:I, s:s, s:b, s:b, s:s, s:o, s:o, s:I, s:o}", "loss",
      pawl_linear_loss_name(model->about.loss), "regression", (int)model->about.is_regression, "labels",
      model->about.is_regression ? json_null() : pair(model->about.labels), "l1", number(model->about.l1), "l2",
      number(model->about.l2), "class_weights", pair(class_weights), "features", (json_int_t)model->about.features,
      "zero_based", (int)model->about.zero_based, "bias",
      model->about.has_bias ? number(model->about.bias) : json_null(), "hash_bits", (json_int_t)model->about.hash_bits,
      "columns", (json_int_t)model->about.columns, "label_column", (json_int_t)model->about.label_column, "label_name",
      model->about.label_name, "binary", (int)model->about.binary, "unit_rows", (int)model->about.unit_rows, "scale",
      pawl_linear_scale_name(model->about.scale), "penalty",
      model->about.scale ? number(model->about.penalty) : json_null(), "objective", number(model->about.objective),
      "weights", (json_int_t)model->about.nonzeros, "written_by", json_sprintf("pawl %s", pawl_version()));
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* If the key is absent, the value stays as it is. All return false if the value has the wrong type. */
static bool take_real(const json_t *about, const char *key, double *value) {
  const json_t *is = json_object_get(about, key);
  if (!is) return true;
  if (json_is_null(is)) *value = (double)NAN;
  if (json_is_number(is)) *value = json_number_value(is);
  return json_is_null(is) || json_is_number(is);
}

static bool take_count(const json_t *about, const char *key, uint64_t most, uint64_t *value) {
  const json_t *is = json_object_get(about, key);
  if (!is) return true;
  json_int_t count = json_integer_value(is);
  if (!json_is_integer(is) || count < 0 || (uint64_t)count > most) return false;
  *value = (uint64_t)count;
  return true;
}

static bool take_bool(const json_t *about, const char *key, bool *value) {
  const json_t *is = json_object_get(about, key);
  if (is) *value = json_is_true(is);
  return !is || json_is_boolean(is);
}

static bool take_pair(const json_t *about, const char *key, double *values) {
  const json_t *is = json_object_get(about, key);
  if (!is || json_is_null(is)) return true;
  for (size_t i = 0; i < 2; i++) {
    const json_t *one = json_array_get(is, i);
    if (!json_is_number(one)) return false;
    values[i] = json_number_value(one) + 0.0; /* turns -0 into 0, so that there is only one label 0 */
  }
  return json_array_size(is) == 2;
}

static bool take_loss(const json_t *about, enum pawl_linear_loss *loss) {
  const json_t *is = json_object_get(about, "loss");
  return !is || (json_is_string(is) && linear_loss_find(json_string_value(is), loss));
}

static bool take_scale(const json_t *about, enum pawl_linear_scale *scale) {
  const json_t *is = json_object_get(about, "scale");
  return !is || (json_is_string(is) && linear_scale_find(json_string_value(is), scale));
}

static bool take_bias(const json_t *about, struct pawl_linear_model *model) {
  const json_t *is = json_object_get(about, "bias");
  if (!is) return true;
  model->about.has_bias = json_is_number(is);
  model->about.bias = model->about.has_bias ? json_number_value(is) : 0;
  return model->about.has_bias || json_is_null(is);
}

static bool take_name(const json_t *about, struct pawl_linear_model *model) {
  const json_t *is = json_object_get(about, "label_name");
  if (!is) return true;
  if (!json_is_string(is) || json_string_length(is) >= sizeof model->about.label_name) return false;
  memcpy(model->about.label_name, json_string_value(is), json_string_length(is) + 1);
  return true;
}

pawl_status linear_about_read(const json_t *about, struct pawl_linear_model *model, char *why) {
  uint64_t hash_bits = model->about.hash_bits;
  const char *wrong = NULL;
  if (!json_is_object(about)) return apps_say(why, PAWL_CORRUPT, "the header is not a JSON object");
  const char *kind = json_string_value(json_object_get(about, "kind"));
  if (kind && strcmp(kind, "topics") == 0)
    return apps_say(why, PAWL_MISMATCH,
                    "this is a topic model, not a linear model; use 'pawl lda topics' and 'pawl lda infer'");
  if (kind && strcmp(kind, "linear") != 0)
    return apps_say(why, PAWL_MISMATCH, "this is a model of kind '%.40s', not a linear model", kind);
  if (!take_loss(about, &model->about.loss)) wrong = "loss";
  if (!take_bool(about, "regression", &model->about.is_regression)) wrong = "regression";
  if (!take_pair(about, "labels", model->about.labels)) wrong = "labels";
  if (!take_real(about, "l1", &model->about.l1)) wrong = "l1";
  if (!take_real(about, "l2", &model->about.l2)) wrong = "l2";
  if (!take_pair(about, "class_weights", model->about.class_weights)) wrong = "class_weights";
  if (!json_object_get(about, "features") || !take_count(about, "features", PAWL_ID_MAX, &model->about.features))
    wrong = "features";
  if (!take_bool(about, "zero_based", &model->about.zero_based)) wrong = "zero_based";
  if (!take_bias(about, model)) wrong = "bias";
  if (!take_count(about, "hash_bits", 62, &hash_bits)) wrong = "hash_bits";
  if (!take_count(about, "columns", PAWL_ID_MAX, &model->about.columns)) wrong = "columns";
  if (!take_count(about, "label_column", model->about.columns, &model->about.label_column)) wrong = "label_column";
  if (!take_name(about, model)) wrong = "label_name";
  if (!take_bool(about, "binary", &model->about.binary)) wrong = "binary";
  if (!take_bool(about, "unit_rows", &model->about.unit_rows)) wrong = "unit_rows";
  if (!take_scale(about, &model->about.scale)) wrong = "scale";
  if (!take_real(about, "penalty", &model->about.penalty)) wrong = "penalty";
  if (!take_real(about, "objective", &model->about.objective)) wrong = "objective";
  if (wrong) return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
  model->about.hash_bits = (uint32_t)hash_bits;
  return PAWL_OK;
}

pawl_status linear_about_parse(const char *text, size_t size, struct pawl_linear_model *model, json_t **about_out,
                               char *why) {
  json_error_t problem;
  json_t *about = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
  if (!about) return apps_say(why, PAWL_CORRUPT, "the header is not JSON: %s", problem.text);
  model->about.objective = model->about.penalty = (double)NAN;
  model->about.class_weights[0] = model->about.class_weights[1] = 1;
  pawl_status status = linear_about_read(about, model, why);
  if (status)
    json_decref(about);
  else
    *about_out = about;
  return status;
}
