/* A whole cluster in the simulator: a manager, server shards, and whatever clients a test adds.
 *
 * Everything is drawn from the seed. Clients are programs of the test: a client node runs the real client role, and calls
 * the test back when it has started.
 */
#ifndef TESTS_TAKEOVER_CLUSTER_H
#define TESTS_TAKEOVER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "leaders.h"
#include "role/depot.h"
#include "role/client.h"
#include "role/journal.h"
#include "role/manager.h"
#include "role/server.h"
#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND
#define CLUSTER_SERVERS 16
#define CLUSTER_MANAGER "m:7000"
#define CLUSTER_LOG "manager.log"

struct cluster;

struct cluster_config {
  uint64_t seed;
  uint32_t processes, shards; /* that are there from the beginning */
  uint32_t late;              /* more processes, of one shard, that the test starts later */
  uint32_t managers;          /* that take turns (leaders.h); 0: one, with a journal in memory */
  uint64_t memory_max;        /* of each shard; 0: no cap */
  uint32_t replicas;
  int64_t client_grace_ns; /* 0: the manager's default */
  bool shared_hosts;       /* clients and servers on the same machines: data planes everywhere */
  bool checked_hosts;      /* no data planes at all */
  bool durable;            /* the manager's journal is a file on its disk */
  uint64_t journal_bytes;  /* 0: the manager's default */
  pwi_rights_of rights;
  struct pwi_depot *depot;                                    /* for checkpoints, of all nodes; NULL: none */
  void (*tune)(struct pwi_sim_config *config, void *context); /* may be NULL */
  void *context;
};

struct cluster_server {
  struct cluster *cluster;
  struct pwi_sim_node node;
  uint32_t process, shard, shard_count;
  char name[16], address[32];
  struct pwi_server *server; /* NULL while it is down */
  struct pwi_log log;
};

struct cluster {
  struct pwi_sim *sim;
  struct cluster_config config;
  struct pwi_random random; /* for the test's own draws */
  struct pwi_sim_node manager_node;
  struct pwi_manager *manager; /* NULL while there is none that leads */
  struct pwi_journal *journal; /* on disk: NULL while the manager is down */
  struct leaders leaders;      /* if there are several managers; then the two above are not used */
  const char *manager_address;
  struct cluster_server servers[CLUSTER_SERVERS];
  size_t server_count;
};

/* Everything but the late servers is started. Fails the test on any error. */
void cluster_open(struct cluster *cluster, const struct cluster_config *config);
void cluster_close(struct cluster *cluster);

/* Start the late server process number `index`. */
void cluster_start_late(struct cluster *cluster, uint32_t index);

/* True if there are arcs and every head is up. */
bool cluster_is_ready(struct cluster *cluster);

/* A client node. The callbacks get `context`. */
struct cluster_client {
  struct cluster *cluster;
  struct pwi_sim_node node;
  char name[16];
  const char *job;
  bool reader, listens;
  void (*started)(void *context);                /* the process has (re)started; `client` is there */
  void (*stopped)(void *context);                /* it was killed; `client` is gone. May be NULL */
  void (*timer)(void *context, uint64_t cookie); /* a timer that was set with cluster_timer. May be NULL */
  void *context;

  struct pwi_client *client; /* NULL while it is down */
  struct pwi_net *net;
  struct pwi_random *random;
  uint32_t incarnation;
};

/* Adds and starts it. The fields up to `context`, but for cluster and node, are the caller's. */
void cluster_client_add(struct cluster *cluster, struct cluster_client *client);

/* Have the client's `timer` called after `delay`. */
void cluster_timer(struct cluster_client *client, int64_t delay, uint64_t cookie);

/* --- blocking helpers for tests that go step by step: they run the simulation until the thing is done -------------------- */

/* Fails the test if `limit` of virtual time passes first. */
void cluster_run_while(struct cluster *cluster, bool (*predicate)(void *context), void *context, int64_t limit);
void cluster_run_for(struct cluster *cluster, int64_t duration);
void cluster_wait_joined(struct cluster_client *client);

/* An ask to its end. */
pawl_status cluster_ask(struct cluster_client *client, enum pwi_ask what, const struct pwi_writer *payload);

/* Creates a vector and returns its flow. */
struct pwi_flow *cluster_vector(struct cluster_client *client, const char *name,
                                const struct pawl_vector_options *options);
struct pwi_flow *cluster_open_vector(struct cluster_client *client, const char *name, uint64_t node);

/* A call to its end; the task's status. `task_out` may be NULL. */
pawl_status cluster_call(struct cluster_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                         const struct pwi_where *where, const void *in, void *out, struct pwi_task *task_out);

#endif
