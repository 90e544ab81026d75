/* The pace of a worker: its iterations under a policy (sync/policy.h), from what is finished of them.
 *
 * An iteration is begun, has tasks that are under way, and is ended when no more tasks will be added to it. It has *finished*
 * when it was ended and all its tasks have finished. The pace counts which iterations have, knows how far the group is as far
 * as it was told, and answers one question: may the next iteration begin, and if not, what does it wait for?
 *
 * NUMBERS. Iterations are counted as the ticks of the group are: a worker that joins where the others have finished tick 7
 * begins with iteration 8, so that "everybody has finished 5" means the same to all. Without a group the first one is 1. Under
 * a-bsp several iterations are one tick, and only ticks are compared; the iterations are counted by themselves.
 *
 * Pure: whoever uses it starts tasks, clocks the group and asks it how far it is. The same code runs in sessions and in the
 * simulator.
 *
 * Threads: any, one at a time.
 */
#ifndef PWI_SYNC_PACE_H
#define PWI_SYNC_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fifo.h"
#include "sync/policy.h"

/* To be read; changed by the functions below. */
struct pwi_pace {
  struct pwi_policy policy;
  bool has_group;
  bool is_open;         /* an iteration has begun and was not ended: it is number `begun` */
  uint64_t begun;       /* the last iteration that has; one less than the first at first */
  uint64_t finished;    /* this iteration and all before */
  uint64_t ticked;      /* the tick that this worker has finished and clocked */
  uint64_t slowest;     /* the tick that every member is known to have finished */
  uint64_t in_tick;     /* iterations that were begun since the last tick */
  struct pwi_fifo open; /* those that have not finished, from `finished` + 1 on */
};

/* `tick` is that of the member when it joined; 0 without a group. Allocates nothing. */
void pwi_pace_init(struct pwi_pace *pace, const struct pwi_policy *policy, bool has_group, uint64_t tick);
void pwi_pace_fini(struct pwi_pace *pace);

/* What the next iteration waits for: for GROUP the tick is the group's own number. Without a group nobody waits for it. */
struct pwi_policy_wait pwi_pace_ask(const struct pwi_pace *pace);

/* The next one begins, whatever the policy says. None may be open. PAWL_NO_MEMORY: it has not begun. */
PAWL_MUST_USE pawl_status pwi_pace_begin(struct pwi_pace *pace);

/* A task of the open iteration is under way; and one of iteration number `iteration` has finished, well or not. */
void pwi_pace_add(struct pwi_pace *pace);
void pwi_pace_over(struct pwi_pace *pace, uint64_t iteration);

/* The open iteration has all its tasks. True if the worker has finished a tick with it, which is then `pace->ticked`, and has to be
 * clocked after its tasks. The three numbers are for pwi_policy_learn. */
bool pwi_pace_end(struct pwi_pace *pace, double waited, double worked, double gain);

/* Every member has finished this tick. */
void pwi_pace_heard(struct pwi_pace *pace, uint64_t slowest);

/* As pwi_policy_set_bound. Under a-bsp a tick that has more iterations already ends with the next one that is ended. */
PAWL_MUST_USE pawl_status pwi_pace_set_bound(struct pwi_pace *pace, uint64_t bound);

#endif
