/* A whole cluster in the simulator: a manager, server processes, and the clients that are added to it. The
 * roles are the real ones, unchanged.
 *
 * Client nodes run the real client role. They call back when they have started and when a timer of theirs
 * is due; the callbacks decide what they do.
 *
 * An error in a callback (no memory, a boot fails) fails the simulation with pwi_sim_fail and ends the
 * run. Threads: as the simulation.
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
#include "relay/relay.h"
#include "server/server.h"
#include "sim/shell.h"
#include "sim/sim.h"

#define PWI_CLUSTER_SERVERS 16  /* most shards of a campaign, of all processes */
#define PWI_CLUSTER_PROCESSES 8 /* most processes of a campaign, late ones included */
#define PWI_CLUSTER_MOST 100000 /* most shards of any cluster */
#define PWI_CLUSTER_MANAGER "m:7000"
#define PWI_CLUSTER_LOG "manager.log" /* of a durable manager, on its disk */

struct pwi_cluster;

struct pwi_cluster_config {
  uint64_t seed;
  uint32_t processes, shards; /* servers that exist from the beginning */
  uint32_t late;              /* additional processes of one shard that are started later */
  uint32_t replicas;
  uint32_t points;         /* initial arcs per shard; 0: the manager's default */
  uint64_t memory_max;     /* per shard; 0: no cap */
  uint64_t answers_max;    /* for unread answers, per shard; 0: the request handler's default */
  int64_t client_grace_ns; /* 0: the manager's default */
  bool shared_hosts;       /* clients and servers share machines: data planes everywhere */
  bool checked_hosts;      /* no data planes at all */
  bool has_priorities;     /* clients have different priorities, by their names */
  bool shares_memberships; /* nodes share equal ones in memory (protocol/membership_share.h) */
  bool durable;            /* the manager's journal is a file on its disk */
  uint64_t journal_bytes;  /* 0: the manager's default */
  /* addresses of managers that the caller adds; NULL: the cluster has one manager of its own */
  const char *managers;
  pwi_rights_of rights;
  /* of all nodes; NULL: built-in functions only */
  const struct pwi_function_set *functions;
  struct pwi_disk_queue *disk_queue;                          /* for checkpoints, of all nodes; NULL: none */
  void (*tune)(struct pwi_sim_config *config, void *context); /* may be NULL */

  /* Opens and closes the manager's journal whenever it boots and halts. NULL: a file, or a journal in
   * memory that outlives the manager. */
  pawl_status (*open_journal)(void *context, const struct pwi_sim_boot *boot, struct pwi_journal **journal_out);
  void (*close_journal)(void *context, struct pwi_journal *journal);
  void (*manager_timer)(void *context,
                        /* timers that were set with pwi_sim_shell_timer on the manager's net */
                        uint64_t cookie);
  void *context;
};

struct pwi_cluster_server {
  struct pwi_cluster *cluster;
  struct pwi_sim_node node;
  uint32_t process, shard, shard_count;
  char name[32], address[48];
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
  struct pwi_random random; /* for use by the caller */
  struct pwi_sim_node manager_node;
  /* NULL while it is down. With several managers the caller sets the one that leads */
  struct pwi_manager *manager;
  struct pwi_sim_shell manager_shell;
  struct pwi_journal *memory_journal, *journal;
  struct pwi_cluster_server *servers; /* room for all that the configuration names */
  size_t server_count;
  struct pwi_cluster_process *processes;
  size_t process_count;
  uint64_t moves_done; /* by managers that are gone */
};

/* Starts everything but the late processes. Call pwi_cluster_close in any case. PAWL_INVALID (too many
 * servers), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_cluster_open(struct pwi_cluster *cluster, const struct pwi_cluster_config *config);
void pwi_cluster_close(struct pwi_cluster *cluster);

/* The addresses of managers for all nodes. */
static inline const char *pwi_cluster_managers(const struct pwi_cluster *cluster) {
  return cluster->config.managers ? cluster->config.managers : PWI_CLUSTER_MANAGER;
}

/* Act on all shards of a process. Starting one that is up does nothing. */
void pwi_cluster_start(struct pwi_cluster *cluster, size_t process);
void pwi_cluster_kill(struct pwi_cluster *cluster, size_t process);
bool pwi_cluster_is_up(const struct pwi_cluster *cluster, size_t process); /* all its shards have booted */

/* True if there are arcs and every head is up. */
bool pwi_cluster_is_ready(const struct pwi_cluster *cluster);

/* Moves carried out by all managers so far. */
uint64_t pwi_cluster_moves_done(const struct pwi_cluster *cluster);

/* --- clients -------------------------------------------------------------------------------------------- */

/* A client node. The callbacks get `context`. */
struct pwi_cluster_client {
  struct pwi_cluster *cluster;
  struct pwi_sim_node node;
  char name[16];
  const char *job;
  const char *rack; /* NULL: none */
  bool reader, listens, stays_dead;
  const struct pwi_relay_tree *tree; /* it is a relay, and listens; NULL: a client */
  int64_t second;                    /* of a relay, as in struct pwi_relay_config */
  uint8_t priority;                  /* 0: none stated, or by `has_priorities` of the cluster */
  /* the process has (re)started, and `client` is set. May be NULL */
  void (*started)(void *context);
  /* the process was killed, and `client` is gone. May be NULL */
  void (*stopped)(void *context);
  void (*timer)(void *context, uint64_t cookie); /* a timer of pwi_cluster_timer is due. May be NULL */
  void (*heard)(void *context, const struct pwi_message *message); /* as in struct pwi_sim_shell. May be NULL */
  void (*membership_changed)(void *context);                       /* as in struct pwi_client_config. May be NULL */
  void *context;

  struct pwi_client *client; /* NULL while it is down */
  struct pwi_relay *relay;   /* whose client it is; NULL: none */
  struct pwi_sim_shell shell;
  struct pwi_net *net;
  struct pwi_random *random;
  uint32_t incarnation;
  struct pwi_client_figures past; /* sums of past incarnations */
};

/* Adds and starts a client. The caller sets the fields up to `context`, except cluster and node, and keeps
 * the memory until the cluster is closed. Errors as pwi_sim_node_add and pwi_sim_start. */
PAWL_MUST_USE pawl_status pwi_cluster_client_add(struct pwi_cluster *cluster, struct pwi_cluster_client *client);

/* Calls the client's `timer` after `delay`. */
void pwi_cluster_timer(struct pwi_cluster_client *client, int64_t delay, uint64_t cookie);

/* The sum over all its incarnations. */
struct pwi_client_figures pwi_cluster_client_figures(const struct pwi_cluster_client *client);

/* --- step by step: these run the simulation until the operation is done --------------------------------- */

/* As pwi_sim_run_while, with a limit relative to now. */
PAWL_MUST_USE pawl_status pwi_cluster_run_while(struct pwi_cluster *cluster, bool (*predicate)(void *context),
                                                void *context, int64_t limit);
PAWL_MUST_USE pawl_status pwi_cluster_run_for(struct pwi_cluster *cluster, int64_t duration);

/* PAWL_TIMED_OUT after 60 virtual seconds, which ends the run; the same holds for the next three. */
PAWL_MUST_USE pawl_status pwi_cluster_wait_joined(struct pwi_cluster_client *client);

/* Asks the manager and waits for the answer, `*status_out`. */
PAWL_MUST_USE pawl_status pwi_cluster_ask(struct pwi_cluster_client *client, enum pwi_ask what,
                                          const struct pwi_writer *payload, pawl_status *status_out);

/* Creates a vector and returns its flow, or the error of the manager. */
PAWL_MUST_USE pawl_status pwi_cluster_vector(struct pwi_cluster_client *client, const char *name,
                                             const struct pawl_vector_options *options, struct pwi_flow **flow_out);

/* Makes a call and waits for its end: `task_out->status` is the result. If the call itself is refused,
 * returns that status. */
PAWL_MUST_USE pawl_status pwi_cluster_call(struct pwi_cluster_client *client, struct pwi_flow *flow,
                                           enum pwi_request_kind kind, const struct pwi_where *where, const void *in,
                                           void *out, struct pwi_task *task_out);

/* The flow of a vector that the client knows. PAWL_NOT_FOUND, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_cluster_open_vector(struct pwi_cluster_client *client, const char *name, uint64_t node,
                                                  struct pwi_flow **flow_out);

#endif
