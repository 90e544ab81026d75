/* A whole cluster in the simulator: a manager, server processes, and whatever clients are added to it. The roles are the
 * real ones, unchanged.
 *
 * Client nodes run the real client role too, and call whoever added them back when they have started and when a timer of
 * theirs is due; what they do is up to that.
 *
 * What goes wrong in a callback (there is no memory, a boot fails) is a failure of the simulation, pwi_sim_fail, and ends
 * the run. Threads: as the simulation.
 */
#ifndef PWI_SIM_CLUSTER_H
#define PWI_SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "client/client.h"
#include "checkpoint/disk_queue.h"
#include "manager/ledger/journal.h"
#include "manager/manager.h"
#include "server/server.h"
#include "sim/shell.h"
#include "sim/sim.h"

#define PWI_CLUSTER_SERVERS 16  /* shards, of all processes */
#define PWI_CLUSTER_PROCESSES 8 /* those that come late included */
#define PWI_CLUSTER_MANAGER "m:7000"
#define PWI_CLUSTER_LOG "manager.log" /* of a durable manager, on its disk */

struct pwi_cluster;

struct pwi_cluster_config {
  uint64_t seed;
  uint32_t processes, shards; /* that are there from the beginning */
  uint32_t late;              /* more processes, of one shard, that are started later */
  uint32_t replicas;
  uint32_t points;         /* arcs for each shard at first; 0: the manager's default */
  uint64_t memory_max;     /* of each shard; 0: no cap */
  uint64_t answers_max;    /* likewise; 0: the request handler's default */
  int64_t client_grace_ns; /* 0: the manager's default */
  bool shared_hosts;       /* clients and servers on the same machines: data planes everywhere */
  bool checked_hosts;      /* no data planes at all */
  bool durable;            /* the manager's journal is a file on its disk */
  uint64_t journal_bytes;  /* 0: the manager's default */
  const char *managers;    /* the addresses of managers that the caller adds; NULL: there is one, of the cluster */
  pwi_rights_of rights;
  const struct pwi_function_set *functions;                   /* of all nodes; NULL: those that are built in */
  struct pwi_disk_queue *disk_queue;                          /* for checkpoints, of all nodes; NULL: none */
  void (*tune)(struct pwi_sim_config *config, void *context); /* may be NULL */

  /* The manager's journal, whenever it boots, and what becomes of it when it is down. NULL: a file, or one in memory
   * which outlives it. */
  pawl_status (*open_journal)(void *context, const struct pwi_sim_boot *boot, struct pwi_journal **journal_out);
  void (*close_journal)(void *context, struct pwi_journal *journal);
  void (*manager_timer)(void *context, uint64_t cookie); /* set with pwi_sim_shell_timer on the manager's net */
  void *context;
};

struct pwi_cluster_server {
  struct pwi_cluster *cluster;
  struct pwi_sim_node node;
  uint32_t process, shard, shard_count;
  char name[16], address[32];
  struct pwi_server *server; /* NULL while it is down */
};

/* A server process: shards that start and die together. */
struct pwi_cluster_process {
  size_t first; /* in `servers` */
  uint32_t shards;
};

struct pwi_cluster {
  struct pwi_sim *sim;
  struct pwi_cluster_config config;
  struct pwi_random random; /* for draws of whoever uses the cluster */
  struct pwi_sim_node manager_node;
  struct pwi_manager *manager; /* NULL while it is down. Of several: the one that leads, as the caller says */
  struct pwi_sim_shell manager_shell;
  struct pwi_journal *memory_journal, *journal;
  struct pwi_cluster_server servers[PWI_CLUSTER_SERVERS];
  size_t server_count;
  struct pwi_cluster_process processes[PWI_CLUSTER_PROCESSES];
  size_t process_count;
  uint64_t moves_done; /* of managers that are gone */
};

/* Everything but the late processes is started. Whatever it returns, pwi_cluster_close has to follow. PAWL_INVALID (more
 * servers than there is room for), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_cluster_open(struct pwi_cluster *cluster, const struct pwi_cluster_config *config);
void pwi_cluster_close(struct pwi_cluster *cluster);

/* Where nodes look for a manager. */
static inline const char *pwi_cluster_managers(const struct pwi_cluster *cluster) {
  return cluster->config.managers ? cluster->config.managers : PWI_CLUSTER_MANAGER;
}

/* All shards of a process. Starting one that is up does nothing. */
void pwi_cluster_start(struct pwi_cluster *cluster, size_t process);
void pwi_cluster_kill(struct pwi_cluster *cluster, size_t process);
bool pwi_cluster_is_up(const struct pwi_cluster *cluster, size_t process); /* all its shards are booted */

/* True if there are arcs and every head is up. */
bool pwi_cluster_is_ready(const struct pwi_cluster *cluster);

/* Moves that were carried out, by all managers there were. */
uint64_t pwi_cluster_moves_done(const struct pwi_cluster *cluster);

/* --- clients -------------------------------------------------------------------------------------------------------- */

/* A client node. The callbacks get `context`. */
struct pwi_cluster_client {
  struct pwi_cluster *cluster;
  struct pwi_sim_node node;
  char name[16];
  const char *job;
  bool reader, listens, stays_dead;
  void (*started)(void *context);                /* the process has (re)started; `client` is there. May be NULL */
  void (*stopped)(void *context);                /* it was killed; `client` is gone. May be NULL */
  void (*timer)(void *context, uint64_t cookie); /* a timer that was set with pwi_cluster_timer. May be NULL */
  void *context;

  struct pwi_client *client; /* NULL while it is down */
  struct pwi_sim_shell shell;
  struct pwi_net *net;
  struct pwi_random *random;
  uint32_t incarnation;
  struct pwi_client_figures past; /* of incarnations that are gone */
};

/* Adds and starts it. The fields up to `context`, but for cluster and node, are the caller's, and so is its memory, until
 * the cluster is closed. As pwi_sim_node_add and pwi_sim_start. */
PAWL_MUST_USE pawl_status pwi_cluster_client_add(struct pwi_cluster *cluster, struct pwi_cluster_client *client);

/* Have the client's `timer` called after `delay`. */
void pwi_cluster_timer(struct pwi_cluster_client *client, int64_t delay, uint64_t cookie);

/* Of all its incarnations. */
struct pwi_client_figures pwi_cluster_client_figures(const struct pwi_cluster_client *client);

/* --- step by step: these run the simulation until the thing is done -------------------------------------------------- */

/* As pwi_sim_run_while, with a limit counted from now. */
PAWL_MUST_USE pawl_status pwi_cluster_run_while(struct pwi_cluster *cluster, bool (*predicate)(void *context),
                                                void *context, int64_t limit);
PAWL_MUST_USE pawl_status pwi_cluster_run_for(struct pwi_cluster *cluster, int64_t duration);

/* PAWL_TIMED_OUT after 60 virtual seconds, which ends the run; so with the next three. */
PAWL_MUST_USE pawl_status pwi_cluster_wait_joined(struct pwi_cluster_client *client);

/* An ask to its end: `status_out` is what the manager said. */
PAWL_MUST_USE pawl_status pwi_cluster_ask(struct pwi_cluster_client *client, enum pwi_ask what,
                                          const struct pwi_writer *payload, pawl_status *status_out);

/* Creates a vector and returns its flow. What the manager says against it is returned. */
PAWL_MUST_USE pawl_status pwi_cluster_vector(struct pwi_cluster_client *client, const char *name,
                                             const struct pawl_vector_options *options, struct pwi_flow **flow_out);

/* A call to its end: `task_out->status` is how it ended. If the call itself was refused that is returned. */
PAWL_MUST_USE pawl_status pwi_cluster_call(struct pwi_cluster_client *client, struct pwi_flow *flow,
                                           enum pwi_request_kind kind, const struct pwi_where *where, const void *in,
                                           void *out, struct pwi_task *task_out);

/* The flow of a vector that the client knows of. PAWL_NOT_FOUND, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_cluster_open_vector(struct pwi_cluster_client *client, const char *name, uint64_t node,
                                                  struct pwi_flow **flow_out);

#endif
