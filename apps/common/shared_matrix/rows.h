/* Images of a job, and rows of <pawl/mlr.h>, for the workers of all methods that learn from them. */
#ifndef SHARED_MATRIX_ROWS_H
#define SHARED_MATRIX_ROWS_H

#include <pawl/mlr.h>

#include "apps/common/shared_matrix/share.h"

/* Reads images, perhaps without labels. A failure has a sentence. */
PAWL_MUST_USE pawl_status matrix_images_read(const struct matrix_spec *spec, bool labels_optional,
                                             struct pawl_images **images_out, char *error);

/* Says that a worker has other rows than the scheduler: PAWL_MISMATCH. */
pawl_status matrix_rows_differ(const struct matrix_spec *spec, char *error);

/* Reads the rows, which must be those of the scheduler. A failure has a sentence; destroy the rows in any case. */
PAWL_MUST_USE pawl_status matrix_rows_read(const struct matrix_spec *spec, struct pawl_mlr_rows **rows_out,
                                           char *error);

#endif
