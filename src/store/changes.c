#include "store/changes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

#define CELLS_MAX ((size_t)1 << 12)  /* of an evenly divided span: their numbers fit into the L1 cache */
#define EVEN_MAX ((uint64_t)1 << 32) /* maximum keys of such a span */
#define LISTED_MAX ((size_t)1 << 12) /* cells that are remembered one by one */
#define PLACES_MAX (2 * LISTED_MAX)
#define PLACES_FIRST ((size_t)1 << 8)
#define CELL_BYTES 4096

/* A list is processed in steps of this many keys, because reading keys is the main cost: lists are long and
 * not in a cache. If the keys of a step span at most this many cells, all cells from the first to the last
 * are marked without reading the keys between; otherwise each key is read. */
#define STEP 512

/* --- cells ---------------------------------------------------------------------------------------------- */

static uint64_t cell_of(const struct pwi_changes *changes, uint64_t key) {
  return (key - changes->span.begin) >> changes->shift;
}

static struct pawl_range keys_of(const struct pwi_changes *changes, uint64_t first, uint64_t last) {
  uint64_t begin = changes->span.begin + (first << changes->shift), room = changes->span.end - begin;
  uint64_t more = last - first;
  bool to_the_end = more >= (room - 1) >> changes->shift;
  return pawl_range_of(begin, to_the_end ? changes->span.end : begin + ((more + 1) << changes->shift));
}

void pwi_changes_init(struct pwi_changes *changes, struct pawl_range span, size_t row_bytes, bool spread) {
  uint64_t keys = pawl_range_size(span);
  unsigned shift = 0;
  *changes = (struct pwi_changes){.span = span};
  while (shift < 12 && (row_bytes << shift) < CELL_BYTES) shift++;
  changes->even = spread || keys <= EVEN_MAX;
  if (changes->even && keys > 0) {
    while ((keys - 1) >> shift >= CELLS_MAX) shift++;
    changes->count = (size_t)((keys - 1) >> shift) + 1;
  }
  changes->first_shift = changes->shift = shift;
}

void pwi_changes_fini(struct pwi_changes *changes) {
  pwi_free(changes->numbers);
  pwi_free(changes->cells);
  *changes = (struct pwi_changes){0};
}

static void mark_whole(struct pwi_changes *changes, uint64_t number) {
  if (changes->whole < number) changes->whole = number;
}

/* --- cells that are stored one by one ------------------------------------------------------------------- */

/* The place of a cell, or the free place where it would be added. A free place always exists. */
static struct pwi_changes_cell *find_place(const struct pwi_changes *changes, uint64_t index) {
  size_t at = (size_t)((index * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (changes->count - 1);
  while (changes->cells[at].index != 0 && changes->cells[at].index != index + 1) at = (at + 1) & (changes->count - 1);
  return &changes->cells[at];
}

/* Adds a cell; there must be room. */
static void put_cell(struct pwi_changes *changes, uint64_t index, uint64_t number) {
  struct pwi_changes_cell *place = find_place(changes, index);
  changes->used += place->index == 0;
  place->index = index + 1;
  if (place->number < number) place->number = number;
}

static int compare_cells(const void *left, const void *right) {
  const struct pwi_changes_cell *a = left, *b = right;
  return (a->index > b->index) - (a->index < b->index);
}

/* Moves the used cells that changed after `number` to the front, sorted by index. The array is then no longer
 * a hash table. */
static size_t sort_cells(struct pwi_changes_cell *cells, size_t count, uint64_t number) {
  size_t used = 0;
  for (size_t i = 0; i < count; i++)
    if (cells[i].index != 0 && cells[i].number > number) cells[used++] = cells[i];
  if (used > 1) qsort(cells, used, sizeof *cells, compare_cells);
  return used;
}

/* The number of bits by which sorted cells must be widened so that at most `most` remain. Two neighbours
 * merge when the highest bit in which they differ is dropped. */
static unsigned bits_to_drop(const struct pwi_changes_cell *cells, size_t used, size_t most) {
  size_t parted_by[65] = {0}, parts = 1;
  for (size_t i = 1; i < used; i++) parted_by[64 - __builtin_clzll((cells[i].index - 1) ^ (cells[i - 1].index - 1))]++;
  unsigned bits = 64;
  while (bits > 0 && parts + parted_by[bits] <= most) parts += parted_by[bits--];
  return bits;
}

/* Inserts sorted cells into a new table, widened by `bits`. */
static pawl_status rebuild(struct pwi_changes *changes, size_t used, size_t places, unsigned bits) {
  struct pwi_changes_cell *old = changes->cells, *fresh = pwi_alloc_zero(places, sizeof *fresh);
  if (!fresh) return PAWL_NO_MEMORY;
  changes->cells = fresh;
  changes->count = places;
  changes->used = 0;
  changes->shift += bits;
  for (size_t i = 0; i < used; i++) put_cell(changes, (old[i].index - 1) >> bits, old[i].number);
  pwi_free(old);
  return PAWL_OK;
}

/* Marks everything as changed. The first `used` cells are the earlier contents. */
static void give_up(struct pwi_changes *changes, size_t used) {
  for (size_t i = 0; i < used; i++) mark_whole(changes, changes->cells[i].number);
  pwi_free(changes->cells);
  changes->cells = NULL;
  changes->count = changes->used = 0;
  changes->shift = changes->first_shift;
}

/* Makes room for one more cell; half of the places stay free. May widen the cells. False if there is no
 * memory. */
static bool make_room(struct pwi_changes *changes) {
  if (changes->used < changes->count / 2) return true;
  size_t used = sort_cells(changes->cells, changes->count, 0);
  bool full = changes->count == PLACES_MAX;
  size_t places = full ? PLACES_MAX : changes->count == 0 ? PLACES_FIRST : changes->count * 2;
  unsigned bits = full ? bits_to_drop(changes->cells, used, LISTED_MAX / 2) : 0;
  if (rebuild(changes, used, places, bits) == PAWL_OK) return true;
  give_up(changes, used);
  return false;
}

/* Marks keys whose cells are already stored, as in a steady state; returns the number of keys before the
 * first other one. */
static size_t mark_known(struct pwi_changes *changes, const uint64_t *keys, size_t count, uint64_t number) {
  for (size_t i = 0; i < count; i++) {
    struct pwi_changes_cell *place = changes->count > 0 ? find_place(changes, cell_of(changes, keys[i])) : NULL;
    if (!place || place->index == 0) return i;
    if (place->number < number) place->number = number;
  }
  return count;
}

/* Marks all cells that contain keys from `first` to `last`. */
static void mark_listed(struct pwi_changes *changes, uint64_t first, uint64_t last, uint64_t number) {
  for (uint64_t key = first;;) {
    if (!make_room(changes)) {
      mark_whole(changes, number);
      return;
    }
    uint64_t cell = cell_of(changes, key);
    put_cell(changes, cell, number);
    if (cell >= cell_of(changes, last)) return;
    key = keys_of(changes, cell, cell).end;
  }
}

/* --- marking -------------------------------------------------------------------------------------------- */

static bool has_numbers(struct pwi_changes *changes, uint64_t number) {
  if (changes->numbers) return true;
  changes->numbers = pwi_alloc_zero(changes->count, sizeof *changes->numbers);
  if (!changes->numbers) mark_whole(changes, number);
  return changes->numbers != NULL;
}

static void mark_even(struct pwi_changes *changes, uint64_t first, uint64_t last, uint64_t number) {
  if (!has_numbers(changes, number)) return;
  size_t end = (size_t)cell_of(changes, last);
  for (size_t i = (size_t)cell_of(changes, first); i <= end; i++)
    if (changes->numbers[i] < number) changes->numbers[i] = number;
}

static void mark_between(struct pwi_changes *changes, uint64_t first, uint64_t last, uint64_t number) {
  if (changes->even)
    mark_even(changes, first, last, number);
  else
    mark_listed(changes, first, last, number);
}

static void mark_each(struct pwi_changes *changes, const uint64_t *keys, size_t count, uint64_t number) {
  if (!changes->even) {
    for (size_t i = 0; i < count; i++) {
      i += mark_known(changes, keys + i, count - i, number);
      if (i < count) mark_listed(changes, keys[i], keys[i], number);
    }
    return;
  }
  if (!has_numbers(changes, number)) return;
  uint64_t *numbers = changes->numbers, begin = changes->span.begin;
  for (size_t i = 0; i < count; i++) {
    uint64_t *cell = &numbers[(keys[i] - begin) >> changes->shift];
    *cell = *cell > number ? *cell : number;
  }
}

void pwi_changes_mark_keys(struct pwi_changes *changes, const uint64_t *keys, size_t count, uint64_t number) {
  assert(number > 0);
  for (size_t at = 0, step; at < count; at += step) {
    step = count - at < STEP ? count - at : STEP;
    uint64_t first = keys[at], last = keys[at + step - 1];
    if (cell_of(changes, last) - cell_of(changes, first) < step)
      mark_between(changes, first, last, number);
    else
      mark_each(changes, keys + at, step, number);
  }
}

/* A range wider than all cells that can be stored counts as everything. */
void pwi_changes_mark_range(struct pwi_changes *changes, struct pawl_range range, uint64_t number) {
  assert(number > 0);
  range = pawl_range_common(range, changes->span);
  if (pawl_range_is_empty(range)) return;
  bool too_wide = !changes->even && (pawl_range_size(range) - 1) >> changes->shift >= LISTED_MAX;
  if (too_wide)
    mark_whole(changes, number);
  else
    mark_between(changes, range.begin, range.end - 1, number);
}

void pwi_changes_forget(struct pwi_changes *changes, uint64_t number) {
  if (changes->whole <= number) changes->whole = 0;
  if (!changes->cells) return;
  size_t used = sort_cells(changes->cells, changes->count, number);
  if (used == 0 || rebuild(changes, used, changes->count, 0) != PAWL_OK) give_up(changes, used);
}

/* --- queries -------------------------------------------------------------------------------------------- */

static pawl_status add_cells(const struct pwi_changes *changes, struct pawl_range range, uint64_t first, uint64_t last,
                             struct pwi_rangeset *set) {
  return pwi_rangeset_add(set, pawl_range_common(keys_of(changes, first, last), range));
}

static pawl_status collect_even(const struct pwi_changes *changes, struct pawl_range range, uint64_t number,
                                struct pwi_rangeset *set) {
  pawl_status status = PAWL_OK;
  size_t end = (size_t)cell_of(changes, range.end - 1);
  for (size_t i = (size_t)cell_of(changes, range.begin), j; i <= end && status == PAWL_OK; i = j + 1) {
    for (j = i; j <= end && changes->numbers[j] > number;) j++;
    if (j > i) status = add_cells(changes, range, i, j - 1, set);
  }
  return status;
}

static pawl_status collect_listed(const struct pwi_changes *changes, struct pawl_range range, uint64_t number,
                                  struct pwi_rangeset *set) {
  struct pwi_changes_cell *cells = pwi_alloc_zero(changes->count, sizeof *cells);
  if (!cells) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < changes->count; i++) cells[i] = changes->cells[i];
  size_t used = sort_cells(cells, changes->count, number);
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < used && status == PAWL_OK; i++)
    status = add_cells(changes, range, cells[i].index - 1, cells[i].index - 1, set);
  pwi_free(cells);
  return status;
}

pawl_status pwi_changes_collect(const struct pwi_changes *changes, struct pawl_range range, uint64_t number,
                                struct pwi_rangeset *set) {
  range = pawl_range_common(range, changes->span);
  if (pawl_range_is_empty(range)) return PAWL_OK;
  if (changes->whole > number) return pwi_rangeset_add(set, range);
  if (changes->numbers) return collect_even(changes, range, number, set);
  return changes->cells ? collect_listed(changes, range, number, set) : PAWL_OK;
}
