/* What the files of the manager share.
 *
 *   manager/manager.c         life, the actor's callbacks, peers
 *   manager/decide.c  the queue of decisions
 *   manager/join.c    who comes: servers and clients
 *   manager/leave.c   who goes: draining, retirement
 *   manager/unsettled.c  which retired senders are kept, and for how long
 *   manager/space.c   quotas of spaces
 *   manager/loss.c    servers that are lost, and complaints of neighbours
 *   manager/probe.c   whether a server that is missing is lost: witnesses
 *   manager/give_up.c servers that will not come back, and what only they had
 *   manager/ask.c     what clients ask for
 *   manager/members.c  the membership, as the changes since what a peer has
 *   manager/access.c  what they may ask for, and the audit
 *   manager/answer.c  what was answered, for those who ask again
 *   manager/news.c    who is told what, when, and who is waiting for whom to have heard of it
 *   manager/planning/draft.c   the next view, in the making
 *   manager/step.c    from the chain that is to the chain that should be: the next step
 *   manager/move.c    steps under way: orders, and what comes of them
 *   manager/work.c    what is to be done with each
 *   manager/carry.c   doing it: from view to view
 *   manager/planning/plan.c    plans: when, and from what
 *   manager/planning/goal.c    from a plan, or an operator's order, to moves
 *   manager/saving/save.c    checkpoints; with files of its own, see manager/saving/saving.h
 *   manager/status.c  the state, for people
 *
 * DECISIONS. All that changes the ledger is decided in a queue, one at a time. When its turn has come, `decide` looks at
 * the ledger and either writes a record or finds that there is nothing (more) to be done. A record is appended to the
 * journal, applied when it is safe, and announced; then `decide` is asked again, so a decision may take several steps and
 * need not remember how far it has got. In the end `conclude` is told how it went.
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
#define PWI_MANAGER_ASKS_MAX 1024 /* of one peer, in the queue */

/* Whoever has lost us tries at least once a second to come back: after a start, everybody has that time besides their
 * grace. */
#define PWI_MANAGER_RETURN_NS INT64_C(1250000000)

#define PWI_MANAGER_GATHER_NS INT64_C(1000000) /* that the links of one process need to break */

/* --- numbers and editions ------------------------------------------------------------------------------------------ */

/* The three things that are announced. */
enum { PWI_TOPIC_VIEW, PWI_TOPIC_CATALOGUE, PWI_TOPIC_MEMBERSHIP, PWI_TOPICS };

struct numbers {
  uint64_t of[PWI_TOPICS];
};

/* One edition of a topic, encoded once for all who are sent it; but for the membership's, which has a number and no bytes. */
struct edition {
  size_t references;
  uint64_t number;
  size_t size;
  unsigned char bytes[];
};

/* The newest goes to servers at once. Clients are sent the *settled* one, which all servers have that are up. The *next*
 * is the one that becomes settled when they do; it is not replaced meanwhile, so that clients do not wait for ever
 * where changes come in quick succession. */
struct topic {
  struct edition *newest, *next, *settled;
};

/* The settled catalogue as a key of one space is shown it: with the names of that space alone. */
struct narrow {
  char space[PWI_SPACE_MAX + 1];
  struct edition *whole, *edition; /* both NULL: the place is free */
};

#define PWI_MANAGER_NARROWS 16

/* --- those we know ------------------------------------------------------------------------------------------------- */

enum peer_state {
  PEER_NEW,     /* has to say JOIN */
  PEER_JOINING, /* has said it */
  PEER_IN,
  PEER_OUT, /* has left, was replaced by a newer link, or is being closed */
};

/* Who is at the other end of a link, and may do what; remembered with what was asked, for the audit. */
struct who {
  char identity[PWI_NET_IDENTITY_MAX];
  char address[PWI_NET_ADDRESS_MAX];
  struct pwi_rights rights;
};

/* The other end of a link. */
struct peer {
  struct peer *next, *previous; /* all of them, in order of arrival */
  struct peer *chained;         /* those in one bucket */
  struct pwi_link link;
  struct pwi_peering peering;
  struct who who;
  struct pwi_control control;
  enum peer_state state;
  struct pwi_timer patience; /* until it must have said JOIN */
  bool is_server;
  uint64_t id;               /* node or sender; 0: none */
  size_t asks;               /* in the queue of decisions */
  struct numbers knew;       /* when it said JOIN */
  struct numbers sent, have; /* what it was told, and what it has confirmed */
  uint64_t settle;           /* the question of manager/unsettled.c that it has not answered; 0: none */
  struct pwi_join join;
};

/* What a node last reported. */
struct reported {
  int64_t time;
  struct pwi_report report;
};

#define PWI_WITNESSES 3

struct witness {
  uint64_t node;
  bool is_silent; /* it has found that the other is */
};

/* What others were asked about a node that is missing. */
struct inquiry {
  uint64_t number;
  size_t count;
  struct witness witnesses[PWI_WITNESSES];
};

/* Whether most servers are missing; looked at again when the view or who is here has changed. */
struct suspicion {
  uint64_t epoch, changes;
  bool is_suspect;
};

/* Of each node in the ledger. */
struct node {
  uint64_t id;
  struct peer *peer; /* NULL: not here now */
  struct pwi_timer
      timer;       /* while it is not: until it is looked at; once down, until it is struck off if it holds nothing */
  int64_t lost_at; /* when its link broke, or we started */
  bool was_silent; /* because nothing was heard of it */
  struct inquiry inquiry;
  enum pwi_verdict verdict; /* of those who were asked */
  bool is_own_verdict;      /* of ourselves alone */
  bool declared;            /* it has been marked down: what follows from it is done */
  bool leaving, striking;   /* it has said LEAVE; a decision to strike it off is queued */
  bool heard;               /* it has come back after our own start */
  unsigned gives, takes;    /* of the survey: steps whose source, or target, it is */
  size_t reports;           /* 0, 1 or 2: how many are kept */
  struct reported last, before;
  struct pwi_space_bytes *spaces; /* as it said last */
  size_t space_count;
  struct pwi_load *loads; /* of the last report */
  size_t load_count;
};

/* Of each sender in the ledger. */
struct sender {
  uint64_t id;
  struct peer *peer;
  struct pwi_timer timer; /* while it is not here: until it is retired; then, until it is forgotten */
  int64_t forget_at;      /* once retired: when, at the latest; 0: not retired */
  uint64_t settled;       /* up to this number it has had all answers, as it says */
  uint64_t heard;         /* it has had the replies to all asks up to this number, as it says */
  bool is_wanted;         /* its client is back as somebody else, and collects its clocks */
};

/* What is asked of all request handlers, manager/unsettled.c. */
struct settling {
  struct pwi_fifo candidates; /* uint64_t: retired senders that nobody was asked about yet */
  uint64_t number, epoch;     /* of the question under way, and of the view in which it was asked; 0: none is */
  uint64_t last_number;
  size_t awaited,
      count; /* request handlers that have not answered; senders of which nothing unsettled has been found */
  struct pwi_settle senders[PWI_SETTLE_MAX];
  struct pwi_timer timer;
  bool is_expiring; /* a decision on those whose time is over is queued */
};

/* --- waiting and deciding ------------------------------------------------------------------------------------------ */

/* Somebody who is told something once these numbers are settled. */
struct waiter {
  struct pwi_link link;
  struct numbers numbers;
  enum pwi_say kind; /* JOINED, REPLY or LEFT */
  uint64_t task;
  pawl_status status;
  uint64_t id; /* 0: the reply has none */
};

struct decision {
  /* Writes a record to manager->record, or nothing. An error ends the decision. Must not queue others, but for orders that an ask
   * gives (MOVE, BALANCE): `decision` is not to be touched after that. */
  pawl_status (*decide)(struct pwi_manager *manager, struct decision *decision);
  void (*conclude)(struct pwi_manager *manager, const struct decision *decision,
                   pawl_status status); /* NULL: nothing */
  struct pwi_link link;                 /* who asked */
  uint64_t task, ask;                   /* of an ask: its number, and which it is */
  struct who who;                       /* and who asked, also if they are gone */
  uint64_t asker;                /* of an ask whose answer is remembered: the sender it is remembered for; else 0 */
  uint64_t heard;                /* it has had the replies to its asks up to this number */
  bool goes_on;                  /* set by `decide` with a record that is not the last one of the ask */
  bool is_recalled, is_answered; /* it is known not to have been answered; its answer is in the ledger */
  pawl_status answer;
  uint64_t id, secret; /* of a node, sender or vector */
  struct pwi_complaint complaint;
  uint32_t size;
  struct pwi_entry entry;
  char address[PWI_LABEL_MAX + 1];
};

/* --- moves --------------------------------------------------------------------------------------------------------- */

enum move_step {
  MOVE_WANTED, /* the next step will begin when those concerned have time */
  MOVE_LISTED, /* there is a view for it: both have to hear of it */
  MOVE_GOING,  /* the source has its order */
  MOVE_LANDED, /* it has been carried out: a view takes the target in, or makes it the head */
  MOVE_FAILED, /* a view has to take it back */
};

/* Positions whose chain is to become another one. They always lie within one arc of the view and, from the first step on,
 * are one. Moves do not overlap, except that one which has a step under way may be overlapped by those that were wanted
 * later: they come behind it in the list, and wait until it has reached its goal or is given up. */
struct move {
  struct pawl_range positions;
  uint64_t goal[PWI_CHAIN_MAX]; /* the nodes, the head first; the order of the others does not matter */
  size_t goal_count;
  enum move_step step;
  enum pwi_move_step order; /* the step under way, or tried last; and who is concerned: */
  uint64_t source, target;
  uint64_t id;    /* of the attempt; 0: none yet */
  uint64_t epoch; /* of its view */
  unsigned failures;
  bool unwanted; /* ends with the step under way */
  bool chosen;   /* of decide_moves: the step begins with the view that is being made */
  bool is_over;  /* to be removed from the list */
  int64_t not_before;
  int64_t deadline; /* of a handover: others wait for it */
};

/* Two nodes that are not made neighbours for a while, if there are others. */
struct quarrel {
  struct pwi_plan_quarrel between;
  int64_t until;
};

#define PWI_QUARRELS 64

/* --- checkpoints ---------------------------------------------------------------------------------------------------- */

struct pwi_checkpoint_wish {
  char directory[PWI_SAVE_PATH_MAX + 1];  /* "": the manager's own */
  char name[PWI_CHECKPOINT_NAME_MAX + 1]; /* "": it chooses one */
  bool incremental, pack;
  uint64_t rate;
  bool periodic; /* made by the manager itself, from time to time; */
  uint32_t keep; /* so many of these are kept, 0: all */
};

/* How the last one ended. */
struct pwi_checkpoint_result {
  uint64_t number; /* 0: there was none */
  pawl_status status;
  uint64_t bytes;
  size_t files;
  char name[PWI_CHECKPOINT_NAME_MAX + 1], base[PWI_CHECKPOINT_NAME_MAX + 1];
  char directory[PWI_SAVE_PATH_MAX + 1];
  char why[256];
  uint64_t asker, ask; /* who asked for it, and in which ask; 0: the manager itself */
};

struct pwi_checkpointing;

/* --- the manager --------------------------------------------------------------------------------------------------- */

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

  struct pwi_filter_totals filters; /* what clients have told */
  struct peer *first_peer, *last_peer;
  struct peer *buckets[PWI_MANAGER_BUCKETS];
  struct node *nodes; /* by rising id, as in the ledger */
  size_t node_count, node_room;
  uint64_t presence_changes, last_inquiry;
  struct suspicion suspicion;
  int64_t hope_at;        /* when somebody came back to us while most were missing */
  struct sender *senders; /* likewise */
  size_t sender_count, sender_room;
  uint64_t senders_gone; /* as far as `senders` follows the ledger */
  struct settling settling;

  struct topic topics[PWI_TOPICS];
  struct narrow narrows[PWI_MANAGER_NARROWS]; /* the last that were made, one after the other */
  size_t next_narrow;
  struct pwi_fifo waiters; /* struct waiter, with numbers that never fall */

  struct pwi_fifo membership_steps; /* manager/members.c: the last changes, and the number before them */
  uint64_t membership_since;
  size_t membership_history_bytes, membership_history_max;
  struct pwi_membership membership_settled; /* as clients know it */

  struct pwi_fifo decisions; /* struct decision */
  struct pwi_writer record;  /* of the first of them; */
  struct pwi_writer change;  /* and what it says besides the answer to an ask, while it is written */
  bool deciding;             /* inside the loop */
  bool recording;            /* a record is on its way to be safe and applied */
  bool replacing;            /* what is on its way is no decision: it takes the place of all records */
  bool unapplied;            /* it is safe, and there was no memory to apply it */
  uint64_t replace_at;       /* bytes that the journal may grow to until it is looked at whether to replace them */
  bool hearing;              /* after a start: nothing is decided until those we know have said how far they are */
  struct pwi_timer hearing_timer;
  pawl_status stopped; /* the journal failed, or is not the newest: nothing is decided any more */

  struct move *moves;
  size_t move_count, move_room;
  uint32_t *begun; /* of the survey: those that may stand in the way of others. As many as there is room for moves */
  size_t begun_count;
  uint64_t moves_done;
  bool moves_queued;  /* a decision on moves is in the queue */
  bool losses_queued; /* likewise on those who are lost */
  bool unfinished;    /* the last plan could not be carried out in full: make another when somebody comes or goes */
  struct pwi_timer plan_timer, moves_timer;
  int64_t plan_pause;    /* until the next plan that nobody has given occasion to; grows */
  int64_t patient_until; /* after a start: everybody has this long to come back, and nothing is planned */
  struct quarrel quarrels[PWI_QUARRELS];
  size_t next_quarrel;
  uint64_t uneven_reports; /* in a row */
  int64_t balanced_at;     /* when balance alone was last a reason to plan; 0: never */

  struct pwi_checkpointing *checkpointing; /* NULL: none is under way */
  struct pwi_checkpoint_result checkpointed;
  uint64_t last_save; /* order */
  struct pwi_timer save_timer, checkpoint_timer;
};

/* manager/manager.c */
void pwi_manager_timer_set(struct pwi_manager *manager, int64_t delay, enum timer_kind kind, uint64_t id,
                           struct pwi_timer *timer);
void pwi_manager_timer_cancel(struct pwi_manager *manager, struct pwi_timer *timer);
struct peer *pwi_manager_peer(const struct pwi_manager *manager, struct pwi_link link); /* NULL: it is gone */
void pwi_manager_expect_join(struct pwi_manager *manager, struct peer *peer);           /* from now on, for a while */
void pwi_manager_close(struct pwi_manager *manager, struct peer *peer, pawl_status why);
struct node *pwi_manager_node(const struct pwi_manager *manager, uint64_t id);
struct sender *pwi_manager_sender(const struct pwi_manager *manager, uint64_t id);

/* manager/decide.c */
void pwi_manager_queue(struct pwi_manager *manager, const struct decision *decision);
void pwi_manager_work(struct pwi_manager *manager);
void pwi_manager_stop(struct pwi_manager *manager, pawl_status why); /* for good; whoever calls says why in the log */
void pwi_manager_record_is_safe(void *manager, pawl_status status);  /* for the journal */

/* Room for one node or sender more, so that a record that adds one can be applied. */
PAWL_MUST_USE pawl_status pwi_manager_make_node_room(struct pwi_manager *manager);
PAWL_MUST_USE pawl_status pwi_manager_make_sender_room(struct pwi_manager *manager);

/* Brings `nodes` and `senders` in line with the ledger. There is room for what is new. */
void pwi_manager_follow_ledger(struct pwi_manager *manager);

/* manager/join.c */
void pwi_manager_join(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size);
void pwi_manager_hear(struct pwi_manager *manager);     /* after a start: decide nothing yet */
void pwi_manager_hear_end(struct pwi_manager *manager); /* or when all have come */

/* manager/leave.c */
void pwi_manager_leave(struct pwi_manager *manager, struct peer *peer);
void pwi_manager_part_with(struct pwi_manager *manager, uint64_t sender); /* retired and forgotten */
void pwi_manager_sender_timer(struct pwi_manager *manager, uint64_t id);
PAWL_MUST_USE pawl_status pwi_manager_decide_miss(struct pwi_manager *manager, struct decision *decision);
PAWL_MUST_USE pawl_status pwi_manager_decide_retire(struct pwi_manager *manager, struct decision *decision);
void pwi_manager_show_out(struct pwi_manager *manager, uint64_t id);
void pwi_manager_was_retired(struct pwi_manager *manager, uint64_t id, pawl_status status);
void pwi_manager_await_all(struct pwi_manager *manager); /* after a start: everybody we know has their grace */
void pwi_manager_strike(struct pwi_manager *manager, struct node *node); /* a node that holds nothing and is leaving */

/* manager/space.c */
void pwi_manager_grant(struct pwi_manager *manager, const struct node *node);
bool pwi_manager_hear_spaces(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size);
uint64_t pwi_manager_space_used(const struct pwi_manager *manager, const char *space);
PAWL_MUST_USE pawl_status pwi_manager_read_quota(const struct peer *peer, struct pwi_reader *reader,
                                                 struct decision *decision);
PAWL_MUST_USE pawl_status pwi_manager_check_quota(const struct pwi_manager *manager, const struct pwi_entry *entry);

/* manager/unsettled.c */
void pwi_manager_settle_begin(struct pwi_manager *manager);
void pwi_manager_settle_fini(struct pwi_manager *manager);
void pwi_manager_settle_later(struct pwi_manager *manager, uint64_t sender); /* it was retired */
void pwi_manager_settle_timer(struct pwi_manager *manager);
bool pwi_manager_hear_settled(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size);
void pwi_manager_settle_lost(struct pwi_manager *manager, const struct peer *peer); /* its link is down */
void pwi_manager_expire(struct pwi_manager *manager); /* the time of some is over that were kept */

/* manager/loss.c */
void pwi_manager_server_lost(struct pwi_manager *manager, struct node *node, pawl_status why);
void pwi_manager_peer_lost(struct pwi_manager *manager, struct peer *peer, pawl_status why);
void pwi_manager_node_timer(struct pwi_manager *manager, uint64_t id);
void pwi_manager_complain(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size);
void pwi_manager_note_quarrel(struct pwi_manager *manager, uint64_t a, uint64_t b); /* b 0: with anybody */
bool pwi_manager_is_starved(const struct pwi_manager *manager); /* somebody has said lately that it has no memory */

void pwi_manager_look_after(struct pwi_manager *manager, struct node *node, int64_t delay); /* sets its timer */

/* manager/probe.c */
bool pwi_manager_suspects_itself(struct pwi_manager *manager);
bool pwi_manager_is_away(const struct pwi_manager *manager, const struct node *node); /* for longer than its grace */
bool pwi_manager_is_lost(struct pwi_manager *manager, const struct node *node);       /* beyond reasonable doubt */
bool pwi_manager_may_return(struct pwi_manager *manager, const struct node *node);    /* missing, and not for long */
void pwi_manager_miss(struct pwi_manager *manager, struct node *node, bool was_silent);
void pwi_manager_inquire(struct pwi_manager *manager, struct node *node);
bool pwi_manager_look_at_missing(struct pwi_manager *manager, struct node *node);
void pwi_manager_welcome_back(struct pwi_manager *manager, bool was_suspect);
void pwi_manager_probed(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size);
void pwi_manager_tried(void *manager, const struct pwi_probe *probe); /* for the prober */

/* manager/give_up.c: `id` is a node, `size` 1 if data may be lost; in the end `secret` is 1, and `entry.id` says how many
 * arcs begin anew. */
PAWL_MUST_USE pawl_status pwi_manager_decide_give_up(struct pwi_manager *manager, struct decision *decision);
void pwi_manager_gave_up(struct pwi_manager *manager);

/* manager/access.c */
PAWL_MUST_USE pawl_status pwi_manager_admit(const struct pwi_manager *manager, const struct pwi_link_info *info,
                                            struct peer *peer); /* fills in who it is */
void pwi_manager_audit(const struct pwi_manager *manager, const struct who *who, const char *verb, const char *object,
                       pawl_status outcome);
void pwi_manager_audit_ask(const struct pwi_manager *manager, const struct who *who, uint64_t what, const char *object,
                           pawl_status outcome);
void pwi_manager_audit_decision(const struct pwi_manager *manager, const struct decision *decision,
                                pawl_status outcome);
/* manager/answer.c: asks are carried out at most once. */

/* True if the ask was answered before: `decision` then concludes with `*status_out`. */
bool pwi_manager_recall(struct pwi_manager *manager, struct decision *decision, pawl_status *status_out);

/* Puts the answer of a decision, and the change in manager->record, into one record. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manager_record_answer(struct pwi_manager *manager, struct decision *decision,
                                                    pawl_status status);
pawl_status pwi_manager_answer(const struct pwi_manager *manager, const struct decision *decision);

/* Who an ask is remembered for; 0: nobody. PAWL_FORBIDDEN; PAWL_OUTCOME_UNKNOWN: nothing is known any more of the id that asked first. */
PAWL_MUST_USE pawl_status pwi_manager_asker(const struct pwi_manager *manager, const struct peer *peer,
                                            const struct pwi_ask_terms *terms, uint64_t *asker_out);

/* manager/ask.c */
void pwi_manager_conclude_ask(struct pwi_manager *manager, const struct decision *decision, pawl_status status);
void pwi_manager_ask(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size);

/* manager/saving/save.c, manager/saving/orders.c */
void pwi_manager_checkpoint_asked(struct pwi_manager *manager, struct peer *peer, struct pwi_reader *reader,
                                  struct decision *decision);
PAWL_MUST_USE pawl_status pwi_manager_saved(struct pwi_manager *manager, struct peer *peer, const void *payload,
                                            size_t size);
void pwi_manager_save_timer(struct pwi_manager *manager, uint64_t which);
void pwi_manager_checkpoints_begin(struct pwi_manager *manager); /* those that are made from time to time */
void pwi_manager_save_fini(struct pwi_manager *manager);
struct json_t;
bool pwi_manager_put_checkpoint(const struct pwi_manager *manager, struct json_t *root);

/* manager/members.c */
#define PWI_MEMBERSHIP_HISTORY ((size_t)1 << 20) /* bytes of changes that are kept */
void pwi_manager_membership_begin(struct pwi_manager *manager);
void pwi_manager_membership_fini(struct pwi_manager *manager);
void pwi_manager_membership_changed(struct pwi_manager *manager, const void *record, size_t size, uint64_t before);
void pwi_manager_membership_settle(struct pwi_manager *manager, uint64_t number);
void pwi_manager_membership_resume(struct pwi_manager *manager,
                                   struct peer *peer); /* it may know some number already */

/* What a peer is to be sent: the section's type, its bytes, and the number that it then has. 0: nothing. */
uint16_t pwi_manager_membership_news(struct pwi_manager *manager, const struct peer *peer, struct pwi_writer *writer,
                                     uint64_t *number_out);

/* manager/news.c */
void pwi_manager_announce(struct pwi_manager *manager);
void pwi_manager_settle(struct pwi_manager *manager);
void pwi_manager_send_news(struct pwi_manager *manager, struct peer *peer);
void pwi_manager_say(struct pwi_manager *manager, struct peer *peer, enum pwi_say kind, uint64_t task,
                     const struct pwi_writer *payload);
void pwi_manager_say_joined(struct pwi_manager *manager, struct peer *peer, pawl_status status, uint64_t secret);
void pwi_manager_say_reply(struct pwi_manager *manager, struct peer *peer, uint64_t task, pawl_status status,
                           uint64_t id);
void pwi_manager_wait(struct pwi_manager *manager, const struct waiter *waiter); /* its numbers are filled in */
struct numbers pwi_manager_numbers(const struct pwi_manager *manager);
void pwi_manager_news_fini(struct pwi_manager *manager);

/* manager/planning/draft.c: nodes and arcs of the next view. Texts and their owners are borrowed from the view it began as. */
struct draft {
  struct pwi_view_node *nodes;
  size_t node_count, node_room;
  struct pwi_arc *arcs;
  size_t arc_count, arc_room;
};

PAWL_MUST_USE pawl_status pwi_draft_open(const struct pwi_view *view, size_t more_arcs, struct draft *draft_out);
void pwi_draft_close(struct draft *draft);
struct pwi_view_node *pwi_draft_node(struct draft *draft, uint64_t id);
void pwi_draft_add_node(struct draft *draft, const struct pwi_view_node *node); /* there is room for one */
void pwi_draft_strike_node(struct draft *draft, uint64_t id);                   /* it is in no chain */
bool pwi_draft_has_member(const struct draft *draft, uint64_t id);

/* The arc of exactly these positions, which have one chain: cut at both ends and joined in between. Takes room for up to
 * two arcs more. Arcs move: earlier results are not valid any more. */
struct pwi_arc *pwi_draft_arc(struct draft *draft, struct pawl_range positions);

/* Out of the chain, unless it is the last full member. If a full one goes, so do those that are filling: what they have
 * been sent is not the whole any more. False if nothing has changed. */
bool pwi_arc_drop(struct pwi_arc *arc, uint64_t node);

/* Strikes those that are down off all chains where a full member is there. True if there were any. */
bool pwi_draft_drop_dead(const struct pwi_manager *manager, struct draft *draft);
bool pwi_manager_has_dead(const struct pwi_manager *manager); /* that pwi_draft_drop_dead would strike off */
bool pwi_draft_end_fills(struct draft *draft); /* strikes off whoever is filling; true if there was anybody */
bool pwi_view_has_splinters(const struct pwi_view *view, uint32_t points); /* that pwi_draft_merge would join */
bool pwi_draft_merge(struct draft *draft, uint32_t points); /* narrow neighbours of one chain; true if there were any */

/* Writes the record VIEW, or NODE if `added` is not NULL. */
PAWL_MUST_USE pawl_status pwi_draft_record(struct pwi_manager *manager, const struct draft *draft, uint64_t last_move,
                                           const struct pwi_ledger_node *added);

static inline void pwi_arc_strike(struct pwi_arc *arc, size_t place) {
  for (size_t i = place; i + 1 < arc->count; i++) arc->chain[i] = arc->chain[i + 1];
  arc->chain[--arc->count] = (struct pwi_member){0};
}

/* manager/step.c */
enum step_kind {
  STEP_NONE,     /* the goal cannot be reached: a member that is missing is not to be had */
  STEP_WAIT,     /* somebody is filling, or who is concerned is not there now */
  STEP_DONE,     /* this is the goal */
  STEP_CHANGE,   /* one view, at once */
  STEP_FILL,     /* the target, from the source */
  STEP_HANDOVER, /* of the source to the target; then the view */
};

struct step {
  enum step_kind kind;
  uint64_t source, target;
  struct pwi_arc after; /* CHANGE and HANDOVER: its chain, all full */
};

struct step pwi_manager_next_step(const struct pwi_manager *manager, const struct pwi_arc *arc, const uint64_t *goal,
                                  size_t goal_count);
bool pwi_manager_is_here(const struct pwi_manager *manager, uint64_t node);
bool pwi_manager_is_welcome(const struct pwi_manager *manager, uint64_t node); /* could be given something */

/* manager/move.c */
void pwi_manager_moves_poke(struct pwi_manager *manager); /* something has changed: see what can go on */

/* The node's link is gone: what was on its way to it, or from it, is undone. If it is leaving, only what was to it. */
void pwi_manager_moves_lost(struct pwi_manager *manager, uint64_t node, bool as_source);
void pwi_manager_moves_unwanted(struct pwi_manager *manager, uint64_t node); /* it is down: none begins */
void pwi_manager_moved(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size);
void pwi_manager_tidy(struct pwi_manager *manager); /* after a start: steps that were under way are not any more */
void pwi_manager_moves_heard(struct pwi_manager *manager); /* somebody has a view: orders can be given */
void pwi_move_fail(struct pwi_manager *manager, struct move *move, pawl_status why);

#define PWI_MOVE_PAUSE_NS INT64_C(250000000) /* after a failure; doubles each time */

/* manager/work.c */
enum work {
  WORK_WAIT,
  WORK_REMOVE,  /* it has reached its goal, or is not wanted any more */
  WORK_DESPAIR, /* it cannot reach it: another plan may */
  WORK_BEGIN,   /* the next step, which needs an order */
  WORK_CHANGE,  /* the next step, which needs none */
  WORK_ADMIT,   /* the target has been filled */
  WORK_SWITCH,  /* the head has handed over */
  WORK_PROCEED, /* the view shows that the step is done */
  WORK_VOID,    /* the view shows that it cannot be done any more */
  WORK_UNDO,    /* it has failed, and the view does not show it */
  WORK_RECOVER, /* now it does */
};

/* Who is busy, and where: before works are asked for. What begins meanwhile is added. */
void pwi_manager_survey(struct pwi_manager *manager);
void pwi_manager_note_chosen(struct pwi_manager *manager, const struct move *move);

/* The next step is written where one would begin. */
enum work pwi_manager_work_on(const struct pwi_manager *manager, const struct move *move, struct step *step_out);
bool pwi_work_needs_view(enum work work);
bool pwi_manager_needs_view(struct pwi_manager *manager);      /* one would bring something forward */
bool pwi_manager_must_wait(const struct pwi_manager *manager); /* a handover is under way and may still end well */
bool pwi_manager_is_busy(const struct pwi_manager *manager);   /* chains are going to change, as far as one can see */
bool pwi_manager_may_merge(const struct pwi_manager *manager); /* nothing is on its way anywhere */
bool pwi_manager_is_urgent(
    const struct pwi_manager *manager); /* somebody whose chain is short is filled, or could be */
bool pwi_move_is_urgent(const struct pwi_manager *manager, const struct move *move); /* a member is missing */

/* The arc of a move; NULL if its positions are not within one. */
const struct pwi_arc *pwi_move_arc(const struct pwi_view *view, const struct move *move, bool *exact_out);

/* manager/carry.c */
PAWL_MUST_USE pawl_status pwi_manager_decide_moves(struct pwi_manager *manager, struct decision *decision);

static inline bool pwi_move_is_active(const struct move *move) {
  return move->step == MOVE_LISTED || move->step == MOVE_GOING || move->step == MOVE_LANDED;
}

/* manager/planning/plan.c */
void pwi_manager_node_came(struct pwi_manager *manager); /* first arcs, or a plan after some quiet */
void pwi_manager_plan_later(struct pwi_manager *manager);
void pwi_manager_plan_timer(struct pwi_manager *manager);

/* What is missing, what leaves and what newcomers are due; if `for_balance`, whatever evenness asks for besides. */
PAWL_MUST_USE pawl_status pwi_manager_plan(struct pwi_manager *manager, bool for_balance);
size_t pwi_manager_processes(const struct pwi_manager *manager); /* that could have a member of a chain */

/* Arcs per node. Unless the operator says: with replicas one for each process that could take it over, up to the planner's
 * default, for every arc costs messages of its own. */
uint32_t pwi_manager_points(const struct pwi_manager *manager);
void pwi_manager_watch_chains(struct pwi_manager *manager); /* nothing moves: see that there is nothing to repair */
void pwi_manager_report(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size);

/* manager/planning/goal.c */

/* The draft as it will be when all that is under way has ended well. */
PAWL_MUST_USE pawl_status pwi_manager_open_outlook(const struct pwi_manager *manager, struct draft *draft_out);

/* Replaces what was wanted by what brings the plan about. */
PAWL_MUST_USE pawl_status pwi_manager_want_plan(struct pwi_manager *manager, const struct draft *outlook,
                                                const struct pwi_plan *plan);
PAWL_MUST_USE pawl_status pwi_manager_order_move(struct pwi_manager *manager, struct pawl_range positions,
                                                 uint64_t target);

/* manager/planning/balance.c: a report has come. */
#define PWI_BALANCE_PROCESSES 256 /* of larger clusters operators take care */
void pwi_manager_watch_balance(struct pwi_manager *manager);

#endif
