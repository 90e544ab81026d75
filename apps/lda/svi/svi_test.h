/* A plain serial form of stochastic variational inference, in doubles, to compare with: lambda itself, all of
 * it at every step. */
#ifndef APPS_LDA_SVI_SVI_TEST_H
#define APPS_LDA_SVI_SVI_TEST_H

#include <math.h>

#include <pawl/pawl.h>

#include "base/testing.h"
#include "apps/lda/svi/step.h"

enum { REFERENCE_TOPICS = 64 };

struct reference {
  uint32_t topics;
  uint64_t words;
  double alpha, beta;
  double *lambda; /* words * topics */
};

static inline double digamma_of(double x) {
  double sum = 0;
  for (; x < 20; x++) sum -= 1 / x;
  double square = 1 / (x * x);
  return sum + log(x) - 0.5 / x - square * (1.0 / 12 - square * (1.0 / 120 - square / 252));
}

static inline void reference_init(struct reference *reference, uint64_t seed) {
  float weights[REFERENCE_TOPICS];
  assert_in_range(reference->topics, 1, REFERENCE_TOPICS);
  reference->lambda = calloc(reference->words * reference->topics, sizeof *reference->lambda);
  assert_non_null(reference->lambda);
  for (uint64_t w = 0; w < reference->words; w++) {
    lda_svi_first(seed, w, reference->topics, weights);
    for (uint32_t k = 0; k < reference->topics; k++)
      reference->lambda[w * reference->topics + k] = (double)weights[k] + reference->beta;
  }
}

static inline void reference_fini(struct reference *reference) { free(reference->lambda); }

static inline double count_at(const struct pawl_batch *batch, uint64_t entry) {
  return batch->values ? (double)batch->values[entry] : 1;
}

/* exp(E log beta) of all words. */
static inline double *reference_betas(const struct reference *reference) {
  uint32_t topics = reference->topics;
  double *betas = calloc(reference->words * topics, sizeof *betas);
  assert_non_null(betas);
  for (uint32_t k = 0; k < topics; k++) {
    double total = 0;
    for (uint64_t w = 0; w < reference->words; w++) total += reference->lambda[w * topics + k];
    for (uint64_t w = 0; w < reference->words; w++)
      betas[w * topics + k] = exp(digamma_of(reference->lambda[w * topics + k]) - digamma_of(total));
  }
  return betas;
}

/* n / sum_k theta beta of one entry. */
static inline double ratio_of(const struct pawl_batch *batch, uint64_t entry, uint32_t topics, const double *betas,
                              const double *theta) {
  double sum = 1e-100;
  for (uint32_t k = 0; k < topics; k++) sum += theta[k] * betas[(batch->ids[entry] - 1) * topics + k];
  return count_at(batch, entry) / sum;
}

/* exp(E log theta) of a document. */
static inline void reference_theta(const struct reference *reference, const struct pawl_batch *batch, size_t row,
                                   const double *betas, double *theta) {
  uint32_t topics = reference->topics;
  double gamma[REFERENCE_TOPICS], sums[REFERENCE_TOPICS], tokens = 0, moved = 1e9;
  for (uint64_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) tokens += count_at(batch, i);
  for (uint32_t k = 0; k < topics; k++) gamma[k] = reference->alpha + tokens / topics;
  for (int turn = 0; turn < 30 && moved >= 1e-3 * topics; turn++) {
    for (uint32_t k = 0; k < topics; k++) theta[k] = exp(digamma_of(gamma[k]));
    memset(sums, 0, sizeof sums);
    for (uint64_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
      double ratio = ratio_of(batch, i, topics, betas, theta);
      for (uint32_t k = 0; k < topics; k++) sums[k] += ratio * betas[(batch->ids[i] - 1) * topics + k];
    }
    moved = 0;
    for (uint32_t k = 0; k < topics; k++) {
      double to = reference->alpha + theta[k] * sums[k];
      moved += fabs(to - gamma[k]);
      gamma[k] = to;
    }
  }
  for (uint32_t k = 0; k < topics; k++) theta[k] = exp(digamma_of(gamma[k]));
}

/* A step with rows [begin, end) of the batch, of a corpus of so many documents. */
static inline void reference_step(struct reference *reference, const struct pawl_batch *batch, size_t begin, size_t end,
                                  double documents, double rho) {
  uint32_t topics = reference->topics;
  double *betas = reference_betas(reference), theta[REFERENCE_TOPICS];
  for (uint64_t i = 0; i < reference->words * topics; i++)
    reference->lambda[i] = (1 - rho) * reference->lambda[i] + rho * reference->beta;
  for (size_t row = begin; row < end; row++) {
    if (batch->starts[row] == batch->starts[row + 1]) continue;
    reference_theta(reference, batch, row, betas, theta);
    for (uint64_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
      double by = rho * documents / (double)(end - begin) * ratio_of(batch, i, topics, betas, theta);
      for (uint32_t k = 0; k < topics; k++) {
        uint64_t at = (batch->ids[i] - 1) * topics + k;
        reference->lambda[at] += by * theta[k] * betas[at];
      }
    }
  }
  free(betas);
}

/* Weights of a word are those of the reference, but for so much of them. */
static inline void check_weights(const struct reference *reference, uint64_t word, const double *weights,
                                 double within) {
  for (uint32_t k = 0; k < reference->topics; k++) {
    double is = reference->lambda[word * reference->topics + k] - reference->beta;
    if (!(fabs(weights[k] - is) <= within * (fabs(is) + 1)))
      fail_msg("word %llu, topic %u: %.9g instead of %.9g", (unsigned long long)word, k, weights[k], is);
  }
}

#endif
