/* The weights in memory: feature by feature, those of all classes side by side, because a sparse row touches few features
 * and all classes. The constant terms are the weights of one more feature, behind the others, which is 1 in every row.
 *
 * A factor is common to all weights: shrinking them, which the penalty does in every step, costs nothing.
 */
#ifndef MLR_MATRIX_H
#define MLR_MATRIX_H

#include "apps/mlr/pairs.h"

#define MLR_BLOCK 64 /* rows that are multiplied at a time */

struct mlr_matrix {
  uint32_t classes;
  size_t features; /* without the constant term */
  bool has_bias;
  double factor;
  double *at;    /* (features + has_bias) x classes; a weight is its factor times */
  double *block; /* memory for MLR_BLOCK dense rows, for `apply`; NULL: rows are sparse */
};

/* Weights of 0. `is_dense`: rows are dense. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status mlr_matrix_init(struct mlr_matrix *matrix, uint32_t classes, size_t features, bool has_bias,
                                          bool is_dense);
void mlr_matrix_fini(struct mlr_matrix *matrix);

static inline size_t mlr_matrix_size(const struct mlr_matrix *matrix) {
  return (matrix->features + matrix->has_bias) * matrix->classes;
}

/* Multiplies the factor into the weights; it is then 1. */
void mlr_matrix_settle(struct mlr_matrix *matrix);

/* The sum of the squares of all weights. */
double mlr_matrix_square(const struct mlr_matrix *matrix);

/* The scores of at most MLR_BLOCK rows: `classes` numbers of each. Features beyond the matrix are ignored. `block` has room
 * for MLR_BLOCK rows, if they are dense. */
void mlr_matrix_scores(const struct mlr_matrix *matrix, const struct mlr_row *rows, size_t count, double *block,
                       double *scores_out);

/* A target (pairs.h) of this process. */
struct mlr_target mlr_matrix_target(struct mlr_matrix *matrix);

#endif
