/* The bytes of a file of a net: apps/common/model_code.h with "kind": "cnn" in the header, and
 *
 *   parameters                  float32, tensor by tensor as the header lists them
 *
 * Every number of a file is checked against the file's size before it is used; the tensors must be those of the net.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include <pawl/version.h>

#include "apps/cnn/model.h"
#include "apps/common/json.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"

/* --- writing --------------------------------------------------------------------------------------------- */

static json_t *make_tensors(const struct cnn_net *net) {
  json_t *list = json_array();
  for (size_t i = 0; i < net->tensor_count; i++) {
    const struct pawl_cnn_tensor *tensor = &net->tensors[i];
    json_t *shape = json_array();
    for (uint32_t j = 0; j < tensor->dimensions; j++) json_array_append_new(shape, json_integer(tensor->shape[j]));
    json_array_append_new(list, json_pack("{s:s, s:o}", "name", tensor->name, "shape", shape));
  }
  return list;
}

static json_t *make_about(const struct pawl_cnn_model *model) {
  const struct pawl_cnn_about *about = &model->about;
  return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o}", "kind", "cnn",
                   "net", about->net, "channels", (json_int_t)about->channels, "height", (json_int_t)about->height,
                   "width", (json_int_t)about->width, "classes", (json_int_t)about->classes, "mean",
                   apps_json_numbers(about->mean, about->channels), "deviation",
                   apps_json_numbers(about->deviation, about->channels), "images", (json_int_t)about->images, "epochs",
                   (json_int_t)about->epochs, "seed", apps_json_wide(about->seed), "loss",
                   apps_json_number(about->loss), "test_error", apps_json_number(about->test_error), "parameters",
                   (json_int_t)about->parameters, "tensors", make_tensors(model->net), "written_by",
                   json_sprintf("pawl %s", pawl_version()));
}

static void put_parameters(struct apps_sink *sink, const void *context) {
  const struct pawl_cnn_model *model = context;
  apps_sink_numbers(sink, model->parameters, model->net->parameters, 4);
}

pawl_status cnn_model_fill(FILE *file, const void *model) {
  return apps_model_fill(file, make_about(model), put_parameters, model);
}

/* --- reading: the header --------------------------------------------------------------------------------- */

static bool take_u32(const json_t *about, const char *key, uint32_t most, uint32_t *count_out) {
  uint64_t count = 0;
  if (!apps_model_count(about, key, 1, most, &count)) return false;
  *count_out = (uint32_t)count;
  return true;
}

/* A number, or null for NAN. */
static bool take_number(const json_t *about, const char *key, double *number_out) {
  const json_t *is = json_object_get(about, key);
  *number_out = apps_json_number_of(is);
  return json_is_null(is) || json_is_number(is);
}

/* `channels` numbers that are finite; with `positive` above 0. */
static bool take_scaling(const json_t *about, const char *key, uint32_t channels, bool positive, double *numbers_out) {
  if (!apps_json_numbers_of(json_object_get(about, key), channels, numbers_out)) return false;
  for (uint32_t i = 0; i < channels; i++)
    if (!isfinite(numbers_out[i]) || (positive && !(numbers_out[i] > 0))) return false;
  return true;
}

static pawl_status read_about(const json_t *json, struct pawl_cnn_about *about, char *why) {
  const char *kind = json_string_value(json_object_get(json, "kind")), *wrong = NULL;
  const char *net = json_string_value(json_object_get(json, "net"));
  if (!kind || strcmp(kind, "cnn") != 0)
    return apps_say(why, PAWL_MISMATCH, "this is a %.64s model, not a convolutional net",
                    !kind                         ? "linear"
                    : strcmp(kind, "topics") == 0 ? "topic"
                                                  : kind);
  if (!net || strlen(net) >= sizeof about->net) wrong = "net";
  if (!take_u32(json, "channels", PAWL_CNN_CHANNELS_MAX, &about->channels)) wrong = "channels";
  if (!take_u32(json, "height", UINT32_MAX, &about->height)) wrong = "height";
  if (!take_u32(json, "width", UINT32_MAX, &about->width)) wrong = "width";
  if (!take_u32(json, "classes", 256, &about->classes)) wrong = "classes";
  if (!wrong && !take_scaling(json, "mean", about->channels, false, about->mean)) wrong = "mean";
  if (!wrong && !take_scaling(json, "deviation", about->channels, true, about->deviation)) wrong = "deviation";
  if (!apps_model_count(json, "images", 0, INT64_MAX, &about->images)) wrong = "images";
  if (!apps_model_count(json, "epochs", 0, INT64_MAX, &about->epochs)) wrong = "epochs";
  if (!apps_json_wide_of(json_object_get(json, "seed"), &about->seed)) wrong = "seed";
  if (!take_number(json, "loss", &about->loss)) wrong = "loss";
  if (!take_number(json, "test_error", &about->test_error)) wrong = "test_error";
  if (!apps_model_count(json, "parameters", 0, INT64_MAX, &about->parameters)) wrong = "parameters";
  if (wrong) return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
  memcpy(about->net, net, strlen(net) + 1);
  return PAWL_OK;
}

static bool is_same(const json_t *json, const struct pawl_cnn_tensor *tensor) {
  const char *name = json_string_value(json_object_get(json, "name"));
  const json_t *shape = json_object_get(json, "shape");
  if (!name || strcmp(name, tensor->name) != 0 || json_array_size(shape) != tensor->dimensions) return false;
  for (uint32_t i = 0; i < tensor->dimensions; i++)
    if (json_integer_value(json_array_get(shape, i)) != (json_int_t)tensor->shape[i]) return false;
  return true;
}

static pawl_status compare_tensors(const json_t *json, const struct cnn_net *net, char *why) {
  const json_t *list = json_object_get(json, "tensors");
  bool is_fine = json_array_size(list) == net->tensor_count;
  for (size_t i = 0; is_fine && i < net->tensor_count; i++)
    is_fine = is_same(json_array_get(list, i), &net->tensors[i]);
  if (is_fine) return PAWL_OK;
  return apps_say(why, PAWL_UNSUPPORTED,
                  "the tensors are not those of %s; a different version of pawl wrote this model", net->spec->name);
}

/* --- reading: the parameters ----------------------------------------------------------------------------- */

static pawl_status check_size(const char *bytes, size_t size, size_t begin, uint64_t parameters, char *why) {
  size_t rest = size - begin;
  if (rest < APPS_MODEL_SUM || parameters > (rest - APPS_MODEL_SUM) / 4)
    return apps_say(why, PAWL_TRUNCATED, "the file ends too early; expected %" PRIu64 " parameters", parameters);
  if (rest != parameters * 4 + APPS_MODEL_SUM)
    return apps_say(why, PAWL_CORRUPT, "unexpected data after the parameters");
  return apps_model_sum(bytes, size, why);
}

static pawl_status read_parameters(const char *bytes, struct pawl_cnn_model *model, char *why) {
  for (size_t i = 0; i < model->net->parameters; i++) {
    uint32_t bits = (uint32_t)apps_model_number(bytes + 4 * i, 4);
    memcpy(&model->parameters[i], &bits, 4);
  }
  return cnn_model_is_finite(model) ? PAWL_OK : apps_say(why, PAWL_CORRUPT, "a parameter is not finite");
}

static pawl_status read_model(const char *bytes, size_t size, size_t begin, const json_t *json,
                              struct pawl_cnn_model **model_out, char *why) {
  struct pawl_cnn_about about = {.channels = 0};
  pawl_status status = read_about(json, &about, why);
  if (!status) status = check_size(bytes, size, begin, about.parameters, why);
  if (!status) status = cnn_model_create(&about, model_out, why);
  if (!status) status = compare_tensors(json, (*model_out)->net, why);
  if (!status) status = read_parameters(bytes + begin, *model_out, why);
  return status;
}

pawl_status cnn_model_decode(const char *bytes, size_t size, struct pawl_cnn_model **model_out, char *why) {
  struct pawl_cnn_model *model = NULL;
  json_t *json = NULL;
  size_t begin = 0;
  pawl_status status = apps_model_head(bytes, size, "model", &begin, &json, why);
  if (status) return status;
  status = read_model(bytes, size, begin, json, &model, why);
  json_decref(json);
  if (status)
    pawl_cnn_model_destroy(model);
  else
    *model_out = model;
  return status;
}

bool cnn_model_begins(const char *bytes, size_t size) { return apps_model_is_of(bytes, size, "cnn"); }
