/* From columns to rows: see rows.h. */
#include "apps/linear/rows.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"

static void fill(struct linear_rows *rows, const struct linear_share *share, uint64_t *at) {
  for (size_t j = 0; j < share->features; j++)
    for (uint64_t k = share->starts[j]; k < share->starts[j + 1]; k++) {
      uint64_t place = at[share->row_of[k]]++;
      rows->feature_of[place] = (uint32_t)j;
      rows->values[place] = share->values[k];
    }
}

bool linear_rows_init(struct linear_rows *rows, const struct linear_share *share) {
  uint64_t entries = share->features ? share->starts[share->features] : 0;
  uint64_t *at = apps_alloc((share->rows + 1) * sizeof *at);
  memset(rows, 0, sizeof *rows);
  rows->starts = apps_alloc_zero(share->rows + 2, sizeof *rows->starts);
  rows->feature_of = apps_alloc((size_t)(entries + 1) * sizeof *rows->feature_of);
  rows->values = apps_alloc((size_t)(entries + 1) * sizeof *rows->values);
  bool is_there = at && rows->starts && rows->feature_of && rows->values;
  if (is_there) {
    for (uint64_t k = 0; k < entries; k++) rows->starts[share->row_of[k] + 1]++;
    for (size_t i = 0; i < share->rows; i++) rows->starts[i + 1] += rows->starts[i];
    memcpy(at, rows->starts, (share->rows + 1) * sizeof *at);
    fill(rows, share, at);
  }
  apps_free(at);
  return is_there;
}

void linear_rows_fini(struct linear_rows *rows) {
  apps_free(rows->starts);
  apps_free(rows->feature_of);
  apps_free(rows->values);
  memset(rows, 0, sizeof *rows);
}
