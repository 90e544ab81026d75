/* Calls that wait for other tasks: `after`, and tasks with parts.
 *
 * Most calls do not use this: they start at once, at no cost. A task is put into the session's order
 * (sync/order.h) when a call names it, or when it is held back itself. A held call keeps its start
 * parameters, and references to the tasks that it waits for, so that it can be described.
 *
 * A task of the caller (pawl_task_begin) has no work of its own: the caller reports its end. It has
 * finished when that was reported and all its parts have finished.
 *
 * Everything here happens inside the session's gate.
 */
#ifndef PWI_API_SEQUENCE_H
#define PWI_API_SEQUENCE_H

#include "api/task_pool.h"
#include "sync/order.h"

/* The start parameters of a call. The list is retained; everything else belongs to the caller until the
 * task has finished. */
struct pwi_held_call {
  enum pwi_request_kind kind; /* 0: there is nothing to do but to finish */
  struct pwi_flow *flow;
  struct pwi_where where;
  const void *in;
  void *out;
  uint64_t tick; /* TICK */
  pawl_status (*begin)(struct pwi_client *client,
                       struct pawl_task *task); /* starts the call; NULL: start it by its kind */
};

struct pwi_dependent {
  struct pwi_held_call call;
  size_t after_count;
  struct pawl_task *after[]; /* with a reference each */
};

struct pwi_sequence {
  struct pwi_task_order order;
  struct pwi_client *client;
  size_t held; /* calls that have not started */
  bool is_going_on;
};

void pwi_sequence_init(struct pwi_sequence *sequence);
void pwi_sequence_fini(struct pwi_sequence *sequence); /* must be empty */

/* The tasks that a call comes after, and the task that it is a part of. */
struct pwi_after {
  struct pawl_task *const *tasks;
  size_t count;
  struct pawl_task *parent; /* NULL: none */
  bool is_anyway;           /* start even if they fail */
};

/* Holds the call back until it may start, which may be at once; it may also have failed when this returns.
 * The task must be in line. PAWL_INVALID (a task does not exist or belongs to another session, or the
 * parent is not an open task of the caller), PAWL_NO_MEMORY: nothing has happened. */
PAWL_MUST_USE pawl_status pwi_sequence_hold(struct pwi_sequence *sequence, struct pawl_task *task,
                                            const struct pwi_held_call *call, const struct pwi_after *after);

/* Holds the call back until all pushes and ticks of the line that are held now have ended, well or not. */
PAWL_MUST_USE pawl_status pwi_sequence_hold_behind(struct pwi_sequence *sequence, struct pawl_task *task,
                                                   const struct pwi_held_call *call);

/* Adds a task of the caller (pawl_task_begin). PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sequence_own(struct pwi_sequence *sequence, struct pawl_task *task);

/* The own work of a task in the order has ended: it finishes now, or with its parts. Starts the calls that
 * may start then. */
void pwi_sequence_ended(struct pwi_sequence *sequence, struct pawl_task *task);

/* Describes the tasks that a held call waits for: "call 7, push to ads/w, and 2 more". */
void pwi_dependent_describe(const struct pwi_dependent *held, char *text, size_t size);

#endif
