/* Training by workers that average among themselves (<pawl/reduce.h>), as far as it is the same for all applications.
 *
 * Each round of such a training has a reduce of its own, with another name. A worker closes it when the next round
 * begins: then all have made their last step. If a worker is lost while others have finished already, the rest cannot
 * go on, because a change of the members needs the agreement of all. apps_reduce_step therefore leaves a step that
 * waits for too long, and the round ends without it. The number of steps that a worker has made tells the others that
 * it is behind: in the next round it takes over the parameters of another worker. So does a new worker, which has made
 * none.
 */
#ifndef APPS_COMMON_REDUCE_H
#define APPS_COMMON_REDUCE_H

#include <pawl/job.h>
#include <pawl/reduce.h>

#include "apps/common/run.h"

#define APPS_REDUCE_NO_PEERS "this worker was not started for reduce; start it with --peers"

/* --- the worker ----------------------------------------------------------------------------------------- */

/* The number of the peer group that this worker knows. PAWL_MISMATCH if the worker is in none: APPS_REDUCE_NO_PEERS. */
pawl_status apps_reduce_number(struct pawl_worker *worker, uint64_t *number_out);

/* Waits until this worker knows a number of the peer group that is at least `number`. PAWL_MISMATCH as above;
 * PAWL_CANCELLED: the job has ended. */
pawl_status apps_reduce_await(struct pawl_worker *worker, uint64_t number);

/* Opens the reduce `what` of the round `serial`, for one tensor. The errors of pawl_reduce_open. */
pawl_status apps_reduce_open(struct pawl_worker *worker, const char *what, uint64_t serial, struct pawl_tensor tensor,
                             const struct pawl_reduce_options *options, struct pawl_reduce **reduce_out);

/* A step that ends early if the job ends. PAWL_TIMED_OUT: the job has ended, or the step was left because the workers
 * could not agree. `report` may be NULL. */
pawl_status apps_reduce_step(struct pawl_worker *worker, struct pawl_reduce *reduce, struct pawl_reduce_report *report);

/* Closes the reduce, if there is one, and sets it to NULL. */
void apps_reduce_close(struct pawl_reduce **reduce);

/* --- the mean of all workers ------------------------------------------------------------------------------ */

/* Computes the mean of a tensor over all workers, by one more reduce, `mean`, on the complete graph: all have the same bits
 * then. `first` is the number of steps that this worker has made. `*is_there_out` is false if the workers could not
 * agree: the scheduler has to ask them again. */
pawl_status apps_reduce_mean(struct pawl_worker *worker, uint64_t number, uint64_t serial, struct pawl_tensor tensor,
                             uint64_t first, struct pawl_reduce **reduce, bool *is_there_out);

/* The first worker reports `values`[begin, end) of `count` values of `width` bytes; the others report nothing, and
 * neither does a worker that has none (NULL). PAWL_CORRUPT if there is no such range. */
pawl_status apps_reduce_give(struct pawl_worker *worker, const void *values, size_t count, size_t width, uint64_t begin,
                             uint64_t end);

/* --- the scheduler --------------------------------------------------------------------------------------- */

/* Before the job is created: whether from `least` to `most` workers can average in the graph. */
pawl_status apps_reduce_check_graph(struct apps_run *run, const char *graph, uint32_t least, uint32_t most);

/* One round in which the first worker gives `size` bytes. Takes `order`. `*is_there_out` is false if
 * that worker was lost. */
pawl_status apps_reduce_receive(struct apps_run *run, char *order, void *bytes, size_t size, bool *is_there_out);

#endif
