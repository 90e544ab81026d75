/* Batches that readers fill: a public batch whose arrays can grow.
 *
 * A parser asks for room for a row of n entries, writes their ids and values behind the existing entries,
 * and ends the row. Threads: a batch belongs to one thread at a time. Errors: PAWL_NO_MEMORY.
 */
#ifndef PWI_DATA_BATCH_H
#define PWI_DATA_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>

struct pwi_batch {
  struct pawl_batch is; /* must be first; pwi_batch_finish sets its pointers */
  uint64_t *starts, *ids;
  float *values, *labels, *weights; /* `weights` is NULL while all weights are 1 */
  size_t row_room, entry_room;
};

PAWL_MUST_USE pawl_status pwi_batch_create(struct pwi_batch **batch_out);
void pwi_batch_destroy(struct pwi_batch *batch); /* NULL is fine */

/* Makes room for one more row of `entries` entries: the caller may then write ids[is.entries + i] and
 * values[is.entries + i] for i < `entries`. */
PAWL_MUST_USE pawl_status pwi_batch_grow(struct pwi_batch *batch, size_t entries);

static inline pawl_status pwi_batch_room(struct pwi_batch *batch, size_t entries) {
  if (batch->entry_room - batch->is.entries >= entries && batch->is.rows < batch->row_room) return PAWL_OK;
  return pwi_batch_grow(batch, entries);
}

/* Ends a row whose `entries` entries were written. `is_sorted`: their ids strictly increase.
 * PAWL_OVERFLOW: the values of one id add up to a number that is not finite. */
PAWL_MUST_USE pawl_status pwi_batch_end_row(struct pwi_batch *batch, size_t entries, bool is_sorted, float label,
                                            float weight);

/* Removes the rows for which `keeps` returns false. */
void pwi_batch_sift(struct pwi_batch *batch, bool (*keeps)(const void *context, size_t row), const void *context);

/* Changes the values as the options ask, then sets the public pointers. Arrays of values or weights that
 * are all 1 are left out (NULL). */
PAWL_MUST_USE pawl_status pwi_batch_finish(struct pwi_batch *batch, bool binary, bool unit_rows);

/* Sorts entries by id, adds up the values of equal ids, and updates `*count`. Allocates memory for long
 * rows. */
PAWL_MUST_USE pawl_status pwi_entries_sort(uint64_t *ids, float *values, size_t *count);

#endif
