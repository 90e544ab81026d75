/* Dual coordinate ascent of the hinge loss: see ascent.h. */
#include "apps/linear/ascent.h"

#include <math.h>

#include "apps/linear/inside.h"

/* relative to 1, the slope of a row at the beginning: a smaller slope is rounding error */
#define SLOPE_LEAST 1e-12

void linear_ascent_begin(struct linear_ascent *ascent) {
  for (size_t i = 0; i < ascent->count; i++) ascent->order[i] = (uint32_t)i;
  ascent->active = ascent->count;
  ascent->most = INFINITY;
  ascent->least = -INFINITY;
}

void linear_ascent_widen(struct linear_ascent *ascent) { ascent->active = ascent->count; }

/* The slope of the negated dual, which is minimised: y z - 1. */
static double slope_of(const struct linear_ascent *ascent, size_t row) {
  const struct linear_rows *rows = ascent->rows;
  double z = ascent->has_bias ? ascent->bias : 0, more = 0;
  uint64_t k = rows->starts[row], end = rows->starts[row + 1];
  for (; k + 2 <= end; k += 2) { /* two partial sums, so that additions need not wait for one another */
    z += (double)rows->values[k] * ascent->w[rows->feature_of[k]];
    more += (double)rows->values[k + 1] * ascent->w[rows->feature_of[k + 1]];
  }
  if (k < end) z += (double)rows->values[k] * ascent->w[rows->feature_of[k]];
  return (double)ascent->y[row] * (z + more) - 1;
}

/* Sets the multiplier to its best value while the others stay, and updates the weights. */
static void step(struct linear_ascent *ascent, size_t row, double square, double slope) {
  const struct linear_rows *rows = ascent->rows;
  double before = ascent->a[row];
  double a = fmin(fmax(before - slope * ascent->l2 / square, 0), (double)ascent->c[row]);
  double by = (a - before) * (double)ascent->y[row] / ascent->l2;
  if (by == 0) return;
  ascent->a[row] = a;
  for (uint64_t k = rows->starts[row]; k < rows->starts[row + 1]; k++)
    ascent->w[rows->feature_of[k]] += by * (double)rows->values[k];
  ascent->bias += by;
}

/* Steps for one row. False if the row should be left out from now on. */
static bool look_at(struct linear_ascent *ascent, size_t row, double range[2]) {
  double square = ascent->squares[row] + (ascent->has_bias ? 1 : 0), a = ascent->a[row], c = (double)ascent->c[row];
  ascent->steps++;
  if (square == 0) {
    ascent->a[row] = c; /* no weight affects this row: it costs its whole loss */
    return false;
  }
  double slope = slope_of(ascent, row), towards = slope;
  if (a <= 0 && slope > ascent->most) return false;
  if (a >= c && slope < ascent->least) return false;
  if ((a <= 0 && slope > 0) || (a >= c && slope < 0)) towards = 0; /* the step would leave the bounds */
  range[0] = fmin(range[0], towards);
  range[1] = fmax(range[1], towards);
  if (fabs(towards) > SLOPE_LEAST) step(ascent, row, square, slope);
  return true;
}

void linear_ascent_pass(struct linear_ascent *ascent, uint64_t *random) {
  uint32_t *order = ascent->order;
  double range[2] = {INFINITY, -INFINITY};
  for (size_t i = 0; i < ascent->active; i++) {
    size_t other = i + (size_t)((linear_draw(random) >> 32) * (ascent->active - i) >> 32);
    uint32_t row = order[other];
    order[other] = order[i];
    order[i] = row;
    if (look_at(ascent, row, range)) continue;
    order[i--] = order[--ascent->active];
    order[ascent->active] = row;
  }
  ascent->most = range[1] > 0 ? range[1] : INFINITY;
  ascent->least = range[0] < 0 ? range[0] : -INFINITY;
}
