/* Linear models: logistic regression, support vector machines, least squares (OSDI'14 5.1).
 *
 * A model has a weight w_j for each feature and a bias b. The score of a row x is
 *
 *   z(x) = b + sum_j w_j x_j
 *
 * Of two classes, the model chooses the second one if the score is positive. For regression the score is the
 * answer. Training minimises the objective
 *
 *   F(w, b) = sum_i c_i loss(y_i, z(x_i))  +  l1 |w|_1  +  l2/2 |w|^2
 *
 * over all rows i. The weight c_i is the weight of the row times the weight of its class. The losses are
 *
 *   logistic        log(1 + exp(-y z))       y is -1 for the first class and +1 for the second
 *   hinge           max(0, 1 - y z)
 *   squared hinge   max(0, 1 - y z)^2
 *   squared         (y - z)^2 / 2            regression: y is the label
 *
 * Losses are summed, not averaged, as in OSDI'14 and in LIBLINEAR, whose C is 1 / l1 or 1 / l2 here. The bias
 * is not penalised. Only the method DUAL penalises it like a weight; reported objectives omit that term.
 *
 * TRAINING. One program calls pawl_linear_train and is the scheduler. Any number of other programs, on
 * machines that see the same files, call pawl_linear_work and receive everything else from the scheduler.
 * Training advances in rounds: in a round every worker goes through its rows once.
 *
 * CONVERGENCE. A run has converged if a bound on its distance to the optimum, relative to the objective, is
 * at most `tolerance`. The bound is F(w, b) - D(a) for a feasible point a of the dual problem (Fenchel
 * duality), so it holds whatever led to the weights. Where the bound says nothing, because the penalty is
 * small for the size of the values, a run has converged by the rules that docs/train.md lists. A run that
 * ends otherwise says so (`why`, `is_certain` and `advice` of the result).
 *
 * MODELS hold the weights that are not zero, by ascending id. Ids are those of the files (<pawl/data.h>).
 *
 * docs/train.md describes the methods, docs/model-format.md the files, and examples/linear_model.c is a
 * program. apps/linear/README.md walks through the sources.
 *
 * THREADS. Any number of threads may read a model, and any number may use a scorer. One thread at a time may
 * use a set of metrics. ERRORS: the parameter `error` may be NULL; it receives a message for people. Messages
 * name options as the command `pawl train` spells them: --valid-split is `valid_split`.
 */
#ifndef PAWL_LINEAR_MODEL_H
#define PAWL_LINEAR_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>
#include <pawl/export.h>
#include <pawl/job.h>
#include <pawl/reduce.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_linear_model;
struct pawl_linear_scorer;
struct pawl_linear_metrics;

#define PAWL_LINEAR_TEXT 512 /* bytes of an error message */

/* Jobs and checkpoints hold the numbers of losses, methods and scales: a number never changes its meaning.
 * The numbers of each kind are consecutive. */
enum pawl_linear_loss {
  PAWL_LINEAR_LOGISTIC = 1,
  PAWL_LINEAR_HINGE = 2,
  PAWL_LINEAR_SQUARED_HINGE = 3,
  PAWL_LINEAR_SQUARED = 4, /* labels are numbers, not two classes */
};

enum pawl_linear_method {
  PAWL_LINEAR_METHOD_AUTO = 0,        /* DUAL for the hinge loss, NEWTON if there are few features, else
                                         BLOCKS */
  PAWL_LINEAR_METHOD_BLOCKS = 1,      /* Algorithm 3 of OSDI'14: delayed block proximal gradient, second
                                         order */
  PAWL_LINEAR_METHOD_SUBGRADIENT = 2, /* Algorithm 1 of OSDI'14: distributed subgradient descent */
  PAWL_LINEAR_METHOD_SGD = 3,         /* asynchronous stochastic gradients on data that is streamed */
  PAWL_LINEAR_METHOD_ADAGRAD = 4,     /* AdaGrad on data that is streamed; without l1 */
  PAWL_LINEAR_METHOD_FTRL = 5,        /* FTRL-Proximal on data that is streamed */
  PAWL_LINEAR_METHOD_DUAL = 6,        /* dual coordinate ascent, for the hinge loss with l2 and without l1 */
  PAWL_LINEAR_METHOD_NEWTON = 7,      /* Newton steps with the whole Hessian, for up to 16383 features */
};

/* The number by which training divides the values of a feature. The penalty applies to the weights of scaled
 * features; the weights of a model are those of features as they are in the files. */
enum pawl_linear_scale {
  PAWL_LINEAR_SCALE_NONE = 0,
  PAWL_LINEAR_SCALE_MAX = 1,       /* the largest absolute value */
  PAWL_LINEAR_SCALE_DEVIATION = 2, /* the standard deviation over all rows; absent values count as 0 */
};

enum pawl_linear_format {
  PAWL_LINEAR_FORMAT_PAWL = 1,      /* pawl's own: a readable header, binary weights, a checksum */
  PAWL_LINEAR_FORMAT_LIBLINEAR = 2, /* the text that liblinear-predict reads */
  PAWL_LINEAR_FORMAT_NPY = 3,       /* a NumPy array of float64 with an element for each feature, and the bias
                                       at the end if there is one; a file of the same name with .json added
                                       has the rest */
};

/* "logistic", "squared hinge" …; "blocks", "newton" …; "none", "max", "deviation"; "pawl", "liblinear",
 * "npy". A number that is not in the enumeration has the name "". */
PAWL_API const char *pawl_linear_loss_name(enum pawl_linear_loss loss);
PAWL_API const char *pawl_linear_method_name(enum pawl_linear_method method);
PAWL_API const char *pawl_linear_scale_name(enum pawl_linear_scale scale);
PAWL_API const char *pawl_linear_format_name(enum pawl_linear_format format);

/* Weights of the two penalties. */
struct pawl_linear_point {
  double l1, l2;
};

/* --- models --------------------------------------------------------------------------------------------- */

/* Properties of a model. */
struct pawl_linear_about {
  enum pawl_linear_loss loss;
  bool is_regression;      /* there are no classes: the score is the answer */
  double labels[2];        /* label of the first class (negative scores) and of the second. The first may be
                              the higher one in a model that LIBLINEAR wrote */
  double l1, l2;           /* penalty of the training. NAN if not known: LIBLINEAR's format has no such
                              number */
  double class_weights[2]; /* weight in the loss of a row of each class; 1 by default */
  uint64_t features;       /* the highest id */
  bool zero_based;         /* ids are 0 … features; else 1 … features */
  bool has_bias;
  double bias;
  uint32_t hash_bits;           /* bits of hashed names of features; 0: ids are those of the files */
  uint64_t columns;             /* csv: number of columns in training; 0: not known */
  uint64_t label_column;        /* csv: number of the label's column in training, from 1; 0: not known */
  char label_name[128];         /* csv: name of the label's column; "": it has none */
  bool binary;                  /* training set every value to 1; prediction must do the same */
  bool unit_rows;               /* training scaled every row to length 1; prediction must do the same */
  enum pawl_linear_scale scale; /* how training scaled features; prediction must not scale them */
  double penalty;               /* with a scale: the penalty at the end of training; NAN if not known */
  double objective;             /* at the end of training; NAN if not known */
  size_t nonzeros;              /* number of weights that are not zero */
};

/* Number of features, including those whose weight is zero. */
static inline uint64_t pawl_linear_width(const struct pawl_linear_about *about) {
  return about->features + (about->zero_based ? 1 : 0);
}

PAWL_API void pawl_linear_model_destroy(struct pawl_linear_model *model); /* NULL is allowed */
PAWL_API void pawl_linear_model_about(const struct pawl_linear_model *model, struct pawl_linear_about *about_out);

/* The ids of the weights that are not zero, ascending, and these weights. Both arrays have about.nonzeros
 * elements, and are valid as long as the model. NULL if there are none. */
PAWL_API const uint64_t *pawl_linear_model_ids(const struct pawl_linear_model *model);
PAWL_API const double *pawl_linear_model_weights(const struct pawl_linear_model *model);

/* The name of the feature of weight `i`, below about.nonzeros; NULL if it has none. Valid as long as the
 * model. */
PAWL_API const char *pawl_linear_model_name(const struct pawl_linear_model *model, size_t i);

/* Writes and reads a model file. The file is written completely or not at all. Reading detects the format. A
 * model in pawl's format is the same after reading; the other formats have no names of features.
 *   PAWL_IO, PAWL_NOT_FOUND, …       the file cannot be written or read
 *   PAWL_CORRUPT, PAWL_TRUNCATED     the file is not a model, or is damaged
 *   PAWL_MISMATCH                    the file is a model of another kind
 *   PAWL_UNSUPPORTED                 pawl's format of a later version. LIBLINEAR: more than two classes, or
 *                                    labels that are not whole numbers
 *   PAWL_TOO_LARGE                   LIBLINEAR and npy: the model has 2^31 features or more */
PAWL_API PAWL_MUST_USE pawl_status pawl_linear_model_write(const struct pawl_linear_model *model, const char *path,
                                                           enum pawl_linear_format format,
                                                           char error[PAWL_LINEAR_TEXT]);
PAWL_API PAWL_MUST_USE pawl_status pawl_linear_model_read(const char *path, struct pawl_linear_model **model_out,
                                                          char error[PAWL_LINEAR_TEXT]);

/* The format that the end of a file's name suggests: .npy; .liblinear and .txt; else pawl's own. */
PAWL_API enum pawl_linear_format pawl_linear_format_of(const char *path);

/* --- prediction ----------------------------------------------------------------------------------------- */

/* A scorer is a model that is arranged for looking weights up quickly. It keeps no pointer to the model.
 * PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_linear_scorer_create(const struct pawl_linear_model *model,
                                                             struct pawl_linear_scorer **scorer_out);
PAWL_API void pawl_linear_scorer_destroy(struct pawl_linear_scorer *scorer); /* NULL is allowed */

/* Computes the score of each row: batch->rows numbers. Features without a weight count nothing. Rows must
 * have been read as in training: hash_bits, binary, unit_rows. */
PAWL_API void pawl_linear_scorer_run(const struct pawl_linear_scorer *scorer, const struct pawl_batch *batch,
                                     double *scores_out);

/* 1 / (1 + exp(-score)): of a logistic model, the probability of the second class. */
PAWL_API double pawl_linear_probability(double score);

/* Metrics compare scores with labels, over any number of batches. `penalty` may be NULL, for the penalty of
 * the training; else the objective is that of this penalty, on unscaled features. PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_linear_metrics_create(const struct pawl_linear_model *model,
                                                              const struct pawl_linear_point *penalty,
                                                              struct pawl_linear_metrics **metrics_out);
PAWL_API void pawl_linear_metrics_destroy(struct pawl_linear_metrics *metrics); /* NULL is allowed */

/* Adds the rows of a batch with their scores, all of them or none. Keeps 8 bytes per row of a class.
 * PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_linear_metrics_add(struct pawl_linear_metrics *metrics,
                                                           const struct pawl_batch *batch, const double *scores);

/* The order of the batches does not matter, up to rounding. The weight of a row counts in `loss` only. */
struct pawl_linear_figures {
  uint64_t rows;       /* number of all rows */
  uint64_t positive;   /* number of rows of the second class */
  uint64_t unlabelled; /* number of rows without a label; they count in nothing below */
  uint64_t unknown;    /* number of rows whose label is neither class; they count in nothing below */
  double loss;         /* sum of c_i loss(y_i, z(x_i)), with the loss of the model; NAN without a row */
  double penalty;      /* l1 |w|_1 + l2/2 |w|^2; with a scale, that of the end of training; NAN if not
                          known */
  double objective;    /* loss + penalty */
  double log_loss;     /* mean of log(1 + exp(-y z)); NAN for regression */
  double accuracy;     /* fraction of rows whose class the model chooses; NAN for regression */
  double auc;          /* area under the ROC curve, exact; a tie counts half. NAN if a class has no row */
  double rmse;         /* root of the mean squared error; NAN for classes */
  double r2;           /* 1 - squared error / squared deviation of the labels from their mean; NAN for
                          classes */
};

/* PAWL_NO_MEMORY. More batches may be added afterwards. */
PAWL_API PAWL_MUST_USE pawl_status pawl_linear_metrics_figures(struct pawl_linear_metrics *metrics,
                                                               struct pawl_linear_figures *figures_out);

/* --- training ------------------------------------------------------------------------------------------- */

/* The state of training after a round. Texts are valid during the callback. */
struct pawl_linear_progress {
  const char *stage;                   /* "starting", "loading", "training", "finishing" */
  size_t point, points;                /* number of the penalty that is being trained, from 0, and number of
                                          penalties */
  double l1, l2;                       /* this penalty */
  uint64_t round, rounds;              /* rounds done, over all penalties, and the limit of this penalty; 0:
                                          no limit given */
  double objective, loss, penalty;     /* NAN while not known */
  uint64_t nonzeros;                   /* number of weights that are not zero */
  double valid_loss;                   /* on validation rows: mean log-loss, or mean squared error for
                                          regression; NAN without such rows */
  double valid_accuracy;               /* on validation rows; NAN for regression and without such rows */
  uint64_t rows, features, entries;    /* size of the data; 0 while not known */
  double seconds;                      /* since training began */
  double left_s;                       /* estimated time left, from how the objective falls; NAN if not
                                          known */
  double examples_per_s;               /* rows per second of all workers, in the last round */
  double wait_pct;                     /* percentage of the workers' time spent waiting, in the last round */
  uint64_t bytes_sent, bytes_received; /* by all workers so far */
  double bytes_per_s;                  /* sent and received, in the last round */
  uint32_t workers;                    /* present number of workers */
  double slowest;                      /* time of the slowest worker, divided by the median; 1 with one
                                          worker */
  const char *slowest_host;            /* host of the slowest worker */
  uint64_t slowest_pid;                /* process of the slowest worker */
  uint64_t skipped;                    /* number of bad rows */
  const char *unsaved;                 /* why the last checkpoint that was due could not be written; "": it
                                          was, or none was due */
};

/* Texts are valid as long as the program. */
struct pawl_linear_result {
  const char *why;                     /* "converged", "rounds" (the limit), "stuck" (no step lowers the
                                          objective), "early stop", "streamed" (all passes are done),
                                          "diverged", "interrupted", "failed" */
  bool is_certain;                     /* the end is the one that the options ask for: converged, streamed
                                          without diverging, stopped early, or after a given number of
                                          rounds */
  double gap;                          /* bound on the distance to the optimum, relative to the objective; NAN
                                          if not known */
  const char *advice;                  /* options to change if training did not converge; NULL if there is
                                          nothing to advise */
  const char *method;                  /* name of the method that was used */
  bool can_start;                      /* another run with this method can start from the model (`start`) */
  uint64_t rounds;                     /* number of rounds of this run, for this penalty */
  uint64_t resumed;                    /* number of rounds, for this penalty, of the run that this one
                                          resumed */
  double seconds;                      /* since training began */
  double load_s;                       /* time until the workers had read their rows */
  double train_s;                      /* time since then */
  double objective;                    /* evaluated once more over all rows; NAN if not known */
  uint64_t nonzeros;                   /* number of weights that are not zero */
  double accuracy;                     /* on the training rows; NAN for regression */
  double valid_loss;                   /* on validation rows: mean log-loss, or mean squared error for
                                          regression; NAN without such rows */
  double valid_accuracy;               /* on validation rows; NAN for regression and without such rows */
  double wait_pct;                     /* percentage of the workers' time spent waiting */
  uint64_t bytes_sent, bytes_received; /* by all workers */
  uint64_t rows, features, entries;    /* size of the data */
  uint64_t skipped;                    /* number of bad rows */
  uint32_t workers_lost;               /* number of workers lost on the way */
  uint32_t workers;                    /* that took part in the last round */
  double valid_guess;                  /* what valid_accuracy would be by the more frequent class of the
                                          validation rows, and for regression valid_loss by their mean; NAN
                                          without such rows */
  bool is_guessing;                    /* on the validation rows, of which there are at least 30, the loss that
                                          was minimised is not below that of the best constant score, and the
                                          accuracy not clearly above valid_guess */
  bool can_resume;                     /* there is a checkpoint of this run, or it resumed from one */
  char unsaved[PAWL_LINEAR_TEXT];      /* why the last checkpoint could not be written; "": it was, or there is
                                          none */
};

enum pawl_linear_share {
  PAWL_LINEAR_SERVERS = 0, /* they lie in vectors on servers */
  PAWL_LINEAR_REDUCE = 1,  /* each worker has its own (<pawl/reduce.h>) */
};

struct pawl_linear_options {
  size_t struct_size;         /* set by pawl_linear_options_init */
  enum pawl_linear_loss loss; /* default LOGISTIC */
  enum pawl_linear_method method;
  const char *const *paths; /* files of the data. Absolute: workers open them too */
  size_t path_count;
  const char *const *valid_paths; /* files of validation rows; pawl_linear_train itself reads them */
  size_t valid_count;
  double valid_split; /* instead of files: hold out this fraction of the rows, drawn with `seed`; default 0 */
  struct pawl_data_options reading;
  bool zero_based; /* ids begin at 0. Detected if an id 0 occurs */

  const struct pawl_linear_point *points; /* one model is trained for each penalty, in this order; each starts
                                             from the one before */
  size_t point_count;
  bool bias;                    /* default true */
  double class_weights[2];      /* weight of rows of the lower label and of the higher; 0 means 1 */
  enum pawl_linear_scale scale; /* default NONE; methods that stream cannot scale */

  uint32_t tau;                          /* number of earlier block steps that may be unfinished: the bounded
                                            delay of OSDI'14 */
  uint32_t blocks;                       /* number of blocks of features; 0: chosen from the data */
  bool keep_all;                         /* visit every feature in every round, without the KKT filter */
  double tolerance;                      /* distance to the optimum, relative to the objective, at which
                                            training stops; 0 means 1e-3. With 1e-15 training goes on for all
                                            its rounds */
  uint64_t rounds;                       /* highest number of rounds for each penalty, without those before
                                            `resume`; 0: 1000, or one pass of methods that stream */
  uint32_t patience;                     /* stop after this number of rounds without a better validation loss;
                                            0: never */
  double rate;                           /* learning rate of methods that have one; 0: chosen */
  uint32_t minibatch;                    /* rows in a minibatch of methods that stream; 0: 1000 */
  uint64_t seed;                         /* default 1 */
  const struct pawl_linear_model *start; /* model to start from; NULL: zeros */

  const char *job;                            /* name of the job in the cluster, and space of its vectors;
                                                 NULL: "linear" */
  uint32_t workers;                           /* least number of workers; default 1 */
  uint32_t workers_most;                      /* highest number of workers; 0: `workers` */
  uint32_t threads;                           /* threads with which each worker reads files; 0: the processors
                                                 of its machine, divided by the number of workers there */
  enum pawl_on_loss on_loss;                  /* reaction to the loss of a worker */
  double drop_slowest;                        /* drop a worker that took this many times the median in three
                                                 consecutive rounds; 0: never */
  pawl_status (*start_worker)(void *context); /* asks for one more worker; NULL: workers come by themselves */

  const char *checkpoints;   /* directory that servers, or workers that share by REDUCE, can write to; NULL: no
                                checkpoints */
  double checkpoint_every_s; /* seconds between checkpoints; 0: 60 */
  bool resume;               /* continue from the newest checkpoint. PAWL_NOT_FOUND if there is none,
                                PAWL_MISMATCH if it has other options or data */

  /* Callbacks; each may be NULL. The thread in pawl_linear_train calls them. */
  void (*progress)(void *context, const struct pawl_linear_progress *progress);
  void (*tell)(void *context, const char *line); /* one line about an event */
  bool (*stopping)(void *context);               /* return true to end soon and keep the weights so far */
  /* The model of a penalty, also if its training fails after the first round. The model is valid during the
   * callback. A failure ends training with this status. */
  pawl_status (*found)(void *context, size_t point, const struct pawl_linear_model *model,
                       const struct pawl_linear_result *result);
  void *context;

  /* How workers share the weights. REDUCE is for `method` SGD (or AUTO, which then is SGD) and sessions that are for
   * peers only: no servers are needed. Each worker keeps its rows in memory, has its own weights, makes steps with its
   * own minibatches, and averages with its neighbours in a graph after each step. It takes no `start`. */
  enum pawl_linear_share share;
  const char *graph;          /* as in struct pawl_reduce_options; NULL: the default */
  enum pawl_reduce_mode mode; /* of reduce */
  bool falls;                 /* REDUCE: the rate falls along half a cosine wave, to 0 at the end of the last pass */
};

PAWL_API void pawl_linear_options_init_sized(struct pawl_linear_options *options, size_t struct_size);
static inline void pawl_linear_options_init(struct pawl_linear_options *options) {
  pawl_linear_options_init_sized(options, sizeof *options);
}

/* Checks the options. Returns false, with a message that says what to change, if they are invalid. */
PAWL_API bool pawl_linear_check(const struct pawl_linear_options *options, char error[PAWL_LINEAR_TEXT]);

/* Trains models. The session must have been opened with `listen`. `model_out` receives the model of the last
 * penalty, and may be NULL if `found` takes the models. It receives NULL if `stopping` ended training before
 * there was a model; otherwise outputs are written only on success.
 *   PAWL_INVALID     an option, or the labels of the data
 *   PAWL_NOT_FOUND   a file, or the checkpoint to resume from
 *   PAWL_CORRUPT     a row
 *   PAWL_MISMATCH    the model to start from has features that the data lacks; see also `resume`
 *   PAWL_EXISTS      a job of this name runs already
 *   PAWL_NODE_GONE   workers are lost, or servers with the only copy of some keys */
PAWL_API PAWL_MUST_USE pawl_status pawl_linear_train(struct pawl_session *session,
                                                     const struct pawl_linear_options *options,
                                                     struct pawl_linear_model **model_out,
                                                     struct pawl_linear_result *result_out,
                                                     char error[PAWL_LINEAR_TEXT]);

/* Runs a worker: joins the job, "linear" if `job` is NULL, and works until it ends. Returns as
 * pawl_worker_run. Open the session with `listen` and with `stays_dead`, because other workers take over the
 * rows of a worker that is declared dead. */
PAWL_API PAWL_MUST_USE pawl_status pawl_linear_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                                    char error[PAWL_LINEAR_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
