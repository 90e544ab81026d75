/* Features divided by their size while a model is trained: `--scale`.
 *
 *   max         by the largest |x_ij|: values lie in [-1, 1]
 *   deviation   by the standard deviation over all rows, absent values counting as 0
 *
 * Nothing is subtracted, so that what is absent stays absent. A feature whose deviation is none to speak of
 * is divided by its largest value instead, and one that is 0 wherever it is written stays as it is.
 *
 * Workers push what they see of each feature, the servers take the largest and add up, and the scheduler
 * makes of it the vector of divisors (apps/linear/train/scale.c). That stays on the servers as long as the
 * job does, and in its checkpoints: whoever takes over rows divides them by the same. Weights on the servers,
 * and the penalty, are those of scaled features; a model has the weights of features as they are in the
 * files, w_j / s_j.
 */
#ifndef LINEAR_SCALE_H
#define LINEAR_SCALE_H

#include "apps/linear/inside.h"

/* What is known of a feature over all rows. */
struct linear_spread {
  double most;         /* the largest |x| */
  double sum, squares; /* of x; for the deviation */
};

/* What the feature's values are divided by: above 0, and a number of single precision, in which sums that
 * were added up in another order are the same. */
double linear_scale_of(enum pawl_linear_scale scale, const struct linear_spread *spread, uint64_t rows);

/* The worker's part: tells the servers what it sees of each feature; divides what it has not divided
 * before. */
pawl_status linear_scale_measure(struct linear_worker *worker, const struct linear_order *order);
pawl_status linear_scale_apply(struct linear_worker *worker, const struct linear_order *order);

#endif
