/* Models inside: for apps/dml and tests. */
#ifndef DML_MODEL_H
#define DML_MODEL_H

#include <stdio.h>

#include "apps/common/names.h"
#include "apps/dml/points.h"

struct pawl_metric_model {
  struct pawl_metric_about about;
  uint64_t *ids; /* of the features, ascending */
  struct apps_names labels;
  struct dml_frame frame;   /* W x is weights * point, with the point that the frame makes of the row */
  float *weights;           /* rank x features */
  struct dml_points points; /* W x of the rows */
};

static inline size_t dml_model_size(const struct pawl_metric_model *model) {
  return (size_t)(model->about.rank * model->about.features); /* below 2^52 */
}

/* Copies the labels of rows. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status dml_model_take_labels(struct pawl_metric_model *model, const struct pawl_mlr_rows *rows);

/* For each label of the rows, the class of the model; PAWL_MLR_NO_CLASS: none. NULL: out of memory. */
uint32_t *dml_model_match_labels(const struct pawl_metric_model *model, const struct pawl_mlr_rows *rows);

/* Parses the contents of a file: `bytes`, which a 0 follows. `why` gets an error without the file name. Allocates only
 * in proportion to the size of the file. */
PAWL_MUST_USE pawl_status dml_model_decode(const char *bytes, size_t size, struct pawl_metric_model **model_out,
                                           char *why);
pawl_status dml_model_fill(FILE *file, const void *model);

#endif
