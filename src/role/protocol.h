/* What roles say to one another: kinds of messages, the fixed records in them, and what they mean.
 *
 * Every message is a wire/message.h message. Its head carries the numbers of the newest view, roster and catalogue that
 * its sender knows; whoever is behind catches up before acting. docs/protocol.md tells the story in order; this header
 * is the reference for the bytes.
 *
 * Two conversations:
 *
 *   REQUEST and ANSWER, on the data lane. A client asks a *holder* (a server shard, or a node that opened a vector
 *   locally) to push, pull, tick, wait or tell. One request is about one claim: one arc of one vector, or a piece of it.
 *   Requests of one link are dealt with in the order in which they were sent; waiting (AWAIT) is the only one that may
 *   be answered later than those behind it.
 *
 *   Everything else, on the link lane, between the manager and everybody, and between two servers while keys move.
 *
 * Decoders here are safe on any bytes: PAWL_CORRUPT for anything that is not as described.
 */
#ifndef PWI_ROLE_PROTOCOL_H
#define PWI_ROLE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "role/catalogue.h"
#include "store/clock.h"
#include "wire/message.h"

/* Kinds of messages. Numbers are never reused. X(name, number, text) */
#define PWI_SAY_MAP(X)                                                                                                 \
  X(REQUEST, 1, "request") /* client to holder */                                                                      \
  X(ANSWER, 2, "answer")   /* back */                                                                                  \
  X(JOIN, 3, "join")       /* server or client to manager: the first message of a link */                              \
  X(JOINED, 4, "joined")   /* back */                                                                                  \
  X(NEWS, 5, "news")       /* manager to everybody: view, catalogue, roster */                                         \
  X(HAVE, 6, "have")       /* back: the numbers in the head are in force here */                                       \
  X(ASK, 7, "ask")         /* client to manager */                                                                     \
  X(REPLY, 8, "reply")     /* back */                                                                                  \
  X(MOVE, 9, "move")       /* manager to the server that holds an arc: copy it there */                                \
  X(MOVED, 10, "moved")    /* back */                                                                                  \
  X(FILL, 11, "fill")      /* server to server: part of a moving arc */                                                \
  X(FILLED, 12, "filled")  /* back */                                                                                  \
  X(REPORT, 13, "report")  /* server to manager: what it holds and does */                                             \
  X(LEAVE, 14, "leave")    /* server or client to manager: I am going; JOINED's opposite */                            \
  X(LEFT, 15, "left")      /* back: you may */

enum pwi_say {
#define PWI_SAY_ENUM(name, number, text) PWI_SAY_##name = (number),
  PWI_SAY_MAP(PWI_SAY_ENUM)
#undef PWI_SAY_ENUM
};

/* Sections besides those of wire/message.h. */
#define PWI_SECTION_TERMS 16     /* of a request: one record, below */
#define PWI_SECTION_OUTCOME 17   /* of an answer: one record, below */
#define PWI_SECTION_PAYLOAD 18   /* bytes (records of size 1) whose form the kind of message decides */
#define PWI_SECTION_VIEW 19      /* bytes: ring/view.h */
#define PWI_SECTION_CATALOGUE 20 /* bytes: role/catalogue.h */
#define PWI_SECTION_ROSTER 21    /* bytes: role/roster.h */

/* --- requests ----------------------------------------------------------------------------------------------------- */

enum pwi_request_kind {
  PWI_REQUEST_PUSH = 1,
  PWI_REQUEST_PULL = 2,
  PWI_REQUEST_PUSHPULL = 3,
  PWI_REQUEST_TICK = 4,    /* a push without values: the sender has reached `tick` in this group */
  PWI_REQUEST_ENTER = 5,   /* a push without values: the sender enters the group, at the highest tick of any
                              member or, as a founder, at 0, and not below `tick`; the answer's `found` tells */
  PWI_REQUEST_AWAIT = 6,   /* answered once every member of the group has reached `tick` */
  PWI_REQUEST_COLLECT = 7, /* what of a retired sender took effect here; its id is in `other` */
  PWI_REQUEST_SCAN = 8,    /* keys that take memory in `range`, at most `rows` */
};

/* True for those that carry a task number and move the clock. */
static inline bool pwi_request_is_numbered(enum pwi_request_kind kind) {
  return kind == PWI_REQUEST_PUSH || kind == PWI_REQUEST_PUSHPULL || kind == PWI_REQUEST_TICK ||
         kind == PWI_REQUEST_ENTER;
}

/* How a request names its keys. */
enum pwi_request_keys {
  PWI_KEYS_RANGE = 0,  /* all keys of `range` */
  PWI_KEYS_LIST = 1,   /* section KEYS: codec PWI_SECTION_CODEC_KEYS, or RAW */
  PWI_KEYS_SIGNED = 2, /* section SIGNATURE: a list the holder has kept; `rows` tells its length */
};

/* The terms of a request. Sender, task and tick are in the message's head. `claim` and `range` are stored keys.
 *
 * PUSH, PUSHPULL, TICK and ENTER are numbered: they claim `claim`, and name in `prior` the last task that this sender
 * sent to it (store/clock.h). A PULL names there the last task that it must see: a holder that is behind it says GAP. */
struct pwi_terms {
  enum pwi_request_kind kind;
  enum pwi_request_keys keys;
  bool keep; /* LIST: keep it under its signature, it will be used again */
  struct pwi_vector_id vector;
  uint64_t number;  /* the request's, chosen by the client and repeated in the answer's head; never 0 */
  uint64_t prior;   /* the task before; see above */
  uint64_t settled; /* every task of the sender up to this has been answered to it */
  uint64_t other;   /* COLLECT: the retired sender */
  uint64_t rows;    /* keys named: the list's length, the range's size; SCAN: at most */
  struct pawl_range claim;
  struct pawl_range range; /* in the claim */
};

#define PWI_TERMS_SIZE 96

/* Layout: u8 kind, u8 keys, u8 flags (1: keep), 5 zeros, then u64 each: vector, number, prior, settled, other, rows,
 * claim.begin, claim.end, range.begin, range.end, 0. */
void pwi_terms_encode(const struct pwi_terms *terms, uint8_t bytes[PWI_TERMS_SIZE]);

/* PAWL_CORRUPT also if: an unknown kind; number or vector 0; claim empty; range not in the claim, or empty. */
PAWL_MUST_USE pawl_status pwi_terms_decode(const void *bytes, size_t size, struct pwi_terms *terms_out);

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* X(name, number, text): what became of a request. */
#define PWI_CODE_MAP(X)                                                                                                \
  X(OK, 0, "ok")           /* done; also for a duplicate */                                                            \
  X(REFUSED, 1, "refused") /* a numbered request changed nothing and never will; its number is used up */              \
  X(FAILED, 2, "failed")   /* nothing happened, and no number is used up: the request makes no sense, is forbidden   \
                                or names what does not exist */ \
  X(GAP, 3, "gap")         /* something that `prior` names is not here yet; `found` is the lowest time */              \
  X(BROKEN, 4, "broken")   /* the sender's history contradicts ours: `found` cannot be */                              \
  X(WANTED, 5, "wanted")   /* the signature is not known: send the list */                                             \
  X(NOT_HERE, 6,                                                                                                       \
    "not here")            /* the claim is not, or not wholly, held here now, or the holder is behind the numbers in \
                                the request's head: try again with a newer view */ \
  X(RETIRED, 7, "retired") /* the sender is not on the roster */                                                       \
  X(GONE, 8, "gone")       /* COLLECT: the clocks of that sender are not kept any more */

enum pwi_code {
#define PWI_CODE_ENUM(name, number, text) PWI_CODE_##name = (number),
  PWI_CODE_MAP(PWI_CODE_ENUM)
#undef PWI_CODE_ENUM
};

const char *pwi_code_text(enum pwi_code code);

/* An answer's head repeats the request's `number` in `tick` and its task in `task`; `sender` is the holder's node. Its
 * sections are OUTCOME and, where values are asked for, VALUES right behind it, so that they begin PWI_ANSWER_PREFIX
 * bytes into the body; else PAYLOAD (COLLECT), or PAYLOAD (the keys, u64 each) and VALUES (SCAN). */
struct pwi_outcome {
  enum pwi_code code;
  pawl_status status; /* why, for REFUSED and FAILED; else PAWL_OK */
  uint64_t found;     /* GAP, BROKEN: a time; ENTER, AWAIT: a tick */
  uint64_t next;      /* SCAN: where to go on; the end of the range if there is nothing more */
};

#define PWI_OUTCOME_SIZE 32
#define PWI_ANSWER_PREFIX 128

/* Layout: u32 code, i32 status, u64 found, u64 next, u64 0. */
void pwi_outcome_encode(const struct pwi_outcome *outcome, uint8_t bytes[PWI_OUTCOME_SIZE]);
PAWL_MUST_USE pawl_status pwi_outcome_decode(const void *bytes, size_t size, struct pwi_outcome *outcome_out);

/* Payload of the answer to COLLECT, with base/cursor.h: u32 count and per piece u64 begin, u64 end, u64 time; then u32
 * count and per refusal u64 begin, u64 end, u64 task, u32 status. */

/* --- joining ------------------------------------------------------------------------------------------------------ */

#define PWI_LABEL_MAX 255

/* Payload of JOIN. `id` and `secret` are 0 at first; who comes back after a lost link says who it was, and by the secret
 * that nobody else knows it. */
struct pwi_join {
  uint8_t role; /* enum pwi_hello_role: server or client */
  uint64_t id;  /* node or sender */
  uint64_t secret;
  char address[PWI_LABEL_MAX + 1]; /* where it listens; "" for a client that does not */
  char host[PWI_LABEL_MAX + 1];    /* which machine; and */
  char rack[PWI_LABEL_MAX + 1];    /* which rack it is in; both may be empty */
  /* servers */
  uint64_t process; /* drawn at random when the process started: the same for all its shards */
  uint32_t shard;
  uint32_t shard_count;
  uint32_t weight;
  uint64_t memory_max; /* bytes; UINT64_MAX: no cap */
  /* clients */
  char job[PWI_LABEL_MAX + 1];
  bool reader;      /* pulls only: no sender id is needed */
  uint64_t retired; /* a sender that this client was and whose clocks it has not collected yet; 0: none */
};

/* Payload of JOINED. */
struct pwi_joined {
  pawl_status status; /* PAWL_OK, or why not; then the rest is 0. PAWL_NODE_RETIRED: come again as somebody new */
  uint64_t cluster;
  uint64_t id;
  uint64_t secret;
  bool may_write;                /* what the key that the link was opened with permits */
  char space[PWI_SPACE_MAX + 1]; /* in this space only; "": in all */
};

struct pwi_writer;
void pwi_join_encode(const struct pwi_join *join, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_join_decode(const void *bytes, size_t size, struct pwi_join *join_out);
void pwi_joined_encode(const struct pwi_joined *joined, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_joined_decode(const void *bytes, size_t size, struct pwi_joined *joined_out);

/* --- asking the manager ------------------------------------------------------------------------------------------- */

/* The head's `task` numbers the ask and its `tick` says what is asked; the reply repeats the number. Payloads with base/cursor.h; every reply begins with the status
 * as u32. An ask that is lost with its link is asked again by the client: all of them may be repeated, where CREATE and
 * DELETE may then answer EXISTS or NOT_FOUND, and the client knows that it has asked before. */
#define PWI_ASK_MAP(X)                                                                                                 \
  X(CREATE, 1, "create")   /* text name, options as in the catalogue; reply: u64 id */                                 \
  X(DELETE, 2, "delete")   /* text name */                                                                             \
  X(GROUP, 3, "group")     /* text name, u32 size: join it, making it if need be; reply: u64 id */                     \
  X(UNGROUP, 4, "ungroup") /* u64 id: leave it */                                                                      \
  X(FORGET, 5, "forget")   /* u64 sender: all its clocks have been collected */                                        \
  X(STATUS, 6, "status")   /* reply: the cluster's state as JSON text bytes */                                         \
  X(MOVE, 7, "move")       /* u64 begin, u64 end, u64 node: have these positions held there; operators and tests */    \
  X(BALANCE, 8, "balance") /* plan anew from the measured load, and move what should move */                           \
  X(LISTEN, 9, "listen")   /* text address: where this client serves vectors that it opened locally */                 \
  X(SYNC, 10, "sync")      /* nothing: the reply's head tells how far view, roster and catalogue are */                \
  X(DRAIN, 11, "drain")    /* u64 node, or 0 and text address: have the server that this is a shard of leave */

enum pwi_ask {
#define PWI_ASK_ENUM(name, number, text) PWI_ASK_##name = (number),
  PWI_ASK_MAP(PWI_ASK_ENUM)
#undef PWI_ASK_ENUM
};

/* --- moving ------------------------------------------------------------------------------------------------------- */

/* Payload of MOVE, FILL, FILLED and MOVED: this record; in FILL, role/holding.h's chunk follows it. MOVE and FILL of one
 * move carry the same `move`. */
enum pwi_fill_step {
  PWI_FILL_BEGIN = 1, /* throw away what you may have of this range */
  PWI_FILL_CHUNK = 2,
  PWI_FILL_END = 3,
};

struct pwi_move {
  uint64_t move;  /* a number that the manager never uses again */
  uint64_t epoch; /* of the view in which the target is filling: whoever is behind waits for it */
  struct pawl_range positions;
  uint64_t target;                 /* the node */
  uint64_t sequence;               /* FILL and FILLED: 1, 2, … */
  uint8_t step;                    /* FILL: enum pwi_fill_step */
  bool cancel;                     /* MOVE: stop it, and serve the positions again */
  pawl_status status;              /* FILLED, MOVED */
  char address[PWI_LABEL_MAX + 1]; /* MOVE: of the target */
};

void pwi_move_encode(const struct pwi_move *move, struct pwi_writer *writer);

/* `*used_out` is the size of the record: what follows it is the chunk. */
PAWL_MUST_USE pawl_status pwi_move_decode(const void *bytes, size_t size, struct pwi_move *move_out, size_t *used_out);

/* --- reporting ---------------------------------------------------------------------------------------------------- */

/* Payload of REPORT, every second: totals since the start, and the load by position for the planner. */
struct pwi_report {
  uint64_t rows, bytes, memory_max; /* held now; the cap */
  uint64_t pushes, pulls, keys_pushed, keys_pulled, bytes_in, bytes_out, refused, gaps, wanted;
  uint64_t cached_lists, cached_bytes;
};

struct pwi_load;
void pwi_report_encode(const struct pwi_report *report, const struct pwi_load *loads, size_t load_count,
                       struct pwi_writer *writer);

/* `*loads_out` is an array by rising position, freed with pwi_free; NULL if there are none. */
PAWL_MUST_USE pawl_status pwi_report_decode(const void *bytes, size_t size, struct pwi_report *report_out,
                                            struct pwi_load **loads_out, size_t *load_count_out);

#endif
