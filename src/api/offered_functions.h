/* Functions that a session offers to callers, and the threads that run them.
 *
 * The callee (client/calls/callee.h) hands over an invocation inside the gate. It is queued for threads that do
 * nothing else, so a function may take any time without stopping the net. A thread is added whenever none is
 * idle, up to PAWL_CALL_THREADS; the threads end with the session.
 *
 * Tasks that such a thread starts are recorded as subtasks of its invocation: pwi_offered_functions_adopt.
 * When a task of the session has finished, the task line reports it (api/task_pool.h); then the call that it
 * belongs to is told, and callers of ".wait" (pawl_task_elsewhere).
 *
 * All functions here but the first two, and those of desks, must be called inside the gate.
 */
#ifndef PWI_API_OFFERED_FUNCTIONS_H
#define PWI_API_OFFERED_FUNCTIONS_H

#include <pawl/call.h>

#include "api/task_pool.h"

struct pwi_offered_functions;

#define PWI_FUNCTION_WAIT ".wait" /* the argument is the u64 id of a task of this session */

/* For a session that listens, before other threads know it. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_offered_functions_create(struct pawl_session *session,
                                                       struct pwi_offered_functions **functions_out);

/* Outside the gate: accepts no new calls, and waits until no function runs any more. NULL is fine, here
 * and below. */
void pwi_offered_functions_stop(struct pwi_offered_functions *functions);

/* Sends no more results or notifications: the net is about to be destroyed. */
void pwi_offered_functions_mute(struct pwi_offered_functions *functions);
/* call it after stop, with no thread at the gate */
void pwi_offered_functions_destroy(struct pwi_offered_functions *functions);

/* Makes a task that this thread is about to start a subtask of the invocation that the thread runs, if
 * there is one. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_offered_functions_adopt(struct pwi_offered_functions *functions, struct pawl_task *task);

/* --- desks ---------------------------------------------------------------------------------------------- */

/* A desk: an internal function that is not run by the session's threads. Its invocations wait at the desk
 * until the owner's thread takes and ends them, one by one. So it runs in the thread that the owner
 * chooses, and a thread that waits for the bell drives the session in the meantime: a call needs no thread
 * switch. Tasks of the owner are no subtasks.
 *
 * All functions must be called outside the gate. */
struct pwi_desk {
  struct pawl_session *session;
  struct pwi_event bell; /* set when an invocation has come, and by pwi_desk_ring */
  struct pawl_invocation *queue, **queue_end;
  char name[PAWL_NAME_MAX + 1];
};

/* PAWL_EXISTS, PAWL_INVALID if the session does not listen, PAWL_NO_MEMORY, PAWL_NODE_STOPPED; with a
 * text. */
PAWL_MUST_USE pawl_status pwi_desk_open(struct pwi_desk *desk, struct pawl_session *session, const char *name);

/* The oldest waiting invocation; NULL: none, and the bell will ring for the next one. */
struct pawl_invocation *pwi_desk_take(struct pwi_desk *desk);
void pwi_desk_end(struct pawl_invocation *invocation, pawl_status status);

/* Any thread. */
void pwi_desk_ring(struct pwi_desk *desk);

/* Waits until the bell has rung since the last pwi_desk_take; false if the deadline passes first. */
bool pwi_desk_wait(struct pwi_desk *desk, int64_t deadline);

/* All taken invocations must have been ended. Waiting ones end with PAWL_NOT_FOUND. */
void pwi_desk_close(struct pwi_desk *desk);

/* Offers an internal function, whose name begins with a dot: as pawl_function_offer, which refuses such
 * names. */
PAWL_MUST_USE pawl_status pwi_offered_function_add(struct pawl_session *session, const char *name,
                                                   pawl_status (*function)(struct pawl_invocation *invocation,
                                                                           void *context),
                                                   void *context);

/* A task callback may run in a thread that runs a function, but is not part of it. The first returns the
 * thread's invocation and clears it, the second restores it. May be called anywhere. */
struct pawl_invocation *pwi_offered_functions_step_out(void);
void pwi_offered_functions_step_in(struct pawl_invocation *invocation);

#endif
