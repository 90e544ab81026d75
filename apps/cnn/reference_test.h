/* A slow and plain implementation of every layer, in double precision, for tests: the definition of each layer, loop by
 * loop. It shares no code with the layers, not even their layout: values are [image][channel][row][column]. */
#ifndef CNN_REFERENCE_TEST_H
#define CNN_REFERENCE_TEST_H

#include <math.h>

#include "apps/cnn/layers.h"
#include "apps/cnn/random.h"
#include "base/testing.h"

/* --- numbers --------------------------------------------------------------------------------------------- */

static inline double *doubles(size_t count) {
  double *values = calloc(count ? count : 1, sizeof *values);
  assert_non_null(values);
  return values;
}

static inline float *floats(size_t count) {
  float *values = calloc(count ? count : 1, sizeof *values);
  assert_non_null(values);
  return values;
}

/* Numbers in [-1, 1) that a float represents. */
static inline void draw_doubles(struct apps_random *random, double *values, size_t count) {
  for (size_t i = 0; i < count; i++) values[i] = (double)(2 * cnn_unit(random) - 1);
}

static inline float *floats_of(const double *values, size_t count) {
  float *copy = floats(count);
  for (size_t i = 0; i < count; i++) copy[i] = (float)values[i];
  return copy;
}

/* From [image][channel][pixel] to [channel][image][pixel], and the place of a value there. */
static inline size_t place_of_value(struct cnn_shape shape, size_t images, size_t at) {
  size_t plane = cnn_shape_plane(shape), pixel = at % plane, channel = at / plane % shape.channels;
  return (channel * images + at / plane / shape.channels) * plane + pixel;
}

static inline float *planes_of(struct cnn_shape shape, size_t images, const double *values) {
  size_t count = images * cnn_shape_size(shape);
  float *planes = floats(count);
  for (size_t i = 0; i < count; i++) planes[place_of_value(shape, images, i)] = (float)values[i];
  return planes;
}

/* Sums of many products in single precision are compared, so the tolerance grows with their size. */
static inline void assert_near(double found, double expected, double tolerance, const char *what, size_t at) {
  if (fabs(found - expected) <= tolerance * (1 + fabs(expected))) return;
  fail_msg("%s[%zu] is %.9g; expected %.9g", what, at, found, expected);
}

static inline void assert_planes(struct cnn_shape shape, size_t images, const float *planes, const double *expected,
                                 double tolerance, const char *what) {
  for (size_t i = 0; i < images * cnn_shape_size(shape); i++)
    assert_near((double)planes[place_of_value(shape, images, i)], expected[i], tolerance, what, i);
}

/* --- layers ---------------------------------------------------------------------------------------------- */

static inline size_t at_of(struct cnn_shape shape, size_t image, size_t channel, size_t y, size_t x) {
  return ((image * shape.channels + channel) * shape.height + y) * shape.width + x;
}

/* One output of a convolution. */
static inline double reference_window(const struct cnn_layer *layer, const double *parameters, const double *input,
                                      size_t image, size_t out, size_t y, size_t x) {
  double sum = parameters[layer->biases + out];
  for (size_t in = 0; in < layer->in.channels; in++)
    for (size_t row = 0; row < layer->size_y; row++)
      for (size_t column = 0; column < layer->size_x; column++) {
        long iy = (long)(y * layer->stride + row) - (long)layer->pad;
        long ix = (long)(x * layer->stride + column) - (long)layer->pad;
        if (iy < 0 || ix < 0 || iy >= (long)layer->in.height || ix >= (long)layer->in.width) continue;
        size_t weight = ((out * layer->in.channels + in) * layer->size_y + row) * layer->size_x + column;
        sum += parameters[layer->weights + weight] * input[at_of(layer->in, image, in, (size_t)iy, (size_t)ix)];
      }
  return sum;
}

static inline double reference_maximum(const struct cnn_layer *layer, const double *input, size_t image, size_t channel,
                                       size_t y, size_t x) {
  double most = -HUGE_VAL;
  for (size_t row = 0; row < layer->size_y; row++)
    for (size_t column = 0; column < layer->size_x; column++)
      most = fmax(most, input[at_of(layer->in, image, channel, y * layer->stride + row, x * layer->stride + column)]);
  return most;
}

/* `kept` is for DROPOUT, in the layout of the layers; NULL: dropout does nothing. */
static inline void reference_layer(const struct cnn_layer *layer, size_t images, const double *parameters,
                                   const double *input, const uint8_t *kept, double *output) {
  for (size_t image = 0; image < images; image++)
    for (size_t c = 0; c < layer->out.channels; c++)
      for (size_t y = 0; y < layer->out.height; y++)
        for (size_t x = 0; x < layer->out.width; x++) {
          size_t at = at_of(layer->out, image, c, y, x);
          if (layer->kind == CNN_CONV || layer->kind == CNN_FULL)
            output[at] = reference_window(layer, parameters, input, image, c, y, x);
          else if (layer->kind == CNN_POOL)
            output[at] = reference_maximum(layer, input, image, c, y, x);
          else if (layer->kind == CNN_RELU)
            output[at] = fmax(input[at], 0);
          else
            output[at] = !kept ? input[at]
                               : kept[place_of_value(layer->out, images, at)] * input[at] / (1 - (double)layer->drop);
        }
}

/* The mean of -log p(label); scores are [image][class]. */
static inline double reference_loss(size_t classes, size_t images, const double *scores, const uint8_t *labels) {
  double loss = 0;
  for (size_t image = 0; image < images; image++) {
    double sum = 0;
    for (size_t k = 0; k < classes; k++) sum += exp(scores[image * classes + k] - scores[image * classes]);
    loss += log(sum) - (scores[image * classes + labels[image]] - scores[image * classes]);
  }
  return loss / (double)images;
}

/* The derivative of `f` by *at, by central differences. */
static inline double reference_slope(double (*f)(void *context), void *context, double *at) {
  const double step = 1e-5;
  double value = *at;
  *at = value + step;
  double above = f(context);
  *at = value - step;
  double below = f(context);
  *at = value;
  return (above - below) / (2 * step);
}

#endif
