/* Deletion of a key range from a sparse table: empty leaves are freed, and the rows of the others close the
 * gap. */
#include <stdlib.h>
#include <string.h>

#include "store/sparse.h"

/* Removes rows [begin, end) of a leaf. */
static void close_up(const struct pwi_sparse *sparse, uint32_t leaf, size_t begin, size_t end) {
  size_t count = *pwi_leaf_count(sparse, leaf), slot = (size_t)leaf << sparse->shift;
  size_t row = sparse->table.row_bytes, state = sparse->table.state_bytes;
  uint64_t *keys = pwi_leaf_keys(sparse, leaf);
  memmove(keys + begin, keys + end, (count - end) * sizeof *keys);
  char *rows = sparse->table.values + slot * row;
  memmove(rows + begin * row, rows + end * row, (count - end) * row);
  if (state > 0) {
    rows = sparse->table.state + slot * state;
    memmove(rows + begin * state, rows + end * state, (count - end) * state);
  }
  size_t left = count - (end - begin);
  for (size_t i = left; i < count; i++) keys[i] = PWI_SPARSE_NO_KEY;
  *pwi_leaf_count(sparse, leaf) = (unsigned char)left;
}

static void drop_leaves(struct pwi_sparse *sparse, size_t first, size_t count) {
  size_t slot = first << sparse->shift, slots = count << sparse->shift;
  pwi_pages_drop(&sparse->keys, slot * sizeof(uint64_t), slots * sizeof(uint64_t));
  pwi_pages_drop(&sparse->values, slot * sparse->table.row_bytes, slots * sparse->table.row_bytes);
  pwi_pages_drop(&sparse->state, slot * sparse->table.state_bytes, slots * sparse->table.state_bytes);
}

static int falling(const void *a, const void *b) {
  uint32_t x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return (x < y) - (x > y);
}

/* Keeps the free numbers sorted, so that low numbers are used first and neighbours are adjacent: complete
 * pages of free leaves are returned to the system. */
static void give_back(struct pwi_sparse *sparse) {
  uint32_t *numbers = sparse->free.memory;
  qsort(numbers, sparse->free_count, sizeof *numbers, falling);
  for (size_t i = 0, run; i < sparse->free_count; i += run) {
    for (run = 1; i + run < sparse->free_count && numbers[i + run] + run == numbers[i];) run++;
    drop_leaves(sparse, numbers[i + run - 1], run);
  }
}

/* Removes the keys of the range from the leaf at a place; true if none are left. */
static bool remove_from(struct pwi_sparse *sparse, uint32_t leaf, struct pawl_range range) {
  size_t begin = pwi_leaf_below(sparse, leaf, range.begin), end = pwi_leaf_below(sparse, leaf, range.end);
  if (begin < end) {
    close_up(sparse, leaf, begin, end);
    *pwi_leaf_changed(sparse, leaf) = sparse->table.layout + 1;
  }
  sparse->rows -= end - begin;
  return *pwi_leaf_count(sparse, leaf) == 0;
}

/* Closes the gap between the directory entries before `kept` and those from `place` on. The maps of
 * the remaining leaves before the gap are computed again, because these leaves lost rows or have a new fence
 * after them; so is the map of the first leaf, whose fence is 0. */
static void close_directory(struct pwi_sparse *sparse, size_t first, size_t kept, size_t place) {
  uint64_t *fences = pwi_fences(sparse), *maps = pwi_maps(sparse);
  uint32_t *numbers = pwi_leaf_numbers(sparse);
  size_t behind = kept < place ? sparse->leaves - place : 0;
  memmove(numbers + kept, numbers + place, behind * sizeof *numbers);
  memmove(maps + kept, maps + place, behind * sizeof *maps);
  if (kept < place) memmove(fences + kept, fences + place, (behind + PWI_SPARSE_PAD) * sizeof *fences);
  fences[0] = 0;
  for (size_t i = first > 0 ? first - 1 : 0; i < kept; i++) pwi_draw_map(sparse, i);
  pwi_draw_map(sparse, 0);
}

void pwi_sparse_delete(struct pwi_table *table, struct pawl_range range) {
  struct pwi_sparse *sparse = pwi_sparse_of(table);
  uint64_t *fences = pwi_fences(sparse), before = sparse->rows;
  uint32_t *numbers = pwi_leaf_numbers(sparse), *given_back = sparse->free.memory;
  size_t first = pwi_sparse_place(sparse, 0, range.begin), place = first, kept = first, freed = 0;
  for (; place < sparse->leaves && fences[place] < range.end; place++) {
    uint32_t leaf = numbers[place];
    bool last_of_all = kept == 0 && place + 1 == sparse->leaves;
    if (remove_from(sparse, leaf, range) && !last_of_all) {
      given_back[sparse->free_count + freed++] = leaf;
    } else {
      numbers[kept] = leaf;
      fences[kept++] = fences[place];
    }
  }
  close_directory(sparse, first, kept, place);
  sparse->leaves -= freed;
  sparse->free_count += freed;
  if (freed > 0) give_back(sparse);
  if (sparse->rows != before) table->layout++;
}
