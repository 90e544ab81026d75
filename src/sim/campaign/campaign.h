/* Campaigns: a whole cluster at work in the simulator while everything goes wrong that may, and checkers who know more than
 * any node. One seed is one campaign, and the same seed gives the same one, event by event.
 *
 * WHAT IS DRAWN from the seed: how many server processes and shards there are, how many replicas, who shares a machine,
 * memory caps, workers, a group that meets at barriers, where the manager keeps its journal; and what goes wrong, how
 * often. Workers push and pull random integers; an operator has arcs moved, split and merged.
 *
 * WHAT GOES WRONG: links broken or muted, cuts, partitions, pauses, slow nodes; workers killed and started again; servers
 * that join and leave; the manager killed, its journal slow or failing; and with replicas servers killed (they come back
 * empty, as new processes), paused and cut off, never more of a chain than it can bear: see `havoc.c`.
 *
 * WHAT MUST HOLD:
 *
 *   - no push that was acknowledged is lost and none counts twice, a session reads what it wrote: `worker.c`, `book.c`;
 *   - nobody passes a barrier before all members who live have come: `crew.c`;
 *   - no iteration begins before its policy lets it, or later, and what it reads is as new as the policy says: `paced.c`;
 *   - every view that anybody has is the one of that epoch in the manager's journal, and no two members of a chain are in
 *     one process; members of a chain have the same content at the same sequence: `watch.c`;
 *   - a journal that is read again tells the same history: `keeper.c`;
 *   - nobody waits without a cause: once everything has healed, all calls end within a bound of virtual time, and the
 *     cluster becomes whole.
 *
 * A campaign that meets nothing proves nothing, so it counts what it met.
 *
 * Threads: a campaign runs in the thread that calls, and several may run in several threads.
 */
#ifndef PWI_SIM_CAMPAIGN_CAMPAIGN_H
#define PWI_SIM_CAMPAIGN_CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "protocol/planted.h"

/* How many replicas seeds draw by themselves, at most. */
#define PWI_CAMPAIGN_REPLICAS 2

/* Where the manager keeps what it decides. */
enum pwi_campaign_keeper {
  PWI_KEEPER_STORE, /* a store elsewhere: each record is on its way for a while, and may get there though the manager dies */
  PWI_KEEPER_FILE, /* a file on the manager's disk */
};

/* Wrong on purpose, for tests of campaigns, which must find it. */
enum pwi_campaign_paced_bug {
  PWI_PACED_SOUND,
  PWI_PACED_HASTY, /* iterations begin whatever the policy says */
  PWI_PACED_LAZY,  /* a while after they might */
};

struct pwi_campaign_config {
  uint64_t seed;
  uint32_t replicas;
  uint32_t processes, shards; /* servers that are there from the beginning */
  uint32_t late;              /* processes of one shard that join later */
  uint32_t points;            /* arcs for each shard at first */
  uint32_t workers, calls;    /* and how many calls each of them makes */
  bool filters;               /* one more vector, behind lossy filters */
  bool functions;             /* a server function with state where else things are added */
  bool refusals;              /* it refuses some pushes */
  uint32_t crew;              /* members of a group that meets at barriers; 0: none */
  uint32_t paced;             /* workers whose iterations follow a policy; 0: none */
  char policy[24];            /* of theirs (sync/policy.h), or */
  bool is_user_policy;        /* a function */
  enum pwi_campaign_paced_bug paced_bug;
  bool shared_hosts;   /* clients and servers on the same machines: data planes everywhere */
  bool checked_hosts;  /* no data planes at all */
  uint64_t memory_max; /* of each shard; 0: no cap */
  int64_t client_grace_ns;
  enum pwi_campaign_keeper keeper;
  uint64_t journal_bytes; /* of a file, before it is made short; 0: the manager's default */

  int64_t window_ns;    /* for so long things go wrong; then everything heals */
  int64_t gap_nodes_ns; /* mean time between two faults that every cluster must bear; 0: none, as below */
  int64_t gap_kills_ns; /* between two kills of workers */
  int64_t gap_servers_ns;
  int64_t gap_manager_ns;
  int64_t gap_members_ns; /* between servers that join or leave */
  int64_t gap_moves_ns;   /* between arcs that are moved because somebody says so */
  bool kills_blindly;     /* servers also while the manager is not well */
  bool is_reckless;       /* servers die whoever has copies: for tests of campaigns, which must find it */
};

/* The campaign of a seed. With `replicas` below 0 they are drawn too. */
void pwi_campaign_draw(uint64_t seed, int replicas, struct pwi_campaign_config *config_out);

/* One line about it, cut off at `size`. */
void pwi_campaign_describe(const struct pwi_campaign_config *config, char *text, size_t size);

/* What a campaign met. X(name, text) */
#define PWI_CAMPAIGN_FIGURE_MAP(X)                                                                                     \
  X(events, "events")                                                                                                  \
  X(pushes, "pushes acknowledged")                                                                                     \
  X(pulls, "pulls")                                                                                                    \
  X(barriers, "barriers passed")                                                                                       \
  X(iterations, "iterations under a policy")                                                                           \
  X(waits, "iterations that had to wait")                                                                              \
  X(faults, "links, pauses and cuts")                                                                                  \
  X(worker_kills, "workers killed")                                                                                    \
  X(server_kills, "servers killed")                                                                                    \
  X(server_faults, "servers paused or cut off")                                                                        \
  X(manager_kills, "managers killed")                                                                                  \
  X(disk_faults, "journals slow or failing")                                                                           \
  X(replays, "journals read again")                                                                                    \
  X(snapshots, "journals made short")                                                                                  \
  X(joins, "servers joined")                                                                                           \
  X(leaves, "servers left")                                                                                            \
  X(views, "views")                                                                                                    \
  X(failovers, "heads replaced")                                                                                       \
  X(fills, "members filled")                                                                                           \
  X(moves, "arcs moved")                                                                                               \
  X(digests, "members compared")                                                                                       \
  X(resent, "messages sent again")                                                                                     \
  X(gaps, "gaps")                                                                                                      \
  X(wanted, "key lists forgotten")                                                                                     \
  X(not_here, "keys that had moved")                                                                                   \
  X(retirements, "clients taken for dead")                                                                             \
  X(refusals, "pushes refused")

struct pwi_campaign_figures {
#define PWI_CAMPAIGN_FIGURE(name, text) uint64_t name;
  PWI_CAMPAIGN_FIGURE_MAP(PWI_CAMPAIGN_FIGURE)
#undef PWI_CAMPAIGN_FIGURE
};

void pwi_campaign_figures_add(struct pwi_campaign_figures *sum, const struct pwi_campaign_figures *more);

struct pwi_campaign_result {
  bool has_failed;
  char failure[256]; /* what went wrong first; "" if nothing did */
  int64_t time_ns;   /* virtual time: when it did, or when everything was over */
  uint64_t hash;     /* of all events */
  struct pwi_campaign_figures figures;
};

/* Runs it. Whatever goes wrong, memory that runs out included, is in the result. */
void pwi_campaign_run(const struct pwi_campaign_config *config, struct pwi_campaign_result *result_out);

/* --- many of them --------------------------------------------------------------------------------------------------- */

struct pwi_campaigns_config {
  uint64_t first, last; /* seeds */
  int replicas;         /* below 0: drawn */
  unsigned jobs;        /* threads; 0: 1 */
  enum pwi_planted bug; /* in a library that has them */
  size_t failures_max;  /* stop after so many; 0: PWI_CAMPAIGNS_FAILURES */

  /* Called from the calling thread, several times a second. May be NULL. */
  void (*progress)(void *context, uint64_t done, size_t failed);
  void *context;
};

#define PWI_CAMPAIGNS_FAILURES 16

struct pwi_campaigns_result {
  uint64_t seeds; /* that were run */
  double seconds;
  struct pwi_campaign_figures figures;
  size_t failure_count; /* with the lowest seeds, in their order */
  struct {
    uint64_t seed;
    struct pwi_campaign_result result;
  } failures[PWI_CAMPAIGNS_FAILURES];
};

/* PAWL_INVALID (no seeds), PAWL_NO_MEMORY (no thread could be started). A seed that fails is a result and no error. */
PAWL_MUST_USE pawl_status pwi_campaigns_run(const struct pwi_campaigns_config *config,
                                            struct pwi_campaigns_result *result_out);

#endif
