/* The pace of a worker: its iterations under a policy (sync/policy.h).
 *
 * An iteration is begun, gets tasks, and is ended when no more tasks will be added. It has *finished* when it
 * was ended and all its tasks have finished. The pace tracks the finished iterations of the worker and the
 * reported progress of the group. It decides whether the next iteration may begin, and if not, what it waits
 * for.
 *
 * NUMBERS. Iterations are numbered as the ticks of the group: a worker that joins when the others have
 * finished tick 7 begins with iteration 8, so that "all members have finished 5" has the same meaning for
 * all. Without a group the first iteration is 1. Under a-bsp several iterations form a tick, only ticks are
 * compared, and iterations have their own numbers.
 *
 * The pace has no side effects: its user starts tasks, clocks the group and reports the group's progress.
 * Sessions and the simulator use the same code.
 *
 * Threads: any, one at a time.
 */
#ifndef PWI_SYNC_PACE_H
#define PWI_SYNC_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fifo.h"
#include "sync/policy.h"

/* All fields are read-only for users. */
struct pwi_pace {
  struct pwi_policy policy;
  bool has_group;
  bool is_open;         /* the iteration `begun` was not ended yet */
  uint64_t begun;       /* the last iteration that began; initially one less than the first */
  uint64_t finished;    /* this iteration and all earlier ones have finished */
  uint64_t ticked;      /* the last tick that this worker has finished and clocked */
  uint64_t slowest;     /* every member is known to have finished this tick */
  uint64_t in_tick;     /* iterations begun since the last tick */
  struct pwi_fifo open; /* the iterations that have not finished, from `finished` + 1 on */
};

/* `tick` is the tick at which the member joined; 0 without a group. Allocates nothing. */
void pwi_pace_init(struct pwi_pace *pace, const struct pwi_policy *policy, bool has_group, uint64_t tick);
void pwi_pace_fini(struct pwi_pace *pace);

/* Tells what the next iteration waits for. For GROUP, `until` is a tick of the group; without a group this
 * never occurs. */
struct pwi_policy_wait pwi_pace_ask(const struct pwi_pace *pace);

/* Tells what the open iteration waits for before it may send its results. */
struct pwi_policy_wait pwi_pace_ask_to_send(const struct pwi_pace *pace);

/* Begins the next iteration, without asking the policy. No iteration may be open. PAWL_NO_MEMORY: the
 * iteration has not begun. */
PAWL_MUST_USE pawl_status pwi_pace_begin(struct pwi_pace *pace);

/* Report that a task of the open iteration has started, and that a task of `iteration` has finished,
 * successfully or not. */
void pwi_pace_add(struct pwi_pace *pace);
void pwi_pace_over(struct pwi_pace *pace, uint64_t iteration);

/* Ends the open iteration. Returns true if this finishes a tick of the worker, `pace->ticked`, which must be
 * clocked after the tasks of the iteration. The three numbers are passed to pwi_policy_learn. */
bool pwi_pace_end(struct pwi_pace *pace, double waited, double worked, double gain);

/* Reports that every member has finished this tick. */
void pwi_pace_heard(struct pwi_pace *pace, uint64_t slowest);

/* As pwi_policy_set_bound. Under a-bsp, a tick that already has more iterations than the new bound ends with
 * the next iteration that is ended. */
PAWL_MUST_USE pawl_status pwi_pace_set_bound(struct pwi_pace *pace, uint64_t bound);

#endif
