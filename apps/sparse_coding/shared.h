/* Training by workers that share the sums (apps/common/shared_matrix). The scheduler has the course of train.c, and measures the
 * dictionary between epochs. Workers get the sums and the dictionary, code the rows of the steps, and each computes the
 * dictionary from the sums.
 *
 * The matrix has a row for each atom: C', and A beside it (pairs.h). A row x with the code a changes it by a (x, a)'. What is
 * kept of old rows is the factor of the matrix. The dictionary goes with the matrix, and is not shared: all workers compute
 * the same one. The phase of a step is the epoch, times 2^32, plus the rows of a batch; steps count from 0 in each epoch.
 */
#ifndef SPARSE_SHARED_H
#define SPARSE_SHARED_H

#include "apps/common/shared_matrix/scheduler.h"
#include "apps/sparse_coding/run.h"

struct sparse_shared {
  struct matrix_scheduler scheduler;
  struct pawl_matrix_shared *figures;
  bool has_begun;
  double *matrix;
};

static inline struct matrix_shape sparse_shape(const struct sparse_run *run) {
  return (struct matrix_shape){run->sums.atoms, run->sums.features + run->sums.atoms, true};
}

/* The sums become those of the matrix, times the factor. */
void sparse_unpack(struct sparse_sums *sums, const double *matrix, double factor);

/* The worker's side. */
extern const struct matrix_learner sparse_learner;

#endif
