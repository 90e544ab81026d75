/* Batches by column, for methods that iterate over features. */
#ifndef PWI_DATA_FORMATS_COLUMNS_H
#define PWI_DATA_FORMATS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>

struct pwi_columns {
  struct pawl_columns is; /* must be first */
  uint64_t *ids, *starts;
  uint32_t *in;
  float *values; /* NULL: all 1 */
};

/* Allocates arrays for this many columns and entries; `has_values`: also for values. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_columns_create(size_t columns, size_t entries, bool has_values,
                                             struct pwi_columns **columns_out);
void pwi_columns_destroy(struct pwi_columns *columns); /* NULL is fine */

/* Transposes a batch: the same entries, sorted by id and then by row. PAWL_TOO_LARGE: 2^32 rows or more.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_columns_of(const struct pawl_batch *batch, struct pwi_columns **columns_out);

#endif
