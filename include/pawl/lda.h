/* Topic models: latent Dirichlet allocation (OSDI'14 2.3 and 5.2).
 *
 * A document is a bag of words. Each token belongs to one of K topics. A topic is a distribution over words,
 * and a document has a distribution over topics:
 *
 *   phi_k   ~ Dirichlet(beta)         topic k over the V words
 *   theta_d ~ Dirichlet(alpha)        document d over topics; alpha_k may differ between topics
 *   z_di    ~ theta_d                 topic of token i
 *   w_di    ~ phi_(z_di)              word of token i
 *
 * TRAINING. One program calls pawl_lda_train and is the scheduler. Any number of other programs, on machines
 * that see the same files, call pawl_lda_work and receive everything else from the scheduler. There are two
 * methods:
 *
 *   GIBBS   collapsed Gibbs sampling by Metropolis-Hastings; the cost per token does not depend on K. The
 *           word-topic counts are an integer vector on the servers. The topics of tokens are in files of the
 *           run's directory, which all workers see. After training, the counts of each word add up to its
 *           number of occurrences in the corpus, even if workers were killed.
 *   SVI     stochastic variational inference: one pass over the documents in small batches, for corpora too
 *           large for several passes. Gibbs sampling can start from a model trained by SVI (`start`).
 *
 * MODELS hold the number of tokens n_wk of each word and topic (SVI: the variational parameter less beta),
 * from which
 *
 *   phi_kw = (n_wk + beta) / (n_k + V beta)
 *
 * Words are numbered from 0, in the order of the vocabulary; ids of features (<pawl/data.h>) are one higher.
 *
 * docs/lda.md describes the method with a worked example, and examples/topics.c is a program. The Gibbs
 * sampler is WarpLDA (Chen et al., VLDB 2016), adapted to a parameter server; apps/lda/README.md walks
 * through the sources.
 *
 * THREADS. Any number of threads may read a model. ERRORS: the parameter `error` of some calls may be NULL;
 * it receives a message for people.
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

#define PAWL_LDA_TEXT 512         /* bytes of an error message */
#define PAWL_LDA_TOPICS_MAX 65000 /* a topic is stored in 16 bits */

enum pawl_lda_method { PAWL_LDA_GIBBS = 1, PAWL_LDA_SVI = 2 };

/* --- models --------------------------------------------------------------------------------------------- */

/* Properties of a model. */
struct pawl_lda_about {
  enum pawl_lda_method method;
  uint32_t topics;
  uint64_t words;
  double beta;
  uint64_t sweeps;            /* number of training sweeps */
  uint64_t documents, tokens; /* size of the training corpus */
  double log_likelihood;      /* log p(w, z) of the corpus and its topics at the end; NAN if not known */
};

/* Creates a model without counts. `alpha` has about->topics elements and is copied; `words` may be NULL.
 * PAWL_INVALID: no topics or too many, no words, a number that is not finite and positive, or a vocabulary of
 * another size. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_model_create(const struct pawl_lda_about *about, const double *alpha,
                                                         const struct pawl_words *words,
                                                         struct pawl_lda_model **model_out);
PAWL_API void pawl_lda_model_destroy(struct pawl_lda_model *model); /* NULL is allowed */

/* Sets the weights of a word: one per topic; only non-zero weights are stored. Set each word once, in any
 * order, from one thread at a time. PAWL_INVALID (a negative or non-finite weight, or a word that was set
 * before), PAWL_OUT_OF_SPAN, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_model_set(struct pawl_lda_model *model, uint64_t word,
                                                      const float *weights);
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_model_set_counts(struct pawl_lda_model *model, uint64_t word,
                                                             const int32_t *counts);

PAWL_API void pawl_lda_model_about(const struct pawl_lda_model *model, struct pawl_lda_about *about_out);
/* Valid as long as the model. */
PAWL_API const double *pawl_lda_model_alpha(const struct pawl_lda_model *model);
/* n_k; valid as long as the model. */
PAWL_API const double *pawl_lda_model_totals(const struct pawl_lda_model *model);
/* The vocabulary; NULL if words are only numbers. */
PAWL_API const struct pawl_words *pawl_lda_model_words(const struct pawl_lda_model *model);

/* The weights of a word as they were set, and phi_kw for all topics: one value per topic. A word that was
 * never set, or beyond the last one, has zero weights and the phi that beta alone gives. */
PAWL_API void pawl_lda_model_get(const struct pawl_lda_model *model, uint64_t word, float *weights_out);
PAWL_API void pawl_lda_model_phi(const struct pawl_lda_model *model, uint64_t word, float *phi_out);

/* Writes and reads a model file. The file is written completely or not at all. Counts are stored exactly, so
 * that a model is the same after reading. PAWL_IO …, PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_UNSUPPORTED (a later
 * version), PAWL_MISMATCH (a model of another kind). */
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_model_write(const struct pawl_lda_model *model, const char *path,
                                                        char error[PAWL_LDA_TEXT]);
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_model_read(const char *path, struct pawl_lda_model **model_out,
                                                       char error[PAWL_LDA_TEXT]);

struct pawl_lda_word {
  uint64_t word;
  double phi;
};

/* The most probable words of a topic, by descending phi; words of equal phi by number. Returns the number of
 * words. */
PAWL_API size_t pawl_lda_model_top(const struct pawl_lda_model *model, uint32_t topic, size_t room,
                                   struct pawl_lda_word *words_out);

/* The coherence of each topic: how often its `top` most probable words occur in the same documents of a
 * corpus.
 *
 *   umass   sum over pairs i > j of log((D(w_i, w_j) + 1) / D(w_j)) (Mimno et al. 2011), divided by the
 *           number of pairs
 *   npmi    mean over pairs of log(p_ij / (p_i p_j)) / -log p_ij, -1 to 1 (Bouma 2009)
 *
 * D is a number of documents. The function reads the corpus once, with `threads` threads. NAN if undefined.
 * PAWL_INVALID if `top` exceeds 1000. */
struct pawl_lda_coherence {
  double umass, npmi;
};
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_coherence(const struct pawl_lda_model *model, struct pawl_data *data,
                                                      size_t top, uint32_t threads,
                                                      struct pawl_lda_coherence *topics_out, char error[PAWL_LDA_TEXT]);

/* --- new documents -------------------------------------------------------------------------------------- */

struct pawl_lda_folding {
  size_t struct_size;  /* set by pawl_lda_folding_init */
  double alpha;        /* the same for every topic; 0: that of the model */
  uint32_t iterations; /* EM iterations; default 100 */
  uint32_t threads;    /* 0: one per available processor */
  uint64_t seed;       /* for splitting documents into halves (pawl_lda_perplexity) */
};

PAWL_API void pawl_lda_folding_init_sized(struct pawl_lda_folding *folding, size_t struct_size);
static inline void pawl_lda_folding_init(struct pawl_lda_folding *folding) {
  pawl_lda_folding_init_sized(folding, sizeof *folding);
}

/* Infers theta for each document of a batch: rows * topics numbers. A document without known words gets the
 * mean of the prior. `*unknown_out` counts tokens of words that the model does not have, including those that
 * reading skipped (batch->unknown). `folding` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_infer(const struct pawl_lda_model *model, const struct pawl_batch *batch,
                                                  const struct pawl_lda_folding *folding, float *theta_out,
                                                  uint64_t *unknown_out);

/* Held-out perplexity by document completion. Each token of a document is assigned to one of two halves at
 * random, theta is inferred from the first half, and the tokens of the second half are scored: exp(-sum
 * log(theta_d . phi_w) / tokens). alpha 0 means 0.1 here, a common value, so that models can be compared.
 * PAWL_INVALID if no token could be scored. */
struct pawl_lda_score {
  double perplexity, log_likelihood;
  uint64_t documents, tokens; /* tokens: number of scored tokens */
  uint64_t unknown;           /* skipped tokens, of words that the model does not have */
  uint64_t empty;             /* documents without a known word */
};
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_perplexity(const struct pawl_lda_model *model, struct pawl_data *data,
                                                       const struct pawl_lda_folding *folding,
                                                       struct pawl_lda_score *score_out, char error[PAWL_LDA_TEXT]);

/* --- training ------------------------------------------------------------------------------------------- */

/* The state of one worker after a round. */
struct pawl_lda_worker {
  const char *host;
  uint64_t pid;
  uint64_t tokens;       /* number of its tokens */
  double log_likelihood; /* its part of log p(w, z), per token of the worker; NAN if not measured in this
                            round */
  double tokens_per_s;   /* in this round */
  double wait_pct;       /* percentage of its time spent waiting for other workers or for servers */
};

struct pawl_lda_progress {
  const char *stage;      /* "vocabulary", "starting", "loading", "sampling", "finishing" */
  uint64_t sweep, sweeps; /* sweeps done and in total; for SVI: passes */
  double part;            /* fraction of the stage that is done, 0 to 1; NAN if not known */
  double log_likelihood;  /* per token; NAN while not known. SVI: mean log(theta . phi) in this pass so far */
  double perplexity;      /* of held-out documents; NAN without such documents or while not known */
  double alpha_sum, beta;
  uint64_t documents, tokens, words;
  double seconds, left_s;              /* since the beginning, and estimated time left; left: NAN if not
                                          known */
  double tokens_per_s;                 /* all workers together, in the last round */
  uint64_t bytes_sent, bytes_received; /* by all workers so far */
  uint32_t workers;
  const struct pawl_lda_worker *each; /* `each_count` workers by rank; only after rounds */
  size_t each_count;
  const char *unsaved; /* why the directory does not have the last state of the run; "": it has */
};

struct pawl_lda_result {
  const char *why; /* "sweeps", "interrupted" */
  uint64_t sweeps;
  double seconds, sample_s; /* sample_s: time of sweeps only, without reading and evaluation */
  double tokens_per_s;      /* tokens sampled per second of sample_s */
  double log_likelihood, perplexity;
  uint64_t documents, empty, tokens, words;
  uint64_t skipped, unknown;           /* number of bad rows, and of tokens of a text that are not in the
                                          vocabulary */
  uint64_t bytes_sent, bytes_received; /* by all workers */
  uint64_t worker_memory;              /* highest memory of one worker for tokens and rows, in bytes */
  uint32_t workers_lost;
  bool is_exact;               /* `check` was set, and the counts of every word add up to its number in the corpus */
  char unsaved[PAWL_LDA_TEXT]; /* why the directory does not have the last state of the run; "": it has */
};

struct pawl_lda_options {
  size_t struct_size;          /* set by pawl_lda_options_init */
  enum pawl_lda_method method; /* default GIBBS */
  const char *const *paths;    /* absolute: workers open them too */
  size_t path_count;
  const char *const *heldout; /* held-out documents; pawl_lda_train itself reads them */
  size_t heldout_count;
  struct pawl_data_options reading; /* `words` is ignored, see `vocabulary`; piece_bytes 0: a size suited to
                                       topic models */
  const char *vocabulary;           /* absolute path of a file. NULL: for text, a vocabulary is built in the
                                       run's directory; for other formats, words are numbers */
  struct pawl_words_options building;

  uint32_t topics;    /* default 100 */
  double alpha, beta; /* alpha of each topic, default 0.1; beta of each word, default 0.01 */
  bool optimise;      /* optimise alpha per topic, and beta, by Minka's fixed point after the first half of
                         the sweeps */
  uint64_t sweeps;    /* default 500; for SVI the number of passes, default 1 */
  uint32_t staleness; /* number of sweeps that a worker may be ahead of the slowest; default 1 */
  uint64_t memory;    /* bytes of tokens that a worker keeps in memory; further tokens are streamed from disk.
                         Default 1 GiB */
  uint64_t seed;      /* default 1 */
  const char *start;  /* absolute path of a model from which the first topics are drawn; NULL: uniformly at
                         random */

  uint32_t batch;       /* SVI: documents in a batch; default 2048 */
  double kappa, offset; /* SVI: step sizes are (offset + t)^-kappa; default 0.6 and 1 */

  const char *directory;   /* absolute path of the run's directory, which all workers see and which holds the
                              topics of tokens. Created if it does not exist */
  bool resume;             /* continue the run in the directory: PAWL_NOT_FOUND if there is none. Without this
                              option the directory must not contain a run: PAWL_EXISTS */
  bool check;              /* count the corpus again at the end: PAWL_CORRUPT if the model disagrees with
                              it */
  uint64_t measure_every;  /* sweeps between measurements of the likelihood; default 10 */
  uint64_t evaluate_every; /* sweeps between evaluations of the held-out documents; 0: only at the end */

  const char *job; /* name of the job in the cluster, and space of its vectors; NULL: "lda" */
  uint32_t workers, workers_most;
  uint32_t threads; /* threads per worker; 0: the processors of this machine divided by the number of
                       workers */
  enum pawl_on_loss on_loss;
  double drop_slowest;
  pawl_status (*start_worker)(void *context); /* asks for one more worker; NULL: workers come by themselves */

  /* Callbacks; each may be NULL. The thread in pawl_lda_train calls them. */
  void (*progress)(void *context, const struct pawl_lda_progress *progress);
  void (*tell)(void *context, const char *line); /* one line about an event */
  bool (*stopping)(void *context);               /* return true to end soon and keep the results so far */
  void *context;
};

PAWL_API void pawl_lda_options_init_sized(struct pawl_lda_options *options, size_t struct_size);
static inline void pawl_lda_options_init(struct pawl_lda_options *options) {
  pawl_lda_options_init_sized(options, sizeof *options);
}

/* Checks the options. Returns false, with a message that says what to change, if they are invalid. */
PAWL_API bool pawl_lda_check(const struct pawl_lda_options *options, char error[PAWL_LDA_TEXT]);

/* Trains a model. The session must have been opened with `listen`. Errors: PAWL_NOT_FOUND (a file),
 * PAWL_CORRUPT (a row), PAWL_MISMATCH (a vocabulary, or a start model with other K or V), PAWL_NODE_GONE
 * (workers are lost, or servers with the only copy of some keys): the samples so far are in the directory,
 * and `resume` continues the run. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_train(struct pawl_session *session, const struct pawl_lda_options *options,
                                                  struct pawl_lda_model **model_out, struct pawl_lda_result *result_out,
                                                  char error[PAWL_LDA_TEXT]);

/* Runs a worker: joins the job and works until it ends. Returns as pawl_worker_run. Open the session with
 * `stays_dead`: counts then stay exact even if the worker is stopped, declared dead and resumes; it ends with
 * PAWL_NODE_GONE. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lda_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                                 char error[PAWL_LDA_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
