/* The inside of a shard, for holding*.c only.
 *
 *   shard/shard.c           its life, vectors, memory
 *   shard/positions.c which positions are held or frozen
 *   shard/serve.c     requests: order of checks, pushes
 *   shard/apply.c     values into tables
 *   shard/rules.c     values through server functions
 *   shard/linear.c    linear algebra: rows changed where they lie
 *   shard/fold.c      and dot products and norms
 *   shard/follow.c    what members of a chain do
 *   shard/answers.c   requests that only read
 *   shard/lists.c     kept key lists
 *   shard/refusals.c  refusals that may have to be repeated
 *   shard/groups.c    ticks, and who waits for them
 *   shard/aggregate.c  pushes of a group that are applied as one
 *   shard/sum.c       the change that they become
 *   shard/bundle.c    their rows, added up beside the table
 *   shard/move.c      chunks out and in
 *   shard/save.c      what has changed, for checkpoints
 *   shard/loads.c     figures, and load by position
 */
#ifndef PWI_SHARD_INSIDE_H
#define PWI_SHARD_INSIDE_H

#include "base/pages.h"
#include "base/rangeset.h"
#include "shard/shard.h"
#include "store/changes.h"
#include "store/clock.h"
#include "store/functions/apply.h"
#include "store/table.h"

/* --- refusals ----------------------------------------------------------------------------------------------------- */

/* A task of a sender was refused on these keys. That stays true for ever, also if the keys move away and come back. */
struct pwi_refusal {
  struct pwi_sender sender;
  uint64_t task;
  struct pawl_range range;
  pawl_status status;
};

struct pwi_refusals {
  struct pwi_refusal *items;
  size_t count, room;
};

void pwi_refusals_fini(struct pwi_refusals *refusals);

/* Room for `more`, so that adding as many does not fail. */
PAWL_MUST_USE pawl_status pwi_refusals_reserve(struct pwi_refusals *refusals, size_t more);
void pwi_refusals_add(struct pwi_refusals *refusals, const struct pwi_refusal *refusal);

/* The status with which the task was refused on some key of `range`; PAWL_OK if it was not. */
pawl_status pwi_refusals_find(const struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t task,
                              struct pawl_range range);

/* From the first to the last key of `range` on which the task was refused; empty if it was not. */
struct pawl_range pwi_refusals_range(const struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t task,
                                     struct pawl_range range);

/* How many are kept for the sender. */
size_t pwi_refusals_count(const struct pwi_refusals *refusals, struct pwi_sender sender);

/* The sender has heard of everything up to `settled`. */
void pwi_refusals_settle(struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t settled);

/* Forgets senders that the membership does not list at all. */
void pwi_refusals_strike(struct pwi_refusals *refusals, const struct pwi_membership *membership);

/* Forgets what lies in `range`, but for a part in the middle of a longer range: to know it does no harm. */
void pwi_refusals_drop(struct pwi_refusals *refusals, struct pawl_range range);

/* --- vectors ------------------------------------------------------------------------------------------------------ */

/* The clocks of a vector. Both hold the same keys; vectors have no ticks. */
enum { PWI_TASKS = 0, PWI_TICKS = 1, PWI_CLOCKS = 2 };

/* One vector or group. */
struct pwi_vector {
  struct pwi_entry entry;
  struct pwi_place place;
  bool is_group;
  enum pwi_apply apply;                /* unless there is a rule */
  struct pwi_applying *rule;           /* NULL: `apply` is all there is to it */
  bool is_unknown;                     /* we have no function of that name: pushes are refused */
  struct pwi_table *table;             /* NULL for a group */
  bool is_hollow;                      /* the table could not be made, for lack of memory: nothing is held or served */
  uint64_t bytes;                      /* of the table, when it was last looked at; part of holding->row_bytes */
  struct pwi_space_quota *quota;       /* of its space; NULL: none */
  struct pwi_clock clocks[PWI_CLOCKS]; /* on exactly the keys that are held */
  struct pwi_clock staged[PWI_CLOCKS]; /* on keys that came in chunks and are not held yet */
  struct pwi_clock next[PWI_CLOCKS];   /* what `clocks` will be when a change to all vectors has succeeded */
  struct pwi_refusals refusals;
  struct pwi_changes changes; /* for checkpoints: when rows changed last, from the first checkpoint on */
  uint64_t pushes, pulls;

  /* Groups: the key that stands for it; and, if `ranked`, the lowest tick of any member and one who is there. */
  uint64_t group_key;
  bool ranked;
  uint64_t lowest;
  struct pwi_sender last;
};

static inline struct pawl_range pwi_vector_keys(const struct pwi_vector *vector, struct pawl_range positions) {
  return pwi_place_keys(&vector->place, positions);
}

/* Of one row of a request: what is pushed; of RESTORE what is stored and kept, row by row. */
static inline size_t pwi_vector_pushed_bytes(const struct pwi_vector *vector, enum pwi_request_kind kind) {
  if (kind == PWI_REQUEST_RESTORE) return vector->table->row_bytes + vector->table->state_bytes;
  if (kind == PWI_REQUEST_LINEAR) return 0;
  return pwi_entry_pushed_bytes(&vector->entry);
}

static inline int pwi_vector_clocks(const struct pwi_vector *vector) { return vector->is_group ? PWI_CLOCKS : 1; }

/* --- lists -------------------------------------------------------------------------------------------------------- */

struct pwi_list {
  struct pwi_vector_id vector;
  uint64_t signature;
  struct pwi_list *chain;         /* the next one in the same bucket */
  struct pwi_list *newer, *older; /* by last use */
  size_t bytes;                   /* all of it, as counted in lists.bytes */
  size_t pins;                    /* who needs it besides the cache */
  bool is_out;                    /* of the cache: gone with the last pin */
  struct pwi_slots slots;
  size_t count;
  uint64_t keys[];
};

struct pwi_lists {
  struct pwi_list **buckets; /* 2^bits */
  unsigned bits;
  size_t count;
  uint64_t bytes, bytes_max;
  struct pwi_list *newest, *oldest;
};

void pwi_lists_fini(struct pwi_lists *lists);

/* The list, which then is the newest; NULL if it is not kept. */
struct pwi_list *pwi_lists_find(struct pwi_lists *lists, struct pwi_vector_id vector, uint64_t signature);

/* Keeps a copy of the keys, in place of an earlier list of that signature. `spare` bytes are what the memory cap leaves.
 * NULL if it cannot be kept. */
struct pwi_list *pwi_lists_keep(struct pwi_lists *lists, struct pwi_vector_id vector, uint64_t signature,
                                const uint64_t *keys, size_t count, uint64_t spare);

/* The list's slots were resolved anew: counts what they take, and throws others out if that is too much. */
void pwi_lists_recount(struct pwi_lists *lists, struct pwi_list *list);

/* Throws out all lists of a vector, or of all if it is {0}, but for `except`. */
void pwi_lists_drop(struct pwi_lists *lists, struct pwi_vector_id vector, const struct pwi_list *except);

/* --- load --------------------------------------------------------------------------------------------------------- */

#define PWI_SAMPLES_MAX 4096

/* Positions of keys that were asked for: about one in `gap` of all, evenly over the stream of keys. */
struct pwi_samples {
  uint64_t until; /* keys to let pass before the next sample */
  uint64_t gap;
  uint64_t drawn; /* samples ever: jitter comes from it */
  size_t count;
  uint64_t positions[PWI_SAMPLES_MAX];
};

/* Keys of one request; `keys` NULL: they are first, first + 1, … */
void pwi_samples_draw(struct pwi_samples *samples, const struct pwi_vector *vector, const uint64_t *keys,
                      uint64_t first, uint64_t count);

/* --- naming ------------------------------------------------------------------------------------------------------- */

/* Which keys a request names. */
struct pwi_named {
  const uint64_t *keys; /* NULL: all of the range */
  size_t count;
  struct pwi_slots *slots;
  struct pwi_list *list; /* NULL: it is not kept */
  size_t first;          /* the number of keys[0] among those of the request; of a part of its keys only */
  bool has_result;       /* all values are in request.result already */
};

/* --- the shard -------------------------------------------------------------------------------------------------- */

struct pwi_waiting {
  struct pwi_vector_id group;
  uint64_t tick;
  struct pwi_waiter waiter;
};

struct pwi_shard {
  struct pwi_shard_config config;
  const struct pwi_membership *membership; /* NULL: nobody may push */
  struct pwi_rangeset held;                /* positions */
  struct pawl_range *frozen;               /* positions; may overlap. There is always room for one more */
  size_t frozen_count, frozen_room;
  struct pwi_vector **vectors; /* by rising id */
  size_t vector_count, vector_room;
  struct pwi_vector *recent; /* the vector of the last request, or NULL */
  struct pwi_waiting *waiting;
  size_t waiting_count, waiting_room;
  struct pwi_lists lists;
  uint64_t row_bytes;       /* of all tables */
  uint64_t aggregate_bytes; /* of pushes that wait for others of their group */
  struct pwi_space_quota *quotas;
  struct pwi_report totals; /* counts since the start; the rest is filled in when asked for */
  struct pwi_named named;   /* by the last push; valid right after it */
  bool is_following;        /* the cap does not count just now */
  bool is_marking;          /* changes are remembered for checkpoints */

  /* Room that is used again from request to request. */
  struct pwi_slots slots; /* of a list that is not kept */
  uint64_t *keys;         /* PWI_BLOCK of them, for ranges of sparse tables; NULL at first */
  char *row;              /* for a row that is cut by the end of a part of the values */
  size_t row_room;
  struct pwi_writer payload;
  struct pwi_pages linear_keys;  /* of a LINEAR on a sparse vector */
  struct pwi_pages linear_rows;  /* gathered rows of two vectors */
  struct pwi_slots linear_slots; /* of the other vector */

  uint64_t aggregate_steps; /* pieces of other ticks that pushes have had to look at, for tests */
  struct pwi_aggregate *aggregates;
  struct pwi_samples samples;
};

#define PWI_BLOCK ((size_t)64 << 10)

struct pwi_vector *pwi_shard_vector(const struct pwi_shard *shard, struct pwi_vector_id id); /* NULL: not here */

/* True if any key of `keys` lies on a frozen position. */
bool pwi_shard_is_frozen(const struct pwi_shard *shard, const struct pwi_vector *vector, struct pawl_range keys);

/* shard/quotas.c: the quota of a new vector's space; bytes of its table that have come and gone; bytes that its table may
 * have in all, by the quota alone. */
void pwi_quota_bind(const struct pwi_shard *shard, struct pwi_vector *vector);
void pwi_quota_count(const struct pwi_vector *vector, uint64_t more, uint64_t less);
uint64_t pwi_quota_rest(const struct pwi_vector *vector);
void pwi_quotas_fini(struct pwi_shard *shard);

/* Why a table may not grow: PAWL_NODE_FULL, or PAWL_QUOTA_MEMORY. */
pawl_status pwi_shard_full(const struct pwi_shard *shard, const struct pwi_vector *vector);

/* The table may have grown or shrunk. */
void pwi_shard_count_bytes(struct pwi_shard *shard, struct pwi_vector *vector);

/* Allows the table what the cap leaves. */
void pwi_shard_set_limit(const struct pwi_shard *shard, struct pwi_vector *vector);

/* Resolves a list, creating keys if asked to, under the cap: PAWL_NODE_FULL. Where lists are in the way of rows, they go,
 * but for `list`, which is the one whose slots these are or NULL. */
PAWL_MUST_USE pawl_status pwi_shard_resolve(struct pwi_shard *shard, struct pwi_vector *vector, const uint64_t *keys,
                                            size_t count, bool create, struct pwi_slots *slots, struct pwi_list *list);

/* The keys from `first` on, `count` of them and at most PWI_BLOCK, in shard->keys. */
PAWL_MUST_USE pawl_status pwi_shard_block(struct pwi_shard *shard, uint64_t first, size_t count);

/* The clock holds no key of `keys` any more. On failure it may still hold some. */
PAWL_MUST_USE pawl_status pwi_times_leave(struct pwi_clock *clock, struct pawl_range keys);

/* What was staged for these keys is in force now, or not wanted. */
void pwi_vector_forget_staged(struct pwi_vector *vector, struct pawl_range keys);

/* The first run of keys, at or after `from`, that lies in `keys` and that the clock holds. */
bool pwi_times_next_run(const struct pwi_clock *clock, struct pawl_range keys, uint64_t from,
                        struct pawl_range *run_out);

/* The next run of held keys that `copying` is about: all, or those that changed since. */
bool pwi_vector_next_run(const struct pwi_vector *vector, struct pawl_range keys, const struct pwi_copying *copying,
                         struct pawl_range *run_out);

/* Positions that are not held become so, in all vectors or in none. `more` makes the clock of the keys that a vector is to
 * hold besides. */
typedef pawl_status pwi_more(struct pwi_vector *vector, int which, struct pawl_range keys, struct pwi_clock *more_out);
PAWL_MUST_USE pawl_status pwi_shard_extend(struct pwi_shard *shard, struct pawl_range positions, pwi_more *more);

/* --- requests ----------------------------------------------------------------------------------------------------- */

static inline void pwi_served_fail(struct pwi_served *served, pawl_status status) {
  served->outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
}

static inline void pwi_served_say(struct pwi_served *served, enum pwi_code code, uint64_t found) {
  served->outcome = (struct pwi_outcome){.code = code, .found = found};
}

/* Finds the keys; false if an answer was given instead (WANTED, FAILED). */
bool pwi_serve_names(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                     struct pwi_named *named_out, struct pwi_served *served);

/* --- values into tables (shard/apply.c) ------------------------------------------------------------------------- */

/* True if as many values of the right type came as `rows` rows of `row_bytes` have. */
bool pwi_values_match(const struct pwi_vector *vector, const struct pwi_request *request, size_t rows,
                      size_t row_bytes);

/* Makes sure that applying cannot fail: rows are there, with new ones of zeros, in `range` of the named keys. PAWL_INVALID,
 * PAWL_NODE_FULL, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_rows_ready(struct pwi_shard *shard, struct pwi_vector *vector,
                                         const struct pwi_request *request, const struct pwi_named *named,
                                         struct pawl_range range);

/* The rows of a range of a dense table, under the cap: PAWL_NODE_FULL, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_rows_reserve(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range range);

/* Applies those values of a request that belong to keys of `part`; what comes of them goes to request->result, if that is
 * wanted. Nothing here fails. */
void pwi_rows_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                    const struct pwi_named *named, struct pawl_range part, enum pwi_apply how);

/* --- values through server functions (shard/rules.c) -------------------------------------------------------------- */

/* Finds the vector's function; the table is there. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_vector_open_rule(const struct pwi_shard *shard, struct pwi_vector *vector);
void pwi_vector_close_rule(struct pwi_vector *vector);

/* Whether the function takes the values of keys of `part`. Rows are ready. The function's own status, or PAWL_REFUSED. */
PAWL_MUST_USE pawl_status pwi_vector_check(struct pwi_shard *shard, struct pwi_vector *vector,
                                           const struct pwi_request *request, const struct pwi_named *named,
                                           struct pawl_range part);

/* Applies what was checked. Nothing here fails. */
void pwi_vector_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, struct pawl_range part);

/* Puts rows with their state where they were: RESTORE of a vector that has state. */
void pwi_vector_restore(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                        const struct pwi_named *named, struct pawl_range part);

/* --- linear algebra (shard/linear.c, shard/fold.c) --------------------------------------------------------------- */

/* The other vector, if the operation has one, else NULL. PAWL_NOT_FOUND, PAWL_RESTORED, PAWL_MISMATCH. */
PAWL_MUST_USE pawl_status pwi_linear_other(const struct pwi_shard *shard, const struct pwi_vector *vector,
                                           const struct pwi_request *request, struct pwi_vector **other_out);

/* True if the other vector lacks what it must have; `*found_out` is how far it is. */
bool pwi_linear_has_gap(const struct pwi_shard *shard, const struct pwi_vector *vector,
                        const struct pwi_request *request, uint64_t *found_out);

/* Makes sure that it cannot fail. */
PAWL_MUST_USE pawl_status pwi_linear_ready(struct pwi_shard *shard, struct pwi_vector *vector,
                                           const struct pwi_request *request, const struct pwi_named *named);

/* Changes the rows whose keys lie in `part`. Nothing here fails. */
void pwi_linear_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, struct pawl_range part);

/* Values number `from` to `from + count`, counted from the first value of row `first` on: where they lie, or in `room`. */
const char *pwi_linear_view(const struct pwi_table *table, uint64_t first, uint64_t from, size_t count, char *room);

void pwi_serve_fold(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                    struct pwi_served *served);

/* Remembers, for each piece of `keys` that is due, that the task was refused, and sets the clock. */
PAWL_MUST_USE pawl_status pwi_refusals_record(struct pwi_vector *vector, struct pwi_clock *clock,
                                              const struct pwi_request *request, struct pawl_range keys,
                                              pawl_status why);

/* Uses up the number of a request that is due. */
void pwi_serve_refuse(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      pawl_status why, struct pwi_served *served);

/* Values of the named keys to `values`: the end of a PULL and of a PUSHPULL. */
void pwi_serve_values(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, void *values, struct pwi_served *served);

void pwi_serve_pull(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request, void *values,
                    struct pwi_served *served);
void pwi_serve_scan(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request, void *values,
                    struct pwi_served *served);
void pwi_serve_collect(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                       struct pwi_served *served);

/* TICK and ENTER, once they are due (`due`) or known to be duplicates. */
void pwi_serve_tick(struct pwi_shard *shard, struct pwi_vector *group, const struct pwi_request *request, bool due,
                    struct pwi_served *served);
/* Adds to an answer that is OK the clocks of the claim, by sender, if they are asked for; and for a group its members' ticks. */
void pwi_serve_clocks(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                      struct pwi_served *served);
void pwi_serve_await(struct pwi_shard *shard, struct pwi_vector *group, const struct pwi_request *request,
                     struct pwi_served *served);

/* --- together ----------------------------------------------------------------------------------------------------- */

/* What becomes of a push that names a group. */
enum pwi_aggregate_action {
  PWI_AGGREGATE_ALONE, /* it is a push like any other */
  PWI_AGGREGATE_WAITS, /* it is in, or was before; its answer comes with the others' */
  PWI_AGGREGATE_APPLY, /* likewise, but it has to be applied by itself, now */
  PWI_AGGREGATE_EARLY, /* its own part in an earlier tick is not answered, and it is not kept until then: say GAP */
  PWI_AGGREGATE_LATER, /* an earlier tick is not over: say NOT_HERE */
  PWI_AGGREGATE_FULL,  /* it counts as in, but there is no room for it beside the others: refuse it */
  PWI_AGGREGATE_NO_MEMORY,
};

/* Any verdict but BROKEN. */
enum pwi_aggregate_action pwi_serve_aggregate(struct pwi_shard *shard, struct pwi_vector *vector,
                                              const struct pwi_request *request, enum pwi_clock_verdict verdict,
                                              bool whole);

/* Whether something of the sender waits to be applied on these keys, with others' or not. */
bool pwi_aggregate_has_part(const struct pwi_shard *shard, struct pwi_vector_id vector, struct pwi_sender sender,
                            struct pawl_range keys);

/* The membership has changed. */
bool pwi_aggregate_has_sender(const struct pwi_shard *shard, struct pwi_sender sender); /* in any of them */
void pwi_aggregate_examine(struct pwi_shard *shard);

/* Parts for these keys have no future here. */
void pwi_aggregate_leave(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range keys, enum pwi_code code,
                         pawl_status status);
void pwi_aggregate_forget_waiters(struct pwi_shard *shard, uint64_t owner);
void pwi_aggregate_fini(struct pwi_shard *shard);

/* --- waiters ------------------------------------------------------------------------------------------------------ */

/* Who of the group's waiters need not wait any more is told. */
void pwi_group_examine(struct pwi_shard *shard, struct pwi_vector *group);

/* All waiters of the group are told this. */
void pwi_group_dismiss(struct pwi_shard *shard, const struct pwi_vector *group, enum pwi_code code, pawl_status status);

/* Waiters of groups that lie on these positions are told NOT_HERE. */
void pwi_groups_leave(struct pwi_shard *shard, struct pawl_range positions);

#endif
