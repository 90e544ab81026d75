/* Batches as readers fill them: a public batch with room to grow.
 *
 * A parser asks for room for a row of so many entries, writes ids and values behind those there are, and ends the
 * row. Threads: a batch belongs to one at a time. Errors: PAWL_NO_MEMORY.
 */
#ifndef PWI_DATA_BATCH_H
#define PWI_DATA_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>

struct pwi_batch {
  struct pawl_batch is; /* first; its pointers are set by pwi_batch_finish */
  uint64_t *starts, *ids;
  float *values, *labels, *weights; /* weights: NULL while all are 1 */
  size_t row_room, entry_room;
};

PAWL_MUST_USE pawl_status pwi_batch_create(struct pwi_batch **batch_out);
void pwi_batch_destroy(struct pwi_batch *batch); /* NULL is fine */

/* After it ids[entries + i] and values[entries + i] may be written for i < `entries`, and a row be ended. */
PAWL_MUST_USE pawl_status pwi_batch_grow(struct pwi_batch *batch, size_t entries);

static inline pawl_status pwi_batch_room(struct pwi_batch *batch, size_t entries) {
  if (batch->entry_room - batch->is.entries >= entries && batch->is.rows < batch->row_room) return PAWL_OK;
  return pwi_batch_grow(batch, entries);
}

/* Ends a row of `entries` that were written. `is_sorted`: their ids rise strictly. PAWL_OVERFLOW: a sum of values of
 * one id is not finite. */
PAWL_MUST_USE pawl_status pwi_batch_end_row(struct pwi_batch *batch, size_t entries, bool is_sorted, float label,
                                            float weight);

/* Leaves out the rows that `keeps` does not want. */
void pwi_batch_sift(struct pwi_batch *batch, bool (*keeps)(const void *context, size_t row), const void *context);

/* Sets the public pointers, after values were changed as the options ask. Values or weights that are all 1 are left
 * out. */
PAWL_MUST_USE pawl_status pwi_batch_finish(struct pwi_batch *batch, bool binary, bool unit_rows);

/* Sorts entries by id and adds up values of equal ids; how many are left. Needs memory for long rows. */
PAWL_MUST_USE pawl_status pwi_entries_sort(uint64_t *ids, float *values, size_t *count);

#endif
