/* Models inside: for apps/mlr and tests. */
#ifndef MLR_MODEL_H
#define MLR_MODEL_H

#include <stdio.h>

#include "apps/mlr/matrix.h"

struct pawl_mlr_model {
  struct pawl_mlr_about about;
  struct mlr_matrix matrix; /* its factor is 1 */
  uint64_t *ids;
  struct apps_names labels;
};

/* A model of weights 0 with the features and labels of the rows. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status mlr_model_create(const struct pawl_mlr_rows *rows, const struct pawl_mlr_about *about,
                                           struct pawl_mlr_model **model_out);

/* False: a weight is not finite. */
bool mlr_model_is_finite(const struct pawl_mlr_model *model);

/* Parses the contents of a file: `bytes`, which a 0 follows. `why` gets an error without the file name. Allocates only
 * in proportion to the size of the file. */
PAWL_MUST_USE pawl_status mlr_model_decode(const char *bytes, size_t size, struct pawl_mlr_model **model_out,
                                           char *why);
pawl_status mlr_model_fill(FILE *file, const void *model);

#endif
