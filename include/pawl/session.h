/* Sessions: the membership of a process in a cluster.
 *
 * A process opens one session, and all its threads use it. The session finds its cluster
 *   - at `address`, the address of the manager, if it is set;
 *   - otherwise at the address in the environment variable PAWL_ADDRESS;
 *   - otherwise it is *embedded*: it starts a manager and servers as child processes on this machine. They
 *     end with the session, or with this process however it ends.
 * A program that leaves `address` unset thus runs on a laptop without configuration, and on a cluster with
 * PAWL_ADDRESS.
 *
 * The cluster knows a session as one *sender*. If this process is stopped for so long that the cluster
 * declares it dead, the session joins again by itself, finds out which of its pushes took effect, and sends
 * the rest; callers do not notice. A program whose work is taken over by others should open its session with
 * `stays_dead`. After fork, the child must not use the session of its parent.
 *
 * THREADS. Any thread may call any function, except that pawl_session_close requires that no other call is in
 * progress. A session has one thread of its own, which moves data while no thread waits; a waiting thread
 * does this work itself. A program may exit with open sessions. The library stops them before other exit
 * handlers run; afterwards they act only when the exiting thread calls them.
 *
 * TIME. Calls that wait take a timeout in nanoseconds; PAWL_FOREVER (task.h) means none. A timeout ends the
 * waiting, not the work.
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
  size_t struct_size;  /* set by pawl_session_options_init */
  const char *address; /* of the manager: host:port, tcp://… or unix:/…; addresses of several managers are
                          separated by commas; NULL: see above */
  const char *job;     /* name of the work of this process, shown by `pawl status`; NULL: "default" */
  bool read_only;      /* the session only pulls; it gets no sender id and no process waits for it */
  const char *listen;  /* address at which other nodes reach local vectors and offered functions of this
                          session, such as "127.0.0.1:0"; NULL: none, except with `peers_only`. The nodes of an
                          embedded cluster listen on the same host */
  bool tcp_only;       /* do not use shared memory with servers on this machine */
  bool stays_dead;     /* if the cluster declares this session dead, it does not join again: all calls in
                          progress and all later calls fail with PAWL_NODE_GONE. For programs whose work is
                          taken over by others. A push in progress may have been applied before that, but not
                          afterwards */

  /* Credentials: a key in a file, a key as text, or certificates. NULL: PAWL_KEY_FILE or PAWL_KEY from the
   * environment, if set. Embedded sessions need none. */
  const char *key_file;
  const char *key;
  const char *certificate;
  const char *private_key;
  const char *authority;
  bool require_encryption;

  /* Embedded sessions. */
  uint32_t servers;       /* number of server processes; 0: one plus one per replica */
  uint32_t shards;        /* shards per server; 0: one for every two processors, at least one */
  uint64_t server_memory; /* memory limit of each server in bytes; 0: none */
  uint32_t replicas;      /* additional copies of each key: this many servers may die without loss; less than
                             `servers` */

  int64_t timeout_ns; /* for opening; 0: 30 seconds, with `impatient` set */

  /* Report within about a second that no process listens at the address, that the host is unknown, or that
   * the process there is not pawl. Without this option the session tries again until the timeout, because the
   * manager may be about to start. */
  bool impatient;

  const char *rack; /* label of the rack of this machine, for peers and for `pawl status`: at most 64 printable
                       characters without blanks; NULL: the environment variable PAWL_RACK, or "" */

  /* The session is for peers (peer.h) and uses no servers. It opens as soon as the manager has accepted it.
   * An embedded session starts a manager and no servers. Pushes, pulls, groups, checkpoints and all else that
   * servers do fail with PAWL_UNSUPPORTED, even if the cluster has servers. Peer groups, calls, and vectors
   * that sessions hold themselves (pawl_vector_open_local) work.
   *
   * Peers connect to one another, so such a session listens even if `listen` is NULL (unless it is
   * read_only): at a free port of the address from which this machine reaches the manager. For an embedded
   * cluster, and for a manager at a loopback address or a unix socket, that is a loopback address. If
   * `address` has several managers, the first one counts. If the address cannot be found, or the session
   * cannot listen there, opening fails; set `listen` then.
   *
   * With a key or a certificate links between peers are TLS 1.3, with shared memory beside it between
   * processes of one user on one machine, and a session accepts only peers that hold the key, or a
   * certificate of the authority. An embedded session without a key creates one: other sessions of this
   * process that name pawl_session_address get it by themselves, and other processes can join only if the
   * user has chosen the key (key, key_file, PAWL_KEY, PAWL_KEY_FILE). Without key and certificate the manager
   * must be on this machine, at a loopback address or a unix socket. Links are plain then, and every user of
   * this machine can connect to the session. */
  bool peers_only;

  /* How urgent the requests of this session are at servers, from 1 (least) to 9; 0: the environment variable
   * PAWL_PRIORITY, or 5. While requests of a higher priority are under way, servers let those of lower ones
   * wait; none is dropped (docs/priorities.md). A key may limit the priority. */
  uint32_t priority;

  /* The mark of this session's packets for routers (DSCP), from 1 to 63; 0: the environment variable
   * PAWL_DSCP, or the mark of the system. */
  uint32_t dscp;
};

/* Fills in the defaults: all zeros. */
PAWL_API void pawl_session_options_init_sized(struct pawl_session_options *options, size_t struct_size);
static inline void pawl_session_options_init(struct pawl_session_options *options) {
  pawl_session_options_init_sized(options, sizeof *options);
}

/* Opens a session. `options` may be NULL for the defaults, and is copied.
 *   PAWL_INVALID          an option is invalid
 *   PAWL_LINK_REFUSED …   the manager cannot be reached: the status of the last attempt before the timeout
 *   PAWL_LINK_KEY         the manager does not accept the key
 *   PAWL_NOT_FOUND        embedded: the pawl command cannot be found (set PAWL_COMMAND)
 *   PAWL_TIMED_OUT        the cluster has no servers yet (not with `peers_only`), or the manager does not answer
 *   PAWL_FORBIDDEN        the session cannot listen beyond this machine without a key
 * pawl_error_text has the details. */
PAWL_API PAWL_MUST_USE pawl_status pawl_session_open(const struct pawl_session_options *options,
                                                     struct pawl_session **session_out);

/* Refuses further calls from other nodes and waits for running functions (call.h), without a time limit. Then
 * waits until all work in progress has finished, leaves the cluster, and frees the session with all its
 * vectors, groups, lists and buffers. Tasks may still be queried and released afterwards. After `timeout_ns`
 * the session closes anyway and returns PAWL_TIMED_OUT; unanswered pushes may or may not have been applied.
 * Otherwise returns the same as pawl_session_flush. NULL is allowed. */
PAWL_API pawl_status pawl_session_close(struct pawl_session *session, int64_t timeout_ns);

/* Waits until all tasks that were started before this call have finished. Returns the first failure since the
 * last flush among tasks without a handle, or PAWL_OK. */
PAWL_API PAWL_MUST_USE pawl_status pawl_session_flush(struct pawl_session *session, int64_t timeout_ns);

/* The node id of this session, by which others address it (pawl_vector_open_local). It changes if the session
 * joins again, and is 0 once a session with `stays_dead` was declared dead. */
PAWL_API struct pawl_node pawl_session_node(const struct pawl_session *session);

/* The address of the manager, for other processes that join an embedded cluster. Valid as long as the
 * session. */
PAWL_API const char *pawl_session_address(const struct pawl_session *session);

/* Traffic of this session since it was opened, on all links and data planes: whole messages with headers,
 * including resends and internal messages. Values that nodes on this machine read in place count as if they
 * had been sent. Heartbeats and the overhead of TLS and of the network are not counted. */
struct pawl_session_figures {
  uint64_t bytes_sent, bytes_received;
  uint64_t messages_sent, messages_received;
};

/* Never fails. Sends nothing and does not wait, so that it suits progress lines. */
PAWL_API void pawl_session_figures(struct pawl_session *session, struct pawl_session_figures *figures_out);

/* Reports whether every key has a live server, as far as the session knows. PAWL_OK: all do.
 * PAWL_CLUSTER_WAITING: some keys have their only copy on servers that are down, and calls on these keys
 * wait. If only the network of such a server failed, it may come back. If its process ended, its data is lost
 * and an operator has to decide. pawl_error_text names the servers and the commands to use. Sends nothing and
 * does not wait. PAWL_INVALID. */
PAWL_API PAWL_MUST_USE pawl_status pawl_session_check(struct pawl_session *session);

/* The state of the cluster as JSON (docs/cmd-status.md). Free the text with pawl_text_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_session_status(struct pawl_session *session, int64_t timeout_ns,
                                                       char **json_out);
PAWL_API void pawl_text_free(char *text);

/* Details of the last failed call of this thread; "" if there are none. Valid until the next pawl call of the
 * thread. */
PAWL_API const char *pawl_error_text(void);

/* --- memory that servers on this machine read in place -------------------------------------------------- */

/* Allocates zeroed memory of at least `size` bytes, aligned to 64 bytes. Closing the session frees it. The
 * memory may be reused as soon as the task that used it has finished. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_API PAWL_MUST_USE pawl_status pawl_buffer_create(struct pawl_session *session, size_t size, void **memory_out);
PAWL_API void pawl_buffer_destroy(struct pawl_session *session, void *memory); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
