/* Steps of gradient descent: of one process, or a worker's part of those of all workers. */
#ifndef MLR_SGD_H
#define MLR_SGD_H

#include "apps/mlr/run.h"

/* Memory of steps. */
struct mlr_batch {
  struct mlr_row *rows;
  double *u, *block;
};

/* PAWL_NO_MEMORY, with a sentence; call fini in any case. */
PAWL_MUST_USE pawl_status mlr_batch_init(struct mlr_batch *batch, const struct mlr_run *run);
void mlr_batch_fini(struct mlr_batch *batch);

/* Chooses the rate, if none was given, and makes the batch no larger than the rows. */
PAWL_MUST_USE pawl_status mlr_sgd_begin(struct mlr_run *run);

/* The number of steps of an epoch, and the rows of one. */
uint64_t mlr_sgd_steps(const struct mlr_run *run);
size_t mlr_sgd_size(const struct mlr_run *run, uint64_t step);

double mlr_sgd_rate(const struct mlr_run *run, uint64_t epoch, uint64_t step);

/* Hands the pairs of rows [begin, end) of the batch to the target, with the scale of the whole batch. The rows are in the
 * order of the epoch. */
PAWL_MUST_USE pawl_status mlr_sgd_step(struct mlr_run *run, struct mlr_batch *batch, uint64_t epoch, uint64_t step,
                                       size_t begin, size_t end);

/* A bound on the distance to the optimum (run.h). */
PAWL_MUST_USE pawl_status mlr_sgd_bound(struct mlr_run *run, bool is_last, double *gap_out);

#endif
