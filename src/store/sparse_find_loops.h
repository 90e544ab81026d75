/* The searches behind pwi_sparse_find. The file of each set includes them and so compiles them for its
 * processor. It first defines SEARCH, the attributes of these functions, and the two comparisons
 *
 *   size_t upto(const uint64_t *fences, uint64_t key)
 *       the number of the next PWI_SPARSE_PAD ascending fences that are at most key
 *   uint32_t places_of(const uint64_t *line, uint64_t key)
 *       a mask: bit i is set if line[i] is the key, for i < PWI_LINE
 */
#ifndef PWI_STORE_SPARSE_FIND_LOOPS_H
#define PWI_STORE_SPARSE_FIND_LOOPS_H

#include <string.h>

#include "store/sparse.h"

#define STREAMS 4   /* parts of a list that are searched in parallel */
#define DISTANCE 16 /* keys of a stream between a prefetch and the access */
#define LEAVES_AHEAD 8
#define CLOSE 16   /* keys per leaf from which on whole leaves are compared */
#define REVERSED 4 /* keys per row of a full leaf, from which on rows are searched among the keys */

static SEARCH inline size_t step_to(const struct pwi_sparse *sparse, size_t place, uint64_t key) {
  size_t steps = upto(pwi_fences(sparse) + place + 1, key);
  return __builtin_expect(steps == PWI_SPARSE_PAD, 0) ? pwi_sparse_place(sparse, place + steps, key) : place + steps;
}

/* The first slot of the line where the key should be. */
static SEARCH inline uint32_t expected(const struct pwi_sparse *sparse, size_t place, uint64_t key) {
  const uint64_t *fences = pwi_fences(sparse) + place;
  uint64_t step = pwi_map_step(fences[0], fences[1], key);
  return (pwi_leaf_numbers(sparse)[place] << sparse->shift) + PWI_LINE * pwi_map_line(pwi_maps(sparse)[place], step);
}

/* The slot of the key, in the line that begins with `slot` or before. */
static SEARCH inline uint32_t look_at(const uint64_t *table_keys, uint32_t inside, uint32_t slot, uint64_t key) {
  while (__builtin_expect(table_keys[slot] > key && (slot & inside) != 0, 0)) slot -= PWI_LINE;
  uint32_t at = places_of(table_keys + slot, key);
  return at ? slot + (uint32_t)__builtin_ctz(at) : PWI_SLOT_MISSING;
}

/* One key after the other, from `place` on. */
static SEARCH size_t find_few(const struct pwi_sparse *sparse, size_t place, const uint64_t *keys, size_t count,
                              uint32_t *slots_out) {
  uint32_t inside = (uint32_t)pwi_leaf_size(sparse) - 1;
  size_t missing = 0;
  for (size_t i = 0; i < count; i++) {
    place = step_to(sparse, place, keys[i]);
    slots_out[i] = look_at(sparse->keys.memory, inside, expected(sparse, place, keys[i]), keys[i]);
    missing += slots_out[i] == PWI_SLOT_MISSING;
  }
  return missing;
}

/* Each step along the fences depends on the previous one. The list is therefore divided into parts whose
 * steps overlap, and lines are prefetched long before they are read, so that memory accesses overlap too. */
struct streams {
  const struct pwi_sparse *sparse;
  const uint64_t *keys;
  uint32_t *slots;
  size_t part; /* keys of a stream */
  size_t places[STREAMS];
};

/* For key number `i` of every stream: prefetches its line and writes the first slot of that line. */
static SEARCH inline void ask(struct streams *streams, size_t i) {
  for (size_t j = 0; j < STREAMS; j++, i += streams->part) {
    streams->places[j] = step_to(streams->sparse, streams->places[j], streams->keys[i]);
    uint32_t slot = expected(streams->sparse, streams->places[j], streams->keys[i]);
    __builtin_prefetch((const uint64_t *)streams->sparse->keys.memory + slot);
    streams->slots[i] = slot;
  }
}

/* Replaces the first slot of the line by that of the key; returns the number of missing keys. */
static SEARCH inline size_t look(const struct streams *streams, size_t i) {
  uint32_t inside = (uint32_t)pwi_leaf_size(streams->sparse) - 1;
  size_t missing = 0;
  for (size_t j = 0; j < STREAMS; j++, i += streams->part) {
    uint32_t slot = look_at(streams->sparse->keys.memory, inside, streams->slots[i], streams->keys[i]);
    streams->slots[i] = slot;
    missing += slot == PWI_SLOT_MISSING;
  }
  return missing;
}

static SEARCH size_t find_streams(const struct pwi_sparse *sparse, const uint64_t *keys, size_t part,
                                  uint32_t *slots_out) {
  struct streams streams = {.sparse = sparse, .keys = keys, .slots = slots_out, .part = part};
  size_t place = 0, missing = 0, i = 0;
  for (size_t j = 0; j < STREAMS; j++) streams.places[j] = place = pwi_sparse_place(sparse, place, keys[j * part]);
  for (; i < DISTANCE; i++) ask(&streams, i);
  for (; i < part; i++) {
    ask(&streams, i);
    missing += look(&streams, i - DISTANCE);
  }
  for (; i < part + DISTANCE; i++) missing += look(&streams, i - DISTANCE);
  return missing;
}

/* If the keys are exactly consecutive keys of a leaf, writes their slots and returns true. The first and last
 * key decide nearly all cases. */
static SEARCH bool find_stretch(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t leaf,
                                uint32_t *slots_out) {
  const uint64_t *own = pwi_leaf_keys(sparse, leaf);
  size_t first = pwi_leaf_below(sparse, leaf, keys[0]);
  if (first + count > pwi_leaf_size(sparse) || own[first + count - 1] != keys[count - 1]) return false;
  if (memcmp(own + first, keys, count * sizeof *keys) != 0) return false;
  uint32_t slot = (uint32_t)(((size_t)leaf << sparse->shift) + first);
  for (size_t i = 0; i < count; i++) slots_out[i] = slot + (uint32_t)i;
  return true;
}

/* For far more keys than the leaf has rows, as when a small table receives a large list: searches the rows
 * among the keys. */
static SEARCH size_t find_reversed(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t leaf,
                                   uint32_t *slots_out) {
  const uint64_t *own = pwi_leaf_keys(sparse, leaf);
  size_t rows = *pwi_leaf_count(sparse, leaf), below = 0, missing = count;
  for (size_t i = 0; i < count; i++) slots_out[i] = PWI_SLOT_MISSING;
  for (size_t i = 0; i < rows; i++) {
    for (size_t end = count; below < end;) {
      size_t middle = below + (end - below) / 2;
      if (keys[middle] < own[i]) {
        below = middle + 1;
      } else {
        end = middle;
      }
    }
    if (below == count || keys[below] != own[i]) continue;
    slots_out[below] = (uint32_t)(((size_t)leaf << sparse->shift) + i);
    missing--;
  }
  return missing;
}

static SEARCH void expect_leaf(const struct pwi_sparse *sparse, uint32_t leaf) {
  const uint64_t *keys = pwi_leaf_keys(sparse, leaf);
  for (size_t i = 0; i < pwi_leaf_size(sparse); i += PWI_LINE) __builtin_prefetch(keys + i);
}

/* For a list with many keys per leaf: prefetches leaves ahead of the keys. */
static SEARCH size_t find_close(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count,
                                uint32_t *slots_out) {
  const uint64_t *fences = pwi_fences(sparse);
  const uint32_t *numbers = pwi_leaf_numbers(sparse);
  size_t missing = 0, place = 0;
  for (size_t i = 0, begin = 0; i < count; begin = i) {
    place = pwi_sparse_place(sparse, place, keys[i]);
    if (place + LEAVES_AHEAD < sparse->leaves) expect_leaf(sparse, numbers[place + LEAVES_AHEAD]);
    while (i < count && keys[i] < fences[place + 1]) i++;
    size_t some = i - begin;
    if (some > REVERSED * pwi_leaf_size(sparse)) {
      missing += find_reversed(sparse, keys + begin, some, numbers[place], slots_out + begin);
    } else if (some < CLOSE || !find_stretch(sparse, keys + begin, some, numbers[place], slots_out + begin)) {
      missing += find_few(sparse, place, keys + begin, some, slots_out + begin);
    }
  }
  return missing;
}

static SEARCH inline size_t find_all(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count,
                                     uint32_t *slots_out) {
  if (count == 0) return 0;
  size_t first = pwi_sparse_place(sparse, 0, keys[0]), last = pwi_sparse_place(sparse, first, keys[count - 1]);
  if (count / CLOSE > last - first) return find_close(sparse, keys, count, slots_out);
  size_t part = count / STREAMS, aggregate = part * STREAMS;
  if (part < DISTANCE) return find_few(sparse, first, keys, count, slots_out);
  return find_streams(sparse, keys, part, slots_out) +
         find_few(sparse, first, keys + aggregate, count - aggregate, slots_out + aggregate);
}

#endif
