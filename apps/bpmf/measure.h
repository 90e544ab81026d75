/* Errors of predictions: of the present rows, and of the mean over samples. Sums run over the ratings of each block of
 * users, and then over the blocks, so that results do not depend on the number of threads and of workers. */
#ifndef BPMF_MEASURE_H
#define BPMF_MEASURE_H

#include "apps/bpmf/sampler.h"

/* Ratings that are predicted after each iteration. */
struct bpmf_measure {
  const struct bpmf_sampler *sampler;
  bool is_train;  /* the training ratings; otherwise the test ratings */
  uint64_t count; /* ratings; 0: nothing is measured */
  uint64_t samples;
  uint64_t first;      /* number of the first rating with a sum */
  uint64_t room;       /* number of these ratings */
  double *sums;        /* of the predictions of each of them over the samples */
  double (*errors)[2]; /* squared errors of each block of users: of the present rows, and of the mean */
};

struct bpmf_rmse {
  double now, mean; /* NAN: no ratings, or no samples */
};

/* For the ratings of the blocks [first, end) of users. `is_none`: nothing is measured. False: out of memory. Call fini
 * all the same. */
bool bpmf_measure_init(struct bpmf_measure *measure, const struct bpmf_sampler *sampler, bool is_train, bool is_none,
                       size_t first, size_t end);
void bpmf_measure_fini(struct bpmf_measure *measure);

/* Predicts the ratings of the blocks [first, end) of users, and writes their errors. `is_sample`: the present rows are a
 * sample. */
void bpmf_measure_blocks(struct bpmf_measure *measure, bool is_sample, size_t first, size_t end);

/* Adds up the errors of all blocks. */
struct bpmf_rmse bpmf_measure_sum(const struct bpmf_measure *measure);

#endif
