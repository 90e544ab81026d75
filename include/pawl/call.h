/* Calls: a node offers functions by name, and other nodes run them. OSDI'14 3.2: a task may be any function,
 * on any node or group of nodes.
 *
 * OFFERING. A node offers a function with pawl_function_offer. Its session must have been opened with
 * `listen`. The function receives an *invocation*, which carries the argument and takes the result, and
 * returns a status. It runs in a thread that the session keeps for this purpose. The function may take any
 * time, wait, push, pull and call other functions. It must not close or flush the session, because either may
 * wait for the function itself. Calls that the function starts in its own thread are its *subtasks*: the call
 * finishes once the function has returned and all subtasks have finished. If a subtask without a handle
 * fails, the call fails. The function itself handles the failure of a subtask that has a handle.
 *
 * CALLING. pawl_call returns a task. The task finishes when every called node has answered. pawl_answer_get
 * returns the answer of each node. Names, arguments and results are copied.
 *
 * AT MOST ONCE. A call runs once or not at all. If the link breaks, the caller sends the call again; a node
 * that has already run it repeats its answer. If the called node dies before it answers, or the cluster
 * declares the caller dead, the outcome cannot be known: PAWL_OUTCOME_UNKNOWN. A timeout ends the waiting,
 * not the call. Calls from one session to one node begin in the order in which they were made, and run
 * concurrently.
 *
 * GRAPHS. pawl_call_graph sends several calls, with dependencies between them, in one message (OSDI'14 3.5).
 * A call begins as soon as all its predecessors have succeeded; no further messages are needed. If a
 * predecessor fails, the call fails without having begun, and its answer names the predecessor.
 *
 * TRIGGERS. pawl_trigger is a push that begins when all members of a group have reached a tick: "apply this
 * once all pushes of tick t have been applied".
 *
 * TASKS OF OTHER SESSIONS. pawl_task_elsewhere creates a task that finishes when a task of another session,
 * named by its pawl_task_id, finishes.
 *
 * THREADS. Any thread may call any function. ERRORS, in addition to those listed with each call:
 * PAWL_INVALID, PAWL_NO_MEMORY, PAWL_FORBIDDEN (a read-only session), PAWL_NODE_STOPPED (the session is being
 * closed). docs/calls.md has an example and explains each failure.
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

/* Limit for the names and arguments of one call or graph, and for the results of one answer. */
#define PAWL_CALL_BYTES (4 << 20)
#define PAWL_CALL_THREADS 64      /* functions that one session runs at a time; further calls are queued */
#define PAWL_CALL_NONE UINT32_MAX /* not the number of a call */
#define PAWL_GRAPH_CALLS 4096     /* calls in one graph */
#define PAWL_GRAPH_EDGES (1 << 16)

/* --- offering ------------------------------------------------------------------------------------------- */

/* Offers a function to other nodes. A name consists of words of letters, digits, '.', '_' and '-', separated
 * by slashes, with at most PAWL_NAME_MAX characters in all. Names that begin with a dot are reserved.
 * PAWL_EXISTS if the session already offers a function of this name; PAWL_INVALID if the session does not
 * listen. */
PAWL_API PAWL_MUST_USE pawl_status pawl_function_offer(struct pawl_session *session, const char *name,
                                                       pawl_status (*function)(struct pawl_invocation *invocation,
                                                                               void *context),
                                                       void *context);

/* Withdraws a function and waits until no invocation of it is running. Must not be called from inside a
 * function. PAWL_NOT_FOUND. */
PAWL_API pawl_status pawl_function_withdraw(struct pawl_session *session, const char *name);

/* For use inside a function. The argument is valid until the function returns, and is aligned as by
 * malloc. */
PAWL_API const void *pawl_invocation_argument(const struct pawl_invocation *invocation, size_t *size_out);
PAWL_API struct pawl_node pawl_invocation_caller(const struct pawl_invocation *invocation);

/* Sets the result, which is copied; a later call replaces it. The caller receives the result even if the
 * function returns a failure. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_invocation_return(struct pawl_invocation *invocation, const void *bytes,
                                                          size_t size);

/* --- calling -------------------------------------------------------------------------------------------- */

/* The target of a call: one node, or all members that a group has when the call begins. `after` and `parent`
 * work as in `struct pawl_where`. */
struct pawl_target {
  struct pawl_node node;
  const char *group; /* name of the group; used if `node` is {0} */

  struct pawl_task *const *after; /* tasks of this session that must succeed first; the array is read during
                                     the call */
  size_t after_count;             /* the tasks may be released once the call has returned */
  struct pawl_task *parent;       /* task from pawl_task_begin that this call is a part of; NULL: none */
};

static inline struct pawl_target pawl_to_node(struct pawl_node node) {
  struct pawl_target target = {node, 0, 0, 0, 0};
  return target;
}

static inline struct pawl_target pawl_to_group(const char *name) {
  struct pawl_target target = {{0}, name, 0, 0, 0};
  return target;
}

/* The same target, with the call delayed until these tasks have succeeded. If one of them fails, the call
 * fails with PAWL_CANCELLED. */
static inline struct pawl_target pawl_to_after(struct pawl_target target, struct pawl_task *const *tasks,
                                               size_t count) {
  target.after = tasks;
  target.after_count = count;
  return target;
}

/* Calls one function. The task fails if the call failed at any of the nodes:
 *   PAWL_NOT_FOUND        the node offers no such function; the group does not exist or is empty
 *   PAWL_NODE_GONE        the node does not exist; the function has not run
 *   PAWL_UNSUPPORTED      the node does not listen
 *   PAWL_OUTCOME_UNKNOWN  the node died, or this session was declared dead: the function may have run
 *   PAWL_TOO_LARGE        the results exceed PAWL_CALL_BYTES: the function has run
 *   any other status      the status of the function, or of one of its subtasks
 * pawl_call itself returns PAWL_INVALID (malformed name), PAWL_TOO_LARGE or PAWL_FORBIDDEN before it sends
 * anything. */
PAWL_API PAWL_MUST_USE pawl_status pawl_call(struct pawl_session *session, struct pawl_target target, const char *name,
                                             const void *argument, size_t size, struct pawl_task **task_out);

/* Call number `to` comes after call number `from`; numbers begin at 0. */
struct pawl_edge {
  uint32_t from, to;
};

struct pawl_graph_call {
  const char *name;
  const void *argument;
  size_t size;
};

/* Runs all calls of the graph at each node of the target. Errors as pawl_call; PAWL_INVALID if an edge names
 * a call beyond `count` or the edges form a cycle, and pawl_error_text names a call of the cycle. */
PAWL_API PAWL_MUST_USE pawl_status pawl_call_graph(struct pawl_session *session, struct pawl_target target,
                                                   const struct pawl_graph_call *calls, size_t count,
                                                   const struct pawl_edge *edges, size_t edge_count,
                                                   struct pawl_task **task_out);

/* The outcome of one call at one node. */
struct pawl_answer {
  struct pawl_node node;
  uint32_t call;      /* number of the call in the graph; 0 for a single call */
  pawl_status status; /* PAWL_CANCELLED: the call has not begun, because the call `cause` failed */
  uint32_t cause;     /* number of the failed predecessor; PAWL_CALL_NONE if there is none */
  const void *bytes;  /* the result, aligned as by malloc; valid until the task is released */
  size_t size;
};

/* The answers of a finished task, ordered by node and then by call. For other tasks the count is 0 and
 * pawl_answer_get returns PAWL_NOT_FOUND. */
PAWL_API size_t pawl_answer_count(const struct pawl_task *task);
PAWL_API PAWL_MUST_USE pawl_status pawl_answer_get(const struct pawl_task *task, size_t index,
                                                   struct pawl_answer *answer_out);

/* --- triggers ------------------------------------------------------------------------------------------- */

/* A push that begins when every member of the group `space/name` has reached `tick`. The caller need not be a
 * member. A member's tick counts only once all its earlier pushes have been applied; so when the push begins,
 * all replicas have every push that the members made before that tick. The push is applied exactly once to
 * each key, even if servers die in the meantime. Until it begins it exists only in this session: if the
 * session ends, the push does not happen. Keys and values belong to the task until it has finished.
 * pawl_session_flush does not wait for it. Errors as pawl_vector_push; PAWL_NOT_FOUND if the group does not
 * exist. The session asks the manager about a group that it does not know. */
PAWL_API PAWL_MUST_USE pawl_status pawl_trigger(struct pawl_session *session, const char *group, uint64_t tick,
                                                struct pawl_vector *vector, struct pawl_where where, const void *values,
                                                struct pawl_task **task_out);

/* --- tasks of other sessions ---------------------------------------------------------------------------- */

/* Creates a task that finishes when the task `id` (pawl_task_id) at `node` (pawl_session_node) finishes, and
 * with the same status. A program passes both numbers to others in a call or in a vector. The node must
 * listen; it remembers the last 4096 tasks that failed. Errors as pawl_call; PAWL_INVALID if that node never
 * had such a task. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_elsewhere(struct pawl_session *session, struct pawl_node node, uint64_t id,
                                                       struct pawl_task **task_out);

#ifdef __cplusplus
}
#endif

#endif
