#include "checkpoint/chunk.h"

#include "base/checked.h"
#include "base/cursor.h"

#define VERSION 2
#define OLD_VERSION 1 /* chunks of this version have no incarnation */
enum { ROWS = 1, REFUSALS = 4 };

/* The highest key is reserved, so the last key must be below it. */
static bool keys_rise(const struct pwi_chunk *chunk) {
  if (!chunk->keys) return chunk->first < PAWL_KEY_END && chunk->count <= PAWL_KEY_END - chunk->first;
  for (size_t i = 1; i < chunk->count; i++)
    if (pwi_chunk_key(chunk, i) <= pwi_chunk_key(chunk, i - 1)) return false;
  return pwi_chunk_key(chunk, chunk->count - 1) < PAWL_KEY_END;
}

static const void *read_rows_of(struct pwi_reader *reader, size_t count, size_t each) {
  size_t size;
  return pwi_mul_size(count, each, &size) ? pwi_read_bytes(reader, size) : NULL;
}

static pawl_status read_rows(struct pwi_reader *reader, struct pwi_chunk *chunk) {
  chunk->count = pwi_read_u32(reader);
  chunk->row_bytes = pwi_read_u32(reader);
  chunk->state_bytes = pwi_read_u32(reader);
  uint8_t consecutive = pwi_read_u8(reader);
  if (chunk->count == 0 || chunk->row_bytes == 0 || consecutive > 1) return PAWL_CORRUPT;
  if (consecutive == 1)
    chunk->first = pwi_read_u64(reader);
  else
    chunk->keys = read_rows_of(reader, chunk->count, sizeof(uint64_t));
  chunk->values = read_rows_of(reader, chunk->count, chunk->row_bytes);
  chunk->state = read_rows_of(reader, chunk->count, chunk->state_bytes);
  if (!chunk->values || !chunk->state || pwi_reader_end(reader) != PAWL_OK) return PAWL_CORRUPT;
  chunk->has_rows = true;
  return keys_rise(chunk) ? PAWL_OK : PAWL_CORRUPT;
}

pawl_status pwi_chunk_read(const void *bytes, size_t size, struct pwi_chunk *chunk_out) {
  struct pwi_reader reader;
  struct pwi_chunk chunk = {0};
  pwi_reader_init(&reader, bytes, size);
  uint8_t version = pwi_read_u8(&reader), what = pwi_read_u8(&reader);
  chunk.vector.id = pwi_read_u64(&reader);
  if (version != VERSION && version != OLD_VERSION) return PAWL_CORRUPT;
  chunk.has_incarnation = version == VERSION;
  if (chunk.has_incarnation) chunk.incarnation = pwi_read_u32(&reader);
  if (reader.status != PAWL_OK || what < ROWS || what > REFUSALS) return PAWL_CORRUPT;
  pawl_status status = what == ROWS ? read_rows(&reader, &chunk) : PAWL_OK;
  if (status == PAWL_OK) *chunk_out = chunk;
  return status;
}
