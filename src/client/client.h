/* The client: joins the cluster, cuts calls by arcs, and sees every push through, exactly once (design, section 7).
 *
 * It is the actor behind a session of the public API. Calls hand it a task whose memory is the caller's; the task's
 * `finished` is called once, from inside a callback of the net, or from inside the call itself.
 *
 * NUMBERS. Every push has a task number; the numbers of a client only rise. A *flow* is one vector at one destination
 * (the servers, or one node). Per flow the client keeps a range clock of what it has sent; a part of a push names as its
 * predecessor the number that the clock has on its claim, and where that is in pieces the push is cut into as many
 * parts. A part keeps number, predecessor and claim until it is answered, however often it is sent; if the view cuts its
 * claim between two heads it is cut in two that keep all three.
 *
 * RESENDING. What was under way on a link that is lost goes again, in the order of numbers. A part that is told GAP waits
 * until all earlier parts that overlap it are answered; if there are none it goes once more, and if it is told so again,
 * what was acknowledged is lost: PAWL_CLUSTER_LOST. A part that is told NOT_HERE waits for a newer view, or a moment. New
 * parts wait behind earlier ones that are held back and overlap them.
 *
 * RETIREMENT. A client that was taken for dead joins again as a new sender, asks the request handlers what of its unanswered parts
 * took effect, sends the rest under its new id, and tells the manager that the old one may be forgotten. If the clocks
 * are gone by then the task fails with PAWL_OUTCOME_UNKNOWN. One that was told to stay dead does nothing of this: everything
 * under way and every later call fails with PAWL_NODE_GONE, and all links are closed. What it had pushed without an answer may
 * have taken effect before it was retired, and cannot any more.
 *
 * PULLS carry the number that the flow's clock has on their claim: a request handler that is behind it says GAP. So a session reads
 * what it has written.
 *
 * Steady state: push and pull allocate nothing. Threads: belongs to its net's thread; whoever calls from several threads
 * puts a lock around it (api/).
 */
#ifndef PWI_CLIENT_CLIENT_H
#define PWI_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/filter.h>
#include <pawl/range.h>
#include <pawl/status.h>

#include "base/cursor.h"
#include "base/log.h"
#include "base/random.h"
#include "net/net.h"
#include "ring/view.h"
#include "protocol/call.h"
#include "client/callee.h"
#include "protocol/catalogue.h"
#include "protocol/protocol.h"
#include "protocol/membership.h"

struct pwi_client;
struct pwi_flow;
struct pwi_keylist;

struct pwi_client_config {
  struct pwi_net *net;       /* created with pwi_client_actor; the caller listens first if others are to reach us */
  struct pwi_random *random; /* borrowed */
  const struct pwi_log *log; /* borrowed */
  const char *manager;       /* address, or several with commas (protocol/manager_list.h); copied, like the next two */
  const char *host;          /* label of our machine; may be "" */
  const char *job;           /* "": "default" */
  bool reader;               /* will only pull */
  bool stays_dead;           /* once taken for dead it does not join again, see RETIREMENT */
  uint64_t memory_max;       /* for vectors opened locally */
  const uint8_t *
      identity; /* PWI_SEAL_SECRET bytes by which we prove who we are (protocol/proof.h); copied. NULL: drawn from `random`,
                                for simulations */
};

/* Begins to join. PAWL_INVALID (an address that cannot be read), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_create(const struct pwi_client_config *config, struct pwi_client **client_out);

/* After the net is destroyed or will not be polled again. Tasks that are not finished never will be. NULL is fine. */
void pwi_client_destroy(struct pwi_client *client);

extern const struct pwi_actor pwi_client_actor;

/* --- where we stand ------------------------------------------------------------------------------------------------- */

struct pwi_client_state {
  bool joined;         /* once true it stays so; calls may be made before */
  pawl_status trouble; /* why there is no link to the manager just now: PAWL_OK if there is one. PAWL_FORBIDDEN,
                           PAWL_LINK_KEY, PAWL_LINK_VERSION and PAWL_CLUSTER_OTHER will not heal by themselves */
  uint64_t sender;     /* our id now; 0 for readers and before joining */
  uint64_t cluster;
  bool may_write;
  const char *space;    /* "": all */
  uint64_t outstanding; /* tasks not yet finished */
  uint64_t settled;     /* every task number up to this has been answered */
  bool is_dead; /* it was taken for dead, and stays so; or its key was revoked: `trouble` is PAWL_LINK_REVOKED */
};

void pwi_client_state(const struct pwi_client *client, struct pwi_client_state *state_out);

/* The newest that have come; never NULL. Valid until the next callback of the net runs. */
const struct pwi_view *pwi_client_view(const struct pwi_client *client); /* NULL: none has come */
const struct pwi_catalogue *pwi_client_catalogue(const struct pwi_client *client);
const struct pwi_membership *pwi_client_membership(const struct pwi_client *client);

/* --- tasks ----------------------------------------------------------------------------------------------------------- */

#define PWI_TASK_FAILURES 16

struct pwi_task_failure {
  struct pawl_range range; /* of stored keys */
  pawl_status status;
};

/* How far a sender's pushes have come in a range: up to task `time`, or for a group up to that tick. */
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

void pwi_clock_list_fini(struct pwi_clock_list *list); /* it is then empty */

/* The caller's memory, zeros but for `finished` and `clocks`; it must stay where it is until then. */
struct pwi_task {
  void (*finished)(struct pwi_task *task); /* the task is the caller's again, and may be started anew */
  struct pwi_clock_list *clocks; /* PULL, AWAIT: have the clocks of what is read put there; NULL: not. The caller's, to
                                    the end; what came before the start is gone */

  /* Valid once finished. */
  pawl_status status; /* PAWL_OK or that of the first failure */
  struct pwi_task_failure failures[PWI_TASK_FAILURES];
  uint32_t failure_count; /* all of them, also those that `failures` has no room for */
  uint64_t found;         /* of ENTER: a tick; of SCAN: where to go on */
  uint64_t rows;          /* of SCAN */
  uint64_t number;        /* of a push: its task number, for journals */
  double folded;          /* of a dot product or a norm: the sum, or the highest; of squares, not of their root */

  /* Private. */
  uint32_t parts; /* not yet answered */
  bool is_starting, is_numbered;
  struct pwi_mixing *mixing;
  struct pwi_filtered *filtered; /* what filters have left of the caller's rows */
  struct pwi_folding *folding;
  struct pwi_task *next, *before; /* of all numbered tasks that are not finished, by rising number */
};

/* --- flows ----------------------------------------------------------------------------------------------------------- */

/* The flow of a vector or group to the servers (node 0) or to a node; made if it is new. It lives as long as the client.
 * PAWL_NOT_FOUND (no such entry in the catalogue), PAWL_UNSUPPORTED or PAWL_INVALID (its filters are not known here, as
 * pawl_filters_create), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_flow(struct pwi_client *client, struct pwi_vector_id id, uint64_t node,
                                          struct pwi_flow **flow_out);
const struct pwi_entry *pwi_flow_entry(const struct pwi_flow *flow); /* lives as long as the flow */

/* --- filters (docs/filters.md) ---------------------------------------------------------------------------------------- */

/* Lossy filters run once for each push, in the order of calls, when it is started; what they leave is kept with the task, and
 * is what is cut, sent and sent again. Encodings run whenever a message is built. A push that fails takes with it the rests
 * that it carried.
 *
 * A flow begins with the chain of its entry. This gives it another one, for both directions. Of `options`, which may be
 * NULL, only seed and rule count. As pawl_filters_create, and
 *   PAWL_INVALID    rests are held: they have to be flushed first
 *   PAWL_TOO_LARGE  the filters for pulls are more than a request can name */
PAWL_MUST_USE pawl_status pwi_client_filter(struct pwi_client *client, struct pwi_flow *flow, const char *text,
                                            const struct pawl_filters_options *options, char *problem,
                                            size_t problem_size);

/* The chain at work, for its counters; NULL: none. `direction` is PAWL_ON_PUSH or PAWL_ON_PULL. Lossy filters for pulls run
 * where the rows are held, and are not counted here. Valid until the next pwi_client_filter. */
const struct pawl_filters *pwi_flow_filters(const struct pwi_flow *flow, unsigned direction);

/* What filters have left of a push that is under way, by the caller's keys; NULL if it did not pass through any. Valid until
 * the task is finished. */
const struct pawl_rows *pwi_task_rows(const struct pwi_task *task);

/* What has been carried for a flow so far: whole messages, with their heads. */
struct pwi_flow_traffic {
  uint64_t messages_out, bytes_out, messages_in, bytes_in;
};

struct pwi_flow_traffic pwi_flow_traffic(const struct pwi_flow *flow);

/* --- key lists that are used again ------------------------------------------------------------------------------------ */

/* Copies and checks the list: PAWL_UNSORTED, PAWL_OUT_OF_SPAN, PAWL_NO_MEMORY. With one reference, the caller's. */
PAWL_MUST_USE pawl_status pwi_keylist_create(struct pwi_client *client, const struct pwi_entry *entry,
                                             const uint64_t *keys, size_t count, struct pwi_keylist **list_out);
struct pwi_keylist *pwi_keylist_retain(struct pwi_keylist *list);
void pwi_keylist_release(struct pwi_keylist *list); /* NULL is fine */
size_t pwi_keylist_count(const struct pwi_keylist *list);

/* --- calls ----------------------------------------------------------------------------------------------------------- */

/* As struct pawl_where, for one flow. Keys are the caller's (raw) ones. */
struct pwi_where {
  const uint64_t *keys;
  size_t count;
  struct pwi_keylist *list;
  struct pawl_range range; /* {0, 0} beside a list: no limit; alone: the whole span */
  uint64_t
      aggregate; /* PUSH, PUSHPULL: a group whose members each push once in `tick`, and are applied as one; 0: none */
  uint64_t tick;
  const void
      *weights; /* PUSH: what the caller knows to be stored, row by row as `in`, for filters that ask; may be NULL */
  bool flush;   /* PUSH: drop no row, and send all rests too. No keys and no range: the rests alone */
};

/* Start a task: kind is PUSH, PULL or PUSHPULL; `in` for the first and the last, `out` for the last two. Or RESTORE, as a
 * push of rows that are assigned, whose keys are the stored ones. Everything named
 * must live and stay until the task is finished. What is wrong with the call is returned, and then the task has not
 * started: PAWL_UNSORTED, PAWL_OUT_OF_SPAN, PAWL_UNSUPPORTED (a range of a mixed vector), PAWL_FORBIDDEN, PAWL_INVALID,
 * PAWL_NO_MEMORY. Else `finished` will be called. */
PAWL_MUST_USE pawl_status pwi_client_start(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                           enum pwi_request_kind kind, const struct pwi_where *where, const void *in,
                                           void *out);

/* What is wrong with a call that will be started later: as pwi_client_start, which looks again. */
PAWL_MUST_USE pawl_status pwi_client_check(const struct pwi_client *client, const struct pwi_flow *flow,
                                           enum pwi_request_kind kind, const struct pwi_where *where);

/* The keys present in `range`, from its begin on, on the arc that this lies in: at most `room` of them, with their rows.
 * task->rows tells how many came, task->found where to go on. Keys are raw ones. */
PAWL_MUST_USE pawl_status pwi_client_scan(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                          struct pawl_range range, size_t room, uint64_t *keys, void *values);

/* Linear algebra on the servers: what `kind` says of the vector of `flow` and, if it is about two, of `other`, which is x of
 * axpy and copy, and y of dot; else NULL. A range that ends at PAWL_KEY_END ends with the span, so
 * PAWL_ALL is all of it; an empty range names nothing. Changes are numbered like pushes: they are
 * applied once, in the order of calls, to what the other vector is after all pushes of this client that were called before,
 * and none that were called later.
 *   PAWL_MISMATCH     the two differ in type, width, size, placement or layout
 *   PAWL_OUT_OF_SPAN
 *   PAWL_UNSUPPORTED  a part of the span of a mixed vector; filling a sparse one
 *   PAWL_INVALID      a scalar that is no value for the type
 *   and as pwi_client_start */
PAWL_MUST_USE pawl_status pwi_client_linear(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                            struct pwi_flow *other, enum pwi_linear kind, double scalar,
                                            struct pawl_range range);

/* A fold of one column of the rows as they are stored, counted from 0. PAWL_INVALID if they have none such. */
PAWL_MUST_USE pawl_status pwi_client_fold_column(struct pwi_client *client, struct pwi_task *task,
                                                 struct pwi_flow *flow, enum pwi_linear kind, uint32_t column,
                                                 struct pawl_range range);

/* Groups: the flow is that of the group's entry. ENTER after the manager was asked to let us join; TICK waits until every
 * push of this client that was started before is answered; AWAIT finishes when all members have reached the tick. */
PAWL_MUST_USE pawl_status pwi_client_enter(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow);
void pwi_client_exit(
    struct pwi_flow *flow); /* before the manager is asked to let us go: we will not join again by ourselves */
PAWL_MUST_USE pawl_status pwi_client_tick(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                          uint64_t tick);
PAWL_MUST_USE pawl_status pwi_client_await(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                           uint64_t tick);

/* --- asking the manager ---------------------------------------------------------------------------------------------- */

/* The caller's memory until `replied`. Asked again if the link is lost: the manager carries it out at most once, and tells again what
 * came of it (manager/ledger/ledger.h). PAWL_OUTCOME_UNKNOWN: this client was taken for dead, and the manager has forgotten who it was.
 * `replied` comes when our own view, membership and catalogue are as new as the manager's were. */
struct pwi_asking {
  void (*replied)(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size);

  /* Private. */
  enum pwi_ask what;
  uint64_t number;
  unsigned char *payload;
  size_t size;
  uint64_t asker, secret; /* who we were when it was first sent; 0: it was not */
  bool is_replied;
  pawl_status status;
  unsigned char *reply;
  size_t reply_size;
  uint32_t view, membership, catalogue;
  struct pwi_asking *next;
};

/* The payload is copied. PAWL_NO_MEMORY, PAWL_NODE_GONE (it stays dead). */
PAWL_MUST_USE pawl_status pwi_client_ask(struct pwi_client *client, struct pwi_asking *asking, enum pwi_ask what,
                                         const void *payload, size_t size);

/* Stop waiting for it: `replied` will not be called. It may have been done. */
void pwi_client_unask(struct pwi_client *client, struct pwi_asking *asking);

/* --- calls of named functions (docs/calls.md) -------------------------------------------------------------------------- */

/* One node that is called. */
struct pwi_call_leg {
  uint64_t node;
  pawl_status status;          /* PAWL_OK: `back` has the results. Else why there are none */
  struct pwi_call_return back; /* goes with the calling */

  /* Private. */
  struct pwi_calling *calling;
  struct pwi_call_leg *next, *before; /* in its peer's list */
  int state;
  uint64_t number; /* 0: it was never sent */
  uint32_t tries;
  int64_t retry_at;
};

/* The caller's memory, zeros but for `ended`, until then; afterwards pwi_calling_fini. */
struct pwi_calling {
  void (*ended)(struct pwi_calling *calling);

  /* Valid once ended. */
  pawl_status
      status; /* PAWL_OK, the first failure of a leg or of a call in it, or why there are no legs: PAWL_NOT_FOUND */
  struct pwi_call_leg *legs;
  uint32_t leg_count;

  /* Private. */
  uint64_t node;
  char group[PAWL_NAME_MAX + 1];
  struct pwi_call_graph *graph;
  uint32_t graph_count;
  struct pwi_writer payload;
  uint32_t left;
  uint64_t round; /* of asking who there is; 0: nobody has to be asked */
  struct pwi_calling *next, *before;
};

/* Calls a node or, if that is 0, all members of a group, by the name of its entry. The graph is taken. What is wrong with the
 * call is returned, and then it has not begun, and the graph is still the caller's: PAWL_FORBIDDEN (a reader), PAWL_NO_MEMORY.
 * Else `ended` will be called, perhaps at once. Statuses of legs: PAWL_NODE_GONE, PAWL_UNSUPPORTED (it does not listen),
 * PAWL_OUTCOME_UNKNOWN, PAWL_NODE_STOPPED, PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_call(struct pwi_client *client, struct pwi_calling *calling, uint64_t node,
                                          const char *group, struct pwi_call_graph *graph);

/* Not before it has ended, or the client was destroyed. */
void pwi_calling_fini(struct pwi_calling *calling);

/* Who runs what others call (client/callee.h), from now on. `*callee_out` is for those who run: it lives as long as the client.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_offer(struct pwi_client *client,
                                           void (*run)(void *context, struct pwi_running *running), void *context,
                                           struct pwi_callee **callee_out);

/* --- triggers ---------------------------------------------------------------------------------------------------------- */

/* The caller's memory until the task has finished, or was not started. */
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

/* A push that begins, and gets its number, when all members of a group have reached the tick. Arguments and errors as
 * pwi_client_start; the task's status may also be one of those, or of the waiting. */
PAWL_MUST_USE pawl_status pwi_client_trigger(struct pwi_client *client, struct pwi_trigger *trigger,
                                             struct pwi_task *task, struct pwi_flow *group, uint64_t tick,
                                             struct pwi_flow *flow, const struct pwi_where *where, const void *in);

/* --- memory that request handlers on this machine read in place ---------------------------------------------------------------- */

/* A region of the net that the client knows: what is pushed from it is neither copied nor summed up. PAWL_NO_MEMORY,
 * PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_client_buffer_open(struct pwi_client *client, size_t size, void **memory_out);
void pwi_client_buffer_close(struct pwi_client *client, void *memory); /* NULL is fine */

/* --- vectors of our own ---------------------------------------------------------------------------------------------- */

/* Hold a vector locally, all zeros; others push and pull by naming our sender id. PAWL_EXISTS, PAWL_NOT_FOUND,
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_open_local(struct pwi_client *client, struct pwi_vector_id id);
void pwi_client_close_local(struct pwi_client *client, struct pwi_vector_id id);

/* --- going ----------------------------------------------------------------------------------------------------------- */

/* Tell the manager that we are going; wait with it until nothing is outstanding. `left` in the state of the client: */
void pwi_client_leave(struct pwi_client *client);
bool pwi_client_has_left(const struct pwi_client *client);

/* Close all links gracefully, and how many are still there. */
void pwi_client_hang_up(struct pwi_client *client);
size_t pwi_client_links(const struct pwi_client *client);

struct pwi_client_figures {
  uint64_t parts_sent, parts_resent, gaps, wanted, not_here, retirements, reconnects;
  uint64_t bytes_pushed, bytes_pulled;
};

void pwi_client_figures(const struct pwi_client *client, struct pwi_client_figures *figures_out);

#endif
