/* Calls: named functions of one node that others run (OSDI'14 3.2: a task may be any function, on any node or group of nodes).
 *
 * OFFERING. A node offers functions by name: pawl_function_offer. Its session must have been opened with `listen`. A function
 * is handed an *invocation*, which has the argument and takes the result, and returns a status. It runs in a thread of the
 * session's that is there for this: it may take as long as it likes, wait, push, pull and call others, but not
 * close the session, nor flush it, since that may wait for itself. What it starts meanwhile
 * in its own thread are its *subtasks*: the call has finished only when the function has returned and all of them have. A
 * subtask without a handle that fails makes the call fail; one with a handle is the function's to judge.
 *
 * CALLING. pawl_call hands out a task, which has finished when all nodes that were called have answered; pawl_answer_get tells
 * what each of them said. Names, arguments and results are copied.
 *
 * AT MOST ONCE. A call runs once, or not at all. If the link breaks it is sent again, and whoever has run it says again what it
 * said. If the node that was to run it dies, or this one is taken for dead, before the answer is here, nobody can know:
 * PAWL_OUTCOME_UNKNOWN. Time that runs out ends the waiting and never the call. Calls from one session to one node begin in the
 * order in which they were made, and run side by side.
 *
 * GRAPHS. pawl_call_graph sends several calls with edges between them, whole (OSDI'14 3.5): each begins when all that it comes
 * after have finished well, without anything being sent to and fro. One that comes after a failed one fails too, without having
 * begun, and names it.
 *
 * TRIGGERS. pawl_trigger is a push that begins when all members of a group have reached a tick: "apply this when everybody's
 * pushes of tick t are in".
 *
 * TASKS OF OTHERS. pawl_task_id and pawl_task_elsewhere: a task here that finishes when one of another session has.
 *
 * THREADS. Any. ERRORS, besides those that each call names: PAWL_INVALID, PAWL_NO_MEMORY, PAWL_FORBIDDEN (a read-only session),
 * PAWL_NODE_STOPPED (the session is being closed). docs/calls.md has an example and what each failure means.
 */
#ifndef PAWL_CALL_H
#define PAWL_CALL_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/task.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_task;
struct pawl_invocation;

#define PAWL_CALL_BYTES (4 << 20) /* of names and arguments in one call or graph, and of results in one answer */
#define PAWL_CALL_THREADS 64      /* functions of one session that run at the same time; others wait for their turn */
#define PAWL_CALL_NONE UINT32_MAX /* no call of a graph */
#define PAWL_GRAPH_CALLS 4096     /* in one graph */
#define PAWL_GRAPH_EDGES (1 << 16)

/* --- offering --------------------------------------------------------------------------------------------------------- */

/* From now on others may call it. Names are words of letters, digits, '.', '_' and '-', with slashes between them, of at most
 * PAWL_NAME_MAX characters in all; those that begin with a dot are pawl's own. PAWL_EXISTS; PAWL_INVALID if the session does not
 * listen. */
PAWL_API pawl_status pawl_function_offer(struct pawl_session *session, const char *name,
                                         pawl_status (*function)(struct pawl_invocation *invocation, void *context),
                                         void *context);

/* Offers it no more, and waits until nobody runs it; not from inside a function. PAWL_NOT_FOUND. */
PAWL_API pawl_status pawl_function_withdraw(struct pawl_session *session, const char *name);

/* Inside a function. The argument lives until it returns, and is aligned as malloc would align it. */
PAWL_API const void *pawl_invocation_argument(const struct pawl_invocation *invocation, size_t *size_out);
PAWL_API struct pawl_session *pawl_invocation_session(const struct pawl_invocation *invocation);
PAWL_API struct pawl_node pawl_invocation_caller(const struct pawl_invocation *invocation);

/* What the caller is to get, copied; the last one counts. It gets it also if the function then returns a failure.
 * PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_API pawl_status pawl_invocation_return(struct pawl_invocation *invocation, const void *bytes, size_t size);

/* --- calling ---------------------------------------------------------------------------------------------------------- */

/* Who is called: a node, or all members that a group has when the call begins. And when: after other tasks of this session, or as
 * a part of one, as in `struct pawl_where`. */
struct pawl_target {
  struct pawl_node node;
  const char *group; /* its name, if `node` is {0} */

  struct pawl_task *const *after; /* the array is read during the call; */
  size_t after_count;             /* the tasks may be released right after it */
  struct pawl_task *parent;       /* a task of pawl_task_begin; NULL: none */
};

static inline struct pawl_target pawl_to_node(struct pawl_node node) {
  struct pawl_target target = {node, 0, 0, 0, 0};
  return target;
}

static inline struct pawl_target pawl_to_group(const char *name) {
  struct pawl_target target = {{0}, name, 0, 0, 0};
  return target;
}

/* The same target, once these tasks have finished well: a call after one that failed fails too (PAWL_CANCELLED). */
static inline struct pawl_target pawl_to_after(struct pawl_target target, struct pawl_task *const *tasks,
                                               size_t count) {
  target.after = tasks;
  target.after_count = count;
  return target;
}

/* Calls one function. The task fails, if any of the nodes that were called did, with
 *   PAWL_NOT_FOUND        the node offers no such function; or there is no such group, or nobody is in it
 *   PAWL_NODE_GONE        there is no such node, and it has not run
 *   PAWL_UNSUPPORTED      the node does not listen
 *   PAWL_OUTCOME_UNKNOWN  the node is gone, or this one was taken for dead: it may have run
 *   PAWL_TOO_LARGE        the results are larger than PAWL_CALL_BYTES: it has run
 *   anything else         what the function returned, or one of its subtasks
 * Found before anything is sent: PAWL_INVALID (a name that cannot be), PAWL_TOO_LARGE, PAWL_FORBIDDEN. */
PAWL_API pawl_status pawl_call(struct pawl_session *session, struct pawl_target target, const char *name,
                               const void *argument, size_t size, struct pawl_task **task_out);

struct pawl_graph_call {
  const char *name;
  const void *argument;
  size_t size;
};

/* Calls all of them, at each node of the target. Errors as pawl_call; PAWL_INVALID if an edge leads nowhere, or for a cycle, of
 * which pawl_error_text names a call. */
PAWL_API pawl_status pawl_call_graph(struct pawl_session *session, struct pawl_target target,
                                     const struct pawl_graph_call *calls, size_t count, const struct pawl_edge *edges,
                                     size_t edge_count, struct pawl_task **task_out);

/* What one call came to at one node. */
struct pawl_answer {
  struct pawl_node node;
  uint32_t call;      /* its number in the graph; 0 for a single one */
  pawl_status status; /* PAWL_CANCELLED: it has not begun, because call number */
  uint32_t cause;     /* `cause` failed; else PAWL_CALL_NONE */
  const void *bytes;  /* the result, aligned as malloc would align it; lives as long as the task is not released */
  size_t size;
};

/* Of a task that has finished: node by node, and for each call by call. 0 and PAWL_NOT_FOUND for other tasks. */
PAWL_API size_t pawl_answer_count(const struct pawl_task *task);
PAWL_API pawl_status pawl_answer_get(const struct pawl_task *task, size_t index, struct pawl_answer *answer_out);

/* --- triggers --------------------------------------------------------------------------------------------------------- */

/* A push that begins when every member of the group `space/name` has reached `tick`; whoever calls need not be one. Since a
 * member's tick is counted only when its pushes before it are in, all pushes that the members called before are in then, with
 * all replicas. It is a push like any other: exactly once on each key, whatever servers die meanwhile. Until it begins it lives
 * in this session: if that ends, it does not happen. Keys and values are the task's until it has finished.
 * pawl_session_flush does not wait for it. Errors as pawl_vector_push; PAWL_NOT_FOUND if there is no such group: the manager is
 * asked, if this session has not heard of it. */
PAWL_API pawl_status pawl_trigger(struct pawl_session *session, const char *group, uint64_t tick,
                                  struct pawl_vector *vector, struct pawl_where where, const void *values,
                                  struct pawl_task **task_out);

/* --- tasks of other sessions ------------------------------------------------------------------------------------------ */

/* A task here that finishes when the task with that id (pawl_task_id) at that node (pawl_session_node) has, and as it has.
 * The two are told to others in a call, or in a vector. The node must listen. Failures are
 * remembered there for the last 4096 that failed. As pawl_call; PAWL_INVALID if that node never had such a task. */
PAWL_API pawl_status pawl_task_elsewhere(struct pawl_session *session, struct pawl_node node, uint64_t id,
                                         struct pawl_task **task_out);

#ifdef __cplusplus
}
#endif

#endif
