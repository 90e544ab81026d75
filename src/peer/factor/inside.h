/* The state of an engine of factors, shared by the files of this folder. README.md lists them in reading order.
 *
 * ORIGINS. An origin is a life that commits, or one that is gone but whose last commits some members may lack. The
 * numbers of its commits rise by one. `received` counts those that are here without a gap, `applied` those in the matrix.
 *
 * LOG. Commits that are here are entries of the log, in the order in which they arrived. An entry stays until it is applied
 * and every member is known to have it; so after a loss, the survivors can complete one another. The commits of this
 * member lie in regions, which peers on the same host read in place.
 *
 * SENDING. Each peer has a cursor in the log. HAVE says what the peer has; it is told again whenever links or epochs
 * begin, and the cursor then begins anew.
 *
 * SETTLING. From CALL to GO nobody begins a commit and nobody applies one: STATE is true until then.
 *
 * OUTSIDE. While pwi_factor_work runs, the entries that it reads stay as they are: `is_outside`.
 */
#ifndef PWI_PEER_FACTOR_INSIDE_H
#define PWI_PEER_FACTOR_INSIDE_H

#include "base/idmap.h"
#include "graph/graph.h"
#include "peer/factor/factor.h"
#include "peer/factor/messages.h"

#define FACTOR_PIECE_SIZE ((size_t)64 << 10)
#define FACTOR_WINDOW 16    /* pieces under way over a link */
#define FACTOR_TAKEN_STEP 4 /* pieces that are confirmed together */
#define FACTOR_KEPT 32      /* own commits that some member has not confirmed, more than `staleness` */
#define FACTOR_KEPT_BYTES ((size_t)64 << 20)
#define FACTOR_HAVE_COUNT 8 /* commits of each member after which one says what it has */
#define FACTOR_HAVE_BYTES ((size_t)1 << 20)
#define FACTOR_AHEAD 4096 /* numbers beyond those received that are kept */

/* A region for one commit of this member. */
struct factor_slot {
  struct factor_slot *next;
  struct pwi_region *region;
  size_t size;
  uint64_t tag; /* they count from 1 */
  bool is_used;
};

/* A region of a peer. */
struct factor_window {
  struct factor_window *next;
  uint64_t life, tag;
  struct pwi_window window;
};

struct factor_entry {
  struct factor_entry *next;   /* in the log */
  struct factor_entry *higher; /* of the same origin */
  uint64_t id, life, number;
  uint64_t sequence; /* in the log */
  bool is_again;     /* a planted bug */
  const unsigned char *bytes;
  size_t size;
  uint64_t hash;
  unsigned char *owned;     /* `bytes`, if they belong to the entry */
  struct factor_slot *slot; /* of this member */
};

struct factor_origin {
  uint64_t id, life, base, clock, final; /* as struct factor_line */
  uint32_t part;
  bool is_heard;  /* this member applies its commits */
  bool is_waited; /* this member waits for its pace */
  uint64_t received, applied;
  struct factor_entry *first; /* by number */
  uint64_t asked;             /* sender id of the member that was asked for missing commits; 0: none */
  bool is_refused;            /* it did not send them */
};

/* What a peer has of an origin. */
struct factor_has {
  uint64_t received, applied;
  uint64_t wants_until; /* the peer wants entries up to this sequence, whoever should send them; 0: none */
  uint64_t lacks;       /* the peer has said that it does not have this commit; 0: none */
};

struct factor_peer {
  struct factor_peer *next; /* by ascending sender id */
  struct pwi_sender sender;
  bool is_linked;
  uint64_t life;      /* of its engine, as of the last link; 0: never linked */
  uint32_t part;      /* that this life has */
  uint64_t gone_life; /* the life that has closed */
  bool is_bad;        /* its parameters differ: it is ignored */

  /* for the caller */
  bool has_status, has_state;
  struct factor_epoch in_epoch;
  unsigned char *state; /* the last STATE, as it came */
  size_t state_size;
  uint64_t donor; /* in GO: the life whose matrix it takes over; 0: none */

  /* over the present link */
  uint32_t attached; /* 0: not known yet; 1: it reads the regions of this member; 2: it cannot */
  uint64_t shared;   /* tags up to this one were shared */
  bool is_attaching; /* its first region has come */
  uint64_t pieces_sent, pieces_taken, pieces_here, pieces_told;

  /* in the present epoch and over the present link */
  bool has_said;          /* HAVE, in this epoch, */
  bool has_have;          /* and over this link */
  struct factor_has *has; /* for each origin */
  struct factor_entry *cursor;
  uint64_t high;    /* entries up to this sequence were sent, or need not be */
  size_t offset;    /* of the entry at the cursor */
  bool must_rewind; /* when that was sent */
  bool is_reader;   /* it was shown a region, over any link */
  bool must_model;  /* it waits for the matrix, */
  bool has_head;    /* whose description was sent, */
  size_t model_at;  /* and values up to here */

  /* the commit that arrives */
  uint64_t life_in, number_in, hash_in;
  size_t size_in, got, room_in;
  unsigned char *bytes_in;

  bool is_leaving, was_told_leaving, has_parted;
  uint64_t leaving_clock;
};

enum factor_phase {
  FACTOR_OUT,
  FACTOR_OPEN,  /* waits for the first epoch, and the matrix */
  FACTOR_FLUSH, /* likewise, and then for the commits of all */
  FACTOR_ADMIT, /* waits until a commit may begin */
  FACTOR_STAGE, /* copies the commit, outside */
  FACTOR_WAIT,  /* waits for other members; then applies, outside */
  FACTOR_OVER,
};

struct pwi_factor {
  struct pwi_factor_config config;
  struct factor_shape shape;
  struct pawl_range rows; /* of the matrix here */
  struct factor_scratch scratch;
  double *prox_memory;
  struct pwi_channel *channel;
  size_t bytes; /* of the matrix here */
  uint64_t initial_hash;

  struct factor_peer *peers;
  struct pwi_idmap by_id;
  struct factor_slot *slots;
  struct factor_window *windows;
  uint64_t last_tag;
  struct factor_entry *first, **end;
  uint64_t last_sequence;

  /* the epoch */
  struct factor_epoch epoch, promised; /* they differ while members settle */
  bool is_calling;                     /* this member collects STATEs for `promised` */
  uint64_t own_id;                     /* sender id in the epoch */
  struct factor_origin *origins;
  uint32_t count, self;
  struct pwi_graph *graph; /* of the living origins; NULL: complete */
  uint32_t *nodes;         /* of each origin in the graph; UINT32_MAX: it is gone */
  uint32_t *parents;  /* forward: who passes on commits of node o to node i, at o * nodes + i; NULL: everyone itself */
  uint32_t lost_part; /* no member of the epoch has its rows; UINT32_MAX: none */
  enum factor_need need;
  uint64_t donor; /* life; 0: none */
  bool has_head;  /* of the matrix */
  /* The matrix is here, but not all commits up to the clocks of the epoch: only the donor may have them. If it is lost, this
   * member begins anew with another one. */
  bool is_catching_up;
  size_t model_got;
  uint64_t clock;
  uint64_t since_count, since_bytes; /* received or applied since HAVE was said */

  /* a step */
  enum factor_phase phase;
  bool is_outside, is_work_due;
  bool is_opening;
  bool is_flushing; /* the step waits for all commits up to the own clock */
  pawl_status status, failed;
  char problem[PWI_FACTOR_PROBLEM_MAX];
  const unsigned char *staged;
  unsigned char empty[FACTOR_HEAD_SIZE]; /* a commit without pairs */
  size_t staged_size;
  struct factor_slot *staging;
  uint64_t staged_hash;
  struct factor_entry **chosen;
  size_t chosen_count, chosen_room;

  bool is_closing, has_said_bye, has_left, is_closed; /* in this order */
  int64_t close_by, waited_since;
  struct pwi_writer writer;
  unsigned char *piece; /* FACTOR_PIECE_SIZE bytes */
  struct pawl_factor_report report;
  struct pawl_factor_state counts;
};

static inline bool pwi_factor_is_live(const struct factor_origin *origin) { return origin->final == FACTOR_NONE; }
static inline bool pwi_factor_is_settled(const struct pwi_factor *engine) {
  return engine->epoch.number != 0 && pwi_factor_compare(engine->epoch, engine->promised) == 0;
}

/* Steps may go on. */
static inline bool pwi_factor_is_ready(const struct pwi_factor *engine) {
  return pwi_factor_is_settled(engine) && engine->need == FACTOR_COMPLETE && !engine->is_catching_up;
}

static inline enum factor_need pwi_factor_need(const struct pwi_factor *engine) {
  return engine->is_catching_up ? FACTOR_PARTIAL : engine->need;
}

/* factor.c */
void pwi_factor_fail(struct pwi_factor *engine, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);
void pwi_factor_advance(struct pwi_factor *engine);
void pwi_factor_say(struct pwi_factor *engine, struct factor_peer *peer, enum factor_say kind,
                    const struct factor_message *message);
void pwi_factor_say_list(struct pwi_factor *engine, struct factor_peer *peer, enum factor_say kind,
                         struct factor_message *message, const struct factor_line *lines, uint32_t count);

/* events.c */
extern const struct pwi_channel_events pwi_factor_events;
struct factor_peer *pwi_factor_find(const struct pwi_factor *engine, uint64_t id);
bool pwi_factor_is_member(const struct pwi_factor *engine, uint64_t id);
void pwi_factor_look_at_members(struct pwi_factor *engine);
void pwi_factor_free_peers(struct pwi_factor *engine);

/* agree.c */
void pwi_factor_agree(struct pwi_factor *engine); /* members, links or states may have changed */
void pwi_factor_agree_linked(struct pwi_factor *engine, struct factor_peer *peer);
void pwi_factor_hear_agree(struct pwi_factor *engine, struct factor_peer *peer, uint32_t kind, const void *bytes,
                           size_t size, const struct factor_message *message);
bool pwi_factor_is_lost(const struct pwi_factor *engine, uint64_t id, uint64_t life);
bool pwi_factor_may_begin(const struct pwi_factor *engine); /* the first epoch, and this member may call it */
struct factor_line pwi_factor_own_line(const struct factor_origin *origin);
void pwi_factor_say_go(struct pwi_factor *engine, struct factor_peer *peer); /* of the present epoch */

/* decide.c: begins the promised epoch if all STATEs that are needed are here */
void pwi_factor_decide(struct pwi_factor *engine);

/* epoch.c */
void pwi_factor_enter(struct pwi_factor *engine, struct factor_epoch epoch, const struct factor_line *lines,
                      uint32_t count, uint64_t donor);
/* The peer takes part in the epoch, and its life is known now. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_factor_meet(struct pwi_factor *engine, struct factor_peer *peer);
struct factor_origin *pwi_factor_origin(const struct pwi_factor *engine, uint64_t life);
struct factor_has *pwi_factor_has(const struct pwi_factor *engine, const struct factor_peer *peer,
                                  const struct factor_origin *origin);
struct factor_peer *pwi_factor_peer_of(const struct pwi_factor *engine, const struct factor_origin *origin);
bool pwi_factor_sends(const struct pwi_factor *engine, const struct factor_origin *origin,
                      const struct factor_peer *to); /* this member, as the graph says */
void pwi_factor_forget_epoch(struct pwi_factor *engine);

/* log.c */
PAWL_MUST_USE pawl_status pwi_factor_take_slot(struct pwi_factor *engine, size_t size, struct factor_slot **slot_out);
PAWL_MUST_USE pawl_status pwi_factor_append_own(struct pwi_factor *engine);
/* A commit has arrived; `owned` becomes that of the entry, or is freed. */
void pwi_factor_accept(struct pwi_factor *engine, uint64_t life, uint64_t number, const unsigned char *bytes,
                       unsigned char *owned, size_t size, uint64_t hash);
void pwi_factor_sweep(struct pwi_factor *engine); /* frees what nobody needs */
void pwi_factor_count_received(struct factor_origin *origin);
void pwi_factor_cut(struct pwi_factor *engine, struct factor_origin *origin, uint64_t last);
bool pwi_factor_has_room(const struct pwi_factor *engine); /* for another own commit */
bool pwi_factor_is_known_to_all(const struct pwi_factor *engine, const struct factor_origin *origin, uint64_t number);
uint64_t pwi_factor_hash_of(const unsigned char *bytes, size_t size); /* of memory that others may write */
void pwi_factor_drop_log(struct pwi_factor *engine);

/* describe.c */
#define FACTOR_DESCRIPTION_SIZE 160
void pwi_factor_describe(const struct pwi_factor_config *config, unsigned char bytes[FACTOR_DESCRIPTION_SIZE]);
uint64_t pwi_factor_life_in(const unsigned char *description);
uint32_t pwi_factor_part_in(const unsigned char *description);
bool pwi_factor_fits(const struct pwi_factor *engine, uint64_t peer, const unsigned char *theirs, size_t size,
                     char problem[PWI_FACTOR_PROBLEM_MAX]);

/* stream.c */
bool pwi_factor_offer(struct pwi_factor *engine, struct factor_peer *peer); /* the first region; false: not yet */
void pwi_factor_pump(struct pwi_factor *engine, struct factor_peer *peer);
/* HAVE or MODEL, with what is here of each origin. False: no memory. */
bool pwi_factor_say_has(struct pwi_factor *engine, struct factor_peer *peer, enum factor_say kind,
                        struct factor_message *message);
void pwi_factor_say_have(struct pwi_factor *engine, struct factor_peer *peer, bool asks);
void pwi_factor_say_have_all(struct pwi_factor *engine, bool asks);
void pwi_factor_say_want_all(struct pwi_factor *engine, struct factor_peer *peer);
void pwi_factor_ask_missing(struct pwi_factor *engine);
void pwi_factor_hear_stream(struct pwi_factor *engine, struct factor_peer *peer, uint32_t kind,
                            const struct factor_message *message);
void pwi_factor_shared(struct pwi_factor *engine, struct factor_peer *peer, uint64_t tag, struct pwi_remote remote,
                       uint64_t size);
void pwi_factor_reset_link(struct factor_peer *peer);
void pwi_factor_say_taken(struct pwi_factor *engine, struct factor_peer *peer, bool is_whole);

/* model.c */
void pwi_factor_ask_model(struct pwi_factor *engine);
void pwi_factor_serve(struct pwi_factor *engine, struct factor_peer *peer);
void pwi_factor_look_at_gaps(struct pwi_factor *engine); /* it may have caught up */
bool pwi_factor_is_serving(const struct pwi_factor *engine);
void pwi_factor_hear_model(struct pwi_factor *engine, struct factor_peer *peer, uint32_t kind,
                           const struct factor_message *message);

/* turn.c */
bool pwi_factor_may_apply(const struct pwi_factor *engine);
PAWL_MUST_USE pawl_status pwi_factor_choose(struct pwi_factor *engine);
PAWL_MUST_USE pawl_status pwi_factor_apply_chosen(struct pwi_factor *engine); /* outside */
void pwi_factor_applied(struct pwi_factor *engine);

#endif
