/* The state of the manager, and the functions that its files share.
 *
 *   manager/manager.c         create and destroy, callbacks of the actor, peers
 *   manager/decide.c          the queue of decisions
 *   manager/join.c            servers and clients that join
 *   manager/leave.c           draining of servers, retirement of clients
 *   manager/unsettled.c       which retired senders are kept, and for how long
 *   manager/space.c           quotas of spaces
 *   manager/loss.c            servers that are declared dead, and complaints of chain neighbours
 *   manager/probe.c           whether a server without a link is dead: inquiries to witnesses
 *   manager/give_up.c         servers that an operator gives up, and the data that only they had
 *   manager/ask.c             asks of clients
 *   manager/members.c         the membership as changes since the number that a peer has
 *   manager/access.c          rights of links, and the audit
 *   manager/answer.c          answers to asks, kept for clients that ask again
 *   manager/news.c            announcements, and replies that wait until servers have confirmed them
 *   manager/step.c            the next step from the chain of an arc to its goal
 *   manager/move.c            orders for steps, and their results
 *   manager/work.c            what each move needs next
 *   manager/carry.c           the views that carry moves out
 *   manager/planning/draft.c  the next view while it is built
 *   manager/planning/plan.c   when to plan, and from which state
 *   manager/planning/goal.c   from a plan, or an operator's order, to moves
 *   manager/planning/balance.c  when load alone is a reason to plan
 *   manager/saving/save.c     checkpoints; see manager/saving/saving.h
 *   manager/status.c          the state as JSON and as figures
 *
 * DECISIONS. Every change of the ledger is a decision in a queue; one decision is carried out at a time.
 * `decide` looks at the ledger and either writes a record or finds that nothing (more) is to be done. The
 * record is appended to the journal, applied when it is safe, and announced. Then `decide` is called again,
 * so a decision may write several records and need not remember how far it has come. At the end `conclude`
 * receives the status.
 */
#ifndef PWI_MANAGER_INSIDE_H
#define PWI_MANAGER_INSIDE_H

#include "base/cursor.h"
#include "base/fifo.h"
#include "ring/plan.h"
#include "protocol/filter_counts.h"
#include "manager/ledger/ledger.h"
#include "protocol/messenger.h"
#include "manager/manager.h"
#include "protocol/prober.h"
#include "protocol/save_messages.h"

#define PWI_MANAGER_BUCKETS 1024
#define PWI_MANAGER_ASKS_MAX 1024 /* asks and complaints of one peer in the queue */

/* Servers and clients that lost the manager try to reconnect at least once a second. After a restart the
 * manager gives them this time in addition to their grace. */
#define PWI_MANAGER_RETURN_NS INT64_C(1250000000)

#define PWI_MANAGER_GATHER_NS INT64_C(1000000) /* within this time all links of a process that dies break */

/* --- announcements -------------------------------------------------------------------------------------- */

/* The three parts of the state that are announced. */
enum { PWI_TOPIC_VIEW, PWI_TOPIC_CATALOGUE, PWI_TOPIC_MEMBERSHIP, PWI_TOPICS };

struct news_numbers {
  uint64_t of[PWI_TOPICS];
};

/* One edition of a topic, encoded once for all peers. An edition of the membership has a number but no
 * bytes. */
struct news_edition {
  size_t references;
  uint64_t number;
  size_t size;
  unsigned char bytes[];
};

/* Servers are sent the newest edition at once. Clients are sent the *settled* edition, which all servers that
 * are up have confirmed. The *next* edition becomes settled when they have confirmed it. It is not replaced
 * before that, so that clients do not wait for ever while changes follow one another quickly. */
struct news_topic {
  struct news_edition *newest, *next, *settled;
};

/* The settled catalogue for keys that are limited to one space. */
struct space_catalogue {
  char space[PWI_SPACE_MAX + 1];
  struct news_edition *whole, *edition; /* the catalogue, and its part in the space; both NULL: unused */
};

#define PWI_MANAGER_SPACE_CATALOGUES 16

/* --- peers, nodes and senders --------------------------------------------------------------------------- */

enum manager_peer_state {
  PEER_NEW,     /* JOIN has not arrived yet */
  PEER_JOINING, /* JOIN has arrived and is not answered yet */
  PEER_IN,      /* it has joined */
  PEER_OUT,     /* it has left, was replaced by a newer link, or is being closed */
};

/* The identity and the rights of the other end of a link. Asks keep a copy for the audit. */
struct peer_identity {
  char identity[PWI_NET_IDENTITY_MAX];
  char address[PWI_NET_ADDRESS_MAX];
  struct pwi_rights rights;
};

/* The other end of a link. */
struct manager_peer {
  struct manager_peer *next, *previous; /* list of all peers in order of arrival */
  struct manager_peer *chained;         /* next peer in the same bucket */
  struct pwi_link link;
  struct pwi_peering peering;
  struct peer_identity who;
  struct pwi_control control;
  enum manager_peer_state state;
  struct pwi_timer patience; /* closes the link if JOIN does not arrive in time */
  bool is_server;
  uint64_t id;                    /* node or sender; 0: none */
  size_t asks;                    /* asks and complaints of this peer in the queue of decisions */
  struct news_numbers knew;       /* the numbers in its JOIN */
  struct news_numbers sent, have; /* the numbers it was sent, and the numbers it has confirmed */
  int64_t view_sent_at;           /* when it was sent the first view that it has not confirmed */
  uint64_t settle;                /* number of an unanswered SETTLE (manager/unsettled.c); 0: none */
  struct pwi_join join;
};

/* A report of a node, and when it arrived. */
struct node_report {
  int64_t time;
  struct pwi_report report;
  uint64_t lanes_held, holds; /* as in struct pwi_server_state */
};

#define PWI_WITNESSES 3

struct witness {
  uint64_t node;
  bool is_silent; /* the witness has found the node in question silent */
};

/* The last question to witnesses about a node without a link. */
struct inquiry {
  uint64_t number;
  size_t count;
  struct witness witnesses[PWI_WITNESSES];
};

/* Whether most servers are unreachable. Computed again when the view or the set of connected nodes has
 * changed. */
struct suspicion {
  uint64_t epoch, changes;
  bool is_suspect;
};

/* State of a node of the ledger that is not recorded. */
struct manager_node {
  uint64_t id;
  struct manager_peer *peer; /* NULL: it has no link now */
  struct pwi_timer timer;    /* without a link: the next check; once down: its removal if it is in no chain */
  int64_t check_at;          /* when the timer is due */
  int64_t lost_at;           /* when its link went down, or the manager started; later by the time that the manager
                                stood still since then */
  int64_t returned_at;       /* when it last joined again; 0: never */
  bool was_silent;           /* its link went down because of silence */
  struct inquiry inquiry;
  enum pwi_verdict verdict; /* of the witnesses */
  bool is_own_verdict;      /* the verdict is only the manager's own */
  bool declared;            /* it has been marked down, and the consequences are carried out */
  int64_t declared_at;      /* when; INT64_MIN: before this manager started */
  bool leaving, removing;   /* it is to leave; a decision to remove it from the view is queued */
  int64_t leaving_since;    /* when that was decided; INT64_MIN: before this manager started */
  bool heard;               /* it has joined since the manager started */
  unsigned gives, takes;    /* set by the survey: steps under way of which it is the source, or the target */
  size_t reports;           /* number of reports that are kept: 0, 1 or 2 */
  struct node_report last, before;
  struct pwi_space_bytes *spaces; /* from its last SPACES */
  size_t space_count;
  struct pwi_load *loads; /* from its last report */
  size_t load_count;
};

/* State of a sender of the ledger that is not recorded. */
struct manager_sender {
  uint64_t id;
  struct manager_peer *peer; /* NULL: it has no link now */
  struct pwi_timer timer;    /* without a link: its retirement; once retired: when it is forgotten */
  int64_t check_at;          /* when the timer is due */
  int64_t lost_at;           /* when its grace began */
  int64_t forget_at;         /* once retired: the latest time to forget it; 0: not retired */
  uint64_t settled;          /* the client says that it has the answers to all tasks up to this number */
  uint64_t heard;            /* the client says that it has the replies to all asks up to this number */
  bool is_wanted;            /* its client is back as a new sender and collects the clocks of this one */
};

/* The question to all request handlers whether retired senders are settled (manager/unsettled.c). */
struct settle_question {
  struct pwi_fifo candidates;                /* uint64_t: retired senders that no question was about yet */
  uint64_t number;                           /* of the question under way; 0: none */
  uint64_t epoch;                            /* of the view in which it was asked */
  uint64_t last_number;                      /* of the last question asked */
  size_t awaited;                            /* request handlers that have not answered */
  size_t count;                              /* elements of `senders` */
  struct pwi_settle senders[PWI_SETTLE_MAX]; /* asked about, and not found unsettled so far */
  struct pwi_timer timer;
  bool is_expiring; /* a decision to forget senders whose time is over is queued */
};

/* --- decisions ------------------------------------------------------------------------------------------ */

/* A message to a peer that waits until these numbers are settled. */
struct waiting_reply {
  struct pwi_link link;
  struct news_numbers numbers;
  enum pwi_say kind; /* JOINED, REPLY or LEFT */
  uint64_t task;
  pawl_status status;
  uint64_t id; /* 0: the reply has none */
};

struct decision {
  /* Writes a record to manager->record, or nothing. An error ends the decision. Must not queue other
   * decisions, except for the orders of an ask (MOVE, BALANCE); `decision` must not be accessed after
   * that. */
  pawl_status (*decide)(struct pwi_manager *manager, struct decision *decision);

  /* Called once at the end. NULL: nothing is to be done. */
  void (*conclude)(struct pwi_manager *manager, const struct decision *decision, pawl_status status);
  struct pwi_link link;     /* the link that asked for the decision */
  uint64_t task;            /* number of the ask */
  uint64_t ask;             /* kind of the ask */
  struct peer_identity who; /* identity of the asking link, which may be down by now */
  uint64_t asker;           /* sender for which the answer is remembered; 0: none */
  uint64_t heard;           /* the asker has the replies to its asks up to this number */
  bool goes_on;             /* set by `decide` with a record that is not the last one of the ask */
  bool is_recalled;         /* the ledger was searched, and has no answer to the ask */
  bool is_answered;         /* the answer is in the ledger */
  pawl_status answer;
  uint64_t id, secret; /* of a node, sender or vector */
  struct pwi_complaint complaint;
  uint32_t size;
  struct pwi_entry entry;
  char address[PWI_LABEL_MAX + 1];
};

/* --- moves ---------------------------------------------------------------------------------------------- */

enum chain_move_state {
  MOVE_WANTED, /* the next step begins when its source and target are not busy */
  MOVE_LISTED, /* a view lists the step; source and target have not both confirmed the view */
  MOVE_GOING,  /* the source has its order */
  MOVE_LANDED, /* the order has been carried out; the next view makes the target full, or makes it the head */
  MOVE_FAILED, /* the order has failed; the next view undoes the step */
};

/* A change of the chain of some positions. The positions always lie within one arc of the view; from the
 * first step on they are exactly one arc. Moves do not overlap, with one exception: later moves may overlap a
 * move that has a step under way. They come behind it in the list, and wait until it has reached its goal or
 * is abandoned. */
struct chain_move {
  struct pawl_range positions;
  uint64_t goal[PWI_CHAIN_MAX]; /* the nodes, the head first; the order of the others does not matter */
  size_t goal_count;
  enum chain_move_state step;
  enum pwi_move_step order; /* the step under way, or the one tried last */
  uint64_t source, target;  /* nodes of that step */
  uint64_t id;              /* of the attempt; 0: none yet */
  uint64_t epoch;           /* of the view that lists the step */
  unsigned failures;        /* consecutive failed attempts */
  bool unwanted;            /* ends with the step under way */
  bool chosen;              /* set by decide_moves: the step begins with the view that is being built */
  bool is_over;             /* to be removed from the list */
  int64_t not_before;       /* the next attempt begins no earlier */
  int64_t deadline;         /* of a handover: other moves wait for it until then; PWI_NET_NEVER: not set yet */
};

/* Two nodes that are not made neighbours for a while, if there are other candidates. */
struct neighbour_conflict {
  struct pwi_plan_conflict between;
  int64_t until;
};

#define PWI_CONFLICTS 64

/* --- checkpoints ---------------------------------------------------------------------------------------- */

struct pwi_checkpoint_request {
  char directory[PWI_SAVE_PATH_MAX + 1];  /* "": the configured directory of the manager */
  char name[PWI_CHECKPOINT_NAME_MAX + 1]; /* "": the manager chooses one */
  bool incremental, pack;
  uint64_t rate; /* bytes per second; 0: no limit */
  bool periodic; /* made by the manager at its configured interval */
  uint32_t keep; /* periodic checkpoints that are kept; 0: all */
};

/* The result of the last checkpoint. */
struct pwi_checkpoint_result {
  uint64_t number; /* 0: there was no checkpoint */
  pawl_status status;
  uint64_t bytes;
  size_t files;
  char name[PWI_CHECKPOINT_NAME_MAX + 1], base[PWI_CHECKPOINT_NAME_MAX + 1];
  char directory[PWI_SAVE_PATH_MAX + 1];
  char why[256];
  uint64_t asker, ask; /* the sender that asked for it, and the number of its ask; 0: the manager itself */
};

struct pwi_checkpointing;

/* --- the manager ---------------------------------------------------------------------------------------- */

enum timer_kind {
  TIMER_PATIENCE = 1,
  TIMER_NODE,
  TIMER_SENDER,
  TIMER_PLAN,
  TIMER_MOVES,
  TIMER_APPLY,
  TIMER_NEWS,
  TIMER_SAVE,
  TIMER_HEARING,
  TIMER_PROBE,
  TIMER_SETTLE,
};

struct pwi_manager {
  struct pwi_manager_config config;
  char host[PWI_HELLO_HOST_MAX + 1];
  struct pwi_greeting greeting;
  struct pwi_messenger messenger;
  struct pwi_prober prober;
  struct pwi_ledger ledger;

  struct pwi_filter_totals filters; /* reported by clients */
  struct manager_peer *first_peer, *last_peer;
  struct manager_peer *buckets[PWI_MANAGER_BUCKETS];
  struct manager_node *nodes; /* in ascending order of ids, as in the ledger */
  size_t node_count, node_room;
  uint64_t presence_changes, last_inquiry;
  struct suspicion suspicion;
  int64_t returned_at;            /* when a server last came back while most servers were unreachable */
  struct manager_sender *senders; /* in ascending order of ids, as in the ledger */
  size_t sender_count, sender_room;
  uint64_t senders_gone; /* value of ledger.senders_gone when `senders` was last compared with the ledger */
  struct settle_question settling;

  struct news_topic topics[PWI_TOPICS];
  struct space_catalogue space_catalogues[PWI_MANAGER_SPACE_CATALOGUES]; /* the oldest is replaced first */
  size_t next_space_catalogue;
  struct pwi_fifo waiters; /* struct waiting_reply, with numbers that never decrease */

  struct pwi_fifo membership_steps; /* the last changes of the membership (manager/members.c) */
  uint64_t membership_since;        /* number of the membership before the first of them */
  size_t membership_history_bytes, membership_history_max;
  struct pwi_membership membership_settled; /* the settled edition, as clients have it */

  struct pwi_fifo decisions; /* struct decision */
  struct pwi_writer record;  /* the record of the first decision */
  struct pwi_writer change;  /* the change of an ask, while it is combined with the answer */
  bool deciding;             /* pwi_manager_work is running */
  bool recording;            /* a record was appended and is not yet safe and applied */
  bool replacing;            /* that record is a snapshot, which replaces all others */
  bool unapplied;            /* the record is safe, but there was no memory to apply it */
  uint64_t replace_at;       /* size of the journal in bytes at which a replacement is considered next */
  bool hearing;              /* after a restart: nothing is decided until the known nodes have joined */
  struct pwi_timer hearing_timer;
  pawl_status stopped; /* the journal failed, or is not the newest: nothing is decided any more */

  struct chain_move *moves;
  size_t move_count, move_room;
  uint32_t *begun; /* set by the survey: moves that may block others. It has room for `move_room` elements */
  size_t begun_count;
  uint64_t moves_done;
  bool moves_queued;  /* a decision on moves is in the queue */
  bool losses_queued; /* a decision on dead servers is in the queue */
  bool unfinished;    /* the last plan was not carried out in full: plan again when a server joins or is
                         lost */
  struct pwi_timer plan_timer, moves_timer;
  int64_t plan_pause;    /* until the next plan without a cause from outside; grows */
  int64_t patient_until; /* after a restart: no plan before this time, so that servers can come back */
  struct neighbour_conflict conflicts[PWI_CONFLICTS];
  size_t next_conflict;
  uint64_t uneven_reports; /* consecutive reports that show uneven load */
  int64_t balanced_at;     /* when balance alone was last a reason to plan; 0: never */

  struct pwi_checkpointing *checkpointing; /* NULL: none is under way */
  struct pwi_checkpoint_result checkpointed;
  uint64_t last_save; /* number of the last order to save */
  struct pwi_timer save_timer, checkpoint_timer;
};

/* manager/manager.c */
void pwi_manager_timer_set(struct pwi_manager *manager, int64_t delay, enum timer_kind kind, uint64_t id,
                           struct pwi_timer *timer);
void pwi_manager_timer_cancel(struct pwi_manager *manager, struct pwi_timer *timer);
struct manager_peer *pwi_manager_peer(const struct pwi_manager *manager, struct pwi_link link); /* NULL: none */
void pwi_manager_expect_join(struct pwi_manager *manager, struct manager_peer *peer);           /* in time */
void pwi_manager_close(struct pwi_manager *manager, struct manager_peer *peer, pawl_status why);
struct manager_node *pwi_manager_node(const struct pwi_manager *manager, uint64_t id);
struct manager_sender *pwi_manager_sender(const struct pwi_manager *manager, uint64_t id);

/* manager/decide.c */
void pwi_manager_queue(struct pwi_manager *manager, const struct decision *decision);
void pwi_manager_work(struct pwi_manager *manager);

/* Stops deciding for good. The caller logs the reason. */
void pwi_manager_stop(struct pwi_manager *manager, pawl_status why);
void pwi_manager_record_is_safe(void *manager, pawl_status status); /* called by the journal */

/* Reserves memory for one more node or sender, so that a record that adds one can be applied. */
PAWL_MUST_USE pawl_status pwi_manager_make_node_room(struct pwi_manager *manager);
PAWL_MUST_USE pawl_status pwi_manager_make_sender_room(struct pwi_manager *manager);

/* Adds and removes elements of `nodes` and `senders` so that they match the ledger. Memory for new ones has
 * been reserved. */
void pwi_manager_follow_ledger(struct pwi_manager *manager);

/* manager/join.c */
void pwi_manager_join(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size);

/* After a restart: wait for the known nodes to join. */
void pwi_manager_hear(struct pwi_manager *manager);
void pwi_manager_hear_end(struct pwi_manager *manager); /* all have joined, or the time is over */

/* manager/leave.c */
void pwi_manager_leave(struct pwi_manager *manager, struct manager_peer *peer);
void pwi_manager_note_leaving(const struct pwi_manager *manager, struct manager_node *node);
void pwi_manager_remove_sender(struct pwi_manager *manager, uint64_t sender); /* retires and forgets it */
void pwi_manager_sender_timer(struct pwi_manager *manager, uint64_t id);
void pwi_manager_check_sender(struct pwi_manager *manager, struct manager_sender *sender, int64_t delay);

/* It has no link; its grace begins after the delay. */
void pwi_manager_sender_lost(struct pwi_manager *manager, struct manager_sender *sender, int64_t delay);

/* Retires the sender unless it has a link: then PAWL_EXISTS. */
PAWL_MUST_USE pawl_status pwi_manager_decide_miss(struct pwi_manager *manager, struct decision *decision);

/* Retires the sender, also if it has a link. */
PAWL_MUST_USE pawl_status pwi_manager_decide_retire(struct pwi_manager *manager, struct decision *decision);
void pwi_manager_disconnect(struct pwi_manager *manager, uint64_t id); /* closes the link of a sender */
void pwi_manager_was_retired(struct pwi_manager *manager, uint64_t id, pawl_status status);

/* After a restart: starts the grace of nodes and senders. */
void pwi_manager_await_all(struct pwi_manager *manager);

/* Removes the node from the view if it is in no chain. */
void pwi_manager_remove_node(struct pwi_manager *manager, struct manager_node *node);

/* manager/space.c */
void pwi_manager_grant(struct pwi_manager *manager, const struct manager_node *node);
bool pwi_manager_hear_spaces(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size);
uint64_t pwi_manager_space_used(const struct pwi_manager *manager, const char *space);
PAWL_MUST_USE pawl_status pwi_manager_read_quota(const struct manager_peer *peer, struct pwi_reader *reader,
                                                 struct decision *decision);
PAWL_MUST_USE pawl_status pwi_manager_check_quota(const struct pwi_manager *manager, const struct pwi_entry *entry);

/* manager/unsettled.c */
void pwi_manager_settle_begin(struct pwi_manager *manager);
void pwi_manager_settle_fini(struct pwi_manager *manager);
void pwi_manager_settle_later(struct pwi_manager *manager, uint64_t sender); /* the sender was retired */
void pwi_manager_settle_timer(struct pwi_manager *manager);
bool pwi_manager_hear_settled(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size);
void pwi_manager_settle_lost(struct pwi_manager *manager, const struct manager_peer *peer); /* its link is down */
void pwi_manager_expire(struct pwi_manager *manager); /* forgets retired senders whose time is over */

/* manager/loss.c */
void pwi_manager_server_lost(struct pwi_manager *manager, struct manager_node *node, pawl_status why);
void pwi_manager_peer_lost(struct pwi_manager *manager, struct manager_peer *peer, pawl_status why);
void pwi_manager_node_timer(struct pwi_manager *manager, uint64_t id);
void pwi_manager_complain(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size);
void pwi_manager_note_conflict(struct pwi_manager *manager, uint64_t a, uint64_t b); /* b 0: every node */

/* A server has lately complained of lack of memory. */
bool pwi_manager_is_starved(const struct pwi_manager *manager);

/* Sets the timer of a node. */
void pwi_manager_look_after(struct pwi_manager *manager, struct manager_node *node, int64_t delay);

/* manager/probe.c */
bool pwi_manager_suspects_itself(struct pwi_manager *manager);

/* How late a timer is. After a standstill of the manager, messages may arrive before its timers fire. */
int64_t pwi_manager_lateness(const struct pwi_manager *manager, int64_t due);

/* The node has had no link for longer than its grace. */
bool pwi_manager_is_past_grace(const struct pwi_manager *manager, const struct manager_node *node);

/* The node is dead by the rules of manager/probe.c. */
bool pwi_manager_is_lost(struct pwi_manager *manager, const struct manager_node *node);

/* The node has no link, but has not been without one for long. */
bool pwi_manager_may_return(struct pwi_manager *manager, const struct manager_node *node);
void pwi_manager_link_lost(struct pwi_manager *manager, struct manager_node *node, bool was_silent);
void pwi_manager_inquire(struct pwi_manager *manager, struct manager_node *node);
bool pwi_manager_check_unlinked(struct pwi_manager *manager, struct manager_node *node);
void pwi_manager_server_returned(struct pwi_manager *manager, bool was_suspect);
void pwi_manager_probed(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size);
void pwi_manager_tried(void *manager, const struct pwi_probe *probe); /* called by the prober */

/* manager/give_up.c: the decision's `id` is a node, and `size` is 1 if data may be lost. On success `secret`
 * is 1, and `entry.id` is the number of arcs that start empty. */
PAWL_MUST_USE pawl_status pwi_manager_decide_give_up(struct pwi_manager *manager, struct decision *decision);
void pwi_manager_gave_up(struct pwi_manager *manager);

/* manager/access.c */
PAWL_MUST_USE pawl_status pwi_manager_admit(const struct pwi_manager *manager, const struct pwi_link_info *info,
                                            struct manager_peer *peer); /* fills in peer->who */
void pwi_manager_audit(const struct pwi_manager *manager, const struct peer_identity *who, const char *verb,
                       const char *object, pawl_status outcome);
void pwi_manager_audit_ask(const struct pwi_manager *manager, const struct peer_identity *who, uint64_t what,
                           const char *object, pawl_status outcome);
void pwi_manager_audit_decision(const struct pwi_manager *manager, const struct decision *decision,
                                pawl_status outcome);

/* manager/answer.c */

/* True if the ask was answered before: `decision` then concludes with `*status_out`. */
bool pwi_manager_recall(struct pwi_manager *manager, struct decision *decision, pawl_status *status_out);

/* Writes the answer of a decision, and the change in manager->record, as one record. Error:
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manager_record_answer(struct pwi_manager *manager, struct decision *decision,
                                                    pawl_status status);
pawl_status pwi_manager_answer(const struct pwi_manager *manager, const struct decision *decision);

/* Finds the sender for which the answer to an ask is remembered; 0: none. Errors: PAWL_FORBIDDEN;
 * PAWL_OUTCOME_UNKNOWN if the ledger has forgotten the sender that asked first. */
PAWL_MUST_USE pawl_status pwi_manager_asker(const struct pwi_manager *manager, const struct manager_peer *peer,
                                            const struct pwi_ask_terms *terms, uint64_t *asker_out);

/* manager/ask.c */
void pwi_manager_conclude_ask(struct pwi_manager *manager, const struct decision *decision, pawl_status status);
void pwi_manager_ask(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size);

/* manager/saving/save.c, manager/saving/orders.c */
void pwi_manager_checkpoint_asked(struct pwi_manager *manager, struct manager_peer *peer, struct pwi_reader *reader,
                                  struct decision *decision);
PAWL_MUST_USE pawl_status pwi_manager_saved(struct pwi_manager *manager, struct manager_peer *peer, const void *payload,
                                            size_t size);
void pwi_manager_save_timer(struct pwi_manager *manager, uint64_t which);
void pwi_manager_checkpoints_begin(struct pwi_manager *manager); /* starts periodic checkpoints */
void pwi_manager_save_fini(struct pwi_manager *manager);
struct json_t;
bool pwi_manager_put_checkpoint(const struct pwi_manager *manager, struct json_t *root);

/* manager/members.c */
#define PWI_MEMBERSHIP_HISTORY ((size_t)1 << 20) /* maximum bytes of changes that are kept */
void pwi_manager_membership_begin(struct pwi_manager *manager);
void pwi_manager_membership_fini(struct pwi_manager *manager);
void pwi_manager_membership_changed(struct pwi_manager *manager, const void *record, size_t size, uint64_t before);
void pwi_manager_membership_settle(struct pwi_manager *manager, uint64_t number);

/* Takes note of the membership that a joining peer has already, if all changes since then are kept. */
void pwi_manager_membership_resume(struct pwi_manager *manager, struct manager_peer *peer);

/* Writes the membership news for a peer. Returns the type of the section, or 0 if there are none.
 * `*number_out` is the number that the peer then has. */
uint16_t pwi_manager_membership_news(struct pwi_manager *manager, const struct manager_peer *peer,
                                     struct pwi_writer *writer, uint64_t *number_out);

/* manager/news.c */
void pwi_manager_announce(struct pwi_manager *manager);
void pwi_manager_settle(struct pwi_manager *manager);
void pwi_manager_send_news(struct pwi_manager *manager, struct manager_peer *peer);
void pwi_manager_say(struct pwi_manager *manager, struct manager_peer *peer, enum pwi_say kind, uint64_t task,
                     const struct pwi_writer *payload);
void pwi_manager_say_joined(struct pwi_manager *manager, struct manager_peer *peer, pawl_status status,
                            uint64_t secret);
void pwi_manager_say_reply(struct pwi_manager *manager, struct manager_peer *peer, uint64_t task, pawl_status status,
                           uint64_t id);

/* Sends the message of `waiter` once the present numbers are settled. `waiter->numbers` is not read. */
void pwi_manager_wait(struct pwi_manager *manager, const struct waiting_reply *waiter);
struct news_numbers pwi_manager_numbers(const struct pwi_manager *manager);
void pwi_manager_news_fini(struct pwi_manager *manager);

/* manager/planning/draft.c: nodes and arcs of the next view. Strings are borrowed from the view that the
 * draft was opened from. */
struct view_draft {
  struct pwi_view_node *nodes;
  size_t node_count, node_room;
  struct pwi_arc *arcs;
  size_t arc_count, arc_room;
};

PAWL_MUST_USE pawl_status pwi_draft_open(const struct pwi_view *view, size_t more_arcs, struct view_draft *draft_out);
void pwi_draft_close(struct view_draft *draft);
struct pwi_view_node *pwi_draft_node(struct view_draft *draft, uint64_t id);

/* pwi_draft_open has reserved memory for one node. */
void pwi_draft_add_node(struct view_draft *draft, const struct pwi_view_node *node);

/* The node must be in no chain. */
void pwi_draft_remove_node(struct view_draft *draft, uint64_t id);
bool pwi_draft_has_member(const struct view_draft *draft, uint64_t id);

/* Makes these positions, which have one chain, exactly one arc: cuts arcs at both ends and joins them in
 * between. Adds up to two arcs. Earlier results become invalid because arcs move in memory. */
struct pwi_arc *pwi_draft_arc(struct view_draft *draft, struct pawl_range positions);

/* Removes a node from the chain, unless it is the last full member. If a full member is removed, filling
 * members are removed too, because the copy that they were sent is no longer complete. Returns false if
 * nothing has changed. */
bool pwi_arc_drop(struct pwi_arc *arc, uint64_t node);

/* Removes nodes that are down from all chains that have a connected full member. Returns true if there were
 * any. */
bool pwi_draft_drop_dead(const struct pwi_manager *manager, struct view_draft *draft);

/* True if pwi_draft_drop_dead would remove a node. */
bool pwi_manager_has_dead(const struct pwi_manager *manager);

/* Removes all filling members. Returns true if there were any. */
bool pwi_draft_end_fills(struct view_draft *draft);

/* True if pwi_draft_merge would join arcs. */
bool pwi_view_has_splinters(const struct pwi_view *view, uint32_t points);

/* Joins narrow neighbouring arcs that have the same chain. Returns true if there were any. */
bool pwi_draft_merge(struct view_draft *draft, uint32_t points);

/* Writes a VIEW record, or a NODE record if `added` is not NULL. */
PAWL_MUST_USE pawl_status pwi_draft_record(struct pwi_manager *manager, const struct view_draft *draft,
                                           uint64_t last_move, const struct pwi_ledger_node *added);

static inline void pwi_arc_remove(struct pwi_arc *arc, size_t place) {
  for (size_t i = place; i + 1 < arc->count; i++) arc->chain[i] = arc->chain[i + 1];
  arc->chain[--arc->count] = (struct pwi_member){0};
}

/* manager/step.c */
enum chain_step_kind {
  STEP_NONE,     /* the goal cannot be reached: a node of the goal can no longer become a member */
  STEP_WAIT,     /* a member is being filled, or a node of the step is not connected now */
  STEP_DONE,     /* the chain is the goal */
  STEP_CHANGE,   /* one view, at once */
  STEP_FILL,     /* the source fills the target */
  STEP_HANDOVER, /* the source hands over to the target; then the view changes */
};

struct chain_step {
  enum chain_step_kind kind;
  uint64_t source, target;
  struct pwi_arc after; /* CHANGE and HANDOVER: the arc afterwards; all members of its chain are full */
};

struct chain_step pwi_manager_next_step(const struct pwi_manager *manager, const struct pwi_arc *arc,
                                        const uint64_t *goal, size_t goal_count);

/* The node has a link and is not marked down. */
bool pwi_manager_is_connected(const struct pwi_manager *manager, uint64_t node);
bool pwi_manager_is_welcome(const struct pwi_manager *manager, uint64_t node); /* it can be given arcs */

/* manager/move.c */
void pwi_manager_moves_poke(struct pwi_manager *manager); /* checks which moves can proceed */

/* The link of the node is down: fails the steps of which it is the target and, if `as_source`, the source. */
void pwi_manager_moves_lost(struct pwi_manager *manager, uint64_t node, bool as_source);
void pwi_manager_moves_unwanted(struct pwi_manager *manager, uint64_t node); /* begins no move to this node */
void pwi_manager_moved(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size);

/* After a restart: undoes the steps that were under way. */
void pwi_manager_tidy(struct pwi_manager *manager);

/* A server has confirmed a view: sends due orders. */
void pwi_manager_moves_heard(struct pwi_manager *manager);
void pwi_move_fail(struct pwi_manager *manager, struct chain_move *move, pawl_status why);

#define PWI_MOVE_PAUSE_NS INT64_C(250000000) /* pause after a failure; doubles each time */

/* manager/work.c */
/* The next action for a move. */
enum move_work {
  WORK_WAIT,
  WORK_REMOVE,  /* the move has reached its goal, or is no longer wanted */
  WORK_ABANDON, /* the move cannot reach its goal: plan again */
  WORK_BEGIN,   /* begin the next step, which needs an order */
  WORK_CHANGE,  /* take the next step, which needs only a view */
  WORK_ADMIT,   /* the target has been filled: make it full */
  WORK_SWITCH,  /* the head has handed over: change the view */
  WORK_PROCEED, /* the view shows that the step is done */
  WORK_VOID,    /* the view shows that the step has become impossible */
  WORK_UNDO,    /* the step has failed, and the view still lists it */
  WORK_RECOVER, /* the step has failed, and the view no longer lists it */
};

/* Counts the steps of each node and lists moves that block others. To be called before
 * pwi_manager_work_on. */
void pwi_manager_survey(struct pwi_manager *manager);

/* Adds a step that begins after the survey. */
void pwi_manager_note_chosen(struct pwi_manager *manager, const struct chain_move *move);

/* Returns the next action for the move. BEGIN and CHANGE write the next step. */
enum move_work pwi_manager_work_on(const struct pwi_manager *manager, const struct chain_move *move,
                                   struct chain_step *step_out);
bool pwi_work_needs_view(enum move_work work);
bool pwi_manager_needs_view(struct pwi_manager *manager); /* a move waits for a new view */

/* A handover is under way and may still succeed. */
bool pwi_manager_must_wait(const struct pwi_manager *manager);
bool pwi_manager_is_busy(const struct pwi_manager *manager);   /* chains are about to change */
bool pwi_manager_may_merge(const struct pwi_manager *manager); /* no step is under way */
bool pwi_manager_is_urgent(
    const struct pwi_manager *manager); /* a chain is short, and a member is being filled or could be */
bool pwi_move_is_urgent(const struct pwi_manager *manager, const struct chain_move *move); /* its chain is short */

/* The arc of a move; NULL if its positions are not within one arc. */
const struct pwi_arc *pwi_move_arc(const struct pwi_view *view, const struct chain_move *move, bool *exact_out);

/* manager/carry.c */
PAWL_MUST_USE pawl_status pwi_manager_decide_moves(struct pwi_manager *manager, struct decision *decision);

static inline bool pwi_move_is_active(const struct chain_move *move) {
  return move->step == MOVE_LISTED || move->step == MOVE_GOING || move->step == MOVE_LANDED;
}

/* manager/planning/plan.c */
/* Assigns the first arcs, or plans after a quiet period. */
void pwi_manager_node_came(struct pwi_manager *manager);
void pwi_manager_plan_later(struct pwi_manager *manager);
void pwi_manager_plan_timer(struct pwi_manager *manager);

/* Plans for missing replicas, draining servers and new servers; if `for_balance`, also for even load. */
PAWL_MUST_USE pawl_status pwi_manager_plan(struct pwi_manager *manager, bool for_balance);
size_t pwi_manager_processes(const struct pwi_manager *manager); /* processes that can be given arcs */

/* Arcs per node. Unless configured: with replicas, one for each process that could take over, up to the
 * default of the planner, because every arc costs messages of its own. */
uint32_t pwi_manager_points(const struct pwi_manager *manager);

/* No move is under way: check for chains to repair. */
void pwi_manager_watch_chains(struct pwi_manager *manager);
/* `holds` are two u64, or NULL from a server of an earlier version. */
void pwi_manager_report(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size,
                        const uint8_t *holds);

/* manager/planning/goal.c */

/* Opens a draft of the view as it will be when all steps under way have succeeded. */
PAWL_MUST_USE pawl_status pwi_manager_open_outlook(const struct pwi_manager *manager, struct view_draft *draft_out);

/* Replaces the moves that have not begun by those that the plan needs. */
PAWL_MUST_USE pawl_status pwi_manager_want_plan(struct pwi_manager *manager, const struct view_draft *outlook,
                                                const struct pwi_plan *plan);
PAWL_MUST_USE pawl_status pwi_manager_order_move(struct pwi_manager *manager, struct pawl_range positions,
                                                 uint64_t target);

/* manager/planning/balance.c: to be called for each report. */
#define PWI_BALANCE_PROCESSES 256 /* larger clusters are rebalanced by operators only */
void pwi_manager_watch_balance(struct pwi_manager *manager);

#endif
