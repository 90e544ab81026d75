/* Decodes chunks of rows without a shard, to load, verify or export a checkpoint. The format is at the top
 * of shard/move.c. */
#ifndef PWI_CHECKPOINT_CHUNK_H
#define PWI_CHECKPOINT_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/bytes.h"
#include "protocol/catalogue.h"

/* A decoded chunk. Pointers refer to the chunk's bytes and need not be aligned. */
struct pwi_chunk {
  struct pwi_vector_id vector;
  bool has_incarnation; /* false for chunks of format version 1 */
  uint32_t incarnation;
  bool has_rows; /* if false the chunk holds clocks or refusals, and the fields below are not set */
  size_t count;  /* at least 1 */
  size_t row_bytes, state_bytes;
  const unsigned char *keys; /* stored keys, increasing; NULL: the keys are first, first + 1, … */
  uint64_t first;
  const unsigned char *values, *state; /* of all rows */
};

/* Safe on any bytes: PAWL_CORRUPT. The caller compares widths and keys with the vector's options. */
PAWL_MUST_USE pawl_status pwi_chunk_read(const void *bytes, size_t size, struct pwi_chunk *chunk_out);

static inline uint64_t pwi_chunk_key(const struct pwi_chunk *chunk, size_t at) {
  return chunk->keys ? pwi_get_u64(chunk->keys + at * sizeof(uint64_t)) : chunk->first + at;
}

#endif
