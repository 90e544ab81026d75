/* Slope and curvature of the loss at many rows: the inner loop of block steps, in single precision and without a call, so that
 * compilers turn it into vectors. losses.h has the plain version of each, to which a test compares it. */
#ifndef LINEAR_SLOPES_H
#define LINEAR_SLOPES_H

#include <stddef.h>

#include "apps/linear/model/model.h"

/* How many rows are handled at a time. */
#define LINEAR_SLOPES_ROWS 256

/* For each row i: pairs[2 i] = c[i] * slope, pairs[2 i + 1] = c[i] * curvature.
 *
 * The curvature is one to step by, and not the second derivative where that would mislead: rows far on the wrong side of the
 * logistic loss have next to none, though a step will soon meet more, and those beyond the squared hinge have none at all. A
 * quadratic that lies above the loss everywhere has curvature tanh(|z| / 2) / (2 |z|) (Jaakkola and Jordan 2000); an eighth of it is
 * the least that is returned. So a single step is never more than eight times one that is known to be safe. */
void linear_slopes(enum linear_loss loss, size_t count, const float *y, const float *z, const float *c, float *pairs);

/* The sum of c[i] * loss over rows, in double. */
double linear_losses(enum linear_loss loss, size_t count, const float *y, const double *z, const float *c);

#endif
