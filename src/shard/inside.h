/* The inside of a shard, for the files of src/shard only.
 *
 *   shard.c      creation, vectors, memory
 *   positions.c  held and frozen positions
 *   serve.c      requests: order of checks, pushes
 *   apply.c      applies values to tables
 *   rules.c      applies values through server functions
 *   linear.c     linear algebra on rows in place
 *   fold.c       dot products and norms
 *   follow.c     changes of the head, on other members of a chain
 *   answers.c    requests that only read
 *   lists.c      kept key lists
 *   refusals.c   refusals that may have to be repeated
 *   unsettled.c  retired senders that may not know an outcome
 *   groups.c     ticks, and requests that wait for them
 *   aggregate.c  collects the pushes of a group in a tick
 *   sum.c        applies an aggregate as one change
 *   bundle.c     rows of an aggregate, summed outside the table
 *   contributed.c the last tick to which each client has contributed
 *   move.c       contents of positions as chunks, out and in
 *   save.c       tracks changes for checkpoints
 *   loads.c      figures, and load by position
 *   quotas.c     memory limits of spaces
 */
#ifndef PWI_SHARD_INSIDE_H
#define PWI_SHARD_INSIDE_H

#include "base/pages.h"
#include "base/rangeset.h"
#include "shard/shard.h"
#include "store/changes.h"
#include "store/clock.h"
#include "store/functions/apply.h"
#include "store/functions/rows.h"
#include "store/table.h"

/* --- refusals ------------------------------------------------------------------------------------------- */

/* A task of a sender was refused on these keys. This stays true for ever, even if the keys move away and come
 * back. */
struct pwi_refusal {
  struct pwi_sender sender;
  uint64_t task;
  struct pawl_range range;
  pawl_status status;
};

struct pwi_refusals {
  struct pwi_refusal *items;
  size_t count, room;
  uint64_t lowest, highest; /* no task of an item is below or above */
};

void pwi_refusals_fini(struct pwi_refusals *refusals);

/* Makes room, so that the next `more` additions cannot fail. */
PAWL_MUST_USE pawl_status pwi_refusals_reserve(struct pwi_refusals *refusals, size_t more);
void pwi_refusals_add(struct pwi_refusals *refusals, const struct pwi_refusal *refusal);

/* The status with which the task was refused on any key of `range`; PAWL_OK if it was not refused. */
pawl_status pwi_refusals_find(const struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t task,
                              struct pawl_range range);

/* The range from the first to the last key of `range` on which the task was refused; empty if it was not
 * refused. */
struct pawl_range pwi_refusals_range(const struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t task,
                                     struct pawl_range range);

/* The number of refusals kept for the sender. */
size_t pwi_refusals_count(const struct pwi_refusals *refusals, struct pwi_sender sender);

/* The sender has the answers to all tasks up to `settled`: forgets its refusals up to there. */
void pwi_refusals_settle(struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t settled);

/* Forgets the refusals of senders that the membership does not list. */
void pwi_refusals_strike(struct pwi_refusals *refusals, const struct pwi_membership *membership);

/* Forgets refusals in `range`. A refusal whose range extends beyond both ends of `range` is kept whole, which
 * does no harm. */
void pwi_refusals_drop(struct pwi_refusals *refusals, struct pawl_range range);

/* --- results of row functions --------------------------------------------------------------------------- */

struct pwi_kept_result {
  struct pwi_sender sender;
  uint64_t task;
  struct pwi_run_result is;
};

#define PWI_KEPT_RESULT_SIZE (2 * 8 + PWI_RUN_RESULT_SIZE) /* bytes in a chunk: u64 sender, u64 task, result */

struct pwi_results {
  struct pwi_kept_result *items;
  size_t count, room;
};

void pwi_results_fini(struct pwi_results *results);

/* Makes room, so that the next `more` additions cannot fail. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_results_reserve(struct pwi_results *results, size_t more);
void pwi_results_add(struct pwi_results *results, const struct pwi_kept_result *result);

/* As for refusals, above. */
void pwi_results_settle(struct pwi_results *results, struct pwi_sender sender, uint64_t settled);
void pwi_results_strike(struct pwi_results *results, const struct pwi_membership *membership);
void pwi_results_drop(struct pwi_results *results, struct pawl_range range);

/* Writes u32 count and the results of the task on keys of `range`: u64 task and the result each. `task` 0: of all
 * tasks of the sender. */
void pwi_results_write(struct pwi_writer *writer, const struct pwi_results *results, struct pwi_sender sender,
                       uint64_t task, struct pawl_range range);

/* The results on these keys, for another shard; returns their number. With a NULL writer only that. */
size_t pwi_results_copy(struct pwi_writer *writer, const struct pwi_results *results, struct pawl_range keys);

/* Reads u32 count and that many results. PAWL_CORRUPT, PAWL_INVALID (of held keys), PAWL_NO_MEMORY. */
struct pwi_vector;
PAWL_MUST_USE pawl_status pwi_results_take(struct pwi_vector *vector, struct pwi_reader *reader);

/* --- vectors -------------------------------------------------------------------------------------------- */

/* The clocks of a vector or group. Both have the same keys; only groups have ticks. */
enum { PWI_TASKS = 0, PWI_TICKS = 1, PWI_CLOCKS = 2 };

/* A vector or group in a shard. */
struct pwi_vector {
  struct pwi_entry entry;
  struct pwi_place place;
  bool is_group;
  enum pwi_apply apply;                /* used if there is no rule */
  struct pwi_applying *rule;           /* NULL: `apply` is used */
  bool is_unknown;                     /* the server function is unknown here: pushes are refused */
  struct pwi_table *table;             /* NULL for a group */
  bool is_hollow;                      /* the table could not be allocated: the vector is not served */
  uint64_t bytes;                      /* size of the table when last counted; part of shard->row_bytes */
  struct pwi_space_quota *quota;       /* quota of its space; NULL: none */
  struct pwi_clock clocks[PWI_CLOCKS]; /* clocks of exactly the held keys */
  struct pwi_clock staged[PWI_CLOCKS]; /* clocks of keys that arrived in chunks and are not held yet */
  struct pwi_clock next[PWI_CLOCKS];   /* future `clocks`, while a change of all vectors is being prepared */
  struct pwi_refusals refusals;
  struct pwi_results results;
  struct pwi_changes changes; /* for checkpoints: versions of the last changes, since the first checkpoint */
  uint64_t pushes, pulls;

  /* Of groups: `group_key` stands for the group. If `ranked`, `lowest` is the lowest tick of any member, and
   * `last` a member with this tick. */
  uint64_t group_key;
  bool ranked;
  uint64_t lowest;
  struct pwi_sender last;
};

static inline struct pawl_range pwi_vector_keys(const struct pwi_vector *vector, struct pawl_range positions) {
  return pwi_place_keys(&vector->place, positions);
}

/* Bytes of one row of a request: values as pushed; for RESTORE, stored values and state. */
static inline size_t pwi_vector_pushed_bytes(const struct pwi_vector *vector, enum pwi_request_kind kind) {
  if (kind == PWI_REQUEST_RESTORE) return vector->table->row_bytes + vector->table->state_bytes;
  if (kind == PWI_REQUEST_LINEAR) return 0;
  return pwi_entry_pushed_bytes(&vector->entry);
}

static inline int pwi_vector_clocks(const struct pwi_vector *vector) { return vector->is_group ? PWI_CLOCKS : 1; }

/* --- lists ---------------------------------------------------------------------------------------------- */

struct pwi_list {
  struct pwi_vector_id vector;
  uint64_t signature;
  struct pwi_list *chain;         /* next list in the same bucket */
  struct pwi_list *newer, *older; /* neighbours by last use */
  size_t bytes;                   /* size of the list, as counted in lists.bytes */
  size_t pins;                    /* users besides the cache */
  bool is_out;                    /* removed from the cache; freed with the last pin */
  struct pwi_slots slots;
  size_t count;
  uint64_t keys[];
};

struct pwi_lists {
  struct pwi_list **buckets; /* 2^bits elements */
  unsigned bits;
  size_t count;
  uint64_t bytes, bytes_max;
  struct pwi_list *newest, *oldest;
};

void pwi_lists_fini(struct pwi_lists *lists);

/* Returns a list and makes it the newest; NULL if it is not kept. */
struct pwi_list *pwi_lists_find(struct pwi_lists *lists, struct pwi_vector_id vector, uint64_t signature);

/* Keeps a copy of the keys and replaces an earlier list with this signature. The memory cap leaves `spare`
 * bytes. NULL if the list cannot be kept. */
struct pwi_list *pwi_lists_keep(struct pwi_lists *lists, struct pwi_vector_id vector, uint64_t signature,
                                const uint64_t *keys, size_t count, uint64_t spare);

/* The slots of the list were resolved again: counts their bytes, and removes other lists if the cache is now
 * too large. */
void pwi_lists_recount(struct pwi_lists *lists, struct pwi_list *list);

/* Removes all lists of a vector, or of all vectors if it is {0}, except `except`. */
void pwi_lists_drop(struct pwi_lists *lists, struct pwi_vector_id vector, const struct pwi_list *except);

/* --- load ----------------------------------------------------------------------------------------------- */

#define PWI_SAMPLES_MAX 4096

/* Positions of a sample of the requested keys: about one key in `gap`, evenly over the stream of keys. */
struct pwi_samples {
  uint64_t until; /* keys to skip before the next sample */
  uint64_t gap;
  uint64_t drawn; /* number of samples ever drawn; seeds the jitter */
  size_t count;
  uint64_t positions[PWI_SAMPLES_MAX];
};

/* Samples the keys of one request. If `keys` is NULL, they are first, first + 1, … */
void pwi_samples_draw(struct pwi_samples *samples, const struct pwi_vector *vector, const uint64_t *keys,
                      uint64_t first, uint64_t count);

/* --- keys of a request ---------------------------------------------------------------------------------- */

/* The keys that a request names. */
struct pwi_named {
  const uint64_t *keys; /* NULL: the whole range */
  size_t count;
  struct pwi_slots *slots;
  struct pwi_list *list; /* NULL: the list is not kept */
  size_t first;          /* for a part of the keys of a request: index of keys[0] in the request */
  bool has_result;       /* request.result has all values already */
};

/* --- the shard ------------------------------------------------------------------------------------------ */

struct pwi_waiting {
  struct pwi_vector_id group;
  uint64_t tick;
  struct pwi_waiter waiter;
};

struct pwi_shard {
  struct pwi_shard_config config;
  const struct pwi_membership *membership; /* NULL: no sender may push */
  bool is_renewed;                         /* see pwi_shard_renewed */
  struct pwi_rangeset held;                /* held positions */
  struct pawl_range *frozen;               /* frozen positions; ranges may overlap. There is always room
                                              for one more */
  size_t frozen_count, frozen_room;
  struct pwi_vector **vectors; /* by ascending id */
  size_t vector_count, vector_room;
  struct pwi_vector *recent; /* the vector of the last request, or NULL */
  struct pwi_waiting *waiting;
  size_t waiting_count, waiting_room;
  struct pwi_lists lists;
  uint64_t row_bytes;       /* size of all tables */
  uint64_t aggregate_bytes; /* size of pushes that wait in aggregates */
  struct pwi_space_quota *quotas;
  struct pwi_report totals; /* counts since the start; other fields are filled in on request */
  struct pwi_named named;   /* keys of the last push; valid immediately after it */
  bool is_following;        /* the memory cap is ignored at the moment */
  bool is_marking;          /* changes are tracked for checkpoints */
  bool is_filled;           /* it takes the rows of a fill: quotas of spaces are ignored at the moment */

  /* Buffers that are reused from request to request. */
  struct pwi_slots slots; /* slots of a list that is not kept */
  uint64_t *keys;         /* PWI_BLOCK keys, for ranges of sparse tables; NULL at first */
  char *row;              /* a row that is split between two parts of the values */
  size_t row_room;
  struct pwi_writer payload;
  struct pwi_pages linear_keys;  /* keys of a LINEAR on a sparse vector */
  struct pwi_pages linear_rows;  /* rows of two vectors, copied side by side */
  struct pwi_slots linear_slots; /* slots of the other vector */
  struct pwi_pages expanded;     /* rows of a push with an operand */
  struct pwi_pages factors;      /* its values, where they have to be copied */
  struct iovec expanded_part;
  struct pwi_pages run_keys;    /* keys of rows that a row function works on */
  struct pwi_row_rule run;      /* the row function of this request */
  struct pwi_run_result result; /* its result */

  bool lacks_ticks;         /* a contribution could not be recorded, for tests */
  size_t forgotten;         /* senders since the ticks of clients that are gone were discarded */
  uint64_t aggregate_steps; /* pieces of other ticks examined by pushes, for tests */
  struct pwi_aggregate *aggregates;
  struct pwi_samples samples;
};

#define PWI_BLOCK ((size_t)64 << 10)

/* NULL if the vector is unknown. */
struct pwi_vector *pwi_shard_vector(const struct pwi_shard *shard, struct pwi_vector_id id);

/* Returns true if any key of `keys` lies on a frozen position. */
bool pwi_shard_is_frozen(const struct pwi_shard *shard, const struct pwi_vector *vector, struct pawl_range keys);

/* Of shard/quotas.c: assigns the quota of its space to a new vector; counts bytes that its table gained and
 * lost; returns the total bytes that the quota allows its table. */
void pwi_space_quota_bind(const struct pwi_shard *shard, struct pwi_vector *vector);
void pwi_space_quota_count(const struct pwi_vector *vector, uint64_t more, uint64_t less);
uint64_t pwi_space_quota_rest(const struct pwi_vector *vector);
void pwi_space_quotas_fini(struct pwi_shard *shard);

/* The reason why a table may not grow: PAWL_NODE_FULL or PAWL_QUOTA_MEMORY. */
pawl_status pwi_shard_full(const struct pwi_shard *shard, const struct pwi_vector *vector);

/* Counts the table again after it may have grown or shrunk. */
void pwi_shard_count_bytes(struct pwi_shard *shard, struct pwi_vector *vector);

/* Sets the limit of the table to the memory that the cap leaves. */
void pwi_shard_set_limit(const struct pwi_shard *shard, struct pwi_vector *vector);

/* Resolves keys to slots under the memory cap, and creates missing keys if `create`. If the cap is reached,
 * kept lists are removed to make room for rows, except `list`, which owns the slots or is NULL.
 * PAWL_NODE_FULL. */
PAWL_MUST_USE pawl_status pwi_shard_resolve(struct pwi_shard *shard, struct pwi_vector *vector, const uint64_t *keys,
                                            size_t count, bool create, struct pwi_slots *slots, struct pwi_list *list);

/* Writes the keys `first`, `first` + 1, … to shard->keys, `count` of them and at most PWI_BLOCK. */
PAWL_MUST_USE pawl_status pwi_shard_block(struct pwi_shard *shard, uint64_t first, size_t count);

/* Removes `keys` from the clock. On failure it may still have some of them. */
PAWL_MUST_USE pawl_status pwi_times_leave(struct pwi_clock *clock, struct pawl_range keys);

/* Discards staged times of these keys: they are in force now, or not wanted. */
void pwi_vector_forget_staged(struct pwi_vector *vector, struct pawl_range keys);

/* Removes the senders for which `is_gone` is true. */
void pwi_times_strike(struct pwi_clock *clock, bool (*is_gone)(const void *context, struct pwi_sender sender),
                      const void *context);

/* The first run of keys at or after `from` that lies in `keys` and in the clock. */
bool pwi_times_next_run(const struct pwi_clock *clock, struct pawl_range keys, uint64_t from,
                        struct pawl_range *run_out);

/* The next run of held keys for `copying`: all keys, or those changed since. */
bool pwi_vector_next_run(const struct pwi_vector *vector, struct pawl_range keys, const struct pwi_copying *copying,
                         struct pawl_range *run_out);

/* Adds positions that are not held, in all vectors or in none. `more` makes the clock of the keys that a
 * vector gains. */
typedef pawl_status pwi_more(struct pwi_vector *vector, int which, struct pawl_range keys, struct pwi_clock *more_out);
PAWL_MUST_USE pawl_status pwi_shard_extend(struct pwi_shard *shard, struct pawl_range positions, pwi_more *more);

/* --- requests ------------------------------------------------------------------------------------------- */

static inline void pwi_served_fail(struct pwi_served *served, pawl_status status) {
  served->outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
}

static inline void pwi_served_say(struct pwi_served *served, enum pwi_code code, uint64_t found) {
  served->outcome = (struct pwi_outcome){.code = code, .found = found};
}

/* Finds the keys of a request. Returns false if it has set an outcome instead (WANTED, FAILED). */
bool pwi_serve_names(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                     struct pwi_named *named_out, struct pwi_served *served);

/* --- applying values to tables (shard/apply.c) ---------------------------------------------------------- */

/* Returns true if the values have the right type and exactly fill `rows` rows of `row_bytes`. */
bool pwi_values_match(const struct pwi_vector *vector, const struct pwi_request *request, size_t rows,
                      size_t row_bytes);

/* Ensures that applying cannot fail: creates missing rows as zeros for the named keys in `range`.
 * PAWL_INVALID, PAWL_NODE_FULL, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_rows_ready(struct pwi_shard *shard, struct pwi_vector *vector,
                                         const struct pwi_request *request, const struct pwi_named *named,
                                         struct pawl_range range);

/* Creates the rows of a range of a dense table under the memory cap: PAWL_NODE_FULL, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_rows_reserve(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range range);

/* Applies the values of a request for keys of `part`, and writes the resulting rows to request->result if it
 * is not NULL. Cannot fail. */
void pwi_rows_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                    const struct pwi_named *named, struct pawl_range part, enum pwi_apply how);

/* --- applying values through server functions (shard/rules.c) ------------------------------------------- */

/* Finds the vector's function. The table must exist. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_vector_open_rule(const struct pwi_shard *shard, struct pwi_vector *vector);
void pwi_vector_close_rule(struct pwi_vector *vector);

/* Asks the function whether it accepts the values for keys of `part`. The rows must be ready. Returns the
 * function's own status, or PAWL_REFUSED. */
/* Of shard/expand.c: checks an operand, and the values that come with it. PAWL_INVALID, PAWL_MISMATCH,
 * PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_operand_check(const struct pwi_vector *vector, const struct pwi_request *request);

PAWL_MUST_USE pawl_status pwi_vector_check(struct pwi_shard *shard, struct pwi_vector *vector,
                                           const struct pwi_request *request, const struct pwi_named *named,
                                           struct pawl_range part);

/* Applies values that were checked. Cannot fail. */
void pwi_vector_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, struct pawl_range part);

/* Sets rows and states: RESTORE of a vector with state. */
void pwi_vector_restore(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                        const struct pwi_named *named, struct pawl_range part);

/* --- linear algebra (shard/linear.c, shard/fold.c) ------------------------------------------------------ */

/* The other vector of the operation; NULL if it has none. PAWL_NOT_FOUND, PAWL_RESTORED, PAWL_MISMATCH. */
PAWL_MUST_USE pawl_status pwi_linear_other(const struct pwi_shard *shard, const struct pwi_vector *vector,
                                           const struct pwi_request *request, struct pwi_vector **other_out);

/* Returns true if the other vector lacks the required task; `*found_out` is its time. */
bool pwi_linear_has_gap(const struct pwi_shard *shard, const struct pwi_vector *vector,
                        const struct pwi_request *request, uint64_t *found_out);

/* Returns true if the task that the request names in `first` has not taken effect on all keys of the claim that it names.
 * A vector that is not here has no tasks: if it was deleted, the client learns it from the answer to that task. */
bool pwi_linear_is_unread(const struct pwi_shard *shard, const struct pwi_request *request, uint64_t *found_out);

/* Ensures that applying cannot fail. */
PAWL_MUST_USE pawl_status pwi_linear_ready(struct pwi_shard *shard, struct pwi_vector *vector,
                                           const struct pwi_request *request, const struct pwi_named *named);

/* Changes the rows of keys of `part`. Cannot fail. A row function leaves its result in shard->result. */
void pwi_linear_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, struct pawl_range part);

/* The values `from` to `from + count`, counted from the first value of row `first`: in the table, or copied
 * to `room`. */
const char *pwi_linear_view(const struct pwi_table *table, uint64_t first, uint64_t from, size_t count, char *room);

/* The rows of both vectors that are copied side by side at a time. */
size_t pwi_linear_gather_rows(const struct pwi_vector *vector);

/* --- row functions (shard/run.c) ------------------------------------------------------------------------ */

/* Cuts the claim where the sender's clock changes, so that the request is due on all of it or on nothing. */
void pwi_run_cut(const struct pwi_vector *vector, struct pwi_request *request);

/* Parses the function and ensures that running it cannot fail. PAWL_NOT_FOUND, PAWL_INVALID, PAWL_UNSUPPORTED (the
 * type, or a second vector), PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_run_ready(struct pwi_shard *shard, struct pwi_vector *vector,
                                        const struct pwi_request *request);
void pwi_run_begin(struct pwi_shard *shard);

/* Runs the function on rows that lie one after the other. `keys` are stored keys; NULL: first, first + 1, … */
void pwi_run_rows(struct pwi_shard *shard, const struct pwi_vector *vector, const uint64_t *keys, uint64_t first,
                  size_t count, void *rows, const void *others);

/* Calls `work` where a user's function cannot delay heartbeats. */
void pwi_run_aside(struct pwi_shard *shard, void (*work)(void *context), void *context);

/* Keeps the result of a request that was applied: on the head with the whole claim, on others with their keys. */
void pwi_run_keep(struct pwi_vector *vector, const struct pwi_request *request, struct pawl_range keys,
                  const struct pwi_run_result *result);

/* The answer to a request that took effect now or before: the results of its task on the claim. */
void pwi_run_answer(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                    struct pwi_served *served);

void pwi_serve_fold(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                    struct pwi_served *served);

/* Records a refusal of the task for each piece of `keys` that is due, and sets the clock. */
PAWL_MUST_USE pawl_status pwi_refusals_record(struct pwi_vector *vector, struct pwi_clock *clock,
                                              const struct pwi_request *request, struct pawl_range keys,
                                              pawl_status why);

/* Refuses a request that is due, and uses up its number. */
void pwi_serve_refuse(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      pawl_status why, struct pwi_served *served);

/* Writes the values of the named keys to `values`: the last step of PULL and PUSHPULL. */
void pwi_serve_values(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, void *values, struct pwi_served *served);

/* Sets the outcome of a read that must see a push that is not here: GAP, or RETIRED if the sender is forgotten. */
void pwi_served_gap(struct pwi_shard *shard, const struct pwi_request *request, uint64_t found,
                    struct pwi_served *served);
void pwi_serve_pull(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request, void *values,
                    struct pwi_served *served);
void pwi_serve_scan(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request, void *values,
                    struct pwi_served *served);
void pwi_serve_collect(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                       struct pwi_served *served);

/* Executes TICK and ENTER that are due (`due`) or duplicates. */
void pwi_serve_tick(struct pwi_shard *shard, struct pwi_vector *group, const struct pwi_request *request, bool due,
                    struct pwi_served *served);
/* Adds the clocks of the claim, by sender, to an OK answer if they were asked for; for a group, the ticks of
 * its members. */
void pwi_serve_clocks(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                      struct pwi_served *served);
void pwi_serve_await(struct pwi_shard *shard, struct pwi_vector *group, const struct pwi_request *request,
                     struct pwi_served *served);

/* --- aggregates ----------------------------------------------------------------------------------------- */

/* The action for a push that names a group. */
enum pwi_aggregate_action {
  PWI_AGGREGATE_ALONE, /* serve it as any other push */
  PWI_AGGREGATE_WAITS, /* it is part of the aggregate, perhaps since earlier; its answer is deferred */
  PWI_AGGREGATE_APPLY, /* apply it now by itself; its answer is deferred */
  PWI_AGGREGATE_EARLY, /* the sender's part in an earlier tick is not answered, and this one cannot be
                          kept: answer GAP */
  PWI_AGGREGATE_FULL,  /* it counts as part of the aggregate, but there is no memory for it: refuse it */
  PWI_AGGREGATE_NO_MEMORY,
};

/* For any verdict except BROKEN. */
enum pwi_aggregate_action pwi_serve_aggregate(struct pwi_shard *shard, struct pwi_vector *vector,
                                              const struct pwi_request *request, enum pwi_clock_verdict verdict,
                                              bool whole);

/* Adds the aggregate of a relay, all of whose pushes are due on the whole claim, to the aggregate of its tick. Returns
 * false if it cannot be added; then `outcome` may name a contributor whose push is here already. */
struct pwi_contributor;
bool pwi_serve_relayed(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                       const struct pwi_contributor *contributors, size_t count, struct pwi_outcome *outcome);

/* Of shard/contributed.c. A push of a group was applied or refused: records in the clock of tasks that the client of
 * `sender` has contributed to its tick, on these keys. Ignores other requests, and a clock that is NULL. */
void pwi_contributed(struct pwi_shard *shard, struct pwi_clock *clock, const struct pwi_request *request,
                     struct pwi_sender sender, struct pawl_range keys);

/* Iterates over the last ticks to which the client of a sender has contributed. Returns false if none is known. */
bool pwi_contributed_walk(const struct pwi_shard *shard, const struct pwi_vector *vector, struct pwi_vector_id group,
                          struct pwi_sender sender, struct pawl_range keys, struct pwi_clock_pieces *pieces_out);

/* Returns true if the id stands for a client of the membership and a group. */
bool pwi_contributed_is_known(const struct pwi_membership *membership, struct pwi_sender client);

/* Discards the ticks of clients that are gone, if the membership has forgotten many senders since the last time. */
void pwi_contributed_strike(struct pwi_shard *shard);

/* Returns true if a push of the sender for any of these keys waits in an aggregate. */
bool pwi_aggregate_has_part(const struct pwi_shard *shard, struct pwi_vector_id vector, struct pwi_sender sender,
                            struct pawl_range keys);

/* pwi_aggregate_examine is called after a change of the membership. pwi_aggregate_has_sender looks in all
 * aggregates. */
bool pwi_aggregate_has_sender(const struct pwi_shard *shard, struct pwi_sender sender);
void pwi_aggregate_examine(struct pwi_shard *shard);

/* Drops all aggregates for these keys, with this outcome. */
void pwi_aggregate_leave(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range keys, enum pwi_code code,
                         pawl_status status);
void pwi_aggregate_forget_waiters(struct pwi_shard *shard, uint64_t owner);
void pwi_aggregate_fini(struct pwi_shard *shard);

/* --- waiting requests ----------------------------------------------------------------------------------- */

/* Answers the waiting requests of the group whose tick has been reached. */
void pwi_group_examine(struct pwi_shard *shard, struct pwi_vector *group);

/* Answers all waiting requests of the group with this outcome. */
void pwi_group_dismiss(struct pwi_shard *shard, const struct pwi_vector *group, enum pwi_code code, pawl_status status);

/* Answers waiting requests of groups on these positions with NOT_HERE. */
void pwi_groups_leave(struct pwi_shard *shard, struct pawl_range positions);

#endif
