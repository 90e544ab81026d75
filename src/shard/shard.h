/* A shard: the rows and clocks of the arcs that a node holds, and the execution of requests on them.
 *
 * A shard is a server without its network. It is a state machine that receives requests as structs, with
 * pointers to keys and values, and returns the outcome. A server shard has one for its arcs of all vectors. A
 * client that opens a vector locally has one that holds the whole ring for that vector. A shard sends nothing
 * and reads no clock.
 *
 * HELD POSITIONS. A shard holds a set of ring positions, the same for all vectors. It holds the keys of each
 * vector on these positions: rows in one table that spans the vector, and times in a range vector clock
 * (OSDI'14 4.1) of exactly these keys. The bounds of arcs do not matter here: a request is served if all of
 * its claim is held and none of it is frozen.
 *
 * EXACTLY ONCE (docs/protocol.md#life-of-a-push). A numbered request is compared with the clock of its
 * sender. It is applied where it is due and skipped where it was applied before. The outcome is GAP if an
 * earlier request is missing, and BROKEN if the claimed history is impossible. Values and clock change in one
 * step or not at all. A refused request uses up its number: the clock is set, and the refusal is remembered
 * until the sender has `settled` it, so that a resend is refused again with the same status.
 *
 * KEY LISTS. If a request asks for it, its key list is kept under its signature, with the slots of its keys.
 * When the cache is full, the least recently used lists are removed first.
 *
 * MEMORY. A shard at its cap refuses to grow, with PAWL_NODE_FULL, and serves everything else. The cap counts
 * rows and kept lists.
 *
 * Threads: belongs to one thread. Errors: PAWL_NO_MEMORY where no other error is listed; nothing has changed
 * then.
 */
#ifndef PWI_SHARD_SHARD_H
#define PWI_SHARD_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "base/cursor.h"
#include "ring/plan.h" /* struct pwi_load */
#include "protocol/catalogue.h"
#include "protocol/protocol.h"
#include "protocol/run_result.h"
#include "protocol/membership.h"

struct pwi_shard;

/* Identifies a request that waits in a group. All values are the caller's: the connection to answer (the later one
 * of two has the higher number), the number of the request, and its vector. */
struct pwi_waiter {
  uint64_t owner;
  uint64_t number;
  struct pwi_vector_id vector;
};

struct pwi_shard_config {
  uint64_t memory_max; /* limit for rows and lists in bytes; UINT64_MAX: no cap */
  uint64_t cache_max;  /* limit for kept lists in bytes, including slots; 0: 256 MiB */

  /* Server functions besides the built-in ones; borrowed, NULL: none. They may take long, so they are called
   * through `run`, which must call `work` once and return when `work` has returned. NULL: they are called
   * directly. */
  const struct pwi_function_set *functions;
  void (*run)(void *context, void (*work)(void *argument), void *argument);
  void *run_context;

  /* Delivers the outcome of a deferred AWAIT: OK, NOT_HERE if the group moves away, or FAILED if it was
   * deleted. Also delivers the failure of a deferred push (see aggregates below). OK depends on ticks that
   * may be counted only here: if there is a chain, its members must have them before the answer is sent.
   * Called from any function below; it must not call the shard. */
  void (*answer)(void *context, struct pwi_waiter waiter, const struct pwi_outcome *outcome);
  void *context;
};

PAWL_MUST_USE pawl_status pwi_shard_create(const struct pwi_shard_config *config, struct pwi_shard **shard_out);
void pwi_shard_destroy(struct pwi_shard *shard); /* NULL is fine; waiting requests are not answered */

/* --- held positions and vectors ------------------------------------------------------------------------- */

/* Adds a vector or group; the entry is copied. On all held positions its rows are absent and its times 0.
 * PAWL_EXISTS. */
PAWL_MUST_USE pawl_status pwi_shard_open(struct pwi_shard *shard, const struct pwi_entry *entry);

/* Tries again to create tables that could not be created for lack of memory. Until then pushes and pulls of
 * these vectors are refused with PAWL_NODE_FULL; everything else is served. */
void pwi_shard_retry(struct pwi_shard *shard);

/* Begins the incarnation of `entry`, which must be a later one, of an existing vector. Rows, times and
 * refusals are discarded, including staged ones. PAWL_NOT_FOUND, PAWL_NO_MEMORY: nothing has changed. */
PAWL_MUST_USE pawl_status pwi_shard_renew(struct pwi_shard *shard, const struct pwi_entry *entry);
/* The incarnation of a vector; 0 if there is no such vector. */
uint32_t pwi_shard_incarnation(const struct pwi_shard *shard, struct pwi_vector_id id);

/* Removes a vector and all its data. An unknown vector is ignored. */
void pwi_shard_close(struct pwi_shard *shard, struct pwi_vector_id id);

bool pwi_shard_has(const struct pwi_shard *shard, struct pwi_vector_id id);

/* Iterates over the vectors by ascending id. Begin with {0}; returns false after the last. */
bool pwi_shard_next(const struct pwi_shard *shard, struct pwi_vector_id *id);

/* Sets the membership: the senders that may push, and the members of groups. It is borrowed until the next
 * call and read in every request. Clocks and refusals of senders that it lists neither as live nor as retired
 * are discarded. Waiting requests are examined again. Before the first call no sender may push. */
void pwi_shard_set_membership(struct pwi_shard *shard, const struct pwi_membership *membership);

/* Finds unsettled senders among `senders`, which are sorted by ascending id: senders with a task later than
 * `settled` here, and senders that the membership does not list as retired. Writes their ids to `unsettled`,
 * which has room for all, and returns their number. */
size_t pwi_shard_unsettled(const struct pwi_shard *shard, const struct pwi_settle *senders, size_t count,
                           uint64_t *unsettled);

/* The client that serves this shard was declared dead, and will join under another id. The rows and clocks stay.
 * A sender begins anew with the new id: its first push there names no predecessor, although the shard may have
 * pushes that it sent to the old id. Such a push is in order. It cannot pass an earlier one that will still be
 * answered: a sender that knows the new id has given up all calls to the old one, and its numbers only rise. */
void pwi_shard_renewed(struct pwi_shard *shard);

/* For changes of the membership in place: call pwi_shard_forget for each sender that it no longer lists, then
 * pwi_shard_membership_changed. */
void pwi_shard_forget(struct pwi_shard *shard, struct pwi_sender sender);
void pwi_shard_membership_changed(struct pwi_shard *shard);

/* The membership that has changed is now at this place. Call pwi_shard_membership_changed next. */
void pwi_shard_move_membership(struct pwi_shard *shard, const struct pwi_membership *membership);

/* Adds empty positions, to which no sender has ever pushed. PAWL_INVALID if any is held already. */
PAWL_MUST_USE pawl_status pwi_shard_hold(struct pwi_shard *shard, struct pawl_range positions);

/* Discards positions with their rows and times, including staged ones (below). Waiting requests there are
 * answered NOT_HERE. Positions that are not held are ignored. On PAWL_NO_MEMORY the positions are frozen
 * instead, and the call can be repeated. */
PAWL_MUST_USE pawl_status pwi_shard_drop(struct pwi_shard *shard, struct pawl_range positions);

/* Freezes positions: all requests there, including waiting ones, are answered NOT_HERE until the positions
 * are thawed. */
PAWL_MUST_USE pawl_status pwi_shard_freeze(struct pwi_shard *shard, struct pawl_range positions);
void pwi_shard_thaw(struct pwi_shard *shard, struct pawl_range positions);

/* Returns true if all positions are held. */
bool pwi_shard_holds(const struct pwi_shard *shard, struct pawl_range positions);

/* --- requests ------------------------------------------------------------------------------------------- */

struct pwi_request {
  struct pwi_terms terms;
  struct pwi_sender sender;
  uint64_t task;
  uint64_t tick;
  const uint64_t *keys;       /* LIST: terms.rows keys, strictly ascending (checked by the caller) */
  uint64_t signature;         /* LIST with keep, and SIGNED */
  const struct iovec *values; /* PUSH, PUSHPULL: raw values, one row for each key; the parts may end
                                 anywhere */
  size_t value_parts;
  uint8_t value_type;   /* enum pwi_value_type; PAWL_MISMATCH if it is not the vector's */
  const void *operand;  /* PUSH, PUSHPULL: rows that all rows of the push share, aligned; NULL: none.
                                     See pwi_shard_expand */
  size_t operand_count; /* values */
  uint8_t operand_type;
  void *result;                   /* PUSH, PUSHPULL: the buffer that will be passed to pwi_shard_result as
                                     `values`; may be NULL */
  struct pwi_waiter waiter;       /* AWAIT, and pushes into an aggregate */
  struct pawl_range arc;          /* a push that names a group in terms.other: the keys of its arc, if it
                                     may be part of an aggregate; otherwise empty */
  struct pwi_operation operation; /* LINEAR, FOLD */
  const char *function;           /* LINEAR that runs a row function: its name and parameters; NULL: missing */
  struct pwi_read_first first;    /* PUSH, PUSHPULL, RESTORE, LINEAR: GAP before this task */
  pawl_status refusal;            /* PUSH, PUSHPULL, LINEAR: refuse the request with this status if it is
                                     due; keys and values are not read */
  const void *encoded;            /* LIST: the encoded keys, described by `encoded_as`; not read by the
                                     shard */
  struct pwi_section encoded_as;
  const void *filters; /* PULL, PUSHPULL: encoded filters for the answer; not read by the shard */
  size_t filters_size;
  bool may_view; /* PULL: the answer may be read from the table, see struct pwi_served */
};

/* Checks a request without allocating memory for it. Call it before allocating memory in proportion to
 * `terms.rows`. If it fails, a numbered request must be refused by setting `refusal`. PAWL_INVALID (more rows
 * than the keys can name), PAWL_MISMATCH (the number of values does not match the rows, or the operand not the
 * vector), PAWL_TOO_LARGE (an operand, and its rows with it), PAWL_UNSUPPORTED (the vector's function is unknown here). */
PAWL_MUST_USE pawl_status pwi_shard_inspect(const struct pwi_shard *shard, const struct pwi_request *request);

/* Turns a push with an operand, which pwi_shard_inspect has accepted, into an ordinary one: SFB, footnote 5. Its values
 * are valid until the next call. PAWL_NO_MEMORY: the push must be refused with it. */
PAWL_MUST_USE pawl_status pwi_shard_expand(struct pwi_shard *shard, struct pwi_request *request);

/* Reduces a LINEAR to one slice of work before it is served: claim and range may end earlier. For a sparse
 * vector, the rows concerned become a key list, valid until the next call. On failure nothing has changed,
 * and the request must be refused with that status (see REFUSED below; also PAWL_NO_MEMORY). */
PAWL_MUST_USE pawl_status pwi_shard_cut_linear(struct pwi_shard *shard, struct pwi_request *request);

/* Bytes of values in the answer if it is OK: exact for PULL and PUSHPULL, a maximum for SCAN, otherwise 0.
 * Also 0 for an unknown vector. PAWL_TOO_LARGE if there are more than `max`. */
PAWL_MUST_USE pawl_status pwi_shard_answer_bytes(const struct pwi_shard *shard, const struct pwi_request *request,
                                                 size_t max, size_t *bytes_out);

/* Bytes of clocks in the answer at this moment, if the request asks for them. */
size_t pwi_shard_clock_bytes(const struct pwi_shard *shard, const struct pwi_request *request);

struct pwi_served {
  struct pwi_outcome outcome;
  bool is_deferred;    /* the answer must wait: it comes from config.answer (AWAIT), or with the end of the
                          aggregate */
  size_t value_bytes;  /* bytes written to `values` for the answer */
  const void *view;    /* not NULL: nothing was written; they are here until the next request */
  uint64_t rows;       /* SCAN: number of rows found */
  const void *payload; /* of COLLECT, SCAN, FOLD, row functions and clocks: valid until the next request */
  size_t payload_size;
  enum pwi_effect effect;              /* the change for the members of the chain; NONE also for a duplicate */
  uint64_t tick;                       /* TICK: the tick of the sender now */
  const struct pwi_run_result *result; /* of a row function that ran now, for the members of the chain; NULL: none.
                                          Valid until the next request */
};

/* Executes a request. `values` has room for the bytes that pwi_shard_answer_bytes returned, and need not be
 * aligned. There is always an outcome, also without memory: REFUSED with PAWL_NO_MEMORY for a request that
 * must use up its number, FAILED if even that was not possible.
 *
 *   NOT_HERE  The claim is not wholly held, or is frozen. (An unknown vector is FAILED with PAWL_NOT_FOUND.
 *             The caller must check first, by the numbers in the head of the message, that its catalogue is
 *             not behind.)
 *   RETIRED   A numbered request of a sender that is not live on the membership. Also a read that
 *             names a push of a forgotten sender, whose clocks are gone. Other pulls and scans need no sender.
 *   FAILED    PAWL_OUT_OF_SPAN, PAWL_INVALID (an impossible claim), PAWL_NOT_FOUND; for a request without a
 *             number also all errors of REFUSED.
 *   REFUSED   PAWL_INVALID (terms that contradict each other or the vector), PAWL_OUT_OF_SPAN (keys outside
 *             the range), PAWL_MISMATCH (number or type of values; for a LINEAR, incompatible vectors),
 *             PAWL_NODE_FULL, PAWL_NO_MEMORY. LINEAR also PAWL_NOT_FOUND and PAWL_RESTORED (the other
 *             vector), and PAWL_UNSUPPORTED (filling a sparse vector).
 *
 * Steady state: nothing is allocated if no key is new and the buffers have grown to their size.
 */
void pwi_shard_serve(struct pwi_shard *shard, const struct pwi_request *request, void *values,
                     struct pwi_served *served_out);

/* Executes an aggregate of a relay: one push of a group with the sum of the pushes of `contributors`, which are in
 * ascending order of senders. Sender and task of the request are ignored. Returns true if the aggregate was taken: all
 * pushes wait for the end of the tick, and the request is answered then. Otherwise nothing has happened, and
 * `*outcome_out` is DIRECT: a contributor is not live or not a member, its push is not due on the whole claim or waits
 * here already, the claim is not held, the keys are invalid, the vector cannot add pushes up, or memory is short. */
struct pwi_contributor;
bool pwi_shard_serve_relayed(struct pwi_shard *shard, const struct pwi_request *request,
                             const struct pwi_contributor *contributors, size_t count, struct pwi_outcome *outcome_out);

/* Call immediately after a request with the effect ROWS: writes the present rows and states of its keys, in
 * the order of the keys. Both buffers have room for terms.rows rows. */
void pwi_shard_result(struct pwi_shard *shard, const struct pwi_request *request, void *values, void *state);

/* Pins a kept list: it remains valid until it is unpinned, even if it is removed from the cache. NULL if it
 * is not kept. */
struct pwi_list;
struct pwi_list *pwi_shard_pin_list(struct pwi_shard *shard, struct pwi_vector_id vector, uint64_t signature);
void pwi_list_unpin(struct pwi_list *list); /* NULL is fine */
const uint64_t *pwi_list_keys(const struct pwi_list *list, size_t *count_out);

/* A sender whose push took effect, and its task. */
struct pwi_stamp {
  struct pwi_sender sender;
  uint64_t task;
};

/* --- aggregates: pushes of a group that are applied as one (OSDI'14 4.4) -------------------------------- */

/* The pushes of a group in one tick to one arc, see shard/aggregate.c. A push that names a group is deferred.
 * The aggregate is complete when every member has pushed. After each request and each change of the
 * membership the caller looks for complete aggregates. */
struct pwi_aggregate;

/* Returns a complete aggregate and the push that applies it; NULL if there is none. The push has no rows if
 * there is nothing left to apply. */
struct pwi_aggregate *pwi_shard_next_sum(struct pwi_shard *shard, struct pwi_request *request_out);

/* Writes the senders and tasks of the aggregate to `stamps`, which has room for all or is NULL. Returns their
 * number. */
size_t pwi_aggregate_stamps(const struct pwi_aggregate *aggregate, struct pwi_stamp *stamps);

/* Applies the aggregate: effect ROWS, or NONE if there is nothing to apply. On failure nothing has changed.
 * After PAWL_NODE_FULL, PAWL_QUOTA_MEMORY and PAWL_REFUSED (by the server function) call pwi_shard_break_sum,
 * so that each push is decided by itself. After PAWL_NO_MEMORY and PAWL_CORRUPT (a key list is no longer
 * kept) call pwi_shard_drop_sum. */
PAWL_MUST_USE pawl_status pwi_shard_apply_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate,
                                              const struct pwi_request *request, struct pwi_served *served_out);

/* Called for each deferred push of an applied aggregate. For a PUSHPULL, serve `pull` to get the rows for the
 * answer; otherwise it is NULL. */
typedef void pwi_tell_in(void *context, struct pwi_waiter waiter, uint64_t task, const struct pwi_request *pull);

/* Call it after a successful pwi_shard_apply_sum. After the last range of the aggregate it calls `tell` for
 * each deferred push and frees the aggregate. */
void pwi_shard_end_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate, pwi_tell_in *tell, void *context);

/* Gives up the aggregate of this tick: all its deferred pushes are answered NOT_HERE through config.answer.
 * When they are resent, each is applied by itself. */
void pwi_shard_break_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate);

/* Discards the aggregate: all its deferred pushes are answered with this outcome through config.answer. */
void pwi_shard_drop_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate, enum pwi_code code,
                        pawl_status status);

/* --- following: changes of the head on other members of a chain (OSDI'14 4.3) --------------------------- */

/* The log entry of a request with an effect. `request` is the request of the head, except that its values are
 * the resulting rows and, for TICK, its tick is the tick of the sender after it. */
struct pwi_change {
  enum pwi_effect effect;
  pawl_status status; /* REFUSAL: its status */
  struct pwi_request request;
  const void *state; /* ROWS: hidden states in the order of the rows; NULL if the vector has none */
  size_t state_bytes;
  const struct pwi_stamp *stamps; /* of an aggregate: its other senders, besides the request's */
  size_t stamp_count;
  const struct pwi_run_result *result; /* of a row function; NULL: none */
};

/* Applies a change of the head to the keys of the claim on `positions`, which must be wholly held or staged.
 * The memory cap is ignored, because the head has accepted the change. On staged positions whose times have
 * not arrived, only rows are set: the arriving times are newer.
 *
 *   OK      applied; also for a change of an earlier incarnation, which is skipped
 *   WANTED  the signature is unknown: the keys are needed
 *   FAILED  PAWL_NOT_FOUND (the vector, or this incarnation of it, is unknown here), PAWL_NO_MEMORY,
 *           PAWL_CORRUPT (the parts of the change contradict each other)
 */
void pwi_shard_follow(struct pwi_shard *shard, const struct pwi_change *change, struct pawl_range positions,
                      struct pwi_outcome *outcome_out);

/* This shard does not serve these positions, or no longer does: waiting requests there are answered
 * NOT_HERE. */
void pwi_shard_dismiss(struct pwi_shard *shard, struct pawl_range positions);

/* A hash of rows, states and times on these positions: equal for shards with equal contents, and most likely
 * different otherwise. Zero rows and missing rows are equal. Senders that `membership` does not list are
 * ignored. For tests. */
uint64_t pwi_shard_digest(const struct pwi_shard *shard, struct pawl_range positions,
                          const struct pwi_membership *membership);

/* A hash of the refusals and results of row functions that the shard keeps on these positions for tasks of the sender
 * after `settled`. A shard may drop those up to `settled` as soon as it hears the number from the sender, and shards
 * hear it at different times. For tests. */
uint64_t pwi_shard_digest_kept(const struct pwi_shard *shard, struct pawl_range positions, struct pwi_sender sender,
                               uint64_t settled);
/* A hash of the last ticks to which clients of `membership` have contributed. A shard lacks ticks if one could not be
 * recorded since it was created: it did not know the sender yet, or had no memory. For tests. */
uint64_t pwi_shard_digest_ticks(const struct pwi_shard *shard, struct pawl_range positions,
                                const struct pwi_membership *membership);
bool pwi_shard_lacks_ticks(const struct pwi_shard *shard);

bool pwi_shard_keeps(const struct pwi_shard *shard); /* any refusal or result */

/* The owner is gone: its waiting requests are removed without an answer. */
void pwi_shard_forget_waiters(struct pwi_shard *shard, uint64_t owner);

/* --- moving positions to another shard ------------------------------------------------------------------ */

/* Copies the contents of positions as a sequence of chunks: rows, times, ticks and refusals of every vector.
 * The positions should be frozen. Each chunk can be decoded by itself; pwi_shard_take must get them in the
 * order in which they were made. The struct refers to nothing in the shard, so copying can be abandoned at
 * any time. Vectors that are closed meanwhile are omitted. */
struct pwi_copying {
  struct pawl_range positions;
  bool rows_only, no_rows; /* for a checkpoint: only rows, or everything except rows */
  bool is_partial;         /* only rows that changed after the version `since`; may include others */
  uint64_t since;
  struct pwi_vector_id vector; /* private from here on */
  uint64_t next;
  int stage;
};

void pwi_copying_init(struct pwi_copying *copying, struct pawl_range positions);

/* Appends the next chunk of about `size` bytes to the writer; a single row or clock may make it longer.
 * `*more_out` is false if there was none left. */
PAWL_MUST_USE pawl_status pwi_shard_copy(const struct pwi_shard *shard, struct pwi_copying *copying, size_t size,
                                         struct pwi_writer *writer, bool *more_out);

/* Takes in a chunk, on positions that are not held: they become *staged*. Rows and times of unknown vectors
 * and of earlier incarnations are ignored. PAWL_CANCELLED for a later incarnation, PAWL_CORRUPT for bytes
 * that are not a chunk, PAWL_INVALID for held positions, PAWL_NODE_FULL. After any failure drop the
 * positions. */
PAWL_MUST_USE pawl_status pwi_shard_take(struct pwi_shard *shard, const void *chunk, size_t size);

/* All chunks of these positions were taken in: vectors without times there get times of 0. From now on
 * changes that follow set the times of every vector. Call it again whenever a vector is opened. */
PAWL_MUST_USE pawl_status pwi_shard_stage_rest(struct pwi_shard *shard, struct pawl_range positions);

/* Holds staged positions. Vectors of which no chunk arrived are held empty. PAWL_INVALID if any position is
 * held already. */
PAWL_MUST_USE pawl_status pwi_shard_adopt(struct pwi_shard *shard, struct pawl_range positions);

/* --- tracking changes for checkpoints ------------------------------------------------------------------- */

/* Tracks changes from now on (store/changes.h). The caller must then mark everything that exists. */
void pwi_shard_begin_marks(struct pwi_shard *shard);
bool pwi_shard_is_marking(const struct pwi_shard *shard);

/* Call immediately after a request with the effect ROWS, or a change that was followed: marks its rows on
 * these positions as changed by version `number` of their chain, which is not 0. */
void pwi_shard_mark(struct pwi_shard *shard, const struct pwi_request *request, struct pawl_range positions,
                    uint64_t number);

/* Marks all rows on these positions. */
void pwi_shard_mark_all(struct pwi_shard *shard, struct pawl_range positions, uint64_t number);

/* --- figures -------------------------------------------------------------------------------------------- */

/* Bytes received and sent with requests so far. */
uint64_t pwi_shard_traffic(const struct pwi_shard *shard);

/* Limits the bytes of the tables of one space. The lower of two quotas counts. Existing rows stay; pushes
 * that need more are refused with PAWL_QUOTA_MEMORY, and other spaces are not affected. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_shard_set_quota(struct pwi_shard *shard, const char *space, uint64_t bytes);
void pwi_shard_lift_quotas(struct pwi_shard *shard); /* lifts all quotas */

/* Sets the limits that the manager grants for quotas of the whole cluster: for the named spaces, and for no
 * others. If a space also has a quota of its own, the lower one counts. PAWL_NO_MEMORY.
 *
 * pwi_shard_spaces returns the bytes that these spaces use here, and the number of spaces.
 */
PAWL_MUST_USE pawl_status pwi_shard_grant(struct pwi_shard *shard, const struct pwi_space_bytes *spaces, size_t count);
size_t pwi_shard_spaces(const struct pwi_shard *shard, struct pwi_space_bytes *spaces, size_t room);

/* Fills in the contents and the totals since the start. */
void pwi_shard_report(const struct pwi_shard *shard, struct pwi_report *report_out);

struct pwi_vector_figures {
  uint64_t rows, bytes, pushes, pulls;
};

/* PAWL_NOT_FOUND. */
PAWL_MUST_USE pawl_status pwi_shard_figures(const struct pwi_shard *shard, struct pwi_vector_id id,
                                            struct pwi_vector_figures *figures_out);

/* The load by ring position since the last call: bytes held, and keys requested (sampled). There are at most
 * `room` cells: cells of equal width over the held positions, and single keys that are so hot that a cell
 * should not hide them (`whole`). Returns their number. */
size_t pwi_shard_loads(struct pwi_shard *shard, struct pwi_load *loads, size_t room);

#endif
