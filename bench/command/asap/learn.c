/* Stochastic gradient descent for the hinge loss, as in Bottou's svmsgd: w shrinks by (1 - step * lambda) with
 * each example, and moves towards an example whose margin is below 1. */
#include <stdlib.h>

#include "asap.h"
#include "base/memory.h"

#define SCALE_MIN 1e-4 /* below this the weights are multiplied out */

pawl_status pwi_asap_learner_init(struct pwi_asap_learner *learner, const struct pwi_asap_problem *problem,
                                  uint32_t worker, uint32_t workers, double rate, uint64_t seed) {
  uint32_t begin = (uint32_t)((uint64_t)problem->examples * worker / workers);
  uint32_t end = (uint32_t)((uint64_t)problem->examples * (worker + 1) / workers);
  *learner = (struct pwi_asap_learner){.problem = problem, .count = end - begin, .rate = rate};
  learner->order = pwi_alloc_zero(end - begin, sizeof *learner->order);
  if (!learner->order) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < learner->count; i++) learner->order[i] = begin + i;
  pwi_random_init(&learner->random, seed, 1000 + worker);
  return PAWL_OK;
}

void pwi_asap_learner_fini(struct pwi_asap_learner *learner) {
  pwi_free(learner->order);
  learner->order = NULL;
}

/* The next example, in a new order after each pass. */
static uint32_t next_example(struct pwi_asap_learner *learner) {
  if (learner->next == 0) pwi_random_shuffle(&learner->random, learner->order, learner->count, sizeof *learner->order);
  uint32_t example = learner->order[learner->next];
  learner->next = (learner->next + 1) % learner->count;
  return example;
}

static void multiply(float *weights, uint32_t count, double by) {
  for (uint32_t i = 0; i < count; i++) weights[i] = (float)(weights[i] * by);
}

/* The model is scale * weights while it learns, so that shrinking costs nothing. */
void pwi_asap_learn(struct pwi_asap_learner *learner, uint32_t examples, float *weights) {
  const struct pwi_asap_problem *problem = learner->problem;
  double scale = 1;
  for (uint32_t n = 0; n < examples && learner->count > 0; n++) {
    uint32_t row = next_example(learner);
    double step = learner->rate / (1 + problem->lambda * learner->rate * (double)learner->seen++), margin = 0;
    double y = problem->labels[row];
    for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
      margin += problem->values[i] * weights[problem->ids[i]];
    margin *= y * scale;
    scale *= 1 - step * problem->lambda;
    if (scale < SCALE_MIN) {
      multiply(weights, problem->features, scale);
      scale = 1;
    }
    if (margin >= 1) continue;
    double by = step * y / scale;
    for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
      weights[problem->ids[i]] = (float)(weights[problem->ids[i]] + by * problem->values[i]);
  }
  multiply(weights, problem->features, scale);
}
