/* The topics of documents: see <pawl/lda.h>. */
#include <math.h>
#include <stdatomic.h>

#include "apps/common/sized.h"
#include "apps/lda/fold.h"
#include "apps/lda/model_inside.h"

#define UNKNOWN_MAX 1e15 /* rows need not be counts; caps absurd sums */

void pawl_lda_folding_init_sized(struct pawl_lda_folding *folding, size_t struct_size) {
  const struct pawl_lda_folding defaults = {.iterations = LDA_FOLD_ITERATIONS, .seed = 1};
  apps_sized_init(folding, struct_size, &defaults, sizeof defaults);
}

struct inference {
  const struct pawl_lda_model *model;
  const struct pawl_batch *batch;
  float *theta;
  _Atomic uint64_t unknown;
};

static pawl_status infer_one(struct inference *inference, struct lda_fold *fold, size_t row, double *unknown) {
  const struct pawl_batch *batch = inference->batch;
  uint64_t word;
  float count;
  lda_fold_clear(fold);
  for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
    pawl_status status = PAWL_OK;
    if (lda_entry(batch, i, inference->model->about.words, &word, &count))
      status = lda_fold_add(fold, word, count);
    else if (count > 0)
      *unknown += (double)count;
    if (status) return status;
  }
  lda_fold_run(fold, inference->theta + row * inference->model->about.topics);
  return PAWL_OK;
}

static pawl_status infer_some(void *context, struct lda_fold *fold, size_t begin, size_t end) {
  struct inference *inference = context;
  double unknown = 0;
  for (size_t row = begin; row < end; row++) {
    pawl_status status = infer_one(inference, fold, row, &unknown);
    if (status) return status;
  }
  atomic_fetch_add(&inference->unknown, (uint64_t)fmin(unknown, UNKNOWN_MAX));
  return PAWL_OK;
}

pawl_status pawl_lda_infer(const struct pawl_lda_model *model, const struct pawl_batch *batch,
                           const struct pawl_lda_folding *folding, float *theta_out, uint64_t *unknown_out) {
  struct pawl_lda_folding is;
  struct inference inference = {.model = model, .batch = batch, .theta = theta_out};
  pawl_lda_folding_init(&is);
  if (folding && !apps_sized_read(folding, &is, sizeof is)) return PAWL_INVALID;
  pawl_status status = lda_fold_crew(model, is.alpha, is.iterations, is.threads, batch->rows, infer_some, &inference);
  if (status == PAWL_OK && unknown_out) *unknown_out = atomic_load(&inference.unknown) + batch->unknown;
  return status;
}
