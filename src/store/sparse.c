/* The sparse table: creation, resolving key lists, scanning. sparse.h explains the structure. */
#include "store/sparse.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

static void sparse_destroy(struct pwi_table *table) {
  struct pwi_sparse *sparse = pwi_sparse_of(table);
  struct pwi_pages *arrays[] = {&sparse->keys,    &sparse->values,     &sparse->state,        &sparse->counts,
                                &sparse->changed, &sparse->fences,     &sparse->maps,         &sparse->numbers,
                                &sparse->free,    &sparse->spare_keys, &sparse->spare_values, &sparse->spare_state};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pwi_pages_fini(arrays[i]);
  pwi_free(sparse);
}

static uint64_t sparse_count(const struct pwi_table *table) { return pwi_sparse_of(table)->rows; }

uint64_t pwi_leaf_bytes(const struct pwi_sparse *sparse) {
  uint64_t directory = 3 * sizeof(uint64_t) + sizeof(uint32_t) + 1;
  uint64_t row = sizeof(uint64_t) + sparse->table.row_bytes + sparse->table.state_bytes;
  return (row << sparse->shift) + directory;
}

static uint64_t sparse_bytes(const struct pwi_table *table) {
  const struct pwi_sparse *sparse = pwi_sparse_of(table);
  return sizeof *sparse + (sparse->numbered - sparse->free_count) * pwi_leaf_bytes(sparse);
}

/* --- resolving ------------------------------------------------------------------------------------------ */

/* If only some keys of the list exist, inserting the others moves old rows; the slots of these are looked up
 * again with the new ones. */
static pawl_status insert_between(struct pwi_sparse *sparse, const uint64_t *keys, struct pwi_slots *slots) {
  uint64_t *fresh = pwi_resize_array(NULL, slots->missing + 1, sizeof *fresh), before = sparse->table.layout;
  if (!fresh) return PAWL_NO_MEMORY;
  size_t count = 0;
  for (size_t i = 0; i < slots->count; i++) {
    fresh[count] = keys[i];
    count += slots->slots[i] == PWI_SLOT_MISSING;
  }
  pawl_status status = pwi_sparse_insert(sparse, fresh, count, NULL);
  if (status == PAWL_OK) slots->missing = pwi_sparse_find_again(sparse, keys, slots->count, before, slots->slots);
  pwi_free(fresh);
  return status;
}

static pawl_status insert_missing(struct pwi_sparse *sparse, const uint64_t *keys, struct pwi_slots *slots) {
  if (slots->missing == 0) return PAWL_OK;
  if (slots->missing < slots->count) return insert_between(sparse, keys, slots);
  pawl_status status = pwi_sparse_insert(sparse, keys, slots->count, slots->slots);
  if (status == PAWL_OK) slots->missing = 0;
  return status;
}

static pawl_status sparse_resolve(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                                  struct pwi_slots *slots) {
  struct pwi_sparse *sparse = pwi_sparse_of(table);
  slots->missing = pwi_sparse_find(sparse, keys, count, slots->slots);
  return create ? insert_missing(sparse, keys, slots) : PAWL_OK;
}

static pawl_status sparse_refresh(struct pwi_table *table, const uint64_t *keys, uint64_t since, bool create,
                                  struct pwi_slots *slots) {
  struct pwi_sparse *sparse = pwi_sparse_of(table);
  slots->missing = pwi_sparse_find_again(sparse, keys, slots->count, since, slots->slots);
  return create ? insert_missing(sparse, keys, slots) : PAWL_OK;
}

/* --- scanning ------------------------------------------------------------------------------------------- */

static bool sparse_scan(const struct pwi_table *table, struct pawl_range range, struct pwi_rows *rows_out) {
  const struct pwi_sparse *sparse = pwi_sparse_of(table);
  size_t place = pwi_sparse_place(sparse, 0, range.begin), begin = 0, end = 0;
  uint32_t leaf = 0;
  for (; place < sparse->leaves && pwi_fences(sparse)[place] < range.end; place++) {
    leaf = pwi_leaf_numbers(sparse)[place];
    begin = pwi_leaf_below(sparse, leaf, range.begin);
    end = pwi_leaf_below(sparse, leaf, range.end);
    if (end > *pwi_leaf_count(sparse, leaf)) end = *pwi_leaf_count(sparse, leaf);
    if (begin < end) break;
  }
  if (begin >= end) return false;
  size_t slot = ((size_t)leaf << sparse->shift) + begin;
  const uint64_t *keys = pwi_leaf_keys(sparse, leaf);
  *rows_out = (struct pwi_rows){
      .keys = keys + begin,
      .first = keys[begin],
      .last = keys[end - 1],
      .count = end - begin,
      .values = table->values + slot * table->row_bytes,
      .state = table->state ? table->state + slot * table->state_bytes : NULL,
  };
  return true;
}

/* --- making --------------------------------------------------------------------------------------------- */

static const struct pwi_table_ops sparse_ops = {
    .destroy = sparse_destroy,
    .count = sparse_count,
    .bytes = sparse_bytes,
    .resolve = sparse_resolve,
    .refresh = sparse_refresh,
    .scan = sparse_scan,
    .delete = pwi_sparse_delete,
};

/* Mapped arrays reserve this many times the needed size: address space is free, but moving an array is
 * not. */
#define GENEROUS 8

/* Makes room for `count` elements of `size` bytes, or fails with PAWL_NO_MEMORY. */
static pawl_status grow(struct pwi_pages *pages, size_t count, size_t size) {
  size_t bytes, generous;
  if (!pwi_mul_size(count, size, &bytes)) return PAWL_NO_MEMORY;
  if (bytes <= pages->size || bytes < PWI_PAGES_LARGE || !pwi_mul_size(bytes, GENEROUS, &generous)) {
    return pwi_pages_grow(pages, bytes);
  }
  return pwi_pages_grow(pages, generous) == PAWL_OK ? PAWL_OK : pwi_pages_grow(pages, bytes);
}

pawl_status pwi_sparse_reserve(struct pwi_sparse *sparse, size_t more) {
  size_t numbers = sparse->numbered + more, slots = numbers << sparse->shift;
  size_t directory = sparse->leaves + more + PWI_SPARSE_PAD;
  pawl_status status = grow(&sparse->keys, slots, sizeof(uint64_t));
  if (status == PAWL_OK) status = grow(&sparse->values, slots, sparse->table.row_bytes);
  if (status == PAWL_OK) status = grow(&sparse->state, slots, sparse->table.state_bytes);
  if (status == PAWL_OK) status = grow(&sparse->counts, numbers, 1);
  if (status == PAWL_OK) status = grow(&sparse->changed, numbers, sizeof(uint64_t));
  if (status == PAWL_OK) status = grow(&sparse->free, numbers, sizeof(uint32_t));
  if (status == PAWL_OK) status = grow(&sparse->numbers, directory, sizeof(uint32_t));
  if (status == PAWL_OK) status = grow(&sparse->maps, directory, sizeof(uint64_t));
  if (status == PAWL_OK) status = grow(&sparse->fences, directory, sizeof(uint64_t));
  sparse->table.values = sparse->values.memory;
  sparse->table.state = sparse->state.memory;
  return status;
}

/* A leaf has about half a page of keys and of rows. Wide rows thus make small leaves, so that insertion moves
 * few bytes. */
static unsigned leaf_shift(const struct pwi_table *table) {
  size_t bytes = table->row_bytes + table->state_bytes;
  return bytes <= 32 ? 6 : bytes <= 128 ? 5 : 4;
}

static void start_directory(struct pwi_sparse *sparse) {
  sparse->numbered = 2;
  sparse->leaves = 1;
  pwi_leaf_numbers(sparse)[0] = 1;
  pwi_fences(sparse)[0] = 0;
  for (size_t i = 0; i < PWI_SPARSE_PAD; i++) pwi_fences(sparse)[1 + i] = PWI_SPARSE_NO_KEY;
  for (size_t i = 0; i < 2 * pwi_leaf_size(sparse); i++) pwi_leaf_keys(sparse, 0)[i] = PWI_SPARSE_NO_KEY;
  pwi_draw_map(sparse, 0);
}

pawl_status pwi_sparse_create(const struct pwi_table *base, struct pwi_table **table_out) {
  struct pwi_sparse *sparse = pwi_alloc_zero(1, sizeof *sparse);
  if (!sparse) return PAWL_NO_MEMORY;
  sparse->table = *base;
  sparse->table.ops = &sparse_ops;
  sparse->shift = leaf_shift(base);
  pawl_status status = pwi_sparse_reserve(sparse, 2);
  if (status != PAWL_OK) {
    sparse_destroy(&sparse->table);
    return status;
  }
  start_directory(sparse);
  *table_out = &sparse->table;
  return PAWL_OK;
}
