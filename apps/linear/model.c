/* Linear models in memory: see model.h. */
#include "apps/linear/model.h"

#include <stdlib.h>
#include <string.h>

void linear_model_fini(struct linear_model *model) {
  free(model->ids);
  free(model->weights);
  memset(model, 0, sizeof *model);
}
