/* The sampler: collapsed Gibbs sampling by Metropolis-Hastings, with a cost per token that does not depend on the
 * number of topics.
 *
 * The topic of a token is drawn from (all counts without the token itself)
 *
 *   p(k)  ~  (n_dk + alpha_k) (n_wk + beta) / (n_k + V beta)
 *
 * A Metropolis-Hastings step proposes a topic from some q, and accepts t in place of s with probability
 * min(1, p(t) q(s) / (p(s) q(t))). Two kinds of proposals alternate (Yuan et al., LightLDA, 2015):
 *
 *   q_word(k) ~ n_wk + beta       p q becomes  (n_dt + alpha_t) / (n_ds + alpha_s) * (n_s + V beta) / (n_t + V beta)
 *   q_doc(k)  ~ n_dk + alpha_k    p q becomes  (n_wt + beta) / (n_ws + beta) * (n_s + V beta) / (n_t + V beta)
 *
 * The first needs only the counts of the document, the second only those of the word. So a sweep has two phases
 * (Chen et al., WarpLDA, VLDB 2016). One goes through the documents, accepts the proposals by words and proposes by
 * documents; the other goes through the words, accepts these and proposes by words. Each phase has its counts in the
 * fastest cache. The second visits the rows of the table in order and once each, which suits a parameter server, so
 * a worker need not keep any of the table. n_k is that of the start of the sweep.
 *
 * A token is a *pair*: its topic in the lower 16 bits, the proposed topic in the upper. The functions have no state
 * and touch only their arguments: any number of threads may work on different documents, or different words.
 */
#ifndef LDA_SAMPLE_H
#define LDA_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/lda/urn.h"

/* LDA_NONE is not a topic: it marks a token that is not counted yet. The upper bits then have its future
 * topic, or LDA_NONE. */
#define LDA_NONE 0xffffu

static inline uint32_t lda_pair(uint32_t topic, uint32_t proposed) { return topic | proposed << 16; }
static inline uint32_t lda_topic(uint32_t pair) { return pair & 0xffff; }
static inline uint32_t lda_proposed(uint32_t pair) { return pair >> 16; }

/* The prior of a topic; its two numbers are used together and so stored together. */
struct lda_prior {
  float alpha, inverse;
};

/* The state that all threads read in a sweep. */
struct lda_sampler {
  uint32_t topics;
  uint64_t words, seed, sweep;
  double beta, alpha_sum;
  double *alpha;            /* topics */
  float *inverse;           /* 1 / (n_k + V beta) */
  struct lda_prior *priors; /* alpha and inverse side by side */
  struct lda_alias prior;   /* draws a topic with probability proportional to alpha */
  bool is_even;             /* all alphas are equal */
  bool measures, optimises; /* whether to compute the tally */
};

bool lda_sampler_init(struct lda_sampler *sampler, uint32_t topics); /* false: no memory */
void lda_sampler_fini(struct lda_sampler *sampler);
/* alpha and beta must be set; `totals` are n_k. */
void lda_sampler_prepare(struct lda_sampler *sampler, const int32_t *totals);

/* The sums of one thread. If several workers have tokens of a word, each adds a part in proportion to its
 * tokens. */
struct lda_tally {
  double document_part, word_part; /* of log p(w, z) */
  /* sum over documents of digamma(n_dk + alpha_k) - digamma(alpha_k), by topic */
  double *alpha_sums;
  double alpha_length; /* of digamma(n_d + alpha_sum) - digamma(alpha_sum) */
  double beta_sum;     /* over words and topics, of digamma(n_wk + beta) - digamma(beta) */
};

/* The scratch memory of one thread. */
struct lda_scratch {
  float *counts; /* topics; zeros between documents */
  uint32_t *pairs;
  uint16_t *topics;
  size_t room; /* tokens of a document for which both arrays have room */
  struct lda_urn urn;
  struct lda_tally tally;
};

bool lda_scratch_init(struct lda_scratch *scratch, uint32_t topics, size_t longest); /* false: no memory */
void lda_scratch_fini(struct lda_scratch *scratch);
void lda_tally_clear(struct lda_tally *tally, uint32_t topics);
void lda_tally_add(struct lda_tally *sum, const struct lda_tally *tally, uint32_t topics);

/* Samples a document. Its tokens are pairs[at[0]] … pairs[at[count - 1]]; all must have a topic. `name`
 * selects its random numbers. */
void lda_sample_document(const struct lda_sampler *sampler, struct lda_scratch *scratch, uint64_t name, uint32_t *pairs,
                         const uint32_t *at, uint32_t count);

/* The tokens of a word in one piece, stored consecutively. `counted` are the topics that the row has counted
 * for them. */
struct lda_span {
  uint32_t *pairs;
  uint16_t *counted;
  uint32_t count;
};

/* Samples a word. `row` has its counts from the servers, and on return the counts after the push. Updates
 * `counted`. */
void lda_sample_word(const struct lda_sampler *sampler, struct lda_scratch *scratch, uint64_t word,
                     const struct lda_span *spans, size_t span_count, int32_t *row);

/* log Gamma(x + n) - log Gamma(x), and the same of digamma, for n whole. */
double lda_log_rising(double x, uint64_t n);
double lda_digamma_rise(double x, uint64_t n);

/* The part of log p(w, z) that belongs to no word and no document: -sum_k lda_log_rising(V beta, n_k). */
double lda_totals_part(const struct lda_sampler *sampler, const int32_t *totals);

#endif
