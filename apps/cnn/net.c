#include "apps/cnn/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/cnn/random.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

/* --- shapes ---------------------------------------------------------------------------------------------- */

/* False: more than CNN_VALUES_MAX elements. */
static bool fits(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
         product <= CNN_VALUES_MAX;
}

static pawl_status too_large(const struct cnn_spec *spec, size_t number, char *error) {
  return apps_say(error, PAWL_TOO_LARGE, "layer %zu of %s has more than 2^31 values; use smaller images", number + 1,
                  spec->name);
}

/* The number of windows in `length` pixels; 0: there is no room for one. */
static uint64_t windows(uint64_t length, const struct cnn_layer *layer, uint32_t size) {
  uint64_t padded = length + 2 * (uint64_t)layer->pad;
  return padded < size ? 0 : (padded - size) / layer->stride + 1;
}

/* Sets the output of a layer with a window. */
static pawl_status shape_window(const struct cnn_spec *spec, size_t number, struct cnn_layer *layer, uint32_t channels,
                                char *error) {
  uint64_t height = windows(layer->in.height, layer, layer->size_y);
  uint64_t width = windows(layer->in.width, layer, layer->size_x);
  if (height == 0 || width == 0)
    return apps_say(error, PAWL_MISMATCH,
                    "the images are too small for %s: its layer %zu needs %u x %u pixels and has %u x %u", spec->name,
                    number + 1, layer->size_y, layer->size_x, layer->in.height, layer->in.width);
  if (height > UINT32_MAX || width > UINT32_MAX || !fits(channels, height, width) ||
      !fits(layer->in.channels, layer->size_y, layer->size_x))
    return too_large(spec, number, error);
  layer->out = (struct cnn_shape){channels, (uint32_t)height, (uint32_t)width};
  return PAWL_OK;
}

static pawl_status shape_layer(const struct cnn_net *net, size_t number, struct cnn_layer *layer, char *error) {
  const struct cnn_layer_spec *is = &net->spec->layers[number];
  layer->kind = is->kind;
  layer->in = number > 0 ? net->layers[number - 1].out : net->input;
  layer->size_y = layer->size_x = is->size;
  layer->stride = is->stride;
  layer->pad = is->pad;
  layer->drop = is->drop;
  switch (is->kind) {
  case CNN_CONV:
    return shape_window(net->spec, number, layer, is->out, error);
  case CNN_POOL:
    return shape_window(net->spec, number, layer, layer->in.channels, error);
  case CNN_FULL:
    layer->size_y = layer->in.height;
    layer->size_x = layer->in.width;
    layer->stride = 1;
    return shape_window(net->spec, number, layer, is->out ? is->out : net->classes, error);
  default:
    layer->out = layer->in;
    return PAWL_OK;
  }
}

/* --- tensors --------------------------------------------------------------------------------------------- */

static bool add_tensor(struct cnn_net *net, const char *kind, unsigned number, const char *what, const uint32_t *shape,
                       uint32_t dimensions, size_t *offset_out) {
  struct pawl_cnn_tensor *tensor = &net->tensors[net->tensor_count++];
  snprintf(tensor->name, sizeof tensor->name, "%s%u.%s", kind, number, what);
  tensor->offset = *offset_out = net->parameters;
  tensor->count = 1;
  tensor->dimensions = dimensions;
  for (uint32_t i = 0; i < dimensions; i++) {
    tensor->shape[i] = shape[i];
    if (__builtin_mul_overflow(tensor->count, shape[i], &tensor->count)) return false;
  }
  net->parameters += (size_t)tensor->count;
  return tensor->count <= CNN_VALUES_MAX && net->parameters <= CNN_VALUES_MAX;
}

/* The tensors of each layer that has any: weights, then biases. */
static pawl_status add_tensors(struct cnn_net *net, char *error) {
  unsigned convolutions = 0, fulls = 0;
  for (size_t i = 0; i < net->count; i++) {
    struct cnn_layer *layer = &net->layers[i];
    bool is_conv = layer->kind == CNN_CONV;
    if (!is_conv && layer->kind != CNN_FULL) continue;
    const char *kind = is_conv ? "conv" : "full";
    unsigned number = is_conv ? ++convolutions : ++fulls;
    uint32_t outputs = layer->out.channels;
    uint32_t conv[] = {outputs, layer->in.channels, layer->size_y, layer->size_x};
    uint32_t full[] = {outputs, (uint32_t)cnn_layer_inputs(layer)};
    if (!add_tensor(net, kind, number, "weights", is_conv ? conv : full, is_conv ? 4 : 2, &layer->weights) ||
        !add_tensor(net, kind, number, "biases", &outputs, 1, &layer->biases))
      return too_large(net->spec, i, error);
  }
  return PAWL_OK;
}

/* --- nets ------------------------------------------------------------------------------------------------ */

static pawl_status fill(struct cnn_net *net, char *error) {
  net->layers = apps_alloc_zero(net->spec->count, sizeof *net->layers);
  net->tensors = apps_alloc_zero(2 * net->spec->count, sizeof *net->tensors);
  if (!net->layers || !net->tensors) return apps_say(error, PAWL_NO_MEMORY, "out of memory");
  for (; net->count < net->spec->count; net->count++) {
    pawl_status status = shape_layer(net, net->count, &net->layers[net->count], error);
    if (status) return status;
  }
  return add_tensors(net, error);
}

pawl_status cnn_net_create(const struct cnn_spec *spec, struct cnn_shape input, uint32_t classes,
                           struct cnn_net **net_out, char *error) {
  if (input.channels == 0 || input.height == 0 || input.width == 0 || classes == 0)
    return apps_say(error, PAWL_INVALID, "a net needs images with channels and pixels, and classes");
  if (!fits(input.channels, input.height, input.width))
    return apps_say(error, PAWL_TOO_LARGE, "an image has more than 2^31 values");
  struct cnn_net *net = apps_alloc_zero(1, sizeof *net);
  if (!net) return apps_say(error, PAWL_NO_MEMORY, "out of memory");
  net->spec = spec;
  net->input = input;
  net->classes = classes;
  pawl_status status = fill(net, error);
  if (status)
    cnn_net_destroy(net);
  else
    *net_out = net;
  return status;
}

void cnn_net_destroy(struct cnn_net *net) {
  if (!net) return;
  apps_free(net->layers);
  apps_free(net->tensors);
  apps_free(net);
}

void cnn_net_start(const struct cnn_net *net, uint64_t seed, float *parameters) {
  memset(parameters, 0, net->parameters * sizeof *parameters);
  for (size_t i = 0; i < net->count; i++) {
    const struct cnn_layer *layer = &net->layers[i];
    if (layer->kind != CNN_CONV && layer->kind != CNN_FULL) continue;
    struct apps_random random = apps_random_of(seed, CNN_FOR_WEIGHTS, i, 0);
    size_t inputs = cnn_layer_inputs(layer), weights = inputs * layer->out.channels;
    float bound = sqrtf(6 / (float)inputs);
    for (size_t j = 0; j < weights; j++) parameters[layer->weights + j] = bound * (2 * cnn_unit(&random) - 1);
  }
}
