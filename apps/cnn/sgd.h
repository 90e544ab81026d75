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

/* The learning rate of step `step` of `steps`: half a cosine wave from `rate` down to 0, or always `rate`. */
double cnn_sgd_rate(enum pawl_cnn_schedule schedule, double rate, uint64_t step, uint64_t steps);

#endif
