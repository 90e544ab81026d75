/* Models as LIBLINEAR's text, which liblinear-predict reads:
 *
 *   solver_type MCSVM_CS        a column of weights for each class, also of two; the highest score is the prediction
 *   nr_class 3
 *   label 0 1 2
 *   nr_feature 7                the highest id
 *   bias 1                      the value of one more feature; -1: there is none
 *   w
 *   0.5 -0.25 0.125             a line for each id from 1 on, and for the bias
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/model_file.h"
#include "apps/mlr/model.h"

static bool is_int(const char *text) {
  char *end;
  long number = strtol(text, &end, 10);
  return end != text && *end == 0 && number >= INT_MIN && number <= INT_MAX;
}

static pawl_status check(const struct pawl_mlr_model *model, char *error) {
  const struct pawl_mlr_about *about = &model->about;
  for (uint32_t i = 0; i < about->classes; i++)
    if (!is_int(apps_names_get(&model->labels, i)))
      return apps_say(error, PAWL_UNSUPPORTED,
                      "LIBLINEAR's labels are whole numbers below 2^31, but this model has the label '%.100s'",
                      apps_names_get(&model->labels, i));
  if (about->features > 0 && (model->ids[0] == 0 || model->ids[about->features - 1] >= INT_MAX))
    return apps_say(error, PAWL_UNSUPPORTED,
                    "LIBLINEAR numbers features from 1 to 2^31 - 2, but this model has ids from %" PRIu64
                    " to %" PRIu64,
                    model->ids[0], model->ids[about->features - 1]);
  return PAWL_OK;
}

static void put_line(FILE *file, const double *weights, uint32_t classes) {
  for (uint32_t j = 0; j < classes; j++) fprintf(file, "%.17g ", weights ? weights[j] : 0);
  fputc('\n', file);
}

static pawl_status fill(FILE *file, const void *context) {
  const struct pawl_mlr_model *model = context;
  const struct pawl_mlr_about *about = &model->about;
  const double *at = model->matrix.at;
  uint64_t width = about->features ? model->ids[about->features - 1] : 0, next = 0;
  fprintf(file, "solver_type MCSVM_CS\nnr_class %" PRIu32 "\nlabel", about->classes);
  for (uint32_t i = 0; i < about->classes; i++) fprintf(file, " %s", apps_names_get(&model->labels, i));
  fprintf(file, "\nnr_feature %" PRIu64 "\nbias %d\nw\n", width, about->has_bias ? 1 : -1);
  for (uint64_t id = 1; id <= width && !ferror(file); id++) {
    bool is_there = model->ids[next] == id;
    put_line(file, is_there ? at + next * about->classes : NULL, about->classes);
    next += is_there;
  }
  if (about->has_bias) put_line(file, at + about->features * about->classes, about->classes);
  return ferror(file) ? PAWL_IO : PAWL_OK;
}

pawl_status pawl_mlr_model_export(const struct pawl_mlr_model *model, const char *path, char error[PAWL_MLR_TEXT]) {
  pawl_status status = check(model, error);
  return status ? status : apps_model_write(path, fill, model, error);
}
