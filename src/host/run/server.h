/* A server in this process: one thread per shard, each with a net and a role of its own, and one HTTP
 * endpoint.
 *
 * Shards share nothing. To the cluster they are nodes that die together. A shard's thread creates its net,
 * polls it and destroys it; the thread that opened the server waits for the shards and passes orders on.
 * Signals are blocked in the shards' threads.
 *
 * The end: told to stop once, the shards ask the manager to move their arcs to other nodes, and leave when
 * nothing depends on them any more. Told twice, or after the drain timeout, they leave at once.
 */
#ifndef PWI_HOST_RUN_SERVER_H
#define PWI_HOST_RUN_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "host/disk_queue.h"
#include "host/run/access.h"
#include "host/run/problem.h"
#include "net/tcp/tcp.h"

#define PWI_RUN_SHARDS_MAX 1024

struct pwi_run_server_config {
  struct pwi_tcp_config net;           /* as the manager's; an advertised port only if there is one shard */
  struct pwi_run_access_config access; /* rights, and where to reload them; its `keys` are those of `net` */
  const char *audit;                   /* file for audit lines; NULL: audit lines go to the log only */
  const char *manager;                 /* address of the manager */
  /* of the first shard, see host/run/address.h; NULL: any port, on loopback if the manager is reached over
   * loopback, else on all interfaces */
  const char *listen;
  const char *host;       /* label of the machine; NULL: its host name */
  const char *rack;       /* NULL: "" */
  uint32_t shards;        /* 0: 1 */
  uint64_t memory_max;    /* bytes, divided among the shards; UINT64_MAX: no cap */
  const char *http;       /* NULL: none */
  const char *http_token; /* token file for its pages; NULL: none. Its certificates are those of `net` */
  struct pwi_disk_queue_places checkpoint_places; /* directories that checkpoints may be written to */
  int64_t drain_ns;                               /* longest time for handing over arcs */
  const struct pwi_function_set *functions;       /* functions of shared objects; borrowed. NULL: none */
};

struct pwi_run_server;

/* Starts the shards. When this returns all of them listen and are connecting to the manager. Keys are
 * borrowed until close; the rest of `config` is only used during the call. */
PAWL_MUST_USE pawl_status pwi_run_server_open(const struct pwi_run_server_config *config,
                                              struct pwi_run_server **server_out, struct pwi_run_problem *problem);

/* The address of a shard; valid as long as the server. */
const char *pwi_run_server_address(const struct pwi_run_server *server, uint32_t shard);
uint16_t pwi_run_server_http_port(const struct pwi_run_server *server); /* 0: no HTTP endpoint */
bool pwi_run_server_http_is_encrypted(const struct pwi_run_server *server);

/* Waits until every shard has joined the cluster. PAWL_NODE_STOPPED if the server was told to stop. Else,
 * after `timeout_ns` or as soon as waiting cannot help, the status of the first shard that has not joined. */
PAWL_MUST_USE pawl_status pwi_run_server_join(struct pwi_run_server *server, int64_t timeout_ns,
                                              struct pwi_run_problem *problem);

/* Waits until it is told to stop. True: it was not told to, but an operator had all its shards drained and
 * they have left the cluster. */
bool pwi_run_server_wait(struct pwi_run_server *server);

/* Call it after that: waits until the arcs are handed over, the drain timeout has passed, or the server is
 * told to stop again. PAWL_OK if nothing depends on this server any more, else PAWL_TIMED_OUT. */
PAWL_MUST_USE pawl_status pwi_run_server_drain(struct pwi_run_server *server);

/* Makes the waiting thread reload keys, rights and tokens, and reopen the audit file. If one cannot be
 * read, the error is logged and the old state stays. May be called from any thread and from signal
 * handlers. */
void pwi_run_server_reload(struct pwi_run_server *server);

/* `times` 1: drain; more: leave at once. May be called from any thread and from signal handlers. */
void pwi_run_server_stop(struct pwi_run_server *server, int times);

/* Ends the shards that still run. Must not be called while another thread is in pwi_run_server_stop. NULL
 * is fine. */
void pwi_run_server_close(struct pwi_run_server *server);

#endif
