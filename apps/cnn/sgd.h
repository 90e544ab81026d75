/* Stochastic gradient descent with momentum and weight decay:
 *
 *   v = momentum v + gradient + decay w        decay for weights, not for biases
 *   w = w - rate v
 */
#ifndef CNN_SGD_H
#define CNN_SGD_H

#include "apps/cnn/net.h"

struct cnn_sgd {
  double rate, momentum, decay;
};

/* One step. All arrays have net->parameters elements; `velocity` is 0 at first. */
void cnn_sgd_step(const struct cnn_net *net, const struct cnn_sgd *sgd, const float *gradient, float *velocity,
                  float *parameters);

/* The change that one of several workers adds to the parameters, whose sum over all workers is a step:
 *
 *   velocity = momentum velocity + share (gradient + decay w),   change = -rate velocity
 *
 * where `share` is that of the worker in the images of the step. */
void cnn_sgd_change(const struct cnn_net *net, const struct cnn_sgd *sgd, double share, const float *gradient,
                    float *velocity, const float *parameters, float *change_out);

/* The learning rate of step `step` of `steps`: half a cosine wave from `rate` down to 0, or always `rate`. */
double cnn_sgd_rate(enum pawl_cnn_schedule schedule, double rate, uint64_t step, uint64_t steps);

#endif
