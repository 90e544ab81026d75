/* Tracking of changed keys, for incremental checkpoints.
 *
 * A map from keys to the number of the push that changed them last. It is kept per *cell*, a run of 2^k keys,
 * so that it stays small and costs a push almost nothing. A query for the changes after a number returns
 * ranges that contain all changed keys, and some others.
 *
 * Numbers increase like the sequence numbers of a chain. If several chains with separate numbers share a
 * cell, the cell keeps the highest; the answer is still complete for each of them.
 *
 * GRANULARITY. A cell has at least as many keys as make 4 KiB of rows:
 *   - a span of at most 2^32 keys, or one whose keys are evenly distributed (mixed placement), is divided
 *     into at most 2^12 cells of equal width;
 *   - in a wider span, whose keys are not known in advance, only changed cells are stored. When there are
 *     more than 2^12, all cells are widened until half as many remain. In addition, cells between two close
 *     keys of a list may be marked as changed, but never more cells than the list has keys.
 *
 * Memory: at most 128 KiB, allocated at the first change. If there is no memory, everything counts as
 * changed; only pwi_changes_collect can fail.
 *
 * Threads: belongs to one thread at a time.
 */
#ifndef PWI_STORE_CHANGES_H
#define PWI_STORE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "base/rangeset.h"

struct pwi_changes_cell {
  uint64_t index; /* index of the cell plus 1; 0: a free place */
  uint64_t number;
};

/* All fields are private. */
struct pwi_changes {
  struct pawl_range span;
  unsigned first_shift, shift;    /* a cell has 2^shift keys; `shift` grows if cells are stored one by one */
  bool even;                      /* the span is divided into cells of equal width; otherwise changed cells
                                     are stored one by one */
  uint64_t whole;                 /* number of the last push after which all keys count as changed */
  size_t count;                   /* even: number of cells; otherwise number of places, a power of two */
  size_t used;                    /* number of used places */
  uint64_t *numbers;              /* if even; NULL before the first change */
  struct pwi_changes_cell *cells; /* if not even; NULL before the first change */
};

/* `spread`: the keys are evenly distributed over the span, as mixed keys are. Allocates nothing. */
void pwi_changes_init(struct pwi_changes *changes, struct pawl_range span, size_t row_bytes, bool spread);
void pwi_changes_fini(struct pwi_changes *changes);

/* Marks these keys as changed by push number `number`, which is not 0. The keys ascend and lie in the
 * span. */
void pwi_changes_mark_keys(struct pwi_changes *changes, const uint64_t *keys, size_t count, uint64_t number);

/* Marks all keys of this range; keys outside the span are ignored. */
void pwi_changes_mark_range(struct pwi_changes *changes, struct pawl_range range, uint64_t number);

/* Declares that no later query will ask for changes since a number below this one. */
void pwi_changes_forget(struct pwi_changes *changes, uint64_t number);

/* Adds ranges to `set` that contain all keys of `range` that changed after `number`. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_changes_collect(const struct pwi_changes *changes, struct pawl_range range,
                                              uint64_t number, struct pwi_rangeset *set);

#endif
