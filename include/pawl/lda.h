/* Topic models: latent Dirichlet allocation (OSDI'14 2.3 and 5.2).
 *
 * A document is a bag of words. Each of its tokens is of one of K topics; a topic is a distribution over words, a document has a
 * distribution over topics:
 *
 *   phi_k   ~ Dirichlet(beta)         topic k over the V words
 *   theta_d ~ Dirichlet(alpha)        document d over topics; alpha_k may differ between topics
 *   z_di    ~ theta_d                 topic of token i
 *   w_di    ~ phi_(z_di)              the word that is seen
 *
 * TRAINING. One program calls pawl_lda_train and is the scheduler; any number of others, on machines that see the same files, call
 * pawl_lda_work and are told everything else by it. Two methods:
 *
 *   GIBBS   collapsed Gibbs sampling by Metropolis-Hastings, whose cost for a token does not depend on K. The word-topic counts
 *           are an integer vector on the servers; topics of tokens are in files of the run's directory, which all workers see. After the
 *           training the counts of each word add up to how often the corpus has it, whoever was killed on the way.
 *   SVI     stochastic variational inference: a pass over the documents in small batches, also over more than anybody wants to
 *           pass twice. A model that it has made can be where Gibbs sampling starts (`start`).
 *
 * MODELS hold for each word and topic how many tokens there were (SVI: the variational parameter less beta), from which
 *
 *   phi_kw = (n_wk + beta) / (n_k + V beta)
 *
 * Words are numbered from 0, in the order of the vocabulary; features of <pawl/data.h> have ids one higher.
 *
 * docs/lda.md has the method and a worked example, examples/topics.c a program. The Gibbs sampler is that of WarpLDA (Chen et al., VLDB 2016)
 * brought to a parameter server; apps/lda/README.md walks through the sources.
 *
 * THREADS. A model may be read by any number of threads. ERRORS are statuses; `error`, where a call has it, may be NULL and receives a sentence
 * for people.
 */
#ifndef PAWL_LDA_H
#define PAWL_LDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>
#include <pawl/export.h>
#include <pawl/job.h>
#include <pawl/status.h>
#include <pawl/words.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_lda_model;

#define PAWL_LDA_TEXT 512         /* bytes of an error's sentence */
#define PAWL_LDA_TOPICS_MAX 65000 /* a topic is kept in 16 bits */

enum pawl_lda_method { PAWL_LDA_GIBBS = 1, PAWL_LDA_SVI = 2 };

/* --- models ----------------------------------------------------------------------------------------------------------------- */

/* What a model says of itself. */
struct pawl_lda_about {
  enum pawl_lda_method method;
  uint32_t topics;
  uint64_t words;
  double beta;
  uint64_t sweeps;            /* that it was trained with */
  uint64_t documents, tokens; /* of its corpus */
  double log_likelihood;      /* of the corpus with its topics, log p(w, z), at the end; NAN if not known */
};

/* A model without counts: `alpha` has about->topics elements and is copied; `words` may be NULL. PAWL_INVALID: no topics, too many, no
 * words, a number that is not finite and positive, a vocabulary of another size. */
PAWL_API pawl_status pawl_lda_model_create(const struct pawl_lda_about *about, const double *alpha,
                                           const struct pawl_words *words, struct pawl_lda_model **model_out);
PAWL_API void pawl_lda_model_destroy(struct pawl_lda_model *model); /* NULL is fine */

/* How often the word has each topic: `topics` weights, of which those that are not zero are kept. Each word once, in any order; not
 * by two threads at a time. PAWL_INVALID (negative, not finite; twice), PAWL_OUT_OF_SPAN, PAWL_NO_MEMORY. */
PAWL_API pawl_status pawl_lda_model_set(struct pawl_lda_model *model, uint64_t word, const float *weights);
PAWL_API pawl_status pawl_lda_model_set_counts(struct pawl_lda_model *model, uint64_t word, const int32_t *counts);

PAWL_API void pawl_lda_model_about(const struct pawl_lda_model *model, struct pawl_lda_about *about_out);
PAWL_API const double *pawl_lda_model_alpha(const struct pawl_lda_model *model);  /* lives with the model */
PAWL_API const double *pawl_lda_model_totals(const struct pawl_lda_model *model); /* n_k; likewise */
PAWL_API const struct pawl_words *pawl_lda_model_words(
    const struct pawl_lda_model *model); /* NULL: words are numbers */

/* The word's weights, as they were set; and phi_kw of all topics. `topics` values each. A word that was never set, or is beyond the end: zeros, and
 * beta's share. */
PAWL_API void pawl_lda_model_get(const struct pawl_lda_model *model, uint64_t word, float *weights_out);
PAWL_API void pawl_lda_model_phi(const struct pawl_lda_model *model, uint64_t word, float *phi_out);

/* Whole or not at all. Counts are written as they are: a model that is read again is the same. PAWL_IO …, PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_UNSUPPORTED
 * (a later version), PAWL_MISMATCH (a model, but not of topics). */
PAWL_API pawl_status pawl_lda_model_write(const struct pawl_lda_model *model, const char *path,
                                          char error[PAWL_LDA_TEXT]);
PAWL_API pawl_status pawl_lda_model_read(const char *path, struct pawl_lda_model **model_out,
                                         char error[PAWL_LDA_TEXT]);

struct pawl_lda_word {
  uint64_t word;
  double phi;
};

/* The most probable words of a topic, by falling phi, equal ones by number. Returns how many. */
PAWL_API size_t pawl_lda_model_top(const struct pawl_lda_model *model, uint32_t topic, size_t room,
                                   struct pawl_lda_word *words_out);

/* How well the `top` most probable words of each topic go together in documents of a corpus, one number a topic:
 *
 *   umass   sum over pairs i > j of log((D(w_i, w_j) + 1) / D(w_j)) (Mimno et al. 2011), divided by the number of pairs
 *   npmi    mean over pairs of log(p_ij / (p_i p_j)) / -log p_ij, -1 to 1 (Bouma 2009)
 *
 * D counts documents. Reads the corpus once, with `threads` threads. NAN where nothing can be said. `top` is at most 1000:
 * PAWL_INVALID. */
struct pawl_lda_coherence {
  double umass, npmi;
};
PAWL_API pawl_status pawl_lda_coherence(const struct pawl_lda_model *model, struct pawl_data *data, size_t top,
                                        uint32_t threads, struct pawl_lda_coherence *topics_out,
                                        char error[PAWL_LDA_TEXT]);

/* --- new documents ---------------------------------------------------------------------------------------------------------- */

struct pawl_lda_folding {
  double alpha;        /* of every topic; 0: the model's own */
  uint32_t iterations; /* of expectation and maximisation; default 100 */
  uint32_t threads;    /* 0: as many as processors may be used */
  uint64_t seed;       /* of the halves of a document (pawl_lda_perplexity) */
};

PAWL_API void pawl_lda_folding_init(struct pawl_lda_folding *folding);

/* theta of each document of a batch: rows * topics numbers; a document without known words has alpha's own. Words that the model does not
 * have are left out and counted, with those that reading has left out before (batch->unknown). `folding` may be NULL. */
PAWL_API pawl_status pawl_lda_infer(const struct pawl_lda_model *model, const struct pawl_batch *batch,
                                    const struct pawl_lda_folding *folding, float *theta_out, uint64_t *unknown_out);

/* Held-out perplexity by document completion: each token of a document goes to one half or the other by chance, theta is found from the
 * first half, and the tokens of the second are scored:  exp(-sum log(theta_d . phi_w) / tokens). alpha 0 means 0.1 here, as is
 * common, so that models can be compared. PAWL_INVALID if no token could be scored. */
struct pawl_lda_score {
  double perplexity, log_likelihood;
  uint64_t documents, tokens; /* tokens: that were scored */
  uint64_t unknown;           /* tokens of words that the model does not have: left out */
  uint64_t empty;             /* documents without a known word */
};
PAWL_API pawl_status pawl_lda_perplexity(const struct pawl_lda_model *model, struct pawl_data *data,
                                         const struct pawl_lda_folding *folding, struct pawl_lda_score *score_out,
                                         char error[PAWL_LDA_TEXT]);

/* --- training --------------------------------------------------------------------------------------------------------------- */

/* One worker, after a round. */
struct pawl_lda_worker {
  const char *host;
  uint64_t pid;
  uint64_t tokens;       /* that it has */
  double log_likelihood; /* its part of log p(w, z), for each of its tokens; NAN if not measured in this round */
  double tokens_per_s;   /* in this round */
  double wait_pct;       /* of its time, spent waiting for others or for servers */
};

struct pawl_lda_progress {
  const char *stage;      /* "vocabulary", "starting", "loading", "sampling", "finishing" */
  uint64_t sweep, sweeps; /* done, and in all; of SVI: passes */
  double part;            /* of the stage, 0 to 1; NAN if not known */
  double log_likelihood;  /* for each token; NAN while not known. SVI: mean log(theta . phi) in this pass so far */
  double perplexity;      /* held-out; NAN without such documents, or while not known */
  double alpha_sum, beta;
  uint64_t documents, tokens, words;
  double seconds, left_s;              /* since the beginning; left: NAN if not known */
  double tokens_per_s;                 /* of all workers, in the last round */
  uint64_t bytes_sent, bytes_received; /* by all workers so far */
  uint32_t workers;
  const struct pawl_lda_worker *each; /* `each_count` of them, by rank; only after rounds */
  size_t each_count;
};

struct pawl_lda_result {
  const char *why; /* "sweeps", "interrupted" */
  uint64_t sweeps;
  double seconds, sample_s; /* sample_s: of sweeps alone, without reading and evaluation */
  double tokens_per_s;      /* sampled, in sample_s */
  double log_likelihood, perplexity;
  uint64_t documents, empty, tokens, words;
  uint64_t skipped, unknown; /* bad rows that were left out; tokens of a text that are not in the vocabulary */
  uint64_t bytes_sent, bytes_received; /* by all workers */
  uint64_t worker_memory;              /* the most that one worker had for tokens and rows */
  uint32_t workers_lost;
  bool is_exact; /* `check` was set, and every word's counts add up to what the corpus has */
};

struct pawl_lda_options {
  enum pawl_lda_method method; /* default GIBBS */
  const char *const *paths;    /* absolute: workers open them too */
  size_t path_count;
  const char *const *heldout; /* read by pawl_lda_train itself */
  size_t heldout_count;
  struct pawl_data_options reading; /* `words` is of no account, see below; piece_bytes 0: chosen for this */
  const char
      *vocabulary; /* a file, absolute; NULL: of text, one is built into the run's directory; else words are numbers */
  struct pawl_words_options building;

  uint32_t topics;    /* default 100 */
  double alpha, beta; /* default 0.1 and 0.01: of each topic, of each word */
  bool
      optimise; /* alpha, of each topic by itself, and beta: by Minka's fixed point, after the first half of the sweeps */
  uint64_t sweeps;    /* default 500; SVI: passes, default 1 */
  uint32_t staleness; /* sweeps that a worker may be ahead of the slowest; default 1 */
  uint64_t memory;    /* bytes of tokens that a worker keeps in memory; what is beyond is streamed. Default 1 GiB */
  uint64_t seed;      /* default 1 */
  const char *start;  /* a model's file, absolute: first topics are drawn from it; NULL: evenly */

  uint32_t batch;       /* SVI: documents; default 2048 */
  double kappa, offset; /* SVI: steps are (offset + t)^-kappa; default 0.6 and 1 */

  const char *
      directory; /* of the run, absolute, which all workers see: topics of tokens are kept there. Made if it is not there */
  bool
      resume; /* go on with what is in it: PAWL_NOT_FOUND if there is nothing; else it must hold no other run: PAWL_EXISTS */
  bool check; /* count the corpus again at the end: PAWL_CORRUPT if the model disagrees with it */
  uint64_t measure_every,
      evaluate_every; /* sweeps between looks at the likelihood (default 10) and at the held-out documents (0: at the end) */

  const char *job; /* its name in the cluster, and that of the vectors' space; NULL: "lda" */
  uint32_t workers, workers_most;
  uint32_t threads; /* of each worker; 0: processors over workers on this machine */
  enum pawl_on_loss on_loss;
  double drop_slowest;
  pawl_status (*start_worker)(void *context); /* NULL: they come by themselves */

  /* All may be NULL. They are called by the thread that calls pawl_lda_train. */
  void (*progress)(void *context, const struct pawl_lda_progress *progress);
  void (*tell)(void *context, const char *line); /* news in a line */
  bool (*stopping)(void *context);               /* true: end soon and keep what there is */
  void *context;
};

PAWL_API void pawl_lda_options_init(struct pawl_lda_options *options);

/* What is wrong with these options: false, and a sentence that says what to do. */
PAWL_API bool pawl_lda_check(const struct pawl_lda_options *options, char error[PAWL_LDA_TEXT]);

/* Trains, and gives the model. The session must have been opened with `listen`. A failure's status is that of what failed: PAWL_NOT_FOUND (a
 * file), PAWL_CORRUPT (a row), PAWL_MISMATCH (a vocabulary, a start of other K or V), PAWL_NODE_GONE (workers, or servers that had the
 * only copy): what was sampled until then is in the directory, and `resume` goes on with it. */
PAWL_API pawl_status pawl_lda_train(struct pawl_session *session, const struct pawl_lda_options *options,
                                    struct pawl_lda_model **model_out, struct pawl_lda_result *result_out,
                                    char error[PAWL_LDA_TEXT]);

/* A worker: joins the job and works until it ends. As pawl_worker_run. Counts stay exact also when a worker is stopped, taken for dead and goes on, if its
 * session was opened with `stays_dead`; it then ends with PAWL_NODE_GONE. */
PAWL_API pawl_status pawl_lda_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                   char error[PAWL_LDA_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
