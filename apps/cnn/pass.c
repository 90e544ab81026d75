#include "apps/cnn/pass.h"

#include "apps/common/memory.h"

struct cnn_pass {
  const struct cnn_net *net;
  bool trains;
  bool drops;                  /* the last forward pass has used dropout */
  const struct cnn_sink *sink; /* NULL: none */
  float *input;                /* of the first layer */
  float **outputs;             /* of each layer; an in-place layer has that of the layer before it */
  uint8_t **bytes;             /* of each layer: the picks of POOL, the kept values of DROPOUT; else NULL */
  float *columns;              /* of CONV and FULL, one after another */
  float *slopes[2];
};

/* --- memory ---------------------------------------------------------------------------------------------- */

/* `count` values of `each` bytes for every image; NULL if there is no memory, with the status why. */
static void *make(size_t images, size_t count, size_t each, pawl_status *status) {
  size_t values, size;
  if (*status) return NULL;
  if (__builtin_mul_overflow(images, count, &values) || values > CNN_VALUES_MAX ||
      __builtin_mul_overflow(values, each, &size)) {
    *status = PAWL_TOO_LARGE;
    return NULL;
  }
  void *memory = apps_alloc(size ? size : 1);
  if (!memory) *status = PAWL_NO_MEMORY;
  return memory;
}

static pawl_status make_layer(struct cnn_pass *pass, size_t number, size_t images) {
  const struct cnn_layer *layer = &pass->net->layers[number];
  size_t size = cnn_shape_size(layer->out);
  pawl_status status = PAWL_OK;
  if (cnn_layer_is_in_place(layer))
    pass->outputs[number] = number > 0 ? pass->outputs[number - 1] : pass->input;
  else
    pass->outputs[number] = make(images, size, sizeof(float), &status);
  if (layer->kind == CNN_POOL || (layer->kind == CNN_DROPOUT && pass->trains))
    pass->bytes[number] = make(images, size, 1, &status);
  return status;
}

static pawl_status make_buffers(struct cnn_pass *pass, size_t images) {
  size_t columns = 0, slope = 0;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < pass->net->count; i++) {
    const struct cnn_layer *layer = &pass->net->layers[i];
    bool has_columns = layer->kind == CNN_CONV || layer->kind == CNN_FULL;
    size_t wanted = has_columns ? cnn_conv_columns(layer, images) : 0;
    if (wanted > columns) columns = wanted;
    if (cnn_shape_size(layer->out) > slope) slope = cnn_shape_size(layer->out);
    if (cnn_shape_size(layer->in) > slope) slope = cnn_shape_size(layer->in);
  }
  pass->columns = make(1, columns, sizeof(float), &status);
  for (int i = 0; i < 2 && pass->trains; i++) pass->slopes[i] = make(images, slope, sizeof(float), &status);
  return status;
}

static pawl_status fill(struct cnn_pass *pass, size_t images) {
  size_t count = pass->net->count;
  pawl_status status = PAWL_OK;
  pass->outputs = apps_alloc_zero(count, sizeof *pass->outputs);
  pass->bytes = apps_alloc_zero(count, sizeof *pass->bytes);
  if (!pass->outputs || !pass->bytes) return PAWL_NO_MEMORY;
  pass->input = make(images, cnn_shape_size(pass->net->input), sizeof(float), &status);
  for (size_t i = 0; i < count && !status; i++) status = make_layer(pass, i, images);
  return status ? status : make_buffers(pass, images);
}

pawl_status cnn_pass_create(const struct cnn_net *net, size_t images, bool trains, struct cnn_pass **pass_out) {
  struct cnn_pass *pass = apps_alloc_zero(1, sizeof *pass);
  if (!pass) return PAWL_NO_MEMORY;
  pass->net = net;
  pass->trains = trains;
  pawl_status status = fill(pass, images);
  if (status)
    cnn_pass_destroy(pass);
  else
    *pass_out = pass;
  return status;
}

void cnn_pass_destroy(struct cnn_pass *pass) {
  if (!pass) return;
  for (size_t i = 0; i < pass->net->count; i++) {
    if (pass->outputs && !cnn_layer_is_in_place(&pass->net->layers[i])) apps_free(pass->outputs[i]);
    if (pass->bytes) apps_free(pass->bytes[i]);
  }
  apps_free(pass->outputs);
  apps_free(pass->bytes);
  apps_free(pass->input);
  apps_free(pass->columns);
  apps_free(pass->slopes[0]);
  apps_free(pass->slopes[1]);
  apps_free(pass);
}

void cnn_pass_divert(struct cnn_pass *pass, const struct cnn_sink *sink) { pass->sink = sink; }

float *cnn_pass_input(struct cnn_pass *pass) { return pass->input; }

/* --- forward and backward -------------------------------------------------------------------------------- */

/* NULL: the layer's gradient stays here. */
static const struct cnn_sink *sink_of(const struct cnn_pass *pass, size_t number) {
  bool is_taken = pass->sink && number < 64 && (pass->sink->layers >> number & 1);
  return is_taken && pass->net->layers[number].kind == CNN_FULL ? pass->sink : NULL;
}

static const float *input_of(const struct cnn_pass *pass, size_t number) {
  return number > 0 ? pass->outputs[number - 1] : pass->input;
}

const float *cnn_pass_forward(struct cnn_pass *pass, const float *parameters, size_t images,
                              const struct cnn_drops *drops) {
  pass->drops = drops != NULL;
  for (size_t i = 0; i < pass->net->count; i++) {
    const struct cnn_layer *layer = &pass->net->layers[i];
    const float *input = input_of(pass, i);
    float *output = pass->outputs[i];
    switch (layer->kind) {
    case CNN_CONV:
    case CNN_FULL:
      cnn_conv_forward(layer, images, parameters, input, pass->columns, output);
      break;
    case CNN_POOL:
      cnn_pool_forward(layer, images, input, output, pass->bytes[i]);
      break;
    case CNN_RELU:
      cnn_relu_forward(images * cnn_shape_size(layer->out), output);
      break;
    case CNN_DROPOUT:
      if (drops) cnn_dropout_forward(layer, i, images, drops, output, pass->bytes[i]);
      break;
    }
  }
  return pass->outputs[pass->net->count - 1];
}

/* Turns the slope of a layer's output, in slopes[*at], into that of its input, and changes *at if that is elsewhere. */
static void go_back(struct cnn_pass *pass, size_t number, const float *parameters, size_t images, float *gradient,
                    int *at) {
  const struct cnn_layer *layer = &pass->net->layers[number];
  size_t count = images * cnn_shape_size(layer->out);
  float *slope = pass->slopes[*at], *other = number > 0 ? pass->slopes[1 - *at] : NULL; /* images need no slope */
  switch (layer->kind) {
  case CNN_CONV:
  case CNN_FULL:
    cnn_conv_backward(layer, images, parameters, input_of(pass, number), slope, pass->columns, gradient, other,
                      sink_of(pass, number));
    *at = 1 - *at;
    break;
  case CNN_POOL:
    if (other) cnn_pool_backward(layer, images, slope, pass->bytes[number], other);
    *at = 1 - *at;
    break;
  case CNN_RELU:
    cnn_relu_backward(count, pass->outputs[number], slope);
    break;
  case CNN_DROPOUT:
    if (pass->drops) cnn_dropout_backward(layer, count, pass->bytes[number], slope);
    break;
  }
}

double cnn_pass_backward(struct cnn_pass *pass, const float *parameters, size_t images, const uint8_t *labels,
                         float *gradient, size_t *wrong_out) {
  int at = 0;
  const float *scores = pass->outputs[pass->net->count - 1];
  double loss = cnn_loss(pass->net->classes, images, scores, labels, pass->slopes[at], wrong_out);
  for (size_t i = pass->net->count; i-- > 0;) go_back(pass, i, parameters, images, gradient, &at);
  return loss;
}
