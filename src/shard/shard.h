/* A shard: the rows and clocks of the arcs that a node holds, and what requests do to them.
 *
 * This is the server without the network: a state machine that is handed requests, each as a struct with pointers to
 * its keys and values, and says what to answer. A server shard has one for its arcs of all vectors; a client that opens a
 * vector locally has one that holds the whole ring for that vector. It sends nothing and reads no clock.
 *
 * WHAT IS HELD is a set of ring positions, the same for all vectors. Of each vector the keys on these positions are held:
 * rows in one table that spans the vector, times in a range vector clock (OSDI'14 4.1) that holds exactly these keys. How
 * arcs are cut does not matter here: a request is served if all of its claim is held and none of it frozen.
 *
 * EXACTLY ONCE (design, section 7). A numbered request is compared with the clock of its sender: applied where it is due,
 * skipped where it was applied before; GAP if an earlier one is missing, BROKEN if it cannot be. Values and clock change
 * together or not at all. A request that is refused uses up its number: the clock is set, and the refusal is remembered
 * until the sender has `settled` it, so that a resend is refused again with the same status.
 *
 * KEY LISTS that a request wants kept stay here under their signature, with the slots that their keys resolved to. The
 * least recently used go first when the cache is full.
 *
 * MEMORY. Under its cap a shard refuses to grow, with PAWL_NODE_FULL; everything else goes on. The cap counts rows and
 * kept lists.
 *
 * Threads: belongs to one thread. Errors: PAWL_NO_MEMORY where nothing else is said, and then nothing has changed.
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
#include "protocol/membership.h"

struct pwi_shard;

/* Somebody waits in a group. All of it is the caller's: whom to tell, and about which request on what. */
struct pwi_waiter {
  uint64_t owner;
  uint64_t number;
  struct pwi_vector_id vector;
};

struct pwi_shard_config {
  uint64_t memory_max; /* bytes of rows and lists; UINT64_MAX: no cap */
  uint64_t cache_max;  /* bytes of kept lists, slots included; 0: 256 MiB */

  /* Server functions besides the built-in ones; borrowed, NULL: none. They may take long, so they are called by way of
   * `run`, which calls `work` once and returns when that has returned; NULL: they are simply called. */
  const struct pwi_function_set *functions;
  void (*run)(void *context, void (*work)(void *argument), void *argument);
  void *run_context;

  /* An AWAIT that was put off has its outcome: OK, or NOT_HERE if the group moves away, or FAILED if it was deleted. OK is about
   * ticks that are counted here, and perhaps nowhere else: where there is a chain its members must have them before anybody is
   * told. Called from inside any function below; it must not call back into the shard. */
  void (*answer)(void *context, struct pwi_waiter waiter, const struct pwi_outcome *outcome);
  void *context;
};

PAWL_MUST_USE pawl_status pwi_shard_create(const struct pwi_shard_config *config, struct pwi_shard **shard_out);
void pwi_shard_destroy(struct pwi_shard *shard); /* NULL is fine; waiters are not answered */

/* --- what is held ------------------------------------------------------------------------------------------------- */

/* A vector or group that there is from now on; the entry is copied. On all positions that are held its rows are absent and
 * its times 0. PAWL_EXISTS. */
PAWL_MUST_USE pawl_status pwi_shard_open(struct pwi_shard *shard, const struct pwi_entry *entry);

/* Vectors whose tables could not be made, for lack of memory, are tried again. Until then their pushes and pulls are refused with
 * PAWL_NODE_FULL, and nothing else is. */
void pwi_shard_retry(struct pwi_shard *shard);

/* A vector that is here begins anew as the incarnation of `entry`, which is a later one: rows, times and refusals are gone,
 * also where they are staged. PAWL_NOT_FOUND, PAWL_NO_MEMORY: nothing has changed. */
PAWL_MUST_USE pawl_status pwi_shard_renew(struct pwi_shard *shard, const struct pwi_entry *entry);
uint32_t pwi_shard_incarnation(const struct pwi_shard *shard, struct pwi_vector_id id); /* 0 if it is not here */

/* It is gone, with everything. One that is not there is ignored. */
void pwi_shard_close(struct pwi_shard *shard, struct pwi_vector_id id);

bool pwi_shard_has(const struct pwi_shard *shard, struct pwi_vector_id id);

/* The vectors, one at a time, by rising id: begin with {0}; false after the last. */
bool pwi_shard_next(const struct pwi_shard *shard, struct pwi_vector_id *id);

/* Who may push, and who is in which group. Borrowed until the next call of this, and read in every request. Clocks of
 * senders that are on the membership neither as live nor as retired are forgotten, and so are their refusals; waiters are
 * looked at again. Before the first call nobody may push. */
void pwi_shard_set_membership(struct pwi_shard *shard, const struct pwi_membership *membership);

/* For each of these senders, by rising id, of which anything is here later than `settled`, or which the membership does not list as
 * retired, the id is written to `unsettled`, which has room for all. Returns how many. */
size_t pwi_shard_unsettled(const struct pwi_shard *shard, const struct pwi_settle *senders, size_t count,
                           uint64_t *unsettled);

/* The membership that was set has changed in its place. Of each sender that it has forgotten the shard is told before. */
void pwi_shard_forget(struct pwi_shard *shard, struct pwi_sender sender);
void pwi_shard_membership_changed(struct pwi_shard *shard);

/* Hold these positions too, empty: nobody has ever pushed there. PAWL_INVALID if any is held already. */
PAWL_MUST_USE pawl_status pwi_shard_hold(struct pwi_shard *shard, struct pawl_range positions);

/* Hold them no more: rows and times are gone, waiters there are answered NOT_HERE. Positions that are not held are
 * ignored; staged ones (below) are dropped as well. On PAWL_NO_MEMORY the positions are frozen instead, and it may be
 * tried again. */
PAWL_MUST_USE pawl_status pwi_shard_drop(struct pwi_shard *shard, struct pawl_range positions);

/* Answer NOT_HERE to everything there, waiters included, until they are thawed. */
PAWL_MUST_USE pawl_status pwi_shard_freeze(struct pwi_shard *shard, struct pawl_range positions);
void pwi_shard_thaw(struct pwi_shard *shard, struct pawl_range positions);

bool pwi_shard_holds(const struct pwi_shard *shard, struct pawl_range positions); /* all of them */

/* --- requests ----------------------------------------------------------------------------------------------------- */

struct pwi_request {
  struct pwi_terms terms;
  struct pwi_sender sender;
  uint64_t task;
  uint64_t tick;
  const uint64_t *keys;       /* LIST: terms.rows of them, rising strictly (the caller has checked that) */
  uint64_t signature;         /* LIST with keep, and SIGNED */
  const struct iovec *values; /* PUSH, PUSHPULL: raw values, one row per key; parts may be cut anywhere */
  size_t value_parts;
  uint8_t value_type;       /* enum pwi_value_type; not the vector's: refused with PAWL_MISMATCH */
  void *result;             /* PUSH, PUSHPULL: where pwi_shard_result will be asked to put values; may be NULL */
  struct pwi_waiter waiter; /* AWAIT */
  struct pawl_range arc;    /* a push that names a group in terms.other: the keys of the arc, if it may be added up with
                               others; else empty */
  struct pwi_operation operation; /* LINEAR, FOLD */
  pawl_status
      refusal; /* PUSH, PUSHPULL, LINEAR: refuse it for this reason, if it is due; keys and values are not read */
  const void *encoded; /* LIST: the keys as they came, and the section that tells how; not read here */
  struct pwi_section encoded_as;
  const void *filters; /* PULL, PUSHPULL: what the answer is to pass through, as bytes; not read here */
  size_t filters_size;
};

/* What can be said against a request without taking any memory for it: PAWL_INVALID (rows that its keys cannot name),
 * PAWL_MISMATCH (as many values as its rows have did not come), PAWL_UNSUPPORTED (the vector's function is not known here). One
 * that is numbered is then to be refused, by `refusal`. Whoever takes memory in proportion to `terms.rows` asks this first. */
PAWL_MUST_USE pawl_status pwi_shard_inspect(const struct pwi_shard *shard, const struct pwi_request *request);

/* Of a LINEAR that is about to be served: it becomes one of a slice of work. Where that is not all of it, claim and range
 * end sooner. Of a sparse vector the rows that it is about become a list, which lives until the next call of this. Why it has
 * to be refused, as below (PAWL_NO_MEMORY too): then nothing has changed. */
PAWL_MUST_USE pawl_status pwi_shard_cut_linear(struct pwi_shard *shard, struct pwi_request *request);

/* How many bytes of values the answer brings if it is OK: 0 but for PULL, PUSHPULL and SCAN (at most). 0 also for a vector
 * that is not here. PAWL_TOO_LARGE if they are more than `max`. */
PAWL_MUST_USE pawl_status pwi_shard_answer_bytes(const struct pwi_shard *shard, const struct pwi_request *request,
                                                 size_t max, size_t *bytes_out);

/* How many bytes of clocks it brings if it asks for them, as things are now. */
size_t pwi_shard_clock_bytes(const struct pwi_shard *shard, const struct pwi_request *request);

struct pwi_served {
  struct pwi_outcome outcome;
  bool is_deferred;    /* it has to wait: config.answer will tell (AWAIT), or the end of a sum */
  size_t value_bytes;  /* written to `values`: what the answer is to carry */
  uint64_t rows;       /* SCAN: rows found */
  const void *payload; /* COLLECT, SCAN, FOLD, clocks: valid until the next request */
  size_t payload_size;
  enum pwi_effect effect; /* what those behind us in the chain must be told; NONE also for a duplicate */
  uint64_t tick;          /* TICK: where the sender stands now */
};

/* Deal with a request. `values` has room for as many bytes as pwi_shard_answer_bytes said, and need not be aligned.
 * Always gives an answer; out of memory is one too: REFUSED with PAWL_NO_MEMORY where a number is to be used up, FAILED
 * where even that was not possible.
 *
 *   NOT_HERE  the claim is not held, or frozen. (A vector that is not here is FAILED with PAWL_NOT_FOUND: whether the
 *             catalogue is behind is for the caller to know first, from the numbers in the message's head.)
 *   RETIRED   a numbered request of a sender that is not live on the membership. Pulls and scans may come from anybody.
 *   FAILED    PAWL_OUT_OF_SPAN, PAWL_INVALID (a claim that cannot be), PAWL_NOT_FOUND; of a request without a number also
 *             what else is wrong with it
 *   REFUSED   PAWL_INVALID (terms that contradict themselves or the vector), PAWL_OUT_OF_SPAN (keys beside the range),
 *             PAWL_MISMATCH (number or type of values; of a LINEAR, vectors that do not go together), PAWL_NODE_FULL,
 *             PAWL_NO_MEMORY; LINEAR: PAWL_NOT_FOUND, PAWL_RESTORED (the other vector), PAWL_UNSUPPORTED (filling a
 *             sparse vector)
 *
 * Steady state: where no key is new and room has been made once, nothing is allocated. */
void pwi_shard_serve(struct pwi_shard *shard, const struct pwi_request *request, void *values,
                     struct pwi_served *served_out);

/* Right after a request that had the effect ROWS: the rows of its keys as they are now, in their order. The two places have
 * room for terms.rows rows and their state. */
void pwi_shard_result(struct pwi_shard *shard, const struct pwi_request *request, void *values, void *state);

/* A kept list, which then lives until it is let go, also if it is thrown out of the cache. NULL if it is not there. */
struct pwi_list;
struct pwi_list *pwi_shard_pin_list(struct pwi_shard *shard, struct pwi_vector_id vector, uint64_t signature);
void pwi_list_unpin(struct pwi_list *list); /* NULL is fine */
const uint64_t *pwi_list_keys(const struct pwi_list *list, size_t *count_out);

/* A sender whose push took effect, and its task. */
struct pwi_stamp {
  struct pwi_sender sender;
  uint64_t task;
};

/* --- together: pushes of a group that are applied as one (OSDI'14 4.4) ------------------------------------------------- */

/* A push that names a group, and was put off. The parts of a tick are complete when every member's is in: after each request
 * and each membership the caller looks for sums that are. */
struct pwi_aggregate;

/* A complete one, and the push that it amounts to; NULL if there is none. Its terms have no rows if nothing has to be
 * applied any more. */
struct pwi_aggregate *pwi_shard_next_sum(struct pwi_shard *shard, struct pwi_request *request_out);

/* Who is in the sum; `stamps` has room for all, or is NULL. Returns how many. */
size_t pwi_aggregate_stamps(const struct pwi_aggregate *aggregate, struct pwi_stamp *stamps);

/* Applies it: effect ROWS, or NONE if there is nothing to be applied. PAWL_NODE_FULL: nothing has changed; break it then.
 * PAWL_NO_MEMORY, PAWL_CORRUPT (the list is not kept any more): likewise; drop it. */
PAWL_MUST_USE pawl_status pwi_shard_apply_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate,
                                              const struct pwi_request *request, struct pwi_served *served_out);

/* Somebody's part is in. Whoever has asked for rows (PUSHPULL) is to be told them: by serving `pull`, which else is NULL. */
typedef void pwi_tell_in(void *context, struct pwi_waiter waiter, uint64_t task, const struct pwi_request *pull);

/* It is over: `tell` is called for everybody who waits, and it is gone. */
void pwi_shard_end_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate, pwi_tell_in *tell, void *context);

/* It cannot be as one: everybody who waits is told NOT_HERE through config.answer, and who pushes again in that tick is
 * served by itself. */
void pwi_shard_break_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate);

/* It cannot be: everybody who waits is told this through config.answer, and it is gone. */
void pwi_shard_drop_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate, enum pwi_code code,
                        pawl_status status);

/* --- following: members of a chain do as their head did (OSDI'14 4.3) ---------------------------------------------- */

/* What the head tells of a request that had an effect. `request` is as the head had it, but its values are the result;
 * its tick, for TICK, is where the sender stands now. */
struct pwi_change {
  enum pwi_effect effect;
  pawl_status status; /* REFUSAL */
  struct pwi_request request;
  const void *state; /* ROWS: in the order of the rows; NULL if the vector has none */
  size_t state_bytes;
  const struct pwi_stamp *stamps; /* of a sum: who is in it, besides the request's sender */
  size_t stamp_count;
};

/* Does the same here, on those keys of the claim that lie on `positions`, which must be held or staged, wholly. The cap on
 * memory does not count: the head has accepted it. Where positions are staged and their times have not come yet, only rows
 * are set: the times that come are newer.
 *
 *   OK       done; also for a change of an earlier incarnation, which is skipped
 *   WANTED   the signature is not known: the keys are needed
 *   FAILED   PAWL_NOT_FOUND (the vector, or this incarnation of it, is not here), PAWL_NO_MEMORY, PAWL_CORRUPT (it does not go together) */
void pwi_shard_follow(struct pwi_shard *shard, const struct pwi_change *change, struct pawl_range positions,
                      struct pwi_outcome *outcome_out);

/* We are not, or not any more, the one to ask about these positions: waiters there are told NOT_HERE. */
void pwi_shard_dismiss(struct pwi_shard *shard, struct pawl_range positions);

/* A number that is the same for two shards if they have the same rows, state and times on these positions, and hardly
 * otherwise. Rows that are zero and rows that are missing are the same; senders that `membership` does not list do not
 * count. For tests. */
uint64_t pwi_shard_digest(const struct pwi_shard *shard, struct pawl_range positions,
                          const struct pwi_membership *membership);

/* The owner is gone: its waiters are forgotten without an answer. */
void pwi_shard_forget_waiters(struct pwi_shard *shard, uint64_t owner);

/* --- moving: positions go to another shard, whole ---------------------------------------------------------------- */

/* What is frozen is copied out as a sequence of chunks: of every vector rows, times, ticks, refusals. A chunk is a string
 * of bytes of its own, and chunks are taken in by `pwi_shard_take` in the order in which they came out. The copying holds
 * nothing of the shard: it may be broken off at any time. Vectors closed meanwhile are left out. */
struct pwi_copying {
  struct pawl_range positions;
  bool rows_only, no_rows; /* of a checkpoint: leave the rest out */
  bool is_partial;         /* only rows that changed after the number `since`, and some more */
  uint64_t since;
  struct pwi_vector_id vector; /* private from here on */
  uint64_t next;
  int stage;
};

void pwi_copying_init(struct pwi_copying *copying, struct pawl_range positions);

/* Appends the next chunk, of about `size` bytes (a row or a clock may make it longer), to the writer. False in `*more_out`
 * if there was none left. */
PAWL_MUST_USE pawl_status pwi_shard_copy(const struct pwi_shard *shard, struct pwi_copying *copying, size_t size,
                                         struct pwi_writer *writer, bool *more_out);

/* Take a chunk in, on positions that are not held: they are *staged*. Rows and times of vectors that are not here are
 * ignored, and so are those of an earlier incarnation; of a later one: PAWL_CANCELLED. PAWL_CORRUPT for bytes that are no chunk, PAWL_INVALID if it is about held positions, PAWL_NODE_FULL. After any
 * failure drop the positions. */
PAWL_MUST_USE pawl_status pwi_shard_take(struct pwi_shard *shard, const void *chunk, size_t size);

/* All chunks of these positions were taken in: what has no times by now has none. From then on, and if it is called again
 * whenever a vector is opened, changes that are followed there set the times of every vector. */
PAWL_MUST_USE pawl_status pwi_shard_stage_rest(struct pwi_shard *shard, struct pawl_range positions);

/* Hold positions that were staged: vectors of which nothing came are held empty. PAWL_INVALID if any is held already. */
PAWL_MUST_USE pawl_status pwi_shard_adopt(struct pwi_shard *shard, struct pawl_range positions);

/* --- saving: what has changed, for checkpoints ----------------------------------------------------------------------- */

/* From now on changes are remembered (store/changes.h). Whoever begins marks everything that is there. */
void pwi_shard_begin_marks(struct pwi_shard *shard);
bool pwi_shard_is_marking(const struct pwi_shard *shard);

/* Right after a request that had the effect ROWS, or was followed: its rows on these positions were changed by the version
 * `number` of their chain, which is not 0. */
void pwi_shard_mark(struct pwi_shard *shard, const struct pwi_request *request, struct pawl_range positions,
                    uint64_t number);

/* So was everything there. */
void pwi_shard_mark_all(struct pwi_shard *shard, struct pawl_range positions, uint64_t number);

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* Bytes that requests have brought and taken so far: how much traffic there is. */
uint64_t pwi_shard_traffic(const struct pwi_shard *shard);

/* Tables of vectors of this space may take so many bytes in all. Of two quotas the lower one counts. What there is already
 * stays; pushes that would need more are refused with PAWL_QUOTA_MEMORY, and other spaces go on. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_shard_set_quota(struct pwi_shard *shard, const char *space, uint64_t bytes);
void pwi_shard_lift_quotas(struct pwi_shard *shard); /* all of them */

/* The same by the manager's word, for a quota of the whole cluster: of the spaces that are named, and of no others. The lower of the two
 * counts. PAWL_NO_MEMORY. And what these take here; returns how many there are. */
PAWL_MUST_USE pawl_status pwi_shard_grant(struct pwi_shard *shard, const struct pwi_space_bytes *spaces, size_t count);
size_t pwi_shard_spaces(const struct pwi_shard *shard, struct pwi_space_bytes *spaces, size_t room);

/* Filled in but for memory_max's meaning: what is held, and totals since the start. */
void pwi_shard_report(const struct pwi_shard *shard, struct pwi_report *report_out);

struct pwi_vector_figures {
  uint64_t rows, bytes, pushes, pulls;
};

/* PAWL_NOT_FOUND. */
PAWL_MUST_USE pawl_status pwi_shard_figures(const struct pwi_shard *shard, struct pwi_vector_id id,
                                            struct pwi_vector_figures *figures_out);

/* The load by ring position since the last call: bytes held, and keys asked for (sampled), in at most `room` cells of
 * equal width over what is held, and single keys so hot that a cell should not hide them (`whole`). Returns how many. */
size_t pwi_shard_loads(struct pwi_shard *shard, struct pwi_load *loads, size_t room);

#endif
