/* Changes of the weights as pairs of vectors, and who applies them.
 *
 * The matrix W has a row for each class and a column for each feature. Both methods change it by sums of products u v':
 * v is a row of the data, and u has a number for each class (SFB 2.1). Methods hand the pairs to a struct mlr_target and
 * never write to W themselves, so that a target can also send the pairs to other processes.
 */
#ifndef MLR_PAIRS_H
#define MLR_PAIRS_H

#include "apps/mlr/rows.h"

struct mlr_pairs {
  size_t count, classes;
  const double *u;         /* `classes` numbers of each pair */
  const struct mlr_row *v; /* a row of each pair: all sparse or all dense */
};

struct mlr_target {
  /* W becomes keep * W + step * sum of u v'. `keep` is above 0. Vectors are borrowed for the call. */
  pawl_status (*apply)(void *context, const struct mlr_pairs *pairs, double keep, double step);
  void *context;
};

#endif
