/* Held-out perplexity by document completion: see <pawl/lda.h>.
 *
 * The half of each token is drawn from a generator seeded with the seed and the document's words and counts.
 * So the same documents are split in the same way, in any order and pieces. For the same reason logarithms
 * are summed as integers of 2^-20: the order does not matter.
 */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

#include <pawl/session.h>

#include "apps/common/sized.h"
#include "apps/lda/fold.h"
#include "apps/lda/model_inside.h"
#include "apps/common/model_file.h"

#define ALPHA 0.1
#define UNIT 1048576.0 /* unit of a logarithm; no corpus reaches 2^63 of them */
#define LEAST 1e-300   /* lower bound of probabilities */

struct scoring {
  const struct pawl_lda_model *model;
  const struct pawl_lda_folding *folding;
  const struct pawl_batch *batch; /* the batch that is being scored */
  _Atomic int64_t sum;
  _Atomic uint64_t documents, tokens, unknown, empty;
  _Atomic bool is_uncountable; /* a value is not a count */
};

/* --- halves --------------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele et al., OOPSLA 2014). */
static uint64_t draw(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static uint64_t begin_of(const struct pawl_batch *batch, size_t row, uint64_t seed) {
  uint64_t state = seed;
  for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
    float value = batch->values ? batch->values[i] : 1;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    state ^= batch->ids[i] << 32 ^ batch->ids[i] >> 32 ^ bits;
    state = draw(&state);
  }
  return state;
}

/* The number of tokens that go to the first half, each with probability 1/2. */
static uint32_t toss(uint64_t *state, uint32_t count) {
  uint32_t heads = 0;
  for (; count >= 64; count -= 64) heads += (uint32_t)__builtin_popcountll(draw(state));
  if (count > 0) heads += (uint32_t)__builtin_popcountll(draw(state) >> (64 - count));
  return heads;
}

/* --- documents ------------------------------------------------------------------------------------------ */

struct document_sums {
  int64_t sum;
  uint64_t tokens, unknown, empty;
};

static bool is_count(float value) { return value >= 0 && value <= PAWL_COUNT_MAX && value == floorf(value); }

/* Folds in the first half. `*known_out` is false if none of its words is known. */
static pawl_status fold_half(struct scoring *scoring, struct lda_fold *fold, size_t row, struct document_sums *sums,
                             bool *known_out) {
  const struct pawl_batch *batch = scoring->batch;
  uint64_t state = begin_of(batch, row, scoring->folding->seed), word;
  float count;
  lda_fold_clear(fold);
  for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
    bool is_known = lda_entry(batch, i, scoring->model->about.words, &word, &count);
    if (!is_count(count)) {
      atomic_store(&scoring->is_uncountable, true);
      return PAWL_INVALID;
    }
    if (!is_known) sums->unknown += (uint64_t)count;
    uint32_t heads = is_known ? toss(&state, (uint32_t)count) : 0;
    if (is_known) *known_out = true;
    pawl_status status = heads > 0 ? lda_fold_add(fold, word, (float)heads) : PAWL_OK;
    if (status) return status;
  }
  lda_fold_run(fold, NULL);
  return PAWL_OK;
}

/* Scores the second half, with the same random numbers. */
static void score_half(const struct scoring *scoring, const struct lda_fold *fold, size_t row,
                       struct document_sums *sums) {
  const struct pawl_batch *batch = scoring->batch;
  uint64_t state = begin_of(batch, row, scoring->folding->seed), word;
  double sum = 0;
  float count;
  for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
    if (!lda_entry(batch, i, scoring->model->about.words, &word, &count)) continue;
    uint32_t tails = (uint32_t)count - toss(&state, (uint32_t)count);
    if (tails > 0) sum += tails * log(fmax(lda_fold_probability(fold, word), LEAST));
    sums->tokens += tails;
  }
  sums->sum += llround(sum * UNIT);
}

static pawl_status score_some(void *context, struct lda_fold *fold, size_t begin, size_t end) {
  struct scoring *scoring = context;
  struct document_sums sums = {0};
  for (size_t row = begin; row < end; row++) {
    bool is_known = false;
    pawl_status status = fold_half(scoring, fold, row, &sums, &is_known);
    if (status) return status;
    if (is_known)
      score_half(scoring, fold, row, &sums);
    else
      sums.empty++;
  }
  atomic_fetch_add(&scoring->sum, sums.sum);
  atomic_fetch_add(&scoring->tokens, sums.tokens);
  atomic_fetch_add(&scoring->unknown, sums.unknown);
  atomic_fetch_add(&scoring->empty, sums.empty);
  return PAWL_OK;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static pawl_status take(void *context, size_t piece, struct pawl_batch *batch) {
  struct scoring *scoring = context;
  const struct pawl_lda_folding *folding = scoring->folding;
  (void)piece;
  scoring->batch = batch;
  scoring->documents += batch->rows;
  scoring->unknown += batch->unknown;
  pawl_status status = lda_fold_crew(scoring->model, folding->alpha > 0 ? folding->alpha : ALPHA, folding->iterations,
                                     folding->threads, batch->rows, score_some, scoring);
  pawl_batch_destroy(batch);
  return status;
}

static pawl_status explain(const struct scoring *scoring, pawl_status status, char *error) {
  const char *text = pawl_error_text();
  if (atomic_load(&scoring->is_uncountable))
    return apps_say(error, PAWL_INVALID,
                    "the data does not have documents: a value is not a count (a whole number, at least 0)");
  return apps_say(error, status, "%s", text[0] ? text : pawl_status_text(status));
}

pawl_status pawl_lda_perplexity(const struct pawl_lda_model *model, struct pawl_data *data,
                                const struct pawl_lda_folding *folding, struct pawl_lda_score *score_out,
                                char error[PAWL_LDA_TEXT]) {
  struct pawl_lda_folding is;
  struct pawl_data_info info;
  pawl_lda_folding_init(&is);
  struct scoring scoring = {.model = model, .folding = &is};
  if (folding && !apps_sized_read(folding, &is, sizeof is))
    return apps_say(error, PAWL_INVALID, "folding was not initialised with pawl_lda_folding_init");
  if (!(is.alpha >= 0) || !isfinite(is.alpha)) return apps_say(error, PAWL_INVALID, "alpha must be a number above 0");
  pawl_data_info(data, &info);
  pawl_status status = pawl_data_read_all(data, 0, info.pieces, 1, take, &scoring);
  if (status) return explain(&scoring, status, error);
  if (scoring.tokens == 0)
    return apps_say(error, PAWL_INVALID, "nothing to score: %" PRIu64 " documents without a known word",
                    (uint64_t)scoring.empty);
  double sum = (double)scoring.sum / UNIT;
  *score_out = (struct pawl_lda_score){
      .perplexity = exp(-sum / (double)scoring.tokens),
      .log_likelihood = sum,
      .documents = scoring.documents,
      .tokens = scoring.tokens,
      .unknown = scoring.unknown,
      .empty = scoring.empty,
  };
  return PAWL_OK;
}
