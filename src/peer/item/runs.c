/* Sets of keys as runs. */
#include "peer/item/runs.h"

#include <stdlib.h>

#include "base/memory.h"

void pwi_item_runs_fini(struct item_runs *runs) {
  pwi_free(runs->runs);
  pwi_free(runs->reach);
  *runs = (struct item_runs){0};
}

size_t pwi_item_runs_bytes(const struct item_runs *runs) {
  return runs->room * sizeof *runs->runs + (runs->reach ? runs->count * sizeof *runs->reach : 0);
}

static bool add(struct item_runs *runs, struct item_run run) {
  if (!PWI_GROW(runs->runs, runs->room, runs->count + 1)) return false;
  if (run.count == 1) run.stride = 1;
  run.before = runs->keys;
  runs->keys += run.count;
  runs->runs[runs->count++] = run;
  return true;
}

/* --- finding -------------------------------------------------------------------------------------------- */

/* The number of runs that begin at or before the key. */
static size_t begun(const struct item_runs *runs, uint32_t key) {
  size_t low = 0, high = runs->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (runs->runs[middle].start <= key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static uint32_t rank_in(const struct item_run *run, uint32_t key) {
  uint32_t distance = key - run->start;
  if (key < run->start || key > pwi_item_run_last(run) || distance % run->stride != 0) return ITEM_NO_RANK;
  return run->before + distance / run->stride;
}

uint32_t pwi_item_runs_search(const struct item_runs *runs, uint32_t key) {
  for (size_t i = begun(runs, key); i-- > 0;) {
    uint32_t rank = rank_in(&runs->runs[i], key);
    if (rank != ITEM_NO_RANK || !runs->reach || runs->reach[i] < key) return rank;
  }
  return ITEM_NO_RANK;
}

const struct item_run *pwi_item_runs_at(const struct item_runs *runs, uint32_t rank) {
  size_t low = 0, high = runs->count;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (runs->runs[middle].before <= rank)
      low = middle;
    else
      high = middle;
  }
  return &runs->runs[low];
}

uint32_t pwi_item_runs_key(const struct item_runs *runs, uint32_t rank) {
  const struct item_run *run = pwi_item_runs_at(runs, rank);
  return pwi_item_run_key(run, rank - run->before);
}

/* --- making --------------------------------------------------------------------------------------------- */

static int compare_starts(const void *left, const void *right) {
  const struct item_run *a = left, *b = right;
  return a->start < b->start ? -1 : a->start > b->start;
}

static void sort(struct item_runs *runs) {
  if (runs->count == 0) return;
  qsort(runs->runs, runs->count, sizeof *runs->runs, compare_starts);
  runs->keys = 0;
  for (size_t i = 0; i < runs->count; i++) {
    runs->runs[i].before = runs->keys;
    runs->keys += runs->runs[i].count;
  }
}

pawl_status pwi_item_runs_finish(struct item_runs *runs) {
  uint32_t reach = 0;
  bool is_interleaved = false;
  for (size_t i = 0; i < runs->count; i++) {
    is_interleaved |= i > 0 && runs->runs[i].start <= reach;
    uint32_t last = pwi_item_run_last(&runs->runs[i]);
    if (last > reach) reach = last;
  }
  if (!is_interleaved) return PAWL_OK;
  runs->reach = pwi_alloc_zero(runs->count, sizeof *runs->reach);
  if (!runs->reach) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < runs->count; i++) {
    uint32_t last = pwi_item_run_last(&runs->runs[i]);
    runs->reach[i] = i > 0 && runs->reach[i - 1] > last ? runs->reach[i - 1] : last;
  }
  return PAWL_OK;
}

pawl_status pwi_item_runs_append(struct item_runs *runs, uint64_t start, uint64_t count, uint64_t stride,
                                 uint64_t items) {
  if (count == 0 || stride == 0 || start >= items || stride > items || count > items - runs->keys) return PAWL_CORRUPT;
  if ((count - 1) > (items - 1 - start) / stride) return PAWL_CORRUPT;
  if (runs->count > 0 && start <= runs->runs[runs->count - 1].start) return PAWL_CORRUPT;
  return add(runs, (struct item_run){(uint32_t)start, (uint32_t)count, (uint32_t)stride, 0}) ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status read_user(const struct pawl_items_keys *keys, size_t count, uint64_t items, struct item_runs *runs,
                             uint64_t *key_out) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t stride = keys[i].stride ? keys[i].stride : 1, many = keys[i].count;
    if (many == 0) continue;
    *key_out = keys[i].start;
    if (keys[i].start >= items || (many - 1) > (items - 1 - keys[i].start) / stride) return PAWL_OUT_OF_SPAN;
    if (many > items - total) return PAWL_INVALID;
    total += many;
    if (!add(runs, (struct item_run){(uint32_t)keys[i].start, (uint32_t)many, many == 1 ? 1 : (uint32_t)stride, 0}))
      return PAWL_NO_MEMORY;
  }
  return PAWL_OK;
}

/* Neighbouring runs without gaps become one. */
static void merge(struct item_runs *runs) {
  size_t kept = 0;
  for (size_t i = 0; i < runs->count; i++) {
    struct item_run *last = kept > 0 ? &runs->runs[kept - 1] : NULL, *run = &runs->runs[i];
    if (last && last->stride == 1 && run->stride == 1 && run->start == last->start + last->count)
      last->count += run->count;
    else
      runs->runs[kept++] = *run;
  }
  runs->count = kept;
  sort(runs);
}

static bool meet(const struct item_run *a, const struct item_run *b, struct item_run *common_out);

/* A key that two runs have; ITEM_NO_RANK: none. */
static uint32_t find_twice(const struct item_runs *runs) {
  struct item_run common;
  for (size_t i = 1; i < runs->count; i++)
    for (size_t j = i; j-- > 0 && (runs->reach ? runs->reach[j] >= runs->runs[i].start : j + 1 == i);)
      if (meet(&runs->runs[i], &runs->runs[j], &common)) return common.start;
  return ITEM_NO_RANK;
}

pawl_status pwi_item_runs_make(const struct pawl_items_keys *keys, size_t count, uint64_t items,
                               struct item_runs *runs_out, uint64_t *key_out) {
  *runs_out = (struct item_runs){0};
  pawl_status status = read_user(keys, count, items, runs_out, key_out);
  if (!status) {
    sort(runs_out);
    merge(runs_out);
    status = pwi_item_runs_finish(runs_out);
  }
  uint32_t twice = status ? ITEM_NO_RANK : find_twice(runs_out);
  if (twice != ITEM_NO_RANK) {
    *key_out = twice;
    status = PAWL_INVALID;
  }
  if (status) pwi_item_runs_fini(runs_out);
  return status;
}

/* --- intersection --------------------------------------------------------------------------------------- */

/* The inverse of a number modulo m; both have no common divisor. */
static uint64_t inverse(uint64_t number, uint64_t m) {
  int64_t r0 = (int64_t)m, r1 = (int64_t)(number % m), t0 = 0, t1 = 1;
  while (r1 != 0) {
    int64_t quotient = r0 / r1, rest = r0 - quotient * r1, next = t0 - quotient * t1;
    r0 = r1;
    r1 = rest;
    t0 = t1;
    t1 = next;
  }
  return (uint64_t)(t0 < 0 ? t0 + (int64_t)m : t0);
}

static uint64_t divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The keys of two runs that are in both form a run, whose stride is the least common multiple (Chinese
 * remainders). */
static bool meet(const struct item_run *a, const struct item_run *b, struct item_run *common_out) {
  uint64_t low = a->start > b->start ? a->start : b->start;
  uint64_t last_a = pwi_item_run_last(a), last_b = pwi_item_run_last(b), high = last_a < last_b ? last_a : last_b;
  uint64_t common = divisor(a->stride, b->stride), other = b->stride / common, least = a->stride * other;
  if (low > high || (b->start > a->start ? b->start - a->start : a->start - b->start) % common != 0) return false;
  /* a->start + x * a->stride is in b; x modulo `other`. */
  uint64_t difference = ((uint64_t)b->start + (uint64_t)b->stride * a->start - a->start) % b->stride / common;
  uint64_t x = other == 1 ? 0 : difference % other * inverse(a->stride / common, other) % other;
  uint64_t first = a->start + x * a->stride;
  if (first < low) first += (low - first + least - 1) / least * least;
  if (first > high) return false;
  uint64_t count = (high - first) / least + 1;
  *common_out = (struct item_run){(uint32_t)first, (uint32_t)count, count == 1 ? 1 : (uint32_t)least, 0};
  return true;
}

/* The first run of b that can reach the key. */
static size_t first_reaching(const struct item_runs *runs, uint32_t key) {
  size_t low = 0, high = runs->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    uint32_t reach = runs->reach ? runs->reach[middle] : pwi_item_run_last(&runs->runs[middle]);
    if (reach < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

pawl_status pwi_item_runs_common(const struct item_runs *a, const struct item_runs *b, struct item_runs *runs_out) {
  struct item_run common;
  *runs_out = (struct item_runs){0};
  for (size_t i = 0; i < a->count; i++) {
    uint32_t last = pwi_item_run_last(&a->runs[i]);
    for (size_t j = first_reaching(b, a->runs[i].start); j < b->count && b->runs[j].start <= last; j++) {
      if (!meet(&a->runs[i], &b->runs[j], &common) || runs_out->keys > UINT32_MAX - common.count) continue;
      if (!add(runs_out, common)) {
        pwi_item_runs_fini(runs_out);
        return PAWL_NO_MEMORY;
      }
    }
  }
  sort(runs_out);
  pawl_status status = pwi_item_runs_finish(runs_out);
  if (status) pwi_item_runs_fini(runs_out);
  return status;
}
