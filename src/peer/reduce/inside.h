/* The state of an engine, shared by the files of this folder.
 *
 *   messages.h   messages and headers as bytes
 *   layout.c     where each tensor lies in a payload, and the description of the channel
 *   pack.c       the own tensors into a payload
 *   combine.c    inputs into the own tensors
 *   arithmetic.h loops over values
 *   direct.c     neighbours that share memory: boards instead of slots
 *   significant.c  values that have changed enough to be sent
 *   plan.c       the graph of an epoch
 *   agree.c      how members agree on an epoch
 *   model.c      how a member that is behind takes over the tensors of another
 *   exchange.c   slots, puts, acknowledgements, the barrier
 *   patience.c   members that do not answer
 *   events.c     what the channel tells the engine
 *   reduce.c     the life of an engine, and the phases of a step
 *
 * VERSIONS. The version of tensors is the iteration for which they were sent; versions begin with 1. `completed`
 * is the number of completed iterations, so the present or next step sends version completed + 1.
 *
 * STAGING. Tensors are packed into one of two buffers, by the version's last bit. In NOTIFY-ACK mode a buffer is
 * packed again only after all out-neighbours have acknowledged its old version. So the versions that a neighbour
 * may still need, the last two, can be sent again after a link was lost.
 *
 * OUTSIDE. While pwi_reduce_work runs, regions and buffers that it may read stay as they are: `is_outside`.
 */
#ifndef PWI_PEER_REDUCE_INSIDE_H
#define PWI_PEER_REDUCE_INSIDE_H

#include "base/idmap.h"
#include "peer/reduce/arithmetic.h"
#include "peer/reduce/messages.h"
#include "peer/reduce/reduce.h"
#include "wire/values.h"

/* --- tensors -------------------------------------------------------------------------------------------- */

struct reduce_piece {
  void *values;
  size_t count;
  enum pawl_type type;
  size_t size;         /* bytes in memory */
  size_t offset;       /* in a payload; reduced tensors only */
  size_t encoded;      /* bytes there */
  size_t model_offset; /* in a model */
};

struct reduce_layout {
  struct reduce_piece *pieces; /* the reduced tensors, then the carried ones */
  size_t count;                /* reduced */
  size_t all;
  size_t values;   /* of all reduced tensors */
  size_t capacity; /* bytes of a dense payload */
  size_t raw;      /* bytes of the reduced tensors, each from a multiple of 8 */
  size_t model;    /* bytes of all tensors, likewise */
  enum pwi_value_codec codec;
};

#define REDUCE_BLOCK 1024 /* values that are combined at a time; a multiple of an INT8 block */

/* --- boards --------------------------------------------------------------------------------------------- */

/* What a member shows its neighbours on the same host, at the begin of the region with its staging buffers (direct.c).
 * Only the member writes it, and all accesses are atomic. Words that change at different times are in different lines
 * of the cache. */
struct reduce_board {
  uint64_t mark;        /* of the epoch to which the words below belong */
  uint64_t versions[2]; /* in the staging buffers; 0: none, or being packed */
  uint64_t padding[5];
  uint64_t used; /* the last version whose inputs were used */
  uint64_t more_padding[7];
  uint64_t sleep; /* enum reduce_sleep */
};

/* What a member that sleeps waits for: a neighbour says WAKE after it has changed that word of its board. */
enum reduce_sleep { SLEEP_NONE, SLEEP_FOR_VERSIONS, SLEEP_FOR_USED };

/* The payloads begin at a multiple of the size of a page. */
#define REDUCE_BOARD_SIZE (4096 - REDUCE_HEADER_SIZE)
#define REDUCE_BOARD_TAG (UINT64_C(1) << 62) /* the tag of the region; slots count from 1 */

/* --- peers ---------------------------------------------------------------------------------------------- */

/* Where a peer puts its tensors. */
struct reduce_slot {
  struct pwi_region *region;
  uint64_t tag;
  struct reduce_epoch epoch;
  uint64_t wanted; /* the version that is needed next */
  bool is_full;    /* NOTIFY-ACK: version `wanted` is there, whole */
  bool is_orphan;  /* its link is lost: nothing can be put into it any more */
};

/* A region that the peer may still put into. It is closed when the peer has released it or is lost. */
struct reduce_retired {
  struct reduce_retired *next;
  struct pwi_sender peer;
  struct pwi_region *region;
  uint64_t tag;
  bool is_over;
};

/* A slot of a peer, into which this node puts. */
struct reduce_target {
  struct reduce_epoch epoch;
  uint64_t tag;    /* 0: none */
  uint64_t wanted; /* the version that the peer needed next when it told */
  struct pwi_remote remote;
  bool has_remote;
  bool has_put;  /* anything */
  uint64_t sent; /* the last version that was put, or is being put */
};

/* Closing: whether everything that was put has landed. */
enum reduce_farewell { FAREWELL_NONE, FAREWELL_FENCE, FAREWELL_LANDED };

/* A peer agrees on another epoch. It sends nothing in older ones, except for versions up to this one in the epoch
 * that it was in. */
struct reduce_stop {
  struct reduce_epoch called;
  uint64_t mark; /* of the epoch that it was in */
  uint64_t version;
};

struct reduce_peer {
  struct reduce_peer *next, *near_next;
  struct pwi_sender sender;
  bool is_linked;
  uint64_t gone_after; /* the iteration after which it closed */
  bool is_gone;        /* it has closed the reduce; or its tensors do not fit */
  bool is_in, is_out;  /* a neighbour in the present epoch */
  struct reduce_stop stop;

  struct reduce_slot *slot; /* NULL: none */
  struct reduce_target target;
  uint64_t acked;  /* the last version that it has used, of this node's */
  unsigned part;   /* of `target.sent`: the next part to put */
  unsigned parts;  /* of `target.sent`; part == parts: all were put */
  unsigned buffer; /* of `target.sent` */
  size_t puts;     /* under way, from the staging buffers */
  enum reduce_farewell farewell;

  unsigned char *mirror; /* `significant`: its values as far as they were received; NULL: none yet */

  /* direct.c */
  bool is_offered;               /* the own board was shared over this link */
  bool is_far;                   /* its board cannot be mapped over this link: it has a slot */
  bool is_reader;                /* it has mapped the own board */
  uint64_t counted;              /* the last version whose bytes were counted when it was shown */
  struct pwi_window window;      /* its board; it outlives the link */
  struct pwi_window next_window; /* takes the place of `window` when no work outside reads that */

  /* for the caller */
  bool has_state, is_new;
  uint64_t iteration;
  uint64_t arrived; /* version at the barrier */

  /* for a donor */
  bool is_served; /* it takes over this node's tensors in this epoch */
  uint64_t model_tag;
  struct pwi_remote model_remote;
  bool has_model_remote;
  size_t model_next; /* the next tensor to put */
  size_t model_puts; /* under way */

  /* patience */
  bool is_pinged, is_silent;
  uint64_t pongs;
};

/* --- the engine ----------------------------------------------------------------------------------------- */

enum reduce_phase {
  PHASE_OUT,      /* no step */
  PHASE_AGREE,    /* waits for GO */
  PHASE_ADOPT,    /* waits for the tensors of the donor; then takes them over, outside */
  PHASE_STAGE,    /* waits for a free buffer; then packs, outside */
  PHASE_EXCHANGE, /* sends, and waits for inputs; then combines, outside */
  PHASE_OVER,
};

/* What the caller has decided for an epoch; kept for members that were not linked. */
struct reduce_decision {
  bool is_made;
  struct reduce_epoch epoch;
  uint64_t iteration;
  size_t count; /* participants, by ascending id */
  uint64_t *ids, *donors;
  struct pwi_graph *graph; /* NULL: one participant */
  char name[PAWL_REDUCE_GRAPH_MAX + 1];
};

/* The graph of an epoch, while it is made outside: with many members that takes seconds. */
struct reduce_plan {
  struct reduce_epoch epoch;
  uint32_t count;
  uint32_t *racks; /* of each participant; NULL: the graph has no racks */
  struct pwi_graph *graph;
  char name[PAWL_REDUCE_GRAPH_MAX + 1];
};

struct pwi_reduce {
  struct pwi_reduce_config config;
  struct pwi_channel *channel;
  struct reduce_layout layout;
  unsigned char *description;
  size_t description_size;

  struct reduce_peer *peers; /* by ascending id */
  struct reduce_peer *near;  /* of these: the neighbours in the present epoch, and members that take over a model */
  struct pwi_idmap by_id;
  struct reduce_retired *retired;
  uint64_t last_tag;

  struct reduce_epoch called; /* the newest that this node has heard of */
  uint64_t called_after;      /* it begins after this iteration, unless the members have changed */
  uint64_t call_after;        /* the caller calls another one when it has completed this iteration; 0: no need */
  struct reduce_epoch epoch;  /* whose graph is in use */
  uint64_t own_id;            /* the sender id of this node in that epoch */
  uint64_t *members;          /* of the group in that epoch */
  size_t member_count;
  bool has_given_state; /* for `called` */
  bool was_in_epoch;
  struct reduce_decision decision;
  struct reduce_plan plan;
  bool is_planning; /* `plan` belongs to the work outside, which uses nothing else */
  struct pwi_writer writer;
  uint32_t rank; /* of this node in the group of the epoch */
  uint32_t size; /* participants of the epoch */
  uint32_t inputs, outputs;
  char graph[PAWL_REDUCE_GRAPH_MAX + 1];
  uint64_t passed; /* BSP: the last version that the barrier let through */
  bool has_arrived;
  uint64_t barrier_version; /* for the caller: the first `barrier_at` participants have arrived with it */
  size_t barrier_at;

  enum reduce_phase phase;
  bool is_outside, is_work_due;
  uint64_t completed;
  unsigned char *staging[2]; /* header, payload, footer; in `shown` if there is a board */
  struct reduce_header staged_header[2];
  size_t users[2];      /* operations that read it */
  uint64_t staged;      /* the last packed version that is valid in this epoch; 0: none */
  bool is_send_skipped; /* ASYNC: no buffer was free */
  bool is_kept;         /* the version was shown before: its tensors are not packed again, but into `scratch` */
  bool must_pack;       /* although the version is staged */
  uint64_t donor;       /* in PHASE_ADOPT; 0: none */
  uint64_t base;        /* the iteration with which the epoch began */
  struct pwi_region *model;
  uint64_t model_tag;
  bool has_model;
  uint64_t got_from; /* the donor whose tensors were taken over in this epoch; 0: none */
  size_t model_puts; /* under way, to all peers */

  struct pwi_region *shown;   /* the board and the staging buffers; NULL: only slots are used */
  struct reduce_board *board; /* in it */
  uint64_t mark;              /* of `epoch` */
  bool is_spinning, has_spun; /* the work outside looks at boards; it did, in this phase */
  bool has_spoken;            /* a message or a put may wait in the net */
  const struct reduce_board **watched;
  size_t watched_count, watched_room;

  const void **sources; /* during combining */
  size_t source_room;
  struct reduce_peer **inputs_used; /* during combining: by ascending id; room for all in-neighbours */
  size_t input_room, input_count;
  unsigned char *scratch, *sum;     /* BSP, ASYNC and `significant`: a copied slot; the sum of inputs */
  unsigned char *last_sent, *saved; /* `significant`: values as pieces lie in `sum` */
  struct pwi_codec *codec;

  bool is_closing, has_said_bye, has_left, is_closed; /* in this order */
  int64_t close_by;
  pawl_status status; /* of the step */
  pawl_status failed; /* for good */
  char problem[PWI_REDUCE_PROBLEM_MAX];

  struct pawl_reduce_report report;
  int64_t began, waited_since, looked_at;
  int64_t smooth, deviation; /* of the time that exchanges wait */
  uint64_t bytes_sent, regenerated;
  uint64_t bytes_reported; /* of `bytes_sent`: in reports of steps */
};

/* layout.c */
PAWL_MUST_USE pawl_status pwi_reduce_layout_init(struct reduce_layout *layout, const struct pwi_reduce_config *config);
void pwi_reduce_layout_fini(struct reduce_layout *layout);
PAWL_MUST_USE pawl_status pwi_reduce_describe(struct pwi_reduce *engine);

/* Compares the peer's description with ours; PAWL_MISMATCH, with a text. */
PAWL_MUST_USE pawl_status pwi_reduce_compare(const struct pwi_reduce *engine, uint64_t peer, const void *theirs,
                                             size_t size, char *problem, size_t room);

/* pack.c, combine.c; outside */
PAWL_MUST_USE pawl_status pwi_reduce_pack(struct pwi_reduce *engine);
PAWL_MUST_USE pawl_status pwi_reduce_combine(struct pwi_reduce *engine);
void pwi_reduce_take_model(struct pwi_reduce *engine);

/* significant.c; outside */
PAWL_MUST_USE pawl_status pwi_reduce_pack_significant(struct pwi_reduce *engine, unsigned char *payload,
                                                      struct reduce_header *header);
bool pwi_reduce_take_significant(struct pwi_reduce *engine, struct reduce_peer *peer);

/* plan.c: engine->plan for these participants, by ascending id. pwi_reduce_make_plan is for the work outside; the graph
 * is NULL for one participant. */
PAWL_MUST_USE pawl_status pwi_reduce_begin_plan(struct pwi_reduce *engine, const uint64_t *ids, size_t count);
PAWL_MUST_USE pawl_status pwi_reduce_make_plan(struct pwi_reduce *engine);
void pwi_reduce_forget_plan(struct pwi_reduce *engine);

/* agree.c */
bool pwi_reduce_is_stale(const struct pwi_reduce *engine); /* the epoch is over, or there is none */
void pwi_reduce_agree(struct pwi_reduce *engine);          /* the members may have changed */
void pwi_reduce_give_state(struct pwi_reduce *engine);     /* inside a step, in PHASE_AGREE */
void pwi_reduce_agree_linked(struct pwi_reduce *engine, struct reduce_peer *peer);
void pwi_reduce_agree_gone(struct pwi_reduce *engine, struct reduce_peer *peer, uint64_t after);
void pwi_reduce_agree_completed(struct pwi_reduce *engine);
void pwi_reduce_hear_agree(struct pwi_reduce *engine, struct reduce_peer *peer, uint32_t kind,
                           const struct reduce_message *message);
bool pwi_reduce_is_credible(const struct pwi_reduce *engine,
                            struct reduce_epoch epoch); /* an honest peer may name it */
void pwi_reduce_hear_go(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_go *go);
void pwi_reduce_want_links(struct pwi_reduce *engine);
void pwi_reduce_forget_decision(struct pwi_reduce *engine);
void pwi_reduce_planned(struct pwi_reduce *engine, pawl_status status); /* after pwi_reduce_make_plan */
void pwi_reduce_note_near(struct pwi_reduce *engine);                   /* neighbours or peers have changed */

/* model.c */
void pwi_reduce_ask_model(struct pwi_reduce *engine);
void pwi_reduce_hear_model(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message);
void pwi_reduce_serve(struct pwi_reduce *engine, struct reduce_peer *peer);
bool pwi_reduce_is_serving(const struct pwi_reduce *engine);
bool pwi_reduce_are_tensors_read(const struct pwi_reduce *engine); /* by puts of a model, also of an older epoch */
void pwi_reduce_end_model(struct pwi_reduce *engine);              /* the region is not needed any more */

/* exchange.c */
void pwi_reduce_open_slots(struct pwi_reduce *engine); /* for all linked in-neighbours that have none */
void pwi_reduce_retire_slot(struct pwi_reduce *engine, struct reduce_peer *peer);
void pwi_reduce_retire(struct pwi_reduce *engine, struct reduce_peer *peer, struct pwi_region *region, uint64_t tag);
void pwi_reduce_sweep(struct pwi_reduce *engine); /* closes regions that nobody uses */
void pwi_reduce_hear_slot(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message);
void pwi_reduce_drop_target(struct pwi_reduce *engine, struct reduce_peer *peer);
void pwi_reduce_pump(struct pwi_reduce *engine);
bool pwi_reduce_can_stage(const struct pwi_reduce *engine);
bool pwi_reduce_has_inputs(struct pwi_reduce *engine);
bool pwi_reduce_may_finish(const struct pwi_reduce *engine); /* all inputs can still arrive */
void pwi_reduce_say_stop(struct pwi_reduce *engine, const struct reduce_peer *to);
bool pwi_reduce_is_member(const struct pwi_reduce *engine, uint64_t id);
void pwi_reduce_acknowledge(struct pwi_reduce *engine);
void pwi_reduce_notified(struct pwi_reduce *engine, struct reduce_peer *peer, uint64_t value);
void pwi_reduce_inspect(struct pwi_reduce *engine, struct reduce_peer *peer); /* it says that all has landed */
bool pwi_reduce_deliver(struct pwi_reduce *engine); /* closing: true when neighbours have what they need */
bool pwi_reduce_have_answered(const struct pwi_reduce *engine);
void pwi_reduce_done(struct pwi_reduce *engine, struct reduce_peer *peer, uint64_t cookie);
void pwi_reduce_hear_barrier(struct pwi_reduce *engine, struct reduce_peer *peer, uint32_t kind,
                             const struct reduce_message *message);
void pwi_reduce_arrive(struct pwi_reduce *engine); /* BSP: if everything was sent */

/* direct.c */
PAWL_MUST_USE pawl_status pwi_reduce_direct_open(struct pwi_reduce *engine); /* staging buffers with a board */
void pwi_reduce_direct_close(struct pwi_reduce *engine);                     /* windows; not the region */
void pwi_reduce_direct_forget(struct reduce_peer *peer);
void pwi_reduce_direct_link(struct reduce_peer *peer); /* a link was made or lost */
void pwi_reduce_direct_shared(struct pwi_reduce *engine, struct reduce_peer *peer, struct pwi_remote remote,
                              uint64_t size);
void pwi_reduce_hear_mapped(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message);
void pwi_reduce_hear_used(const struct pwi_reduce *engine, struct reduce_peer *peer, struct reduce_epoch epoch,
                          uint64_t version);
void pwi_reduce_direct_update(struct pwi_reduce *engine); /* offers, windows, acknowledgements */
bool pwi_reduce_needs_slot(const struct pwi_reduce *engine, const struct reduce_peer *peer);
bool pwi_reduce_has_input(const struct pwi_reduce *engine, const struct reduce_peer *peer);
const unsigned char *pwi_reduce_payload(const struct pwi_reduce *engine, const struct reduce_peer *peer);
void pwi_reduce_direct_begin(struct pwi_reduce *engine); /* an epoch */
bool pwi_reduce_is_shown(const struct pwi_reduce *engine, uint64_t version);
void pwi_reduce_hide(struct pwi_reduce *engine, uint64_t version); /* outside: its buffer is about to change */
void pwi_reduce_show(struct pwi_reduce *engine, uint64_t version);
void pwi_reduce_show_used(struct pwi_reduce *engine, uint64_t version);
bool pwi_reduce_are_inputs_kept(const struct pwi_reduce *engine); /* outside, after combining */
bool pwi_reduce_may_spin(struct pwi_reduce *engine);
void pwi_reduce_spin(struct pwi_reduce *engine); /* outside */
void pwi_reduce_sleep(struct pwi_reduce *engine, bool sleeps);

/* patience.c */
void pwi_reduce_patience_look(struct pwi_reduce *engine, int64_t now);
bool pwi_reduce_is_waited_for(const struct pwi_reduce *engine, const struct reduce_peer *peer);
void pwi_reduce_patience_learn(struct pwi_reduce *engine, int64_t waited);

/* events.c */
extern const struct pwi_channel_events pwi_reduce_events;
void pwi_reduce_look_at_members(struct pwi_reduce *engine);

/* reduce.c */
void pwi_reduce_say_bye(struct pwi_reduce *engine, struct reduce_peer *peer);
void pwi_reduce_enter_epoch(struct pwi_reduce *engine, uint64_t iteration, uint64_t donor);
uint64_t pwi_reduce_version(const struct pwi_reduce *engine); /* that this member sends, or needs, next */
struct reduce_peer *pwi_reduce_find(const struct pwi_reduce *engine, uint64_t id); /* NULL: none */
void pwi_reduce_say(struct pwi_reduce *engine, const struct reduce_peer *peer, uint32_t kind,
                    const struct reduce_message *message);
void pwi_reduce_advance(struct pwi_reduce *engine);
void pwi_reduce_fail(struct pwi_reduce *engine, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);
uint64_t pwi_reduce_tag(struct pwi_reduce *engine);
static inline uint64_t pwi_reduce_self(const struct pwi_reduce *engine) { return pwi_channel_self(engine->channel).id; }
static inline size_t pwi_reduce_slot_size(const struct pwi_reduce *engine) {
  return REDUCE_HEADER_SIZE + engine->layout.capacity + REDUCE_FOOTER_SIZE;
}

#define REDUCE_MODEL_END 8 /* bytes after a model, whose put notifies */
static inline size_t pwi_reduce_model_size(const struct pwi_reduce *engine) {
  return engine->layout.model + REDUCE_MODEL_END;
}

/* Cookies of operations. */
enum { COOKIE_BUFFER = 1, COOKIE_FENCE = 3, COOKIE_MODEL = 4, COOKIE_FAREWELL = 5, COOKIE_BITS = 3 };

#endif
