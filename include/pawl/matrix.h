/* Products with a matrix of examples: X W and X^T R (OSDI'14 3.1).
 *
 * The rows of X are examples, its columns features: the two products are most of what a worker of a linear method
 * computes. W has a row of `width` numbers for each column of X, R and Z one for each row of X; width 1 is a vector.
 *
 * X is dense or sparse, with values of f32; W, R and the results are of f64, in which everything is computed. A dense X
 * is multiplied by OpenBLAS, block by block.
 *
 * THREADS. A matrix has threads of its own, which share the work of a call: the rows of X W, and the columns of X^T R, so
 * that no thread writes where another one does. The results are the same, bit for bit, for any number of threads. One
 * call at a time for each matrix.
 *
 * LIFETIME. The matrix borrows the arrays of X, which must stay as they are until it is destroyed.
 *
 * One step of logistic regression, with w pulled and g pushed (examples/logistic.c):
 *
 *   pawl_matrix_times(x, all, w, 1, z);
 *   for (size_t i = 0; i < rows; i++) r[i] = -label[i] / (1 + exp(label[i] * z[i]));
 *   pawl_matrix_transposed_times(x, all, r, 1, g);
 */
#ifndef PAWL_MATRIX_H
#define PAWL_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/range.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_matrix;

/* The arrays of X. Dense: `starts` and `at` are NULL, and `values` has rows * columns numbers, row by row. Sparse: the
 * entries of row i are starts[i] … starts[i + 1] - 1; `at` are their columns, ascending in each row. */
struct pawl_matrix_data {
  size_t rows, columns;
  const float *values;    /* sparse: NULL for all 1 */
  const uint64_t *starts; /* rows + 1 elements */
  const uint32_t *at;
};

/* `threads` 0: one for each available processor. PAWL_INVALID (an array is NULL, `starts` fall, or there are 2^32 columns
 * or more), PAWL_OUT_OF_SPAN (a column beyond the matrix), PAWL_UNSORTED (columns of a row), PAWL_TOO_LARGE,
 * PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_matrix_create(const struct pawl_matrix_data *data, uint32_t threads,
                                                      struct pawl_matrix **matrix_out);
PAWL_API void pawl_matrix_destroy(struct pawl_matrix *matrix); /* NULL is allowed */

/* Z = X W for a batch of rows: `z` has a row for each row of `rows`, from the first of them. PAWL_OUT_OF_SPAN for rows
 * beyond the matrix; PAWL_INVALID for a width of 0 or NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_matrix_times(struct pawl_matrix *matrix, struct pawl_range rows,
                                                     const double *w, size_t width, double *z);

/* G = G + X^T R for a batch of rows: `r` has a row for each row of `rows`; `g` has one for each column of X. Batch after
 * batch adds up to the whole. A sparse row whose row of `r` is zero costs nothing. Errors as pawl_matrix_times. */
PAWL_API PAWL_MUST_USE pawl_status pawl_matrix_transposed_times(struct pawl_matrix *matrix, struct pawl_range rows,
                                                                const double *r, size_t width, double *g);

#ifdef __cplusplus
}
#endif

#endif
