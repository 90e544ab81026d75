/* Training by workers that share the weights (apps/common/shared_matrix): the scheduler has the course of train.c, and workers make
 * the steps. */
#ifndef MLR_SHARED_H
#define MLR_SHARED_H

#include "apps/mlr/run.h"
#include "apps/common/shared_matrix/scheduler.h"

/* SDCA. An *era* is a time with the same workers, and is named by the number of its first step: then each worker takes a
 * range of the rows, whose duals it owns. When workers have come or gone, a new era begins with weights that are
 * rebuilt from the duals of all rows. Rows whose owner was lost, or has changed, begin anew. The phase of steps is twice
 * the era, and 1 for steps that rebuild. */
struct mlr_shared {
  struct matrix_scheduler scheduler;
  struct pawl_matrix_shared *figures;
  bool has_begun;
  uint64_t step, era, changes; /* SDCA: the next step; the era, and changes of the workers before it */
  bool has_all;                /* the reports of the last pass are of all rows */
};

extern const struct mlr_method mlr_sgd_shared, mlr_sdca_shared; /* of the scheduler */

/* Rows of a worker in a step of SDCA. More rows are fewer messages; each sees the changes of the others a step later. */
#define MLR_SDCA_ROWS 16

/* The worker's side. */
extern const struct matrix_learner mlr_learner;

#endif
