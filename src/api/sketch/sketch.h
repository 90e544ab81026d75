/* Sketches, inside: the vectors of a sketch.
 *
 * The key of a row of cells is slot * banks + bank, where a window's slot is its number modulo the number
 * of windows. The key of a row of candidates is slot * PWI_TOP_BUCKETS + bucket, and of a row of registers
 * slot * PWI_DISTINCT_ROWS + row.
 */
#ifndef PWI_API_SKETCH_SKETCH_H
#define PWI_API_SKETCH_SKETCH_H

#include <pawl/sketch.h>

#include "store/sketch.h"

struct pawl_sketch {
  struct pawl_session *session;
  struct pawl_vector *cells, *top, *distinct; /* `top` and `distinct` may be NULL */
  struct pawl_sketch_info info;
  struct pwi_sketch_bank bank;
  uint32_t banks, width; /* `width`: words of a row */
  uint32_t slots;        /* windows, or 1 */
};

/* The window of a time; 0 without windows. */
uint64_t pwi_sketch_window(const struct pawl_sketch *sketch, int64_t time_ns);

/* The slot of a window. */
static inline uint64_t pwi_sketch_slot(const struct pawl_sketch *sketch, uint64_t window) {
  return window % sketch->slots;
}

/* The estimate for a thing from the cells of its bank. */
struct pawl_sketch_count pwi_sketch_count(const struct pawl_sketch *sketch, const uint64_t *row, uint64_t hash);

#endif
