/* A session, inside.
 *
 * Client, net, and the lists of objects that the session owns are used inside the driver's gate only. The
 * task pool keeps the names of vectors and groups, because tasks refer to them.
 */
#ifndef PWI_API_SESSION_H
#define PWI_API_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include <pawl/session.h>

#include "api/driver.h"
#include "api/embedded.h"
#include "api/error.h"
#include "api/offered_functions.h"
#include "api/sequence.h"
#include "api/task_pool.h"
#include "base/cursor.h"
#include "base/log.h"
#include "base/random.h"
#include "net/key.h"
#include "client/client.h"

/* The limit on memory for messages that are being received, mostly calls of other nodes: INBOUND MEMORY in
 * net/net.h. */
#define PWI_SESSION_INBOUND ((size_t)1 << 30)

/* An object that is freed with its session at the latest. */
struct pwi_owned {
  struct pwi_owned *next, *before;
};

struct pwi_peers_wait;

struct pawl_session {
  struct pwi_driver driver;
  struct pwi_task_line line;   /* tasks that a flush waits for */
  struct pwi_task_line awaits; /* tasks that wait for other nodes; a flush does not wait for them */
  struct pwi_task_line owns;   /* tasks of the caller (pawl_task_begin) */
  struct pwi_sequence sequence;
  struct pwi_task_pool *pool;
  struct pwi_net *net;
  struct pwi_client *client;
  struct pwi_random random;
  uint64_t collective_lives; /* engines of collectives that were opened so far */
  uint64_t factor_lives;     /* engines of factors */
  struct pwi_log log;
  struct pwi_keyring *keys;      /* NULL: none */
  struct pwi_embedded *embedded; /* NULL: the cluster is not embedded */
  char *address;                 /* of the manager */
  bool listens;
  bool is_peers_only; /* there may be no servers; calls that need them are refused */
  /* NULL: the session does not listen, so it cannot be called */
  struct pwi_offered_functions *functions;
  /* callbacks that run at the end cannot start tasks any more */
  bool is_closed;
  struct pwi_owned vectors, lists, groups, iterations;   /* rings; peer groups are in `groups` */
  struct pwi_owned reduces, collectives, items, factors; /* rings */
  struct pwi_peers_wait *peers_waits;                    /* threads that wait for peers */
};

static inline void pwi_owned_init(struct pwi_owned *ring) { ring->next = ring->before = ring; }

static inline void pwi_owned_add(struct pwi_owned *ring, struct pwi_owned *owned) {
  *owned = (struct pwi_owned){ring, ring->before};
  ring->before->next = owned;
  ring->before = owned;
}

static inline void pwi_owned_remove(struct pwi_owned *owned) {
  owned->next->before = owned->before;
  owned->before->next = owned->next;
}

/* Inside the gate, at the end: free one object, which must not be in a ring any more. */
void pwi_vector_free(struct pwi_owned *owned);
void pwi_keys_free(struct pwi_owned *owned);
void pwi_group_free(struct pwi_owned *owned);
void pwi_iterations_free(struct pwi_owned *owned);
void pwi_reduce_free(struct pwi_owned *owned);
void pwi_collective_free(struct pwi_owned *owned);
void pwi_items_free(struct pwi_owned *owned);
void pwi_factor_free(struct pwi_owned *owned);

/* Inside the gate, when the client has ended for good: threads that wait in the object look at the session. */
void pwi_reduce_session_over(struct pwi_owned *owned);
void pwi_collective_session_over(struct pwi_owned *owned);
void pwi_items_session_over(struct pwi_owned *owned);
void pwi_factor_session_over(struct pwi_owned *owned);

/* Inside the gate: makes a task that is in line and has a reference for the client and, with a handle, one
 * for the caller. `what` must be static, `subject` from the pool. PAWL_NO_MEMORY; PAWL_NODE_STOPPED if the
 * session is being closed. */
PAWL_MUST_USE pawl_status pwi_session_task(struct pawl_session *session, struct pwi_task_line *line, bool has_handle,
                                           const char *what, const char *subject, struct pawl_task **task_out);

/* Inside the gate, right after the call that was to start the task: cleans up if `status` is a failure.
 * Returns `status`; `task_out` may be NULL. */
pawl_status pwi_session_started(struct pawl_session *session, struct pawl_task *task, pawl_status status,
                                struct pawl_task **task_out);

/* With more unfinished tasks than this, threads that start more must help. Links have room for a few
 * thousand messages. */
#define PWI_SESSION_TASKS 2048

/* Outside the gate: waits until half of them have finished, at most 10 ms. So a program that starts calls
 * faster than servers answer is slowed down, but never stopped. */
void pwi_session_catch_up(struct pawl_session *session);

/* Outside the gate: false if every key has a server that is up. Else `text` says how many arcs do not,
 * which nodes they wait for, and what to do. */
bool pwi_session_waits(struct pawl_session *session, char *text, size_t size);

/* PAWL_OK, or PAWL_UNSUPPORTED with a text if the session was opened for peers only. `what` and `subject`
 * begin the text. Call it before anything that only servers can do. */
PAWL_MUST_USE pawl_status pwi_session_needs_servers(const struct pawl_session *session, const char *what,
                                                    const char *subject);

/* Outside the gate: as pwi_error_status. If `status` is PAWL_TIMED_OUT and keys wait for servers that are
 * down, the text says so. */
pawl_status pwi_session_error(struct pawl_session *session, pawl_status status, const char *format, ...)
    PAWL_PRINTF(3, 4);

/* Outside the gate: waits until all tasks up to a serial have finished; false if the deadline passes
 * first. */
bool pwi_session_settle(struct pawl_session *session, uint64_t serial, int64_t deadline);

/* Inside the gate: the membership has changed, or the client has ended. Wakes threads that wait for peers, or in an
 * engine of a client that has ended. */
void pwi_session_peers_changed(void *session);

/* The name of a group's catalogue entry: space/name becomes space/.name. PAWL_INVALID, with a text that
 * begins with `what`. */
PAWL_MUST_USE pawl_status pwi_group_entry_name(const char *what, const char *name, char entry[PAWL_NAME_MAX + 1]);

/* Outside the gate. As pawl_call, also for internal functions, and as pawl_task_elsewhere; but no flush
 * waits for them: calls of a job may last long, and the application does not know of them. */
PAWL_MUST_USE pawl_status pwi_call_aside(struct pawl_session *session, struct pawl_target target, const char *name,
                                         const void *argument, size_t size, struct pawl_task **task_out);
PAWL_MUST_USE pawl_status pwi_task_elsewhere_aside(struct pawl_session *session, struct pawl_node node, uint64_t id,
                                                   struct pawl_task **task_out);

/* Outside the gate: asks the manager and waits. Returns the manager's status, or PAWL_TIMED_OUT,
 * PAWL_NO_MEMORY. The reply, without its status, is freed with pwi_free; `reply_out` may be NULL. Sets no
 * pawl_error_text. */
PAWL_MUST_USE pawl_status pwi_session_ask(struct pawl_session *session, enum pwi_ask what,
                                          const struct pwi_writer *payload, int64_t deadline, void **reply_out,
                                          size_t *size_out);

#endif
