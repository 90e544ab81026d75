/* The layers: forward, and backward by the chain rule. The slope of a value is the derivative of the loss by it.
 *
 * Values have the layout [channel][image][row][column] with `images` images. Weights of a CONV layer have the layout
 * [output channel][input channel][row][column]; those of a FULL layer are the same, with a window as large as the
 * image. Nothing is allocated. Threads: any, with memory of their own (cnn_multiply has a lock).
 */
#ifndef CNN_LAYERS_H
#define CNN_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "apps/cnn/blas.h"
#include "apps/cnn/net.h"

/* --- CONV and FULL --------------------------------------------------------------------------------------- */

/* Floats of the memory `columns` that both directions need for up to `images` images. */
size_t cnn_conv_columns(const struct cnn_layer *layer, size_t images);

void cnn_conv_forward(const struct cnn_layer *layer, size_t images, const float *parameters, const float *input,
                      float *columns, float *output);

/* Who takes the gradient of the weights of FULL layers as factors: it is the sum over images of a product of two vectors, the
 * slope of the layer's output and its input. */
struct cnn_sink {
  uint64_t layers; /* bit i: layer i of the net, of the first 64 */
  /* The columns of both matrices belong to `count` images: [outputs][images], [inputs][images]. */
  void (*take)(void *context, const struct cnn_layer *layer, size_t count, struct cnn_matrix slopes,
               struct cnn_matrix inputs);
  void *context;
};

/* Writes the layer's part of `gradient`, and the slope of the input unless `input_slope` is NULL. With a sink, which FULL
 * layers may have, the weights' part of the gradient is not written. */
void cnn_conv_backward(const struct cnn_layer *layer, size_t images, const float *parameters, const float *input,
                       const float *output_slope, float *columns, float *gradient, float *input_slope,
                       const struct cnn_sink *sink);

/* --- POOL ------------------------------------------------------------------------------------------------ */

/* The maximum of each window. `picks` receives its place in the window, one byte for each output; of equal values the
 * first one counts. */
void cnn_pool_forward(const struct cnn_layer *layer, size_t images, const float *input, float *output, uint8_t *picks);
void cnn_pool_backward(const struct cnn_layer *layer, size_t images, const float *output_slope, const uint8_t *picks,
                       float *input_slope);

/* --- RELU, in place -------------------------------------------------------------------------------------- */

void cnn_relu_forward(size_t count, float *values);

/* `values` are those after the layer, or after a DROPOUT that follows it. */
void cnn_relu_backward(size_t count, const float *values, float *slope);

/* --- DROPOUT, in place ----------------------------------------------------------------------------------- */

/* What the random numbers of a step depend on. Image i of the batch is number first + i of the step. */
struct cnn_drops {
  uint64_t seed, step, first;
};

/* A value becomes 0 with the probability layer->drop, else it is divided by 1 - layer->drop. `kept` has a byte for each
 * value. */
void cnn_dropout_forward(const struct cnn_layer *layer, size_t number, size_t images, const struct cnn_drops *drops,
                         float *values, uint8_t *kept);
void cnn_dropout_backward(const struct cnn_layer *layer, size_t count, const uint8_t *kept, float *slope);

/* --- the loss -------------------------------------------------------------------------------------------- */

/* Softmax and cross-entropy: the sum over images of -log p(label). `scores` has the layout [class][image]. Writes the
 * slope of loss / images to `slope` unless that is NULL, and the number of images whose label does not have the highest
 * score. `slope` may be `scores`. */
double cnn_loss(size_t classes, size_t images, const float *scores, const uint8_t *labels, float *slope,
                size_t *wrong_out);

/* The probabilities of all classes of one image. */
void cnn_probabilities(size_t classes, size_t images, const float *scores, size_t image, float *probabilities_out);

#endif
