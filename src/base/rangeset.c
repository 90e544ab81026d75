/* A change finds the affected ranges [first, last) and replaces them by at most two others. For the union and
 * the difference of two sets this would move the tail once per range; they build a new array instead. */
#include "base/rangeset.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/search.h"

void pwi_rangeset_init(struct pwi_rangeset *set) { *set = (struct pwi_rangeset){0}; }

void pwi_rangeset_fini(struct pwi_rangeset *set) {
  pwi_free(set->ranges);
  pwi_rangeset_init(set);
}

void pwi_rangeset_clear(struct pwi_rangeset *set) { set->count = 0; }

/* The index of the first range whose end lies past `key`; `count` if there is none. */
static size_t first_ending_after(const struct pwi_rangeset *set, uint64_t key) {
  struct pwi_search search = {.high = set->count};
  while (pwi_search_next(&search)) pwi_search_told(&search, set->ranges[search.middle].end <= key);
  return search.low;
}

/* The index of the first range whose begin lies past `key`; `count` if there is none. */
static size_t first_beginning_after(const struct pwi_rangeset *set, uint64_t key) {
  struct pwi_search search = {.high = set->count};
  while (pwi_search_next(&search)) pwi_search_told(&search, set->ranges[search.middle].begin <= key);
  return search.low;
}

/* Replaces the ranges [first, last) by `count` others. */
static pawl_status replace(struct pwi_rangeset *set, size_t first, size_t last, const struct pawl_range *by,
                           size_t count) {
  size_t behind = set->count - last;
  if (!PWI_GROW(set->ranges, set->room, first + count + behind)) return PAWL_NO_MEMORY;
  if (behind && first + count != last) memmove(set->ranges + first + count, set->ranges + last, behind * sizeof *by);
  for (size_t i = 0; i < count; i++) set->ranges[first + i] = by[i];
  set->count = first + count + behind;
  return PAWL_OK;
}

/* Ranges that only touch the new one merge with it too, hence the search from the key before its begin. */
pawl_status pwi_rangeset_add(struct pwi_rangeset *set, struct pawl_range range) {
  if (pawl_range_is_empty(range)) return PAWL_OK;
  size_t first = range.begin == 0 ? 0 : first_ending_after(set, range.begin - 1);
  size_t last = first_beginning_after(set, range.end);
  if (first < last) {
    if (set->ranges[first].begin < range.begin) range.begin = set->ranges[first].begin;
    if (set->ranges[last - 1].end > range.end) range.end = set->ranges[last - 1].end;
  }
  return replace(set, first, last, &range, 1);
}

pawl_status pwi_rangeset_remove(struct pwi_rangeset *set, struct pawl_range range) {
  if (pawl_range_is_empty(range)) return PAWL_OK;
  size_t first = first_ending_after(set, range.begin);
  size_t last = first_beginning_after(set, range.end - 1);
  if (first >= last) return PAWL_OK;
  struct pawl_range kept[2];
  size_t count = 0;
  struct pawl_range before = pawl_range_of(set->ranges[first].begin, range.begin);
  struct pawl_range after = pawl_range_of(range.end, set->ranges[last - 1].end);
  if (!pawl_range_is_empty(before)) kept[count++] = before;
  if (!pawl_range_is_empty(after)) kept[count++] = after;
  return replace(set, first, last, kept, count);
}

/* Allocates the result of a union or difference, which never has more ranges than both sets in total. */
static pawl_status room_for_both(const struct pwi_rangeset *a, const struct pwi_rangeset *b,
                                 struct pwi_rangeset *result_out) {
  struct pwi_rangeset result;
  pwi_rangeset_init(&result);
  size_t count;
  if (!pwi_add_size(a->count, b->count, &count)) return PAWL_NO_MEMORY;
  if (!PWI_GROW(result.ranges, result.room, count)) return PAWL_NO_MEMORY;
  *result_out = result;
  return PAWL_OK;
}

/* Appends a range that begins no earlier than the last one. */
static void append_merged(struct pwi_rangeset *set, struct pawl_range range) {
  if (set->count == 0 || set->ranges[set->count - 1].end < range.begin) {
    set->ranges[set->count++] = range;
  } else if (set->ranges[set->count - 1].end < range.end) {
    set->ranges[set->count - 1].end = range.end;
  }
}

pawl_status pwi_rangeset_add_all(struct pwi_rangeset *set, const struct pwi_rangeset *other) {
  if (other->count == 0) return PAWL_OK;
  struct pwi_rangeset sum;
  pawl_status status = room_for_both(set, other, &sum);
  if (status) return status;
  size_t i = 0;
  size_t j = 0;
  while (i < set->count || j < other->count) {
    if (j == other->count || (i < set->count && set->ranges[i].begin <= other->ranges[j].begin))
      append_merged(&sum, set->ranges[i++]);
    else
      append_merged(&sum, other->ranges[j++]);
  }
  pwi_rangeset_fini(set);
  *set = sum;
  return PAWL_OK;
}

/* Appends the part of `range` that is not in `other`. `*at` is the first range of `other` that may overlap
 * it, and only advances: a range of `other` that ends after this one may overlap the next as well. */
static void append_rest(struct pwi_rangeset *set, struct pawl_range range, const struct pwi_rangeset *other,
                        size_t *at) {
  while (*at < other->count && other->ranges[*at].begin < range.end) {
    struct pawl_range hole = other->ranges[*at];
    if (hole.begin > range.begin) set->ranges[set->count++] = pawl_range_of(range.begin, hole.begin);
    if (hole.end > range.begin) range.begin = hole.end;
    if (hole.end >= range.end) return;
    ++*at;
  }
  set->ranges[set->count++] = range;
}

pawl_status pwi_rangeset_remove_all(struct pwi_rangeset *set, const struct pwi_rangeset *other) {
  if (set->count == 0 || other->count == 0) return PAWL_OK;
  struct pwi_rangeset rest;
  pawl_status status = room_for_both(set, other, &rest);
  if (status) return status;
  size_t at = 0;
  for (size_t i = 0; i < set->count; i++) append_rest(&rest, set->ranges[i], other, &at);
  pwi_rangeset_fini(set);
  *set = rest;
  return PAWL_OK;
}

pawl_status pwi_rangeset_copy(const struct pwi_rangeset *set, struct pwi_rangeset *copy_out) {
  if (copy_out == set) return PAWL_OK;
  if (!PWI_GROW(copy_out->ranges, copy_out->room, set->count)) return PAWL_NO_MEMORY;
  if (set->count) memcpy(copy_out->ranges, set->ranges, set->count * sizeof *set->ranges);
  copy_out->count = set->count;
  return PAWL_OK;
}

bool pwi_rangeset_is_empty(const struct pwi_rangeset *set) { return set->count == 0; }

bool pwi_rangeset_has(const struct pwi_rangeset *set, uint64_t key) {
  size_t at = first_ending_after(set, key);
  return at < set->count && set->ranges[at].begin <= key;
}

/* Ranges of the set never touch, so only one of them can contain `range`. */
bool pwi_rangeset_contains(const struct pwi_rangeset *set, struct pawl_range range) {
  if (pawl_range_is_empty(range)) return true;
  size_t at = first_ending_after(set, range.begin);
  return at < set->count && pawl_range_contains(set->ranges[at], range);
}

bool pwi_rangeset_intersects(const struct pwi_rangeset *set, struct pawl_range range) {
  if (pawl_range_is_empty(range)) return false;
  size_t at = first_ending_after(set, range.begin);
  return at < set->count && set->ranges[at].begin < range.end;
}

bool pwi_rangeset_next(const struct pwi_rangeset *set, uint64_t from, struct pawl_range *run_out) {
  size_t at = first_ending_after(set, from);
  if (at == set->count) return false;
  struct pawl_range run = set->ranges[at];
  if (run.begin < from) run.begin = from;
  *run_out = run;
  return true;
}

bool pwi_rangeset_next_gap(const struct pwi_rangeset *set, uint64_t from, struct pawl_range *gap_out) {
  size_t at = first_ending_after(set, from);
  if (at < set->count && set->ranges[at].begin <= from) from = set->ranges[at++].end;
  if (from == PAWL_KEY_END) return false;
  *gap_out = pawl_range_of(from, at < set->count ? set->ranges[at].begin : PAWL_KEY_END);
  return true;
}

uint64_t pwi_rangeset_size(const struct pwi_rangeset *set) {
  uint64_t size = 0;
  for (size_t i = 0; i < set->count; i++) size += pawl_range_size(set->ranges[i]);
  return size;
}

bool pwi_rangeset_equal(const struct pwi_rangeset *a, const struct pwi_rangeset *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (a->ranges[i].begin != b->ranges[i].begin || a->ranges[i].end != b->ranges[i].end) return false;
  return true;
}
