/* Maps ids of features to keys. Ids are scattered over the span of keys, so that a block of neighbouring keys
 * is a random sample of the features, and a row has few features in a block (OSDI'14 5.1 divides features
 * into blocks). If features are numbered by topic or by frequency, neighbouring ids act on the same rows, and
 * steps for blocks of them would overshoot.
 *
 *   key = id * factor mod size
 *
 * The factor is close to the size divided by the golden ratio, and has no divisor in common with the size. So
 * every id has a key of its own, and neighbours lie far apart. */
#ifndef LINEAR_SCATTER_H
#define LINEAR_SCATTER_H

#include <stdint.h>

struct linear_scatter {
  uint64_t size; /* keys and ids are in [0, size) */
  uint64_t factor, inverse;
};

/* `size` is at least 1 and at most 2^63. */
void linear_scatter_init(struct linear_scatter *scatter, uint64_t size);

/* a b mod size, for a, b below it. */
uint64_t linear_times(uint64_t a, uint64_t b, uint64_t size);

static inline uint64_t linear_key(const struct linear_scatter *scatter, uint64_t id) {
  return linear_times(id, scatter->factor, scatter->size);
}

static inline uint64_t linear_id(const struct linear_scatter *scatter, uint64_t key) {
  return linear_times(key, scatter->inverse, scatter->size);
}

#endif
