/* Errors of predictions: of the present rows, and of the mean over samples. Sums run over fixed blocks of pairs, so that
 * results do not depend on the number of threads. */
#ifndef BPMF_MEASURE_H
#define BPMF_MEASURE_H

#include "apps/bpmf/sampler.h"

/* Ratings that are predicted after each iteration. */
struct bpmf_measure {
  const struct bpmf_sampler *sampler;
  bool is_train;  /* the training ratings; otherwise the test ratings */
  uint64_t count; /* ratings; 0: nothing is measured */
  uint64_t samples;
  double *sums;   /* of the predictions of each rating over the samples */
  double *errors; /* squared errors of each block: of the present rows, and of the mean */
};

struct bpmf_rmse {
  double now, mean; /* NAN: no ratings, or no samples */
};

/* False: out of memory. Call fini all the same. */
bool bpmf_measure_init(struct bpmf_measure *measure, const struct bpmf_sampler *sampler, bool is_train, uint64_t count);
void bpmf_measure_fini(struct bpmf_measure *measure);

/* Predicts all ratings. `is_sample`: the present rows are a sample. */
struct bpmf_rmse bpmf_measure_step(struct bpmf_measure *measure, bool is_sample);

#endif
