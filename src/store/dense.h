/* Functions of dense tables only. */
#ifndef PWI_STORE_DENSE_H
#define PWI_STORE_DENSE_H

#include <pawl/range.h>
#include <pawl/status.h>

#include "store/table.h"

/* Makes all keys of `range` present in a dense table, so that pwi_table_range_apply on any part of it cannot
 * fail. For a push whose values arrive in several pieces but must be applied completely or not at all.
 *   PAWL_INVALID    the range is empty or reaches past the span
 *   PAWL_TOO_LARGE  the table would pass its limit */
PAWL_MUST_USE pawl_status pwi_dense_reserve(struct pwi_table *table, struct pawl_range range);

#endif
