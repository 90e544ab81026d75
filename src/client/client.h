/* The client: joins the cluster, cuts calls by arcs, and carries out every push exactly once
 * (docs/protocol.md, "Life of a push").
 *
 * It is the actor behind a session of the public API. The caller hands it tasks in the caller's memory. The
 * client calls the task's `finished` once, from inside a callback of the net or from inside the call that
 * started the task.
 *
 * NUMBERS. Every push has a task number, and the numbers of a client only rise. A *flow* is one vector at one
 * destination: the servers, or one node. For each flow the client keeps a range clock of the numbers that it
 * has sent. A part of a push names as its predecessor the number that the clock has on the part's claim. If
 * the clock has several numbers there, the push is cut into as many parts. A part keeps its number,
 * predecessor and claim until it is answered, however often it is sent. If a view divides its claim between
 * two heads, the part is cut in two, and both keep the number and the predecessor.
 *
 * RESENDING. When a link is lost, the client sends its unanswered parts again, in the order of numbers. A
 * part that is answered GAP waits until all earlier parts that overlap it are answered. If there are none,
 * the part is sent once more. A second GAP means that an acknowledged push is lost: PAWL_CLUSTER_LOST. A part
 * that is answered NOT_HERE waits for a newer view, or for a moment. A new part waits behind earlier parts
 * that overlap it and are held back.
 *
 * RETIREMENT (docs/protocol.md). A client that was declared dead joins again as a new sender. It asks the
 * servers which of its unanswered parts took effect, sends the others under its new id, and tells the manager
 * that the old id may be forgotten. If a server has already forgotten the old id, the task fails with
 * PAWL_OUTCOME_UNKNOWN. A client with `stays_dead` does not join again: all tasks under way and all later
 * calls fail with PAWL_NODE_GONE, and the client closes all links. Its unanswered pushes may have taken
 * effect before it was retired; they cannot afterwards.
 *
 * PULLS carry the number that the flow's clock has on their claim. A server that has not applied this number
 * yet answers GAP. So a session reads its own writes.
 *
 * Steady state: push and pull allocate nothing. Threads: the client belongs to the thread of its net. A
 * caller with several threads protects it with a lock (api/).
 */
#ifndef PWI_CLIENT_CLIENT_H
#define PWI_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/filter.h>
#include <pawl/range.h>
#include <pawl/row_function.h>
#include <pawl/status.h>

#include "base/cursor.h"
#include "base/log.h"
#include "base/random.h"
#include "net/net.h"
#include "ring/view.h"
#include "protocol/call.h"
#include "client/calls/callee.h"
#include "protocol/catalogue.h"
#include "protocol/protocol.h"
#include "protocol/membership.h"

struct pwi_client;
struct pwi_relaying;
struct pwi_flow;
struct pwi_keylist;

struct pwi_client_config {
  /* Created with pwi_client_actor; the caller listens first if nodes are to connect to it */
  struct pwi_net *net;
  struct pwi_random *random; /* borrowed */
  const struct pwi_log *log; /* borrowed */
  const char *manager;       /* one address, or several with commas (protocol/manager_list.h); copied */
  const char *host;          /* label of this machine, copied; NULL or "": none */
  const char *rack;          /* label of its rack, copied; NULL or "": none */
  const char *job;           /* name of the job, copied; "" means "default" */
  bool reader;               /* the client only pulls */
  bool stays_dead;           /* do not join again after having been declared dead, see RETIREMENT */
  uint8_t priority;          /* of its work at servers, PWI_PRIORITY_…; 0: the usual one */
  uint64_t memory_max;       /* bytes for vectors opened locally */

  /* PWI_SEAL_SECRET bytes, copied, with which the client proves its identity (protocol/proof.h). NULL: drawn
   * from `random`, for simulations. */
  const uint8_t *identity;

  /* Called after each change of the membership, and when the client has ended for good. It may read the
   * client's state, and must not start anything. NULL: not called. */
  void (*membership_changed)(void *context);
  void *context;

  const struct pwi_relaying *relaying; /* the relay that it serves, borrowed; NULL: none (client/relaying.h) */
};

/* Creates a client, which begins to join. PAWL_INVALID (malformed address; a job, host or rack that the
 * membership does not accept), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_create(const struct pwi_client_config *config, struct pwi_client **client_out);

/* Call it after the net is destroyed or will not be polled again. Unfinished tasks never finish. NULL is
 * allowed. */
void pwi_client_destroy(struct pwi_client *client);

extern const struct pwi_actor pwi_client_actor;

/* --- state ---------------------------------------------------------------------------------------------- */

struct pwi_client_state {
  bool joined; /* once true it stays true; calls may be made before */

  /* Why there is no link to the manager; PAWL_OK if there is one. PAWL_FORBIDDEN, PAWL_LINK_KEY,
   * PAWL_LINK_VERSION and PAWL_CLUSTER_OTHER are permanent until a user changes the configuration. */
  pawl_status trouble;

  uint64_t sender;  /* the client's present id; 0 for readers and before joining */
  uint64_t cluster; /* id of the cluster */
  bool may_write;
  const char *space;    /* the only space that the client may use; "": all */
  uint64_t outstanding; /* unfinished tasks */
  uint64_t settled;     /* every task up to this number has been answered */
  /* the client ended for good: it stays dead, or its key was revoked (PAWL_LINK_REVOKED) */
  bool is_dead;
};

void pwi_client_state(const struct pwi_client *client, struct pwi_client_state *state_out);

/* The newest view, catalogue and membership. Valid until the next callback of the net runs. */
const struct pwi_view *pwi_client_view(const struct pwi_client *client); /* NULL: no view yet */
const struct pwi_catalogue *pwi_client_catalogue(const struct pwi_client *client);
const struct pwi_membership *pwi_client_membership(const struct pwi_client *client);

/* --- tasks ---------------------------------------------------------------------------------------------- */

#define PWI_TASK_FAILURES 16

struct pwi_task_failure {
  struct pawl_range range; /* of stored keys */
  pawl_status status;
};

/* In this range all pushes of a sender up to task `time` have taken effect. For a group, `time` is a tick. */
struct pwi_clock_seen {
  struct pawl_range range; /* of stored keys */
  struct pwi_sender sender;
  uint64_t time;
};

/* A struct of zeros is empty. */
struct pwi_clock_list {
  struct pwi_clock_seen *items;
  size_t count, room;
};

void pwi_clock_list_fini(struct pwi_clock_list *list); /* leaves an empty list */

/* A task in the caller's memory. Zero it and set `finished` and, if wanted, `clocks`. It must not move until
 * `finished` is called. */
struct pwi_task {
  void (*finished)(struct pwi_task *task); /* the task belongs to the caller again, who may start it anew */
  /* PULL, AWAIT: receives the clocks of the claim; cleared at the start. NULL: none */
  struct pwi_clock_list *clocks;

  /* Valid once finished. */
  pawl_status status; /* PAWL_OK, or the status of the first failure */
  struct pwi_task_failure failures[PWI_TASK_FAILURES];
  uint32_t failure_count; /* number of failures; may exceed the room in `failures` */
  uint64_t found;         /* ENTER, AWAIT: a tick; SCAN: where the next scan begins */
  uint64_t rows;          /* SCAN: number of rows found */
  uint64_t number;        /* task number of a push; 0 for other tasks */
  double folded;          /* result of a fold; for a Euclidean norm the sum of squares */
  uint32_t result_count;  /* results of a row function; 0 if the task failed */
  double results[PAWL_ROW_RESULTS_MAX];

  /* Private. */
  uint32_t parts;                 /* unanswered parts */
  bool is_starting, is_numbered;  /* parts are still being made; the task has a number */
  struct pwi_mixing *mixing;      /* reordered rows of a mixed vector; NULL: none */
  struct pwi_filtered *filtered;  /* the rows that filters left over; NULL: no filters ran */
  struct pwi_folding *folding;    /* sums of the parts of a fold; NULL: none */
  struct pwi_row_run *row_run;    /* a row function and its results; NULL: none */
  struct pwi_task *next, *before; /* list of unfinished numbered tasks, by rising number */
};

/* --- flows ---------------------------------------------------------------------------------------------- */

/* Finds or makes the flow of a vector or group to the servers (node 0) or to a node. A flow lives as long as
 * the client. PAWL_NOT_FOUND (no such entry in the catalogue), PAWL_UNSUPPORTED or PAWL_INVALID (unknown
 * filters, as pawl_filters_create), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_flow(struct pwi_client *client, struct pwi_vector_id id, uint64_t node,
                                          struct pwi_flow **flow_out);
const struct pwi_entry *pwi_flow_entry(const struct pwi_flow *flow); /* lives as long as the flow */

/* --- filters (docs/filters.md) -------------------------------------------------------------------------- */

/* Replaces the filter chain of a flow, for both directions. A flow begins with the chain of its entry.
 *
 * Lossy filters run once for each push, when it starts, in the order of calls. Their result is kept with the
 * task; it is cut, sent and resent. Encodings run whenever a message is built. If a push fails, the residuals
 * that it carried are lost.
 *
 * `options` may be NULL; only seed and rule are used. Errors as pawl_filters_create, and
 *   PAWL_INVALID    the flow holds residuals; flush them first
 *   PAWL_TOO_LARGE  the filters for pulls do not fit into a request */
PAWL_MUST_USE pawl_status pwi_client_filter(struct pwi_client *client, struct pwi_flow *flow, const char *text,
                                            const struct pawl_filters_options *options, char *problem,
                                            size_t problem_size);

/* The filter chain in use, for its counters; NULL: none. `direction` is PAWL_ON_PUSH or PAWL_ON_PULL. Lossy
 * filters for pulls run on the server and are not counted here. Valid until the next pwi_client_filter. */
const struct pawl_filters *pwi_flow_filters(const struct pwi_flow *flow, unsigned direction);

/* The rows of a push after its filters, by the caller's keys; NULL if no filter ran. Valid until the task is
 * finished. */
const struct pawl_rows *pwi_task_rows(const struct pwi_task *task);

/* Messages sent and received for a flow so far, with their heads. */
struct pwi_flow_traffic {
  uint64_t messages_out, bytes_out, messages_in, bytes_in;
};

struct pwi_flow_traffic pwi_flow_traffic(const struct pwi_flow *flow);

/* --- prepared key lists --------------------------------------------------------------------------------- */

/* Checks and copies a list that several calls will use. The caller has one reference. PAWL_UNSORTED,
 * PAWL_OUT_OF_SPAN, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_keylist_create(struct pwi_client *client, const struct pwi_entry *entry,
                                             const uint64_t *keys, size_t count, struct pwi_keylist **list_out);
struct pwi_keylist *pwi_keylist_retain(struct pwi_keylist *list);
void pwi_keylist_release(struct pwi_keylist *list); /* NULL is allowed */
size_t pwi_keylist_count(const struct pwi_keylist *list);

/* --- calls ---------------------------------------------------------------------------------------------- */

/* As struct pawl_where, for one flow. Keys are raw keys, as the caller knows them. */
struct pwi_where {
  const uint64_t *keys;
  size_t count;
  struct pwi_keylist *list;
  struct pawl_range range; /* {0, 0} with a list: no limit; alone: the whole span */
  /* PUSH, PUSHPULL: id of a group whose pushes of `tick` are applied as one; 0: none */
  uint64_t aggregate;
  uint64_t tick; /* tick of the aggregate, or of the reader */
  /* PULL: id of a group of which this client is a member; it has finished `tick`. The rows may lack what the members
   * push after tick - `staleness` (docs/relays.md#pulls). 0: none */
  uint64_t group, staleness;
  /* PUSH, PUSHPULL: rows as wide as a pushed one, which all rows share; each row of `in` then has one value for each of
   * them (<pawl/function.h>, OPERANDS). NULL: none */
  const void *operand;
  size_t operand_rows;
  const void *weights; /* PUSH: the stored rows as the caller knows them, for filters; may be NULL */
  /* PUSH: drop no row and send all residuals. Without keys and range: the residuals alone */
  bool flush;
};

/* Starts a task. `kind` is PUSH, PULL, PUSHPULL, or RESTORE: a push of rows that are assigned, by stored
 * keys. `in` is for all but PULL, `out` for PULL and PUSHPULL. All memory that the call names must remain
 * valid until the task is finished. An error means that the task did not start: PAWL_UNSORTED,
 * PAWL_OUT_OF_SPAN, PAWL_UNSUPPORTED (a range of a mixed vector; an operand through lossy filters),
 * PAWL_FORBIDDEN, PAWL_INVALID, PAWL_TOO_LARGE, PAWL_NO_MEMORY. After PAWL_OK, `finished` is called. */
PAWL_MUST_USE pawl_status pwi_client_start(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                           enum pwi_request_kind kind, const struct pwi_where *where, const void *in,
                                           void *out);

/* Checks a call that will be started later. Errors as pwi_client_start, which checks again. */
PAWL_MUST_USE pawl_status pwi_client_check(const struct pwi_client *client, const struct pwi_flow *flow,
                                           enum pwi_request_kind kind, const struct pwi_where *where);

/* Reads the keys that are present in `range`, with their rows: at most `room`, and none beyond the arc in
 * which the range begins. task->rows is their number, and the next scan begins at task->found. Keys are raw
 * keys. */
PAWL_MUST_USE pawl_status pwi_client_scan(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                          struct pawl_range range, size_t room, uint64_t *keys, void *values);

/* Runs an operation of linear algebra on the servers. `other` is the second vector: x of axpy and copy, y of
 * dot; NULL for operations on one vector. A range that ends at PAWL_KEY_END ends with the span, so PAWL_ALL is
 * the whole span; an empty range names nothing. Changes are numbered like pushes: each is applied once, in the
 * order of calls. It reads the other vector after all earlier and before all later pushes of this client.
 *   PAWL_MISMATCH     the vectors differ in type, width, size, placement or layout
 *   PAWL_OUT_OF_SPAN  the range is not in the span
 *   PAWL_UNSUPPORTED  a part of the span of a mixed vector; filling a sparse vector
 *   PAWL_INVALID      the scalar is not valid for the type
 *   and as pwi_client_start */
PAWL_MUST_USE pawl_status pwi_client_linear(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                            struct pwi_flow *other, enum pwi_linear kind, double scalar,
                                            struct pawl_range range);

/* Runs a row function on the servers, a change like those above: its name and parameters, at most PAWL_RULE_MAX
 * characters, which are copied. `other` may be NULL. Errors as pwi_client_linear; PAWL_INVALID for an empty or too
 * long text. */
PAWL_MUST_USE pawl_status pwi_client_run(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                         struct pwi_flow *other, const char *function, struct pawl_range range);

/* Folds one column of the stored rows, counted from 0. PAWL_INVALID if there is no such column. */
PAWL_MUST_USE pawl_status pwi_client_fold_column(struct pwi_client *client, struct pwi_task *task,
                                                 struct pwi_flow *flow, enum pwi_linear kind, uint32_t column,
                                                 struct pawl_range range);

/* Groups: `flow` is the flow of the group's entry. Call enter after the manager has added this client to the
 * group. A tick is sent once all earlier pushes of this client are answered. An await finishes when all
 * members have reached the tick. Call exit before asking the manager to remove this client: it then does not
 * rejoin the group after a renewal. */
PAWL_MUST_USE pawl_status pwi_client_enter(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow);
void pwi_client_exit(struct pwi_flow *flow);

/* Peer groups have no ticks: call stay instead of enter, so that the client rejoins after a renewal. */
void pwi_client_stay(struct pwi_flow *flow);
PAWL_MUST_USE pawl_status pwi_client_tick(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                          uint64_t tick);
PAWL_MUST_USE pawl_status pwi_client_await(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                           uint64_t tick);

/* --- peer groups (docs/peers.md) ------------------------------------------------------------------------ */

/* The peers of this client, for channels; they live as long as the client. PAWL_NO_MEMORY; PAWL_NODE_GONE or
 * PAWL_LINK_REVOKED (the client is dead). */
struct pwi_peers;
PAWL_MUST_USE pawl_status pwi_client_peers(struct pwi_client *client, struct pwi_peers **peers_out);

/* --- asking the manager --------------------------------------------------------------------------------- */

/* A question to the manager, in the caller's memory until `replied` is called. If the link is lost, the
 * client asks again; the manager carries the ask out at most once and repeats its reply (docs/protocol.md,
 * "Asks"). PAWL_OUTCOME_UNKNOWN: this client was declared dead, and the manager has forgotten its old id.
 * `replied` is called once the client's view, membership and catalogue are as new as the manager's were when
 * it replied. */
struct pwi_asking {
  void (*replied)(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size);

  /* Private. */
  enum pwi_ask what;
  uint64_t number;
  unsigned char *payload;
  size_t size;
  uint64_t asker, secret; /* the client's id and secret when the ask was first sent; 0: not sent yet */
  bool is_replied;        /* the reply is here, and waits for news */
  pawl_status status;
  unsigned char *reply;
  size_t reply_size;
  uint32_t view, membership, catalogue; /* numbers that the client must have before `replied` is called */
  struct pwi_asking *next;
};

/* Asks the manager. The payload is copied. PAWL_NO_MEMORY; PAWL_NODE_GONE or PAWL_LINK_REVOKED (the client is
 * dead). */
PAWL_MUST_USE pawl_status pwi_client_ask(struct pwi_client *client, struct pwi_asking *asking, enum pwi_ask what,
                                         const void *payload, size_t size);

/* Stops waiting: `replied` is not called. The manager may have carried the ask out. */
void pwi_client_unask(struct pwi_client *client, struct pwi_asking *asking);

/* --- calls of named functions (docs/calls.md) ----------------------------------------------------------- */

/* A call to one node. */
struct pwi_call_leg {
  uint64_t node;
  pawl_status status;          /* PAWL_OK: `back` has the results; otherwise why there are none */
  struct pwi_call_return back; /* freed by pwi_calling_fini */

  /* Private. */
  struct pwi_calling *calling;
  struct pwi_call_leg *next, *before; /* in its peer's list */
  int state;                          /* enum leg_state */
  uint64_t number;                    /* 0: never sent */
  uint32_t tries;
  int64_t retry_at;
};

/* A call of named functions, in the caller's memory. Zero it and set `ended`. Free it with pwi_calling_fini
 * after `ended` was called. */
struct pwi_calling {
  void (*ended)(struct pwi_calling *calling);

  /* Valid once ended. */
  /* PAWL_OK, the first failure of a leg or of a call in it, or PAWL_NOT_FOUND: there are no legs */
  pawl_status status;
  struct pwi_call_leg *legs;
  uint32_t leg_count;

  /* Private. */
  uint64_t node;
  char group[PAWL_NAME_MAX + 1];
  struct pwi_call_graph *graph;
  uint32_t graph_count;
  struct pwi_writer payload;
  uint32_t left;  /* legs that have not ended */
  uint64_t round; /* of asking the manager for the members; 0: no need to ask */
  struct pwi_calling *next, *before;
};

/* Calls a node or, if `node` is 0, all members of a group, by the name of the group's entry. On success the
 * client takes over the graph and calls `ended`, possibly before this function returns. On an error the graph
 * still belongs to the caller: PAWL_FORBIDDEN (a reader), PAWL_NO_MEMORY. Statuses of legs: PAWL_NODE_GONE,
 * PAWL_UNSUPPORTED (the node does not listen), PAWL_OUTCOME_UNKNOWN, PAWL_NODE_STOPPED, PAWL_INVALID,
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_call(struct pwi_client *client, struct pwi_calling *calling, uint64_t node,
                                          const char *group, struct pwi_call_graph *graph);

/* Call it only after the calling has ended or the client was destroyed. */
void pwi_calling_fini(struct pwi_calling *calling);

/* Sets the function that runs incoming calls (client/calls/callee.h). It reports results to `*callee_out`, which
 * lives as long as the client. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_offer(struct pwi_client *client,
                                           void (*run)(void *context, struct pwi_running *running), void *context,
                                           struct pwi_callee **callee_out);

/* --- triggers ------------------------------------------------------------------------------------------- */

/* A push that waits for a group, in the caller's memory until its task has finished. */
struct pwi_trigger {
  struct pwi_task await;
  struct pwi_client *client;
  struct pwi_task *task;
  struct pwi_flow *flow;
  struct pwi_where where;
  const void *in;
  struct pwi_flow *group;
  uint64_t tick;
};

/* Starts a push when all members of a group have reached a tick; the push gets its number then. Arguments and
 * errors as pwi_client_start. The status of the task may also be an error of pwi_client_start or of the
 * await. */
PAWL_MUST_USE pawl_status pwi_client_trigger(struct pwi_client *client, struct pwi_trigger *trigger,
                                             struct pwi_task *task, struct pwi_flow *group, uint64_t tick,
                                             struct pwi_flow *flow, const struct pwi_where *where, const void *in);

/* --- memory that servers on this machine read in place -------------------------------------------------- */

/* Opens a region of the net. Rows pushed from it are neither copied nor checksummed. PAWL_NO_MEMORY,
 * PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_client_buffer_open(struct pwi_client *client, size_t size, void **memory_out);
void pwi_client_buffer_close(struct pwi_client *client, void *memory); /* NULL is allowed */

/* --- local vectors -------------------------------------------------------------------------------------- */

/* Serves a vector locally, beginning with zeros. Other clients push and pull by naming this client's sender
 * id. PAWL_EXISTS, PAWL_NOT_FOUND, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_open_local(struct pwi_client *client, struct pwi_vector_id id);
void pwi_client_close_local(struct pwi_client *client, struct pwi_vector_id id);

/* --- leaving -------------------------------------------------------------------------------------------- */

/* Leaves the cluster: once nothing is outstanding, the client tells the manager. pwi_client_has_left is true
 * when the manager has confirmed, or when the client is dead. */
void pwi_client_leave(struct pwi_client *client);
bool pwi_client_has_left(const struct pwi_client *client);

/* Closes all links gracefully; pwi_client_links counts those that are not down yet. */
void pwi_client_hang_up(struct pwi_client *client);
size_t pwi_client_links(const struct pwi_client *client);

struct pwi_client_figures {
  uint64_t parts_sent, parts_resent, gaps, wanted, not_here, retirements, reconnects;
  uint64_t holds; /* times that a server has begun to hold the client's requests */
  uint64_t bytes_pushed, bytes_pulled;
  uint64_t relayed, relays_refused; /* pushes sent through relays; those that had to go to the server instead */
  uint64_t pulls_relayed, pulls_refused;
};

void pwi_client_figures(const struct pwi_client *client, struct pwi_client_figures *figures_out);

#endif
