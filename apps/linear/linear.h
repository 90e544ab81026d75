/* Linear methods: logistic regression, support vector machines, least squares (OSDI'14 5.1).
 *
 * All of them minimise
 *
 *   F(w) = sum_i c_i loss(y_i, b + x_i . w)  +  l1 |w|_1  +  l2/2 |w|^2
 *
 * over rows i of the data, where c_i is the weight of the row times that of its class. Losses are summed, not
 * averaged, as in OSDI'14 and LIBLINEAR, whose C is 1 / l1, or 1 / l2, here. The bias b is not penalised.
 *
 *   logistic        log(1 + exp(-y z))
 *   squared hinge   max(0, 1 - y z)^2
 *   hinge           max(0, 1 - y z)
 *   squared         (y - z)^2 / 2
 *
 * One program calls linear_train and is the scheduler. The workers call linear_work, with the same session
 * options; the scheduler tells them everything else. docs/train.md describes the methods, and
 * apps/linear/README.md lists the sources.
 */
#ifndef LINEAR_LINEAR_H
#define LINEAR_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/linear/methods.h"
#include "apps/linear/model/model.h"

#define LINEAR_NEVER_DONE 1e-15 /* with this tolerance training runs for all its rounds */

struct linear_point {
  double l1, l2;
};

/* The progress of training after a round. */
struct linear_progress {
  const char *stage; /* "starting", "loading", "training", "finishing" */
  size_t point, points;
  double l1, l2;
  uint64_t round, rounds;          /* rounds: the highest number of rounds; 0: not known */
  double objective, loss, penalty; /* NAN while not known */
  uint64_t nonzeros;
  double valid_loss; /* mean log-loss, or mean squared error for regression; NAN without validation data */
  double valid_accuracy;
  uint64_t rows, features, entries;
  double seconds; /* since training began */
  double left_s;  /* estimate of the remaining time, from how the objective falls; NAN if there is none */
  double examples_per_s;
  double wait_pct;                     /* share of the workers' time in the round that they spent waiting */
  uint64_t bytes_sent, bytes_received; /* total of all workers so far */
  double bytes_per_s;                  /* sent and received, in the last round */
  uint32_t workers;
  double slowest; /* the slowest worker's time over the median's; 1 with one worker */
  const char *slowest_host;
  uint64_t slowest_pid;
  uint64_t skipped; /* bad rows that were left out */
};

struct linear_result {
  /* Why training ended: "converged", which was measured; "rounds", "stuck", "early stop", "interrupted",
   * "streamed", "diverged", "failed". */
  const char *why;
  /* The result is as the user wanted: converged, streamed without diverging, or stopped by an option */
  bool is_certain;
  double gap;         /* bound on the distance to the optimum, relative to the objective; NAN if not known */
  const char *advice; /* what to try if training did not converge; NULL if it did */
  const char *method; /* name of the method that was used */
  uint64_t rounds;    /* of this run */
  uint64_t resumed;   /* rounds of the run that this one resumed */
  double seconds, load_s, train_s;
  double objective; /* at the end, evaluated once more over all data */
  uint64_t nonzeros;
  double accuracy; /* on the training data; NAN for regression */
  double valid_loss, valid_accuracy;
  double wait_pct;
  uint64_t bytes_sent, bytes_received;
  uint64_t rows, features, entries, skipped;
  uint32_t workers_lost;
};

struct linear_options {
  enum linear_loss loss;
  enum linear_method method;
  const char *const *paths; /* absolute: workers open them too */
  size_t path_count;
  const char *const *valid_paths; /* read by linear_train itself */
  size_t valid_count;
  double valid_split; /* instead of files: this share of the rows is held out, drawn with `seed`; 0: none */
  struct pawl_data_options reading;
  bool zero_based; /* ids begin at 0; detected if an id 0 occurs. The model has the ids of the files */
  /* One model is trained for each point, in this order. Each starts from the one before */
  const struct linear_point *points;
  size_t point_count;
  bool bias;
  double class_weights[2]; /* of the lower and the higher label; 0: 1 */
  enum linear_scale scale; /* what features are divided by while training; not for methods that stream */

  uint32_t tau;     /* earlier block steps that may be unfinished: OSDI'14's bounded delay */
  uint32_t blocks;  /* 0: chosen from the data */
  bool keep_all;    /* no KKT filter: every round visits every feature */
  double tolerance; /* distance to the optimum, relative to the objective, at which to stop; 0: 1e-3 */
  /* Highest number of rounds, without those before `resume`; 0: 1000, or one pass for methods that stream */
  uint64_t rounds;
  uint32_t patience;  /* stop after so many rounds without a better validation loss; 0: never */
  double rate;        /* learning rate of methods that have one; 0: chosen */
  uint32_t minibatch; /* rows in a minibatch; 0: 1000 */
  uint64_t seed;

  const struct linear_model *start; /* model to start from; NULL: zeros */

  const char *job; /* name of the job in the cluster; NULL: "linear" */
  uint32_t workers, workers_most;
  uint32_t threads; /* with which each worker reads; 0: processors divided by workers on this machine */
  enum pawl_on_loss on_loss;
  double drop_slowest;
  pawl_status (*start_worker)(void *context); /* NULL: workers come by themselves */

  const char *checkpoints;   /* directory that servers can write to; NULL: no checkpoints */
  double checkpoint_every_s; /* 0: 60 */
  /* Resume from the newest checkpoint. PAWL_NOT_FOUND if there is none, PAWL_MISMATCH if it has other options
   * or data */
  bool resume;

  /* Functions of the caller. All may be NULL. The thread that called linear_train calls them. */
  void (*progress)(void *context, const struct linear_progress *progress);
  /* A line of news: a worker joined or was lost, training resumes from a checkpoint */
  void (*tell)(void *context, const char *line);
  bool (*stopping)(void *context); /* true: end soon with the present weights */
  /* A model is ready. linear_train frees it after the call */
  pawl_status (*found)(void *context, size_t point, const struct linear_model *model,
                       const struct linear_result *result);
  void *context;
};

void linear_options_init(struct linear_options *options);

/* Checks the options. If they are invalid, returns false with a sentence that says what to do. The command
 * and the bindings share it. */
bool linear_check(const struct linear_options *options, char error[APPS_TEXT_MAX]);

/* Trains. After the first round `found` is always called, with the best model so far. `error` receives a
 * sentence. The status of a failure tells what failed: PAWL_NOT_FOUND (a file), PAWL_CORRUPT (a
 * row), PAWL_INVALID (labels), PAWL_NODE_GONE (workers). */
pawl_status linear_train(struct pawl_session *session, const struct linear_options *options,
                         struct linear_result *result_out, char error[APPS_TEXT_MAX]);

/* Joins the job as a worker and works until the job ends. Returns as pawl_worker_run. */
pawl_status linear_work(struct pawl_session *session, const char *job, int64_t timeout_ns, char error[APPS_TEXT_MAX]);

#endif
