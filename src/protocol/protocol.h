/* Messages between roles: their kinds, the fixed records in them, and their meaning. docs/protocol.md
 * explains the protocol in order; this header is the reference for the bytes.
 *
 * Every message is a message of wire/message.h. Its head carries the numbers of the newest view, membership
 * and catalogue that the sender knows. A receiver that is behind catches up before it acts.
 *
 * Every message of a manager carries in the head's `tick` the manager's term, the number of its leadership
 * (protocol/manager_list.h). A JOIN carries there the highest term that the node has received. A node ignores
 * a manager with a lower term.
 *
 * There are three conversations:
 *
 *   REQUEST and ANSWER, on the data lane. A client sends a request to a *request handler*: the head of an
 *   arc, or a session that opened a vector locally. One request is about one claim: one arc of one vector, or
 *   a part of it. The requests of a link are processed in the order in which they were sent. Answers about
 *   one arc are sent in that order; while a chain is slow, answers about other arcs may overtake them. A
 *   request that depends on other clients (AWAIT, a push into an aggregate) is answered when they have
 *   arrived.
 *
 *   CHAIN, on the data lane, between servers that are neighbours in a chain.
 *
 *   All other kinds, on the link lane. All of them have the manager at one end, except CALL, RETURN, HEARD and
 *   PEER, which clients exchange, and PRIORITY.
 *
 * Decoders accept any bytes and return PAWL_CORRUPT for everything that is not as described.
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
  X(ANSWER, 2, "answer")      /* reply to REQUEST */                                                                   \
  X(JOIN, 3, "join")          /* server or client to manager: the first message of a link */                           \
  X(JOINED, 4, "joined")      /* reply to JOIN */                                                                      \
  X(NEWS, 5, "news")          /* manager to all nodes: view, catalogue, membership */                                  \
  X(HAVE, 6, "have")          /* reply to NEWS: the numbers in the head are in force here */                           \
  X(ASK, 7, "ask")            /* client to manager: a question or an order */                                          \
  X(REPLY, 8, "reply")        /* reply to ASK */                                                                       \
  X(MOVE, 9, "move")          /* manager to a member of a chain: fill another member, or hand over */                  \
  X(MOVED, 10, "moved")       /* reply to MOVE */                                                                      \
  X(REPORT, 13, "report")     /* server to manager: figures and load */                                                \
  X(LEAVE, 14, "leave")       /* server or client to manager: I want to leave */                                       \
  X(LEFT, 15, "left")         /* reply to LEAVE: permitted */                                                          \
  X(COMPLAIN, 16, "complain") /* server to manager: a neighbour in a chain cannot be reached; back: I hear you */      \
  X(CHAIN, 17, "chain")       /* server to server: members of a chain, see "chains" below */                           \
  X(SAVE, 18, "save")         /* manager to server: save these arcs, see protocol/save_messages.h */                   \
  X(SAVED, 19, "saved")       /* reply to SAVE: progress and result */                                                 \
  X(PROBE, 20, "probe")       /* manager to server: is this other server alive? */                                     \
  X(PROBED, 21, "probed")     /* reply to PROBE: the verdict */                                                        \
  X(CALL, 24, "call")         /* client to client: run these functions, see protocol/call.h */                         \
  X(RETURN, 25, "return")     /* reply to CALL: the results */                                                         \
  X(HEARD, 26, "heard")       /* client to client: results up to this number were received */                          \
  X(PEER, 27, "peer")         /* client to client: links and channels of peer groups, see peer/messages.h */           \
  X(COUNTS, 30, "counts")     /* client to manager: counters of filters, see protocol/filter_counts.h */               \
  X(SETTLE, 31, "settle")     /* manager to request handlers: which retired senders are unsettled? */                  \
  X(SETTLED, 32, "settled")   /* reply to SETTLE */                                                                    \
  X(IDLE, 33, "idle")         /* client to manager: tasks up to `task` and asks up to `tick` are answered */           \
  X(SPACES, 34, "spaces")     /* server to manager: bytes used here by spaces with a quota */                          \
  X(GRANT, 35, "grant")       /* manager to server: bytes that these spaces may use here */                            \
  X(PRIORITY, 36, "priority") /* client to server or relay: `tick` is the priority of its requests from now on */

enum pwi_say {
#define PWI_SAY_ENUM(name, number, text) PWI_SAY_##name = (number),
  PWI_SAY_MAP(PWI_SAY_ENUM)
#undef PWI_SAY_ENUM
};

/* Sections besides those of wire/message.h. */
#define PWI_SECTION_TERMS 16            /* of a request: struct pwi_terms */
#define PWI_SECTION_OUTCOME 17          /* of an answer: struct pwi_outcome */
#define PWI_SECTION_PAYLOAD 18          /* bytes; the kind of message determines their form */
#define PWI_SECTION_VIEW 19             /* bytes: ring/view.h */
#define PWI_SECTION_CATALOGUE 20        /* bytes: protocol/catalogue.h */
#define PWI_SECTION_MEMBERSHIP 21       /* bytes: protocol/membership.h */
#define PWI_SECTION_CHAIN 22            /* of a CHAIN message: struct pwi_chain_message */
#define PWI_SECTION_STATE 23            /* hidden state of rows, in the order of the rows; bytes */
#define PWI_SECTION_STAMPS 24           /* of an aggregate: its pushes, u64 sender and u64 task each */
#define PWI_SECTION_OPERATION 25        /* of a LINEAR or FOLD: struct pwi_operation */
#define PWI_SECTION_MEMBERSHIP_DELTA 26 /* bytes: protocol/membership_delta.h */
#define PWI_SECTION_FUNCTION 27         /* of a LINEAR: a row function with its parameters, as text */
/* Of an UPDATE: the result of a row function (protocol/run_result.h). Earlier versions pass over it. */
#define PWI_SECTION_RESULT (PWI_SECTION_OPTIONAL | 28)
#define PWI_SECTION_OPERAND 29      /* of a PUSH or PUSHPULL: rows that all of its rows share; values */
#define PWI_SECTION_FILTERS 30      /* of a pull: lossy filters for the answer (wire/filters.h) */
#define PWI_SECTION_PROOF 31        /* of a request, call or PEER: proof of the sender id (protocol/proof.h) */
#define PWI_SECTION_CONTRIBUTORS 40 /* of an aggregate of a relay: its pushes (protocol/relays.h) */
#define PWI_SECTION_READ_FIRST 41   /* of a PUSH, PUSHPULL, RESTORE or LINEAR: struct pwi_read_first */
/* Of a REPORT: u64 links of clients that wait for more urgent ones, u64 such waits begun so far. Earlier versions pass
 * over it. */
#define PWI_SECTION_HOLDS (PWI_SECTION_OPTIONAL | 42)

#define PWI_FILTERS_ASKED_MAX 640 /* maximum bytes of section FILTERS */

/* A push with an operand: products of one value of a row and one of the operand; about a second of work. Operand and
 * expanded rows have at most PAWL_SLICE_BYTES each; a single row may be larger. */
#define PWI_OPERAND_WORK (UINT64_C(1) << 33)

/* --- requests ------------------------------------------------------------------------------------------- */

enum pwi_request_kind {
  PWI_REQUEST_PUSH = 1,
  PWI_REQUEST_PULL = 2,
  PWI_REQUEST_PUSHPULL = 3,
  PWI_REQUEST_TICK = 4,    /* a push without values: the sender has reached `tick` in this group */
  PWI_REQUEST_ENTER = 5,   /* a push without values: the sender enters the group. A founder enters at tick
                              0, others at the highest tick of any member, but neither below `tick`. The
                              answer's `found` is the tick */
  PWI_REQUEST_AWAIT = 6,   /* answered once every member of the group has reached `tick` */
  PWI_REQUEST_COLLECT = 7, /* asks for the tasks of a retired sender that took effect here; its id is in
                              `other` */
  PWI_REQUEST_SCAN = 8,    /* asks for the keys in `range` that occupy memory, at most `rows` */
  PWI_REQUEST_RESTORE = 9, /* a push of rows from a checkpoint: they are assigned, whatever the vector's
                              function */
  PWI_REQUEST_LINEAR = 10, /* a push without values: section OPERATION says how the rows change */
  PWI_REQUEST_FOLD = 11,   /* a read: section OPERATION says how the rows are reduced to one sum */
};

/* Returns true for kinds that carry a task number and advance the clock. */
static inline bool pwi_request_is_numbered(enum pwi_request_kind kind) {
  return kind == PWI_REQUEST_PUSH || kind == PWI_REQUEST_PUSHPULL || kind == PWI_REQUEST_TICK ||
         kind == PWI_REQUEST_ENTER || kind == PWI_REQUEST_RESTORE || kind == PWI_REQUEST_LINEAR;
}

/* Returns true for kinds that change rows. */
static inline bool pwi_request_has_rows(enum pwi_request_kind kind) {
  return kind == PWI_REQUEST_PUSH || kind == PWI_REQUEST_PUSHPULL || kind == PWI_REQUEST_RESTORE ||
         kind == PWI_REQUEST_LINEAR;
}

/* How a request names its keys. */
enum pwi_request_keys {
  PWI_KEYS_RANGE = 0,  /* all keys of `range` */
  PWI_KEYS_LIST = 1,   /* section KEYS: codec PWI_SECTION_CODEC_KEYS, or RAW */
  PWI_KEYS_SIGNED = 2, /* section SIGNATURE: a list that the receiver has kept; `rows` is its length */
};

/* The terms of a request. Sender, task and tick are in the head of the message. `claim` and `range` are
 * stored keys. If the vector has a later incarnation than the request, the answer is RESTORED.
 *
 * PUSH, PUSHPULL, RESTORE, LINEAR, TICK and ENTER are numbered: they claim `claim`, and `prior` is the last
 * task that this sender sent to the claim before (store/clock.h). In a PULL, SCAN or FOLD, `prior` is the
 * last task of the sender that the read must include; if it is not here yet, the answer is GAP.
 *
 * A PULL to a relay names a group in `other`. Every member of the group has finished the tick in the head of the
 * message, and `staleness` says how many ticks older the rows may be. Its `prior` is a version of the arc, as answers
 * carry it: the rows must not be older. 0: any.
 */
struct pwi_terms {
  enum pwi_request_kind kind;
  enum pwi_request_keys keys;
  bool keep;   /* LIST: keep the list under its signature, because it will be used again */
  bool clocks; /* PULL, AWAIT: the answer shall contain the clocks of the claim */
  struct pwi_vector_id vector;
  uint64_t number;  /* of the request; chosen by the client and repeated in the head of the answer; never 0 */
  uint64_t prior;   /* the predecessor, see above */
  uint64_t settled; /* the sender has the answers to all its tasks up to this number */
  uint64_t other;   /* COLLECT: the retired sender; PUSH, PUSHPULL: the group whose pushes of this tick
                       form an aggregate, or 0; PULL to a relay: the group */
  uint64_t rows;    /* number of keys: length of the list, or size of the range; SCAN: maximum number of
                       keys in the answer */
  struct pawl_range claim;
  struct pawl_range range; /* part of the claim */
  uint32_t incarnation;    /* of the vector, as the client knows it */
  uint8_t codecs;          /* PULL, PUSHPULL: codecs that the answer may use besides RAW: bits 1 << codec */
  /* PULL to a relay. 0: only rows that are read after the request has come. Otherwise the rows may lack the pushes of
   * the last `staleness` - 1 ticks up to that in the head. */
  uint32_t staleness;
};

/* Returns true for a push into the aggregate of a group. */
static inline bool pwi_terms_are_aggregate(const struct pwi_terms *terms) {
  return terms->other != 0 && (terms->kind == PWI_REQUEST_PUSH || terms->kind == PWI_REQUEST_PUSHPULL);
}

#define PWI_TERMS_SIZE 96

/* Layout: u8 kind, u8 keys, u8 flags (1: keep, 2: clocks), u8 codecs, u32 staleness, then u64 each: vector, number,
 * prior, settled, other, rows, claim.begin, claim.end, range.begin, range.end, incarnation. */
void pwi_terms_encode(const struct pwi_terms *terms, uint8_t bytes[PWI_TERMS_SIZE]);

/* PAWL_CORRUPT also for an unknown kind, a number or vector of 0, RAW among the codecs, an empty claim, a range that
 * is empty or not in the claim, and a staleness of a request that is no PULL of a group. */
PAWL_MUST_USE pawl_status pwi_terms_decode(const void *bytes, size_t size, struct pwi_terms *terms_out);

/* The operation of a LINEAR or FOLD. LINEAR: the vector is y and `other` is x. FOLD: the vector is x and
 * `other` is y. `other` has the same type, row, size, placement and layout as the vector.
 *
 * The server processes one slice of work from the beginning of the range. The answer's `next` is the end of
 * the processed claim. The client continues from there under the same task number.
 */
struct pwi_operation {
  enum pwi_linear kind;       /* a changing one for LINEAR, a folding one for FOLD; 0: no operation */
  uint32_t column;            /* FOLD of one vector: only this value of each row, counted from 1; 0: all */
  double scalar;              /* 0 if the operation has none */
  struct pwi_vector_id other; /* {0} if the operation has no other vector */
  uint32_t incarnation;       /* of the other vector */
  uint64_t prior;             /* the last task of the sender that the other vector must include on the
                                 whole claim, otherwise GAP */
};

#define PWI_OPERATION_SIZE 40

/* Layout: u8 kind, 3 zeros, u32 column, f64 scalar, then u64 each: other, incarnation, prior. */
void pwi_operation_encode(const struct pwi_operation *operation, uint8_t bytes[PWI_OPERATION_SIZE]);

/* PAWL_CORRUPT also if a scalar, a column or another vector is present for an operation without it, or
 * missing for an operation with it. */
PAWL_MUST_USE pawl_status pwi_operation_decode(const void *bytes, size_t size, struct pwi_operation *operation_out);

/* An earlier LINEAR of the sender that reads the rows which this request changes. The request takes effect only where the
 * LINEAR has: otherwise the answer is GAP. Both vectors have the same size and placement. */
struct pwi_read_first {
  struct pwi_vector_id vector; /* of the LINEAR */
  uint64_t task;               /* its number; 0: there is none */
  struct pawl_range range;     /* stored keys; what is not in the claim of the request does not count */
};

#define PWI_READ_FIRST_SIZE 32

/* Layout: u64 each: vector, task, range.begin, range.end. */
void pwi_read_first_encode(const struct pwi_read_first *first, uint8_t bytes[PWI_READ_FIRST_SIZE]);

/* PAWL_CORRUPT also for a vector or task of 0 and an empty range. */
PAWL_MUST_USE pawl_status pwi_read_first_decode(const void *bytes, size_t size, struct pwi_read_first *first_out);

/* --- answers -------------------------------------------------------------------------------------------- */

/* Codes of answers. X(name, number, text)
 *
 *   OK        The request took effect; also for a duplicate.
 *   REFUSED   A numbered request changed nothing and never will. Its number is used up.
 *   FAILED    Nothing happened, and no number is used up: the request is invalid, is forbidden, or names
 *             something that does not exist.
 *   GAP       The task `prior`, or that of READ_FIRST, is not here yet. `found` is the lowest time of the sender on the
 *             claim.
 *   BROKEN    The history of the sender contradicts its clock here: the time `found` is impossible.
 *   WANTED    The signature is unknown: send the list.
 *   NOT_HERE  The claim is not wholly held here now, or the receiver is behind the numbers in the head of the
 *             request: try again with a newer view.
 *   RETIRED   The sender is not a live sender of the membership.
 *   GONE      COLLECT: the clocks of that sender are no longer kept.
 *   RESTORED  The vector was loaded from a checkpoint. `found` is its incarnation; requests for earlier ones
 *             are not applied.
 *   UNPROVEN  A numbered request with a sender id that was not proved on this link: send a proof and try
 *             again.
 *   DIRECT    Nothing happened: the push or pull came through a relay, or is an aggregate of one. The sender of each
 *             push or pull sends it to the server itself. If a contributor is the reason, `next` is its sender, and
 *             `found` the number of its push.
 */
#define PWI_CODE_MAP(X)                                                                                                \
  X(OK, 0, "ok")                                                                                                       \
  X(REFUSED, 1, "refused")                                                                                             \
  X(FAILED, 2, "failed")                                                                                               \
  X(GAP, 3, "gap")                                                                                                     \
  X(BROKEN, 4, "broken")                                                                                               \
  X(WANTED, 5, "wanted")                                                                                               \
  X(NOT_HERE, 6, "not here")                                                                                           \
  X(RETIRED, 7, "retired")                                                                                             \
  X(GONE, 8, "gone")                                                                                                   \
  X(RESTORED, 9, "restored")                                                                                           \
  X(UNPROVEN, 10, "unproven")                                                                                          \
  X(DIRECT, 11, "direct")

enum pwi_code {
#define PWI_CODE_ENUM(name, number, text) PWI_CODE_##name = (number),
  PWI_CODE_MAP(PWI_CODE_ENUM)
#undef PWI_CODE_ENUM
};

const char *pwi_code_text(enum pwi_code code);

/* The outcome of a request, in an answer. The head of the answer repeats the request's `number` in `tick` and
 * its task in `task`; `sender` is the node that answers. The sections are OUTCOME and, for a request for
 * values, VALUES immediately after it, so that the values begin PWI_ANSWER_PREFIX bytes into the body.
 * COLLECT and FOLD have OUTCOME and PAYLOAD; SCAN has OUTCOME, PAYLOAD (the keys, u64 each) and VALUES. */
struct pwi_outcome {
  enum pwi_code code;
  pawl_status status; /* reason of REFUSED and FAILED; otherwise PAWL_OK */
  uint64_t found;     /* GAP, BROKEN: a time; ENTER, AWAIT: a tick; RESTORED: an incarnation; REFUSED: the
                         first refused key; PULL, by a relay: the rows have every push that the members made before
                         they finished this tick */
  uint64_t next;      /* SCAN: the key to continue from; the end of the range if there are no more. LINEAR
                         and FOLD, also if REFUSED: the end of the processed claim. Other requests if
                         REFUSED: the end of the last refused key range */
  uint64_t version;   /* OK, REFUSED, to nodes with PWI_FEATURE_RELAYED_PULLS: 1 + the version of the arc in which the
                         whole claim lies, when the request was served or its rows were read; 0: unknown */
};

#define PWI_OUTCOME_SIZE 32
#define PWI_ANSWER_PREFIX 128

/* Layout: u32 code, i32 status, u64 each: found, next, version. */
void pwi_outcome_encode(const struct pwi_outcome *outcome, uint8_t bytes[PWI_OUTCOME_SIZE]);
PAWL_MUST_USE pawl_status pwi_outcome_decode(const void *bytes, size_t size, struct pwi_outcome *outcome_out);

/* Payload of the answer to a PULL or AWAIT that asked for clocks, before the values: u64 begin, u64 end, u64
 * sender, u64 time for each piece of the claim where the time of a live sender is not 0, by ascending sender,
 * then key. The answer to an AWAIT lists all members of the group with their ticks, but only if the AWAIT did
 * not have to wait. */
#define PWI_CLOCK_RECORD 32

/* Payload of the answer to COLLECT, with base/cursor.h: u32 count and for each piece u64 begin, u64 end, u64
 * time; then u32 count and for each refusal u64 begin, u64 end, u64 task, u32 status;
 * then, if there are any results of row functions of the sender here, u32 count and for each u64
 * task and the result (protocol/run_result.h).
 *
 * Payload of the answer to a LINEAR that runs a row function: the same list, of its task on the processed claim.
 *
 * Payload of the answer to FOLD: f64 high, f64 low (struct pwi_sum).
 */

/* --- joining -------------------------------------------------------------------------------------------- */

#define PWI_LABEL_MAX 255

/* Payload of JOIN. `id` and `secret` are 0 at first. A node that returns after a lost link sends its id
 * again, with the secret that only it and the manager know. */
struct pwi_join {
  uint8_t role; /* enum pwi_hello_role: server or client */
  uint64_t id;  /* node or sender */
  uint64_t secret;
  char address[PWI_LABEL_MAX + 1]; /* where it listens; "" for a client that does not listen */
  char host[PWI_LABEL_MAX + 1];    /* name of its machine; may be empty */
  char rack[PWI_LABEL_MAX + 1];    /* name of its rack; may be empty */
  /* Servers only. */
  uint64_t process; /* random number of the process, the same for all its shards */
  uint32_t shard;
  uint32_t shard_count;
  uint32_t weight;
  uint64_t memory_max; /* bytes; UINT64_MAX: no cap */
  /* Clients only. */
  char job[PWI_LABEL_MAX + 1];
  bool reader;      /* it only pulls and needs no sender id */
  uint8_t key[32];  /* public key that verifies its proofs (protocol/proof.h) */
  uint64_t retired; /* a former sender id of this client whose clocks it has not collected yet; 0: none */
};

/* Payload of JOINED. */
struct pwi_joined {
  pawl_status status; /* PAWL_OK, or the reason of the rejection; the other fields are then 0, except
                         `leader`. PAWL_NODE_RETIRED: join again without an id. PAWL_NODE_STANDBY: another
                         manager leads */
  uint64_t cluster;
  uint64_t id;
  uint64_t secret;
  bool settled;                   /* every task of the retired sender named by JOIN that took effect was
                                     answered */
  bool may_write;                 /* the key of the link permits writing */
  char space[PWI_SPACE_MAX + 1];  /* the key of the link permits this space only; "": all spaces */
  char leader[PWI_LABEL_MAX + 1]; /* PAWL_NODE_STANDBY: address of the leader; "": unknown */
};

struct pwi_writer;
void pwi_join_encode(const struct pwi_join *join, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_join_decode(const void *bytes, size_t size, struct pwi_join *join_out);
void pwi_joined_encode(const struct pwi_joined *joined, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_joined_decode(const void *bytes, size_t size, struct pwi_joined *joined_out);

/* Payload of SETTLE: u64 number, u32 count, and for each retired sender, by ascending id, u64 sender, u64
 * settled: the sender had the answers to all tasks up to this number.
 *
 * Payload of SETTLED: u64 number, u32 count, and u64 for each of these senders that has a later task here, or
 * that is not known here as retired. The head names the view for which this holds.
 */
struct pwi_settle {
  uint64_t sender, settled;
};

#define PWI_SETTLE_MAX 1024 /* senders in one message */

void pwi_settle_encode(uint64_t number, const struct pwi_settle *senders, size_t count, struct pwi_writer *writer);

/* For both decoders, `senders_out` has room for PWI_SETTLE_MAX elements. */
PAWL_MUST_USE pawl_status pwi_settle_decode(const void *bytes, size_t size, uint64_t *number_out,
                                            struct pwi_settle *senders_out, size_t *count_out);
void pwi_settled_encode(uint64_t number, const uint64_t *senders, size_t count, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_settled_decode(const void *bytes, size_t size, uint64_t *number_out,
                                             uint64_t *senders_out, size_t *count_out);

/* Payload of SPACES and GRANT: u32 count, and for each space text space, u64 bytes. A server counts the
 * spaces that the last GRANT named, and no others. UINT64_MAX in a GRANT: no limit yet; the server shall
 * report its bytes at once. */
struct pwi_space_bytes {
  char space[PWI_SPACE_MAX + 1];
  uint64_t bytes;
};

#define PWI_SPACES_MAX 256

void pwi_spaces_encode(const struct pwi_space_bytes *spaces, size_t count, struct pwi_writer *writer);

/* `spaces_out` has room for PWI_SPACES_MAX elements. */
PAWL_MUST_USE pawl_status pwi_spaces_decode(const void *bytes, size_t size, struct pwi_space_bytes *spaces_out,
                                            size_t *count_out);

/* --- asking the manager --------------------------------------------------------------------------------- */

/* Questions and orders of clients to the manager. The head's `task` is the number of the ask, and `tick` is
 * its kind; the reply repeats the number. Payloads use base/cursor.h: an ask begins with struct
 * pwi_ask_terms, then has the fields listed here. Every reply begins with the status as u32. X(name, number,
 * text)
 *
 * The numbers of a client rise from 1, whatever its sender id is. A client whose link is lost sends the asks
 * without a reply again, in the order of their numbers. The manager executes an ask at most once and repeats
 * the reply as often as it is asked (manager/ledger/ledger.h). STATUS and SYNC change nothing and are
 * executed each time. Readers may send these two only.
 *
 *   CREATE         text name, options as in the catalogue; reply: u64 id
 *   DELETE         text name
 *   GROUP          text name, u32 size: join the group, and create it if it is new; reply: u64 id
 *   PEERS          as GROUP, for a peer group. MISMATCH, as for GROUP, if the name is of the other kind or
 *                  has another size
 *   UNGROUP        u64 id: leave the group or peer group
 *   FORGET         u64 sender, u64 its secret: all its clocks were collected
 *   STATUS         reply: the state of the cluster as JSON text bytes
 *   MOVE           u64 begin, u64 end, u64 node: move these positions to the node; for operators and tests
 *   BALANCE        plan again from the measured load, and move arcs accordingly
 *   LISTEN         text address: where this client serves vectors that it opened locally
 *   SYNC           reply: nothing; its head has the numbers of view, membership and catalogue
 *   DRAIN          u64 node, or 0 and text address: the server process of this shard shall leave
 *   GIVE_UP        u64 node of a dead server, u8 1: its data may be lost; reply: u64 arcs lost
 *   RESTORE_BEGIN  text name, options as in the catalogue: create the vector, or begin its next incarnation;
 *                  reply: u64 id. MISMATCH if it has other options
 *   CHECKPOINT     text directory ("": the manager's own), text name ("": the manager chooses), u8 flags (1
 *                  incremental, 2 compressed), u64 bytes a second (0: no limit); reply, when it has begun:
 *                  u64 number. STATUS shows the progress
 *   MISS           u64 sender: nobody listens at its address. If the sender has no link to the manager
 *                  either, it is retired now, without its grace. EXISTS: it has a link. FORBIDDEN as RETIRE
 *   RETIRE         u64 sender: it is dead and is retired now, even if it has a link. INVALID: the asker
 *                  itself. FORBIDDEN: the key of the sender is for another space
 *   QUOTA          text space, u64 bytes of memory for its vectors on all servers; 0: no limit
 */
#define PWI_ASK_MAP(X)                                                                                                 \
  X(CREATE, 1, "create")                                                                                               \
  X(DELETE, 2, "delete")                                                                                               \
  X(GROUP, 3, "group")                                                                                                 \
  X(UNGROUP, 4, "ungroup")                                                                                             \
  X(FORGET, 5, "forget")                                                                                               \
  X(STATUS, 6, "status")                                                                                               \
  X(MOVE, 7, "move")                                                                                                   \
  X(BALANCE, 8, "balance")                                                                                             \
  X(LISTEN, 9, "listen")                                                                                               \
  X(SYNC, 10, "sync")                                                                                                  \
  X(DRAIN, 11, "drain")                                                                                                \
  X(GIVE_UP, 12, "give up")                                                                                            \
  X(RESTORE_BEGIN, 13, "restore")                                                                                      \
  X(CHECKPOINT, 14, "checkpoint")                                                                                      \
  X(MISS, 15, "miss")                                                                                                  \
  X(RETIRE, 16, "retire")                                                                                              \
  X(QUOTA, 17, "quota")                                                                                                \
  X(PEERS, 18, "peers")

/* Precedes the payload of an ask. Layout: u64 heard, u64 former, u64 secret. */
struct pwi_ask_terms {
  uint64_t heard;  /* the client has the replies to all asks up to this number */
  uint64_t former; /* the retired sender id under which it was asked first; 0: the present one */
  uint64_t secret; /* secret of the former id */
};

enum pwi_ask {
#define PWI_ASK_ENUM(name, number, text) PWI_ASK_##name = (number),
  PWI_ASK_MAP(PWI_ASK_ENUM)
#undef PWI_ASK_ENUM
};

/* Returns true for asks about the asking sender itself. Sent again under a new sender id, such an ask is a
 * new one. All others mean the same under any id of the client. */
static inline bool pwi_ask_is_about_asker(enum pwi_ask what) {
  return what == PWI_ASK_GROUP || what == PWI_ASK_PEERS || what == PWI_ASK_UNGROUP || what == PWI_ASK_LISTEN;
}

static inline bool pwi_ask_changes(uint64_t what) { return what != PWI_ASK_STATUS && what != PWI_ASK_SYNC; }

struct pwi_reader;
void pwi_ask_terms_write(const struct pwi_ask_terms *terms, struct pwi_writer *writer);
struct pwi_ask_terms pwi_ask_terms_read(struct pwi_reader *reader);

/* --- moving --------------------------------------------------------------------------------------------- */

/* Orders of a MOVE. */
enum pwi_move_step {
  PWI_MOVE_FILL = 1,     /* to the last full member of a chain: fill `target`, which follows it in the view */
  PWI_MOVE_HANDOVER = 2, /* to the head: accept no more requests, and report when all full members are
                            equal */
};

/* Payload of MOVE and MOVED. */
struct pwi_move {
  uint64_t move;  /* a number that the manager never uses again */
  uint64_t epoch; /* of the view of the order; a server with an older view waits for it */
  struct pawl_range positions;
  uint64_t target;                 /* the node to fill, or the future head */
  uint64_t sequence;               /* unused: 0 */
  uint8_t step;                    /* enum pwi_move_step */
  bool cancel;                     /* MOVE: stop this move, and serve the positions again */
  pawl_status status;              /* MOVED: the result */
  char address[PWI_LABEL_MAX + 1]; /* MOVE: address of the target */
};

void pwi_move_encode(const struct pwi_move *move, struct pwi_writer *writer);

/* `*used_out` is the encoded size of the record. */
PAWL_MUST_USE pawl_status pwi_move_decode(const void *bytes, size_t size, struct pwi_move *move_out, size_t *used_out);

/* --- chains --------------------------------------------------------------------------------------------- */

/* Every CHAIN message has one record of struct pwi_chain_message. It is about an arc of the view, named by its
 * positions and by `since`, the epoch of the view that made its bounds and its chain. A member that has the
 * arc with another `since` ignores the message. All CHAIN messages use the data lane, in order.
 *
 *   OPEN     From the predecessor, before it sends. `version` is the last version that it has itself.
 *   READY    Reply to OPEN; also sent unasked as soon as the view arrives. Send the updates after `version`;
 *            all versions up to `other` are confirmed. `full`: include the keys of the first update, because
 *            its signature is unknown here.
 *   UPDATE   The log entry of a numbered request (enum pwi_effect). The head has sender, task and tick;
 *            sections TERMS, KEYS or SIGNATURE, VALUES, STATE, STAMPS follow as needed. `positions` is the
 *            part of the arc that changed, `version` the number of the update, `prior` the number of the
 *            update before it, which must be applied first. A version may consist of several updates for
 *            different parts of the arc: `other` is twice the number of updates of this version before this
 *            one, plus 1 if another one follows. They are applied in this order, and the version is complete
 *            with the last one. An UPDATE without effect and sections says that no more updates up to
 *            `version` will come.
 *   CONFIRM  Reply to UPDATE: this member and all full members after it have everything up to `version`.
 *   CHUNK    To a member that is being filled. `other` is the move, `version` the number of the chunk from 1,
 *            `prior` the version of the arc that the chunk shows. `effect` is enum pwi_chunk_step. PAYLOAD is
 *            a chunk of shard/shard.h for DATA, and the versions of the arc by position (store/clock.h) for
 *            END.
 *   TAKEN    Reply to CHUNK: `version` is the number of the chunk, `status` the result.
 */
#define PWI_CHAIN_MESSAGE_MAP(X)                                                                                       \
  X(OPEN, 1, "open")                                                                                                   \
  X(READY, 2, "ready")                                                                                                 \
  X(UPDATE, 3, "update")                                                                                               \
  X(CONFIRM, 4, "confirm")                                                                                             \
  X(CHUNK, 5, "chunk")                                                                                                 \
  X(TAKEN, 6, "taken")

enum pwi_chain_message_kind {
#define PWI_CHAIN_MESSAGE_ENUM(name, number, text) PWI_CHAIN_##name = (number),
  PWI_CHAIN_MESSAGE_MAP(PWI_CHAIN_MESSAGE_ENUM)
#undef PWI_CHAIN_MESSAGE_ENUM
};

/* Effects of a request. */
enum pwi_effect {
  PWI_EFFECT_NONE = 0,
  PWI_EFFECT_ROWS = 1,    /* rows have new values, and the clock of the sender is at the task */
  PWI_EFFECT_TICK = 2,    /* tick and clock of the sender have changed */
  PWI_EFFECT_REFUSAL = 3, /* the request was refused with `status`, and the clock has changed */
};

enum pwi_chunk_step {
  PWI_CHUNK_BEGIN = 1, /* discard the rows and clocks of this range */
  PWI_CHUNK_DATA = 2,
  PWI_CHUNK_END = 3, /* the last chunk: the member is at version `prior` */
};

struct pwi_chain_message {
  enum pwi_chain_message_kind kind;
  uint8_t effect;
  bool full;
  pawl_status status;
  struct pawl_range positions;
  uint64_t since;
  uint64_t version, prior;
  uint64_t other;
};

#define PWI_CHAIN_MESSAGE_SIZE 64

/* Layout: u8 kind, u8 effect, u8 flags (1: full), u8 0, i32 status, then u64 each: positions.begin,
 * positions.end, since, version, prior, other, 0. */
void pwi_chain_message_encode(const struct pwi_chain_message *message, uint8_t bytes[PWI_CHAIN_MESSAGE_SIZE]);

/* PAWL_CORRUPT also for an unknown kind, empty positions, and a `since` of 0. */
PAWL_MUST_USE pawl_status pwi_chain_message_decode(const void *bytes, size_t size,
                                                   struct pwi_chain_message *message_out);

/* Payload of COMPLAIN: in the chain of these positions the sender cannot reach its neighbour `node`. If `node` is the
 * sender itself, it cannot follow the chain. With PAWL_OK it is a warning, which the manager answers with a COMPLAIN
 * without a payload. Layout: u64 begin, u64 end, u64 node, i32 status. */
struct pwi_complaint {
  struct pawl_range positions;
  uint64_t node;
  pawl_status status;
};

void pwi_complaint_encode(const struct pwi_complaint *complaint, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_complaint_decode(const void *bytes, size_t size, struct pwi_complaint *complaint_out);

/* --- probing -------------------------------------------------------------------------------------------- */

/* Results of a probe, see protocol/prober.h. */
enum pwi_verdict {
  PWI_VERDICT_NONE = 0,
  PWI_VERDICT_ALIVE = 1,
  PWI_VERDICT_GONE = 2,
  PWI_VERDICT_SILENT = 3,
};

/* Payload of PROBE and PROBED: u64 node, u64 number, u32 patience_ms, u8 verdict. */
struct pwi_probe {
  uint64_t node;            /* the node to probe; not 0 */
  uint64_t number;          /* chosen by the manager, repeated with the verdict */
  uint32_t patience_ms;     /* time without an answer after which the verdict is SILENT */
  enum pwi_verdict verdict; /* NONE in a PROBE */
};

void pwi_probe_encode(const struct pwi_probe *probe, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_probe_decode(const void *bytes, size_t size, struct pwi_probe *probe_out);

/* --- reporting ------------------------------------------------------------------------------------------ */

/* Payload of REPORT, sent every second: totals since the start, and the load by position for the planner. */
#define PWI_REPORT_HOLLOW 8

struct pwi_report {
  uint64_t rows, bytes, memory_max; /* bytes and rows held now; the memory cap */
  uint64_t pushes, pulls, keys_pushed, keys_pulled, bytes_in, bytes_out, refused, gaps, wanted;
  uint64_t cached_lists, cached_bytes;
  uint64_t bytes_passed;              /* values and state sent down chains */
  uint64_t hollow_count;              /* number of vectors without a table, for lack of memory */
  uint64_t hollow[PWI_REPORT_HOLLOW]; /* ids of the first such vectors; 0: no more */
};

struct pwi_load;
void pwi_report_encode(const struct pwi_report *report, const struct pwi_load *loads, size_t load_count,
                       struct pwi_writer *writer);

/* `*loads_out` is an array by ascending position, freed with pwi_free; NULL if it is empty. */
PAWL_MUST_USE pawl_status pwi_report_decode(const void *bytes, size_t size, struct pwi_report *report_out,
                                            struct pwi_load **loads_out, size_t *load_count_out);

#endif
