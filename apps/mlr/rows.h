/* Rows inside: features and classes in memory, sparse or dense. */
#ifndef MLR_ROWS_H
#define MLR_ROWS_H

#include <pawl/mlr.h>

#include "apps/common/names.h"

struct pawl_mlr_rows {
  struct pawl_mlr_rows_info info;
  uint64_t *ids; /* of the features, ascending */

  /* Sparse: the entries of row i are starts[i] … starts[i + 1] - 1; `at` are numbers of features. */
  uint64_t *starts;
  uint32_t *at;
  float *values;

  float *dense; /* rows x features; NULL: the rows are sparse */

  uint32_t *classes;
  struct apps_names labels; /* whole numbers by value, then words by their bytes */
  char first_bad[PAWL_MLR_TEXT];
};

/* A row, as the vector v of a pair (pairs.h). */
struct mlr_row {
  size_t count;
  const uint32_t *at; /* numbers of features; NULL: 0 … count - 1 */
  const float *values;
};

/* `at` are the numbers of features, if not those of the rows themselves; else NULL. */
static inline struct mlr_row mlr_row_of(const struct pawl_mlr_rows *rows, const uint32_t *at, size_t row) {
  if (rows->dense)
    return (struct mlr_row){(size_t)rows->info.features, NULL, rows->dense + row * (size_t)rows->info.features};
  size_t start = (size_t)rows->starts[row], end = (size_t)rows->starts[row + 1];
  return (struct mlr_row){end - start, (at ? at : rows->at) + start, rows->values + start};
}

/* The squared length of a row. */
double mlr_row_square(struct mlr_row row);

#endif
