/* Dual coordinate ascent of the hinge loss over rows that are all here: a pass is one step for each row, in a
 * random order (Hsieh et al. 2008).
 *
 *   maximise over 0 <= a_i <= c_i    sum_i a_i - l2/2 |w(a)|^2          where  w(a) = 1/l2 sum_i a_i y_i x_i
 *
 * SHRINKING (Hsieh et al. 2008, 4.2). Most multipliers end at 0 or at c_i, and stay there. A row whose slope
 * says so more clearly than any step of the pass before was long is left out of the passes that follow;
 * linear_ascent_widen takes all in again.
 */
#ifndef LINEAR_ASCENT_H
#define LINEAR_ASCENT_H

#include "apps/linear/rows.h"

struct linear_ascent {
  const struct linear_rows *rows;
  size_t count;
  const float *y, *c;    /* labels and upper bounds of rows */
  const double *squares; /* |x_i|^2, without the bias */
  double l2;
  bool has_bias;   /* the weight of a feature that is 1 in each row */
  double *a;       /* multipliers, */
  double *w, bias; /* and w(a), by the numbers of features */

  uint32_t *order; /* of rows: the first `active` are gone through */
  size_t active;
  double most, least; /* of the slopes of the pass before: beyond them a row is left out */
  uint64_t steps;     /* rows that were looked at so far */
};

/* After all but the last five members are set. `order` has room for all rows. */
void linear_ascent_begin(struct linear_ascent *ascent);

/* All rows take part in the next pass, which leaves out those that the pass before would have. */
void linear_ascent_widen(struct linear_ascent *ascent);

/* `random`: the state of linear_draw. */
void linear_ascent_pass(struct linear_ascent *ascent, uint64_t *random);

#endif
