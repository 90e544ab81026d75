/* The state of an engine of items, shared by the files of this folder. README.md lists them in reading order. */
#ifndef PWI_PEER_ITEM_INSIDE_H
#define PWI_PEER_ITEM_INSIDE_H

#include <stdatomic.h>

#include "base/idmap.h"
#include "peer/item/item.h"
#include "peer/item/messages.h"
#include "peer/item/readers.h"

#define ITEM_TAG_SHOWN 1 /* of the region with the items that a member produces */
#define ITEM_TAG_COPY 2  /* of the region of a far consumer */

#define ITEM_STRIPES 256  /* locks of writers */
#define ITEM_MOVING_MAX 4 /* puts with a buffer, and gets, that are under way with one peer */
#define ITEM_BUFFER ((size_t)128 << 10)

/* A set of ranks. */
struct item_marks {
  uint64_t *words; /* NULL: none was ever marked */
  uint32_t size;
  uint32_t count;
  uint32_t cursor; /* the next search begins here */
};

/* How this member reads the items of a peer. */
enum item_how {
  ITEM_NOWHERE, /* it does not */
  ITEM_NEAR,    /* in the peer's memory */
  ITEM_FAR,     /* in a copy here that the peer puts to, or from which this member fetches */
  ITEM_FROZEN,  /* in a copy here, of a peer that is gone */
};

/* Memory of places: one of the first three, or none. */
struct item_memory {
  struct pwi_window window;
  struct pwi_region *region;
  unsigned char *block;
  size_t bytes;              /* of region or block */
  struct item_retired *note; /* with which it will be retired: that must not fail for lack of memory */
};

struct item_retired {
  struct item_retired *next;
  struct item_memory memory;
  uint64_t readers; /* counters that were not seen at zero yet */
};

/* Bytes on their way: of a put, or of a get. */
struct item_buffer {
  struct item_buffer *next;
  uint64_t cookie;
  struct pwi_sender peer;
  uint32_t first, count; /* ranks; of a get: in item_peer.in */
  bool is_get;
  unsigned char bytes[];
};

struct item_peer {
  struct item_peer *next; /* by ascending sender id */
  struct pwi_sender sender;
  uint16_t number; /* index + 1 in engine->by_number */
  bool is_member, is_linked;
  bool is_gone;             /* it has closed the context */
  bool is_bad;              /* what it produces contradicts older members, or its parameters do: it is ignored */
  bool is_telling, is_told; /* on the present link: its first META has come, its last one has */
  bool is_repeated;         /* it tells what this member knows from an earlier link */
  bool has_meta;
  bool is_seen; /* it has our META */
  bool is_peer_open;
  uint64_t incarnation;
  struct item_runs produces, consumes; /* `consumes` only while META arrives */
  struct item_runs in;                 /* keys that it produces and this member consumes */
  struct item_runs out;                /* keys that this member produces and it consumes */

  /* As a producer. */
  enum item_how how;
  bool must_attach; /* its region was shared, and this member has not looked at it yet */
  bool must_share;  /* this member's copy is to be shared */
  struct pwi_remote shown;
  uint64_t shown_size;
  struct item_memory memory;
  uint32_t owned;   /* places in this memory */
  uint64_t *asked;  /* for each rank of `in`: the need of an ASK without an answer; NULL: none was ever asked */
  uint64_t *sought; /* for each rank of `in`: the need of a prefetch that is not satisfied, 0: none; may be NULL */
  struct item_marks wanted, fetching;
  bool is_closing; /* it closes the context, and waits until this member has fetched all */

  /* As a consumer. */
  bool is_shown;     /* the own region was shared */
  uint32_t attached; /* what it has said: 0 nothing yet, 1 near, 2 far */
  struct pwi_remote copy;
  bool has_copy;
  struct item_marks dirty;
  uint64_t *asks; /* for each rank of `out`: the need; 0: none */
  uint32_t ask_count;
  bool must_fence;
  bool is_told_closing, has_taken; /* PULL: this member closes the context */
  uint64_t fence;                  /* cookie of the fence under way */
  uint32_t moving;
};

struct pwi_items {
  struct pwi_items_config config;
  char *name;
  struct item_parameters parameters;
  struct pwi_channel *channel;
  size_t stride;
  uint64_t incarnation;
  struct item_runs produces, consumes;

  struct pwi_region *shown;               /* the items that this member produces; NULL: none */
  unsigned char *cells;                   /* its memory */
  _Atomic(const unsigned char *) *places; /* config.producers for each rank of `consumes` */
  uint16_t *owners;                       /* of places: peer->number, OWNER_SELF, or 0 */
  _Atomic(uint32_t *) slacks;             /* for each rank of `consumes`, and then of `produces`: slack + 1; 0: none */
  _Atomic uint64_t *is_asked;             /* bits by rank of `produces`: a consumer waits */
  _Atomic uint32_t far_count;             /* consumers that must be told of every set */
  _Atomic bool has_far_producer;          /* or had */
  _Atomic bool stripes[ITEM_STRIPES];     /* locks by rank of `produces` */
  _Atomic bool is_blocked;                /* the pump met a lock: the next set must tell */
  struct item_readers readers;
  _Atomic int failed; /* a pawl_status */
  _Atomic uint64_t sets, waits_count;
  char problem[PWI_ITEMS_PROBLEM_MAX];

  struct item_peer *peers;
  struct pwi_idmap by_id;
  struct item_peer **by_number;
  size_t numbers, numbers_room;
  struct item_retired *retired;
  struct item_buffer *buffers; /* under way */
  struct item_buffer *spare;
  uint32_t buffer_cells;
  uint64_t last_cookie;
  struct pwi_items_wait waits; /* a ring */
  struct pwi_writer writer;
  uint64_t puts, fetches;
  bool is_open, is_closing, has_left, is_closed;
};

#define ITEM_OWNER_SELF UINT16_MAX

/* On the present link; with an earlier one everything that the peer had shared has ended. */
static inline bool pwi_item_is_attached(const struct item_peer *peer) {
  return peer->is_linked && !peer->is_bad && !peer->must_attach && peer->shown_size > 0 &&
         (peer->how == ITEM_NEAR || peer->how == ITEM_FAR);
}

static inline unsigned char *pwi_item_own_cell(const struct pwi_items *engine, uint32_t rank) {
  return engine->cells + (size_t)rank * engine->stride;
}

static inline bool pwi_item_is_push(const struct pwi_items *engine) {
  return engine->config.variant == PAWL_ITEMS_PUSH;
}

/* items.c */
void pwi_item_fail(struct pwi_items *engine, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);
/* An operation with the peer has returned this. After PAWL_QUEUE_FULL `writable` or `done` tries again, and
 * after PAWL_NOT_FOUND the next link. Nobody would try again without memory, so the context fails. Any other
 * error is that of the peer, which has shared something else than it said. */
void pwi_item_try_later(struct pwi_items *engine, struct item_peer *peer, pawl_status status);
struct item_peer *pwi_item_find(const struct pwi_items *engine, uint64_t id);
void pwi_item_say_number(struct pwi_items *engine, const struct item_peer *peer, uint32_t kind, uint32_t number);
void pwi_item_advance(struct pwi_items *engine); /* does all that can be done now */
void pwi_item_wake_key(struct pwi_items *engine, uint64_t key);
void pwi_item_wake_all(struct pwi_items *engine);
/* There is a version of that need where the key is read, and it is not torn. */
bool pwi_item_is_whole(const struct pwi_items *engine, uint64_t key, uint64_t need);

/* members.c */
extern const struct pwi_channel_events pwi_item_events;
void pwi_item_look_at_members(struct pwi_items *engine);
void pwi_item_look_open(struct pwi_items *engine);
void pwi_item_forget_peers(struct pwi_items *engine); /* all, at the end */

/* meta.c */
void pwi_item_send_meta(struct pwi_items *engine, struct item_peer *peer);
void pwi_item_hear_meta(struct pwi_items *engine, struct item_peer *peer, const void *bytes, size_t size);
void pwi_item_drop_meta(struct item_peer *peer);

/* places.c */
void pwi_item_attach(struct pwi_items *engine, struct item_peer *peer); /* its region was shared */
void pwi_item_attach_places(struct pwi_items *engine, struct item_peer *peer);
void pwi_item_own_places(struct pwi_items *engine);
void pwi_item_freeze(struct pwi_items *engine, struct item_peer *peer);        /* it is gone */
void pwi_item_forget_places(struct pwi_items *engine, struct item_peer *peer); /* its versions are void */
void pwi_item_retire(struct pwi_items *engine, struct item_memory *memory);
void pwi_item_sweep(struct pwi_items *engine); /* frees retired memory that nobody reads */
void pwi_item_memory_free(struct pwi_items *engine, struct item_memory *memory);
/* Where the rank of `in` is; NULL: nowhere. */
const unsigned char *pwi_item_place(const struct pwi_items *engine, const struct item_peer *peer, uint32_t rank);
/* A rank of `consumes` without a place; ITEM_NO_RANK: none. */
uint32_t pwi_item_missing(const struct pwi_items *engine);

/* push.c: the producer's side */
void pwi_item_hear_ask(struct pwi_items *engine, struct item_peer *peer, const void *bytes, size_t size);
void pwi_item_serve(struct pwi_items *engine, uint32_t rank);             /* of `produces` */
void pwi_item_push_all(struct pwi_items *engine, struct item_peer *peer); /* its copy is new */
void pwi_item_pump(struct pwi_items *engine, struct item_peer *peer);
bool pwi_item_is_delivered(struct pwi_items *engine, struct item_peer *peer);

/* fetch.c: the consumer's side */
void pwi_item_hear_wake(struct pwi_items *engine, struct item_peer *peer, uint32_t rank);
void pwi_item_fetch(struct pwi_items *engine, struct item_peer *peer);
void pwi_item_fetched(struct pwi_items *engine, struct item_peer *peer, struct item_buffer *buffer, pawl_status status);
void pwi_item_take_all(struct pwi_items *engine, struct item_peer *peer);  /* it closes */
void pwi_item_ask_again(struct pwi_items *engine, struct item_peer *peer); /* it is attached anew */

/* moves.c: buffers and marks */
struct item_buffer *pwi_item_buffer_take(struct pwi_items *engine,
                                         struct item_peer *peer); /* NULL: wait, or no memory */
void pwi_item_buffer_give(struct pwi_items *engine, struct item_buffer *buffer);
struct item_buffer *pwi_item_buffer_done(struct pwi_items *engine, uint64_t cookie); /* taken from those under way */
bool pwi_item_mark(struct item_marks *marks, uint32_t size, uint32_t rank);          /* false: no memory */
void pwi_item_unmark(struct item_marks *marks, uint32_t rank);
bool pwi_item_is_marked(const struct item_marks *marks, uint32_t rank);
uint32_t pwi_item_next_mark(struct item_marks *marks); /* ITEM_NO_RANK: none */
void pwi_item_marks_fini(struct item_marks *marks);

#endif
