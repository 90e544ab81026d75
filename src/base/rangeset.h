/* A set of keys, kept as ranges.
 *
 * For sets that consist of a few long runs, such as the keys that a replica still lacks or the part of a span
 * that is filled. The set is a sorted array of non-empty ranges that neither overlap nor touch, so that each
 * set has exactly one representation. A lookup is a binary search; a change moves the ranges behind it.
 *
 * An empty range has no keys: adding or removing it changes nothing, every set contains it and no set
 * intersects it. The key PAWL_KEY_END is in no set (see <pawl/range.h>).
 *
 * Threads: a set belongs to one thread at a time. Errors: PAWL_NO_MEMORY, which leaves the set unchanged.
 */
#ifndef PWI_BASE_RANGESET_H
#define PWI_BASE_RANGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

/* To iterate over a set, walk `ranges[0 .. count)`; any change to the set ends the walk. All fields are
 * read-only. */
struct pwi_rangeset {
  struct pawl_range *ranges;
  size_t count;
  size_t room;
};

/* An empty set; allocates nothing. A struct of zeros is an empty set as well. */
void pwi_rangeset_init(struct pwi_rangeset *set);

/* Frees the memory of the set and leaves it empty and usable. */
void pwi_rangeset_fini(struct pwi_rangeset *set);

/* Empties the set and keeps its memory. */
void pwi_rangeset_clear(struct pwi_rangeset *set);

/* Adds every key of `range`. */
PAWL_MUST_USE pawl_status pwi_rangeset_add(struct pwi_rangeset *set, struct pawl_range range);

/* Removes every key of `range`. Needs memory only when it cuts one range in two. */
PAWL_MUST_USE pawl_status pwi_rangeset_remove(struct pwi_rangeset *set, struct pawl_range range);

/* Adds every key of `other` (union). `other` may be `set`. */
PAWL_MUST_USE pawl_status pwi_rangeset_add_all(struct pwi_rangeset *set, const struct pwi_rangeset *other);

/* Removes every key of `other` (difference). `other` may be `set`. */
PAWL_MUST_USE pawl_status pwi_rangeset_remove_all(struct pwi_rangeset *set, const struct pwi_rangeset *other);

/* Makes `copy_out`, an initialised set, equal to `set`. Its earlier contents are lost. */
PAWL_MUST_USE pawl_status pwi_rangeset_copy(const struct pwi_rangeset *set, struct pwi_rangeset *copy_out);

bool pwi_rangeset_is_empty(const struct pwi_rangeset *set);
bool pwi_rangeset_has(const struct pwi_rangeset *set, uint64_t key);

/* True if every key of `range` is in the set. */
bool pwi_rangeset_contains(const struct pwi_rangeset *set, struct pawl_range range);

/* True if at least one key of `range` is in the set. */
bool pwi_rangeset_intersects(const struct pwi_rangeset *set, struct pawl_range range);

/* Finds the first run of keys at or after `from` that are in the set; false if there is none. A run that
 * begins before `from` is cut at `from`, so that `for (at = 0; pwi_rangeset_next(set, at, &run); at =
 * run.end)` visits all. */
bool pwi_rangeset_next(const struct pwi_rangeset *set, uint64_t from, struct pawl_range *run_out);

/* The first run of keys at or after `from` that are *not* in the set, cut at `from` likewise. The last gap
 * ends at PAWL_KEY_END; false if every key from `from` on is in the set. */
bool pwi_rangeset_next_gap(const struct pwi_rangeset *set, uint64_t from, struct pawl_range *gap_out);

/* The number of keys in the set. */
uint64_t pwi_rangeset_size(const struct pwi_rangeset *set);

bool pwi_rangeset_equal(const struct pwi_rangeset *a, const struct pwi_rangeset *b);

#endif
