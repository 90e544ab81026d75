/* Folding in: the topics of one document at a time, with the topics of words fixed.
 *
 * theta is the mode under Dirichlet(alpha + 1), found by expectation maximisation. It starts uniform. Each step
 * distributes every token of word w, c_w of them, by q_wk = phi_kw theta_k / sum_j phi_jw theta_j, and then sets
 *
 *   theta_k = (alpha_k + sum_w c_w q_wk) / sum of all of those
 *
 * A fold belongs to one thread; the model must outlive it.
 */
#ifndef LDA_FOLD_H
#define LDA_FOLD_H

#include <pawl/lda.h>

#define LDA_FOLD_ITERATIONS 100

struct lda_fold;

/* alpha 0: the model's alpha; iterations 0: the default. PAWL_INVALID: alpha is negative or not finite. */
pawl_status lda_fold_create(const struct pawl_lda_model *model, double alpha, uint32_t iterations,
                            struct lda_fold **fold_out);
void lda_fold_destroy(struct lda_fold *fold); /* NULL is fine */

/* A document: clear, add its words, and run. Add each word once; it must be in the model. `run` writes
 * `topics` numbers whose sum is 1. */
void lda_fold_clear(struct lda_fold *fold);
pawl_status lda_fold_add(struct lda_fold *fold, uint64_t word, float count);
void lda_fold_run(struct lda_fold *fold, float *theta_out);

/* theta . phi_w, with the theta of the last run; 0 before the first. */
double lda_fold_probability(const struct lda_fold *fold, uint64_t word);

/* --- many documents ------------------------------------------------------------------------------------- */

/* Handles `count` documents with `threads` threads (0: one per available processor), each with its own fold.
 * Calls `work` with ranges [begin, end) of documents until all are done or a call fails. */
pawl_status lda_fold_crew(const struct pawl_lda_model *model, double alpha, uint32_t iterations, uint32_t threads,
                          size_t count,
                          pawl_status (*work)(void *context, struct lda_fold *fold, size_t begin, size_t end),
                          void *context);

/* The word and the count of an entry. Returns false if the word is not in the model, or the count is not
 * above 0. */
static inline bool lda_entry(const struct pawl_batch *batch, size_t entry, uint64_t words, uint64_t *word_out,
                             float *count_out) {
  *word_out = batch->ids[entry] - 1; /* an id of 0 becomes an invalid word */
  *count_out = batch->values ? batch->values[entry] : 1;
  return *word_out<words && * count_out> 0;
}

#endif
