/* Bayesian probabilistic matrix factorisation (Salakhutdinov and Mnih, ICML 2008): predicts ratings, and recommends.
 *
 * A rating of an item by a user is modelled as
 *
 *   rating = mean + d u . v + noise,   noise ~ N(0, 1 / alpha)
 *
 * where u is the user's row of U and v the item's row of V, both of `rank` numbers, and d the standard deviation of the
 * ratings. Rows of a side have a normal prior,
 * whose mean and precision have a normal-Wishart prior. TRAINING is full Gibbs sampling: each iteration draws the
 * hyper-parameters of both sides, then every row of U, then every row of V. Iterations after the burn-in are samples of
 * the posterior. Their mean prediction is the model's prediction, and their spread its uncertainty.
 *
 * MODELS keep up to `keep` of the samples, evenly spread over the iterations after the burn-in, because the mean of
 * predictions is not the prediction of mean rows. They also keep the ids of users and items, and who rated what.
 *
 * REPRODUCIBLE: the same ratings, options and seed give the same samples, bit for bit, with any number of threads and,
 * with slack 0, of workers. On a processor of another kind the last digits may differ.
 *
 * docs/bpmf.md describes model and sampler, apps/bpmf/README.md walks through the sources.
 *
 * THREADS. Any number of threads may use a model. ERRORS: the parameter `error` of some calls may be NULL; it receives
 * a message for people.
 */
#ifndef PAWL_BPMF_H
#define PAWL_BPMF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/item.h>
#include <pawl/job.h>
#include <pawl/ratings.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_bpmf_model;
struct pawl_session;

#define PAWL_BPMF_TEXT 512      /* bytes of an error message */
#define PAWL_BPMF_RANK_MAX 1024 /* numbers of a row */
#define PAWL_BPMF_SLACK_MAX 1000000

/* --- models --------------------------------------------------------------------------------------------- */

/* Properties of a model. */
struct pawl_bpmf_about {
  uint32_t rank;
  uint32_t users, items;
  uint64_t ratings;       /* number of training ratings */
  uint64_t test_ratings;  /* number of test ratings */
  uint32_t samples;       /* that the model keeps */
  uint64_t iterations;    /* number of iterations of training */
  uint64_t burn_in;       /* iterations at the beginning that are no samples */
  double alpha;           /* precision of a rating */
  double mean;            /* of the training ratings */
  double lowest, highest; /* training rating; predictions are between them */
  uint64_t seed;
  double train_rmse, test_rmse; /* of the mean over all samples; NAN: not known */
};

PAWL_API void pawl_bpmf_model_destroy(struct pawl_bpmf_model *model); /* NULL is allowed */
PAWL_API void pawl_bpmf_model_about(const struct pawl_bpmf_model *model, struct pawl_bpmf_about *about_out);

/* The id of an item, whose number is below about.items; valid as long as the model. */
PAWL_API const char *pawl_bpmf_model_item(const struct pawl_bpmf_model *model, uint32_t item);

/* The number of a user or of an item. PAWL_NOT_FOUND: it has no training rating. */
PAWL_API PAWL_MUST_USE pawl_status pawl_bpmf_model_find_user(const struct pawl_bpmf_model *model, const char *id,
                                                             uint32_t *user_out);
PAWL_API PAWL_MUST_USE pawl_status pawl_bpmf_model_find_item(const struct pawl_bpmf_model *model, const char *id,
                                                             uint32_t *item_out);

/* The items that a user has rated in training or test ratings, in ascending order; valid as long as the model. */
PAWL_API const uint32_t *pawl_bpmf_model_rated(const struct pawl_bpmf_model *model, uint32_t user, size_t *count_out);

/* Writes and reads a model file. The file is written completely or not at all. PAWL_IO …, PAWL_CORRUPT, PAWL_TRUNCATED,
 * PAWL_UNSUPPORTED (a later version), PAWL_MISMATCH (a model of another kind). */
PAWL_API PAWL_MUST_USE pawl_status pawl_bpmf_model_write(const struct pawl_bpmf_model *model, const char *path,
                                                         char error[PAWL_BPMF_TEXT]);
PAWL_API PAWL_MUST_USE pawl_status pawl_bpmf_model_read(const char *path, struct pawl_bpmf_model **model_out,
                                                        char error[PAWL_BPMF_TEXT]);

/* Whether a file begins like a model of this kind. False also if it cannot be read. */
PAWL_API bool pawl_bpmf_model_is(const char *path);

/* --- prediction ------------------------------------------------------------------------------------------ */

struct pawl_bpmf_prediction {
  double mean;      /* expected rating, between about.lowest and about.highest */
  double deviation; /* standard deviation of a rating: that of the samples and that of the noise */
};

/* Predicts one rating. The numbers must be below about.users and about.items. */
PAWL_API void pawl_bpmf_predict(const struct pawl_bpmf_model *model, uint32_t user, uint32_t item,
                                struct pawl_bpmf_prediction *prediction_out);

struct pawl_bpmf_choice {
  uint32_t item;
  struct pawl_bpmf_prediction prediction;
};

/* The `top` items with the highest expected ratings, without those that the user has rated; the best first, of equal
 * ones the one with the lower number. Writes as many as there are, at most `top`. Values beyond the highest training
 * rating are compared before they are limited to it. PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_bpmf_recommend(const struct pawl_bpmf_model *model, uint32_t user, size_t top,
                                                       struct pawl_bpmf_choice *choices_out, size_t *count_out);

/* --- training ------------------------------------------------------------------------------------------- */

struct pawl_bpmf_progress {
  uint64_t iteration, iterations;         /* from 1 */
  bool is_burn_in;                        /* this iteration is no sample */
  double train_rmse, test_rmse;           /* of this iteration's U and V alone; NAN: not measured */
  double mean_train_rmse, mean_test_rmse; /* of the mean prediction of all samples so far; NAN before the first */
  double seconds;                         /* since the beginning */
  double ratings_per_s;                   /* of this iteration, without measuring */
  const char *unsaved; /* why the last checkpoint that was due could not be written; "": it was, or none was due */
};

struct pawl_bpmf_result {
  const char *why;     /* "iterations"; "interrupted"; "guessing": mean_test_rmse is no better than plain_test_rmse */
  uint64_t iterations; /* complete ones, with those before a checkpoint */
  uint64_t samples;    /* iterations after the burn-in */
  double train_rmse, test_rmse, mean_train_rmse, mean_test_rmse; /* as in the last progress */
  double plain_test_rmse; /* of the mean training rating as the prediction of all test ratings; NAN: there are none */
  uint64_t test_ratings;  /* that were predicted */
  uint64_t test_unknown;  /* test ratings that were left out: their user or item has no training rating */
  char first_unknown[PAWL_BPMF_TEXT]; /* the first of them, as `file:line: problem`; "" if there is none */
  char unsaved[PAWL_BPMF_TEXT];       /* why the last checkpoint could not be written; "": it was, or there is none */
  uint64_t resumed;                   /* iterations that the checkpoint had */
  uint32_t threads;                   /* as they were used */
  const char *kernel;                 /* name of the arithmetic that was used, for measurements */
  double seconds;                     /* all of it */
  double sample_s;                    /* sampling only */
  double ratings_per_s;               /* training ratings times iterations per second of sample_s */

  /* Of a training by workers. */
  uint32_t workers;                    /* in the last part of the training */
  uint32_t workers_lost;               /* in all */
  uint64_t repeated;                   /* iterations that were made again because workers were lost */
  double wait_s, work_s;               /* of all workers together: waiting for rows and copying them, and the rest */
  uint64_t bytes_sent, bytes_received; /* of the sessions of all workers. Items on one machine need none */
};

struct pawl_bpmf_options {
  size_t struct_size;  /* set by pawl_bpmf_options_init */
  uint32_t rank;       /* numbers of a row, up to PAWL_BPMF_RANK_MAX; default 16 */
  uint64_t iterations; /* default 100 */
  uint64_t burn_in;    /* iterations that are no samples, below `iterations`; default 10, at most half of them */
  double alpha;        /* precision of a rating: 1 / variance of its noise; 0, the default: 2 / variance of ratings */
  uint32_t keep;       /* samples that the model keeps, 1 to 1000; default 20 */
  double test_share;   /* share of the ratings that are test ratings, below 1; default 0. Not with a set of them */
  uint64_t seed;       /* of all random numbers and of test_share; default 1 */
  uint32_t threads;    /* up to 1024; 0: one for each processor */
  bool no_train_rmse;  /* do not measure the error of training ratings, which costs time */

  const char *checkpoint;    /* file for the state of the training; NULL: none. It is also written at the end */
  uint64_t checkpoint_every; /* iterations between checkpoints; default 10 */
  bool resume;               /* go on from the checkpoint, with the same ratings and options; the result is the same
                                as without an interruption */

  /* Callbacks; each may be NULL. The thread in pawl_bpmf_train calls them. */
  void (*progress)(void *context, const struct pawl_bpmf_progress *progress); /* after each iteration */
  bool (*stopping)(void *context); /* asked after each iteration; true ends the training with the samples so far */
  void *context;
};

#define PAWL_BPMF_BURN_IN_AUTO UINT64_MAX /* burn_in: the default */

PAWL_API void pawl_bpmf_options_init_sized(struct pawl_bpmf_options *options, size_t struct_size);
static inline void pawl_bpmf_options_init(struct pawl_bpmf_options *options) {
  pawl_bpmf_options_init_sized(options, sizeof *options);
}

/* Checks the options. Returns false, with a message that says what to change, if they are invalid. */
PAWL_API bool pawl_bpmf_check(const struct pawl_bpmf_options *options, char error[PAWL_BPMF_TEXT]);

/* Trains a model. `test` may be NULL; test ratings whose user or item has no training rating are counted and left out.
 * A training that is interrupted during the burn-in gives a model of its last iteration.
 *
 * PAWL_INVALID (an option, or no training ratings are left), PAWL_DIVERGED (numbers have become too large),
 * PAWL_MISMATCH (resume: the checkpoint belongs to other ratings or options), PAWL_NOT_FOUND, PAWL_CORRUPT,
 * PAWL_TRUNCATED, PAWL_IO … (the checkpoint), PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_bpmf_train(const struct pawl_ratings *ratings, const struct pawl_ratings *test,
                                                   const struct pawl_bpmf_options *options,
                                                   struct pawl_bpmf_model **model_out,
                                                   struct pawl_bpmf_result *result_out, char error[PAWL_BPMF_TEXT]);

/* --- training by several processes ------------------------------------------------------------------------ */

/* Where workers find the rows of other workers. */
enum pawl_bpmf_share {
  PAWL_BPMF_ITEMS =
      1, /* rows are items (<pawl/item.h>), which workers exchange with one another; sessions are for peers
                            only */
  PAWL_BPMF_SERVERS = 2, /* rows are a vector on the servers */
};

struct pawl_bpmf_sharing {
  size_t struct_size; /* set by pawl_bpmf_sharing_init */
  enum pawl_bpmf_share share;
  const char *job; /* name by which workers find this training; NULL: "bpmf" */

  /* The files from which workers read training and test ratings, which every worker needs at the same paths, and how to
   * read them. They must have the ratings that pawl_bpmf_train_shared gets. */
  const char *const *paths, *const *test_paths;
  size_t path_count, test_path_count; /* test_path_count 0: no test files */
  enum pawl_ratings_format format;
  enum pawl_ratings_duplicates duplicates;
  uint64_t skip_bad;

  uint32_t workers, workers_most; /* minimum and maximum of workers; 0: 1, and the minimum */
  enum pawl_on_loss on_loss;      /* <pawl/job.h> */
  double drop_slowest;

  enum pawl_items_variant variant; /* PAWL_BPMF_ITEMS */

  /* How many iterations the rows of other workers may be old. With 0, the default, samples are those of one process. The
   * sums for the hyper-parameters have no slack, so that workers are never more than one iteration apart. */
  uint32_t slack;

  /* Called with the context of struct pawl_bpmf_options. Both may be NULL. */
  void (*tell)(void *context, const char *line); /* a line of news */
  pawl_status (*start_worker)(void *context);    /* asks for one more worker; NULL: workers come by themselves */
};

PAWL_API void pawl_bpmf_sharing_init_sized(struct pawl_bpmf_sharing *sharing, size_t struct_size);
static inline void pawl_bpmf_sharing_init(struct pawl_bpmf_sharing *sharing) {
  pawl_bpmf_sharing_init_sized(sharing, sizeof *sharing);
}

/* Checks how workers should share. Returns false, with a message, if they cannot. */
PAWL_API bool pawl_bpmf_sharing_check(const struct pawl_bpmf_sharing *sharing, char error[PAWL_BPMF_TEXT]);

/* As pawl_bpmf_train, but workers draw the rows (pawl_bpmf_work). This process is the scheduler of their job, keeps the
 * samples and writes checkpoints. A side has at most 64 blocks of rows, so there are at most 64 workers: PAWL_INVALID.
 *
 * Every `checkpoint_every` iterations, with or without a file, the scheduler gets rows and sums of predictions from all
 * workers. If a worker is lost, the others and its replacement go back to these. With slack 0 the model is the same
 * as without a loss.
 *
 * `threads` are those of each worker; 0: its share of the processors of this machine. The session needs `listen`. Also
 * returns the errors of <pawl/job.h>. */
PAWL_API PAWL_MUST_USE pawl_status pawl_bpmf_train_shared(
    struct pawl_session *session, const struct pawl_bpmf_sharing *sharing, const struct pawl_ratings *ratings,
    const struct pawl_ratings *test, const struct pawl_bpmf_options *options, struct pawl_bpmf_model **model_out,
    struct pawl_bpmf_result *result_out, char error[PAWL_BPMF_TEXT]);

/* Works for the training `job` (NULL: "bpmf") until it ends. Waits up to `timeout_ns` for it. The session needs `listen`,
 * and should be opened with `stays_dead`. Errors as pawl_worker_run. */
PAWL_API PAWL_MUST_USE pawl_status pawl_bpmf_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                                  char error[PAWL_BPMF_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
