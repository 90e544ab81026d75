/* Convolution as a product of matrices (im2col): each window of the images becomes a column, so that
 *
 *   output = weights x columns        [outputs][windows] = [outputs][inputs] x [inputs][windows]
 *
 * Several images share one product, as many as give columns that fit into a cache near the processor. A window of
 * 1 x 1, and a FULL layer after another one, need no columns: the input itself has this layout. */
#include "apps/cnn/layers.h"

#include <string.h>

#include "apps/cnn/blas.h"

#define COLUMNS_WANTED ((size_t)1 << 18) /* floats: 1 MB */

static bool is_plain(const struct cnn_layer *layer) {
  return layer->size_y == 1 && layer->size_x == 1 && layer->stride == 1 && layer->pad == 0;
}

/* The number of images in one product. */
static size_t group_size(const struct cnn_layer *layer, size_t images) {
  size_t each = cnn_layer_inputs(layer) * cnn_shape_plane(layer->out), group = COLUMNS_WANTED / each;
  if (is_plain(layer) || group >= images) return images;
  return group > 0 ? group : 1;
}

size_t cnn_conv_columns(const struct cnn_layer *layer, size_t images) {
  if (is_plain(layer)) return 0;
  return cnn_layer_inputs(layer) * cnn_shape_plane(layer->out) * group_size(layer, images);
}

/* --- windows to columns, and back ------------------------------------------------------------------------ */

/* The outputs [begin, end) of a row whose pixel for this place in the window lies in the image; the others see zeros
 * of the border. The pixel of output `o` is o * stride + place - pad. */
struct cnn_inside {
  size_t begin, end;
};

static struct cnn_inside inside_of(size_t outputs, size_t length, size_t place, size_t stride, size_t pad) {
  struct cnn_inside inside = {pad > place ? (pad - place + stride - 1) / stride : 0, 0};
  if (length + pad > place) inside.end = (length + pad - place - 1) / stride + 1;
  if (inside.end > outputs) inside.end = outputs;
  if (inside.begin > inside.end) inside.begin = inside.end;
  return inside;
}

/* One row of the columns is one place in the window of one channel. */
struct cnn_place {
  const struct cnn_layer *layer;
  struct cnn_inside y, x;
  size_t row, column; /* in the window */
};

static struct cnn_place place_of(const struct cnn_layer *layer, size_t row, size_t column) {
  return (struct cnn_place){layer, inside_of(layer->out.height, layer->in.height, row, layer->stride, layer->pad),
                            inside_of(layer->out.width, layer->in.width, column, layer->stride, layer->pad), row,
                            column};
}

/* The offset in an image of the pixel of the output (y, x). */
static size_t pixel_of(const struct cnn_place *place, size_t y, size_t x) {
  const struct cnn_layer *layer = place->layer;
  return (y * layer->stride + place->row - layer->pad) * layer->in.width + x * layer->stride + place->column -
         layer->pad;
}

/* The outputs of one image. */
static void gather_image(const struct cnn_place *place, const float *image, float *to) {
  const struct cnn_layer *layer = place->layer;
  size_t width = layer->out.width, stride = layer->stride, begin = place->x.begin, end = place->x.end;
  if (place->y.end - place->y.begin < layer->out.height || end - begin < width)
    memset(to, 0, cnn_shape_plane(layer->out) * sizeof *to);
  if (begin == end) return;
  for (size_t y = place->y.begin; y < place->y.end; y++) {
    const float *from = image + pixel_of(place, y, begin);
    float *row = to + y * width + begin;
    if (stride == 1)
      memcpy(row, from, (end - begin) * sizeof *row);
    else
      for (size_t x = 0; x < end - begin; x++) row[x] = from[x * stride];
  }
}

static void scatter_image(const struct cnn_place *place, const float *from, float *image) {
  const struct cnn_layer *layer = place->layer;
  size_t width = layer->out.width, stride = layer->stride, begin = place->x.begin, end = place->x.end;
  if (begin == end) return;
  for (size_t y = place->y.begin; y < place->y.end; y++) {
    float *to = image + pixel_of(place, y, begin);
    const float *row = from + y * width + begin;
    for (size_t x = 0; x < end - begin; x++) to[x * stride] += row[x];
  }
}

/* Some of the images of a batch. */
struct cnn_group {
  size_t images; /* of the batch */
  size_t first, count;
};

static void gather(const struct cnn_layer *layer, struct cnn_group group, const float *input, float *columns) {
  size_t plane = cnn_shape_plane(layer->in), outputs = cnn_shape_plane(layer->out);
  for (size_t c = 0; c < layer->in.channels; c++)
    for (size_t row = 0; row < layer->size_y; row++)
      for (size_t column = 0; column < layer->size_x; column++) {
        struct cnn_place place = place_of(layer, row, column);
        const float *from = input + (c * group.images + group.first) * plane;
        for (size_t i = 0; i < group.count; i++, from += plane, columns += outputs) gather_image(&place, from, columns);
      }
}

static void scatter(const struct cnn_layer *layer, struct cnn_group group, const float *columns, float *input_slope) {
  size_t plane = cnn_shape_plane(layer->in), outputs = cnn_shape_plane(layer->out);
  for (size_t c = 0; c < layer->in.channels; c++)
    for (size_t row = 0; row < layer->size_y; row++)
      for (size_t column = 0; column < layer->size_x; column++) {
        struct cnn_place place = place_of(layer, row, column);
        float *to = input_slope + (c * group.images + group.first) * plane;
        for (size_t i = 0; i < group.count; i++, to += plane, columns += outputs) scatter_image(&place, columns, to);
      }
}

/* The columns of a group as a matrix, gathered into `columns` if need be. */
static struct cnn_matrix columns_of(const struct cnn_layer *layer, struct cnn_group group, const float *input,
                                    float *columns) {
  size_t outputs = cnn_shape_plane(layer->out);
  if (is_plain(layer)) return (struct cnn_matrix){input + group.first * outputs, group.images * outputs, false};
  gather(layer, group, input, columns);
  return (struct cnn_matrix){columns, group.count * outputs, false};
}

/* --- forward --------------------------------------------------------------------------------------------- */

static void set_biases(const struct cnn_layer *layer, size_t images, const float *biases, float *output) {
  size_t count = images * cnn_shape_plane(layer->out);
  for (size_t c = 0; c < layer->out.channels; c++)
    for (size_t i = 0; i < count; i++) output[c * count + i] = biases[c];
}

void cnn_conv_forward(const struct cnn_layer *layer, size_t images, const float *parameters, const float *input,
                      float *columns, float *output) {
  size_t inputs = cnn_layer_inputs(layer), outputs = cnn_shape_plane(layer->out), step = group_size(layer, images);
  struct cnn_matrix weights = {parameters + layer->weights, inputs, false};
  set_biases(layer, images, parameters + layer->biases, output);
  for (size_t first = 0; first < images; first += step) {
    struct cnn_group group = {images, first, images - first < step ? images - first : step};
    struct cnn_matrix matrix = columns_of(layer, group, input, columns);
    cnn_multiply(layer->out.channels, group.count * outputs, inputs, weights, matrix, true, output + first * outputs,
                 images * outputs);
  }
}

/* --- backward -------------------------------------------------------------------------------------------- */

static void sum_biases(const struct cnn_layer *layer, size_t images, const float *output_slope, float *gradient) {
  size_t count = images * cnn_shape_plane(layer->out);
  for (size_t c = 0; c < layer->out.channels; c++) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)output_slope[c * count + i];
    gradient[c] = (float)sum;
  }
}

void cnn_conv_backward(const struct cnn_layer *layer, size_t images, const float *parameters, const float *input,
                       const float *output_slope, float *columns, float *gradient, float *input_slope,
                       const struct cnn_sink *sink) {
  size_t inputs = cnn_layer_inputs(layer), outputs = cnn_shape_plane(layer->out), step = group_size(layer, images);
  struct cnn_matrix weights = {parameters + layer->weights, inputs, true};
  sum_biases(layer, images, output_slope, gradient + layer->biases);
  if (input_slope && !is_plain(layer)) memset(input_slope, 0, images * cnn_shape_size(layer->in) * sizeof *input_slope);
  for (size_t first = 0; first < images; first += step) {
    struct cnn_group group = {images, first, images - first < step ? images - first : step};
    size_t count = group.count * outputs;
    struct cnn_matrix slope = {output_slope + first * outputs, images * outputs, false};
    struct cnn_matrix matrix = columns_of(layer, group, input, columns);
    if (sink) sink->take(sink->context, layer, count, slope, matrix);
    matrix.is_transposed = true;
    if (!sink)
      cnn_multiply(layer->out.channels, inputs, count, slope, matrix, first > 0, gradient + layer->weights, inputs);
    if (!input_slope) continue;
    bool plain = is_plain(layer);
    cnn_multiply(inputs, count, layer->out.channels, weights, slope, false,
                 plain ? input_slope + first * outputs : columns, plain ? images * outputs : count);
    if (!plain) scatter(layer, group, columns, input_slope);
  }
}
