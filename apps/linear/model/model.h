/* A linear model in memory: for apps/linear and its tests. <pawl/linear_model.h> is the interface to all
 * others. */
#ifndef APPS_LINEAR_MODEL_MODEL_H
#define APPS_LINEAR_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/linear_model.h>

#include "apps/common/model_file.h"

_Static_assert(PAWL_LINEAR_TEXT == APPS_TEXT_MAX, "the same functions write the messages of all applications");

struct pawl_linear_model {
  struct pawl_linear_about about;
  uint64_t *ids; /* about.nonzeros of them, ascending */
  double *weights;
  char **names; /* names of the features of these weights; each may be NULL, and the whole array */
};

/* Frees everything that the model owns. A struct of zeros is allowed. */
void linear_model_fini(struct pawl_linear_model *model);

/* Reads a file into a model of the caller: see pawl_linear_model_read. */
pawl_status linear_model_read(const char *path, struct pawl_linear_model *model_out, char error[PAWL_LINEAR_TEXT]);

/* Finds a scale by its name. */
bool linear_scale_find(const char *name, enum pawl_linear_scale *scale_out);

#endif
