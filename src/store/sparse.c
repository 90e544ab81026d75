/* The sparse table: making one, resolving key lists, scanning. sparse.h explains the structure. */
#include "store/sparse.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

static void sparse_destroy(struct pwi_table *table) {
  struct pwi_sparse *sparse = pwi_sparse_of(table);
  struct pwi_pages *arrays[] = {&sparse->keys,         &sparse->values,     &sparse->state, &sparse->counts,
                                &sparse->fences,       &sparse->numbers,    &sparse->free,  &sparse->spare_keys,
                                &sparse->spare_values, &sparse->spare_state};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pwi_pages_fini(arrays[i]);
  pwi_free(sparse);
}

static uint64_t sparse_count(const struct pwi_table *table) { return pwi_sparse_of(table)->rows; }

uint64_t pwi_leaf_bytes(const struct pwi_sparse *sparse) {
  uint64_t directory = sizeof(uint64_t) + sizeof(uint32_t) + 1;
  uint64_t row = sizeof(uint64_t) + sparse->table.row_bytes + sparse->table.state_bytes;
  return (row << sparse->shift) + directory;
}

static uint64_t sparse_bytes(const struct pwi_table *table) {
  const struct pwi_sparse *sparse = pwi_sparse_of(table);
  return sizeof *sparse + (sparse->numbered - sparse->free_count) * pwi_leaf_bytes(sparse);
}

/* --- searching -------------------------------------------------------------------------------------------------- */

/* How many of eight rising keys are not above `key`. Which one is the first is random to the processor, so there is no
 * branch. */
static inline size_t count_upto(const uint64_t *eight, uint64_t key) {
  size_t count = 0;
  for (size_t i = 0; i < 8; i++) count += eight[i] <= key;
  return count;
}

/* By doubling steps, then by halving. */
static size_t place_far(const struct pwi_sparse *sparse, size_t low, uint64_t key) {
  const uint64_t *fences = pwi_fences(sparse);
  size_t step = 1;
  while (step < sparse->leaves - low && fences[low + step] <= key) {
    low += step;
    step *= 2;
  }
  size_t high = step < sparse->leaves - low ? low + step : sparse->leaves; /* fences[low] <= key < fences[high] */
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (fences[middle] <= key) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

size_t pwi_sparse_place(const struct pwi_sparse *sparse, size_t place, uint64_t key) {
  if (place + 8 > sparse->leaves) return place_far(sparse, place, key);
  size_t steps = count_upto(pwi_fences(sparse) + place + 1, key);
  return steps < 8 ? place + steps : place_far(sparse, place + 8, key);
}

size_t pwi_leaf_below(const struct pwi_sparse *sparse, uint32_t leaf, uint64_t key) {
  const uint64_t *keys = pwi_leaf_keys(sparse, leaf);
  size_t below = 0;
  for (size_t step = pwi_leaf_size(sparse) / 2; step > 0; step /= 2) below += keys[below + step - 1] < key ? step : 0;
  return below + (keys[below] < key);
}

/* Keys that are searched side by side: enough for one group's memory to arrive while another is searched. */
#define GROUP 128
#define LANES 8
#define AHEAD 8 /* leaves */
#define LINE 8  /* keys in a cache line */

/* If the keys from number `from` on are those of a leaf one after the other, up to `count` of them, writes their slots
 * and says so. First and last key tell in nearly all cases, without a look at the others. */
static bool find_stretch(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t leaf,
                         uint32_t *slots_out) {
  const uint64_t *own = pwi_leaf_keys(sparse, leaf);
  size_t first = pwi_leaf_below(sparse, leaf, keys[0]);
  if (first + count > pwi_leaf_size(sparse) || own[first + count - 1] != keys[count - 1]) return false;
  if (memcmp(own + first, keys, count * sizeof *keys) != 0) return false;
  uint32_t slot = (uint32_t)(((size_t)leaf << sparse->shift) + first);
  for (size_t i = 0; i < count; i++) slots_out[i] = slot + (uint32_t)i;
  return true;
}

/* Turns the first slots of leaves into the slots of the keys. `steps` halvings find the only place in a leaf where the
 * key can be; one comparison tells whether it is. */
static inline __attribute__((always_inline)) size_t search_lanes(const uint64_t *table_keys, unsigned steps,
                                                                 const uint64_t *keys, size_t lanes, uint32_t *slots) {
  size_t missing = 0;
  for (unsigned step = 1u << (steps - 1); step > 0; step /= 2) {
    for (size_t j = 0; j < lanes; j++) slots[j] += table_keys[slots[j] + step - 1] < keys[j] ? step : 0;
  }
  for (size_t j = 0; j < lanes; j++) {
    uint32_t found = table_keys[slots[j]] == keys[j];
    slots[j] = found ? slots[j] : PWI_SLOT_MISSING;
    missing += !found;
  }
  return missing;
}

static inline __attribute__((always_inline)) size_t search_group(const uint64_t *table_keys, unsigned steps,
                                                                 const uint64_t *keys, size_t count, uint32_t *slots) {
  size_t missing = 0, i = 0;
  for (; i + LANES <= count; i += LANES) {
    uint32_t lanes[LANES];
    memcpy(lanes, slots + i, sizeof lanes);
    missing += search_lanes(table_keys, steps, keys + i, LANES, lanes);
    memcpy(slots + i, lanes, sizeof lanes);
  }
  if (i < count) missing += search_lanes(table_keys, steps, keys + i, count - i, slots + i);
  return missing;
}

static size_t search_all(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots) {
  const uint64_t *table_keys = sparse->keys.memory;
  switch (sparse->shift) {
  case 6:
    return search_group(table_keys, 6, keys, count, slots);
  case 5:
    return search_group(table_keys, 5, keys, count, slots);
  default:
    return search_group(table_keys, sparse->shift, keys, count, slots);
  }
}

static void expect_leaf(const struct pwi_sparse *sparse, uint32_t leaf) {
  const uint64_t *keys = pwi_leaf_keys(sparse, leaf);
  for (size_t i = 0; i < pwi_leaf_size(sparse); i += LINE) __builtin_prefetch(keys + i);
}

/* A list with several keys to a leaf: leaves are asked for ahead of the keys, and searched whole. */
static size_t find_near(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out) {
  const uint64_t *fences = pwi_fences(sparse);
  const uint32_t *numbers = pwi_leaf_numbers(sparse);
  size_t missing = 0, place = 0, searched = 0; /* keys before `searched` are done, the others have first slots */
  for (size_t i = 0; i < count;) {
    size_t begin = i;
    place = pwi_sparse_place(sparse, place, keys[i]);
    uint32_t leaf = numbers[place];
    if (place + AHEAD < sparse->leaves) expect_leaf(sparse, numbers[place + AHEAD]);
    while (i < count && keys[i] < fences[place + 1]) slots_out[i++] = leaf << sparse->shift;
    if (i - begin >= 2 * LANES && find_stretch(sparse, keys + begin, i - begin, leaf, slots_out + begin)) {
      missing += search_all(sparse, keys + searched, begin - searched, slots_out + searched);
      searched = i;
    } else if (i - searched >= GROUP) {
      missing += search_all(sparse, keys + searched, i - searched, slots_out + searched);
      searched = i;
    }
  }
  return missing + search_all(sparse, keys + searched, count - searched, slots_out + searched);
}

/* Where in its leaf a key should be if keys are spread evenly between the fences, as hashed ones are. */
static uint32_t guess(const struct pwi_sparse *sparse, size_t place, uint64_t key) {
  const uint64_t *fences = pwi_fences(sparse) + place;
  double part = (double)(key - fences[0]) / (double)(fences[1] - fences[0]);
  uint32_t count = *pwi_leaf_count(sparse, pwi_leaf_numbers(sparse)[place]), last = (1u << sparse->shift) - 1;
  uint32_t at = (uint32_t)(int32_t)(part * count);
  return at < last ? at : last;
}

/* The slot of a key that is where it was guessed, or one line before or behind; anywhere in the leaf if it is not. */
static inline uint32_t search_from(const struct pwi_sparse *sparse, uint64_t key, uint32_t slot) {
  const uint64_t *keys = sparse->keys.memory;
  uint32_t size = (uint32_t)pwi_leaf_size(sparse), first = slot & ~(size - 1), last = first + size - LINE;
  uint32_t up = (keys[slot + LINE - 1] < key) & (slot < last), down = (keys[slot] > key) & (slot > first);
  slot = slot + up * LINE - down * LINE;
  uint32_t upto = (uint32_t)count_upto(keys + slot, key);
  if (upto > 0 && keys[slot + upto - 1] == key) return slot + upto - 1;
  if ((upto > 0 || slot == first) && (upto < LINE || slot == last)) return PWI_SLOT_MISSING;
  size_t below = pwi_leaf_below(sparse, first >> sparse->shift, key);
  return below < size && keys[first + below] == key ? first + (uint32_t)below : PWI_SLOT_MISSING;
}

/* A list with few keys to a leaf: most of a leaf's memory is of no use, so that the place in it is guessed, and what is
 * around it is asked for long before it is looked at. */
static size_t find_far(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out) {
  const uint64_t *table_keys = sparse->keys.memory;
  size_t missing = 0, place = 0, ready = 0;
  for (size_t done = 0; done < count; done++) {
    for (; ready < count && ready < done + GROUP; ready++) {
      place = pwi_sparse_place(sparse, place, keys[ready]);
      uint32_t slot = (pwi_leaf_numbers(sparse)[place] << sparse->shift) + guess(sparse, place, keys[ready]);
      __builtin_prefetch(table_keys + slot - LINE / 2);
      __builtin_prefetch(table_keys + slot + LINE / 2);
      slots_out[ready] = slot & ~(uint32_t)(LINE - 1);
    }
    slots_out[done] = search_from(sparse, keys[done], slots_out[done]);
    missing += slots_out[done] == PWI_SLOT_MISSING;
  }
  return missing;
}

size_t pwi_sparse_find(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out) {
  if (count == 0) return 0;
  size_t first = pwi_sparse_place(sparse, 0, keys[0]);
  size_t last = pwi_sparse_place(sparse, first, keys[count - 1]);
  bool near = count / 4 > last - first;
  return near ? find_near(sparse, keys, count, slots_out) : find_far(sparse, keys, count, slots_out);
}

/* --- resolving -------------------------------------------------------------------------------------------------- */

static pawl_status insert_missing(struct pwi_sparse *sparse, const uint64_t *keys, const struct pwi_slots *slots) {
  if (slots->missing == slots->count) return pwi_sparse_insert(sparse, keys, slots->count);
  uint64_t *fresh = pwi_resize_array(NULL, slots->missing + 1, sizeof *fresh);
  if (!fresh) return PAWL_NO_MEMORY;
  size_t count = 0;
  for (size_t i = 0; i < slots->count; i++) {
    fresh[count] = keys[i];
    count += slots->slots[i] == PWI_SLOT_MISSING;
  }
  pawl_status status = pwi_sparse_insert(sparse, fresh, count);
  pwi_free(fresh);
  return status;
}

static pawl_status sparse_resolve(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                                  struct pwi_slots *slots) {
  struct pwi_sparse *sparse = pwi_sparse_of(table);
  slots->missing = pwi_sparse_find(sparse, keys, count, slots->slots);
  if (slots->missing == 0 || !create) return PAWL_OK;
  pawl_status status = insert_missing(sparse, keys, slots);
  if (status != PAWL_OK) return status;
  slots->missing = pwi_sparse_find(sparse, keys, count, slots->slots);
  return PAWL_OK;
}

/* --- scanning --------------------------------------------------------------------------------------------------- */

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

/* --- making ----------------------------------------------------------------------------------------------------- */

static const struct pwi_table_ops sparse_ops = {
    .destroy = sparse_destroy,
    .count = sparse_count,
    .bytes = sparse_bytes,
    .resolve = sparse_resolve,
    .scan = sparse_scan,
    .delete = pwi_sparse_delete,
};

/* `count` elements of `size` bytes, or PAWL_NO_MEMORY. */
static pawl_status grow(struct pwi_pages *pages, size_t count, size_t size) {
  size_t bytes;
  return pwi_mul_size(count, size, &bytes) ? pwi_pages_grow(pages, bytes) : PAWL_NO_MEMORY;
}

pawl_status pwi_sparse_reserve(struct pwi_sparse *sparse, size_t more) {
  size_t numbers = sparse->numbered + more, slots = numbers << sparse->shift;
  size_t directory = sparse->leaves + more + 1;
  pawl_status status = grow(&sparse->keys, slots, sizeof(uint64_t));
  if (status == PAWL_OK) status = grow(&sparse->values, slots, sparse->table.row_bytes);
  if (status == PAWL_OK) status = grow(&sparse->state, slots, sparse->table.state_bytes);
  if (status == PAWL_OK) status = grow(&sparse->counts, numbers, 1);
  if (status == PAWL_OK) status = grow(&sparse->free, numbers, sizeof(uint32_t));
  if (status == PAWL_OK) status = grow(&sparse->numbers, directory, sizeof(uint32_t));
  if (status == PAWL_OK) status = grow(&sparse->fences, directory, sizeof(uint64_t));
  sparse->table.values = sparse->values.memory;
  sparse->table.state = sparse->state.memory;
  return status;
}

/* Leaves of about half a page of keys and of rows: wide rows make small leaves, so that few bytes move on insertion. */
static unsigned leaf_shift(const struct pwi_table *table) {
  size_t bytes = table->row_bytes + table->state_bytes;
  return bytes <= 32 ? 6 : bytes <= 128 ? 5 : 4;
}

static void start_directory(struct pwi_sparse *sparse) {
  sparse->numbered = 2;
  sparse->leaves = 1;
  pwi_leaf_numbers(sparse)[0] = 1;
  pwi_fences(sparse)[0] = 0;
  pwi_fences(sparse)[1] = PWI_SPARSE_NO_KEY;
  for (size_t i = 0; i < 2 * pwi_leaf_size(sparse); i++) pwi_leaf_keys(sparse, 0)[i] = PWI_SPARSE_NO_KEY;
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
