/* Shared by the files of a campaign.
 *
 *   campaign.c         a campaign from beginning to end
 *   draw.c             draws the campaign of a seed
 *   worker.c           workers that push and pull
 *   book.c             the vectors of workers and their keys; the history of calls (sim/history)
 *   crew.c             members of a group that meet at barriers
 *   paced.c            workers whose iterations follow a policy
 *   havoc.c            faults that depend on the state of the cluster; never more than chains can survive
 *   outages.c          faults of many nodes at once, resets of single links, long pauses
 *   budget.c           copies that chains may lose: the faults that the campaign itself has injected
 *   members.c          servers that join and leave, arcs that are moved
 *   keeper.c           the manager's journal
 *   leaders.c          several managers that take turns
 *   retired.c          clients that are declared dead: the faults that explain it
 *   errors.c           errors in the logs of servers and managers
 *   kept.c             refusals and results that members of a chain keep
 *   watch.c            invariants that hold all the time
 *   rest.c             the state of all servers at the end
 *   server_function.c  the server function of campaigns
 *   relays.c           relays of the pushes of groups
 *   workloads/         clients that exercise other requests, and check the results by themselves
 *   runner.c           many campaigns
 */
#ifndef PWI_SIM_CAMPAIGN_INSIDE_H
#define PWI_SIM_CAMPAIGN_INSIDE_H

#include "manager/leader/standby.h"
#include "manager/ledger/ledger.h"
#include "sim/campaign/campaign.h"
#include "sim/cluster.h"
#include "sim/faults.h"
#include "sim/history/history.h"
#include "sim/meta.h"
#include "sync/pace.h"

#define MS PWI_SIM_MILLISECOND
#define WORKERS_MAX 4
#define CREW_MAX 3
#define PACED_MAX 3
#define RELAYS_MAX 3
#define VECTORS 5
#define KEYS 60 /* keys of each vector that workers draw from */
#define WIDTH_MAX 16
#define OPERAND_MAX (WIDTH_MAX + 2) /* rows of an operand */
#define UNDER_WAY 6                 /* concurrent calls of a worker */
#define CLIENTS_MAX 32

/* Pushes to LATEST assign, pushes to the others add. FILTERED exists only in campaigns with filters. In
 * campaigns with functions the first three are added to by a function that keeps state. */
enum { DENSE, SPARSE, MIXED, LATEST, FILTERED };

/* Random streams of the seed, for pwi_sim_stream. */
enum { STREAM_KEEPER = 78, STREAM_HAVOC, STREAM_OUTAGES, STREAM_SAVED_DISK, STREAM_SAVED_JOBS, STREAM_WORKLOADS = 100 };

struct campaign;
struct pwi_workload;

/* --- workers -------------------------------------------------------------------------------------------- */

/* A push or pull that is under way. */
struct deed {
  struct pwi_task task;
  struct campaign_worker *worker;
  bool is_busy;
  enum pwi_request_kind kind;
  size_t vector;
  uint64_t serial; /* number of the call among those of its worker */
  uint32_t call;   /* in the history */
  int64_t begun;
  size_t count;
  uint64_t keys[KEYS];     /* of the call; of a scan: those that it found */
  struct pawl_range range; /* of a scan */
  int64_t values[KEYS * WIDTH_MAX];
  int64_t out[KEYS * WIDTH_MAX];
  void *buffer; /* shared buffer that holds the values and that servers read in place; NULL: none */
  int64_t factors[KEYS * OPERAND_MAX], operand[OPERAND_MAX * WIDTH_MAX]; /* the values as a sum of products */
};

struct campaign_worker {
  struct campaign *campaign;
  struct pwi_cluster_client client;
  uint32_t index;
  uint32_t session; /* in the history */
  uint32_t calls_left;
  uint64_t serial;
  struct pwi_flow *flows[VECTORS];
  struct pwi_keylist *lists[VECTORS];
  uint64_t list_keys[VECTORS][KEYS];
  size_t list_count[VECTORS];
  struct deed deeds[UNDER_WAY];
};

/* --- the book ------------------------------------------------------------------------------------------- */

struct book {
  uint32_t widths[VECTORS];
  uint64_t universe[VECTORS][KEYS];
  uint32_t recorded[VECTORS]; /* the vectors in the history */
  uint32_t sums;              /* vector of the crew in the history */
  uint32_t paced_rows;        /* vector of paced workers in the history */
};

/* --- the crew ------------------------------------------------------------------------------------------- */

#define CREW_WIDTH 4 /* columns of the vector that members push to */

struct crew_call {
  struct pwi_task task;
  struct crew_member *member;
  uint32_t number; /* in the history */
};

struct crew_member {
  struct campaign *campaign;
  struct pwi_cluster_client client;
  uint32_t index;
  uint32_t session; /* in the history */
  struct pwi_asking asking;
  struct crew_call enter, tick_call, await, push, pull;
  int pending; /* number of push, tick and await that are under way */
  struct pwi_flow *flow, *sums;
  uint64_t tick; /* that it has reached */
  bool is_in, is_over;
  int64_t pushed[CREW_WIDTH], seen[CREW_WIDTH];
};

/* --- workers whose iterations follow a policy ----------------------------------------------------------- */

#define PACED_WIDTH 3 /* columns of the vector that they push to */
#define TRACED_MAX 16 /* most iterations and ticks; more than are made */
#define STEPS_MAX 16  /* most iterations under way */

/* The fate of an iteration. */
struct traced {
  uint64_t number; /* of its push */
  uint32_t pending;
  bool has_ended;
  int64_t finished_at;
};

/* The calls of an iteration that is under way. */
struct paced_step {
  struct paced *paced;
  bool is_busy, is_current;
  uint64_t iteration, group_needed;
  int pending;
  int64_t pushed[PACED_WIDTH], seen[PACED_MAX][PACED_WIDTH];
  struct pwi_task push, pull;
  uint32_t push_call, pull_call; /* in the history */
  struct pwi_clock_list clocks;
};

struct ticking {
  struct pwi_task task;
  struct paced *paced;
  uint64_t tick;
  uint32_t call; /* in the history */
};

struct listening {
  struct pwi_task task;
  struct paced *paced;
  uint64_t tick;
  uint32_t call; /* in the history */
  bool is_busy;
};

struct paced {
  struct campaign *campaign;
  struct pwi_cluster_client client;
  uint32_t index;
  uint32_t session; /* in the history */
  struct pwi_asking asking;
  struct pwi_task enter;
  uint32_t enter_call; /* in the history */
  struct pwi_flow *group, *rows;
  struct pwi_pace pace;
  bool has_pace, is_in, is_over;
  bool wants, has_dallied; /* it waits for its next iteration */
  /* `began`: the iteration before its first; `ticked`: the last tick that it has sent */
  uint64_t began, ticked;
  int64_t entered_at, wanted_at, heard_at;
  uint64_t heard_for; /* the tick that it has been told of */
  int ticks_pending;
  struct traced trace[TRACED_MAX];
  int64_t acknowledged_at[TRACED_MAX]; /* by tick */
  struct paced_step steps[STEPS_MAX];
  struct ticking ticking[TRACED_MAX];
  struct listening listening[STEPS_MAX];
};

/* --- havoc ---------------------------------------------------------------------------------------------- */

#define NODES_MAX 64 /* most nodes of the simulation */
#define TROUBLES_MAX 8
#define TROUBLE_NODES 8
#define FAULTS_MAX 4096

/* A fault that may cost chains one full member. It stays open until it certainly has not, or until the
 * chains have a replacement. */
struct trouble {
  bool is_death;
  int64_t heals_at;
  /* ids of the nodes that the fault may cost; the lost member is one of them */
  uint64_t nodes[TROUBLE_NODES];
  size_t node_count;
};

struct havoc {
  struct pwi_random random;
  int64_t end;
  struct pwi_sim_faults blind, kills;     /* drawn before the run */
  struct pwi_sim_fault items[FAULTS_MAX]; /* decided during the run */
  size_t item_count;
  struct trouble troubles[TROUBLES_MAX];
  size_t trouble_count;
  bool is_started[PWI_CLUSTER_PROCESSES];
  size_t leaving; /* the process that is leaving; PWI_CLUSTER_PROCESSES: none */
  int64_t manager_well_at;
  struct pwi_cluster_client client; /* the operator, which moves arcs */
  struct pwi_asking move;
  bool is_moving;
  uint64_t move_to, move_epoch; /* the server that was asked for, and the operator's view */
};

/* True if a fault that may cost one of `nodes` leaves every chain with a full member, whatever the next
 * view is: fewer than `replicas` troubles are open, and no chain lacks more members than these account
 * for. */
bool pwi_havoc_may_trouble(const struct pwi_view *view, uint32_t replicas, const struct trouble *troubles,
                           size_t trouble_count, const uint64_t *nodes, size_t node_count);

struct outages {
  struct pwi_random random;
  int64_t healed_at; /* end of the long pause */
};

/* --- the budget ------------------------------------------------------------------------------------------ */

#define SILENCED_MAX 512

/* A server that a fault keeps, or kept, from others. */
struct silenced {
  uint64_t node;                   /* 0: it had not joined yet */
  const struct pwi_server *server; /* that had not joined yet */
  size_t place;                    /* 1 + the process whose links are cut, whichever server runs there; 0: none */
  int64_t until;                   /* when the fault healed, or will; INT64_MAX: the server is dead */
  int64_t noticed;                 /* when a manager that was away meanwhile is well again; 0: none was away */
  int64_t slow_until;              /* when the server got, or will get, fast again; 0: it was never slow */
};

struct budget {
  struct silenced silenced[SILENCED_MAX];
  size_t count;
};

/* --- the journal ---------------------------------------------------------------------------------------- */

struct kept;

struct keeper {
  struct pwi_journal journal; /* the interface for the manager */
  struct campaign *campaign;
  struct pwi_random random;
  struct pwi_journal *file; /* the journal on disk, while the manager is up */
  /* records that the manager takes for durable, and that will be when its disk is done */
  struct kept *due, **due_end;
  bool is_replacing;
  struct kept *unknown; /* in a file: records of an earlier manager that the journal may have or not, in their order */
  struct pwi_net *net;  /* the manager's */
  struct kept *first, **end;       /* the remote store */
  struct kept *pending;            /* the record that is travelling there */
  struct pwi_ledger ledger;        /* the state after all durable records */
  int64_t slow_until, fails_until; /* faults of the store */
};

/* --- several managers ----------------------------------------------------------------------------------- */

#define MANAGERS_MAX 3

struct campaign_leader {
  struct campaign *campaign;
  struct pwi_sim_node node;
  char name[8], address[16];
  struct pwi_standby *standby; /* NULL while it is down */
  struct pwi_meta *meta;
  uint64_t term; /* of its last leadership */
};

struct campaign_leaders {
  struct pwi_sim_meta *store;
  struct campaign_leader all[MANAGERS_MAX];
  size_t count; /* 0: the campaign has one manager, with a journal of its own */
};

/* The disk to which all nodes save checkpoints. A slow disk does one job after another, each after a while. */
struct campaign_disk {
  struct pwi_disk_queue queue; /* must be first */
  struct pwi_sim_disk *disk;
  struct campaign *campaign;
  struct pwi_random random;
  bool is_slow, is_running; /* `is_running`: the next job of a slow disk is due */
  struct pwi_disk_job *jobs, **jobs_end;
};

/* --- the watch ------------------------------------------------------------------------------------------ */

#define ARCS_MAX 1024
#define COMPARED_MAX 512

/* The state of an arc at a full member. */
struct stand {
  const struct pwi_server *server;
  struct pwi_server_arc arc;
};

/* The view of a node at the last check. */
struct looked {
  const struct pwi_view *view;
  uint64_t epoch;
};

/* A durable view. Epochs that a compacted journal no longer contains have none. */
struct watched_view {
  uint64_t hash;
  struct pwi_view *view; /* NULL: none */
};

struct campaign_watch {
  struct watched_view *views; /* by epoch */
  size_t epochs, room;
  struct pwi_view *last; /* the view of the highest epoch */
  struct stand stands[ARCS_MAX];
  uint64_t compared[COMPARED_MAX]; /* hashes of recent comparisons */
  unsigned looks;
  struct looked looked[NODES_MAX];
  unsigned char *bytes; /* an encoded view */
  size_t bytes_room;
};

/* --- rest ----------------------------------------------------------------------------------------------- */

#define RESTED_MAX (4 * ARCS_MAX)

/* An arc that a server which is running has. */
struct rested {
  uint64_t node;
  struct pwi_server_arc arc;
  uint64_t digest; /* 0: not computed, or the server is being filled */
};

struct rest {
  struct rested *rested; /* room for RESTED_MAX; NULL: nobody was asked yet */
  int64_t ask_at;        /* when servers are asked again */
  bool was_late;
  char text[160]; /* what the servers lacked last */
};

/* --- the campaign --------------------------------------------------------------------------------------- */

struct campaign {
  struct pwi_campaign_config config;
  struct pwi_cluster cluster;
  struct pwi_campaign_figures figures;
  struct keeper keeper;
  struct campaign_leaders leaders;
  struct campaign_disk saved;
  struct campaign_watch watch;
  struct havoc havoc;
  struct outages outages;
  struct rest rest;
  struct budget budget;
  struct pwi_history *history; /* of all calls of workers, of the crew, of paced workers and of the workload `names` */
  struct book book;
  struct campaign_worker workers[WORKERS_MAX];
  struct crew_member crew[CREW_MAX];
  struct paced paced[PACED_MAX];
  struct campaign_relays {
    struct pwi_relay_tree tree;
    struct campaign_relay {
      struct campaign *campaign;
      struct pwi_cluster_client client;
    } all[RELAYS_MAX];
  } relays;
  struct pwi_cluster_client checker;
  uint32_t checker_session;                      /* in the history */
  struct pwi_workload *workloads[PWI_WORKLOADS]; /* NULL: the campaign does not have it */
  struct {
    struct pwi_cluster_client *client;
    bool is_mortal;       /* faults may kill its process */
    uint64_t judged;      /* the last id of it that was declared dead while its process lived; retired.c */
  } clients[CLIENTS_MAX]; /* those that faults concern, in the order of their addition */
  size_t client_count;
  struct pwi_function_set functions;
  struct {
    unsigned looks;
    bool lack_ticks; /* a member had not heard of a client when it applied its push */
  } kept;
  bool is_quiet; /* no new faults happen, and the operator moves no arcs */
};

static inline size_t pwi_campaign_vector_count(const struct campaign *campaign) {
  return campaign->config.filters ? VECTORS : FILTERED;
}

/* server_function.c: adds the server function of campaigns. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_campaign_functions(struct campaign *campaign);

/* Ends the run, because an invariant is broken or memory is short. */
#define CAMPAIGN_FAIL(campaign, ...) pwi_sim_fail((campaign)->cluster.sim, PAWL_CORRUPT, __VA_ARGS__)

static inline int64_t pwi_campaign_now(const struct campaign *campaign) { return pwi_sim_now(campaign->cluster.sim); }

/* Calls `call` after `delay`. */
void pwi_campaign_later(struct campaign *campaign, int64_t delay, void (*call)(void *context));

/* campaign.c: adds a client that faults concern. `is_mortal`: faults may kill its process. As
 * pwi_cluster_client_add. */
PAWL_MUST_USE pawl_status pwi_campaign_client_add(struct campaign *campaign, struct pwi_cluster_client *client,
                                                  bool is_mortal);

/* campaign.c: adds all clients and their vectors to an open cluster; at the end, lets workloads compare, and checks
 * the history. */
PAWL_MUST_USE pawl_status pwi_campaign_work(struct campaign *campaign);
PAWL_MUST_USE pawl_status pwi_campaign_compare(struct campaign *campaign);

/* worker.c */
extern const char *const pwi_campaign_vectors[VECTORS]; /* names */
PAWL_MUST_USE pawl_status pwi_workers_add(struct campaign *campaign);
bool pwi_workers_are_busy(const struct campaign *campaign);

/* book.c */
PAWL_MUST_USE pawl_status pwi_book_init(struct campaign *campaign); /* begins the history */
void pwi_book_fini(struct campaign *campaign);
struct pawl_vector_options pwi_book_options(const struct campaign *campaign, size_t vector);

/* Records the end of a call in the history; `rows` are those that it read. */
void pwi_campaign_ended(struct campaign *campaign, uint32_t call, const struct pwi_task *task, const int64_t *rows);

/* Tells the history that groups no longer wait for the session, if the manager has declared its client dead. */
void pwi_book_note_dead(struct campaign *campaign, const struct pwi_cluster_client *client, uint32_t session);

/* campaign.c: reads rows with the checker, in the end, and records the call. `vector`: in the history. */
PAWL_MUST_USE pawl_status pwi_campaign_read(struct campaign *campaign, const char *name, uint32_t vector,
                                            const uint64_t *keys, size_t count);

/* crew.c */
PAWL_MUST_USE pawl_status pwi_campaign_crew_make_vectors(struct campaign *campaign);
PAWL_MUST_USE pawl_status pwi_campaign_crew_read(struct campaign *campaign); /* in the end */
PAWL_MUST_USE pawl_status pwi_campaign_crew_add(struct campaign *campaign);
bool pwi_campaign_crew_is_busy(const struct campaign *campaign);

/* paced.c */
PAWL_MUST_USE pawl_status pwi_paced_make_vectors(struct campaign *campaign);
PAWL_MUST_USE pawl_status pwi_paced_read(struct campaign *campaign); /* in the end */
PAWL_MUST_USE pawl_status pwi_paced_add(struct campaign *campaign);
bool pwi_paced_are_busy(const struct campaign *campaign);
void pwi_paced_fini(struct campaign *campaign);

/* relays.c */
PAWL_MUST_USE pawl_status pwi_campaign_relays_add(struct campaign *campaign);
void pwi_campaign_relays_count(struct campaign *campaign); /* the figures of those that are up */

/* workloads/workload.c */
PAWL_MUST_USE pawl_status pwi_workloads_begin(struct campaign *campaign);
bool pwi_workloads_are_busy(const struct campaign *campaign);
bool pwi_workloads_describe(const struct campaign *campaign, char *text, size_t size); /* false: none is busy */
void pwi_workloads_view(struct campaign *campaign, const struct pwi_view *view);       /* the view is durable */
PAWL_MUST_USE pawl_status pwi_workloads_check(struct campaign *campaign);
void pwi_workloads_fini(struct campaign *campaign);

/* errors.c: an ERROR that a server or manager logs fails the run, unless the faults of the campaign explain it. */
void pwi_errors_watch(struct campaign *campaign);
void pwi_errors_leave(void);
bool pwi_errors_are_expected(const struct campaign *campaign, const char *event, const char *format);

/* members.c: whether the present order of the operator may end so. */
bool pwi_move_may_end(const struct campaign *campaign, pawl_status status);

/* retired.c: the manager has decided something. Fails the run if a client was declared dead that no fault of the
 * campaign has kept from the manager. */
void pwi_retired_look(struct campaign *campaign);
bool pwi_retired_is_explained(const struct campaign *campaign, struct pwi_sim_node client, int64_t at);

/* kept.c: compares what full members of a chain keep at the same version of an arc. */
void pwi_kept_look(struct campaign *campaign);

/* keeper.c */
void pwi_keeper_init(struct campaign *campaign);
void pwi_keeper_fini(struct campaign *campaign);
pawl_status pwi_keeper_open(void *context, const struct pwi_sim_boot *boot, struct pwi_journal **journal_out);
void pwi_keeper_close(void *context, struct pwi_journal *journal);
void pwi_keeper_timer(void *context, uint64_t cookie);

void pwi_keeper_note(struct campaign *campaign, const void *record, size_t size); /* the record is durable */

/* leaders.c: the addresses of managers that take turns; NULL for 0. */
const char *pwi_leaders_addresses(uint32_t count);
PAWL_MUST_USE pawl_status pwi_leaders_open(struct campaign *campaign);
void pwi_leaders_close(struct campaign *campaign); /* after the simulation */
/* For `duration`, the leader, or every manager, does not reach the store. */
void pwi_leaders_cut_store(struct campaign *campaign, bool is_from_all, int64_t duration);

/* workloads/saver.c: the disk for checkpoints */
PAWL_MUST_USE pawl_status pwi_saver_disk_open(struct campaign *campaign);
void pwi_saver_disk_close(struct campaign *campaign); /* after the simulation */

/* The durable decisions of the manager; the view is NULL at first. */
static inline const struct pwi_ledger *pwi_campaign_ledger(const struct campaign *campaign) {
  return &campaign->keeper.ledger;
}

/* True for the answer of a manager whose journal has failed: its disk or store fails, or the disk is full. Another
 * manager follows, so the client asks again. */
static inline bool pwi_campaign_is_journal_failure(pawl_status status) {
  return status == PAWL_IO || status == PAWL_NO_SPACE;
}

/* watch.c */
void pwi_watch_begin(struct campaign *campaign);
void pwi_watch_fini(struct campaign *campaign);
/* checks all nodes, including the contents of chain members */
void pwi_watch_look(struct campaign *campaign);
void pwi_watch_view(struct campaign *campaign, const struct pwi_ledger *ledger,
                    struct pwi_view *view);                  /* the view is durable */
bool pwi_watch_all_have_it(const struct campaign *campaign); /* all nodes that are up have the newest view */
/* A message arrives at a client with this session of the history. If it has rows of a head that was deposed and has not
 * learned of it, the call that it answers is excused for these rows. */
void pwi_watch_heard(struct campaign *campaign, const struct pwi_client *client, uint32_t session,
                     const struct pwi_message *message);
/* The same for a relay, which passes the rows on to any session, and may keep them. */
void pwi_watch_relay_heard(struct campaign *campaign, const struct pwi_message *message);

/* rest.c: true if these arcs of servers are what the view says; otherwise writes what they lack. `may_fill`: members that
 * the view lists as filling may stay so. */
bool pwi_rest_is_whole(const struct pwi_view *view, const struct rested *rested, size_t count, bool may_fill,
                       char *text, size_t size);
/* All servers have what the last durable view says. */
bool pwi_rest_has_come(struct campaign *campaign);
void pwi_rest_fini(struct campaign *campaign);

/* havoc.c */
PAWL_MUST_USE pawl_status pwi_havoc_begin(struct campaign *campaign);
void pwi_havoc_fini(struct campaign *campaign);
void pwi_havoc_manager_stopped(
    struct campaign *campaign); /* the manager stopped because its journal failed: restart it */
bool pwi_havoc_is_over(const struct campaign *campaign); /* everything has healed, and all nodes are back */

/* Causes a fault now, for `duration`; 0 for kinds that have none. */
void pwi_havoc_do(struct campaign *campaign, enum pwi_sim_fault_kind kind, struct pwi_sim_node node,
                  struct pwi_sim_node other, int64_t duration);
void pwi_havoc_do_process(struct campaign *campaign, enum pwi_sim_fault_kind kind, size_t process, int64_t duration);

/* True while a fault may cost chains a member. */
bool pwi_havoc_is_troubled(struct campaign *campaign);

/* Draws a duration, short ones as likely as long ones. Every fault ends before the window does. */
int64_t pwi_havoc_duration(struct campaign *campaign, int64_t least, int64_t most);

/* Calls `call` again after a time with this mean, unless the window is over by then. */
void pwi_havoc_again(struct campaign *campaign, int64_t gap, void (*call)(void *context));

/* Kills a server process, which comes back as a new one. False if chains would not survive it now. */
bool pwi_havoc_kill(struct campaign *campaign, size_t process);

/* Begins an outage of servers that heals at this time: no other fault of servers begins before it is over. False if
 * chains are not whole now. Without replicas always true. */
bool pwi_havoc_claim(struct campaign *campaign, int64_t heals_at);

/* A fault of the manager begins, which lasts this long. */
void pwi_havoc_manager_is_unwell(struct campaign *campaign, int64_t duration);

/* outages.c */
void pwi_outages_begin(struct campaign *campaign);

/* budget.c: servers of the process are silenced until this time; INT64_MAX: they die. */
void pwi_budget_silence(struct campaign *campaign, size_t process, int64_t until);
/* Links of the process to others are cut until this time, also if its servers are started anew meanwhile. */
void pwi_budget_part(struct campaign *campaign, size_t process, int64_t until);
/* Links of the process to another, `other`, are cut until this time. PWI_CLUSTER_PROCESSES: its links to the manager, or to
 * a client, which costs no copy. */
void pwi_budget_cut(struct campaign *campaign, size_t process, size_t other, int64_t until);
/* A fault of the manager begins, which is well again at this time. */
void pwi_budget_manager_is_unwell(struct campaign *campaign, int64_t well_at);
void pwi_budget_slow(struct campaign *campaign, struct pwi_sim_node node, double factor, int64_t until);
/* Fails if a chain has lost copies that no fault explains. */
void pwi_budget_check(struct campaign *campaign, const struct pwi_view *before, const struct pwi_view *view);

/* members.c */
PAWL_MUST_USE pawl_status pwi_members_begin(struct campaign *campaign);
PAWL_MUST_USE pawl_status pwi_operator_add(struct campaign *campaign);

#endif
