/* A worker's share by rows, made from its columns: for methods that go through rows, one by one. */
#ifndef LINEAR_ROWS_H
#define LINEAR_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/linear/share.h"

/* A struct of zeros is none. */
struct linear_rows {
  uint64_t *starts;     /* rows + 1: where the entries of each begin */
  uint32_t *feature_of; /* numbers in the share, rising in a row */
  float *values;
};

/* False without memory; end it with linear_rows_fini in any case. */
bool linear_rows_init(struct linear_rows *rows, const struct linear_share *share);
void linear_rows_fini(struct linear_rows *rows);

#endif
