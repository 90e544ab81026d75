/* Searching in a sparse table: single steps, the portable searches, and the choice between the sets. */
#include "store/sparse.h"

static inline size_t upto(const uint64_t *fences, uint64_t key) {
  size_t count = 0;
  for (size_t i = 0; i < PWI_SPARSE_PAD; i++) count += fences[i] <= key;
  return count;
}

static inline uint32_t places_of(const uint64_t *line, uint64_t key) {
  uint32_t places = 0;
  for (uint32_t i = 0; i < PWI_LINE; i++) places |= (uint32_t)(line[i] == key) << i;
  return places;
}

#define SEARCH
#include "store/sparse_find_loops.h"

/* Searches by doubling steps, then by bisection. */
static size_t place_far(const struct pwi_sparse *sparse, size_t low, uint64_t key) {
  const uint64_t *fences = pwi_fences(sparse);
  size_t step = 1;
  while (step < sparse->leaves - low && fences[low + step] <= key) {
    low += step;
    step *= 2;
  }
  /* Fences[low] <= key < fences[high]. */
  size_t high = step < sparse->leaves - low ? low + step : sparse->leaves;
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
  size_t steps = upto(pwi_fences(sparse) + place + 1, key);
  return steps < PWI_SPARSE_PAD ? place + steps : place_far(sparse, place + steps, key);
}

size_t pwi_leaf_below(const struct pwi_sparse *sparse, uint32_t leaf, uint64_t key) {
  const uint64_t *keys = pwi_leaf_keys(sparse, leaf);
  size_t below = 0;
  for (size_t step = pwi_leaf_size(sparse) / 2; step > 0; step /= 2) below += keys[below + step - 1] < key ? step : 0;
  return below + (keys[below] < key);
}

size_t pwi_sparse_find_plain(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out) {
  return find_all(sparse, keys, count, slots_out);
}

size_t pwi_sparse_find(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out) {
#if defined(__x86_64__)
  if (pwi_sparse_find_avx2_runs()) return pwi_sparse_find_avx2(sparse, keys, count, slots_out);
#endif
  return pwi_sparse_find_plain(sparse, keys, count, slots_out);
}

/* --- slots that may have moved -------------------------------------------------------------------------- */

#define SOME 1024 /* keys that are looked up again in one batch */

struct stale {
  size_t count;
  uint64_t keys[SOME];
  uint32_t slots[SOME];
  uint32_t numbers[SOME]; /* in the list */
};

static size_t find_stale(const struct pwi_sparse *sparse, struct stale *stale, uint32_t *slots) {
  size_t missing = pwi_sparse_find(sparse, stale->keys, stale->count, stale->slots);
  for (size_t i = 0; i < stale->count; i++) slots[stale->numbers[i]] = stale->slots[i];
  stale->count = 0;
  return missing;
}

size_t pwi_sparse_find_again(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint64_t since,
                             uint32_t *slots) {
  const uint64_t *changed = sparse->changed.memory;
  struct stale stale;
  size_t missing = 0;
  stale.count = 0;
  for (size_t i = 0; i < count; i++) {
    bool is_stale = slots[i] == PWI_SLOT_MISSING || changed[slots[i] >> sparse->shift] > since;
    stale.keys[stale.count] = keys[i];
    stale.numbers[stale.count] = (uint32_t)i;
    stale.count += is_stale;
    if (stale.count == SOME) missing += find_stale(sparse, &stale, slots);
  }
  return missing + find_stale(sparse, &stale, slots);
}
