/* Chunks of rows, read by somebody who has no shard: whoever loads, verifies or exports a checkpoint. The format is at
 * the top of shard/move.c. */
#ifndef PWI_CHECKPOINT_CHUNK_H
#define PWI_CHECKPOINT_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/bytes.h"
#include "protocol/catalogue.h"

/* What a chunk is about; pointers go into its bytes and need not be aligned. */
struct pwi_chunk {
  struct pwi_vector_id vector;
  bool has_incarnation; /* chunks of the first version have none */
  uint32_t incarnation;
  bool has_rows; /* if not, it is about clocks or refusals, and nothing below is set */
  size_t count;  /* at least 1 */
  size_t row_bytes, state_bytes;
  const unsigned char *keys; /* stored keys, rising; NULL: they are first, first + 1, … */
  uint64_t first;
  const unsigned char *values, *state; /* of all rows */
};

/* Safe on any bytes: PAWL_CORRUPT. What the vector is does not matter here, so widths and the span are for the caller to
 * compare. */
PAWL_MUST_USE pawl_status pwi_chunk_read(const void *bytes, size_t size, struct pwi_chunk *chunk_out);

static inline uint64_t pwi_chunk_key(const struct pwi_chunk *chunk, size_t at) {
  return chunk->keys ? pwi_get_u64(chunk->keys + at * sizeof(uint64_t)) : chunk->first + at;
}

#endif
