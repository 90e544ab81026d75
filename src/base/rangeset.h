/* A set of keys, kept as ranges.
 *
 * What a member lacks, what was answered, which part of a span is filled: sets that consist of a few long runs. They
 * are kept as a sorted array of ranges of which none is empty, no two overlap and no two touch, so that a set has
 * exactly one form and equality is comparison. Looking up is a binary search; changing moves the ranges behind the
 * change.
 *
 * Everywhere an empty range holds no key: adding or removing it changes nothing, it is contained in every set and
 * intersects none. The key PAWL_KEY_END is in no set (see <pawl/range.h>).
 *
 * Threads: a set belongs to one thread at a time. Errors: PAWL_NO_MEMORY, and then the set is what it was before.
 */
#ifndef PWI_BASE_RANGESET_H
#define PWI_BASE_RANGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

/* To iterate over a set, walk `ranges[0 .. count)`; any change to the set ends the walk. All fields are read-only. */
struct pwi_rangeset {
  struct pawl_range *ranges;
  size_t count;
  size_t room;
};

/* An empty set; allocates nothing. A struct of zeros is an empty set as well. */
void pwi_rangeset_init(struct pwi_rangeset *set);

/* Frees what the set holds and leaves it empty and usable. */
void pwi_rangeset_fini(struct pwi_rangeset *set);

/* Empties the set and keeps its memory for what comes next. */
void pwi_rangeset_clear(struct pwi_rangeset *set);

/* Puts every key of `range` into the set. */
PAWL_MUST_USE pawl_status pwi_rangeset_add(struct pwi_rangeset *set, struct pawl_range range);

/* Takes every key of `range` out of the set. Needs memory only when it cuts one range in two. */
PAWL_MUST_USE pawl_status pwi_rangeset_remove(struct pwi_rangeset *set, struct pawl_range range);

/* Puts every key of `other` into the set: the union, in place. `other` may be `set`. */
PAWL_MUST_USE pawl_status pwi_rangeset_add_all(struct pwi_rangeset *set, const struct pwi_rangeset *other);

/* Takes every key of `other` out of the set: the difference, in place. `other` may be `set`. */
PAWL_MUST_USE pawl_status pwi_rangeset_remove_all(struct pwi_rangeset *set, const struct pwi_rangeset *other);

/* Makes `copy_out`, a set that was initialised, equal to `set`; what it held before is gone. */
PAWL_MUST_USE pawl_status pwi_rangeset_copy(const struct pwi_rangeset *set, struct pwi_rangeset *copy_out);

bool pwi_rangeset_is_empty(const struct pwi_rangeset *set);
bool pwi_rangeset_has(const struct pwi_rangeset *set, uint64_t key);

/* True if every key of `range` is in the set. */
bool pwi_rangeset_contains(const struct pwi_rangeset *set, struct pawl_range range);

/* True if at least one key of `range` is in the set. */
bool pwi_rangeset_intersects(const struct pwi_rangeset *set, struct pawl_range range);

/* The first run of keys at or after `from` that are in the set; false if there is none. A run that began before `from`
 * is given from `from` on, so that `for (at = 0; pwi_rangeset_next(set, at, &run); at = run.end)` visits all. */
bool pwi_rangeset_next(const struct pwi_rangeset *set, uint64_t from, struct pawl_range *run_out);

/* The first run of keys at or after `from` that are *not* in the set, cut at `from` likewise. The last gap ends at
 * PAWL_KEY_END; false if every key from `from` on is in the set. */
bool pwi_rangeset_next_gap(const struct pwi_rangeset *set, uint64_t from, struct pawl_range *gap_out);

/* The number of keys in the set. */
uint64_t pwi_rangeset_size(const struct pwi_rangeset *set);

bool pwi_rangeset_equal(const struct pwi_rangeset *a, const struct pwi_rangeset *b);

#endif
