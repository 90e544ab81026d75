/* Reads the model from the servers, checks that its counts are exact, and measures its quality. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/errors.h"
#include "apps/lda/marks.h"
#include "apps/lda/train_inside.h"

enum { PULL_BYTES = 4 << 20 };
#define WEIGHT_LEAST 0.01 /* relative to beta */

static pawl_status pull_rows(struct lda_training *run, uint64_t begin, uint64_t end, void *rows) {
  struct pawl_task *task;
  pawl_status status = pawl_vector_pull(run->vector, pawl_at_range(begin, end), rows, &task);
  return status ? status : pawl_task_finish(task, PAWL_FOREVER);
}

static size_t row_width(const struct lda_training *run) {
  return run->spec.topics + (run->spec.method == PAWL_LDA_SVI ? 0 : lda_marks_columns(run->spec.pieces));
}

pawl_status lda_pull_totals(struct lda_training *run, int32_t *totals) {
  int32_t *row = apps_alloc(row_width(run) * sizeof *row);
  if (!row) return PAWL_NO_MEMORY;
  pawl_status status = pull_rows(run, run->order.words, run->order.words + 1, row);
  if (!status) memcpy(totals, row, run->spec.topics * sizeof *totals);
  apps_free(row);
  return status;
}

/* Leaves out weights that are tiny beside beta: most words have in most topics only a remainder of their
 * initial weight. */
static pawl_status set_weights(struct lda_training *run, struct pawl_lda_model *model, uint64_t word, float *weights) {
  float least = (float)(WEIGHT_LEAST * run->order.beta);
  for (uint32_t k = 0; k < run->spec.topics; k++)
    if (weights[k] < least) weights[k] = 0;
  return pawl_lda_model_set(model, word, weights);
}

/* Copies one row into the model, and counts its tokens. */
static pawl_status set_row(struct lda_training *run, struct pawl_lda_model *model, uint64_t word, void *row,
                           int64_t *sum_out) {
  const int32_t *counts = row;
  int64_t sum = 0;
  *sum_out = 0;
  if (run->spec.method == PAWL_LDA_SVI) return set_weights(run, model, word, row);
  for (uint32_t k = 0; k < run->spec.topics; k++) {
    if (counts[k] < 0)
      return apps_fail(&run->common, PAWL_CORRUPT, "word %llu has %d tokens of topic %u; a count has overflowed 2^31",
                       (unsigned long long)word, counts[k], k);
    sum += counts[k];
  }
  *sum_out = sum;
  return sum > 0 ? pawl_lda_model_set_counts(model, word, counts) : PAWL_OK;
}

static pawl_status fill(struct lda_training *run, struct pawl_lda_model *model, int64_t *sums) {
  size_t row_bytes = row_width(run) * 4, rows = PULL_BYTES / row_bytes + 1;
  char *room = apps_alloc(rows * row_bytes);
  pawl_status status = room ? PAWL_OK : PAWL_NO_MEMORY;
  for (uint64_t begin = 0; begin < run->order.words && !status; begin += rows) {
    uint64_t end = run->order.words - begin < rows ? run->order.words : begin + rows;
    status = pull_rows(run, begin, end, room);
    for (uint64_t word = begin; word < end && !status; word++) {
      int64_t sum;
      status = set_row(run, model, word, room + (word - begin) * row_bytes, &sum);
      if (sums) sums[word] = sum;
    }
  }
  apps_free(room);
  return status;
}

pawl_status lda_read_model(struct lda_training *run, int64_t *sums, struct pawl_lda_model **model_out) {
  struct pawl_lda_model *model = NULL;
  struct pawl_lda_about about = {.method = run->spec.method,
                                 .topics = run->spec.topics,
                                 .words = run->order.words,
                                 .beta = run->order.beta,
                                 .sweeps = run->order.sweep,
                                 .documents = run->order.documents,
                                 .tokens = run->order.tokens,
                                 .log_likelihood = run->progress.log_likelihood * (double)run->order.tokens};
  pawl_status status = pawl_lda_model_create(&about, run->order.alpha, run->vocabulary, &model);
  if (!status) status = fill(run, model, sums);
  if (status) {
    pawl_lda_model_destroy(model);
    return apps_fail(&run->common, status, "cannot read the model from the servers: %s", apps_error_text(status));
  }
  *model_out = model;
  return PAWL_OK;
}

/* --- exactness ------------------------------------------------------------------------------------------ */

struct census {
  int64_t *counts;
  uint64_t words;
};

static pawl_status count_batch(void *context, size_t piece, struct pawl_batch *batch) {
  struct census *census = context;
  (void)piece;
  for (size_t i = 0; i < batch->entries; i++)
    if (batch->ids[i] - 1 < census->words)
      census->counts[batch->ids[i] - 1] += batch->values ? (int64_t)batch->values[i] : 1;
  pawl_batch_destroy(batch);
  return PAWL_OK;
}

pawl_status lda_check_counts(struct lda_training *run, const int64_t *sums) {
  struct census census = {apps_alloc_zero(run->order.words + 1, sizeof *census.counts), run->order.words};
  struct pawl_data_info info;
  uint64_t wrong = 0, first = 0;
  if (!census.counts) return PAWL_NO_MEMORY;
  pawl_data_info(run->data, &info);
  pawl_status status = pawl_data_read_all(run->data, 0, info.pieces, 0, count_batch, &census);
  for (uint64_t word = 0; word < run->order.words && !status; word++) {
    if (census.counts[word] == sums[word]) continue;
    if (wrong++ == 0) first = word;
  }
  if (!status && wrong > 0)
    status = apps_fail(&run->common, PAWL_CORRUPT,
                       "the counts of %llu words are wrong; the first is word %llu, with %lld tokens in the corpus but "
                       "%lld in the model",
                       (unsigned long long)wrong, (unsigned long long)first, (long long)census.counts[first],
                       (long long)sums[first]);
  if (!status) run->result.is_exact = true;
  apps_free(census.counts);
  return status;
}

/* --- quality -------------------------------------------------------------------------------------------- */

pawl_status lda_evaluate(struct lda_training *run, const struct pawl_lda_model *model) {
  struct pawl_lda_folding folding;
  struct pawl_lda_score score;
  if (!run->heldout) return PAWL_OK;
  pawl_lda_folding_init(&folding);
  pawl_status status = pawl_lda_perplexity(model, run->heldout, &folding, &score, run->common.error);
  if (!status) run->progress.perplexity = run->result.perplexity = score.perplexity;
  return status;
}

/* --- alpha and beta ------------------------------------------------------------------------------------- */

/* Minka 2000, "Estimating a Dirichlet distribution", (55): each alpha_k is scaled by the ratio of a sum over
 * the documents with topic k to a sum over all documents. */
void lda_optimise(struct lda_order *order, const struct lda_reply *sum, const int32_t *totals) {
  double beta_sum = order->beta * (double)order->words, below = 0;
  if (sum->alpha_length > 0)
    for (size_t k = 0; k < order->alpha_count && k < sum->alpha_count; k++) {
      double alpha = order->alpha[k] * sum->alpha_sums[k] / sum->alpha_length;
      order->alpha[k] = isfinite(alpha) ? fmin(fmax(alpha, 1e-5), 1e3) : order->alpha[k];
    }
  for (size_t k = 0; k < order->alpha_count; k++)
    if (totals[k] > 0) below += lda_digamma_rise(beta_sum, (uint64_t)totals[k]);
  double beta = order->beta * sum->beta_sum / (below * (double)order->words);
  if (below > 0 && isfinite(beta)) order->beta = fmin(fmax(beta, 1e-5), 10);
}
