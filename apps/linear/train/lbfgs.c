/* Limited-memory BFGS: see lbfgs.h. */
#include "apps/linear/train/lbfgs.h"

#include <string.h>

#include "apps/common/memory.h"

#define CURVATURE_LEAST 1e-12 /* of s . y, as a part of y . y gamma: less is rounding */

double linear_dot(const double *a, const double *b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

pawl_status linear_lbfgs_init(struct linear_lbfgs *lbfgs, size_t count) {
  memset(lbfgs, 0, sizeof *lbfgs);
  lbfgs->count = count;
  lbfgs->steps = apps_alloc_zero(LINEAR_LBFGS_PAIRS * count, sizeof *lbfgs->steps);
  lbfgs->changes = apps_alloc_zero(LINEAR_LBFGS_PAIRS * count, sizeof *lbfgs->changes);
  return lbfgs->steps && lbfgs->changes ? PAWL_OK : PAWL_NO_MEMORY;
}

void linear_lbfgs_fini(struct linear_lbfgs *lbfgs) {
  apps_free(lbfgs->steps);
  apps_free(lbfgs->changes);
  memset(lbfgs, 0, sizeof *lbfgs);
}

void linear_lbfgs_add(struct linear_lbfgs *lbfgs, const double *step, const double *change) {
  size_t count = lbfgs->count, slot = lbfgs->pairs % LINEAR_LBFGS_PAIRS;
  double product = linear_dot(step, change, count), square = linear_dot(change, change, count);
  if (!(product > CURVATURE_LEAST * square * lbfgs->gamma) || !(square > 0)) return;
  memcpy(lbfgs->steps + slot * count, step, count * sizeof *step);
  memcpy(lbfgs->changes + slot * count, change, count * sizeof *change);
  lbfgs->products[slot] = product;
  lbfgs->gamma = product / square;
  lbfgs->pairs++;
}

/* The two loops of Nocedal (1980): over the pairs from the newest to the oldest, and back. */
void linear_lbfgs_direction(const struct linear_lbfgs *lbfgs, const double *gradient, double first,
                            double *direction_out) {
  size_t count = lbfgs->count, kept = lbfgs->pairs < LINEAR_LBFGS_PAIRS ? lbfgs->pairs : LINEAR_LBFGS_PAIRS;
  double factors[LINEAR_LBFGS_PAIRS];
  for (size_t i = 0; i < count; i++) direction_out[i] = -gradient[i];
  for (size_t n = lbfgs->pairs; n-- > lbfgs->pairs - kept;) {
    size_t slot = n % LINEAR_LBFGS_PAIRS;
    const double *change = lbfgs->changes + slot * count;
    factors[slot] = linear_dot(lbfgs->steps + slot * count, direction_out, count) / lbfgs->products[slot];
    for (size_t i = 0; i < count; i++) direction_out[i] -= factors[slot] * change[i];
  }
  double gamma = kept > 0 ? lbfgs->gamma : first;
  for (size_t i = 0; i < count; i++) direction_out[i] *= gamma;
  for (size_t n = lbfgs->pairs - kept; n < lbfgs->pairs; n++) {
    size_t slot = n % LINEAR_LBFGS_PAIRS;
    const double *step = lbfgs->steps + slot * count;
    double by = factors[slot] - linear_dot(lbfgs->changes + slot * count, direction_out, count) / lbfgs->products[slot];
    for (size_t i = 0; i < count; i++) direction_out[i] += by * step[i];
  }
}
