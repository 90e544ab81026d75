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
 * One program calls linear_train and is the scheduler; the workers call linear_work, with the same session
 * options, and are told everything else by it. How it goes about it is in docs/train.md, and
 * apps/linear/README.md walks through the sources.
 */
#ifndef LINEAR_LINEAR_H
#define LINEAR_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/linear/methods.h"
#include "apps/linear/model/model.h"

#define LINEAR_NEVER_DONE 1e-15 /* a tolerance with which Algorithm 3 goes on for all its rounds */

struct linear_point {
  double l1, l2;
};

/* What is known after a round. */
struct linear_progress {
  const char *stage; /* "starting", "loading", "training", "finishing" */
  size_t point, points;
  double l1, l2;
  uint64_t round, rounds;          /* rounds: the most there may be; 0: not known */
  double objective, loss, penalty; /* NAN while not known */
  uint64_t nonzeros;
  /* mean log-loss (regression: mean squared error); NAN without validation data */
  double valid_loss, valid_accuracy;
  uint64_t rows, features, entries;
  /* since the beginning; left: a guess from how the objective falls, NAN if there is none */
  double seconds, left_s;
  double examples_per_s;
  double wait_pct;                     /* of the workers' time in the round, spent waiting */
  uint64_t bytes_sent, bytes_received; /* by all workers so far */
  double bytes_per_s;                  /* both, in the last round */
  uint32_t workers;
  double slowest; /* the slowest worker's time over the median's; 1 with one */
  const char *slowest_host;
  uint64_t slowest_pid;
  uint64_t skipped; /* bad rows that were left out */
};

struct linear_result {
  /* Why it ended: "converged", which was measured; "rounds", "stuck", "early stop", "interrupted",
   * "streamed", "diverged", "failed". */
  const char *why;
  /* the result is what was asked for: converged, streamed without diverging, or stopped as the user wanted */
  bool is_certain;
  /* a bound, from a point of the dual, on how far above the optimum it is, as a part of it; NAN if not
   * known */
  double gap;
  const char *advice; /* what to try if it did not converge; NULL if it did */
  const char *method; /* that was used */
  uint64_t rounds;    /* of this run, */
  uint64_t resumed;   /* and of the one that it was resumed from */
  double seconds, load_s, train_s;
  double objective; /* at the end, with one more look at all data */
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
  double valid_split; /* instead: this share of the rows is held out, drawn by `seed`; 0: none is */
  struct pawl_data_options reading;
  bool zero_based; /* ids begin at 0; found out if one of them is 0. Ids stay those of the files either way */
  /* one model for each, in this order, each beginning with the one before */
  const struct linear_point *points;
  size_t point_count;
  bool bias;
  double class_weights[2]; /* of the lower and the higher label; 0: 1 */
  enum linear_scale scale; /* features are divided by this while it trains; not of methods that stream */

  uint32_t tau;     /* block steps that may be under way: OSDI'14's bounded delay */
  uint32_t blocks;  /* 0: chosen from the data */
  bool keep_all;    /* no KKT filter: look at every feature in every round */
  double tolerance; /* how far the objective may be from the optimum, as a part of it; 0: 1e-3 */
  /* at most, not counting those before `resume`; 0: 1000, or one pass for methods that stream */
  uint64_t rounds;
  uint32_t patience;  /* rounds without a better validation loss before it ends; 0: does not end by it */
  double rate;        /* of SGD, AdaGrad, FTRL, subgradient; 0: chosen */
  uint32_t minibatch; /* rows; 0: 1000 */
  uint64_t seed;

  const struct linear_model *start; /* begin with this one; NULL: zeros */

  const char *job; /* its name in the cluster; NULL: "linear" */
  uint32_t workers, workers_most;
  uint32_t threads; /* for reading, at each worker; 0: processors over workers on this machine */
  enum pawl_on_loss on_loss;
  double drop_slowest;
  pawl_status (*start_worker)(void *context); /* NULL: they come by themselves */

  const char *checkpoints;   /* a directory that servers can write to; NULL: none are made */
  double checkpoint_every_s; /* 0: 60 */
  /* from the newest checkpoint there; PAWL_NOT_FOUND if there is none, PAWL_MISMATCH if it is of other
   * options or data */
  bool resume;

  /* All may be NULL. They are called by the thread that calls linear_train. */
  void (*progress)(void *context, const struct linear_progress *progress);
  /* news in a line: who joined, who was lost, from where it resumes */
  void (*tell)(void *context, const char *line);
  bool (*stopping)(void *context); /* true: end soon and keep what there is */
  pawl_status (*found)(void *context, size_t point, const struct linear_model *model,
                       const struct linear_result *result); /* a model is ready; it is freed after the call */
  void *context;
};

void linear_options_init(struct linear_options *options);

/* What is wrong with these options: false, and a sentence that says what to do. The command and the bindings
 * share it. */
bool linear_check(const struct linear_options *options, char error[APPS_TEXT_MAX]);

/* Trains. Whatever happens after the first round, `found` is called with the model that there is. `error`
 * receives a sentence. A failure's status is that of what failed: PAWL_NOT_FOUND (a file), PAWL_CORRUPT (a
 * row), PAWL_INVALID (labels), PAWL_NODE_GONE (workers). */
pawl_status linear_train(struct pawl_session *session, const struct linear_options *options,
                         struct linear_result *result_out, char error[APPS_TEXT_MAX]);

/* A worker: joins the job and works until it ends. As pawl_worker_run. */
pawl_status linear_work(struct pawl_session *session, const char *job, int64_t timeout_ns, char error[APPS_TEXT_MAX]);

#endif
