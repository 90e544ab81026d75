/* Dual coordinate ascent of the hinge loss when all rows are in this process: a pass is one step for each
 * row, in a random order (Hsieh et al. 2008).
 *
 *   maximise over 0 <= a_i <= c_i    sum_i a_i - l2/2 |w(a)|^2          where  w(a) = 1/l2 sum_i a_i y_i x_i
 *
 * SHRINKING (Hsieh et al. 2008, 4.2). Most multipliers end at 0 or at c_i, and stay there. A row at a bound
 * is left out of the following passes if its slope points beyond the bound, and is steeper than any slope of
 * the previous pass. linear_ascent_widen includes all rows again. */
#ifndef LINEAR_ASCENT_H
#define LINEAR_ASCENT_H

#include "apps/linear/rows.h"

struct linear_ascent {
  const struct linear_rows *rows;
  size_t count;
  const float *y, *c;    /* labels and upper bounds of rows */
  const double *squares; /* |x_i|^2, without the bias */
  double l2;
  bool has_bias;   /* the weights include that of a feature that is 1 in each row */
  double *a;       /* multipliers of rows */
  double *w, bias; /* w(a), by the numbers of features */

  uint32_t *order; /* order of rows: a pass visits the first `active` of them */
  size_t active;
  /* bounds of the slopes of the previous pass: a row at a bound whose slope lies outside is left out */
  double most, least;
  uint64_t steps; /* number of rows visited so far */
};

/* Call it after all but the last five members are set. `order` has room for all rows. */
void linear_ascent_begin(struct linear_ascent *ascent);

/* Includes all rows in the next pass. That pass leaves out rows by the bounds of the pass before. */
void linear_ascent_widen(struct linear_ascent *ascent);

/* Makes one pass. `random` is the state of linear_draw. */
void linear_ascent_pass(struct linear_ascent *ascent, uint64_t *random);

#endif
