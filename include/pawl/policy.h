/* Policies: when may a worker's next iteration start? (OSDI'14 3.4)
 *
 * A worker's program is a row of iterations: pull, compute, push. An iteration works on what those before it have left, its own
 * and the other workers', and a policy says how much of that may still be missing:
 *
 *   "sequential"      nothing of our own: every iteration before has finished
 *   "bounded 8"       the last 8 of our own may be under way. "bounded 0" is sequential
 *   "eventual"        anything may be missing
 *   "ssp 2"           others may be 2 iterations behind us. "ssp 0" is bulk synchronous
 *   "a-bsp 4"         4 iterations are one tick, within which nobody waits; a tick starts when all have finished the one before
 *   "adaptive 0 16"   as bounded, with a bound that moves between the two with what is measured
 *   a function        pawl_iterations_create_user
 *
 *   pawl_iterations_create(session, group, "bounded 8", &iterations);
 *   for (…) {
 *     pawl_iteration_begin(iterations, PAWL_FOREVER, &number);   waits as the policy says
 *     … compute …
 *     pawl_vector_push(vector, where, values, &task);
 *     pawl_iteration_add(iterations, task);                      the iteration lasts until the task has finished
 *     pawl_task_release(task);
 *     pawl_iteration_end(iterations, objective);
 *   }
 *
 * An iteration has *finished* when it was ended and all tasks that were added to it have finished; one that failed has finished
 * too, and the next pawl_iteration_begin tells of it.
 *
 * GROUPS. With a group, ending an iteration (under a-bsp the last of a tick) clocks it: the other members then know. ssp and a-bsp
 * need a group, and nobody else may clock it. Iterations are counted as its ticks are, so a worker that joins late begins where
 * the others are. A worker that dies or leaves is waited for no more.
 *
 * THREADS. One thread begins and ends iterations; all else may be called from any. Destroy the iterations before you leave the group.
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

/* `group` may be NULL but for ssp and a-bsp. PAWL_INVALID: pawl_error_text says what is wrong with the text. PAWL_NO_MEMORY. */
PAWL_API pawl_status pawl_iterations_create(struct pawl_session *session, struct pawl_group *group, const char *policy,
                                            struct pawl_iterations **iterations_out);

/* What a policy of your own decides by. */
struct pawl_progress {
  uint64_t finished; /* of our own iterations: this and all before */
  uint64_t
      slowest; /* the tick that every member of the group has finished, as far as is known; UINT64_MAX without a group */
};

/* A policy of your own. `lets` says whether the iteration may start. It is asked whenever there is news, in some thread that is
 * inside a call of the session or in the session's own: it decides by its arguments alone, and must not call pawl. Once it has let an
 * iteration go, more progress must not change its mind. */
PAWL_API pawl_status pawl_iterations_create_user(struct pawl_session *session, struct pawl_group *group,
                                                 bool (*lets)(void *context, uint64_t iteration,
                                                              const struct pawl_progress *progress),
                                                 void *context, struct pawl_iterations **iterations_out);

/* Goes with the session at the latest. Tasks go on. NULL is fine. */
PAWL_API void pawl_iterations_destroy(struct pawl_iterations *iterations);

/* Waits until the policy lets the next iteration start. `*number_out`, which may be NULL, is its number.
 *   PAWL_TIMED_OUT   pawl_error_text says what it waits for: which iteration of ours and which task of it, or which tick of the
 *                    group and who is behind, which to find out may take 200 ms more. It may be called again
 *   PAWL_INVALID     the iteration before was not ended
 *   another          a task of an earlier iteration failed, and this is how. It is told once; call again to go on */
PAWL_API pawl_status pawl_iteration_begin(struct pawl_iterations *iterations, int64_t timeout_ns, uint64_t *number_out);

/* The iteration that was begun lasts until this task, too, has finished. The handle stays yours. PAWL_INVALID (none was begun, or
 * a task of another session), PAWL_EXISTS (it is in an iteration already). */
PAWL_API pawl_status pawl_iteration_add(struct pawl_iterations *iterations, struct pawl_task *task);

/* No more tasks will be added to it. `objective` is what the worker minimises, for the adaptive policy; NAN if it is not known.
 * Clocks the group, if there is one. PAWL_INVALID (none was begun); else as pawl_group_clock. */
PAWL_API pawl_status pawl_iteration_end(struct pawl_iterations *iterations, double objective);

/* Another bound, from now on: whoever waits is looked at again. Under a-bsp all members should change it in the same tick.
 * PAWL_INVALID for policies without a bound, a-bsp 0, or beyond the adaptive policy's own two. */
PAWL_API pawl_status pawl_iterations_set_bound(struct pawl_iterations *iterations, uint64_t bound);

struct pawl_iterations_figures {
  uint64_t begun, finished; /* numbers, as above */
  uint64_t slowest;         /* as in struct pawl_progress */
  uint64_t bound;           /* as it is now; 0 for policies without one */
  int64_t waited_ns;        /* in pawl_iteration_begin */
  int64_t worked_ns;        /* between begin and end */
};

/* Never fails. */
PAWL_API void pawl_iterations_figures(struct pawl_iterations *iterations, struct pawl_iterations_figures *figures_out);

#ifdef __cplusplus
}
#endif

#endif
