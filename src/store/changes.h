/* What has changed since: for checkpoints that save only what is new.
 *
 * A map from keys to the number of the push that changed them last, kept for *cells*, runs of 2^k keys, so that it stays
 * small and a push pays next to nothing for it. Asked what has changed after some number it gives ranges that hold
 * everything that did, and somewhat more.
 *
 * Numbers rise, as the sequence of a chain does. Where several chains with numbers of their own share a cell, it keeps
 * the highest: for each of them the answer still leaves nothing out.
 *
 * HOW COARSE. A cell has as many keys as make 4 KiB of rows, or more:
 *   - a span of at most 2^32 keys, and one whose keys are spread evenly (mixed placement), is cut into at most 2^12 cells
 *     of equal width;
 *   - in a wider span, where nobody knows which keys there will be, only cells that changed are remembered. When they
 *     become more than 2^12, all cells are made wider until they are half as many.
 * Besides, of a list the cells between two keys that follow each other closely may be taken for changed as well, but
 * never more cells than the list has keys.
 *
 * Memory: at most 128 KiB, from the first change on. Where there is no memory everything is taken for changed: no call
 * but pwi_changes_collect fails.
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
  uint64_t index; /* plus 1; 0: a free place */
  uint64_t number;
};

/* All fields are private. */
struct pwi_changes {
  struct pawl_range span;
  unsigned first_shift, shift; /* a cell has 2^shift keys; more as time goes by where cells are remembered one by one */
  bool even;         /* the span is cut into cells of equal width, else changed ones are remembered one by one */
  uint64_t whole;    /* all keys changed then */
  size_t count;      /* even: cells; else places for them, a power of two */
  size_t used;       /* places that are taken */
  uint64_t *numbers; /* even; NULL before the first change */
  struct pwi_changes_cell *cells; /* not even; the same */
};

/* `spread`: the keys are scattered evenly over the span, as mixed ones are. Allocates nothing. */
void pwi_changes_init(struct pwi_changes *changes, struct pawl_range span, size_t row_bytes, bool spread);
void pwi_changes_fini(struct pwi_changes *changes);

/* These keys, which rise and lie in the span, were changed by push number `number`, which is not 0. */
void pwi_changes_mark_keys(struct pwi_changes *changes, const uint64_t *keys, size_t count, uint64_t number);

/* So were all keys of this range; what lies outside the span is left out. */
void pwi_changes_mark_range(struct pwi_changes *changes, struct pawl_range range, uint64_t number);

/* Nobody will ask any more for what changed at or before this number, or for anything since an earlier one. */
void pwi_changes_forget(struct pwi_changes *changes, uint64_t number);

/* Adds to `set` ranges of keys of `range` that hold all that changed after `number`. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_changes_collect(const struct pwi_changes *changes, struct pawl_range range,
                                              uint64_t number, struct pwi_rangeset *set);

#endif
