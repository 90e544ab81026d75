/* Training by workers that share W (apps/common/shared_matrix). The scheduler has the course of train.c: it pairs the rows and
 * measures W between epochs. Workers get W and the list of pairs, and make the steps. The phase of a step is the number of
 * epochs that were undone, on which the rate depends. */
#ifndef DML_SHARED_H
#define DML_SHARED_H

#include "apps/common/shared_matrix/scheduler.h"
#include "apps/dml/run.h"

struct dml_shared {
  struct matrix_scheduler scheduler;
  struct pawl_matrix_shared *figures;
  bool has_begun;
  uint64_t undone; /* epochs, when the workers got W */
};

/* The worker's side. */
extern const struct matrix_learner dml_learner;

#endif
