/* A range of keys: all k with begin <= k < end.
 *
 * Keys have 64 bits. The key 2^64-1 is reserved, because no half-open range of uint64_t can contain it. No
 * vector stores it, so that [0, PAWL_KEY_END) is the range of all keys.
 */
#ifndef PAWL_RANGE_H
#define PAWL_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_KEY_END UINT64_MAX

/* The range of everything. A range that ends at PAWL_KEY_END ends with the span of the vector that it is used
 * with, so PAWL_ALL names every key of any vector. An empty range, such as [0, 0), names no key, and a call
 * with it does nothing. */
#define PAWL_ALL pawl_range_of(0, PAWL_KEY_END)

struct pawl_range {
  uint64_t begin;
  uint64_t end;
};

static inline struct pawl_range pawl_range_of(uint64_t begin, uint64_t end) {
  struct pawl_range range = {begin, end};
  return range;
}

/* True if the range has no key: its end is not greater than its begin. */
static inline bool pawl_range_is_empty(struct pawl_range range) { return range.end <= range.begin; }

static inline uint64_t pawl_range_size(struct pawl_range range) {
  return pawl_range_is_empty(range) ? 0 : range.end - range.begin;
}

static inline bool pawl_range_has(struct pawl_range range, uint64_t key) {
  return key >= range.begin && key < range.end;
}

/* True if every key of `inner` is in `outer`; the empty range is inside every range. */
static inline bool pawl_range_contains(struct pawl_range outer, struct pawl_range inner) {
  return pawl_range_is_empty(inner) || (inner.begin >= outer.begin && inner.end <= outer.end);
}

/* The intersection of two ranges. */
static inline struct pawl_range pawl_range_common(struct pawl_range a, struct pawl_range b) {
  uint64_t begin = a.begin > b.begin ? a.begin : b.begin;
  uint64_t end = a.end < b.end ? a.end : b.end;
  return pawl_range_of(begin, end > begin ? end : begin);
}

#ifdef __cplusplus
}
#endif

#endif
