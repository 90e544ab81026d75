#include "apps/mlr/matrix.h"

#include <string.h>

#include <cblas.h>

#include "apps/common/blas.h"
#include "apps/common/memory.h"

#define FACTOR_MIN 1e-6 /* a smaller factor would cost digits of small changes */

pawl_status mlr_matrix_init(struct mlr_matrix *matrix, uint32_t classes, size_t features, bool has_bias,
                            bool is_dense) {
  *matrix = (struct mlr_matrix){classes, features, has_bias, 1, NULL, NULL};
  if (features + 1 > SIZE_MAX / sizeof(double) / MLR_BLOCK / classes) return PAWL_TOO_LARGE;
  matrix->at = apps_alloc_zero(mlr_matrix_size(matrix) + 1, sizeof *matrix->at);
  if (is_dense) matrix->block = apps_alloc_zero(MLR_BLOCK * features + 1, sizeof *matrix->block);
  return matrix->at && (matrix->block || !is_dense) ? PAWL_OK : PAWL_NO_MEMORY;
}

void mlr_matrix_fini(struct mlr_matrix *matrix) {
  apps_free(matrix->at);
  apps_free(matrix->block);
}

void mlr_matrix_settle(struct mlr_matrix *matrix) {
  if (matrix->factor == 1) return;
  for (size_t i = 0; i < mlr_matrix_size(matrix); i++) matrix->at[i] *= matrix->factor;
  matrix->factor = 1;
}

double mlr_matrix_square(const struct mlr_matrix *matrix) {
  double sum = 0;
  for (size_t i = 0; i < mlr_matrix_size(matrix); i++) sum += matrix->at[i] * matrix->at[i];
  return sum * matrix->factor * matrix->factor;
}

/* to += times * from */
static void add(size_t count, double times, const double *restrict from, double *restrict to) {
  for (size_t i = 0; i < count; i++) to[i] += times * from[i];
}

static uint32_t feature_of(const struct mlr_row *row, size_t i) { return row->at ? row->at[i] : (uint32_t)i; }

/* --- dense rows ------------------------------------------------------------------------------------------- */

static void gather(const struct mlr_row *rows, size_t count, size_t features, double *block) {
  for (size_t i = 0; i < count; i++)
    for (size_t d = 0; d < features; d++) *block++ = (double)rows[i].values[d];
}

/* Behind the product the bias is still to be added. */
static void multiply_scores(const struct mlr_matrix *matrix, const struct mlr_row *rows, size_t count, double *block,
                            double *scores) {
  size_t features = matrix->features;
  gather(rows, count, features, block);
  bool is_locked = apps_blas_enter();
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)count, (blasint)matrix->classes, (blasint)features, 1,
              block, (blasint)features, matrix->at, (blasint)matrix->classes, 0, scores, (blasint)matrix->classes);
  apps_blas_leave(is_locked);
}

static void multiply_pairs(struct mlr_matrix *matrix, const struct mlr_pairs *pairs, size_t first, size_t count,
                           double step) {
  size_t features = matrix->features, classes = matrix->classes;
  gather(pairs->v + first, count, features, matrix->block);
  bool is_locked = apps_blas_enter();
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)features, (blasint)classes, (blasint)count, step,
              matrix->block, (blasint)features, pairs->u + first * classes, (blasint)classes, 1, matrix->at,
              (blasint)classes);
  apps_blas_leave(is_locked);
}

/* --- scores ----------------------------------------------------------------------------------------------- */

static void score_row(const struct mlr_matrix *matrix, const struct mlr_row *row, double *scores) {
  size_t classes = matrix->classes;
  memset(scores, 0, classes * sizeof *scores);
  for (size_t i = 0; i < row->count; i++) {
    uint32_t feature = feature_of(row, i);
    if (feature < matrix->features)
      add(classes, (double)row->values[i], matrix->at + (size_t)feature * classes, scores);
  }
}

void mlr_matrix_scores(const struct mlr_matrix *matrix, const struct mlr_row *rows, size_t count, double *block,
                       double *scores_out) {
  size_t classes = matrix->classes;
  bool multiplies = count > 1 && block && !rows->at && rows->count == matrix->features;
  if (multiplies) multiply_scores(matrix, rows, count, block, scores_out);
  for (size_t i = 0; i < count; i++) {
    double *scores = scores_out + i * classes;
    if (!multiplies) score_row(matrix, &rows[i], scores);
    if (matrix->has_bias) add(classes, 1, matrix->at + matrix->features * classes, scores);
    for (size_t j = 0; j < classes; j++) scores[j] *= matrix->factor;
  }
}

/* --- pairs ------------------------------------------------------------------------------------------------ */

static void add_pair(struct mlr_matrix *matrix, const double *u, const struct mlr_row *v, double step) {
  size_t classes = matrix->classes;
  for (size_t i = 0; i < v->count; i++) {
    double times = step * (double)v->values[i];
    if (times != 0) add(classes, times, u, matrix->at + (size_t)feature_of(v, i) * classes);
  }
}

static pawl_status apply(void *context, const struct mlr_pairs *pairs, double keep, double step) {
  struct mlr_matrix *matrix = context;
  matrix->factor *= keep;
  if (matrix->factor < FACTOR_MIN) mlr_matrix_settle(matrix);
  bool multiplies = pairs->count > 1 && matrix->block && !pairs->v->at;
  double times = step / matrix->factor;
  for (size_t i = 0; i < pairs->count;) {
    size_t count = pairs->count - i < MLR_BLOCK ? pairs->count - i : MLR_BLOCK;
    if (!multiplies) count = 1;
    if (multiplies)
      multiply_pairs(matrix, pairs, i, count, times);
    else
      add_pair(matrix, pairs->u + i * pairs->classes, &pairs->v[i], times);
    i += count;
  }
  for (size_t i = 0; matrix->has_bias && i < pairs->count; i++)
    add(matrix->classes, times, pairs->u + i * pairs->classes, matrix->at + matrix->features * matrix->classes);
  return PAWL_OK;
}

struct mlr_target mlr_matrix_target(struct mlr_matrix *matrix) {
  return (struct mlr_target){apply, matrix};
}
