/* The dense table: arrays over the whole span, mapped at once and backed by memory piece by piece.
 *
 * Slot = key - begin + LEAD: the first LEAD rows stay zero, and missing keys read row 0. A *piece* is the
 * number of rows that fill about one huge page. It takes memory from its first write on; until then its keys
 * count as missing, so that the memory limit can be enforced. Allocating or dropping a piece changes the
 * layout.
 */
#include "store/dense.h"

#include <assert.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pages.h"
#include "base/search.h"
#include "store/kernels.h"

#define LEAD 16 /* a cache line of the narrowest rows */

struct dense {
  struct pwi_table table;
  struct pwi_pages values, state;
  unsigned char *taken; /* one per piece */
  size_t pieces, pieces_taken;
  unsigned shift; /* a piece has 2^shift rows */
  uint64_t slots; /* rows, LEAD included */
};

static struct dense *dense_of(const struct pwi_table *table) { return (struct dense *)(uintptr_t)table; }

static uint64_t slot_of(const struct dense *dense, uint64_t key) { return key - dense->table.is.span.begin + LEAD; }

static uint64_t key_of(const struct dense *dense, uint64_t slot) { return slot - LEAD + dense->table.is.span.begin; }

static uint64_t piece_begin(const struct dense *dense, size_t piece) {
  return piece == 0 ? LEAD : (uint64_t)piece << dense->shift;
}

static uint64_t piece_end(const struct dense *dense, size_t piece) {
  uint64_t end = (uint64_t)(piece + 1) << dense->shift;
  return end < dense->slots ? end : dense->slots;
}

static uint64_t piece_bytes(const struct dense *dense) {
  uint64_t rows = (uint64_t)1 << dense->shift;
  if (dense->pieces == 1) rows = dense->slots;
  return rows * (dense->table.row_bytes + dense->table.state_bytes);
}

static uint64_t dense_bytes(const struct pwi_table *table) {
  const struct dense *dense = dense_of(table);
  return sizeof *dense + dense->pieces + dense->pieces_taken * piece_bytes(dense);
}

static uint64_t dense_count(const struct pwi_table *table) {
  const struct dense *dense = dense_of(table);
  uint64_t rows = 0;
  for (size_t i = 0; i < dense->pieces; i++) {
    if (dense->taken[i]) rows += piece_end(dense, i) - piece_begin(dense, i);
  }
  return rows;
}

static void dense_destroy(struct pwi_table *table) {
  struct dense *dense = dense_of(table);
  pwi_pages_fini(&dense->values);
  pwi_pages_fini(&dense->state);
  pwi_free(dense->taken);
  pwi_free(dense);
}

/* --- taking pieces -------------------------------------------------------------------------------------- */

/* Finds the keys of the list, from number `from` on, that lie in the same piece as the first: returns the
 * number after the last of them, and the piece. */
static size_t same_piece(const struct dense *dense, const uint64_t *keys, size_t from, size_t count,
                         size_t *piece_out) {
  size_t piece = (size_t)(slot_of(dense, keys[from]) >> dense->shift);
  uint64_t last = key_of(dense, piece_end(dense, piece) - 1); /* the end itself need not be a key */
  *piece_out = piece;
  if (keys[count - 1] <= last) return count;
  return from + pwi_first_not_below(keys + from, count - from, last + 1);
}

static pawl_status allow_pieces(const struct dense *dense, size_t wanted) {
  uint64_t bytes = dense_bytes(&dense->table), more;
  if (wanted == 0) return PAWL_OK;
  if (!pwi_mul_u64(wanted, piece_bytes(dense), &more) || !pwi_add_u64(bytes, more, &bytes)) return PAWL_TOO_LARGE;
  return bytes > dense->table.limit ? PAWL_TOO_LARGE : PAWL_OK;
}

static void take_piece(struct dense *dense, size_t piece) {
  if (dense->taken[piece]) return;
  dense->taken[piece] = 1;
  dense->pieces_taken++;
  dense->table.layout++;
}

static pawl_status take_keys(struct dense *dense, const uint64_t *keys, size_t count) {
  size_t wanted = 0, piece;
  for (size_t i = 0; i < count;) {
    i = same_piece(dense, keys, i, count, &piece);
    wanted += !dense->taken[piece];
  }
  pawl_status status = allow_pieces(dense, wanted);
  for (size_t i = 0; i < count && status == PAWL_OK && wanted > 0;) {
    i = same_piece(dense, keys, i, count, &piece);
    take_piece(dense, piece);
  }
  return status;
}

/* Replaces the slots of unallocated pieces by PWI_SLOT_MISSING. */
static void mark_missing(const struct dense *dense, const uint64_t *keys, struct pwi_slots *slots) {
  for (size_t i = 0; i < slots->count;) {
    size_t piece, end = same_piece(dense, keys, i, slots->count, &piece);
    if (!dense->taken[piece]) {
      for (size_t j = i; j < end; j++) slots->slots[j] = PWI_SLOT_MISSING;
      slots->missing += end - i;
    }
    i = end;
  }
}

static pawl_status dense_resolve(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                                 struct pwi_slots *slots) {
  struct dense *dense = dense_of(table);
  bool whole = dense->pieces_taken == dense->pieces;
  if (create && !whole) {
    pawl_status status = take_keys(dense, keys, count);
    if (status != PAWL_OK) return status;
  }
  uint32_t *places = slots->slots;
  uint64_t shift = slot_of(dense, 0);
  for (size_t i = 0; i < count; i++) places[i] = (uint32_t)(keys[i] + shift);
  if (!create && !whole) mark_missing(dense, keys, slots);
  return PAWL_OK;
}

/* --- ranges --------------------------------------------------------------------------------------------- */

/* Allocates all missing pieces of these slots, or none. */
static pawl_status take_slots(struct dense *dense, uint64_t first_slot, uint64_t last_slot) {
  size_t first = (size_t)(first_slot >> dense->shift), last = (size_t)(last_slot >> dense->shift), wanted = 0;
  for (size_t piece = first; piece <= last; piece++) wanted += !dense->taken[piece];
  pawl_status status = allow_pieces(dense, wanted);
  if (status != PAWL_OK) return status;
  for (size_t piece = first; piece <= last && wanted > 0; piece++) take_piece(dense, piece);
  return PAWL_OK;
}

static pawl_status dense_range_apply(struct pwi_table *table, enum pwi_apply apply, uint64_t value, size_t count,
                                     const void *in, void *out) {
  struct dense *dense = dense_of(table);
  size_t width = table->is.width, size = table->row_bytes / width;
  pawl_status status = take_slots(dense, value / width + LEAD, (value + count - 1) / width + LEAD);
  if (status != PAWL_OK) return status;
  char *to = table->values + LEAD * table->row_bytes + value * size;
  if (out)
    pwi_apply_array_out(apply, table->is.type, to, in, count, out);
  else if (apply == PWI_APPLY_ASSIGN)
    pwi_assign_array(to, in, count * size);
  else
    pwi_row_kernels_best()->array[apply][table->is.type - 1](to, in, count);
  return PAWL_OK;
}

static bool dense_scan(const struct pwi_table *table, struct pawl_range range, struct pwi_rows *rows_out) {
  const struct dense *dense = dense_of(table);
  uint64_t begin = slot_of(dense, range.begin), end = slot_of(dense, range.end - 1) + 1;
  size_t piece = (size_t)(begin >> dense->shift), last = (size_t)((end - 1) >> dense->shift);
  while (piece <= last && !dense->taken[piece]) piece++;
  if (piece > last) return false;
  if (begin < piece_begin(dense, piece)) begin = piece_begin(dense, piece);
  while (piece < last && dense->taken[piece + 1]) piece++;
  if (end > piece_end(dense, piece)) end = piece_end(dense, piece);
  *rows_out = (struct pwi_rows){
      .first = key_of(dense, begin),
      .last = key_of(dense, end - 1),
      .count = (size_t)(end - begin),
      .values = table->values + begin * table->row_bytes,
      .state = table->state ? table->state + begin * table->state_bytes : NULL,
  };
  return true;
}

static void clear_part(struct pwi_pages *pages, uint64_t begin, uint64_t end, size_t bytes) {
  if (bytes > 0) pwi_pages_clear(pages, begin * bytes, (end - begin) * bytes);
}

/* Clears rows [begin, end) of an allocated piece. Complete pages are returned to the system. */
static void clear_rows(struct dense *dense, size_t piece, uint64_t begin, uint64_t end) {
  bool whole = begin == piece_begin(dense, piece) && end == piece_end(dense, piece);
  clear_part(&dense->values, begin, end, dense->table.row_bytes);
  clear_part(&dense->state, begin, end, dense->table.state_bytes);
  if (!whole) return;
  dense->taken[piece] = 0;
  dense->pieces_taken--;
  dense->table.layout++;
}

static void dense_delete(struct pwi_table *table, struct pawl_range range) {
  struct dense *dense = dense_of(table);
  uint64_t begin = slot_of(dense, range.begin), end = slot_of(dense, range.end - 1) + 1;
  for (size_t piece = (size_t)(begin >> dense->shift); piece <= (end - 1) >> dense->shift; piece++) {
    if (!dense->taken[piece]) continue;
    uint64_t from = begin > piece_begin(dense, piece) ? begin : piece_begin(dense, piece);
    uint64_t to = end < piece_end(dense, piece) ? end : piece_end(dense, piece);
    clear_rows(dense, piece, from, to);
  }
}

static const struct pwi_table_ops dense_ops = {
    .destroy = dense_destroy,
    .count = dense_count,
    .bytes = dense_bytes,
    .resolve = dense_resolve,
    .range_apply = dense_range_apply,
    .scan = dense_scan,
    .delete = dense_delete,
};

pawl_status pwi_dense_reserve(struct pwi_table *table, struct pawl_range range) {
  assert(table->ops == &dense_ops);
  struct dense *dense = dense_of(table);
  if (pawl_range_is_empty(range) || !pawl_range_contains(table->is.span, range)) return PAWL_INVALID;
  return take_slots(dense, slot_of(dense, range.begin), slot_of(dense, range.end - 1));
}

/* The largest power of two of rows that fit into a huge page. */
static unsigned piece_shift(size_t bytes) {
  unsigned shift = 0;
  while (((size_t)2 << shift) * bytes <= PWI_PAGES_HUGE) shift++;
  return shift;
}

static pawl_status take_memory(struct dense *dense) {
  size_t values, state;
  if (!pwi_mul_size((size_t)dense->slots, dense->table.row_bytes, &values)) return PAWL_TOO_LARGE;
  if (!pwi_mul_size((size_t)dense->slots, dense->table.state_bytes, &state)) return PAWL_TOO_LARGE;
  pawl_status status = pwi_pages_grow(&dense->values, values);
  if (status == PAWL_OK && state > 0) status = pwi_pages_grow(&dense->state, state);
  if (status != PAWL_OK) return status;
  dense->taken = pwi_alloc_zero(dense->pieces, 1);
  return dense->taken ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status pwi_dense_check(uint64_t rows, uint64_t row_bytes) {
  uint64_t bytes;
  if (rows > UINT32_MAX - LEAD || !pwi_mul_u64(rows + LEAD, row_bytes, &bytes)) return PAWL_TOO_LARGE;
  return bytes > PWI_TABLE_DENSE_BYTES_MAX ? PAWL_TOO_LARGE : PAWL_OK;
}

pawl_status pwi_dense_create(const struct pwi_table *base, struct pwi_table **table_out) {
  uint64_t rows = pawl_range_size(base->is.span);
  struct dense *dense = pwi_alloc_zero(1, sizeof *dense);
  if (!dense) return PAWL_NO_MEMORY;
  dense->table = *base;
  dense->table.ops = &dense_ops;
  dense->slots = rows + LEAD;
  dense->shift = piece_shift(base->row_bytes);
  if (dense->shift < 5) dense->shift = 5; /* piece 0 has more rows than LEAD */
  dense->pieces = (size_t)(((dense->slots - 1) >> dense->shift) + 1);
  pawl_status status = take_memory(dense);
  if (status != PAWL_OK) {
    dense_destroy(&dense->table);
    return status;
  }
  dense->table.values = dense->values.memory;
  dense->table.state = dense->state.memory;
  *table_out = &dense->table;
  return PAWL_OK;
}
