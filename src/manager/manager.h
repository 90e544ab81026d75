/* The manager: who is in the cluster, who holds which arc, which vectors there are, who may push.
 *
 * It is the only one to change view, catalogue and membership (design, sections 5, 7 and 9). Each change is a record in its
 * journal, safe before it is announced. Announcements go to the servers first; clients, and whoever asked for the change,
 * hear of it when every server that is up has said HAVE: so a request that a client sends after it was told of a vector or
 * given a sender id does not meet a server that has not heard of it. (If it does, because a server came back in between,
 * the server says NOT_HERE and the client tries again.)
 *
 * SERVERS join as nodes, one per shard. The first arcs are dealt once `first_processes` server processes with all their
 * shards are there, each with a chain of `replicas` + 1 members where there are so many processes. Who comes later is
 * given its share, as head and as replica.
 *
 * LOSS. A server whose link is down may be dead, or only its link is: other servers are asked to try it. If nobody listens at
 * its address any more, or it is silent to all, it is struck off wherever another full member of the chain is there: one view
 * for all its arcs. It keeps the arcs of which nobody else has everything: they wait for it. One that others reach is waited
 * for, and keeps its places. If a server that was struck off comes back with its id and secret (it was stopped or cut off, not
 * dead) it goes on with what it kept and is an empty node for the rest. A server process that was started anew is a new node. A
 * manager that misses most processes suspects itself: silence proves nothing then (manager/probe.c).
 *
 * COMPLAINTS. Of two neighbours in a chain that do not reach one another the one behind is dropped, or, if the one ahead has
 * no link to us either, that one; who cannot follow for want of memory is dropped himself. Never the last full member that is
 * here. Such a pair is not made neighbours again for a minute, if there are others.
 *
 * CHAINS are changed step by step, by views that obey ring/view.h, towards a goal that the planner sets (ring/plan.h): a
 * missing member is listed as filling, the last full member is told to fill it, then it is full; who is not wanted any
 * more is dropped; and where the new head stood behind others that stay, the old one hands over first. What is on its way
 * is kept in memory only: a manager that is started again strikes off whoever is filling, and plans anew.
 *
 * BALANCE. When reports show for some time that a process has far more than its share of bytes or of requests, arcs are
 * planned anew from the load that servers measured, and moved.
 *
 * CLIENTS get a sender id and a secret, on the membership before they hear of it. A client whose link is down has
 * `client_grace_ns` to come back; then it is retired. One that comes back later is told PAWL_NODE_RETIRED, and joins again
 * as a new sender that names the old one in `retired`, whose clocks are kept until it says FORGET, or `keep_retired_ns`.
 *
 * STARTED AGAIN, the manager replays its journal, and first hears how far those nodes are that it knows: it decides nothing
 * before all of them have come, or had the time to. If a server of this cluster knows of more than the journal holds, the
 * journal is not the newest: going on would make a second history. So the manager stops: it tells nobody anything, turns
 * everybody away with PAWL_CLUSTER_HISTORY, and says why. If its journal fails, it stops likewise. Servers and clients
 * that are in go on without it.
 *
 * THE JOURNAL is replaced by one record that holds the whole ledger whenever it has grown past `journal_bytes` and to
 * several times the size of that record.
 *
 * RIGHTS. `rights` tells what a link's identity permits. Servers must hold a key without limits. A key limited to reading
 * gives a reader, whatever it asks for; one limited to a space can create, delete and list there only; an operator's can do
 * neither with values, and orders what concerns the whole cluster. Each link and each order is audited (protocol/audit.h).
 *
 * Threads: an actor over net.h, belongs to its net's thread.
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

/* A chain has room for one member that is being filled, and one that is on its way out. */
#define PWI_REPLICAS_MAX (PWI_CHAIN_MAX - 3)

struct pwi_manager_config {
  struct pwi_net *net;
  struct pwi_journal *journal; /* borrowed */
  struct pwi_random *random;   /* for cluster id and secrets; borrowed. On real machines seeded from the system. */
  const struct pwi_log *log;   /* borrowed */
  const char *host;            /* label of our machine; borrowed during create */
  const char *meta;            /* where the journal is, for `pawl status`; NULL: in memory. Borrowed */
  uint64_t cluster;            /* if it is not 0: the journal must be this cluster's, or PAWL_CLUSTER_OTHER */
  uint64_t term;               /* of this leadership, where managers take turns; 0: 1, for those that do not */
  pwi_rights_of rights;        /* NULL: everybody may do everything */
  void *rights_context;
  struct pwi_auditor auditor;               /* zeros: the audit goes to the log alone */
  const struct pwi_function_set *functions; /* besides the built-in ones; borrowed. NULL: none */
  uint32_t first_processes;                 /* 0: 1 */
  int64_t client_grace_ns;                  /* 0: 2 s */
  int64_t server_grace_ns; /* 0: 1 s; until nobody waits for a server that is missing to hear of changes */
  int64_t absent_max_ns;   /* 0: 2 min; until a server that is missing is struck off though nobody found it dead */
  int64_t keep_retired_ns; /* 0: one hour */
  uint32_t points;         /* arcs per node at first; 0: as many as is good */
  uint32_t replicas;       /* members of a chain besides its head, PWI_REPLICAS_MAX at most; 0: chains of length one */
  uint64_t journal_bytes;  /* 0: 1 MiB; a journal below that is left as it is */

  /* Checkpoints. */
  struct pwi_disk_queue *disk_queue; /* checkpoint/disk_queue.h; borrowed. NULL: there are none */
  const char *checkpoint_directory;  /* where those go that name no other; borrowed. NULL: nowhere */
  int64_t checkpoint_every_ns;       /* 0: only when asked for */
  uint32_t checkpoint_keep;          /* of those made by themselves; 0: all */
  bool checkpoint_incremental;
  uint64_t checkpoint_rate; /* bytes a second; 0: no limit */
};

struct pwi_disk_queue;
struct pwi_manager;

/* Replays the journal, sets the greeting, and is ready for links; the caller listens. PAWL_NO_MEMORY, PAWL_CORRUPT (the
 * journal), PAWL_CLUSTER_OTHER. `config->net` must have been created with pwi_manager_actor. */
PAWL_MUST_USE pawl_status pwi_manager_create(const struct pwi_manager_config *config, struct pwi_manager **manager_out);

/* After the net is destroyed or will not be polled again. NULL is fine. */
void pwi_manager_destroy(struct pwi_manager *manager);

extern const struct pwi_actor pwi_manager_actor;

/* The state as JSON, as `pawl status --json` prints it (docs/cmd-status.md): cluster, epoch, catalogue and membership numbers,
 * nodes with their reports and rates, arcs, vectors, jobs, moves going on. Appended to the writer. */
struct pwi_writer;
pawl_status pwi_manager_status(struct pwi_manager *manager, struct pwi_writer *writer);

/* The same for the owner of a key: of vectors, groups and jobs only those of its space. */
pawl_status pwi_manager_status_for(struct pwi_manager *manager, const struct pwi_rights *rights,
                                   struct pwi_writer *writer);

/* What `rights` says has changed: links whose identity may come no more are ended, the others go on with what they may do
 * now. From the net's thread. */
void pwi_manager_review(struct pwi_manager *manager);

/* For /healthz and /metrics. */
struct pwi_manager_figures {
  uint64_t cluster, epoch, catalogue, membership;
  uint64_t nodes_up, nodes_down, nodes_draining, processes, arcs, vectors, groups, clients, retired, moves, moves_done;
  uint64_t processes_up;     /* that could be given something now */
  uint64_t replicas;         /* as configured */
  uint64_t under_replicated; /* arcs with fewer than `replicas` + 1 full members */
  uint64_t filling;          /* arcs with a member that is being filled */
  uint64_t waiting;          /* arcs of which no full member is up: they wait for one that is down */
  uint64_t unlinked;         /* arcs whose head has no link to us at present */
  uint64_t hollow;           /* the most vectors that any one server could not make, for lack of memory */
  pawl_status stopped;       /* why nothing is decided any more, until a manager is started anew; PAWL_OK: it is */
  bool ready;                /* there are arcs, the head of each is up, and we decide */
  bool whole; /* ready; all members are here; chains are as long as the processes permit; nothing moves or is to move */
};

void pwi_manager_figures(const struct pwi_manager *manager, struct pwi_manager_figures *figures_out);

/* What a filter of a vector has done, in all clients that have told this manager. */
struct pwi_manager_filter {
  char vector[PAWL_NAME_MAX + 1]; /* its name */
  struct pwi_filter_count count;
};

/* At most `room` of them; returns how many. Those of vectors that are gone are left out. */
size_t pwi_manager_filters(const struct pwi_manager *manager, struct pwi_manager_filter *filters, size_t room);

#endif
