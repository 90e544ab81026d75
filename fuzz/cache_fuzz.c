/* Caches: files of any bytes, with corrected checksums so that the code behind them is reached; and rows
 * encoded and decoded.
 *
 * covers: src/data/cache_code.c src/data/formats/columns.c
 */
#include "rows.h"

#include "base/hash.h"
#include "base/memory.h"
#include "data/cache_code.h"

enum { BYTES, ROWS, KINDS };

/* --- any bytes ------------------------------------------------------------------------------------------ */

static void decode(const struct pwi_cache_block *block, const uint8_t *bytes) {
  struct pwi_batch *batch;
  struct pwi_columns *columns;
  const char *why = "";
  pawl_status status = pwi_batch_create(&batch);
  assert(!status);
  status = pwi_cache_decode_rows(block, bytes + block->at, batch, &why);
  assert(status == PAWL_OK || (status == PAWL_CORRUPT && *why));
  if (!status) {
    status = pwi_batch_finish(batch, false, false);
    assert(!status);
    if (!batch->is.weights) check_batch(&batch->is);
  }
  pwi_batch_destroy(batch);
  status =
      pwi_columns_create((size_t)block->columns, (size_t)block->entries, block->flags & PWI_BLOCK_VALUES, &columns);
  assert(!status);
  status = pwi_cache_decode_columns(block, bytes + block->at + block->rows_size, columns, &why);
  assert(status == PAWL_OK || status == PAWL_CORRUPT);
  pwi_columns_destroy(columns);
}

/* Corrects the checksums, of all but every fourth file. */
static void seal(uint8_t *bytes, size_t size) {
  uint64_t blocks = pwi_get_u64(bytes + 40), at = pwi_get_u64(bytes + 48);
  if (blocks < 16 && at < size && size - at >= blocks * PWI_CACHE_ENTRY + PWI_CACHE_TAIL) {
    for (size_t i = 0; i < blocks; i++) {
      uint8_t *entry = bytes + at + i * PWI_CACHE_ENTRY;
      uint64_t from = pwi_get_u64(entry), rows = pwi_get_u64(entry + 8), columns = pwi_get_u64(entry + 16);
      if (from > size || rows > size - from || columns > size - from - rows) continue;
      pwi_put_u64(entry + 24, pwi_hash(bytes + from, (size_t)rows, 0));
      pwi_put_u64(entry + 32, pwi_hash(bytes + from + rows, (size_t)columns, 0));
    }
    pwi_put_u64(bytes + at + blocks * PWI_CACHE_ENTRY, pwi_hash(bytes + at, (size_t)blocks * PWI_CACHE_ENTRY, 0));
  }
  memcpy(bytes, PWI_CACHE_MAGIC, 8);
  pwi_put_u64(bytes + 56, pwi_hash(bytes, 56, 0));
}

static void read_file(const uint8_t *bytes, size_t size) {
  struct pwi_cache_head head;
  const char *why = "";
  pawl_status status = pwi_cache_get_head(bytes, size, &head, &why);
  assert(!status || *why);
  if (status) return;
  struct pwi_cache_block *blocks = calloc((size_t)head.blocks + 1, sizeof *blocks);
  assert(blocks);
  status = pwi_cache_get_index(bytes + head.index_at, &head, blocks, &why);
  assert(!status || *why);
  for (size_t i = 0; !status && i < (size_t)head.blocks; i++) decode(&blocks[i], bytes);
  free(blocks);
}

static void take_bytes(struct input *input) {
  bool is_sealed = draw_u8(input) % 4 != 0;
  size_t size = input->left;
  if (size < PWI_CACHE_HEAD) return;
  uint8_t *bytes = malloc(size);
  assert(bytes);
  memcpy(bytes, input->at, size);
  if (is_sealed) seal(bytes, size);
  read_file(bytes, size);
  free(bytes);
}

/* --- round trips ---------------------------------------------------------------------------------------- */

static struct pwi_batch *draw_rows(struct input *input) {
  struct pwi_batch *batch;
  pawl_status status = pwi_batch_create(&batch);
  uint8_t style = draw_u8(input);
  assert(!status);
  while (input->left > 0) {
    size_t entries = draw_u8(input) % 20;
    status = pwi_batch_room(batch, entries);
    assert(!status);
    for (size_t i = 0; i < entries; i++) {
      batch->ids[batch->is.entries + i] = style & 1 ? draw_u64(input) >> 1 : draw_u16(input);
      batch->values[batch->is.entries + i] = style & 2 ? 1 : (float)draw_u8(input) / 4;
    }
    status = pwi_batch_end_row(batch, entries, false, (float)draw_u8(input), style & 4 ? (float)draw_u8(input) : 1);
    assert(!status);
  }
  status = pwi_batch_finish(batch, style & 2, false);
  assert(!status);
  return batch;
}

UNTRACED static void check_same(const struct pawl_batch *a, const struct pawl_batch *b) {
  assert(a->rows == b->rows && a->entries == b->entries && a->max_id == b->max_id);
  assert(!a->values == !b->values && !a->weights == !b->weights);
  assert(memcmp(a->starts, b->starts, (a->rows + 1) * sizeof *a->starts) == 0);
  assert(!a->entries || memcmp(a->ids, b->ids, a->entries * sizeof *a->ids) == 0);
  assert(!a->entries || !a->values || memcmp(a->values, b->values, a->entries * sizeof *a->values) == 0);
  assert(!a->rows || memcmp(a->labels, b->labels, a->rows * sizeof *a->labels) == 0);
}

static void take_rows(struct input *input) {
  struct pwi_batch *batch = draw_rows(input), *back;
  struct pwi_cache_block block = {0}, again;
  struct pwi_cache_head head = {.blocks = 1, .rows = batch->is.rows, .entries = batch->is.entries};
  struct pwi_columns *columns;
  const char *why = "";
  unsigned char *bytes, index[PWI_CACHE_ENTRY + PWI_CACHE_TAIL], front[PWI_CACHE_HEAD];
  pawl_status status = pwi_cache_encode(&batch->is, &block, &bytes);
  assert(!status);
  block.at = PWI_CACHE_HEAD;
  head.index_at = PWI_CACHE_HEAD + block.rows_size + block.columns_size;
  pwi_cache_put_block(&block, index);
  pwi_put_u64(index + PWI_CACHE_ENTRY, pwi_hash(index, PWI_CACHE_ENTRY, 0));
  pwi_cache_put_head(&head, front);
  status = pwi_cache_get_head(front, head.index_at + sizeof index, &head, &why);
  assert(!status);
  status = pwi_cache_get_index(index, &head, &again, &why);
  assert(!status && memcmp(&block, &again, sizeof block) == 0);
  status = pwi_batch_create(&back);
  assert(!status);
  status = pwi_cache_decode_rows(&block, bytes, back, &why);
  assert(!status);
  status = pwi_batch_finish(back, false, false);
  assert(!status);
  check_same(&batch->is, &back->is);
  status = pwi_columns_create((size_t)block.columns, (size_t)block.entries, block.flags & PWI_BLOCK_VALUES, &columns);
  assert(!status);
  status = pwi_cache_decode_columns(&block, bytes + block.rows_size, columns, &why);
  assert(!status);
  pwi_columns_destroy(columns);
  pwi_batch_destroy(back);
  pwi_batch_destroy(batch);
  pwi_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  if (draw_u8(&input) % KINDS == BYTES)
    take_bytes(&input);
  else
    take_rows(&input);
  return 0;
}
