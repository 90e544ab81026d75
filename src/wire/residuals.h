/* The residuals of a filter: a map from keys to the sums of rows that were not sent.
 *
 * Open addressing with linear probing, at most half full. A slot contains the key and the row, so that a row
 * costs one memory access. Groups of eight neighbouring keys have neighbouring slots, so that a dense list of
 * keys costs one access for several rows. Rows that are sent are removed from the map.
 *
 * The map is bounded: when it holds `limit` rows, rows of further keys are sent at once. The limit costs
 * traffic, never values.
 *
 * Only `reserve` allocates. Threads: belongs to one thread at a time.
 */
#ifndef PWI_WIRE_RESIDUALS_H
#define PWI_WIRE_RESIDUALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/filter.h>

#include "base/pages.h"

struct pwi_residuals {
  enum pawl_type type;
  uint32_t width;
  size_t row_bytes;
  size_t slot_bytes;
  size_t limit;
  size_t count;
  size_t room; /* slots, a power of two, or 0 */
  struct pwi_pages slots;
  struct pwi_pages order; /* for flushing: keys and slots, twice */
};

/* Takes no memory yet. */
void pwi_residuals_init(struct pwi_residuals *residuals, enum pawl_type type, uint32_t width, size_t limit);
void pwi_residuals_fini(struct pwi_residuals *residuals);

/* Allocates memory for a pass over `rows` rows, or for a flush. PAWL_NO_MEMORY and PAWL_OVERFLOW change
 * nothing. */
PAWL_MUST_USE pawl_status pwi_residuals_reserve(struct pwi_residuals *residuals, size_t rows, bool flush);

/* Decides whether a row, including its residual, is sent now. Called once for each row, in order. */
typedef bool pwi_residuals_due(void *context, const void *row);

/* Adds the residual of its key to each row. Rows that are due stay in `rows`; the others move to the map. A
 * row of zeros that is not due is dropped. */
void pwi_residuals_pass(struct pwi_residuals *residuals, struct pawl_rows *rows, pwi_residuals_due *due, void *context);

/* Adds all residuals to the rows, which have room for them and no weights, and frees the memory. */
void pwi_residuals_flush(struct pwi_residuals *residuals, struct pawl_rows *rows);

/* The memory of the map in bytes. */
size_t pwi_residuals_memory(const struct pwi_residuals *residuals);

#endif
