/* Policies: a policy decides when the next iteration of a worker may start (OSDI'14 3.4).
 *
 * A worker runs a sequence of iterations: pull, compute, push. An iteration builds on the results of earlier
 * iterations, of this worker and of the others. A policy says how many of these results may still be missing:
 *
 *   "sequential"      every earlier iteration of this worker has finished
 *   "bounded 8"       the last 8 iterations of this worker may be in progress. "bounded 0" is sequential
 *   "eventual"        any result may be missing
 *   "ssp 2"           other workers may be 2 iterations behind this one. "ssp 0" is bulk synchronous
 *   "a-bsp 4"         4 iterations form a tick, within which no worker waits; a tick starts when all workers
 *                     have finished the previous one
 *   "adaptive 0 16"   as bounded, with a bound that is adapted to measurements between these two limits
 *   "notify-ack"      one version of this worker may be in progress: a worker computes while its last results travel,
 *                     and sends the next ones (pawl_iteration_ready) when those were acknowledged (ASAP, section 4)
 *   a function        pawl_iterations_create_user
 *
 *   pawl_iterations_create(session, group, "bounded 8", &iterations);
 *   for (…) {
 *     pawl_iteration_begin(iterations, PAWL_FOREVER, &number);   waits until the policy permits it
 *     … compute …
 *     pawl_iteration_ready(iterations, PAWL_FOREVER);            waits under notify-ack only
 *     pawl_vector_push(vector, where, values, &task);
 *     pawl_iteration_add(iterations, task);                      the iteration includes this task
 *     pawl_task_release(task);
 *     pawl_iteration_end(iterations, objective);
 *   }
 *
 * An iteration has *finished* when it was ended and all its tasks have finished, including failed tasks. The
 * next pawl_iteration_begin reports a failure.
 *
 * GROUPS. With a group, ending an iteration (under a-bsp: the last one of a tick) clocks the group, so that
 * the other members know. ssp and a-bsp need a group, and the program must not clock it by other means.
 * Iterations are numbered as the ticks of the group, so a worker that joins late begins where the others are.
 * The policy does not wait for workers that die or leave.
 *
 * THREADS. One thread begins and ends iterations; any thread may call the other functions. Destroy the
 * iterations before leaving the group.
 */
#ifndef PAWL_POLICY_H
#define PAWL_POLICY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_group;
struct pawl_task;
struct pawl_iterations;

/* Creates iterations under a policy. `group` may be NULL except for ssp and a-bsp. PAWL_INVALID if the text
 * is malformed: pawl_error_text has the details. PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_iterations_create(struct pawl_session *session, struct pawl_group *group,
                                                          const char *policy, struct pawl_iterations **iterations_out);

/* The progress by which a user-defined policy decides. */
struct pawl_progress {
  uint64_t finished; /* this iteration of the worker and all earlier ones have finished */
  uint64_t slowest;  /* every member of the group is known to have finished this tick; UINT64_MAX without a
                        group */
};

/* Creates iterations under a user-defined policy. `lets` returns whether the iteration may start. It is
 * called whenever there is progress, in a thread that is inside a call of the session or in the session's own
 * thread. It must decide by its arguments alone and must not call pawl. Once it has permitted an iteration,
 * it must also permit it after further progress. */
PAWL_API PAWL_MUST_USE pawl_status pawl_iterations_create_user(struct pawl_session *session, struct pawl_group *group,
                                                               bool (*lets)(void *context, uint64_t iteration,
                                                                            const struct pawl_progress *progress),
                                                               void *context, struct pawl_iterations **iterations_out);

/* Frees the iterations; closing the session does so too. Tasks continue. NULL is allowed. */
PAWL_API void pawl_iterations_destroy(struct pawl_iterations *iterations);

/* Waits until the policy permits the next iteration. `number_out` may be NULL and receives its number.
 *   PAWL_TIMED_OUT   call it again to continue waiting. pawl_error_text names the iteration of this worker
 *                    and its task, or the tick of the group and the members that are behind; finding these
 *                    members may take 200 ms more
 *   PAWL_INVALID     the previous iteration was not ended
 *   other            the status of a task of an earlier iteration that failed. It is reported once; call
 *                    again to go on */
PAWL_API PAWL_MUST_USE pawl_status pawl_iteration_begin(struct pawl_iterations *iterations, int64_t timeout_ns,
                                                        uint64_t *number_out);

/* Waits until the policy permits that the current iteration sends its results: under "notify-ack" until all
 * earlier iterations of this worker have finished, otherwise not at all. Call it between computing and pushing.
 *   PAWL_TIMED_OUT   call it again to continue waiting
 *   PAWL_INVALID     no iteration was begun
 *   other            the status of a task of an earlier iteration that failed. It is reported once; call
 *                    again to go on */
PAWL_API PAWL_MUST_USE pawl_status pawl_iteration_ready(struct pawl_iterations *iterations, int64_t timeout_ns);

/* Adds a task to the current iteration, which finishes no earlier than the task. The caller keeps the handle.
 * PAWL_INVALID (no current iteration, or a task of another session), PAWL_EXISTS (the task is already in an
 * iteration). */
PAWL_API PAWL_MUST_USE pawl_status pawl_iteration_add(struct pawl_iterations *iterations, struct pawl_task *task);

/* Ends the current iteration; no more tasks can be added to it. `objective` is the value that the worker
 * minimises, for the adaptive policy; NAN if not known. Clocks the group, if there is one. PAWL_INVALID (no
 * current iteration), or the errors of pawl_group_clock. */
PAWL_API PAWL_MUST_USE pawl_status pawl_iteration_end(struct pawl_iterations *iterations, double objective);

/* Changes the bound, also for an iteration that is waiting. Under a-bsp all members should change it in the
 * same tick. PAWL_INVALID for policies without a bound, for a-bsp 0, or outside the limits of the adaptive
 * policy. */
PAWL_API PAWL_MUST_USE pawl_status pawl_iterations_set_bound(struct pawl_iterations *iterations, uint64_t bound);

struct pawl_iterations_figures {
  uint64_t begun, finished; /* numbers of the last iterations begun and finished */
  uint64_t slowest;         /* as in struct pawl_progress */
  uint64_t bound;           /* present bound; 0 for policies without a bound */
  int64_t waited_ns;        /* total time in pawl_iteration_begin and pawl_iteration_ready */
  int64_t worked_ns;        /* total time between begin and end */
};

/* Never fails. */
PAWL_API void pawl_iterations_figures(struct pawl_iterations *iterations, struct pawl_iterations_figures *figures_out);

#ifdef __cplusplus
}
#endif

#endif
