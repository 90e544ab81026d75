/* Sketches, inside: the vectors that one is made of.
 *
 * Keys of the vector of cells are slot * banks + bank, where a window's slot is its number modulo the number of windows; of
 * that of candidates slot * PWI_TOP_BUCKETS + bucket; of that of registers slot * PWI_DISTINCT_ROWS + row.
 */
#ifndef PWI_API_SKETCH_SKETCH_H
#define PWI_API_SKETCH_SKETCH_H

#include <pawl/sketch.h>

#include "store/sketch.h"

struct pawl_sketch {
  struct pawl_session *session;
  struct pawl_vector *cells, *top, *distinct; /* the last two may be NULL */
  struct pawl_sketch_info info;
  struct pwi_sketch_bank bank;
  uint32_t banks, width; /* words of a row */
  uint32_t slots;        /* windows, or 1 */
};

/* The window of a time; 0 without windows. */
uint64_t pwi_sketch_window(const struct pawl_sketch *sketch, int64_t time_ns);

/* The slot of a window. */
static inline uint64_t pwi_sketch_slot(const struct pawl_sketch *sketch, uint64_t window) {
  return window % sketch->slots;
}

/* What the cells of one bank say of a thing. */
struct pawl_sketch_count pwi_sketch_count(const struct pawl_sketch *sketch, const uint64_t *row, uint64_t hash);

#endif
