#include "data/cache_code.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"

static pawl_status say(const char **why_out, pawl_status status, const char *why) {
  *why_out = why;
  return status;
}

/* --- head and index ------------------------------------------------------------------------------------- */

#define HEAD_SUM (PWI_CACHE_HEAD - 8)

void pwi_cache_put_head(const struct pwi_cache_head *head, unsigned char *bytes) {
  memcpy(bytes, PWI_CACHE_MAGIC, 8);
  pwi_put_u32(bytes + 8, PWI_CACHE_VERSION);
  pwi_put_u32(bytes + 12, head->flags);
  pwi_put_u64(bytes + 16, head->rows);
  pwi_put_u64(bytes + 24, head->entries);
  pwi_put_u64(bytes + 32, head->max_id);
  pwi_put_u64(bytes + 40, head->blocks);
  pwi_put_u64(bytes + 48, head->index_at);
  pwi_put_u64(bytes + HEAD_SUM, pwi_hash(bytes, HEAD_SUM, 0));
}

pawl_status pwi_cache_get_head(const unsigned char *bytes, uint64_t file_size, struct pwi_cache_head *head_out,
                               const char **why_out) {
  uint64_t index_size;
  if (memcmp(bytes, PWI_CACHE_MAGIC, 8) != 0) return say(why_out, PAWL_CORRUPT, "not a cache");
  if (pwi_get_u32(bytes + 8) != PWI_CACHE_VERSION)
    return say(why_out, PAWL_UNSUPPORTED, "unknown version of the cache format; convert the data again");
  if (pwi_get_u64(bytes + HEAD_SUM) != pwi_hash(bytes, HEAD_SUM, 0))
    return say(why_out, PAWL_CORRUPT, "the cache head is damaged (wrong checksum)");
  struct pwi_cache_head head = {.flags = pwi_get_u32(bytes + 12),
                                .rows = pwi_get_u64(bytes + 16),
                                .entries = pwi_get_u64(bytes + 24),
                                .max_id = pwi_get_u64(bytes + 32),
                                .blocks = pwi_get_u64(bytes + 40),
                                .index_at = pwi_get_u64(bytes + 48)};
  if (!pwi_mul_u64(head.blocks, PWI_CACHE_ENTRY, &index_size) || !pwi_add_u64(index_size, PWI_CACHE_TAIL, &index_size))
    return say(why_out, PAWL_CORRUPT, "the cache head is inconsistent");
  if (head.max_id > PAWL_ID_MAX || head.index_at < PWI_CACHE_HEAD)
    return say(why_out, PAWL_CORRUPT, "the cache head is inconsistent");
  if (!pwi_span_fits(head.index_at, index_size, file_size))
    return say(why_out, PAWL_TRUNCATED, "the cache is truncated");
  if (head.index_at + index_size != file_size)
    return say(why_out, PAWL_CORRUPT, "unexpected bytes behind the end of the cache");
  *head_out = head;
  return PAWL_OK;
}

void pwi_cache_put_block(const struct pwi_cache_block *block, unsigned char *bytes) {
  const uint64_t fields[] = {block->at,    block->rows_size, block->columns_size, block->rows_sum, block->columns_sum,
                             block->flags, block->rows,      block->entries,      block->columns};
  static_assert(sizeof fields == PWI_CACHE_ENTRY, "size of an index entry");
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) pwi_put_u64(bytes + 8 * i, fields[i]);
}

static void get_block(const unsigned char *bytes, struct pwi_cache_block *block) {
  uint64_t *const fields[] = {&block->at,       &block->rows_size,   &block->columns_size,
                              &block->rows_sum, &block->columns_sum, &block->flags,
                              &block->rows,     &block->entries,     &block->columns};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) *fields[i] = pwi_get_u64(bytes + 8 * i);
}

/* Adds `count` numbers of `each` bytes to a size. */
static bool add(uint64_t *size, uint64_t count, uint64_t each) {
  uint64_t bytes;
  return pwi_mul_u64(count, each, &bytes) && pwi_add_u64(*size, bytes, size);
}

static uint64_t id_size(const struct pwi_cache_block *block) { return block->flags & PWI_BLOCK_WIDE ? 8 : 4; }

static bool sizes(const struct pwi_cache_block *block, uint64_t *rows_out, uint64_t *columns_out) {
  uint64_t rows = 0, columns = 0, values = block->flags & PWI_BLOCK_VALUES ? 4 : 0;
  uint64_t weights = block->flags & PWI_BLOCK_WEIGHTS ? 4 : 0;
  bool fits = add(&rows, block->rows, 4) && add(&rows, 1, 4) && add(&rows, block->entries, id_size(block) + values) &&
              add(&rows, block->rows, 4 + weights);
  fits = fits && add(&columns, block->columns, id_size(block) + 4) && add(&columns, 1, 4) &&
         add(&columns, block->entries, 4 + values);
  *rows_out = rows;
  *columns_out = columns;
  return fits && block->rows < UINT32_MAX && block->entries <= UINT32_MAX && block->columns <= block->entries;
}

/* The caller allocates memory in proportion to rows and entries. Both are safe to trust, because the file
 * holds bytes for each of them. */
static bool is_sound(const struct pwi_cache_block *block, const struct pwi_cache_head *head) {
  uint64_t rows_size, columns_size, size;
  if (block->flags > (PWI_BLOCK_WIDE | PWI_BLOCK_VALUES | PWI_BLOCK_WEIGHTS)) return false;
  if (!sizes(block, &rows_size, &columns_size)) return false;
  if (rows_size != block->rows_size || columns_size != block->columns_size) return false;
  if (!pwi_add_u64(rows_size, columns_size, &size) || size > SIZE_MAX / 4) return false;
  return block->at >= PWI_CACHE_HEAD && pwi_span_fits(block->at, size, head->index_at);
}

pawl_status pwi_cache_get_index(const unsigned char *bytes, const struct pwi_cache_head *head,
                                struct pwi_cache_block *blocks, const char **why_out) {
  size_t size = (size_t)head->blocks * PWI_CACHE_ENTRY;
  uint64_t rows = 0, entries = 0;
  if (pwi_get_u64(bytes + size) != pwi_hash(bytes, size, 0))
    return say(why_out, PAWL_CORRUPT, "the cache index is damaged (wrong checksum)");
  for (size_t i = 0; i < (size_t)head->blocks; i++) {
    get_block(bytes + i * PWI_CACHE_ENTRY, &blocks[i]);
    if (!is_sound(&blocks[i], head)) return say(why_out, PAWL_CORRUPT, "the cache index is inconsistent");
    rows += blocks[i].rows;
    entries += blocks[i].entries;
  }
  if (rows != head->rows || entries != head->entries)
    return say(why_out, PAWL_CORRUPT, "the cache head does not match the sum of its blocks");
  return PAWL_OK;
}

/* --- writing blocks ------------------------------------------------------------------------------------- */

static unsigned char *put_u32s(unsigned char *to, const uint64_t *numbers, size_t count) {
  for (size_t i = 0; i < count; i++, to += 4) pwi_put_u32(to, (uint32_t)numbers[i]);
  return to;
}

static unsigned char *put_ids(unsigned char *to, const uint64_t *ids, size_t count, bool is_wide) {
  if (!is_wide) return put_u32s(to, ids, count);
  for (size_t i = 0; i < count; i++, to += 8) pwi_put_u64(to, ids[i]);
  return to;
}

/* Words of four bytes: floats, and whole numbers. */
static unsigned char *put_words(unsigned char *to, const void *words, size_t count) {
  if (!words || count == 0) return to;
  memcpy(to, words, 4 * count);
  if (PWI_LE32(UINT32_C(1)) != 1)
    for (size_t i = 0; i < count; i++) {
      uint32_t word;
      memcpy(&word, to + 4 * i, 4);
      pwi_put_u32(to + 4 * i, word);
    }
  return to + 4 * count;
}

static void put_rows(const struct pawl_batch *batch, const struct pwi_cache_block *block, unsigned char *to) {
  to = put_u32s(to, batch->starts, batch->rows + 1);
  to = put_ids(to, batch->ids, batch->entries, block->flags & PWI_BLOCK_WIDE);
  to = put_words(to, batch->values, batch->entries);
  to = put_words(to, batch->labels, batch->rows);
  put_words(to, batch->weights, batch->rows);
}

static void put_columns(const struct pawl_columns *columns, const struct pwi_cache_block *block, unsigned char *to) {
  to = put_u32s(to, columns->starts, columns->columns + 1);
  to = put_ids(to, columns->ids, columns->columns, block->flags & PWI_BLOCK_WIDE);
  to = put_words(to, columns->in, columns->entries);
  put_words(to, columns->values, columns->entries);
}

static pawl_status put_all(const struct pawl_batch *batch, const struct pawl_columns *columns,
                           struct pwi_cache_block *block, unsigned char **bytes_out) {
  block->rows = batch->rows;
  block->entries = batch->entries;
  block->columns = columns->columns;
  block->flags = (batch->max_id > UINT32_MAX ? PWI_BLOCK_WIDE : 0u) | (batch->values ? PWI_BLOCK_VALUES : 0u) |
                 (batch->weights ? PWI_BLOCK_WEIGHTS : 0u);
  uint64_t total;
  size_t size;
  if (!sizes(block, &block->rows_size, &block->columns_size)) return PAWL_TOO_LARGE;
  if (!pwi_add_u64(block->rows_size, block->columns_size, &total) || !pwi_u64_to_size(total, &size))
    return PAWL_NO_MEMORY;
  unsigned char *bytes = pwi_alloc(size);
  if (!bytes) return PAWL_NO_MEMORY;
  put_rows(batch, block, bytes);
  put_columns(columns, block, bytes + block->rows_size);
  block->rows_sum = pwi_hash(bytes, (size_t)block->rows_size, 0);
  block->columns_sum = pwi_hash(bytes + block->rows_size, (size_t)block->columns_size, 0);
  *bytes_out = bytes;
  return PAWL_OK;
}

pawl_status pwi_cache_encode(const struct pawl_batch *batch, struct pwi_cache_block *block_out,
                             unsigned char **bytes_out) {
  struct pwi_columns *columns;
  struct pwi_cache_block block = {0};
  pawl_status status = pwi_columns_of(batch, &columns);
  if (status) return status;
  status = put_all(batch, &columns->is, &block, bytes_out);
  pwi_columns_destroy(columns);
  if (!status) *block_out = block;
  return status;
}

/* --- reading blocks ------------------------------------------------------------------------------------- */

/* Numbers that start with 0, never decrease, and end with `last`. */
static bool get_starts(const unsigned char *bytes, size_t count, uint64_t last, uint64_t *starts) {
  bool rises = true;
  for (size_t i = 0; i <= count; i++) {
    starts[i] = pwi_get_u32(bytes + 4 * i);
    if (i > 0) rises &= starts[i] >= starts[i - 1];
  }
  return rises && starts[0] == 0 && starts[count] == last;
}

static void get_ids(const unsigned char *bytes, size_t count, bool is_wide, uint64_t *ids) {
  if (is_wide)
    for (size_t i = 0; i < count; i++) ids[i] = pwi_get_u64(bytes + 8 * i);
  else
    for (size_t i = 0; i < count; i++) ids[i] = pwi_get_u32(bytes + 4 * i);
}

static bool get_floats(const unsigned char *bytes, size_t count, float *floats) {
  uint32_t worst = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t word = pwi_get_u32(bytes + 4 * i), size = word & 0x7fffffff;
    worst = size > worst ? size : worst;
    memcpy(&floats[i], &word, sizeof word);
  }
  return worst < 0x7f800000; /* larger bit patterns are infinities and NaNs */
}

/* The highest id; larger than any valid id if the ids of a span do not strictly increase. */
static uint64_t highest(const uint64_t *starts, size_t count, const uint64_t *ids) {
  uint64_t most = 0;
  for (size_t i = 0; i < count; i++)
    for (uint64_t at = starts[i]; at < starts[i + 1]; at++) {
      if (at > starts[i] && ids[at] <= ids[at - 1]) return UINT64_MAX;
      most = ids[at] > most ? ids[at] : most;
    }
  return most;
}

static pawl_status make_room(struct pwi_batch *batch, const struct pwi_cache_block *block) {
  size_t rows = (size_t)block->rows, entries = (size_t)block->entries;
  uint64_t *starts = pwi_resize_array(batch->starts, rows + 1, sizeof *starts);
  if (!starts) return PAWL_NO_MEMORY;
  batch->starts = starts;
  batch->ids = pwi_resize_array(NULL, entries, sizeof *batch->ids);
  batch->labels = pwi_resize_array(NULL, rows, sizeof *batch->labels);
  if (block->flags & PWI_BLOCK_VALUES) batch->values = pwi_resize_array(NULL, entries, sizeof *batch->values);
  if (block->flags & PWI_BLOCK_WEIGHTS) batch->weights = pwi_resize_array(NULL, rows, sizeof *batch->weights);
  if (!batch->ids || !batch->labels) return PAWL_NO_MEMORY;
  if ((block->flags & PWI_BLOCK_VALUES && !batch->values) || (block->flags & PWI_BLOCK_WEIGHTS && !batch->weights))
    return PAWL_NO_MEMORY;
  batch->row_room = rows;
  batch->entry_room = entries;
  return PAWL_OK;
}

pawl_status pwi_cache_decode_rows(const struct pwi_cache_block *block, const unsigned char *bytes,
                                  struct pwi_batch *batch, const char **why_out) {
  size_t rows = (size_t)block->rows, entries = (size_t)block->entries;
  if (pwi_hash(bytes, (size_t)block->rows_size, 0) != block->rows_sum)
    return say(why_out, PAWL_CORRUPT, "a block is damaged (wrong checksum)");
  pawl_status status = make_room(batch, block);
  if (status) return status;
  bool good = get_starts(bytes, rows, block->entries, batch->starts);
  bytes += 4 * (rows + 1);
  get_ids(bytes, entries, block->flags & PWI_BLOCK_WIDE, batch->ids);
  bytes += (size_t)id_size(block) * entries;
  if (batch->values) {
    good &= get_floats(bytes, entries, batch->values);
    bytes += 4 * entries;
  }
  good &= get_floats(bytes, rows, batch->labels);
  if (batch->weights) good &= get_floats(bytes + 4 * rows, rows, batch->weights);
  uint64_t most = good ? highest(batch->starts, rows, batch->ids) : UINT64_MAX;
  if (most > PAWL_ID_MAX) return say(why_out, PAWL_CORRUPT, "a block is inconsistent");
  batch->is.rows = rows;
  batch->is.entries = entries;
  batch->is.max_id = most;
  return PAWL_OK;
}

/* Whether the rows of each column increase, and none exceeds the last row. */
static bool rows_rise(const struct pwi_columns *columns, uint64_t rows) {
  for (size_t i = 0; i < columns->is.columns; i++)
    for (size_t at = (size_t)columns->starts[i]; at < (size_t)columns->starts[i + 1]; at++)
      if (columns->in[at] >= rows || (at > columns->starts[i] && columns->in[at] <= columns->in[at - 1])) return false;
  return true;
}

pawl_status pwi_cache_decode_columns(const struct pwi_cache_block *block, const unsigned char *bytes,
                                     struct pwi_columns *columns, const char **why_out) {
  size_t count = (size_t)block->columns, entries = (size_t)block->entries;
  const uint64_t whole[2] = {0, block->columns};
  if (pwi_hash(bytes, (size_t)block->columns_size, 0) != block->columns_sum)
    return say(why_out, PAWL_CORRUPT, "a block is damaged (wrong checksum)");
  bool good = get_starts(bytes, count, block->entries, columns->starts);
  bytes += 4 * (count + 1);
  get_ids(bytes, count, block->flags & PWI_BLOCK_WIDE, columns->ids);
  bytes += (size_t)id_size(block) * count;
  for (size_t i = 0; i < entries; i++) columns->in[i] = pwi_get_u32(bytes + 4 * i);
  if (columns->values) good &= get_floats(bytes + 4 * entries, entries, columns->values);
  good = good && highest(whole, 1, columns->ids) <= PAWL_ID_MAX && rows_rise(columns, block->rows);
  if (!good) return say(why_out, PAWL_CORRUPT, "a block is inconsistent");
  columns->is.rows = (size_t)block->rows;
  return PAWL_OK;
}
