/* A net: the layers of a table with their shapes for one size of images, and the table of its tensors.
 *
 * All parameters of a net lie in one array of floats, and so do their gradients. A tensor is a part of this array: the
 * weights or the biases of a layer. So a program can send the parameters, or add gradients up, without knowing the
 * layers.
 *
 * Values between layers have the layout [channel][image][row][column]: one product of matrices computes a convolution
 * for many images.
 */
#ifndef CNN_NET_H
#define CNN_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/cnn.h>
#include <pawl/status.h>

#include "apps/cnn/spec.h"

#define CNN_POOL_MAX 15 /* height of a window of pooling: the place of the maximum fits into a byte */
#define CNN_VALUES_MAX                                                                                                 \
  ((size_t)INT32_MAX) /* elements of a tensor, and columns of a matrix: OpenBLAS counts with 32 bits */

struct cnn_shape {
  uint32_t channels, height, width;
};

static inline size_t cnn_shape_plane(struct cnn_shape shape) { return (size_t)shape.height * shape.width; }
static inline size_t cnn_shape_size(struct cnn_shape shape) { return shape.channels * cnn_shape_plane(shape); }

struct cnn_layer {
  enum cnn_kind kind;
  struct cnn_shape in, out;
  uint32_t size_y, size_x, stride, pad; /* CONV, POOL, FULL. The window of a FULL layer is the whole image */
  float drop;                           /* DROPOUT */
  size_t weights, biases;               /* CONV, FULL: offsets in the parameters */
};

struct cnn_net {
  const struct cnn_spec *spec;
  struct cnn_shape input;
  uint32_t classes;
  struct cnn_layer *layers;
  size_t count;
  struct pawl_cnn_tensor *tensors; /* by offset */
  size_t tensor_count;
  size_t parameters;
};

/* Weights of one output of a CONV or FULL layer. */
static inline size_t cnn_layer_inputs(const struct cnn_layer *layer) {
  return (size_t)layer->in.channels * layer->size_y * layer->size_x;
}

/* Layers that change their values in place. */
static inline bool cnn_layer_is_in_place(const struct cnn_layer *layer) {
  return layer->kind == CNN_RELU || layer->kind == CNN_DROPOUT;
}

/* PAWL_INVALID (no channels, pixels or classes), PAWL_MISMATCH (the images are too small for the net), PAWL_TOO_LARGE,
 * PAWL_NO_MEMORY; `error` has a sentence and may be NULL. */
PAWL_MUST_USE pawl_status cnn_net_create(const struct cnn_spec *spec, struct cnn_shape input, uint32_t classes,
                                         struct cnn_net **net_out, char *error);
void cnn_net_destroy(struct cnn_net *net); /* NULL is fine */

/* The weights of a layer with n inputs are drawn uniformly from +-sqrt(6 / n) (He et al. 2015); biases are 0. */
void cnn_net_start(const struct cnn_net *net, uint64_t seed, float *parameters);

#endif
