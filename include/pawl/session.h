/* Sessions: a process' membership in a cluster.
 *
 * A session is opened once and used by all threads. It finds its cluster
 *   - at `address`, the manager's, if one is given;
 *   - else at the address in the environment variable PAWL_ADDRESS;
 *   - else it is *embedded*: a manager and servers are started as child processes on this machine and end with the session,
 *     or with this process, whatever becomes of it.
 * So a program that leaves `address` alone runs on a laptop as it is, and on a cluster with PAWL_ADDRESS set.
 *
 * A session is known to the cluster as one *sender*. If this process is stopped for so long that the cluster takes it for
 * dead, the session joins again by itself, finds out which of its pushes took effect, and sends the rest: callers see
 * nothing of it. A program whose work others take over opens its session with `stays_dead`. After fork, a child must not use
 * its parent's session.
 *
 * THREADS. Any thread may call anything; pawl_session_close only when no other call is under way. A session has one thread
 * of its own, which moves data while nobody waits; threads that wait do its work. A program may exit with sessions open: they are kept
 * from doing anything before other handlers of the exit run, but for what the exiting thread itself still asks of them.
 *
 * TIME. Calls that wait take a time-out in nanoseconds: PAWL_FOREVER (task.h) for none. Time running out ends the waiting,
 * not the work.
 */
#ifndef PAWL_SESSION_H
#define PAWL_SESSION_H

#include <stdbool.h>
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

struct pawl_session_options {
  const char *address; /* of the manager: host:port, tcp://…, unix:/…; of several that take turns, with commas between
                          them; NULL: see above */
  const char *job;     /* a word that names what this process works on, for `pawl status`; NULL: "default" */
  bool read_only;      /* only pull: no sender id, nobody waits for us */
  const char *listen; /* where other nodes reach vectors that we open locally and functions that we offer, such as
                         "127.0.0.1:0"; NULL: nowhere. The nodes of an embedded session's cluster listen at the same host */
  bool tcp_only;      /* no shared memory with servers on this machine */
  bool stays_dead; /* if the cluster takes this session for dead it does not join again: everything under way and every
                         later call fails with PAWL_NODE_GONE; for programs whose work others take over. What was under way
                         may have taken effect before, and cannot any more */

  /* Proof that we may: a key in a file, as text, or certificates; NULL: PAWL_KEY_FILE or PAWL_KEY from the environment,
   * if set. Embedded sessions need none. */
  const char *key_file;
  const char *key;
  const char *certificate;
  const char *private_key;
  const char *authority;
  bool require_encryption;

  /* Embedded sessions. */
  uint32_t servers;       /* server processes; 0: one, and one more for each replica */
  uint32_t shards;        /* per server; 0: one for every two processors, at least one */
  uint64_t server_memory; /* cap of each server in bytes; 0: none */
  uint32_t replicas;      /* of each key, on servers besides the one that is asked: so many may die; below `servers` */

  int64_t timeout_ns; /* for opening; 0: 30 seconds, and impatient */

  /* That nobody listens at the address, that the host is unknown, or that somebody answers who is not pawl, is reported within
   * about a second. Otherwise it is tried again until the time is up: the manager may be about to start. */
  bool impatient;
};

/* Fills in the defaults: all zeros. */
PAWL_API void pawl_session_options_init(struct pawl_session_options *options);

/* Opens a session; NULL for `options` takes the defaults. Options are copied.
 *   PAWL_INVALID          an option cannot be read
 *   PAWL_LINK_REFUSED …   the manager cannot be reached: the link's status after trying until the time-out
 *   PAWL_LINK_KEY         it does not accept our key
 *   PAWL_NOT_FOUND        embedded: the pawl command cannot be found (set PAWL_COMMAND)
 *   PAWL_TIMED_OUT        the cluster has no servers yet
 * pawl_error_text says more. */
PAWL_API pawl_status pawl_session_open(const struct pawl_session_options *options, struct pawl_session **session_out);

/* Refuses further calls from others and waits for functions that run (call.h), however long that takes. Then waits until
 * everything under way has finished, leaves the cluster, and frees the session with all its vectors, groups, lists and
 * buffers; tasks may still be asked and released. After `timeout_ns` it goes anyway: PAWL_TIMED_OUT, and pushes
 * that were not answered may or may not have been applied. Else as pawl_session_flush. NULL is fine. */
PAWL_API pawl_status pawl_session_close(struct pawl_session *session, int64_t timeout_ns);

/* Waits until all tasks that were started before have finished. Returns the first failure since the last flush among tasks
 * that were started without a handle, else PAWL_OK. */
PAWL_API pawl_status pawl_session_flush(struct pawl_session *session, int64_t timeout_ns);

/* This session as a destination for others (pawl_vector_open_local). Changes if the session had to join again; 0 if
 * it stays dead. */
PAWL_API struct pawl_node pawl_session_node(const struct pawl_session *session);

/* The manager's address: for other processes that are to join an embedded cluster. Lives as long as the session. */
PAWL_API const char *pawl_session_address(const struct pawl_session *session);

/* What this session has said and heard since it was opened, on all its links and their data planes: messages with their
 * heads, those that are sent again and pawl's own among them. What servers on this machine read in place is counted as if it
 * had travelled. Heartbeats, TLS and what the network adds are not counted. */
struct pawl_session_figures {
  uint64_t bytes_sent, bytes_received;
  uint64_t messages_sent, messages_received;
};

/* Never fails, sends nothing and waits for nobody's answer: for progress lines. */
PAWL_API void pawl_session_figures(struct pawl_session *session, struct pawl_session_figures *figures_out);

/* Whether every key has a server that is up, as far as the session has heard: PAWL_OK. PAWL_CLUSTER_WAITING: some wait for
 * servers that are down and have the only copy, and calls on them wait too. Such a server may come back, if only its network is
 * away; if its process has ended, what it held is lost, and an operator has to decide. pawl_error_text names the servers and
 * the commands. Sends nothing and waits for nobody. PAWL_INVALID. */
PAWL_API PAWL_MUST_USE pawl_status pawl_session_check(struct pawl_session *session);

/* The cluster's state as JSON (docs/cmd-status.md); freed with pawl_text_free. */
PAWL_API pawl_status pawl_session_status(struct pawl_session *session, int64_t timeout_ns, char **json_out);
PAWL_API void pawl_text_free(char *text);

/* The particulars of this thread's last failed call: "" if there are none. Valid until its next call of pawl. */
PAWL_API const char *pawl_error_text(void);

/* --- memory that servers on this machine read in place ---------------------------------------------------------------- */

/* Zeroed memory of at least `size` bytes, aligned to 64. It goes away with the session at the latest. After a task that
 * used it has finished it may be used again at once. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_API pawl_status pawl_buffer_create(struct pawl_session *session, size_t size, void **memory_out);
PAWL_API void pawl_buffer_destroy(struct pawl_session *session, void *memory); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
