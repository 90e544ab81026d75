/* Linear algebra on arrays of values (OSDI'14 3.1), which servers run on their own rows.
 *
 * Changes: fill, scale, axpy and copy. Integer results wrap around, and the scalar is an integer.
 *
 * Folds: dot products and the sums for norms. Every value is converted to double. An array is summed in eight
 * lanes by position, and the result is added to a running sum with compensation for rounding errors. Sums of
 * many blocks are thus as accurate as those of one, and the same blocks in the same order give the same bits.
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
  PWI_LINEAR_MOST = 8,    /* the highest |x|; NaN if any x is NaN */
  PWI_LINEAR_COUNT = 9,   /* the number of x that are not zero */

  /* A row function changes y, and reads x (store/functions/rows.h). */
  PWI_LINEAR_RUN = 10,
  PWI_LINEAR_RUN_WITH = 11,
};

static inline bool pwi_linear_is_known(unsigned kind) { return kind >= PWI_LINEAR_FILL && kind <= PWI_LINEAR_RUN_WITH; }

/* True for operations that run a row function. */
static inline bool pwi_linear_runs(enum pwi_linear kind) {
  return kind == PWI_LINEAR_RUN || kind == PWI_LINEAR_RUN_WITH;
}

/* True for operations that change nothing. */
static inline bool pwi_linear_folds(enum pwi_linear kind) { return kind >= PWI_LINEAR_DOT && kind <= PWI_LINEAR_COUNT; }

/* True for operations that support a single column. */
static inline bool pwi_linear_has_column(enum pwi_linear kind) {
  return kind >= PWI_LINEAR_ABS && kind <= PWI_LINEAR_COUNT;
}

/* True for operations on two vectors. */
static inline bool pwi_linear_has_other(enum pwi_linear kind) {
  return kind == PWI_LINEAR_AXPY || kind == PWI_LINEAR_COPY || kind == PWI_LINEAR_DOT || kind == PWI_LINEAR_RUN_WITH;
}

/* True for operations with a scalar. */
static inline bool pwi_linear_has_scalar(enum pwi_linear kind) {
  return kind == PWI_LINEAR_FILL || kind == PWI_LINEAR_SCALE || kind == PWI_LINEAR_AXPY;
}

/* True if the scalar is valid for the type. Floats accept any scalar. For integer types the scalar must be an
 * integer of at most 2^53 in magnitude, and a fill value must be representable in the type. */
bool pwi_linear_takes(enum pwi_linear kind, enum pwi_scalar type, double scalar);

/* Changes `count` values at `y`, using those at `x` for operations on two vectors. Both arrays are aligned
 * for their type. They are identical or do not overlap. */
void pwi_linear_change(enum pwi_linear kind, enum pwi_scalar type, double scalar, const void *x, void *y, size_t count);

/* A running sum with its rounding error, or a running maximum. A struct of zeros is the empty sum. */
struct pwi_sum {
  double high, low;
};

/* Adds `count` values at `x` to the sum, multiplied by those at `y` for a dot product. */
void pwi_linear_fold(enum pwi_linear kind, enum pwi_scalar type, const void *x, const void *y, size_t count,
                     struct pwi_sum *sum);

/* Adds one sum to another. */
void pwi_sum_join(enum pwi_linear kind, struct pwi_sum *sum, struct pwi_sum other);
double pwi_sum_value(struct pwi_sum sum);

#endif
