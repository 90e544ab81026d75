/* What the files of a campaign share.
 *
 *   campaign.c  from beginning to end
 *   draw.c      the campaign of a seed
 *   worker.c    who push and pull
 *   book.c      what must be there in the end
 *   crew.c      who meet at barriers
 *   paced.c     whose iterations follow a policy
 *   havoc.c    what goes wrong, decided as it goes; servers never more than chains can bear
 *   members.c   servers that join and leave, arcs that are moved
 *   keeper.c    the manager's journal
 *   watch.c     what must hold all the time
 *   runner.c    many campaigns
 */
#ifndef PWI_SIM_CAMPAIGN_INSIDE_H
#define PWI_SIM_CAMPAIGN_INSIDE_H

#include "manager/ledger/ledger.h"
#include "sim/campaign/campaign.h"
#include "sim/cluster.h"
#include "sim/faults.h"
#include "sync/pace.h"

#define MS PWI_SIM_MILLISECOND
#define WORKERS_MAX 4
#define CREW_MAX 3
#define PACED_MAX 3
#define VECTORS 5
#define KEYS 60 /* of each vector: the universe that workers draw from */
#define WIDTH_MAX 16
#define UNDER_WAY 6 /* calls at a time */

/* LATEST is assigned, to the others is added. FILTERED is there only in campaigns with filters. In campaigns with functions the
 * first three are added to by one that keeps state. */
enum { DENSE, SPARSE, MIXED, LATEST, FILTERED };

/* Streams of the seed, for pwi_sim_stream. */
enum { STREAM_KEEPER = 78, STREAM_HAVOC };

struct campaign;

/* --- workers -------------------------------------------------------------------------------------------------------- */

/* One call under way. */
struct deed {
  struct pwi_task task;
  struct worker *worker;
  bool is_busy;
  enum pwi_request_kind kind;
  size_t vector;
  uint64_t serial; /* of the worker's calls */
  int64_t begun;
  size_t count;
  uint32_t which[KEYS]; /* of the universe */
  uint64_t keys[KEYS];
  int64_t values[KEYS * WIDTH_MAX];
  int64_t out[KEYS * WIDTH_MAX];
  void *buffer;        /* memory that request handlers read in place, in which the values lie; NULL: none */
  uint32_t seen[KEYS]; /* pull: how many of the own pushes it must see */
};

/* What a worker has made of a key that is its own, after each push. */
struct history {
  int64_t (*rows)[WIDTH_MAX]; /* rows[i]: after i pushes */
  size_t count, room;
};

struct worker {
  struct campaign *campaign;
  struct pwi_cluster_client client;
  uint32_t index;
  uint32_t calls_left;
  uint64_t serial;
  struct pwi_flow *flows[VECTORS];
  struct pwi_keylist *lists[VECTORS];
  uint32_t list_which[VECTORS][KEYS];
  size_t list_count[VECTORS];
  struct deed deeds[UNDER_WAY];
  struct history own[VECTORS][KEYS];
  bool is_checking; /* until it is killed for the first time */
};

/* --- the book ------------------------------------------------------------------------------------------------------- */

#define MAYBE_MAX 2048
#define LATEST_MAX 8

/* A push that may have taken effect or not: its worker was killed, or told no details. */
struct maybe {
  size_t vector;
  uint32_t key;
  int64_t row[WIDTH_MAX];
};

/* An assignment that was acknowledged and may be what is there. */
struct latest {
  int64_t row[WIDTH_MAX];
  uint32_t worker;
  uint64_t serial;
  int64_t begun, ended;
};

struct book {
  uint32_t widths[VECTORS];
  uint64_t universe[VECTORS][KEYS];
  int64_t sums[VECTORS][KEYS][WIDTH_MAX]; /* acknowledged */
  struct latest latest[KEYS][LATEST_MAX];
  size_t latest_count[KEYS];
  struct maybe maybes[MAYBE_MAX];
  size_t maybe_count;
};

/* --- the crew ------------------------------------------------------------------------------------------------------- */

struct member {
  struct campaign *campaign;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_asking asking;
  struct pwi_task enter, tick_task, await_task, push_task, pull_task;
  int pending; /* of push, tick and await */
  struct pwi_flow *flow, *sums;
  uint64_t began, tick; /* where it entered, and what it has reached */
  bool is_in, is_over;
  bool is_current; /* it had the newest view when it began to read */
  int64_t one, seen;
};

/* --- workers whose iterations follow a policy ------------------------------------------------------------------------ */

#define TRACED_MAX 16 /* iterations, and ticks: more than are made */
#define STEPS_MAX 16  /* iterations under way */

/* What has become of an iteration. */
struct traced {
  uint64_t number; /* of its push */
  uint32_t pending;
  bool has_ended;
  int64_t finished_at;
};

/* The calls of an iteration that is under way. */
struct step {
  struct paced *paced;
  bool is_busy, is_current;
  uint64_t iteration, group_needed;
  int pending;
  int64_t one, seen[PACED_MAX];
  struct pwi_task push, pull;
  struct pwi_clock_list clocks;
};

struct ticking {
  struct pwi_task task;
  struct paced *paced;
  uint64_t tick;
};

struct listening {
  struct pwi_task task;
  struct paced *paced;
  uint64_t tick;
  bool is_busy;
};

struct paced {
  struct campaign *campaign;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_asking asking;
  struct pwi_task enter;
  struct pwi_flow *group, *rows;
  struct pwi_pace pace;
  bool has_pace, is_in, is_over;
  bool wants, has_dallied; /* waits for its next iteration */
  uint64_t began, ticked;  /* the iteration before its first; the tick that it has called last */
  int64_t entered_at, wanted_at, heard_at;
  uint64_t heard_for; /* the tick that it has heard of */
  int ticks_pending;
  struct traced trace[TRACED_MAX];
  int64_t acknowledged_at[TRACED_MAX]; /* by tick */
  struct step steps[STEPS_MAX];
  struct ticking ticking[TRACED_MAX];
  struct listening listening[STEPS_MAX];
};

/* --- havoc ----------------------------------------------------------------------------------------------------- */

#define TROUBLES_MAX 8
#define TROUBLE_NODES 8
#define FAULTS_MAX 1024

/* Something that may cost chains one full member: until it is certain that it has not, or until they have another. */
struct trouble {
  bool is_death;
  int64_t heals_at;
  uint64_t nodes[TROUBLE_NODES]; /* ids of those that it may cost; the member is one of them */
  size_t node_count;
};

struct havoc {
  struct pwi_random random;
  int64_t end;
  struct pwi_sim_faults blind, kills;     /* drawn before */
  struct pwi_sim_fault items[FAULTS_MAX]; /* decided as it goes */
  size_t item_count;
  struct trouble troubles[TROUBLES_MAX];
  size_t trouble_count;
  bool is_started[PWI_CLUSTER_PROCESSES];
  size_t leaving; /* a process; PWI_CLUSTER_PROCESSES: none is */
  int64_t manager_well_at;
  struct pwi_cluster_client client; /* the operator, who moves arcs about */
  struct pwi_asking move;
  bool is_moving;
};

/* True if a fault that may cost one of `nodes` leaves every chain with a full member, in whatever view comes next: fewer
 * than `replicas` troubles are open, and no chain lacks more members than those account for. */
bool pwi_havoc_may_trouble(const struct pwi_view *view, uint32_t replicas, const struct trouble *troubles,
                           size_t trouble_count, const uint64_t *nodes, size_t node_count);

/* --- the journal ---------------------------------------------------------------------------------------------------- */

struct kept;

struct keeper {
  struct pwi_journal journal; /* as the manager sees it */
  struct campaign *campaign;
  struct pwi_random random;
  struct pwi_journal *file;    /* the one on disk, while the manager is up */
  int64_t clock_offset;        /* of the manager's clock */
  struct kept *due, **due_end; /* records that the manager takes for safe, and will be when its disk is done */
  bool is_replacing;
  struct pwi_net *net;             /* the manager's */
  struct kept *first, **end;       /* the store */
  struct kept *pending;            /* on its way there */
  struct pwi_ledger ledger;        /* all that is safe */
  int64_t slow_until, fails_until; /* the store */
};

/* --- the watch ------------------------------------------------------------------------------------------------------ */

#define ARCS_MAX 1024
#define COMPARED_MAX 512

/* What a full member has of an arc. */
struct stand {
  const struct pwi_server *server;
  struct pwi_server_arc arc;
};

/* The view that a node had when it was last looked at. */
struct looked {
  const struct pwi_view *view;
  uint64_t epoch;
};

#define NODES_MAX 64 /* of the simulation */

struct watch {
  uint64_t *hashes; /* of views, by epoch */
  size_t epochs, room;
  struct pwi_view *last; /* the one of the highest epoch */
  struct stand stands[ARCS_MAX];
  uint64_t compared[COMPARED_MAX]; /* hashes of what was compared lately */
  unsigned looks;
  struct looked looked[NODES_MAX];
  unsigned char *bytes; /* a view, encoded */
  size_t bytes_room;
};

/* --- all of it ------------------------------------------------------------------------------------------------------ */

struct campaign {
  struct pwi_campaign_config config;
  struct pwi_cluster cluster;
  struct pwi_campaign_figures figures;
  struct keeper keeper;
  struct watch watch;
  struct havoc havoc;
  struct book book;
  struct worker workers[WORKERS_MAX];
  struct member crew[CREW_MAX];
  struct paced paced[PACED_MAX];
  struct pwi_cluster_client checker;
  struct pwi_function_set functions;
  bool is_quiet; /* nothing new goes wrong, and nobody moves arcs */
};

static inline size_t pwi_campaign_vector_count(const struct campaign *campaign) {
  return campaign->config.filters ? VECTORS : FILTERED;
}

/* server_function.c: the function that campaigns have. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_campaign_functions(struct campaign *campaign);

/* A rule is broken, or there is no memory: the run ends. */
#define CAMPAIGN_FAIL(campaign, ...) pwi_sim_fail((campaign)->cluster.sim, PAWL_CORRUPT, __VA_ARGS__)

static inline int64_t pwi_campaign_now(const struct campaign *campaign) { return pwi_sim_now(campaign->cluster.sim); }

/* Call `call` after `delay`. */
void pwi_campaign_later(struct campaign *campaign, int64_t delay, void (*call)(void *context));

/* campaign.c: all who work, and their vectors, in a cluster that is open; and in the end, whether the book is right. */
PAWL_MUST_USE pawl_status pwi_campaign_work(struct campaign *campaign);
PAWL_MUST_USE pawl_status pwi_campaign_compare(struct campaign *campaign);

/* worker.c */
extern const char *const pwi_campaign_vectors[VECTORS]; /* names */
PAWL_MUST_USE pawl_status pwi_workers_add(struct campaign *campaign);
bool pwi_workers_are_busy(const struct campaign *campaign);
void pwi_workers_fini(struct campaign *campaign);

/* book.c */
void pwi_book_init(struct campaign *campaign);
struct pawl_vector_options pwi_book_options(const struct campaign *campaign, size_t vector);
void pwi_book_done(const struct deed *deed); /* a push was answered */
void pwi_book_lost(const struct deed *deed); /* its worker was killed before it was */
void pwi_book_compare(struct campaign *campaign, size_t vector, const int64_t *values);

/* crew.c */
PAWL_MUST_USE pawl_status pwi_crew_make_vectors(struct campaign *campaign);
PAWL_MUST_USE pawl_status pwi_crew_add(struct campaign *campaign);
bool pwi_crew_is_busy(const struct campaign *campaign);

/* paced.c */
PAWL_MUST_USE pawl_status pwi_paced_make_vectors(struct campaign *campaign);
PAWL_MUST_USE pawl_status pwi_paced_add(struct campaign *campaign);
bool pwi_paced_are_busy(const struct campaign *campaign);
void pwi_paced_fini(struct campaign *campaign);

/* keeper.c */
void pwi_keeper_init(struct campaign *campaign);
void pwi_keeper_fini(struct campaign *campaign);
pawl_status pwi_keeper_open(void *context, const struct pwi_sim_boot *boot, struct pwi_journal **journal_out);
void pwi_keeper_close(void *context, struct pwi_journal *journal);
void pwi_keeper_timer(void *context, uint64_t cookie);

/* What the manager has decided, safely; its view is NULL at first. */
static inline const struct pwi_ledger *pwi_campaign_ledger(const struct campaign *campaign) {
  return &campaign->keeper.ledger;
}

/* watch.c */
void pwi_watch_begin(struct campaign *campaign);
void pwi_watch_fini(struct campaign *campaign);
void pwi_watch_look(struct campaign *campaign); /* at everybody, also at what members contain */
void pwi_watch_view(struct campaign *campaign, const struct pwi_ledger *ledger, struct pwi_view *view); /* it is safe */
bool pwi_watch_all_have_it(const struct campaign *campaign); /* everybody who is up has the newest view */

/* havoc.c */
PAWL_MUST_USE pawl_status pwi_havoc_begin(struct campaign *campaign);
void pwi_havoc_fini(struct campaign *campaign);
void pwi_havoc_manager_stopped(struct campaign *campaign); /* its journal failed: somebody starts it again */
bool pwi_havoc_is_over(const struct campaign *campaign);   /* everything has healed, everybody is back */

/* A fault happens now and lasts so long; with a time to live of 0 for kinds that do not last. */
void pwi_havoc_do(struct campaign *campaign, enum pwi_sim_fault_kind kind, struct pwi_sim_node node,
                  struct pwi_sim_node other, int64_t duration);
void pwi_havoc_do_process(struct campaign *campaign, enum pwi_sim_fault_kind kind, size_t process, int64_t duration);

/* Short ones are as likely as long ones; all end before the window does. */
int64_t pwi_havoc_duration(struct campaign *campaign, int64_t least, int64_t most);

/* Call it again after a time with this mean, unless the window is over by then. */
void pwi_havoc_again(struct campaign *campaign, int64_t gap, void (*call)(void *context));

/* members.c */
PAWL_MUST_USE pawl_status pwi_members_begin(struct campaign *campaign);
PAWL_MUST_USE pawl_status pwi_operator_add(struct campaign *campaign);

#endif
