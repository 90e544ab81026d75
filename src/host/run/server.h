/* A server in this process: one thread for each shard, each with a net and a role of its own, and one HTTP endpoint.
 *
 * Shards share nothing. To the cluster they are nodes that die together. A shard's thread makes its net, polls it and takes
 * it down; the thread that opened the server waits for them and passes orders on. Signals are blocked in the shards'
 * threads.
 *
 * The end: told once to stop, the shards ask the manager to move their arcs to others and go when nothing depends on them;
 * told twice, or after the drain time-out, they go at once.
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
  struct pwi_run_access_config access; /* rights, and where they are read anew; its `keys` are those of `net` */
  const char *audit;                   /* file that audit lines are appended to; NULL: the log alone */
  const char *manager;                 /* address of the manager */
  const char *listen;     /* of the first shard, see host/run/address.h; NULL: any port, on loopback if that is how the
                                manager is reached, else on all interfaces */
  const char *host;       /* label of the machine; NULL: its name */
  const char *rack;       /* NULL: "" */
  uint32_t shards;        /* 0: 1 */
  uint64_t memory_max;    /* bytes, divided over the shards; UINT64_MAX: no cap */
  const char *http;       /* NULL: none */
  const char *http_token; /* file of tokens for its pages; NULL: none. Its certificates are those of `net` */
  struct pwi_disk_queue_places checkpoint_places; /* that may be written to */
  int64_t drain_ns;                               /* how long handing arcs over may take */
  const struct pwi_function_set *functions;       /* of shared objects; borrowed. NULL: none */
};

struct pwi_run_server;

/* Starts the shards: when this returns all of them listen, and are on their way to the manager. Keys are borrowed until it
 * is closed, everything else is read during the call. */
PAWL_MUST_USE pawl_status pwi_run_server_open(const struct pwi_run_server_config *config,
                                              struct pwi_run_server **server_out, struct pwi_run_problem *problem);

/* The address of a shard; lives as long as the server. */
const char *pwi_run_server_address(const struct pwi_run_server *server, uint32_t shard);
uint16_t pwi_run_server_http_port(const struct pwi_run_server *server); /* 0: it has none */
bool pwi_run_server_http_is_encrypted(const struct pwi_run_server *server);

/* Waits until every shard is in the cluster. PAWL_NODE_STOPPED if it was told to stop meanwhile; else, after `timeout_ns` or
 * at once where waiting does not help, the status that keeps the first of them out. */
PAWL_MUST_USE pawl_status pwi_run_server_join(struct pwi_run_server *server, int64_t timeout_ns,
                                              struct pwi_run_problem *problem);

/* Waits until it is told to stop. True: it was not told, but all its shards have left the cluster, because an operator had
 * them drained. */
bool pwi_run_server_wait(struct pwi_run_server *server);

/* Then: waits until the arcs are handed over, the drain time-out has passed, or it is told to stop once more. PAWL_OK if
 * nothing depends on this server any more, else PAWL_TIMED_OUT. */
PAWL_MUST_USE pawl_status pwi_run_server_drain(struct pwi_run_server *server);

/* From any thread, or a signal handler: the thread that waits reads keys, rights and tokens anew, and opens the audit file
 * anew. What cannot be read is logged, and stays as it was. */
void pwi_run_server_reload(struct pwi_run_server *server);

/* From any thread, or a signal handler: 1, drain; more: go at once. */
void pwi_run_server_stop(struct pwi_run_server *server, int times);

/* Ends the shards that still run. Not while a stop is under way elsewhere. NULL is fine. */
void pwi_run_server_close(struct pwi_run_server *server);

#endif
