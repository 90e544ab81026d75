/* A pass of a batch through a net, forward and backward, with the memory that it needs. One thread at a time. */
#ifndef CNN_PASS_H
#define CNN_PASS_H

#include "apps/cnn/layers.h"
#include "apps/cnn/net.h"

struct cnn_pass;

/* For batches of up to `images`; with `trains` also backward. The net must outlive the pass. PAWL_TOO_LARGE,
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status cnn_pass_create(const struct cnn_net *net, size_t images, bool trains,
                                          struct cnn_pass **pass_out);
void cnn_pass_destroy(struct cnn_pass *pass); /* NULL is fine */

/* From now on the weights' gradients of some layers go to a sink, which must outlive the pass, and not to `gradient`. */
void cnn_pass_divert(struct cnn_pass *pass, const struct cnn_sink *sink);

/* The images of the batch, to be written before a pass: [channel][image][row][column]. */
float *cnn_pass_input(struct cnn_pass *pass);

/* Computes the scores of the first `images` images, [class][image]; they are valid until the next pass. `drops` NULL:
 * dropout does nothing, as in prediction. */
const float *cnn_pass_forward(struct cnn_pass *pass, const float *parameters, size_t images,
                              const struct cnn_drops *drops);

/* After a forward pass with the same arguments: the sum of the losses, the number of wrong images, and the gradient of
 * the mean loss. Overwrites the scores. */
double cnn_pass_backward(struct cnn_pass *pass, const float *parameters, size_t images, const uint8_t *labels,
                         float *gradient, size_t *wrong_out);

#endif
