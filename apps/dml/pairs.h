/* The step of a batch as pairs of vectors. The slope of the loss of a pair of rows by W is a number times u v', with v the
 * difference of the rows and u = W v: rank + features numbers instead of rank * features (SFB 2016, 2.1). Training hands its
 * pairs to a struct dml_target, so that a target can also send them to other processes.
 */
#ifndef DML_PAIRS_H
#define DML_PAIRS_H

#include <stddef.h>

#include <pawl/status.h>

struct dml_pairs {
  size_t count, rank, features;
  const float *u; /* `rank` numbers of each pair, with the factor of the slope */
  const float *v; /* `features` numbers of each pair */
};

struct dml_target {
  /* W becomes W - step * sum of u v'. Vectors are borrowed for the call. */
  pawl_status (*apply)(void *context, const struct dml_pairs *pairs, double step);
  void *context;
};

#endif
