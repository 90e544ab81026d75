/* Linear algebra on arrays of values (OSDI'14 3.1): what a server does to rows without any of them travelling.
 *
 * Changing: fill, scale, axpy and copy. On integers, results wrap around, and the scalar is a whole number.
 *
 * Folding: dot products and the makings of norms. Every value is taken as a double. An array is folded in eight lanes, by
 * position, and what comes of it is added to a running sum that keeps its rounding error beside it; so sums of many blocks
 * are as good as those of one, and the same blocks in the same order give the same bits.
 *
 * Threads: any. Nothing here fails.
 */
#ifndef PWI_STORE_LINEAR_H
#define PWI_STORE_LINEAR_H

#include <stdbool.h>
#include <stddef.h>

#include "store/table.h"

/* The numbers are part of the wire format. */
enum pwi_linear {
  PWI_LINEAR_FILL = 1,    /* y = a */
  PWI_LINEAR_SCALE = 2,   /* y = a y */
  PWI_LINEAR_AXPY = 3,    /* y = y + a x */
  PWI_LINEAR_COPY = 4,    /* y = x */
  PWI_LINEAR_DOT = 5,     /* the sum of x y */
  PWI_LINEAR_ABS = 6,     /* the sum of |x| */
  PWI_LINEAR_SQUARES = 7, /* the sum of x x */
  PWI_LINEAR_MOST = 8,    /* the highest |x|; NaN if any is */
  PWI_LINEAR_COUNT = 9,   /* how many x are not zero */
};

static inline bool pwi_linear_is_known(unsigned kind) { return kind >= PWI_LINEAR_FILL && kind <= PWI_LINEAR_COUNT; }

/* True for those that change nothing. */
static inline bool pwi_linear_folds(enum pwi_linear kind) { return kind >= PWI_LINEAR_DOT; }

/* True for those that can be about one column of the rows. */
static inline bool pwi_linear_has_column(enum pwi_linear kind) { return kind >= PWI_LINEAR_ABS; }

/* True for those that are about two vectors, */
static inline bool pwi_linear_has_other(enum pwi_linear kind) {
  return kind == PWI_LINEAR_AXPY || kind == PWI_LINEAR_COPY || kind == PWI_LINEAR_DOT;
}

/* and that take a scalar. */
static inline bool pwi_linear_has_scalar(enum pwi_linear kind) {
  return kind == PWI_LINEAR_FILL || kind == PWI_LINEAR_SCALE || kind == PWI_LINEAR_AXPY;
}

/* Whether the scalar can be used with values of the type: any can with floats. With integers it is whole and at most 2^53
 * either way; and what is filled in is a value of the type. */
bool pwi_linear_takes(enum pwi_linear kind, enum pwi_scalar type, double scalar);

/* Changes `count` values at `y`, by those at `x` if there are two vectors. Both are aligned as values are. They are the
 * same array, or do not overlap. */
void pwi_linear_change(enum pwi_linear kind, enum pwi_scalar type, double scalar, const void *x, void *y, size_t count);

/* A sum, and by how much it is too low; or the highest. A struct of zeros is that of nothing. */
struct pwi_sum {
  double high, low;
};

/* Folds `count` values at `x`, with those at `y` for a dot product, into the sum. */
void pwi_linear_fold(enum pwi_linear kind, enum pwi_scalar type, const void *x, const void *y, size_t count,
                     struct pwi_sum *sum);

/* Both together. */
void pwi_sum_join(enum pwi_linear kind, struct pwi_sum *sum, struct pwi_sum other);
double pwi_sum_value(struct pwi_sum sum);

#endif
