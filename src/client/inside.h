/* Inside client/client.h: the client's state, shared by its files.
 *
 *   client/client.c         life, links, the actor, vectors of our own
 *   client/manager.c the manager: joining, news, asks
 *   client/filter.c  what callers push passes through filters; lists that are known by their content
 *   client/counts.c  what filters have done, for the manager
 *   client/start.c   calls become parts: cutting by arcs and by what was sent
 *   client/part.c    the states of parts: decides whether a part is queued, parked, blocked or over
 *   client/peer.c    the queue of each peer, and the parts under way to it
 *   client/send.c    links to peers; queued parts become messages
 *   client/answer.c  what answers do to parts
 *   client/clocks.c  clocks that come with answers
 *   client/renew.c   being taken for dead
 *   client/dead.c    staying dead
 *   client/restore.c vectors that were loaded from a checkpoint
 *   client/linear.c  linear algebra: order between two flows, sums of what parts bring back
 *   client/lists.c   prepared key lists, mixing, buffers
 *   client/call.c    calls of named functions, ours and those of others
 *   client/trigger.c pushes that wait for a group
 */
#ifndef PWI_CLIENT_INSIDE_H
#define PWI_CLIENT_INSIDE_H

#include "base/idmap.h"
#include "base/pages.h"
#include "ring/cut.h"
#include "ring/mix.h"
#include "client/callee.h"
#include "client/client.h"
#include "protocol/coding.h"
#include "server/handler.h"
#include "protocol/messenger.h"
#include "protocol/manager_list.h"
#include "protocol/proof.h"
#include "store/clock.h"
#include "wire/filters.h"

/* The clock of what was sent has one sender: us, whatever our id is just now. */
#define PWI_SELF ((struct pwi_sender){1})

#define PWI_PULL_SLICE ((size_t)512 << 10) /* bytes of values in one answer: gathering overlaps with copying */
#define PWI_LINEAR_SLICE ((size_t)2 << 20) /* bytes of rows that one request changes, and its chain passes on */

/* Servers and senders are numbered apart. A peer that is a sender is told from a server by this bit. */
#define PWI_PEER_IS_SENDER (UINT64_C(1) << 63)

struct client_link;
struct client_peer;

/* --- parts ------------------------------------------------------------------------------------------------------------ */

enum part_state {
  PART_QUEUED,  /* in its peer's queue */
  PART_SENT,    /* in its peer's list of those under way */
  PART_PARKED,  /* waits for a newer view, a way to its request handler, or a moment */
  PART_BLOCKED, /* waits for earlier parts of its flow, for the end of a renewal, or (TICK) for earlier tasks */
};

/* One request until it is answered. */
struct part {
  struct part *next, *before;           /* in the flow, in the order of calls */
  struct part *peer_next, *peer_before; /* in the peer's queue or list */
  struct pwi_flow *flow;
  struct pwi_task *task;
  struct client_peer *peer; /* QUEUED and SENT */
  enum pwi_request_kind kind;
  enum part_state state;
  uint32_t index, generation; /* the slot, and how often it was sent: together the request's number */

  uint64_t number;      /* of the task; 0 for what is not numbered */
  uint32_t incarnation; /* of the vector that it was meant for */
  uint64_t sender;      /* under which it was sent; 0: never */
  uint64_t prior;
  uint64_t tick;
  uint64_t aggregate; /* a group, or 0 */
  struct pawl_range claim, range;

  const uint64_t *keys;     /* stored ones; NULL: all of `range` */
  size_t rows;              /* SCAN: for how many there is room */
  struct pwi_keylist *list; /* the keys are its own, from `list_first` on */
  size_t list_first;
  uint64_t signature;
  bool is_wanted; /* the request handler does not know the signature */

  const char *in;
  char *out;
  uint64_t *keys_out; /* SCAN */

  struct pwi_operation operation; /* LINEAR, FOLD */
  struct pwi_flow *other;         /* of its other vector; NULL: there is none */

  uint64_t epoch; /* PARKED: of the view that did not help */
  int64_t retry_at;
  uint32_t tries;
  uint8_t gaps;
  bool is_collecting; /* asks what became of it under its old sender */
  bool is_after_all;  /* TICK: blocked until it is the first unfinished task */
  bool is_strict;     /* BLOCKED until every earlier overlapping push is answered, not only under way */
  pawl_status voided; /* it cannot be, and why: what goes is an empty push, which uses up its number */

  uint32_t outgoings; /* messages of it that the net still reads from the caller's memory */
  bool is_over;       /* and that is all it waits for: `over_status` is its end */
  pawl_status over_status;
};

/* --- filters ---------------------------------------------------------------------------------------------------------- */

#define PWI_CACHED_LISTS 64
#define PWI_SEEN_LISTS 256

struct cached_list {
  uint64_t signature; /* of the caller's keys */
  uint64_t used;
  struct pwi_keylist *list; /* NULL: the place is free */
};

/* The filters of a flow. */
struct flow_filters {
  struct pawl_filters *push, *pull;
  bool push_is_lossy;
  unsigned push_codecs, pull_codecs; /* bits 1 << codec */
  size_t asked_size;                 /* lossy filters for pulls, as bytes; 0: none */
  uint8_t asked[PWI_FILTERS_ASKED_MAX];
  bool is_stale; /* the vector was loaded from a checkpoint: what is held was meant for what is gone */
  struct pwi_adapt adapt;

  /* Lists that go as their signature. */
  bool caches_pushes, caches_pulls;
  struct cached_list lists[PWI_CACHED_LISTS];
  size_t cached_keys;
  uint64_t list_clock;
  uint64_t seen[PWI_SEEN_LISTS]; /* signatures of lists that came once */

  struct pawl_filter_counters told[2][PAWL_FILTERS_MAX]; /* what the manager knows, of pushes and of pulls */
};

/* client/counts.c */
void pwi_client_idle(struct pwi_client *client); /* all numbered tasks are over, or an ask has its reply */
void pwi_client_tell_idle(struct pwi_client *client);
void pwi_client_count_later(struct pwi_client *client); /* something was counted */
void pwi_client_tell_counts(struct pwi_client *client, bool at_once);

/* What filters have left of a push, until its task is over. */
struct pwi_filtered {
  struct pwi_filtered *next;     /* in the client's list of free ones */
  struct pwi_filtered *all_next; /* and of all */
  struct pawl_rows rows;
  struct pwi_pages keys; /* of what came without a list */
};

/* Before anything is sent: the call as filters leave it. `where` and `in` are then about what is to be sent; what they
 * point to lives as long as `*filtered_out`, which may be NULL, and the lists of the flow. PAWL_UNSUPPORTED (a PUSHPULL
 * through lossy filters; one of a group also if they are those of pulls), and as pawl_filters_run. */
PAWL_MUST_USE pawl_status pwi_flow_filter(struct pwi_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                                          struct pwi_where *where, const void **in, struct pwi_filtered **filtered_out);
void pwi_filtered_free(struct pwi_client *client, struct pwi_filtered *filtered); /* NULL is fine */
void pwi_flow_filters_destroy(struct flow_filters *filters);                      /* NULL is fine */
void pwi_client_filtered_fini(struct pwi_client *client);

/* Where a push of a group has nothing to say it only moves the clock, and nobody waits for it. */
static inline bool pwi_range_overlap(struct pawl_range a, struct pawl_range b) {
  return a.begin < b.end && b.begin < a.end;
}

/* --- flows ------------------------------------------------------------------------------------------------------------ */

struct pwi_flow {
  struct pwi_flow *next;
  struct pwi_entry entry;
  struct pwi_place place;
  uint64_t node;                    /* 0: the servers; else a sender, with its bit */
  size_t row_bytes;                 /* of a row that comes back, */
  size_t pushed_bytes, state_bytes; /* that goes out, and of what is kept with it */
  size_t value_size;
  struct flow_filters *filters; /* NULL: none */
  struct pwi_flow_traffic traffic;
  struct pwi_clock sent;
  struct part *first, *last;
  size_t held_back; /* parts that are not SENT */
  size_t blocked;
  pawl_status dead;  /* nothing can be sent on it any more, and why */
  size_t readers;    /* parts, of any flow, that read it besides their own */
  bool is_forbidden; /* to be pushed to, by whoever holds it: nothing that was sent is in, or ever will be */

  /* Groups. */
  bool has_entered;
  uint64_t ticked;   /* the highest tick called for: whoever enters again has reached it */
  bool is_suspended; /* we have to join it again under a new id */
  bool is_rejoining, is_reentering;
  struct pwi_asking rejoin;
  struct pwi_task reenter;
  struct pwi_client *client;
};

/* Of a row that a request of this kind carries: a RESTORE brings what is stored and what is kept with it. */
static inline size_t pwi_flow_bytes_in(const struct pwi_flow *flow, enum pwi_request_kind kind) {
  return kind == PWI_REQUEST_RESTORE ? flow->row_bytes + flow->state_bytes : flow->pushed_bytes;
}

/* --- lists ------------------------------------------------------------------------------------------------------------ */

struct keylist_cut {
  size_t first, count;
  uint64_t signature;
};

struct pwi_keylist {
  uint32_t references;
  struct pwi_vector_id vector;
  bool is_fresh; /* no request handler has been sent it */
  size_t count;
  uint64_t *keys;           /* stored ones, rising */
  uint32_t *order;          /* of a mixed list: keys[i] is number order[i] of the caller's */
  struct keylist_cut *cuts; /* signatures of the pieces that it is sent in */
  size_t cut_count, cut_room, cut_next;
};

uint64_t pwi_keylist_sign(struct pwi_keylist *list, size_t first, size_t count);

/* Values of a mixed call in the order of stored keys, while it is under way. */
struct pwi_mixing {
  struct pwi_mixing *next;     /* in the client's list of free ones */
  struct pwi_mixing *all_next; /* and of all */
  struct pwi_mixer mixer;
  struct pwi_keylist *list; /* whose order counts; NULL: the mixer's */
  struct pwi_pages in, out;
  size_t rows, bytes_in, row_bytes;
  char *caller_out;
};

PAWL_MUST_USE pawl_status pwi_client_mix(struct pwi_client *client, struct pwi_task *task, const struct pwi_flow *flow,
                                         const struct pwi_where *where, const void *in, void *out);
void pwi_client_unmix(struct pwi_client *client, struct pwi_task *task); /* puts values back, frees the mixing */

/* --- calls ------------------------------------------------------------------------------------------------------------ */

enum leg_state {
  LEG_SEEKING, /* its calling waits to hear who there is */
  LEG_WAITING, /* in its peer's list, to be sent, or sent again */
  LEG_SENT,
  LEG_HERE, /* it runs in this process */
  LEG_OVER,
};

/* --- peers ------------------------------------------------------------------------------------------------------------ */

enum client_link_kind { LINK_MANAGER, LINK_HANDLER, LINK_ASKER };

struct client_link {
  enum client_link_kind kind;
  struct pwi_link link;
  bool is_up;
  struct pwi_peering peering;
  struct pwi_control control;
  struct pwi_control call_control;  /* of calls, which may come between the pieces of something else */
  struct client_peer *peer;         /* LINK_HANDLER */
  struct pwi_handler_link *handler; /* LINK_ASKER */
  struct pwi_shown shown;           /* LINK_ASKER: who calls */
  uint64_t proven, proven_calls;    /* LINK_HANDLER: the id that our requests, and our calls, have shown a proof of */

  /* LINK_HANDLER: the answer on its way in. */
  struct part *answering; /* whose values are being filled in; NULL: the answer is received whole */
  uint32_t answering_generation;
  size_t answer_size;
  _Alignas(64) uint8_t prefix[PWI_ANSWER_PREFIX];
};

/* A request handler that we send requests to. */
struct client_peer {
  struct client_peer *next;
  uint64_t node;
  struct client_link *link;     /* NULL: none, not even one that is being made */
  struct client_peer *due_next; /* in the client's list of peers with something new in their queues */
  bool is_due;
  struct part *queue_first, *queue_last;
  struct part *sent_first, *sent_last;
  size_t under_way;             /* parts sent */
  size_t bytes_out, bytes_back; /* of values, under way */
  struct pwi_adapt_link carrying;
  int64_t last_carried;
  int64_t retry_at, retry_ns; /* when there is no link */

  /* Calls, in their order (client/call.c). */
  struct pwi_call_leg *legs_first, *legs_last;
  size_t legs_under_way, leg_bytes; /* of those sent */
  uint64_t last_call;               /* the number given last */
  size_t unheard;                   /* bytes of answers that the peer does not know to be here */
  struct pwi_asking missing;        /* the manager, whether it is still there */
  bool is_missing;                  /* it is being asked */

  /* Whether answers come at all (client/send.c). */
  uint64_t answers;
  struct part
      *oldest; /* of what was under way at the last look and should have been answered by the next; NULL: none */
  uint32_t oldest_generation;
  uint64_t answers_then;
  int64_t look_at, patience_ns; /* the next look; 0: none is needed */
};

/* A message whose body the net reads until it is done. */
struct outgoing {
  uint32_t index;
  struct part *part;
  struct outgoing *next; /* free ones */
  struct pwi_message_builder builder;
  struct pwi_region *region; /* of encoded keys */
  size_t room;
  struct pwi_pages coded;   /* values in a codec */
  struct client_peer *peer; /* whose link it is timed on; NULL: it is not */
  int64_t sent_at;
};

struct client_buffer {
  struct pwi_region *region;
  char *memory;
  size_t size;
};

/* --- the client ------------------------------------------------------------------------------------------------------- */

enum renewal { RENEWAL_NONE, RENEWAL_JOINING, RENEWAL_COLLECTING };

struct pwi_client {
  struct pwi_client_config config;
  char *host;
  char job[PWI_JOB_MAX + 1];
  struct pwi_greeting greeting;
  struct pwi_messenger messenger;
  struct pwi_idmap links; /* to struct client_link */
  struct client_link *all_links;

  /* Membership. */
  struct client_link *manager; /* NULL: no link, not even one that is being made */
  struct pwi_managers managers;
  int64_t manager_tried_at, manager_retry_at;
  pawl_status trouble;
  uint64_t sender, secret;
  uint8_t identity[PWI_SEAL_SECRET], key[PWI_SEAL_PUBLIC];
  struct pwi_joined joined;
  bool is_joined, is_leaving, has_said_leave, has_left;
  bool is_dead;       /* for good; `has_left` is then true as well, */
  pawl_status died;   /* and this is why */
  int64_t refused_at; /* since when no manager has accepted our key; 0: not so */

  enum renewal renewal;
  uint64_t retired; /* the id that the next JOIN names */
  struct pwi_asking forget;
  bool is_forgetting;
  struct {
    uint64_t id, secret;
  } forgotten[8]; /* ids whose clocks may be forgotten once all is collected */
  size_t forgotten_count;
  size_t collecting; /* parts */

  struct pwi_view *view;
  struct pwi_catalogue catalogue;
  struct pwi_membership *membership;

  /* Tasks, flows, parts. */
  struct pwi_task *tasks_first, *tasks_last;
  uint64_t last_number;
  uint64_t outstanding;
  struct pwi_flow *flows;
  struct part **parts; /* by index */
  size_t part_count, part_room;
  struct part *free_parts;
  size_t parked;
  struct client_peer *peers;
  struct client_peer *last_peer; /* that was asked for */
  struct client_peer *due_peers; /* their queues have something new; client/send.c looks at them next */
  struct pwi_idmap peers_by_node;

  struct outgoing **outgoings;
  size_t outgoing_count;
  struct outgoing *free_outgoings;
  struct pwi_mixing *free_mixings, *mixings;
  struct pwi_filtered *free_filtered, *filtered;
  struct pwi_coder coder;
  struct pwi_folding *foldings;
  struct client_buffer *buffers;
  size_t buffer_count, buffer_room;

  struct pwi_asking *asks;
  uint64_t last_ask;

  int64_t idle_at;                 /* when it is looked whether we are still idle; 0: we were told of, or are not */
  uint64_t idle_number, idle_told; /* the last task's number then, and when the manager was told last */
  uint64_t heard_told;             /* the number of the last ask whose reply the manager was told to be here */
  int64_t tell_at;                 /* when the manager is told what filters have done; 0: there is nothing to tell */
  /* Calls. */
  struct pwi_calling *callings;
  struct pwi_callee *callee; /* NULL: nobody has called yet, and nothing is offered */
  struct pwi_asking sync;
  bool is_syncing;
  uint64_t sync_round;

  struct pwi_timer tick;
  int64_t tick_at; /* 0: the timer is not set */

  /* Vectors of our own. */
  struct pwi_shard *shard;
  struct pwi_handler *handler;
  struct pwi_handler_numbers numbers;

  struct pwi_writer writer;
  struct pwi_client_figures figures;
};

/* client/client.c */
struct client_link *pwi_client_connect(struct pwi_client *client, enum client_link_kind kind, const char *address);
void pwi_client_wake_at(struct pwi_client *client, int64_t at); /* look after what waits, then */

/* client/manager.c */
#define PWI_CLIENT_RETRY_MIN INT64_C(10000000) /* between two attempts to reach the manager, at first */
void pwi_client_seek_manager(struct pwi_client *client, int64_t now);
void pwi_client_manager_lost(struct pwi_client *client, pawl_status why);
void pwi_client_join(struct pwi_client *client);
void pwi_client_asks_renewed(struct pwi_client *client); /* those about ourselves are asked under the new id */
void pwi_client_say(struct pwi_client *client, enum pwi_say kind, uint64_t task, uint64_t tick);
uint64_t pwi_client_asks_heard(const struct pwi_client *client); /* all asks up to this number have their replies */
void pwi_client_say_payload(struct pwi_client *client, enum pwi_say kind, uint64_t task,
                            uint64_t tick);           /* what is in the writer */
void pwi_client_say_leave(struct pwi_client *client); /* once nothing is outstanding */
PAWL_MUST_USE pawl_status pwi_client_hear_manager(struct pwi_client *client, const struct pwi_control *control,
                                                  const void *body);

/* client/part.c */
struct part *pwi_part_create(struct pwi_client *client, struct pwi_flow *flow,
                             struct pwi_task *task);                /* NULL: no memory */
void pwi_part_link_behind(struct part *part, struct part *before);  /* in the flow; NULL: at its end */
void pwi_part_settle(struct pwi_client *client, struct part *part); /* finds its place: queued, parked or blocked */
void pwi_part_hold(struct pwi_client *client, struct part *part, enum part_state state); /* parked or blocked */
void pwi_part_enqueue(struct pwi_client *client, struct part *part, struct client_peer *peer);
void pwi_part_end(struct pwi_client *client, struct part *part, pawl_status status);

/* It ends with this status, and nothing of it takes effect. What was sent later, or will be, names its number as predecessor: so a push
 * goes once more, empty, to use that up, and ends when that has an answer. */
void pwi_part_fail(struct pwi_client *client, struct part *part, pawl_status status);
void pwi_part_outgoing_done(struct pwi_client *client, struct part *part); /* the net has let go of a message of it */
void pwi_part_retry(struct pwi_client *client, struct part *part);         /* after a moment, or with a newer view */
bool pwi_part_is_numbered(const struct part *part);
bool pwi_part_has_order(const struct part *part);
bool pwi_part_waits_for_earlier(const struct part *part);
void pwi_parts_unpark(struct pwi_client *client, bool all);
void pwi_flow_unblock(struct pwi_client *client, struct pwi_flow *flow);
void pwi_flow_kill(struct pwi_client *client, struct pwi_flow *flow, pawl_status status);
void pwi_client_ticks_look(struct pwi_client *client);
void pwi_task_open(struct pwi_client *client, struct pwi_task *task, bool is_numbered);
void pwi_task_part_over(struct pwi_client *client, struct pwi_task *task, struct pawl_range range, pawl_status status);
void pwi_task_started(struct pwi_client *client, struct pwi_task *task);
bool pwi_part_narrow(struct pwi_client *client, struct part *part, struct pawl_range claim);
struct part *pwi_part_split(struct pwi_client *client, struct part *part, uint64_t at);

/* client/peer.c */
#define PWI_PEER_RETRY_MIN INT64_C(5000000)       /* between two attempts to reach a peer, at first */
#define PWI_PEER_PATIENCE_MIN INT64_C(3000000000) /* until a peer that sends no answers is given up, at first */
struct client_peer *pwi_client_peer(struct pwi_client *client, uint64_t node); /* NULL: no memory */
void pwi_peer_enqueue(struct pwi_client *client, struct client_peer *peer, struct part *part);
void pwi_peer_sent(struct client_peer *peer, struct part *part);    /* from the queue to the parts under way */
void pwi_peer_remove(struct client_peer *peer, struct part *part);  /* from the queue or the parts under way */
struct client_peer *pwi_client_take_due(struct pwi_client *client); /* NULL: no queue has anything new */
size_t pwi_part_bytes_out(const struct part *part);                 /* of values that go */
size_t pwi_part_bytes_back(const struct part *part);                /* of values that come */
size_t pwi_part_load(const struct part *part);                      /* bytes that the server passes on to its chain */

/* client/send.c */
void pwi_client_send_due(struct pwi_client *client); /* what was queued goes, as far as there is a link and room */
void pwi_peer_pump(struct pwi_client *client, struct client_peer *peer);
void pwi_peer_link_up(struct pwi_client *client, struct client_peer *peer);
void pwi_peer_link_down(struct pwi_client *client, struct client_peer *peer, pawl_status why);
void pwi_peers_reroute(struct pwi_client *client);
void pwi_peers_look(struct pwi_client *client, int64_t now);
void pwi_client_outgoing_done(struct pwi_client *client, uint64_t cookie);
const char *pwi_client_node_address(const struct pwi_client *client, uint64_t node); /* NULL: unknown */

/* client/answer.c */
struct pwi_receive pwi_answer_begin(struct pwi_client *client, struct client_link *link,
                                    const struct pwi_message *message);
pawl_status pwi_answer_whole(struct pwi_client *client, struct client_link *link, const void *body, size_t size);
pawl_status pwi_answer_filled(struct pwi_client *client, struct client_link *link);

/* client/clocks.c */
pawl_status pwi_part_take_clocks(const struct part *part, const void *payload, size_t size);

/* client/renew.c */
void pwi_client_retired(struct pwi_client *client);
void pwi_client_renewed(struct pwi_client *client, uint64_t settled);
pawl_status pwi_part_collected(struct pwi_client *client, struct part *part, const void *payload, size_t size);
void pwi_client_look_collected(struct pwi_client *client);

void pwi_flow_begin_clock(struct pwi_flow *flow); /* as if nothing had been sent yet; cannot fail */

/* client/dead.c */
void pwi_client_die(struct pwi_client *client, pawl_status why);

/* A link to the manager or to a server is down, and had been up. */
void pwi_client_lost_writing(struct pwi_client *client); /* we have joined, and may only read */
void pwi_client_look_revoked(struct pwi_client *client, bool was_up, bool is_manager, pawl_status why);

/* client/restore.c */
bool pwi_part_is_stale(const struct part *part); /* it is meant for an earlier incarnation */
void pwi_flow_restored(struct pwi_client *client, struct pwi_flow *flow, uint32_t incarnation);
void pwi_part_restored(struct pwi_client *client, struct part *part,
                       uint64_t incarnation); /* a request handler says so */

/* client/call.c */
bool pwi_client_is_call(const struct pwi_message *message);
PAWL_MUST_USE pawl_status pwi_client_hear_call(struct pwi_client *client, struct client_link *link, const void *body);
void pwi_peer_pump_legs(struct pwi_client *client, struct client_peer *peer); /* its link is up */
void pwi_peer_legs_down(struct client_peer *peer);                            /* it is down */
void pwi_peer_miss(struct pwi_client *client, struct client_peer *peer);      /* it refuses links */
void pwi_client_calls_look(struct pwi_client *client);                        /* another membership has come */
void pwi_client_calls_renewed(struct pwi_client *client);                     /* we have another id */
void pwi_client_calls_die(struct pwi_client *client);                         /* we have none any more */

/* client/linear.c */

/* A part has got its operation, or a copy of another's; and it is over, with the last part of its task or not. */
void pwi_linear_begun(struct part *part);
void pwi_linear_over(struct pwi_client *client, struct pwi_flow *flow, const struct part *part, bool was_numbered);

/* True if an earlier part changes rows by what this one would change. */
bool pwi_linear_is_read_before(const struct pwi_client *client, const struct part *part);

/* The request handler has dealt with a part's claim up to `outcome->next`: the rest becomes a part of its own. False if there is no
 * memory for it: then all of the part goes again. */
bool pwi_linear_keep_rest(struct pwi_client *client, struct part *part, const struct pwi_outcome *outcome);

/* A FOLD is OK and brought its sum. PAWL_CORRUPT. */
PAWL_MUST_USE pawl_status pwi_fold_answered(struct pwi_client *client, struct part *part,
                                            const struct pwi_outcome *outcome, const void *payload, size_t size);

/* The sums of a task's parts, from its start to its end. */
PAWL_MUST_USE pawl_status pwi_folding_begin(struct pwi_client *client, struct pwi_task *task, enum pwi_linear kind);
void pwi_folding_end(struct pwi_client *client, struct pwi_task *task);
void pwi_foldings_fini(struct pwi_client *client);

/* client/lists.c */
bool pwi_client_in_buffer(const struct pwi_client *client, const void *memory, size_t size);
void pwi_client_lists_fini(struct pwi_client *client);

#endif
