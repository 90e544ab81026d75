/* Stochastic variational inference (Hoffman, Blei, Wang, Paisley 2013; of topic models: Hoffman, Blei, Bach
 * 2010), the mathematics.
 *
 * Topic k is believed to be Dirichlet(lambda_k), document d's topics Dirichlet(gamma_d). Given lambda, gamma
 * of each document of a batch S is found by itself, by turns of
 *
 *   p_dwk   ~  exp(psi(gamma_dk)) exp(psi(lambda_wk) - psi(sum_w lambda_wk))   that a token of w is of topic k
 *   gamma_dk = alpha_k + sum_w n_dw p_dwk
 *
 * and then lambda takes a step towards what it would be if all D documents were like those of the batch:
 *
 *   lambda_wk <- (1 - rho_t) lambda_wk + rho_t (beta + D/|S| sum_(d in S) n_dw p_dwk),   rho_t = (offset + t)^-kappa
 *
 * What is kept are *weights*, lambda less beta, for which the step is the same without beta.
 *
 * SCALE. The first term touches every word. So weights are kept as s mu, where the scale s = product of (1 -
 * rho_i) over the steps since the *base* is a function of t alone, which nobody has to store; a step then
 * adds rho_t D/|S| / s_t times the sum to mu of the batch's own words. Additions can be in any order. When s
 * has become small mu is scaled for good, and the base is t.
 */
#ifndef APPS_LDA_SVI_STEP_H
#define APPS_LDA_SVI_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

/* --- steps ---------------------------------------------------------------------------------------------- */

struct lda_svi_rate {
  double kappa, offset;
};

/* rho of step t = 1, 2, …; never above 0.9, since a step that forgets all cannot be written as a scale. */
double lda_svi_rho(const struct lda_svi_rate *rate, uint64_t t);

/* How much steps from + 1 … to decay what was there before: -log of the product of (1 - rho). */
double lda_svi_decay(const struct lda_svi_rate *rate, uint64_t from, uint64_t to);

/* The weights that a word begins with: about Gamma(100, 1/100), by which topics differ from the start. */
void lda_svi_first(uint64_t seed, uint64_t word, uint32_t topics, float *weights_out);

/* exp(psi(x)) of a positive x, to about 1e-6 for an x above 0.1; what is below 1e-34 is of no account and not
 * to be relied on. */
float lda_exp_digamma(float x);

/* --- batches -------------------------------------------------------------------------------------------- */

/* Documents, and from lda_svi_batch_index on their words as rows of a matrix. Zeros are an empty batch. */
struct lda_svi_batch {
  size_t documents, entries, rows;
  uint64_t tokens;
  uint64_t *starts; /* documents + 1: the entries of each */
  uint32_t *words;  /* entries: the word; once indexed, its row */
  float *counts;    /* entries */
  uint64_t *
      /* rows: words, which rise; then one more, the number of words of the vocabulary, whose row has the
       * totals */
      keys;
  uint64_t *row_starts;           /* rows + 1: the entries of each row, in */
  uint32_t *row_entries, *row_in; /* entries: which, and of which document */
  size_t document_room, entry_room, row_room, index_room;
  uint32_t *index; /* words: row of each, for those that are there */
  uint64_t *marks; /* a bit for each word: zeros between batches */
  uint64_t words_room;
};

void lda_svi_batch_fini(struct lda_svi_batch *batch);
void lda_svi_batch_clear(struct lda_svi_batch *batch); /* keeps the memory */

/* Adds a row of `from`, whose words and counts have been looked at before. A document without words counts
 * too. */
pawl_status lda_svi_batch_add(struct lda_svi_batch *batch, const struct pawl_batch *from, size_t row);

/* Numbers the words. PAWL_MISMATCH: one is beyond `words`; PAWL_TOO_LARGE: 2^32 entries. */
pawl_status lda_svi_batch_index(struct lda_svi_batch *batch, uint64_t words);

/* --- a step --------------------------------------------------------------------------------------------- */

struct lda_svi_step {
  uint32_t topics, threads;
  uint64_t words; /* of the vocabulary */
  double beta;
  const double *alpha; /* topics */
  double scale;        /* s, when the rows were read */
  double by;           /* what sums are multiplied by to become changes of mu */

  /* Its own, from one batch to the next. */
  size_t stride;  /* topics, and zeros up to a multiple of the lanes */
  float *own;     /* alpha and what all documents share, then of each thread */
  float *betas;   /* batch rows of exp(E log beta) */
  float *thetas;  /* batch documents of exp(E log theta), each up to a factor */
  float *ratios;  /* batch entries: n_dw / sum_k theta beta */
  double *logs;   /* batch documents */
  size_t longest; /* different words of a document of the batch */
  size_t own_room, beta_room, theta_room, ratio_room, log_room;
};

void lda_svi_step_fini(struct lda_svi_step *step);

/* What `rows` of mu, those of the batch's keys and at the end the totals', are to change by. `log_out`: the
 * sum over tokens of log(theta_d . phi_w), before the change. The result does not depend on the number of
 * threads. PAWL_NO_MEMORY. */
pawl_status lda_svi_step_run(struct lda_svi_step *step, const struct lda_svi_batch *batch, const float *rows,
                             float *changes_out, double *log_out);

#endif
