/* Calls that wait for others: `after`, and tasks of which others are parts.
 *
 * Most calls have nothing to do with this: they start at once, and cost nothing here. A task is put into the session's order
 * (sync/order.h) when a call names it, or when it is itself held back. A call that is held keeps what it needs to start, and
 * references to the tasks that it waits for, so that it can say which they are.
 *
 * A task of the caller's own has no work that anybody does for it: the caller says when it has ended. It has finished when
 * that was said and all calls that were made as parts of it have finished.
 *
 * Everything here happens inside the session's gate.
 */
#ifndef PWI_API_SEQUENCE_H
#define PWI_API_SEQUENCE_H

#include "api/task_pool.h"
#include "sync/order.h"

/* What a call needs to start. The list is retained; everything else is the caller's until the task has finished. */
struct pwi_held_call {
  enum pwi_request_kind kind; /* 0: there is nothing to do but to finish */
  struct pwi_flow *flow;
  struct pwi_where where;
  const void *in;
  void *out;
  uint64_t tick; /* TICK */
  pawl_status (*begin)(struct pwi_client *client,
                       struct pawl_task *task); /* starts it in another way; NULL: by its kind */
};

struct pwi_dependent {
  struct pwi_held_call call;
  size_t after_count;
  struct pawl_task *after[]; /* with a reference each */
};

struct pwi_sequence {
  struct pwi_order order;
  struct pwi_client *client;
  size_t held; /* calls that have not started */
  bool is_going_on;
};

void pwi_sequence_init(struct pwi_sequence *sequence);
void pwi_sequence_fini(struct pwi_sequence *sequence); /* nothing is in it any more */

/* Which tasks a call comes after, and of which it is a part. */
struct pwi_after {
  struct pawl_task *const *tasks;
  size_t count;
  struct pawl_task *parent; /* NULL: none */
  bool is_anyway;           /* also if they fail */
};

/* Holds the call back until it may start, which may be at once; it may also have failed when this returns. The task is in line.
 * PAWL_INVALID (there is no such task, it is of another session, or the parent is no task of the caller's own that has not
 * ended), PAWL_NO_MEMORY: nothing has happened. */
PAWL_MUST_USE pawl_status pwi_sequence_hold(struct pwi_sequence *sequence, struct pawl_task *task,
                                            const struct pwi_held_call *call, const struct pwi_after *after);

/* The same, after all pushes and ticks of the line that are held now, however they end. */
PAWL_MUST_USE pawl_status pwi_sequence_hold_behind(struct pwi_sequence *sequence, struct pawl_task *task,
                                                   const struct pwi_held_call *call);

/* A task of the caller's own. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sequence_own(struct pwi_sequence *sequence, struct pawl_task *task);

/* The own work of a task that is in the order has ended: it finishes now, or with its parts. Starts what may start then. */
void pwi_sequence_ended(struct pwi_sequence *sequence, struct pawl_task *task);

/* What a held call waits for, as text: "call 7, push to ads/w, and 2 more". */
void pwi_dependent_describe(const struct pwi_dependent *held, char *text, size_t size);

#endif
