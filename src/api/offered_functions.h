/* Functions that a session offers, and the threads that run them.
 *
 * The callee (client/callee.h) says inside the gate what is to be run. It goes into a queue, from which threads take it that are
 * there for nothing else: so a function may take as long as it likes, and the net is looked after meanwhile. A thread is added
 * whenever none is idle, up to PAWL_CALL_THREADS; they end with the session.
 *
 * Tasks that such a thread starts are noted as subtasks of what it runs: pwi_functions_adopt. When a task of the session has
 * finished, the line says so (api/task_pool.h), and whoever waits for it is told: the call that it belongs to, and callers of
 * ".wait" (pawl_task_elsewhere).
 *
 * All functions here but the first two, and those of desks, are for inside the gate.
 */
#ifndef PWI_API_OFFERED_FUNCTIONS_H
#define PWI_API_OFFERED_FUNCTIONS_H

#include <pawl/call.h>

#include "api/task_pool.h"

struct pwi_functions;

#define PWI_FUNCTION_WAIT ".wait" /* argument: the u64 id of a task here */

/* For a session that listens; before anybody else knows it. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_functions_create(struct pawl_session *session, struct pwi_functions **functions_out);

/* Outside the gate: takes no new calls, and waits until nothing runs any more. NULL is fine, here and below. */
void pwi_functions_stop(struct pwi_functions *functions);

/* Nobody is told anything any more: the net is about to go. */
void pwi_functions_mute(struct pwi_functions *functions);
void pwi_functions_destroy(struct pwi_functions *functions); /* after stop, with nobody at the gate */

/* A task that this thread is about to start: belongs to the call that it runs, if it runs one. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_functions_adopt(struct pwi_functions *functions, struct pawl_task *task);

/* --- desks --------------------------------------------------------------------------------------------------------------- */

/* A function of pawl's own that no thread of the session's runs: calls of it wait at a desk until a thread that is there for it takes
 * them, one by one, and ends each. So it runs where the desk's owner wants, and a thread that waits at the bell does the session's
 * work meanwhile: a call costs no change of threads. What the owner does in between are no subtasks.
 *
 * All outside the gate. */
struct pwi_desk {
  struct pawl_session *session;
  struct pwi_event bell; /* rings when a call has come, and when the owner's friends ring it */
  struct pawl_invocation *queue, **queue_end;
  char name[PAWL_NAME_MAX + 1];
};

/* PAWL_EXISTS, PAWL_INVALID if the session does not listen, PAWL_NO_MEMORY, PAWL_NODE_STOPPED; with a text. */
PAWL_MUST_USE pawl_status pwi_desk_open(struct pwi_desk *desk, struct pawl_session *session, const char *name);

/* The call that has waited longest; NULL: there is none, and the bell will ring when there is. */
struct pawl_invocation *pwi_desk_take(struct pwi_desk *desk);
void pwi_desk_end(struct pawl_invocation *invocation, pawl_status status);

/* Any thread. */
void pwi_desk_ring(struct pwi_desk *desk);

/* Until the bell has rung since the last pwi_desk_take: false if the deadline came first. */
bool pwi_desk_wait(struct pwi_desk *desk, int64_t deadline);

/* All that were taken have been ended. Those that wait are told PAWL_NOT_FOUND. */
void pwi_desk_close(struct pwi_desk *desk);

/* Offers a function of pawl's own, whose name begins with a dot: as pawl_function_offer, which refuses these. */
PAWL_MUST_USE pawl_status pwi_function_offer(struct pawl_session *session, const char *name,
                                             pawl_status (*function)(struct pawl_invocation *invocation, void *context),
                                             void *context);

/* Callbacks of tasks may run in a thread that runs a function, and have nothing to do with it: what the thread ran before, to
 * be given back afterwards. Anywhere. */
struct pawl_invocation *pwi_functions_step_out(void);
void pwi_functions_step_in(struct pawl_invocation *invocation);

#endif
