/* A worker's share by rows, made from its columns, for methods that visit one row after the other. */
#ifndef LINEAR_ROWS_H
#define LINEAR_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/linear/share.h"

/* A struct of zeros is empty. */
struct linear_rows {
  uint64_t *starts;     /* rows + 1: where the entries of each begin */
  uint32_t *feature_of; /* numbers of features in the share, ascending in each row */
  float *values;
};

/* False if it is out of memory; call linear_rows_fini in any case. */
bool linear_rows_init(struct linear_rows *rows, const struct linear_share *share);
void linear_rows_fini(struct linear_rows *rows);

#endif
