/* Campaigns: a whole cluster at work in the simulator under every kind of fault, with checkers that know
 * more than any node. One seed is one campaign, and the same seed gives the same campaign, event by event.
 *
 * DRAWN from the seed: the number of server processes, shards and replicas, which nodes share a machine,
 * memory caps, workers, a group that meets at barriers, where the manager keeps its journal; and which
 * faults happen, and how often. Workers push, pull and scan; an operator moves, splits and merges arcs.
 *
 * FAULTS: broken and muted links, cuts, partitions, pauses, slow nodes; workers killed and restarted;
 * servers that join and leave; the manager killed, its journal slow or failing; and with replicas servers
 * killed (they come back empty, as new processes), paused and cut off, never more of a chain than it can
 * survive: see `havoc.c`.
 *
 * INVARIANTS:
 *
 *   - no acknowledged push is lost or counted twice, every key is linearizable, a session reads its own
 *     writes, and no member passes a barrier before all live members have come: sim/history;
 *   - an iteration begins exactly when its policy permits, and reads values as fresh as the policy
 *     demands: `paced.c`;
 *   - every view that a node has is the view of that epoch in the manager's journal; no two members of a
 *     chain are in one process; members of a chain have the same content at the same sequence: `watch.c`;
 *   - no chain loses more copies than the faults explain that the campaign itself has injected: `budget.c`;
 *   - replaying a journal gives the same history: `keeper.c`;
 *   - no call waits for ever: once everything has healed, all calls end within a bound of virtual time,
 *     and the cluster becomes complete again, by the last view and by the state of all servers: `rest.c`.
 *
 * A campaign without faults proves nothing, so each campaign counts what happened in it.
 *
 * Threads: a campaign runs in the calling thread; several campaigns may run in several threads.
 */
#ifndef PWI_SIM_CAMPAIGN_CAMPAIGN_H
#define PWI_SIM_CAMPAIGN_CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "protocol/planted.h"

/* The most replicas that a seed draws. */
#define PWI_CAMPAIGN_REPLICAS 2

/* Where the manager keeps its decisions. */
enum pwi_campaign_keeper {
  /* a remote store: each record travels for a while, and may arrive although the manager dies */
  PWI_KEEPER_STORE,
  PWI_KEEPER_FILE, /* a file on the manager's disk */
};

/* Deliberate bugs for tests of campaigns, which must find them. */
enum pwi_campaign_paced_bug {
  PWI_PACED_SOUND,
  PWI_PACED_HASTY, /* iterations begin without regard to the policy */
  PWI_PACED_LAZY,  /* iterations begin later than the policy permits */
  PWI_PACED_TWICE, /* pushes count twice */
};

/* Clients that exercise other requests than push, pull and barriers (workloads/workload.h). X(name, text) */
#define PWI_WORKLOAD_MAP(X)                                                                                            \
  X(SCANNER, "scanner")                                                                                                \
  X(NAMES, "names")                                                                                                    \
  X(HEIR, "heir")                                                                                                      \
  X(SUMS, "sums")                                                                                                      \
  X(LINEAR, "linear")                                                                                                  \
  X(CALLER, "caller")                                                                                                  \
  X(SAVER, "saver")                                                                                                    \
  X(TRIGGER, "trigger")                                                                                                \
  X(LOCAL, "local")                                                                                                    \
  X(GATE, "gate")                                                                                                      \
  X(LOSS, "loss")                                                                                                      \
  X(READERS, "readers")

enum pwi_campaign_workload {
#define PWI_WORKLOAD_ENUM(name, text) PWI_WORKLOAD_##name,
  PWI_WORKLOAD_MAP(PWI_WORKLOAD_ENUM)
#undef PWI_WORKLOAD_ENUM
      PWI_WORKLOADS
};

struct pwi_campaign_config {
  uint64_t seed;
  uint32_t replicas;
  uint32_t processes, shards; /* servers that exist from the beginning */
  uint32_t late;              /* processes of one shard that join later */
  uint32_t points;            /* initial arcs per shard */
  uint32_t workers, calls;    /* `calls`: number of calls that each worker makes */
  bool filters;               /* one more vector, with lossy filters */
  bool functions;             /* vectors that are otherwise added to use a server function with state */
  bool refusals;              /* that function refuses some pushes */
  uint32_t crew;              /* members of a group that meets at barriers; 0: no group */
  uint32_t paced;             /* workers whose iterations follow a policy; 0: none */
  char policy[24];            /* policy of the paced workers (sync/policy.h) */
  bool is_user_policy;        /* the policy of the paced workers is a function instead */
  enum pwi_campaign_paced_bug paced_bug;
  uint32_t relays;     /* relays of the pushes of groups; 0: none */
  char tree[24];       /* of the relays (protocol/relays.h) */
  uint32_t workloads;  /* as bits, by enum pwi_campaign_workload */
  bool shared_hosts;   /* clients and servers share machines: data planes everywhere */
  bool checked_hosts;  /* no data planes at all */
  uint64_t memory_max; /* of each shard; 0: no cap */
  int64_t client_grace_ns;
  uint32_t managers; /* managers that take turns, with leases in a shared store; 0: one manager with a journal */
  enum pwi_campaign_keeper keeper;
  uint64_t journal_bytes; /* size of the journal's file before it is compacted; 0: the manager's default */

  int64_t window_ns; /* duration of the faults; after it everything heals */
  /* mean time between two faults that every cluster must survive; 0: none, here and below */
  int64_t gap_nodes_ns;
  int64_t gap_kills_ns; /* between two kills of workers */
  int64_t gap_servers_ns;
  int64_t gap_manager_ns;
  int64_t gap_members_ns; /* between two servers that join or leave */
  int64_t gap_moves_ns;   /* between two arcs that the operator moves */
  int64_t gap_resets_ns;  /* between two resets of single links */
  int64_t gap_outages_ns; /* between two outages of many nodes at once */
  bool has_drift;         /* clocks run at rates that differ by up to 10 % */
  bool has_small_queues;  /* few messages fit into the queue of a link */
  bool has_starvation;    /* nodes get no memory for links and regions for a while */
  bool has_priorities;    /* clients have different priorities */
  bool has_long_pause;    /* a node stands still for more than 10 s */
  bool kills_blindly;     /* kills servers even while the manager has a fault */
  /* kills servers without regard to copies: for tests of campaigns, which must find the loss */
  bool is_reckless;
};

/* The campaign of a seed. `replicas` below 0: draws their number, too. */
void pwi_campaign_draw(uint64_t seed, int replicas, struct pwi_campaign_config *config_out);

/* Gives a drawn campaign so many managers, 1 to 3. 0: as drawn. */
void pwi_campaign_set_managers(uint32_t managers, struct pwi_campaign_config *config);

/* Turns a drawn campaign into one of relays: the groups of the workloads `sums`, with longer work, and `readers`, and one
 * to three relays. Many faults remain. */
void pwi_campaign_set_relays(struct pwi_campaign_config *config);

/* Describes the campaign in one line, truncated to `size`. */
void pwi_campaign_describe(const struct pwi_campaign_config *config, char *text, size_t size);

/* Counts of what happened in a campaign. X(name, text) */
#define PWI_CAMPAIGN_FIGURE_MAP(X)                                                                                     \
  X(events, "events")                                                                                                  \
  X(pushes, "pushes acknowledged")                                                                                     \
  X(pulls, "pulls")                                                                                                    \
  X(excused, "rows that a deposed head may have answered")                                                             \
  X(barriers, "barriers passed")                                                                                       \
  X(iterations, "iterations under a policy")                                                                           \
  X(waits, "iterations that had to wait")                                                                              \
  X(scans, "scans")                                                                                                    \
  X(creates, "vectors created")                                                                                        \
  X(deletes, "vectors deleted")                                                                                        \
  X(restores, "vectors restored")                                                                                      \
  X(group_pushes, "pushes of a group")                                                                                 \
  X(group_pulls, "pushpulls of a group")                                                                               \
  X(relayed, "pushes sent through relays")                                                                             \
  X(aggregates, "aggregates of relays")                                                                                \
  X(relayed_applied, "aggregates of relays applied")                                                                   \
  X(relays_refused, "pushes that relays or servers refused")                                                           \
  X(old_pulls, "pulls of a group")                                                                                     \
  X(pulls_relayed, "pulls sent to relays")                                                                             \
  X(pulls_refused, "pulls that relays or servers refused")                                                             \
  X(pulls_answered, "pulls that relays answered")                                                                      \
  X(pulls_kept, "pulls that relays answered at once")                                                                  \
  X(relay_reads, "reads of relays")                                                                                    \
  X(tree_changes, "changes of the tree that relays have agreed on")                                                    \
  X(excused_bounds, "campaigns in which relays heard a deposed head")                                                  \
  X(linear_calls, "calls of linear algebra")                                                                           \
  X(runs, "calls of row functions on dense vectors")                                                                   \
  X(folds, "folds")                                                                                                    \
  X(calls, "calls between clients")                                                                                    \
  X(triggers, "pushes that waited for a group")                                                                        \
  X(entries, "newcomers that entered a group behind a lost head")                                                      \
  X(local_pushes, "pushes to local vectors")                                                                           \
  X(local_pulls, "pulls from local vectors")                                                                           \
  X(saves, "checkpoints saved")                                                                                        \
  X(saves_failed, "checkpoints that failed")                                                                           \
  X(saver_faults, "faulty disks of checkpoints")                                                                       \
  X(loads, "checkpoints loaded")                                                                                       \
  X(fenced, "dead workers inherited from")                                                                             \
  X(faults, "broken links, pauses, cuts")                                                                              \
  X(worker_kills, "workers killed")                                                                                    \
  X(server_kills, "servers killed")                                                                                    \
  X(server_faults, "servers paused or cut off")                                                                        \
  X(given_up, "servers given up")                                                                                      \
  X(resets, "single links reset")                                                                                      \
  X(partitions, "partitions of groups")                                                                                \
  X(mass_silences, "times more servers silent than replicas")                                                          \
  X(manager_cuts, "servers cut off from the manager alone")                                                            \
  X(starvations, "nodes without memory for links")                                                                     \
  X(drifts, "campaigns with clocks that drift")                                                                        \
  X(queues, "campaigns with small queues")                                                                             \
  X(long_pauses, "pauses longer than every timer")                                                                     \
  X(manager_kills, "managers killed")                                                                                  \
  X(takeovers, "managers that took over")                                                                              \
  X(disk_faults, "journals slow or failing")                                                                           \
  X(replays, "journals replayed")                                                                                      \
  X(snapshots, "journals compacted")                                                                                   \
  X(joins, "servers joined")                                                                                           \
  X(leaves, "servers left")                                                                                            \
  X(views, "views")                                                                                                    \
  X(failovers, "heads replaced")                                                                                       \
  X(fills, "members filled")                                                                                           \
  X(late_rests, "campaigns in which servers were whole later than the view")                                           \
  X(moves, "arcs moved")                                                                                               \
  X(digests, "members compared")                                                                                       \
  X(kept, "members that kept refusals or results, compared")                                                           \
  X(resent, "messages resent")                                                                                         \
  X(gaps, "gaps")                                                                                                      \
  X(wanted, "key lists forgotten")                                                                                     \
  X(not_here, "keys that had moved")                                                                                   \
  X(retirements, "clients declared dead")                                                                              \
  X(judged, "clients declared dead that lived")                                                                        \
  X(refusals, "pushes refused")                                                                                        \
  X(holds, "waits for more urgent clients")

struct pwi_campaign_figures {
#define PWI_CAMPAIGN_FIGURE(name, text) uint64_t name;
  PWI_CAMPAIGN_FIGURE_MAP(PWI_CAMPAIGN_FIGURE)
#undef PWI_CAMPAIGN_FIGURE
};

void pwi_campaign_figures_add(struct pwi_campaign_figures *sum, const struct pwi_campaign_figures *more);

struct pwi_campaign_result {
  bool has_failed;
  char failure[256]; /* the first failure; "" if there was none */
  int64_t time_ns;   /* virtual time of the failure, or of the end */
  uint64_t hash;     /* of all events */
  struct pwi_campaign_figures figures;
};

/* Runs a campaign. All failures, also for lack of memory, are in the result. */
void pwi_campaign_run(const struct pwi_campaign_config *config, struct pwi_campaign_result *result_out);

/* --- many campaigns ------------------------------------------------------------------------------------- */

struct pwi_campaigns_config {
  uint64_t first, last; /* seeds */
  int replicas;         /* below 0: drawn */
  uint32_t managers;    /* 0: drawn */
  bool relays;          /* campaigns of relays, see pwi_campaign_set_relays */
  unsigned jobs;        /* threads; 0: 1 */
  enum pwi_planted bug; /* in a library that was built with planted bugs */
  size_t failures_max;  /* stop after so many failures; 0: PWI_CAMPAIGNS_FAILURES */

  /* Called in the calling thread several times a second. If it returns false, no further seed is begun. May be NULL. */
  bool (*progress)(void *context, uint64_t done, size_t failed);
  void *context;
};

#define PWI_CAMPAIGNS_FAILURES 16

struct pwi_campaigns_result {
  uint64_t seeds; /* number of seeds that were run, the first ones */
  double seconds;
  struct pwi_campaign_figures figures;
  size_t failure_count; /* the failures with the lowest seeds, in order */
  struct {
    uint64_t seed;
    struct pwi_campaign_result result;
  } failures[PWI_CAMPAIGNS_FAILURES];
};

/* PAWL_INVALID (no seeds), PAWL_NO_MEMORY (no thread could be started). A seed that fails is a result and
 * not an error. */
PAWL_MUST_USE pawl_status pwi_campaigns_run(const struct pwi_campaigns_config *config,
                                            struct pwi_campaigns_result *result_out);

#endif
