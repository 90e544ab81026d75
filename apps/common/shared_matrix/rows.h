/* Rows of <pawl/mlr.h> of a job, for the workers of all methods that learn from them. */
#ifndef SHARED_MATRIX_ROWS_H
#define SHARED_MATRIX_ROWS_H

#include <pawl/mlr.h>

#include "apps/common/shared_matrix/share.h"

/* Reads the rows, which must be those of the scheduler. A failure has a sentence; destroy the rows in any case. */
PAWL_MUST_USE pawl_status matrix_rows_read(const struct matrix_spec *spec, struct pawl_mlr_rows **rows_out,
                                           char *error);

#endif
