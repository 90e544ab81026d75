/* The manager: decides which nodes are in the cluster, which chain keeps each arc, which vectors exist, and
 * which senders may push.
 *
 * The manager is the only role that changes view, catalogue and membership (docs/protocol.md). Each change is
 * a record in its journal and is safe there before it is announced. The manager announces a change to the
 * servers first. Clients, and the client that asked for the change, receive it once every server that is up
 * has confirmed it with HAVE. So a request that a client sends after it was told of a vector or given a
 * sender id does not reach a server that does not know them yet. (If it does, because a server came back in
 * between, the server answers NOT_HERE and the client tries again.)
 *
 * SERVERS join as nodes, one per shard. The manager assigns the first arcs once `first_processes` server
 * processes have joined with all their shards. Each arc gets a chain of `replicas` + 1 members, or fewer if
 * there are fewer processes. Servers that join later are given their share, as heads and as replicas.
 *
 * LOSS. A server whose link is down may be dead, or only its link may be broken. The manager asks other
 * servers to probe it. If no process listens at its address any more, or it is silent to all of them, the
 * manager declares it dead and removes it from every chain that has another connected full member. One view
 * does this for all its arcs. The server keeps the arcs of which it is the only full member: they wait for
 * it. A server that the others can reach keeps its places, and the manager waits for it. If a server that was
 * declared dead comes back with its id and secret (it was stopped or cut off), it continues with the arcs it
 * kept and is an empty node otherwise. A server process that was restarted is a new node. If most processes
 * are unreachable, the manager suspects its own network, and silence proves nothing (manager/probe.c).
 *
 * COMPLAINTS. If two neighbours in a chain cannot reach one another, the manager removes the one further from
 * the head. If the one nearer to the head has no link to the manager either, it removes that one instead. A
 * member that cannot follow for lack of memory is removed itself. The last connected full member is never
 * removed. The manager does not make such a pair neighbours again for a minute, if there are other
 * candidates.
 *
 * CHAINS change step by step, by views that obey ring/view.h, towards a goal that the planner sets
 * (ring/plan.h). The manager lists a new member as filling and orders the tail to fill it; then the member
 * becomes full. Members that the goal does not name are removed. If the new head stood behind members that
 * stay, the old head hands over first. Steps under way are kept in memory only: a manager that restarts
 * removes the members that were being filled, and plans again.
 *
 * BALANCE. If reports show for some time that a process has far more than its share of bytes or of requests,
 * the manager plans the arcs again from the load that servers measured, and moves them.
 *
 * CLIENTS get a sender id and a secret. Servers have the membership with the id before the client is told of
 * it. A client whose link is down has `client_grace_ns` to come back; then the manager retires its sender. A
 * client that comes back later is told PAWL_NODE_RETIRED. It joins again as a new sender that names the old
 * one in `retired`. The clocks of the old sender are kept until the client says FORGET, or for
 * `keep_retired_ns`.
 *
 * RESTART. The manager replays its journal. It decides nothing until the nodes that it knows have joined and
 * said which view, catalogue and membership they have, or have had time to do so. If a server of this cluster
 * has a higher number than the journal, the journal is not the newest one, and further decisions would create
 * a second history. The manager then stops: it announces nothing, refuses every join with
 * PAWL_CLUSTER_HISTORY, and logs why. It stops in the same way if its journal fails. Servers and clients that
 * have joined continue without it.
 *
 * THE JOURNAL is replaced by one record with the whole ledger when it has grown past `journal_bytes` and to
 * several times the size of that record.
 *
 * RIGHTS. `rights` returns the rights of a link's identity. Servers need a key without limits. A client with
 * a read-only key becomes a reader, whatever it asks for. A key limited to a space can create, delete and
 * list there only. An operator's key gives orders for the whole cluster but reads and writes no values. Each
 * link and each order is audited (protocol/audit.h).
 *
 * Threads: an actor over net.h. It belongs to the thread of its net.
 */
#ifndef PWI_MANAGER_MANAGER_H
#define PWI_MANAGER_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/log.h"
#include "base/random.h"
#include "net/net.h"
#include "ring/view.h"
#include "protocol/audit.h"
#include "protocol/filter_counts.h"
#include "manager/ledger/journal.h"
#include "protocol/protocol.h"
#include "protocol/rights.h"

/* Besides head and replicas, a chain has space for one member that is being filled and one that is about to
 * be removed. */
#define PWI_REPLICAS_MAX (PWI_CHAIN_MAX - 3)

struct pwi_manager_config {
  struct pwi_net *net;
  struct pwi_journal *journal; /* borrowed */
  struct pwi_random *random;   /* for cluster id and secrets; borrowed. On real machines it is seeded by the
                                  system. */
  const struct pwi_log *log;   /* borrowed */
  const char *host;            /* label of this machine; borrowed during create */
  const char *meta;            /* location of the journal, for `pawl status`; borrowed. NULL: in memory */
  uint64_t cluster;            /* if not 0, the journal must belong to this cluster, otherwise
                                  PAWL_CLUSTER_OTHER */
  uint64_t term;               /* term of this leadership; 0: 1, for a manager without standbys */
  pwi_rights_of rights;        /* NULL: every link has all rights */
  void *rights_context;
  struct pwi_auditor auditor;               /* zeros: the audit goes to the log only */
  const struct pwi_function_set *functions; /* additional server functions; borrowed. NULL: none */
  uint32_t first_processes;                 /* server processes that must join before the first arcs; 0: 1 */
  int64_t client_grace_ns;                  /* 0: 2 s; then a client without a link is retired */
  int64_t server_grace_ns; /* 0: 1 s; how long clients wait for a server without a link to confirm changes */
  int64_t absent_max_ns;   /* 0: 2 min; then a server without a link is declared dead in any case */
  int64_t keep_retired_ns; /* 0: one hour; how long a retired sender is kept */
  uint32_t points;         /* arcs per node at first; 0: chosen by the manager */
  uint32_t replicas;       /* replicas of a chain, at most PWI_REPLICAS_MAX; 0: each chain is a head alone */
  uint64_t journal_bytes;  /* 0: 1 MiB; a smaller journal is not replaced */

  /* Checkpoints. */
  struct pwi_disk_queue *disk_queue; /* checkpoint/disk_queue.h; borrowed. NULL: no checkpoints */
  const char *checkpoint_directory;  /* default directory of checkpoints; borrowed. NULL: none */
  int64_t checkpoint_every_ns;       /* interval of periodic checkpoints; 0: only on request */
  uint32_t checkpoint_keep;          /* periodic checkpoints that are kept; 0: all */
  bool checkpoint_incremental;
  uint64_t checkpoint_rate; /* bytes per second; 0: no limit */
};

struct pwi_disk_queue;
struct pwi_manager;

/* Replays the journal and sets the greeting. The manager is then ready for links; the caller listens.
 * `config->net` must have been created with pwi_manager_actor. Errors: PAWL_NO_MEMORY, PAWL_CORRUPT (the
 * journal), PAWL_CLUSTER_OTHER. */
PAWL_MUST_USE pawl_status pwi_manager_create(const struct pwi_manager_config *config, struct pwi_manager **manager_out);

/* Call it after the net is destroyed or when it will not be polled again. NULL is fine. */
void pwi_manager_destroy(struct pwi_manager *manager);

extern const struct pwi_actor pwi_manager_actor;

/* The state as JSON, as `pawl status --json` prints it (docs/cmd-status.md): cluster, epoch, catalogue and
 * membership numbers, nodes with their reports and rates, arcs, vectors, jobs, moves under way. Appended to
 * the writer. */
struct pwi_writer;
pawl_status pwi_manager_status(struct pwi_manager *manager, struct pwi_writer *writer);

/* The same for the owner of a key: lists only the vectors, groups and jobs of its space. */
pawl_status pwi_manager_status_for(struct pwi_manager *manager, const struct pwi_rights *rights,
                                   struct pwi_writer *writer);

/* Call it when the results of `rights` have changed. Closes links whose identity is no longer admitted; the
 * others get their new rights. Call it from the thread of the net. */
void pwi_manager_review(struct pwi_manager *manager);

/* For /healthz and /metrics. */
struct pwi_manager_figures {
  uint64_t cluster, epoch, catalogue, membership;
  uint64_t nodes_up, nodes_down, nodes_draining, processes, arcs, vectors, groups, clients, retired, moves, moves_done;
  uint64_t relays;           /* not among the clients */
  uint64_t processes_up;     /* server processes that can be given arcs now */
  uint64_t replicas;         /* the configured number */
  uint64_t under_replicated; /* arcs with fewer than `replicas` + 1 full members */
  uint64_t filling;          /* arcs with a member that is being filled */
  uint64_t waiting;          /* arcs without a full member that is up: they wait for one that is down */
  uint64_t unlinked;         /* arcs whose head has no link to the manager at present */
  uint64_t hollow;           /* the largest number of vectors that one server could not create for lack of
                                memory */
  pawl_status stopped;       /* why the manager has stopped deciding, for good; PAWL_OK: it has not */
  bool ready;                /* there are arcs, the head of each is up, and the manager decides */
  bool whole;                /* ready; all members are connected; chains are as long as the processes
                                permit; no move is under way or wanted */
};

void pwi_manager_figures(const struct pwi_manager *manager, struct pwi_manager_figures *figures_out);

/* Totals of one filter of a vector, over all clients that have reported to this manager. */
struct pwi_manager_filter {
  char vector[PAWL_NAME_MAX + 1]; /* name of the vector */
  struct pwi_filter_count count;
};

/* Writes at most `room` totals and returns their number. Totals of deleted vectors are left out. */
size_t pwi_manager_filters(const struct pwi_manager *manager, struct pwi_manager_filter *filters, size_t room);

#endif
