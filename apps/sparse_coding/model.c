/* A model in memory, and the codes of rows. */
#include "apps/sparse_coding/model.h"

#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/sparse_coding/encode.h"

#define CODE_TOLERANCE 1e-6 /* of the gap of a code, relative to its part of the objective */

pawl_status sparse_model_create(const struct pawl_sparse_about *about, struct pawl_sparse_model **model_out) {
  if (about->features >= SIZE_MAX / sizeof(double) / about->atoms) return PAWL_TOO_LARGE;
  struct pawl_sparse_model *model = apps_alloc_zero(1, sizeof *model);
  if (!model) return PAWL_NO_MEMORY;
  model->about = *about;
  model->ids = apps_alloc_zero((size_t)about->features + 1, sizeof *model->ids);
  model->atoms = apps_alloc_zero(sparse_model_size(model) + 1, sizeof *model->atoms);
  model->uses = apps_alloc_zero(about->atoms, sizeof *model->uses);
  if (model->ids && model->atoms && model->uses) {
    *model_out = model;
    return PAWL_OK;
  }
  pawl_sparse_model_destroy(model);
  return PAWL_NO_MEMORY;
}

void pawl_sparse_model_destroy(struct pawl_sparse_model *model) {
  if (!model) return;
  apps_free(model->ids);
  apps_free(model->atoms);
  apps_free(model->uses);
  apps_free(model);
}

void pawl_sparse_model_about(const struct pawl_sparse_model *model, struct pawl_sparse_about *about_out) {
  *about_out = model->about;
}

const uint64_t *pawl_sparse_model_ids(const struct pawl_sparse_model *model) { return model->ids; }
const double *pawl_sparse_model_atoms(const struct pawl_sparse_model *model) { return model->atoms; }
const uint64_t *pawl_sparse_model_uses(const struct pawl_sparse_model *model) { return model->uses; }

/* --- codes ------------------------------------------------------------------------------------------------ */

static pawl_status encode(const struct pawl_sparse_model *model, const struct sparse_view *view, uint32_t threads,
                          const struct sparse_outputs *outputs, struct pawl_sparse_score *score_out) {
  struct sparse_dictionary dictionary;
  struct sparse_encoder encoder = {.threads = 0};
  pawl_status status = sparse_dictionary_init(&dictionary, model->about.atoms, (size_t)model->about.features);
  if (!status) {
    memcpy(dictionary.at, model->atoms, sparse_model_size(model) * sizeof *dictionary.at);
    sparse_dictionary_refresh(&dictionary);
    status = sparse_encoder_init(&encoder, &dictionary, model->about.lambda, CODE_TOLERANCE, threads);
  }
  if (!status) status = sparse_encoder_all(&encoder, view, outputs, score_out);
  sparse_encoder_fini(&encoder);
  sparse_dictionary_fini(&dictionary);
  return status;
}

pawl_status pawl_sparse_encode(const struct pawl_sparse_model *model, const struct pawl_sparse_rows *rows,
                               uint32_t threads, bool (*take)(void *context, const struct pawl_sparse_code *code),
                               void *context, struct pawl_sparse_score *score_out, char error[PAWL_SPARSE_TEXT]) {
  const struct sparse_outputs outputs = {.take = take, .context = context};
  struct sparse_view view;
  pawl_status status = sparse_view_init(&view, rows, model->ids, &model->about, error);
  if (!status) {
    status = encode(model, &view, threads ? threads : apps_crew_processors(), &outputs, score_out);
    if (status)
      apps_say(error, status, status == PAWL_CANCELLED ? "the caller wants no more codes" : "no memory to code rows");
  }
  sparse_view_fini(&view);
  return status;
}
