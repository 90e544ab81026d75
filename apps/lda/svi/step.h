/* The mathematics of stochastic variational inference (Hoffman, Blei, Wang, Paisley 2013; for topic models: Hoffman,
 * Blei, Bach 2010).
 *
 * Topic k has the distribution Dirichlet(lambda_k), the topics of document d have Dirichlet(gamma_d). Given lambda,
 * gamma of each document of a batch S is found separately, by iterating
 *
 *   p_dwk   ~  exp(psi(gamma_dk)) exp(psi(lambda_wk) - psi(sum_w lambda_wk))   that a token of w is of topic k
 *   gamma_dk = alpha_k + sum_w n_dw p_dwk
 *
 * Then lambda takes a step towards its value if all D documents were like those of the batch:
 *
 *   lambda_wk <- (1 - rho_t) lambda_wk + rho_t (beta + D/|S| sum_(d in S) n_dw p_dwk),   rho_t = (offset + t)^-kappa
 *
 * The servers store *weights*, lambda minus beta, for which the step is the same without beta.
 *
 * SCALE. The first term changes every word. So weights are stored as s mu. The scale s is the product of (1 - rho_i)
 * over the steps since the *base*. It depends only on t and is not stored. A step then adds rho_t D/|S| / s_t times
 * the sum to mu of the batch's own words. Additions may come in any order. When s has become small, mu is multiplied
 * by it, and the base becomes t.
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

/* rho of step t = 1, 2, …. At most 0.9, because a step that forgets everything cannot be written as a
 * scale. */
double lda_svi_rho(const struct lda_svi_rate *rate, uint64_t t);

/* The decay of the weights by steps from + 1 … to: -log of the product of (1 - rho). */
double lda_svi_decay(const struct lda_svi_rate *rate, uint64_t from, uint64_t to);

/* The initial weights of a word, about Gamma(100, 1/100), so that topics differ from the start. */
void lda_svi_first(uint64_t seed, uint64_t word, uint32_t topics, float *weights_out);

/* exp(psi(x)) of a positive x, with a relative error of about 1e-6 for x above 0.1. Results below 1e-34 are
 * not reliable. */
float lda_exp_digamma(float x);

/* --- batches -------------------------------------------------------------------------------------------- */

/* A batch of documents. lda_svi_batch_index turns their words into rows of a matrix. A struct of zeros is an
 * empty batch. */
struct lda_svi_batch {
  size_t documents, entries, rows;
  uint64_t tokens;
  uint64_t *starts; /* documents + 1: the entries of each */
  uint32_t *words;  /* entries: the word; once indexed, its row */
  float *counts;    /* entries */
  uint64_t *
      keys; /* rows: word numbers, ascending; the last is the number of words of the vocabulary, whose row has the totals */
  uint64_t *row_starts;           /* rows + 1: where each row begins in the two arrays below */
  uint32_t *row_entries, *row_in; /* by entry, sorted by row: the entry, and its document */
  size_t document_room, entry_room, row_room, index_room;
  uint32_t *index; /* per word: its row, if the word occurs */
  uint64_t *marks; /* one bit per word; zeros between batches */
  uint64_t words_room;
};

void lda_svi_batch_fini(struct lda_svi_batch *batch);
void lda_svi_batch_clear(struct lda_svi_batch *batch); /* keeps the memory */

/* Adds a row of `from`, whose words and counts were validated before. A document without words counts too. */
pawl_status lda_svi_batch_add(struct lda_svi_batch *batch, const struct pawl_batch *from, size_t row);

/* Numbers the words. PAWL_MISMATCH: a word is above `words`; PAWL_TOO_LARGE: 2^32 entries. */
pawl_status lda_svi_batch_index(struct lda_svi_batch *batch, uint64_t words);

/* --- a step --------------------------------------------------------------------------------------------- */

struct lda_svi_step {
  uint32_t topics, threads;
  uint64_t words; /* of the vocabulary */
  double beta;
  const double *alpha; /* topics */
  double scale;        /* s, when the rows were read */
  double by;           /* factor from sums to changes of mu */

  /* Memory that is kept from one batch to the next. */
  size_t stride;  /* number of topics, padded to a multiple of the lanes */
  float *own;     /* alpha and shared values, then the memory of each thread */
  float *betas;   /* batch rows of exp(E log beta) */
  float *thetas;  /* batch documents of exp(E log theta), each up to a factor */
  float *ratios;  /* batch entries: n_dw / sum_k theta beta */
  double *logs;   /* batch documents */
  size_t longest; /* maximum of distinct words of a document of the batch */
  size_t own_room, beta_room, theta_room, ratio_room, log_room;
};

void lda_svi_step_fini(struct lda_svi_step *step);

/* Computes the changes of `rows` of mu: the rows of the batch's keys, then the totals. `log_out` is the sum
 * over tokens of log(theta_d . phi_w) before the change. The result does not depend on the number of threads.
 * PAWL_NO_MEMORY. */
pawl_status lda_svi_step_run(struct lda_svi_step *step, const struct lda_svi_batch *batch, const float *rows,
                             float *changes_out, double *log_out);

#endif
