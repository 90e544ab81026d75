/* The client's state, shared by the files of this module. README.md lists the files in reading order. */
#ifndef PWI_CLIENT_INSIDE_H
#define PWI_CLIENT_INSIDE_H

#include "base/idmap.h"
#include "base/pages.h"
#include "ring/cut.h"
#include "ring/mix.h"
#include "client/calls/callee.h"
#include "client/client.h"
#include "client/relaying.h"
#include "peer/peers.h"
#include "protocol/coding.h"
#include "server/handler.h"
#include "protocol/messenger.h"
#include "protocol/manager_list.h"
#include "protocol/proof.h"
#include "store/clock.h"
#include "wire/filters.h"

/* The only sender in the clock of sent numbers: this client, whatever its present id. */
#define PWI_SELF ((struct pwi_sender){1})

/* Bytes of values in one answer: the server gathers one while another is copied. */
#define PWI_PULL_SLICE ((size_t)512 << 10)
/* Bytes of rows that one LINEAR changes, and its chain passes on. */
#define PWI_LINEAR_SLICE ((size_t)2 << 20)

/* Servers and senders have separate numbers. This bit marks a peer that is a sender. */
#define PWI_PEER_IS_SENDER (UINT64_C(1) << 63)

struct client_link;
struct client_peer;

/* --- parts ---------------------------------------------------------------------------------------------- */

enum client_part_state {
  PART_QUEUED, /* in its peer's queue, to be sent */
  PART_SENT,   /* in its peer's list of parts under way */
  PART_PARKED, /* waits for a newer view, for joining, or for its time */
  /* Waits for earlier parts of its flow, for the end of a renewal, or (TICK) for earlier tasks. */
  PART_BLOCKED,
};

/* One request, from its call until it is answered. */
struct client_part {
  struct client_part *next, *before;           /* neighbours in the flow, in the order of calls */
  struct client_part *peer_next, *peer_before; /* neighbours in the peer's queue or list */
  struct pwi_flow *flow;
  struct pwi_task *task;
  struct client_peer *peer; /* of a part that is QUEUED or SENT; otherwise NULL */
  enum pwi_request_kind kind;
  enum client_part_state state;
  uint32_t index;      /* of the slot; with the generation it is the number of the request */
  uint32_t generation; /* rises with every attempt and every use of the slot */

  uint64_t number;      /* of the task; 0: not numbered */
  uint32_t incarnation; /* of the vector, when the call was made */
  uint64_t sender;      /* id under which the part was last sent, if the part has an order; 0: never */
  uint64_t prior;       /* the predecessor that the request names */
  uint64_t tick;
  uint64_t aggregate;      /* id of the group whose pushes are applied as one; 0: none */
  uint64_t group;          /* PULL: id of the group whose member reads; 0: none. All members have finished `tick` */
  uint32_t staleness;      /* PULL of a group: as in its terms */
  uint64_t doubts;         /* PULL of a group: number of doubts when it was last sent (client/seen.c) */
  struct pawl_range claim; /* stored keys whose clock the request moves or reads */
  struct pawl_range range; /* the part of the claim that the call names */

  const uint64_t *keys;     /* stored keys; NULL: all of `range` */
  size_t rows;              /* number of keys; SCAN: room for rows */
  struct pwi_keylist *list; /* the prepared list that `keys` lies in; NULL: none */
  size_t list_first;        /* index of the first key in that list */
  uint64_t signature;       /* of the keys; 0: not computed yet */
  bool is_wanted;           /* send the keys: the server does not know the signature */

  const char *in;      /* rows to send; NULL: none */
  const void *operand; /* of these rows; NULL: none */
  size_t operand_rows;
  char *out;          /* room for rows that come back; NULL: none */
  uint64_t *keys_out; /* SCAN: room for keys */

  struct pwi_operation operation; /* LINEAR, FOLD */
  struct pwi_flow *other;         /* flow of the second vector; NULL: none */
  struct pwi_read_first first;    /* the earlier LINEAR that reads the part's rows; task 0: none is unanswered */

  uint64_t epoch;     /* PARKED: epoch of the view with which the part was parked */
  int64_t retry_at;   /* PARKED: when to try again */
  uint32_t tries;     /* times that the part was parked */
  uint8_t gaps;       /* consecutive GAPs without an unanswered predecessor */
  bool is_collecting; /* the request asks whether the part took effect under an old id */
  bool is_after_all;  /* TICK: blocked until its task is the first unfinished one */
  bool is_strict;     /* BLOCKED until every earlier overlapping push, and every LINEAR that reads the part's rows, is
                         answered, not merely sent */
  pawl_status voided; /* why the push failed; an empty push goes in its place and uses up the number */

  /* Relays (client/relays.c). */
  bool is_via;                       /* its peer is a relay */
  bool is_direct;                    /* it goes to the head; an aggregate of this relay: it was sent or queued before */
  int64_t via_until;                 /* `is_via`: when it goes to the head although the relay has not answered */
  const struct pwi_relayed *relayed; /* it is an aggregate of this relay; NULL: a part of a call of this client */

  bool is_written;         /* a link receives an answer to it into the caller's memory */
  uint32_t borrowed;       /* messages whose body the net still reads from the caller's memory, or writes to it */
  bool is_over;            /* the part has ended and waits only for these messages */
  pawl_status over_status; /* how it has ended */
};

/* --- filters -------------------------------------------------------------------------------------------- */

#define PWI_CACHED_LISTS 64
#define PWI_SEEN_LISTS 256

struct cached_list {
  uint64_t signature;       /* of the caller's keys */
  uint64_t used;            /* `list_clock` at the last use */
  struct pwi_keylist *list; /* NULL: the slot is free */
};

/* The filters of a flow. */
struct flow_filters {
  struct pawl_filters *push, *pull;
  bool push_is_lossy;
  unsigned push_codecs, pull_codecs;    /* bits 1 << codec */
  size_t asked_size;                    /* bytes of `asked`; 0: no lossy filters for pulls */
  uint8_t asked[PWI_FILTERS_ASKED_MAX]; /* lossy filters that pulls ask the server for, encoded */
  /* The vector was loaded from a checkpoint: drop residuals from before. */
  bool is_stale;
  struct pwi_adapt adapt;

  /* Key lists that are sent as their signature. */
  bool caches_pushes, caches_pulls;
  struct cached_list lists[PWI_CACHED_LISTS];
  size_t cached_keys; /* in all lists */
  uint64_t list_clock;
  uint64_t seen[PWI_SEEN_LISTS]; /* signatures of lists that were used once */

  /* Counters that the manager has, of pushes and of pulls. */
  struct pawl_filter_counters told[2][PAWL_FILTERS_MAX];
};

/* client/counts.c */
void pwi_client_idle(struct pwi_client *client); /* all numbered tasks are over, or an ask has its reply */
void pwi_client_tell_idle(struct pwi_client *client);
void pwi_client_count_later(struct pwi_client *client); /* counters have changed: the manager is told later */
void pwi_client_tell_counts(struct pwi_client *client, bool at_once);

/* The rows of a push after its filters, until its task is over. */
struct pwi_filtered {
  struct pwi_filtered *next;     /* in the client's free list */
  struct pwi_filtered *all_next; /* in the client's list of all */
  struct pawl_rows rows;
  struct pwi_pages keys; /* raw keys of a call that named a range or a mixed list */
};

/* Runs the filters of a flow before anything is sent. Afterwards `where` and `in` describe the rows to send;
 * their memory lives as long as `*filtered_out`, which may be NULL, and the lists of the flow.
 * PAWL_UNSUPPORTED (a PUSHPULL through lossy push filters, or an aggregate through lossy pull filters), and
 * as pawl_filters_run. */
PAWL_MUST_USE pawl_status pwi_flow_filter(struct pwi_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                                          struct pwi_where *where, const void **in, struct pwi_filtered **filtered_out);
void pwi_filtered_free(struct pwi_client *client, struct pwi_filtered *filtered); /* NULL is allowed */
void pwi_flow_filters_destroy(struct flow_filters *filters);                      /* NULL is allowed */
void pwi_client_filtered_fini(struct pwi_client *client);

static inline bool pwi_range_overlap(struct pawl_range a, struct pawl_range b) {
  return a.begin < b.end && b.begin < a.end;
}

/* --- flows ---------------------------------------------------------------------------------------------- */

struct pwi_flow {
  struct pwi_flow *next;
  struct pwi_entry entry;
  struct pwi_place place;
  uint64_t node;                /* 0: the servers; otherwise a sender, with PWI_PEER_IS_SENDER */
  size_t row_bytes;             /* of a pulled row */
  size_t pushed_bytes;          /* of a pushed row */
  size_t state_bytes;           /* of the hidden state of a row */
  size_t value_size;            /* bytes of one value */
  struct flow_filters *filters; /* NULL: none */
  struct pwi_flow_traffic traffic;
  struct pwi_clock sent;             /* the last task number sent, by range; one sender, PWI_SELF */
  struct client_part *first, *last;  /* unanswered parts, in the order of calls */
  size_t held_back;                  /* parts that are not SENT */
  size_t blocked;                    /* parts that are BLOCKED */
  uint64_t ended;                    /* number of parts that have left the list */
  pawl_status dead;                  /* why nothing can be sent any more; PAWL_OK: the flow is alive */
  size_t readers;                    /* parts of any flow that read this vector as their second one */
  uint32_t refused_in_turn;          /* consecutive ticks in which relays refused a push */
  uint64_t refused_tick, relay_from; /* the last of them; no push of an earlier tick goes through relays */
  struct flow_seen *seen;            /* versions of arcs; NULL: there was no pull of a group */
  bool is_forbidden;                 /* the server refused a push for lack of rights: no push of ours takes effect */

  /* Groups. */
  bool has_entered;
  uint64_t ticked;          /* the highest tick of this client, or the one it entered at; it enters again there */
  uint64_t awaited;         /* every member has finished this tick */
  bool is_suspended;        /* the client must join the group again under its new id */
  bool is_rejoining;        /* the manager is being asked for that */
  int64_t rejoin_at;        /* not before this time */
  bool is_reentering;       /* `reenter` is under way */
  struct pwi_asking rejoin; /* to the manager */
  struct pwi_task reenter;  /* ENTER after a renewal */
  struct pwi_client *client;
};

/* Bytes of a row in a request of this kind. A RESTORE carries stored rows with their hidden state. */
static inline size_t pwi_flow_bytes_in(const struct pwi_flow *flow, enum pwi_request_kind kind) {
  return kind == PWI_REQUEST_RESTORE ? flow->row_bytes + flow->state_bytes : flow->pushed_bytes;
}

/* The same beside an operand with so many rows; 0: without one. */
static inline size_t pwi_flow_bytes_beside(const struct pwi_flow *flow, enum pwi_request_kind kind,
                                           size_t operand_rows) {
  return operand_rows > 0 ? operand_rows * flow->value_size : pwi_flow_bytes_in(flow, kind);
}

/* --- versions ------------------------------------------------------------------------------------------- */

/* What this client has seen of a vector, for pulls of groups. */
struct flow_seen {
  struct pwi_clock versions;  /* by range: no answer may show an older one. One sender, PWI_SELF */
  struct pwi_rangeset unsure; /* something was seen or pushed here whose version is not known */
  uint64_t doubts;            /* number of times that a range became unsure */
  uint32_t refused_in_turn;   /* consecutive pulls that relays refused */
  uint64_t skipped;           /* pulls that go to the servers before the next one goes through a relay */
};

/* client/seen.c: begins to note versions, before a pull of a group. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_flow_see(struct pwi_flow *flow);
void pwi_flow_seen_destroy(struct flow_seen *seen); /* NULL is allowed */
/* A request was answered. */
void pwi_part_seen(struct pwi_client *client, const struct client_part *part, const struct pwi_outcome *outcome);
/* The lowest version that the rows of a pull may have. False if it is not known: the rows must be read now. */
bool pwi_part_floor(const struct client_part *part, uint64_t *version_out);

/* --- lists ---------------------------------------------------------------------------------------------- */

struct keylist_cut {
  size_t first, count;
  uint64_t signature;
};

struct pwi_keylist {
  uint32_t references;
  struct pwi_vector_id vector;
  bool is_fresh; /* no server has been sent the list: its first use carries the keys */
  size_t count;
  uint64_t *keys;                       /* stored keys, rising */
  uint32_t *order;                      /* mixed placement: keys[i] is the caller's key number order[i] */
  struct keylist_cut *cuts;             /* signatures of the pieces in which the list is sent */
  size_t cut_count, cut_room, cut_next; /* `cut_next`: where the next piece is expected */
};

uint64_t pwi_keylist_sign(struct pwi_keylist *list, size_t first, size_t count);

/* The rows of a call on a mixed vector, in the order of stored keys, while the call is under way. */
struct pwi_mixing {
  struct pwi_mixing *next;     /* in the client's free list */
  struct pwi_mixing *all_next; /* in the client's list of all */
  struct pwi_mixer mixer;
  struct pwi_keylist *list; /* the list whose order applies; NULL: the order of `mixer` */
  struct pwi_pages in, out;
  size_t rows, bytes_in, row_bytes;
  char *caller_out;
};

PAWL_MUST_USE pawl_status pwi_client_mix(struct pwi_client *client, struct pwi_task *task, const struct pwi_flow *flow,
                                         const struct pwi_where *where, const void *in, void *out);
void pwi_client_unmix(struct pwi_client *client, struct pwi_task *task); /* rows back in the caller's order */

/* --- calls ---------------------------------------------------------------------------------------------- */

enum leg_state {
  LEG_SEEKING, /* its calling waits for the manager's list of members */
  LEG_WAITING, /* in its peer's list, to be sent or resent */
  LEG_SENT,
  LEG_HERE, /* runs in this process */
  LEG_OVER,
};

/* --- peers ---------------------------------------------------------------------------------------------- */

/* LINK_PEER: made for peer/peers.h. The other end has it as LINK_ASKER. */
enum client_link_kind { LINK_MANAGER, LINK_HANDLER, LINK_ASKER, LINK_PEER };

struct client_link {
  enum client_link_kind kind;
  struct pwi_link link;
  bool is_up;
  struct pwi_peering peering;
  struct pwi_control control;
  /* Of calls, peers and priorities, whose messages may arrive between the pieces of another message. */
  struct pwi_control call_control;
  struct client_peer *peer;         /* LINK_HANDLER */
  struct pwi_handler_link *handler; /* LINK_ASKER */
  uint8_t priority_told;            /* LINK_HANDLER: that of the client, as the other end knows it */
  struct pwi_shown shown;           /* LINK_ASKER: the identity of the caller */
  uint64_t proven;                  /* LINK_HANDLER: the id for which requests have carried a proof */
  uint64_t proven_calls;            /* LINK_HANDLER: the id for which calls have carried a proof */

  /* LINK_HANDLER: the answer that is being received. */
  /* Its values go directly to the caller's memory; NULL: the answer is received whole. */
  struct client_part *answering;
  uint32_t answering_generation; /* of that part, when the answer began */
  size_t answer_size;
  _Alignas(16) uint8_t prefix[PWI_ANSWER_PREFIX];
};

/* A server, or a client that serves vectors, to which this client sends requests and calls. */
struct client_peer {
  struct client_peer *next;
  uint64_t node;
  struct client_link *link;                     /* up or being made; NULL: none */
  struct client_peer *due_next;                 /* in the client's list of peers whose queues have changed */
  bool is_due;                                  /* in that list */
  struct client_part *queue_first, *queue_last; /* QUEUED parts, see pwi_peer_enqueue */
  struct client_part *sent_first, *sent_last;   /* SENT parts, in the order of sending */
  size_t under_way;                             /* number of SENT parts */
  size_t bytes_out, bytes_back;                 /* of values of SENT parts, to the peer and from it */
  struct pwi_adapt_link carrying;               /* how fast the link carries messages */
  int64_t last_carried;                         /* when the net last finished a message */
  int64_t retry_at, retry_ns;                   /* without a link: when to connect next, and the pause after that */

  /* Calls, in their order (client/calls/call.c). */
  struct pwi_call_leg *legs_first, *legs_last;
  size_t legs_under_way, leg_bytes; /* SENT legs and their bytes */
  uint64_t last_call;               /* number of the last call to this peer */
  size_t unheard;                   /* bytes of results whose arrival the peer has not been told */
  struct pwi_asking missing;        /* asks the manager whether the peer is still a member */
  bool is_missing;                  /* `missing` is under way */

  /* Of a relay (client/relays.c). */
  int64_t avoid_until, avoid_ns; /* it is not used until then; the pause after the next failure */
  int64_t relay_patience_ns;     /* how long parts wait for its answer */
  int64_t relay_look_at;         /* when to look for such parts; 0: none */

  /* Detection of a link without answers (client/send.c). */
  uint64_t answers;           /* received so far */
  struct client_part *oldest; /* at the last check, the oldest part with an expected answer; NULL: none */
  uint32_t oldest_generation; /* of that part */
  uint64_t answers_then;      /* `answers` at the last check */
  int64_t look_at;            /* time of the next check; 0: none is needed */
  int64_t patience_ns;        /* pause between two checks */
  bool is_held;               /* the server holds the data lane: answers are not missing */
};

/* A message whose body the net reads until `done`. */
struct outgoing {
  uint32_t index;
  struct client_part *part;
  struct outgoing *next; /* in the free list */
  struct pwi_message_builder builder;
  struct pwi_region *region; /* for encoded keys; NULL: none yet */
  size_t room;               /* bytes of the region */
  struct pwi_pages coded;    /* values in a codec */
  struct pwi_pages coded_operand;
  struct client_peer *peer; /* the peer whose link is timed with this message; NULL: not timed */
  int64_t sent_at;
};

struct client_buffer {
  struct pwi_region *region;
  char *memory;
  size_t size;
};

/* --- the client ----------------------------------------------------------------------------------------- */

enum renewal { RENEWAL_NONE, RENEWAL_JOINING, RENEWAL_COLLECTING };

struct pwi_client {
  struct pwi_client_config config;
  char *host;
  char rack[PWI_SITE_MAX + 1];
  char job[PWI_JOB_MAX + 1];
  struct pwi_greeting greeting;
  struct pwi_messenger messenger;
  struct pwi_idmap links; /* to struct client_link */
  struct client_link *all_links;

  /* Membership. */
  struct client_link *manager; /* up or being made; NULL: none */
  struct pwi_managers managers;
  int64_t manager_tried_at, manager_retry_at;
  pawl_status trouble;
  uint64_t sender, secret;
  uint8_t identity[PWI_SEAL_SECRET], key[PWI_SEAL_PUBLIC];
  struct pwi_joined joined;
  uint32_t listed; /* number of a membership that lists the id; the news with it may still be under way */
  bool is_joined, is_leaving, has_said_leave, has_left;
  bool is_in;         /* the manager has answered JOIN over the present link */
  bool is_dead;       /* for good; `has_left` is then true as well */
  pawl_status died;   /* why the client is dead */
  int64_t refused_at; /* since when every manager has refused the client's key; 0: it is accepted */

  enum renewal renewal;
  uint64_t retired;         /* the old id that the next JOIN names */
  struct pwi_asking forget; /* asks the manager to forget an old id */
  bool is_forgetting;       /* `forget` is under way */
  struct {
    uint64_t id, secret;
  } forgotten[8]; /* old ids that the manager may forget once all parts are collected */
  size_t forgotten_count;
  size_t collecting; /* parts with is_collecting */

  struct pwi_view *view;
  struct pwi_catalogue catalogue;
  struct pwi_membership *membership;

  /* Tasks, flows, parts. */
  struct pwi_task *tasks_first, *tasks_last; /* unfinished numbered tasks, by rising number */
  uint64_t last_number;                      /* given to a task */
  uint64_t outstanding;                      /* unfinished tasks */
  struct pwi_flow *flows;
  struct client_part **parts; /* by index */
  size_t part_count, part_room;
  struct client_part *free_parts;
  size_t parked; /* parts */
  struct client_peer *peers;
  struct client_peer *last_peer; /* found by the last pwi_client_peer */
  struct client_peer *due_peers; /* peers whose queues have changed; client/send.c looks at them next */
  struct pwi_idmap peers_by_node;

  struct outgoing **outgoings;
  size_t outgoing_count;
  struct outgoing *free_outgoings;
  struct pwi_mixing *free_mixings, *mixings;
  struct pwi_filtered *free_filtered, *filtered;
  struct pwi_coder coder;
  struct pwi_folding *foldings;
  struct pwi_row_run *row_runs;
  struct client_buffer *buffers;
  size_t buffer_count, buffer_room;

  struct pwi_asking *asks;
  uint64_t last_ask;

  /* When to check whether the client is still idle; 0: not idle, or the manager knows. */
  int64_t idle_at;
  uint64_t idle_number; /* `last_number` when the client became idle */
  uint64_t idle_told;   /* `last_number` when the manager was last told */
  uint64_t heard_told;  /* the highest ask whose reply the manager knows to be here */
  int64_t tell_at;      /* when to send filter counters to the manager; 0: nothing to send */

  /* Calls. */
  struct pwi_calling *callings;
  struct pwi_callee *callee; /* NULL: no call was received yet, and no functions are offered */
  struct pwi_asking sync;    /* asks the manager for its newest membership */
  bool is_syncing;           /* `sync` is under way */
  uint64_t sync_round;       /* number of that question */

  /* Peer groups (client/channels.c). */
  struct pwi_peers *group_peers; /* NULL: not used yet */
  struct pwi_asking miss_peer;   /* tells the manager of a peer that is not there */
  bool is_missing_peer;          /* the ask is under way */

  struct pwi_timer tick;
  int64_t tick_at; /* 0: the timer is not set */

  /* Local vectors. */
  struct pwi_shard *shard;
  struct pwi_handler *handler;
  struct pwi_handler_numbers numbers;

  struct pwi_relays relays;
  uint8_t priority; /* of the requests that are under way; 0: the usual one */
  struct pwi_writer writer;
  struct pwi_client_figures figures;
};

/* client/client.c */
struct client_link *pwi_client_connect(struct pwi_client *client, enum client_link_kind kind, const char *address);
void pwi_client_wake_at(struct pwi_client *client, int64_t at); /* the timer fires at `at` or before */

/* client/manager.c */
#define PWI_CLIENT_RETRY_MIN INT64_C(10000000) /* the first pause between two attempts to reach the manager */
void pwi_client_seek_manager(struct pwi_client *client, int64_t now);
void pwi_client_manager_lost(struct pwi_client *client, pawl_status why);
void pwi_client_join(struct pwi_client *client);
void pwi_client_asks_renewed(struct pwi_client *client); /* asks about this client go under its new id */
void pwi_client_say(struct pwi_client *client, enum pwi_say kind, uint64_t task, uint64_t tick);
/* Highest ask with replies to it and all before. */
uint64_t pwi_client_asks_heard(const struct pwi_client *client);
void pwi_client_say_payload(struct pwi_client *client, enum pwi_say kind, uint64_t task,
                            uint64_t tick); /* with the bytes in client->writer */
/* If the client is leaving and nothing is outstanding. */
void pwi_client_say_leave(struct pwi_client *client);
void pwi_client_membership_changed(struct pwi_client *client); /* tells the caller */
PAWL_MUST_USE pawl_status pwi_client_hear_manager(struct pwi_client *client, const struct pwi_control *control,
                                                  const void *body);

/* client/part.c */
struct client_part *pwi_part_create(struct pwi_client *client, struct pwi_flow *flow,
                                    struct pwi_task *task);                      /* NULL: no memory */
void pwi_part_link_behind(struct client_part *part, struct client_part *before); /* in the flow; NULL: at its end */
/* decides: queued, parked, blocked or over. */
void pwi_part_settle(struct pwi_client *client, struct client_part *part);
/* Parked or blocked. */
void pwi_part_hold(struct pwi_client *client, struct client_part *part, enum client_part_state state);
void pwi_part_enqueue(struct pwi_client *client, struct client_part *part, struct client_peer *peer);
void pwi_part_end(struct pwi_client *client, struct client_part *part, pawl_status status);

/* Ends a part that cannot take effect. Later parts name its number as their predecessor. So a push is sent
 * once more, empty, to use up the number, and ends with `status` when that is answered. */
void pwi_part_fail(struct pwi_client *client, struct client_part *part, pawl_status status);
/* The net has finished with the caller's memory in one message. */
void pwi_part_let_go(struct pwi_client *client, struct client_part *part);
/* Parks it until later, or a newer view. */
void pwi_part_retry(struct pwi_client *client, struct client_part *part);
bool pwi_part_is_numbered(const struct client_part *part);
bool pwi_part_has_order(const struct client_part *part);
bool pwi_part_waits_for_earlier(const struct client_part *part);
void pwi_parts_unpark(struct pwi_client *client, bool all);
void pwi_flow_unblock(struct pwi_client *client, struct pwi_flow *flow);
void pwi_flow_kill(struct pwi_client *client, struct pwi_flow *flow, pawl_status status);
void pwi_client_ticks_look(struct pwi_client *client);
void pwi_task_open(struct pwi_client *client, struct pwi_task *task, bool is_numbered);
void pwi_task_part_over(struct pwi_client *client, struct pwi_task *task, struct pawl_range range, pawl_status status);
void pwi_task_started(struct pwi_client *client, struct pwi_task *task);
bool pwi_part_narrow(struct pwi_client *client, struct client_part *part, struct pawl_range claim);
struct client_part *pwi_part_split(struct pwi_client *client, struct client_part *part, uint64_t at);

/* client/peer.c */
#define PWI_PEER_RETRY_MIN INT64_C(5000000)       /* the first pause between two attempts to reach a peer */
#define PWI_PEER_PATIENCE_MIN INT64_C(3000000000) /* the first time without answers until a link is closed */
struct client_peer *pwi_client_peer(struct pwi_client *client, uint64_t node); /* NULL: no memory */
void pwi_peer_enqueue(struct pwi_client *client, struct client_peer *peer, struct client_part *part);
/* From the queue to the parts under way. */
void pwi_peer_sent(struct client_peer *peer, struct client_part *part);
/* From the queue or the parts under way. */
void pwi_peer_remove(struct client_peer *peer, struct client_part *part);
struct client_peer *pwi_client_take_due(struct pwi_client *client); /* NULL: no queue has anything new */
size_t pwi_part_bytes_out(const struct client_part *part);          /* of values that go */
size_t pwi_part_operand_bytes(const struct client_part *part);      /* that go beside them */
size_t pwi_part_bytes_back(const struct client_part *part);         /* of values that come */
/* Bytes that the server passes on to its chain. */
size_t pwi_part_load(const struct client_part *part);

/* client/send.c */
void pwi_client_send_due(struct pwi_client *client); /* sends queued parts, as links and limits permit */
void pwi_peer_pump(struct pwi_client *client, struct client_peer *peer);
void pwi_peer_link_up(struct pwi_client *client, struct client_peer *peer);
void pwi_peer_held(struct pwi_client *client, struct client_peer *peer, bool is_held);
void pwi_peer_link_down(struct pwi_client *client, struct client_peer *peer, pawl_status why);
void pwi_peers_reroute(struct pwi_client *client);
void pwi_client_look_at_peers(struct pwi_client *client, int64_t now);
void pwi_client_outgoing_done(struct pwi_client *client, uint64_t cookie);
void pwi_peer_seek(struct pwi_client *client, struct client_peer *peer); /* makes a link, unless it is too early */
const char *pwi_client_node_address(const struct pwi_client *client, uint64_t node); /* NULL: unknown */

/* client/answer.c */
struct pwi_receive pwi_answer_begin(struct pwi_client *client, struct client_link *link,
                                    const struct pwi_message *message);
pawl_status pwi_answer_whole(struct pwi_client *client, struct client_link *link, const void *body, size_t size);
pawl_status pwi_answer_filled(struct pwi_client *client, struct client_link *link, pawl_status received);

/* client/relays.c */
/* The relay to which the part goes, with a link; NULL: to the head. */
struct client_peer *pwi_relay_for(struct pwi_client *client, struct client_part *part, uint64_t head);
void pwi_relay_sent(struct pwi_client *client, struct client_part *part);
void pwi_relay_answered(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome);
void pwi_relay_lost(struct pwi_client *client, struct client_peer *peer); /* the link to it is down */
void pwi_relays_look(struct pwi_client *client, struct client_peer *peer, int64_t now);
bool pwi_relayed_may_go(struct pwi_client *client, struct client_part *part); /* false: the aggregate ends */

/* client/clocks.c */
pawl_status pwi_part_take_clocks(const struct client_part *part, const void *payload, size_t size);

/* client/renew.c */
void pwi_client_retired(struct pwi_client *client);
void pwi_client_renewed(struct pwi_client *client, uint64_t settled);
pawl_status pwi_part_collected(struct pwi_client *client, struct client_part *part, const void *payload, size_t size);
void pwi_client_look_collected(struct pwi_client *client);
void pwi_client_rejoin_groups(struct pwi_client *client, int64_t now);

void pwi_flow_begin_clock(struct pwi_flow *flow); /* clears the clock of sent numbers; cannot fail */

/* client/dead.c */
void pwi_client_die(struct pwi_client *client, pawl_status why);

void pwi_client_lost_writing(struct pwi_client *client); /* the client has joined, and may only read */

/* A link to the manager or to a server is down: was the client's key revoked? */
void pwi_client_look_revoked(struct pwi_client *client, bool was_up, bool is_manager, pawl_status why);

/* client/restore.c */
bool pwi_part_is_stale(const struct client_part *part); /* made for an earlier incarnation */
void pwi_flow_restored(struct pwi_client *client, struct pwi_flow *flow, uint32_t incarnation);
/* Answered RESTORED. */
void pwi_part_restored(struct pwi_client *client, struct client_part *part, uint64_t incarnation);

/* client/calls/call.c */
bool pwi_client_is_call(const struct pwi_message *message);
PAWL_MUST_USE pawl_status pwi_client_hear_call(struct pwi_client *client, struct client_link *link, const void *body);
void pwi_peer_pump_legs(struct pwi_client *client, struct client_peer *peer); /* its link is up */
void pwi_peer_legs_down(struct client_peer *peer);                            /* its link is down */
void pwi_peer_miss(struct pwi_client *client, struct client_peer *peer);      /* it refused a link */
void pwi_client_calls_look(struct pwi_client *client);                        /* a membership has come */
void pwi_client_calls_renewed(struct pwi_client *client);                     /* the client has a new id */
void pwi_client_calls_die(struct pwi_client *client);                         /* the client is dead */

/* client/channels.c */
bool pwi_client_is_peer(const struct pwi_message *message);
struct pwi_receive pwi_client_peer_begin(struct client_link *link, const struct pwi_message *message);
PAWL_MUST_USE pawl_status pwi_client_hear_peer(struct pwi_client *client, struct client_link *link, const void *body);
void pwi_client_channels_look(struct pwi_client *client); /* the membership or the client's id has changed */

/* client/linear.c */

/* A part with an operation begins or ends: counts the readers of the second vector, and unblocks parts. */
void pwi_linear_begun(struct client_part *part);
void pwi_linear_over(struct pwi_client *client, struct pwi_flow *flow, const struct client_part *part,
                     bool was_numbered);

/* False if the part must wait for the answers to earlier LINEARs that read rows which it would change. Otherwise
 * part->first names the one that the server must apply before. */
bool pwi_linear_may_follow(const struct pwi_client *client, struct client_part *part);

/* The server has processed a part's claim up to `outcome->next`: the rest becomes a part of its own. False if
 * there is no memory for it; the whole part is then sent again. */
bool pwi_linear_keep_rest(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome);

/* A FOLD was answered OK; the payload is its sum. PAWL_CORRUPT. */
PAWL_MUST_USE pawl_status pwi_fold_answered(struct pwi_client *client, struct client_part *part,
                                            const struct pwi_outcome *outcome, const void *payload, size_t size);

/* The sums of the parts of a fold, from its start to its end. */
/* client/run.c: begins a call of a row function, answers a part, and ends the call. pwi_run_collected is for results
 * that came with the answer to a COLLECT; it returns PAWL_OUTCOME_UNKNOWN if a part of the claim has none. */
PAWL_MUST_USE pawl_status pwi_row_run_begin(struct pwi_client *client, struct pwi_task *task, const char *function);
const char *pwi_row_run_function(const struct pwi_task *task);
PAWL_MUST_USE pawl_status pwi_run_answered(struct pwi_client *client, struct client_part *part,
                                           const struct pwi_outcome *outcome, const void *payload, size_t size);
PAWL_MUST_USE pawl_status pwi_run_collected(struct client_part *part, struct pwi_reader list);
void pwi_row_run_end(struct pwi_client *client, struct pwi_task *task);
void pwi_row_runs_fini(struct pwi_client *client);

PAWL_MUST_USE pawl_status pwi_folding_begin(struct pwi_client *client, struct pwi_task *task, enum pwi_linear kind);
void pwi_folding_end(struct pwi_client *client, struct pwi_task *task);
void pwi_foldings_fini(struct pwi_client *client);

/* client/lists.c */
bool pwi_client_in_buffer(const struct pwi_client *client, const void *memory, size_t size);
void pwi_client_lists_fini(struct pwi_client *client);

#endif
