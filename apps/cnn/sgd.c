#include "apps/cnn/sgd.h"

#include <math.h>

static void step_tensor(const struct cnn_sgd *sgd, size_t count, float decay, const float *gradient, float *velocity,
                        float *parameters) {
  float rate = (float)sgd->rate, momentum = (float)sgd->momentum;
  for (size_t i = 0; i < count; i++) {
    velocity[i] = momentum * velocity[i] + (gradient[i] + decay * parameters[i]);
    parameters[i] -= rate * velocity[i];
  }
}

void cnn_sgd_step(const struct cnn_net *net, const struct cnn_sgd *sgd, const float *gradient, float *velocity,
                  float *parameters) {
  for (size_t i = 0; i < net->tensor_count; i++) {
    const struct pawl_cnn_tensor *tensor = &net->tensors[i];
    size_t at = (size_t)tensor->offset;
    float decay = tensor->dimensions > 1 ? (float)sgd->decay : 0;
    step_tensor(sgd, (size_t)tensor->count, decay, gradient + at, velocity + at, parameters + at);
  }
}

void cnn_sgd_change(const struct cnn_net *net, const struct cnn_sgd *sgd, double share, const float *gradient,
                    float *velocity, const float *parameters, float *change_out) {
  float rate = (float)sgd->rate, momentum = (float)sgd->momentum, part = (float)share;
  for (size_t i = 0; i < net->tensor_count; i++) {
    const struct pawl_cnn_tensor *tensor = &net->tensors[i];
    size_t end = (size_t)(tensor->offset + tensor->count);
    float decay = tensor->dimensions > 1 ? (float)sgd->decay : 0;
    for (size_t k = (size_t)tensor->offset; k < end; k++) {
      velocity[k] = momentum * velocity[k] + part * (gradient[k] + decay * parameters[k]);
      change_out[k] = -rate * velocity[k];
    }
  }
}

double cnn_sgd_rate(enum pawl_cnn_schedule schedule, double rate, uint64_t step, uint64_t steps) {
  const double pi = 3.14159265358979323846;
  if (schedule == PAWL_CNN_CONSTANT || steps == 0) return rate;
  return rate * (1 + cos(pi * (double)step / (double)steps)) / 2;
}
