/* What a filter did not send, by key: a map from keys to rows that are added up.
 *
 * Open addressing with linear probing, at most half full. A slot is the key and the row side by side, so that a row
 * costs one trip to memory; neighbouring keys have neighbouring slots, eight at a time, so that a dense list of keys
 * costs one trip for several. Rows that are sent leave no trace: the map holds what is held and nothing else.
 *
 * The map is bounded: when `limit` rows are held, a row that is not yet among them is sent instead. So a limit costs
 * traffic, never values.
 *
 * Only `reserve` allocates. Threads: belongs to one thread at a time.
 */
#ifndef PWI_WIRE_RESTS_H
#define PWI_WIRE_RESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/filter.h>

#include "base/pages.h"

struct pwi_rests {
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
void pwi_rests_init(struct pwi_rests *rests, enum pawl_type type, uint32_t width, size_t limit);
void pwi_rests_fini(struct pwi_rests *rests);

/* Room for a pass over `rows` rows, or with `flush` for a flush. PAWL_NO_MEMORY and PAWL_OVERFLOW change nothing. */
PAWL_MUST_USE pawl_status pwi_rests_reserve(struct pwi_rests *rests, size_t rows, bool flush);

/* Whether a row, to which its rest has been added, is to be sent now. Called once for each row, in order. */
typedef bool pwi_rests_due(void *context, const void *row);

/* Adds to each row what is held of its key. Those that are due stay in `rows`, the others are held. A row that is all
 * zero and not due is dropped and not held. */
void pwi_rests_pass(struct pwi_rests *rests, struct pawl_rows *rows, pwi_rests_due *due, void *context);

/* Adds all that is held to the rows, which have room for it and no weights, and gives the memory back. */
void pwi_rests_flush(struct pwi_rests *rests, struct pawl_rows *rows);

/* Bytes that the map takes. */
size_t pwi_rests_memory(const struct pwi_rests *rests);

#endif
