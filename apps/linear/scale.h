/* Divides features by their size while a model is trained: `--scale`.
 *
 *   max         by the largest |x_ij|: values lie in [-1, 1]
 *   deviation   by the standard deviation over all rows, absent values counting as 0
 *
 * Nothing is subtracted, so absent values stay absent. A feature with a deviation of almost 0 is divided by
 * its largest value instead. A feature whose values are all 0 is not divided.
 *
 * Each worker pushes the largest value and the sums of each of its features. The servers combine them, and
 * the scheduler computes the vector of divisors (apps/linear/train/scale.c). The divisors stay on the servers
 * as long as the job runs, and are in its checkpoints, so a worker that takes over rows divides them by the
 * same numbers. The weights on the servers and the penalty are those of scaled features. A model has the
 * weights of features as they are in the files, w_j / s_j. */
#ifndef LINEAR_SCALE_H
#define LINEAR_SCALE_H

#include "apps/linear/inside.h"

/* The size of a feature over all rows. */
struct linear_spread {
  double most;         /* the largest |x| */
  double sum, squares; /* of x; for the deviation */
};

/* The divisor of a feature: above 0, and rounded to single precision, so that sums that were added in another
 * order give the same divisor. */
double linear_scale_of(enum pawl_linear_scale scale, const struct linear_spread *spread, uint64_t rows);

/* The worker's part: pushes the sizes of its features; divides columns that are not divided yet. */
pawl_status linear_scale_measure(struct linear_worker *worker, const struct linear_order *order);
pawl_status linear_scale_apply(struct linear_worker *worker, const struct linear_order *order);

#endif
