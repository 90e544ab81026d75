/* A model in memory, and prediction. */
#include "apps/mlr/model.h"

#include <math.h>
#include <string.h>

#include "apps/common/blas.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/mlr/evaluate.h"

static bool copy_labels(const struct apps_names *from, struct apps_names *to) {
  char *text = apps_alloc(from->size);
  if (!text) return false;
  memcpy(text, from->text, from->size);
  if (apps_names_take(to, text, from->size, from->count)) return true;
  apps_free(text);
  return false;
}

pawl_status mlr_model_create(const struct pawl_mlr_rows *rows, const struct pawl_mlr_about *about,
                             struct pawl_mlr_model **model_out) {
  size_t features = (size_t)rows->info.features;
  struct pawl_mlr_model *model = apps_alloc_zero(1, sizeof *model);
  if (!model) return PAWL_NO_MEMORY;
  model->about = *about;
  model->about.classes = rows->info.classes;
  model->about.features = features;
  model->about.is_images = rows->info.is_images;
  pawl_status status = mlr_matrix_init(&model->matrix, rows->info.classes, features, about->has_bias, rows->dense);
  model->ids = status ? NULL : apps_alloc_zero(features + 1, sizeof *model->ids);
  if (!status && (!model->ids || !copy_labels(&rows->labels, &model->labels))) status = PAWL_NO_MEMORY;
  if (status) {
    pawl_mlr_model_destroy(model);
    return status;
  }
  if (features > 0) memcpy(model->ids, rows->ids, features * sizeof *model->ids);
  *model_out = model;
  return PAWL_OK;
}

void pawl_mlr_model_destroy(struct pawl_mlr_model *model) {
  if (!model) return;
  mlr_matrix_fini(&model->matrix);
  apps_free(model->ids);
  apps_names_fini(&model->labels);
  apps_free(model);
}

void pawl_mlr_model_about(const struct pawl_mlr_model *model, struct pawl_mlr_about *about_out) {
  *about_out = model->about;
}

const char *pawl_mlr_model_label(const struct pawl_mlr_model *model, uint32_t class_number) {
  return apps_names_get(&model->labels, class_number);
}

const uint64_t *pawl_mlr_model_ids(const struct pawl_mlr_model *model) { return model->ids; }

const double *pawl_mlr_model_weights(const struct pawl_mlr_model *model) { return model->matrix.at; }

const char *pawl_mlr_method_name(enum pawl_mlr_method method) { return method == PAWL_MLR_SGD ? "sgd" : "sdca"; }

bool mlr_model_is_finite(const struct pawl_mlr_model *model) {
  for (size_t i = 0; i < mlr_matrix_size(&model->matrix); i++)
    if (!isfinite(model->matrix.at[i])) return false;
  return isfinite(model->matrix.factor);
}

/* --- prediction ------------------------------------------------------------------------------------------- */

static pawl_status predict(const struct pawl_mlr_model *model, const struct mlr_view *view, uint32_t threads,
                           const struct mlr_outputs *outputs, struct pawl_mlr_score *score_out) {
  struct apps_crew *crew;
  pawl_status status = apps_crew_create(threads, &crew);
  if (status) return status;
  if (outputs->confusion)
    memset(outputs->confusion, 0, (size_t)model->about.classes * model->about.classes * sizeof *outputs->confusion);
  (void)apps_blas_threads(1); /* the crew has threads of its own */
  status = mlr_evaluate(&model->matrix, view, crew, threads, outputs, score_out);
  apps_crew_destroy(crew);
  return status;
}

pawl_status pawl_mlr_predict(const struct pawl_mlr_model *model, const struct pawl_mlr_rows *rows, uint32_t threads,
                             uint32_t *classes_out, double *probabilities_out, uint64_t *confusion_out,
                             struct pawl_mlr_score *score_out, char error[PAWL_MLR_TEXT]) {
  const struct pawl_mlr_about *about = &model->about;
  const struct mlr_outputs outputs = {classes_out, probabilities_out, confusion_out};
  struct mlr_view view;
  uint32_t crew = threads ? threads : apps_crew_processors();
  pawl_status status = mlr_view_init(&view, rows, model->ids, about->features, about->is_images, &model->labels, error);
  if (!status) {
    status = predict(model, &view, crew, &outputs, score_out);
    if (status) apps_say(error, status, "no memory to predict rows of %u classes", (unsigned)about->classes);
  }
  mlr_view_fini(&view);
  return status;
}
