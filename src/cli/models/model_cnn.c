#include "cli/models/model_cnn.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <pawl/cnn.h>

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* The Euclidean length. */
static double norm_of(const struct pawl_cnn_model *model, const struct pawl_cnn_tensor *tensor) {
  const float *values = pawl_cnn_model_parameters(model) + tensor->offset;
  double sum = 0;
  for (uint64_t i = 0; i < tensor->count; i++) sum += (double)values[i] * (double)values[i];
  return sqrt(sum);
}

static json_t *tensors_json(const struct pawl_cnn_model *model) {
  const struct pawl_cnn_tensor *tensor;
  json_t *list = json_array();
  for (size_t i = 0; (tensor = pawl_cnn_model_tensor(model, i)) != NULL; i++) {
    json_t *shape = json_array();
    for (uint32_t j = 0; j < tensor->dimensions; j++) json_array_append_new(shape, json_integer(tensor->shape[j]));
    json_array_append_new(list,
                          json_pack("{s:s, s:I, s:o, s:o}", "name", tensor->name, "offset", (json_int_t)tensor->offset,
                                    "shape", shape, "norm", real(norm_of(model, tensor))));
  }
  return list;
}

static json_t *model_json(const struct pawl_cnn_model *model, const struct pawl_cnn_about *about) {
  return json_pack("{s:s, s:s, s:[I, I, I], s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "kind", "cnn", "net", about->net,
                   "input", (json_int_t)about->channels, (json_int_t)about->height, (json_int_t)about->width, "classes",
                   (json_int_t)about->classes, "parameters", (json_int_t)about->parameters, "images",
                   (json_int_t)about->images, "epochs", (json_int_t)about->epochs, "loss", real(about->loss),
                   "test_error", real(about->test_error), "tensors", tensors_json(model));
}

static void print_tensor(const struct pawl_cnn_model *model, const struct pawl_cnn_tensor *tensor) {
  char shape[64];
  int length = 0;
  for (uint32_t i = 0; i < tensor->dimensions; i++)
    length += snprintf(shape + length, sizeof shape - (size_t)length, "%s%" PRIu32, i ? " x " : "", tensor->shape[i]);
  printf("  %-16s %-20s norm %.4g\n", tensor->name, shape, norm_of(model, tensor));
}

static void print_model(const struct pawl_cnn_model *model, const struct pawl_cnn_about *about) {
  const struct pawl_cnn_tensor *tensor;
  printf("%-12s %s, a convolutional net of %" PRIu64 " parameters\n", "net", about->net, about->parameters);
  printf("%-12s %" PRIu32 " x %" PRIu32 " x %" PRIu32 ", in %" PRIu32 " classes\n", "images", about->channels,
         about->height, about->width, about->classes);
  printf("%-12s %" PRIu64 " epochs on %" PRIu64 " images, loss %.6g\n", "trained", about->epochs, about->images,
         about->loss);
  if (!isnan(about->test_error)) printf("%-12s %.2f %%\n", "test error", 100 * about->test_error);
  printf("\n");
  for (size_t i = 0; (tensor = pawl_cnn_model_tensor(model, i)) != NULL; i++) print_tensor(model, tensor);
}

int pwi_model_cnn_show(const struct pwi_command *command, const char *path, bool json) {
  struct pawl_cnn_model *model;
  struct pawl_cnn_about about;
  char error[PAWL_CNN_TEXT];
  int exit_code = PWI_EXIT_OK;
  if (pawl_cnn_model_read(path, &model, error)) return pwi_cli_failure(command, "%s", error);
  pawl_cnn_model_about(model, &about);
  if (json)
    exit_code = pwi_cli_print_json(command, model_json(model, &about));
  else
    print_model(model, &about);
  pawl_cnn_model_destroy(model);
  return exit_code;
}
