/* What roles say to one another: kinds of messages, the fixed records in them, and what they mean.
 *
 * Every message is a wire/message.h message. Its head carries the numbers of the newest view, membership and catalogue that
 * its sender knows; whoever is behind catches up before acting. docs/protocol.md tells the story in order; this header
 * is the reference for the bytes.
 *
 * Everything that a manager says carries in the head's `tick` its term, the number of its leadership (protocol/manager_list.h). A
 * JOIN carries there the highest term that the node has heard of. Whoever is of a lower term is not heard any more.
 *
 * Three conversations:
 *
 *   REQUEST and ANSWER, on the data lane. A client asks a *request handler* (a server shard, or a node that opened a vector
 *   locally) to push, pull, tick, wait or tell. One request is about one claim: one arc of one vector, or a piece of it.
 *   Requests of one link are dealt with in the order in which they were sent. Answers about one arc come in that order;
 *   those about another may overtake them while a chain is waited for. Whoever waits for others (AWAIT, a push that is
 *   applied with those of a group) is answered when they have come.
 *
 *   CHAIN, on the data lane, between servers that are neighbours in a chain.
 *
 *   Everything else, on the link lane, between the manager and everybody.
 *
 * Decoders here are safe on any bytes: PAWL_CORRUPT for anything that is not as described.
 */
#ifndef PWI_PROTOCOL_PROTOCOL_H
#define PWI_PROTOCOL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "protocol/catalogue.h"
#include "store/clock.h"
#include "store/linear.h"
#include "wire/message.h"

/* Kinds of messages. Numbers are never reused. X(name, number, text) */
#define PWI_SAY_MAP(X)                                                                                                 \
  X(REQUEST, 1, "request")    /* client to request handler */                                                          \
  X(ANSWER, 2, "answer")      /* back */                                                                               \
  X(JOIN, 3, "join")          /* server or client to manager: the first message of a link */                           \
  X(JOINED, 4, "joined")      /* back */                                                                               \
  X(NEWS, 5, "news")          /* manager to everybody: view, catalogue, membership */                                  \
  X(HAVE, 6, "have")          /* back: the numbers in the head are in force here */                                    \
  X(ASK, 7, "ask")            /* client to manager */                                                                  \
  X(REPLY, 8, "reply")        /* back */                                                                               \
  X(MOVE, 9, "move")          /* manager to a member of a chain: fill another one, or hand over */                     \
  X(MOVED, 10, "moved")       /* back */                                                                               \
  X(REPORT, 13, "report")     /* server to manager: what it holds and does */                                          \
  X(LEAVE, 14, "leave")       /* server or client to manager: I am going; JOINED's opposite */                         \
  X(LEFT, 15, "left")         /* back: you may */                                                                      \
  X(COMPLAIN, 16, "complain") /* server to manager: a neighbour in a chain cannot be reached */                        \
  X(CHAIN, 17, "chain")       /* server to server: members of a chain, see "chains" below */                           \
  X(SAVE, 18, "save")         /* manager to server: save these arcs, see protocol/save_messages.h */                   \
  X(SAVED, 19, "saved")       /* back: how far it is, and how it ended */                                              \
  X(PROBE, 20, "probe")       /* manager to server: is this other server alive? */                                     \
  X(PROBED, 21, "probed")     /* back: the verdict */                                                                  \
  X(CALL, 24, "call")         /* client to client: run these functions, see protocol/call.h */                         \
  X(RETURN, 25, "return")     /* back: what they came to */                                                            \
  X(HEARD, 26, "heard")       /* client to client: the results up to this number are here */                           \
  X(COUNTS, 30, "counts")     /* client to manager: what filters have done, see protocol/filter_counts.h */            \
  X(SETTLE, 31, "settle")     /* manager to request handlers: what of these retired senders is unsettled? */           \
  X(SETTLED, 32, "settled")   /* back */                                                                               \
  X(IDLE, 33, "idle") /* client to manager: tasks up to the head's `task` and asks up to its `tick` are answered */    \
  X(SPACES, 34, "spaces") /* server to manager: what the vectors of spaces with a quota take here */                   \
  X(GRANT, 35, "grant")   /* manager to server: what they may take here */

enum pwi_say {
#define PWI_SAY_ENUM(name, number, text) PWI_SAY_##name = (number),
  PWI_SAY_MAP(PWI_SAY_ENUM)
#undef PWI_SAY_ENUM
};

/* Sections besides those of wire/message.h. */
#define PWI_SECTION_TERMS 16            /* of a request: one record, below */
#define PWI_SECTION_OUTCOME 17          /* of an answer: one record, below */
#define PWI_SECTION_PAYLOAD 18          /* bytes (records of size 1) whose form the kind of message decides */
#define PWI_SECTION_VIEW 19             /* bytes: ring/view.h */
#define PWI_SECTION_CATALOGUE 20        /* bytes: protocol/catalogue.h */
#define PWI_SECTION_MEMBERSHIP 21       /* bytes: protocol/membership.h */
#define PWI_SECTION_NOTE 22             /* of a CHAIN message: one record, below */
#define PWI_SECTION_STATE 23            /* hidden state of rows, in their order; bytes */
#define PWI_SECTION_STAMPS 24           /* of an update that is a sum: who is in it; u64 sender, u64 task each */
#define PWI_SECTION_OPERATION 25        /* of a request of linear algebra: one record, below */
#define PWI_SECTION_MEMBERSHIP_DELTA 26 /* bytes: protocol/membership_delta.h */
#define PWI_SECTION_FILTERS 30 /* of a PULL or PUSHPULL: lossy filters for the answer; bytes of wire/filters.h */
#define PWI_SECTION_PROOF 31   /* of a request or call: that the link is its sender's (protocol/proof.h); 64 bytes */

#define PWI_FILTERS_ASKED_MAX 640 /* bytes of that */

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
  PWI_REQUEST_RESTORE = 9, /* a push of rows from a checkpoint: they are assigned, whatever the vector's function is */
  PWI_REQUEST_LINEAR = 10, /* a push without values: section OPERATION says what becomes of the rows */
  PWI_REQUEST_FOLD = 11,   /* a read: what section OPERATION makes of the rows, as a sum */
};

/* True for those that carry a task number and move the clock. */
static inline bool pwi_request_is_numbered(enum pwi_request_kind kind) {
  return kind == PWI_REQUEST_PUSH || kind == PWI_REQUEST_PUSHPULL || kind == PWI_REQUEST_TICK ||
         kind == PWI_REQUEST_ENTER || kind == PWI_REQUEST_RESTORE || kind == PWI_REQUEST_LINEAR;
}

/* True for those that change rows. */
static inline bool pwi_request_has_rows(enum pwi_request_kind kind) {
  return kind == PWI_REQUEST_PUSH || kind == PWI_REQUEST_PUSHPULL || kind == PWI_REQUEST_RESTORE ||
         kind == PWI_REQUEST_LINEAR;
}

/* How a request names its keys. */
enum pwi_request_keys {
  PWI_KEYS_RANGE = 0,  /* all keys of `range` */
  PWI_KEYS_LIST = 1,   /* section KEYS: codec PWI_SECTION_CODEC_KEYS, or RAW */
  PWI_KEYS_SIGNED = 2, /* section SIGNATURE: a list the request handler has kept; `rows` tells its length */
};

/* The terms of a request. A request handler whose vector is of a later incarnation answers RESTORED. Sender, task and tick are in the message's head. `claim` and `range` are stored keys.
 *
 * PUSH, PUSHPULL, LINEAR, TICK and ENTER are numbered: they claim `claim`, and name in `prior` the last task that this sender
 * sent to it (store/clock.h). A PULL, SCAN or FOLD names there the last task that it must see: a request handler that is behind it says GAP. */
struct pwi_terms {
  enum pwi_request_kind kind;
  enum pwi_request_keys keys;
  bool keep;   /* LIST: keep it under its signature, it will be used again */
  bool clocks; /* PULL, AWAIT: the answer is to bring the clocks of the claim */
  struct pwi_vector_id vector;
  uint64_t number;  /* the request's, chosen by the client and repeated in the answer's head; never 0 */
  uint64_t prior;   /* the task before; see above */
  uint64_t settled; /* every task of the sender up to this has been answered to it */
  uint64_t
      other; /* COLLECT: the retired sender; PUSH, PUSHPULL: the group whose pushes of this tick are applied together, or 0 */
  uint64_t rows; /* keys named: the list's length, the range's size; SCAN: at most */
  struct pawl_range claim;
  struct pawl_range range; /* in the claim */
  uint32_t incarnation;    /* of the vector that is meant */
  uint8_t codecs;          /* PULL, PUSHPULL: in which values may come back, besides RAW: bits 1 << codec */
};

/* Whether it is one of the pushes of a group that are applied as one. */
static inline bool pwi_terms_are_aggregate(const struct pwi_terms *terms) {
  return terms->other != 0 && (terms->kind == PWI_REQUEST_PUSH || terms->kind == PWI_REQUEST_PUSHPULL);
}

#define PWI_TERMS_SIZE 96

/* Layout: u8 kind, u8 keys, u8 flags (1: keep, 2: clocks), u8 codecs, 4 zeros, then u64 each: vector, number, prior, settled, other, rows,
 * claim.begin, claim.end, range.begin, range.end, incarnation. */
void pwi_terms_encode(const struct pwi_terms *terms, uint8_t bytes[PWI_TERMS_SIZE]);

/* PAWL_CORRUPT also if: an unknown kind; number or vector 0; RAW among the codecs; claim empty; range not in the claim, or empty. */
PAWL_MUST_USE pawl_status pwi_terms_decode(const void *bytes, size_t size, struct pwi_terms *terms_out);

/* What a LINEAR or FOLD does to the rows of the vector, or makes of them. LINEAR: the vector is y, and `other` is x. FOLD:
 * the vector is x, and `other` is y. `other` has the same type, row, size, placement and layout.
 *
 * A request handler deals with as much of the range as is one slice of work, from its begin on; the answer's `next` tells where the
 * claim ends that it has dealt with, and the client goes on from there, under the same number. */
struct pwi_operation {
  enum pwi_linear kind;       /* a changing one for LINEAR, a folding one for FOLD; 0: there is none */
  uint32_t column;            /* FOLD, but not of two vectors: only this value of each row, from 1; 0: all */
  double scalar;              /* 0 where there is none */
  struct pwi_vector_id other; /* {0} where there is none */
  uint32_t incarnation;       /* of that vector */
  uint64_t prior;             /* the last task of the sender that must be in there, on all of the claim: else GAP */
};

#define PWI_OPERATION_SIZE 40

/* Layout: u8 kind, 3 zeros, u32 column, f64 scalar, then u64 each: other, incarnation, prior. */
void pwi_operation_encode(const struct pwi_operation *operation, uint8_t bytes[PWI_OPERATION_SIZE]);

/* PAWL_CORRUPT also if there is a scalar, a column, or another vector, where there is none, or the other way round. */
PAWL_MUST_USE pawl_status pwi_operation_decode(const void *bytes, size_t size, struct pwi_operation *operation_out);

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
    "not here") /* the claim is not, or not wholly, held here now, or the request handler is behind the numbers in \
                                the request's head: try again with a newer view */   \
  X(RETIRED, 7, "retired") /* the sender is not on the membership */                                                   \
  X(GONE, 8, "gone")       /* COLLECT: the clocks of that sender are not kept any more */                              \
  X(RESTORED, 9,                                                                                                       \
    "restored") /* the vector was loaded from a checkpoint: `found` is its incarnation, and nothing of an \
                                  earlier one is taken */            \
  X(UNPROVEN, 10,                                                                                                      \
    "unproven") /* a numbered request under an id that was not proved on this link: show a proof, and try again */

enum pwi_code {
#define PWI_CODE_ENUM(name, number, text) PWI_CODE_##name = (number),
  PWI_CODE_MAP(PWI_CODE_ENUM)
#undef PWI_CODE_ENUM
};

const char *pwi_code_text(enum pwi_code code);

/* An answer's head repeats the request's `number` in `tick` and its task in `task`; `sender` is the request handler's node. Its
 * sections are OUTCOME and, where values are asked for, VALUES right behind it, so that they begin PWI_ANSWER_PREFIX
 * bytes into the body; else PAYLOAD (COLLECT, FOLD), or PAYLOAD (the keys, u64 each) and VALUES (SCAN). */
struct pwi_outcome {
  enum pwi_code code;
  pawl_status status; /* why, for REFUSED and FAILED; else PAWL_OK */
  uint64_t
      found; /* GAP, BROKEN: a time; ENTER, AWAIT: a tick; RESTORED: an incarnation; REFUSED: the first key that was */
  uint64_t next; /* SCAN: where to go on; the end of the range if there is nothing more. LINEAR, FOLD, also where
                         REFUSED: the end of the claim that was dealt with. Of others that were REFUSED: behind the last key */
};

#define PWI_OUTCOME_SIZE 32
#define PWI_ANSWER_PREFIX 128

/* Layout: u32 code, i32 status, u64 found, u64 next, u64 0. */
void pwi_outcome_encode(const struct pwi_outcome *outcome, uint8_t bytes[PWI_OUTCOME_SIZE]);
PAWL_MUST_USE pawl_status pwi_outcome_decode(const void *bytes, size_t size, struct pwi_outcome *outcome_out);

/* Payload of the answer to a PULL or AWAIT that asked for clocks, in front of the values: u64 begin, u64 end, u64 sender, u64 time
 * for each piece of the claim on which a live sender's time is not 0, by rising sender, then key. For an AWAIT all members of the
 * group with their ticks, but only if it did not have to wait. */
#define PWI_CLOCK_RECORD 32

/* Payload of the answer to COLLECT, with base/cursor.h: u32 count and per piece u64 begin, u64 end, u64 time; then u32
 * count and per refusal u64 begin, u64 end, u64 task, u32 status.
 *
 * Of the answer to FOLD: f64 high, f64 low (struct pwi_sum). */

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
  uint8_t key[32];  /* the public half of what it proves itself by (protocol/proof.h) */
  uint64_t retired; /* a sender that this client was and whose clocks it has not collected yet; 0: none */
};

/* Payload of JOINED. */
struct pwi_joined {
  pawl_status status; /* PAWL_OK, or why not; then the rest is 0. PAWL_NODE_RETIRED: come again as somebody new.
                         PAWL_NODE_STANDBY: another manager leads, */
  uint64_t cluster;
  uint64_t id;
  uint64_t secret;
  bool settled;                   /* nothing of the sender that JOIN named as retired took effect without an answer */
  bool may_write;                 /* what the key that the link was opened with permits */
  char space[PWI_SPACE_MAX + 1];  /* in this space only; "": in all */
  char leader[PWI_LABEL_MAX + 1]; /* as far as is known, at this address; "": it is not known */
};

struct pwi_writer;
void pwi_join_encode(const struct pwi_join *join, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_join_decode(const void *bytes, size_t size, struct pwi_join *join_out);
void pwi_joined_encode(const struct pwi_joined *joined, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_joined_decode(const void *bytes, size_t size, struct pwi_joined *joined_out);

/* Payload of SETTLE: u64 number, u32 count, and per retired sender by rising id u64 sender, u64 settled: up to this number it
 * has had all answers. Of SETTLED: u64 number, u32 count, and u64 for each of those of which the request handler has anything later, or
 * does not know that they are retired. Its head says in which view that is true. */
struct pwi_settle {
  uint64_t sender, settled;
};

#define PWI_SETTLE_MAX 1024 /* senders in one */

void pwi_settle_encode(uint64_t number, const struct pwi_settle *senders, size_t count, struct pwi_writer *writer);

/* `senders_out` has room for PWI_SETTLE_MAX. */
PAWL_MUST_USE pawl_status pwi_settle_decode(const void *bytes, size_t size, uint64_t *number_out,
                                            struct pwi_settle *senders_out, size_t *count_out);
void pwi_settled_encode(uint64_t number, const uint64_t *senders, size_t count, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_settled_decode(const void *bytes, size_t size, uint64_t *number_out,
                                             uint64_t *senders_out, size_t *count_out); /* likewise */

/* Payload of SPACES and GRANT: u32 count, and per space text space, u64 bytes. A server counts what a GRANT names, and nothing else.
 * UINT64_MAX in a GRANT: there is no limit until the manager knows how much is here, so it is told at once. */
struct pwi_space_bytes {
  char space[PWI_SPACE_MAX + 1];
  uint64_t bytes;
};

#define PWI_SPACES_MAX 256

void pwi_spaces_encode(const struct pwi_space_bytes *spaces, size_t count, struct pwi_writer *writer);

/* `spaces_out` has room for PWI_SPACES_MAX. */
PAWL_MUST_USE pawl_status pwi_spaces_decode(const void *bytes, size_t size, struct pwi_space_bytes *spaces_out,
                                            size_t *count_out);

/* --- asking the manager ------------------------------------------------------------------------------------------- */

/* The head's `task` numbers the ask and its `tick` says what is asked; the reply repeats the number. Payloads with
 * base/cursor.h: of an ask the asker's terms (struct pwi_ask_terms), then what is listed here; every reply begins with the status
 * as u32.
 *
 * The numbers of a client rise from 1, whatever its sender id is. A client whose link is lost asks again, in the order of
 * numbers, for what it has no reply to. The manager carries an ask out at most once, and tells what came of it as often as it is
 * asked (manager/ledger/ledger.h). STATUS and SYNC change nothing, and are simply repeated. Readers may ask for these two only. */
#define PWI_ASK_MAP(X)                                                                                                 \
  X(CREATE, 1, "create")    /* text name, options as in the catalogue; reply: u64 id */                                \
  X(DELETE, 2, "delete")    /* text name */                                                                            \
  X(GROUP, 3, "group")      /* text name, u32 size: join it, making it if need be; reply: u64 id */                    \
  X(UNGROUP, 4, "ungroup")  /* u64 id: leave it */                                                                     \
  X(FORGET, 5, "forget")    /* u64 sender, u64 its secret: all its clocks have been collected */                       \
  X(STATUS, 6, "status")    /* reply: the cluster's state as JSON text bytes */                                        \
  X(MOVE, 7, "move")        /* u64 begin, u64 end, u64 node: have these positions held there; operators and tests */   \
  X(BALANCE, 8, "balance")  /* plan anew from the measured load, and move what should move */                          \
  X(LISTEN, 9, "listen")    /* text address: where this client serves vectors that it opened locally */                \
  X(SYNC, 10, "sync")       /* nothing: the reply's head tells how far view, membership and catalogue are */           \
  X(DRAIN, 11, "drain")     /* u64 node, or 0 and text address: have the server that this is a shard of leave */       \
  X(GIVE_UP, 12, "give up") /* u64 node of a server that is dead, u8 1: its data may be lost; reply: u64 arcs lost */  \
  X(RESTORE_BEGIN, 13,                                                                                                 \
    "restore") /* text name, options as in the catalogue: the vector is made, or begins anew as its next   \
                                incarnation; reply: u64 id. Other options than it has: MISMATCH */           \
  X(CHECKPOINT, 14,                                                                                                    \
    "checkpoint") /* text directory ("": the manager's own), text name ("": it chooses one), u8 flags  \
                                       (1 incremental, 2 compressed), u64 bytes a second (0: no limit); reply, once it \
                                       has begun: u64 number. STATUS tells how it goes */               \
  X(MISS, 15,                                                                                                          \
    "miss") /* u64 sender: nobody listens where it did. If it has no link to the manager either it is retired now, \
                                 without its grace; EXISTS: it has; FORBIDDEN as RETIRE */   \
  X(RETIRE, 16,                                                                                                        \
    "retire") /* u64 sender: it is dead, whatever it says itself, and is retired now. INVALID: the asker's own;   \
                                   FORBIDDEN: one whose key is for another space */    \
  X(QUOTA, 17,                                                                                                         \
    "quota") /* text space, u64 bytes of memory that its vectors may take on all servers; 0: no limit any more */

/* What precedes the payload of an ask. u64 heard, u64 former, u64 secret. */
struct pwi_ask_terms {
  uint64_t heard;  /* the client has the replies to all asks up to this number */
  uint64_t former; /* it was first asked under this id, which has been retired; 0: under the present one */
  uint64_t secret; /* of the former id */
};

enum pwi_ask {
#define PWI_ASK_ENUM(name, number, text) PWI_ASK_##name = (number),
  PWI_ASK_MAP(PWI_ASK_ENUM)
#undef PWI_ASK_ENUM
};

/* About the asker itself, as it is now: asked again under a new id it is another ask. All others mean the same thing, whoever the
 * client is by then. */
static inline bool pwi_ask_is_about_asker(enum pwi_ask what) {
  return what == PWI_ASK_GROUP || what == PWI_ASK_UNGROUP || what == PWI_ASK_LISTEN;
}

static inline bool pwi_ask_changes(uint64_t what) { return what != PWI_ASK_STATUS && what != PWI_ASK_SYNC; }

struct pwi_reader;
void pwi_ask_terms_write(const struct pwi_ask_terms *terms, struct pwi_writer *writer);
struct pwi_ask_terms pwi_ask_terms_read(struct pwi_reader *reader);

/* --- moving ------------------------------------------------------------------------------------------------------- */

/* What a MOVE orders. */
enum pwi_move_step {
  PWI_MOVE_FILL = 1,     /* to the last full member of a chain: fill `target`, which the view lists behind it */
  PWI_MOVE_HANDOVER = 2, /* to the head: take no more requests, and say when all full members are equal */
};

/* Payload of MOVE and MOVED: this record. */
struct pwi_move {
  uint64_t move;  /* a number that the manager never uses again */
  uint64_t epoch; /* of the view that the order is about: whoever is behind waits for it */
  struct pawl_range positions;
  uint64_t target;                 /* the node that is to be filled, or to be the head */
  uint64_t sequence;               /* not used: 0 */
  uint8_t step;                    /* enum pwi_move_step */
  bool cancel;                     /* MOVE: stop it, and serve the positions again */
  pawl_status status;              /* MOVED */
  char address[PWI_LABEL_MAX + 1]; /* MOVE: of the target */
};

void pwi_move_encode(const struct pwi_move *move, struct pwi_writer *writer);

/* `*used_out` is the size of the record. */
PAWL_MUST_USE pawl_status pwi_move_decode(const void *bytes, size_t size, struct pwi_move *move_out, size_t *used_out);

/* --- chains ------------------------------------------------------------------------------------------------------- */

/* Every CHAIN message has a note. It is about an arc of the view, which is named by its positions and by `since`, the epoch
 * that gave it its bounds and its chain: whoever has the arc with another `since` ignores the message. All of them travel on
 * the data lane, in order.
 *
 *   OPEN     from the one before: I am about to send. `version` is the last that it has itself.
 *   READY    back, or by itself as soon as the view has come: send me what follows `version`; everything up to `other` is
 *            confirmed. `full`: with the keys of the first one, for the signature is not known here.
 *   UPDATE   what a numbered request changed (enum pwi_effect): its sender, task and tick are in the message's head, then
 *            sections TERMS, KEYS or SIGNATURE, VALUES, STATE, STAMPS as far as there are any. `positions` is the part of the arc that
 *            it concerns, `version` its number, `prior` the number of the update before it: it is taken only after that.
 *            `other` is twice the number of those of the same version that came before it, for other parts of the arc, and 1
 *            more if another one follows: each is taken only after those before it, and only with the last one
 *            the version has come. Without effect and sections: nothing more comes up to `version`.
 *   CONFIRM  back: everything up to `version` is here, and with all full members behind.
 *   CHUNK    to a filling member: `other` is the move, `version` counts the chunks from 1, `prior` is the version of the arc
 *            of which the chunk is true. `effect` is enum pwi_chunk_step; as PAYLOAD follows, for DATA, a chunk of
 *            shard/shard.h and, for END, the versions of the arc by position (store/clock.h).
 *   TAKEN    back: `version` is that of the chunk, `status` how it went. */
#define PWI_NOTE_MAP(X)                                                                                                \
  X(OPEN, 1, "open")                                                                                                   \
  X(READY, 2, "ready")                                                                                                 \
  X(UPDATE, 3, "update")                                                                                               \
  X(CONFIRM, 4, "confirm")                                                                                             \
  X(CHUNK, 5, "chunk")                                                                                                 \
  X(TAKEN, 6, "taken")

enum pwi_note_step {
#define PWI_NOTE_ENUM(name, number, text) PWI_NOTE_##name = (number),
  PWI_NOTE_MAP(PWI_NOTE_ENUM)
#undef PWI_NOTE_ENUM
};

/* What a request did. */
enum pwi_effect {
  PWI_EFFECT_NONE = 0,
  PWI_EFFECT_ROWS = 1,    /* rows have new values, and the sender's clock is at the task */
  PWI_EFFECT_TICK = 2,    /* the sender's tick and clock */
  PWI_EFFECT_REFUSAL = 3, /* it was refused with `status`: the clock, and that */
};

enum pwi_chunk_step {
  PWI_CHUNK_BEGIN = 1, /* throw away what you may have of this range */
  PWI_CHUNK_DATA = 2,
  PWI_CHUNK_END = 3, /* that was all: you are where `prior` says */
};

struct pwi_note {
  enum pwi_note_step step;
  uint8_t effect;
  bool full;
  pawl_status status;
  struct pawl_range positions;
  uint64_t since;
  uint64_t version, prior;
  uint64_t other;
};

#define PWI_NOTE_SIZE 64

/* Layout: u8 step, u8 effect, u8 flags (1: full), u8 0, i32 status, then u64 each: positions.begin, positions.end, since,
 * version, prior, other, 0. */
void pwi_note_encode(const struct pwi_note *note, uint8_t bytes[PWI_NOTE_SIZE]);

/* PAWL_CORRUPT also if: an unknown step, no positions, since 0. */
PAWL_MUST_USE pawl_status pwi_note_decode(const void *bytes, size_t size, struct pwi_note *note_out);

/* Payload of COMPLAIN: in the chain of these positions the sender cannot reach its neighbour `node`; or, if that is the
 * sender itself, it cannot follow there. u64 begin, u64 end, u64 node, i32 status. */
struct pwi_complaint {
  struct pawl_range positions;
  uint64_t node;
  pawl_status status;
};

void pwi_complaint_encode(const struct pwi_complaint *complaint, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_complaint_decode(const void *bytes, size_t size, struct pwi_complaint *complaint_out);

/* --- probing ------------------------------------------------------------------------------------------------------ */

/* What a server finds that tries to reach another: protocol/prober.h. */
enum pwi_verdict {
  PWI_VERDICT_NONE = 0,
  PWI_VERDICT_ALIVE = 1,
  PWI_VERDICT_GONE = 2,
  PWI_VERDICT_SILENT = 3,
};

/* Payload of PROBE and PROBED: u64 node, u64 number, u32 patience_ms, u8 verdict. */
struct pwi_probe {
  uint64_t node;            /* that is to be tried; not 0 */
  uint64_t number;          /* the manager's, repeated with the verdict */
  uint32_t patience_ms;     /* without an answer for so long it is SILENT */
  enum pwi_verdict verdict; /* of a PROBE: NONE */
};

void pwi_probe_encode(const struct pwi_probe *probe, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_probe_decode(const void *bytes, size_t size, struct pwi_probe *probe_out);

/* --- reporting ---------------------------------------------------------------------------------------------------- */

/* Payload of REPORT, every second: totals since the start, and the load by position for the planner. */
#define PWI_REPORT_HOLLOW 8

struct pwi_report {
  uint64_t rows, bytes, memory_max; /* held now; the cap */
  uint64_t pushes, pulls, keys_pushed, keys_pulled, bytes_in, bytes_out, refused, gaps, wanted;
  uint64_t cached_lists, cached_bytes;
  uint64_t bytes_passed;              /* of values and state, down chains */
  uint64_t hollow_count;              /* vectors that could not be made, for lack of memory, */
  uint64_t hollow[PWI_REPORT_HOLLOW]; /* and the ids of the first of them; 0: no more */
};

struct pwi_load;
void pwi_report_encode(const struct pwi_report *report, const struct pwi_load *loads, size_t load_count,
                       struct pwi_writer *writer);

/* `*loads_out` is an array by rising position, freed with pwi_free; NULL if there are none. */
PAWL_MUST_USE pawl_status pwi_report_decode(const void *bytes, size_t size, struct pwi_report *report_out,
                                            struct pwi_load **loads_out, size_t *load_count_out);

#endif
