/* Chunks of rows in a checkpoint: any bytes.
 *
 * covers: src/checkpoint/chunk.c
 */
#include "fuzz.h"

#include "checkpoint/chunk.h"

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  return 0;
}

static bool is_inside(const uint8_t *data, size_t size, const unsigned char *part, size_t length) {
  return part >= data && part <= data + size && length <= (size_t)(data + size - part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct pwi_chunk chunk;
  pawl_status status = pwi_chunk_read(data, size, &chunk);
  assert(status == PAWL_OK || status == PAWL_CORRUPT);
  if (status != PAWL_OK || !chunk.has_rows) return 0;
  assert(chunk.count > 0 && chunk.row_bytes > 0);
  assert(is_inside(data, size, chunk.values, chunk.count * chunk.row_bytes));
  assert(is_inside(data, size, chunk.state, chunk.count * chunk.state_bytes));
  if (chunk.keys) assert(is_inside(data, size, chunk.keys, chunk.count * sizeof(uint64_t)));
  for (size_t i = 1; i < chunk.count; i++) assert(pwi_chunk_key(&chunk, i) > pwi_chunk_key(&chunk, i - 1));
  assert(pwi_chunk_key(&chunk, chunk.count - 1) < PAWL_KEY_END);
  return 0;
}
