/* Pooling: the maximum of each window. Windows do not reach beyond the image, so rows and columns at its lower right
 * edge may belong to none. */
#include "apps/cnn/layers.h"

#include <string.h>

static void pool_row(const struct cnn_layer *layer, const float *input, float *output, uint8_t *picks) {
  for (size_t x = 0; x < layer->out.width; x++) {
    const float *window = input + x * layer->stride;
    float most = window[0];
    uint8_t pick = 0, place = 0;
    for (size_t row = 0; row < layer->size_y; row++)
      for (size_t column = 0; column < layer->size_x; column++, place++) {
        float value = window[row * layer->in.width + column];
        if (value > most) most = value, pick = place;
      }
    output[x] = most;
    picks[x] = pick;
  }
}

void cnn_pool_forward(const struct cnn_layer *layer, size_t images, const float *input, float *output, uint8_t *picks) {
  size_t in = cnn_shape_plane(layer->in), planes = layer->in.channels * images, width = layer->out.width;
  for (size_t plane = 0; plane < planes; plane++)
    for (size_t y = 0; y < layer->out.height; y++, output += width, picks += width)
      pool_row(layer, input + plane * in + y * layer->stride * layer->in.width, output, picks);
}

void cnn_pool_backward(const struct cnn_layer *layer, size_t images, const float *output_slope, const uint8_t *picks,
                       float *input_slope) {
  size_t in = cnn_shape_plane(layer->in), planes = layer->in.channels * images;
  memset(input_slope, 0, planes * in * sizeof *input_slope);
  for (size_t plane = 0; plane < planes; plane++)
    for (size_t y = 0; y < layer->out.height; y++)
      for (size_t x = 0; x < layer->out.width; x++, output_slope++, picks++) {
        size_t row = y * layer->stride + *picks / layer->size_x, column = x * layer->stride + *picks % layer->size_x;
        input_slope[plane * in + row * layer->in.width + column] += *output_slope;
      }
}
