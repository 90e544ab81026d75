/* The messages between the scheduler (train/) and the workers (worker.c) of linear methods, and the worker.
 *
 * A worker receives a *spec* when it joins, which never changes, and an *order* in each round. The order
 * contains everything else, so a worker that has just joined needs to know nothing of earlier rounds. Every
 * worker returns a *reply*. All three are JSON.
 */
#ifndef LINEAR_INSIDE_H
#define LINEAR_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/common/clock.h"
#include "apps/common/memory.h"
#include "apps/common/reduce_files.h"
#include "apps/linear/hessian.h"
#include "apps/linear/methods.h"
#include "apps/linear/model/model.h"
#include "apps/linear/rows.h"
#include "apps/linear/share.h"

/* The options of a program, whose struct may be shorter or longer than ours. False if it was not initialised,
 * or has options that are not known here. */
bool linear_options_take(const struct pawl_linear_options *options, struct pawl_linear_options *is_out);

#define LINEAR_TIMEOUT (60 * PAWL_SECOND) /* for vectors and jobs that should exist */

/* Newton steps: the highest number of features; the highest number of features, and of pairs of entries of
 * the same row, up to which AUTO chooses them; and the number of features where rows have fewer than a
 * sixteenth of them, as blocks are faster there. */
#define LINEAR_NEWTON_MOST 16383
#define LINEAR_NEWTON_AUTO 3200
#define LINEAR_NEWTON_PAIRS 1e11
#define LINEAR_NEWTON_SPARSE 1000

/* Relative change of the curvature of a row from which on the Hessian is updated: hessian.h. */
#define LINEAR_HESSIAN_SLACK 0.5
/* The hinge loss: up to so many bytes of text, one worker has all rows. A compressed file counts as text of
 * LINEAR_PACKED times its size. */
#define LINEAR_DUAL_ALONE (UINT64_C(256) << 20)
#define LINEAR_PACKED 5

struct linear_spec {
  char job[64]; /* also the space of the vectors */
  enum pawl_linear_loss loss;
  const struct linear_method_descriptor *method; /* its number is sent */
  char **paths;
  size_t path_count;
  struct pawl_data_options reading;
  char label[128];      /* reading.label points here, if it is not empty */
  uint64_t fingerprint; /* of the data, as the scheduler sees it */
  uint64_t pieces;      /* number of pieces of the data */
  bool bias;
  bool digests; /* workers compute a digest of their pieces, for checkpoints */
  double class_weights[2];
  enum pawl_linear_scale scale;
  uint32_t tau, threads, minibatch;
  double rate;

  /* Workers average their weights (average.c), and there are no vectors */
  bool reduces;
  char graph[PAWL_REDUCE_GRAPH_MAX + 1]; /* "": the default */
  enum pawl_reduce_mode mode;
  bool falls;                   /* the learning rate falls along half a cosine wave */
  char folder[APPS_FOLDER_MAX]; /* of checkpoints; "": none */
};

void linear_spec_fini(struct linear_spec *spec);

enum linear_do {
  LINEAR_DESCRIBE = 1, /* count rows, features, labels */
  LINEAR_SWEEP = 2,    /* one pass of the method over the data */
  LINEAR_EVALUATE = 3, /* loss and accuracy with the weights on the servers */
  LINEAR_GATHER = 4,   /* begin, and push this worker's part of the weights */
  LINEAR_DERIVE = 5,   /* derivatives at the weights on the servers, and sums for a bound: derive.c */
  LINEAR_SEARCH = 6,   /* losses at some points along a step that the scheduler proposes: derive.c */
  LINEAR_MEASURE = 7,  /* sizes of features: scale.h */
  LINEAR_MEET = 8,     /* average.c: load the rows, and tell how many steps they need */
  LINEAR_AGREE = 9,    /* average.c: compute the mean of the weights of all workers */
  LINEAR_GIVE = 10,    /* average.c: the first worker reports a part of that mean */
  LINEAR_SAVE = 11,    /* average.c: save the weights to a file */
  LINEAR_LOAD = 12,    /* average.c: load them */
};

/* Points of a search: steps of `rate`, half of it, a quarter, … */
enum { LINEAR_TRIALS = 6 };

/* Factors by which a point of the dual is shrunk to make it feasible: certificate.h. */
enum { LINEAR_SHRINKS = 8 };
extern const double linear_shrinks[LINEAR_SHRINKS];

struct linear_order {
  enum linear_do what;
  uint64_t round; /* counted over all points */
  size_t point;   /* part of the names of vectors: linear_vector_name */
  /* Part of the names of vectors. Methods that gather begin a new generation when pieces move */
  uint32_t generation;
  double l1, l2;
  uint64_t features; /* one more than the highest id */
  uint64_t rows;     /* of all workers */
  double labels[2];
  uint32_t blocks;
  uint64_t seed;
  bool is_full;    /* also visit features that the KKT filter leaves out */
  double slack;    /* of the KKT filter */
  double damping;  /* factor of curvatures; 1 if steps do not overshoot */
  double rate;     /* SEARCH: the longest step */
  uint64_t serial; /* DERIVE: part of the names of the vectors of derivatives */
  bool is_first;   /* SWEEP: also report the loss before the sweep */
  bool is_curved;  /* DERIVE: also compute the Hessian */

  /* average.c */
  uint64_t iteration, steps; /* SWEEP: steps before it, and of it */
  uint64_t total;            /* steps of all passes of the point, for a rate that falls */
  uint64_t number;           /* of the peer group: a reduce begins with at least this one */
  uint64_t begin, end;       /* GIVE */
  uint64_t turn;             /* SAVE, LOAD */
};

struct linear_reply {
  struct linear_census census;
  uint64_t rows, correct;
  double loss;
  double violation;     /* of the optimality conditions: sum over the features visited */
  double violation_max; /* the largest of them */
  uint64_t looked_at;   /* number of features visited in this round */
  double waited_s, worked_s;
  uint64_t bytes_sent, bytes_received;
  double dual;            /* dual methods: this worker's part of the dual objective */
  double loss_before;     /* before a sweep with `is_first` */
  double loss_of_nothing; /* with all weights zero */
  /* DERIVE: sums of slopes over the rows of each class; for regression: certificate.h. SWEEP by subgradient.c: the
   * first is the sum over all rows */
  double slopes[2];
  double conjugates[2][LINEAR_SHRINKS]; /* DERIVE: certificate.h */
  double trials[LINEAR_TRIALS];         /* SEARCH: losses */
  uint64_t steps;  /* MEET: of this worker's rows; SWEEP by average.c: made so far. A sum has the maximum */
  uint64_t number; /* MEET: of the peer group, as the worker knows it; likewise */
  bool lacks;      /* EVALUATE: this worker came after the weights were averaged */
  struct apps_reduce_part part; /* SAVE, LOAD */
};

/* JSON texts, which the caller frees; NULL without memory. Readers return false for a text that is incomplete
 * or invalid. */
char *linear_spec_write(const struct linear_spec *spec);
bool linear_spec_read(const void *bytes, size_t size, struct linear_spec *spec_out);
char *linear_order_write(const struct linear_order *order);
bool linear_order_read(const void *bytes, size_t size, struct linear_order *order_out);
char *linear_reply_write(const struct linear_reply *reply);
bool linear_reply_read(const void *bytes, size_t size, struct linear_reply *reply_out);

/* --- vectors -------------------------------------------------------------------------------------------- */

/* The vectors on the servers. */
enum linear_vector {
  LINEAR_WEIGHTS,  /* by key */
  LINEAR_BIAS,     /* one element */
  LINEAR_ALPHA,    /* multipliers of rows, by piece and row */
  LINEAR_GRADIENT, /* derivatives by key, for each class */
  LINEAR_HESSIAN,  /* upper triangle, row after row, by key, the bias last */
  LINEAR_STEP,     /* the step to search along, by key, the bias last */
  LINEAR_MOST,     /* largest value, by key */
  LINEAR_SUMS,     /* sum of values and sum of squares, by key */
  LINEAR_SCALES,   /* divisors of features, by key, for the whole job: scale.h */
  LINEAR_SLOPES,   /* the gradient of the loss, by key: subgradient.c */
};

void linear_vector_name(const struct linear_spec *spec, const struct linear_order *order, enum linear_vector which,
                        char name[PAWL_NAME_MAX + 1]);

/* Options of a vector. False: the method does not have this vector. */
bool linear_vector_options(const struct linear_spec *spec, const struct linear_order *order, enum linear_vector which,
                           struct pawl_vector_options *options_out);

struct linear_minibatch;
struct linear_average;

/* --- methods -------------------------------------------------------------------------------------------- */

/* The state of derivatives: derive.c. */
struct linear_derived {
  double *w, *z; /* weights, the bias last, and the scores of rows at these weights; NULL: not known */
  struct linear_hessian hessian;
};

/* A worker of a job. */
struct linear_worker {
  struct pawl_worker *worker;
  struct pawl_session *session;
  struct linear_spec spec;
  struct pawl_data *data;
  struct linear_share share;      /* by columns; empty for methods that stream */
  struct linear_rows rows;        /* the share by rows; empty until it is needed */
  struct linear_derived *derived; /* for the present share; NULL before the first derivatives */
  struct linear_scatter scatter;
  struct pawl_range *pieces; /* of this worker, for methods that stream */
  size_t piece_count;
  size_t point; /* point of the open vectors; SIZE_MAX: none are open */
  uint32_t generation;
  struct pawl_vector *weights, *bias, *alpha;
  const double *dense; /* in place of vectors: a weight for each id, and the bias last; NULL: none */
  size_t dense_size;
  struct linear_average *average; /* average.c; NULL: none yet */
  void *state;                    /* of the method */
  bool is_begun;
  bool has_said; /* pawl_worker_say has given the reason of a failure */
};

/* y of a label: -1 or +1, or for regression the label itself. c: the weight of a row of that class. */
static inline double linear_y(const struct linear_spec *spec, const struct linear_order *order, double label) {
  return linear_is_regression(spec->loss) ? label : label == order->labels[1] ? 1 : -1;
}

static inline double linear_c(const struct linear_spec *spec, double y) {
  return linear_is_regression(spec->loss) ? 1 : spec->class_weights[y > 0];
}

/* The number of pieces of a worker, for methods that stream. */
static inline uint64_t linear_piece_count(const struct linear_worker *worker) {
  uint64_t count = 0;
  for (size_t i = 0; i < worker->piece_count; i++) count += pawl_range_size(worker->pieces[i]);
  return count;
}

/* Loss and accuracy of this worker's rows with the weights on the servers, for every method. */
pawl_status linear_evaluate(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply);

/* Derivatives, and losses along a step: derive.c. */
pawl_status linear_derive(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply);
pawl_status linear_search(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply);
void linear_derived_forget(struct linear_worker *worker); /* when the share changes, and at the end */

/* SGD by workers that average: average.c. `load` reads the rows of this worker's pieces, and adds them to the census.
 * `forget` is called when the pieces change. */
pawl_status linear_average_load(struct linear_worker *worker, struct linear_census *census);
pawl_status linear_average_meet(struct linear_worker *worker, struct linear_reply *reply);
pawl_status linear_average_agree(struct linear_worker *worker, const struct linear_order *order);
pawl_status linear_average_give(struct linear_worker *worker, const struct linear_order *order);
pawl_status linear_average_file(struct linear_worker *worker, const struct linear_order *order,
                                struct linear_reply *reply); /* SAVE, LOAD */
void linear_average_forget(struct linear_worker *worker);
void linear_average_fini(struct linear_worker *worker);

/* Methods that stream: reads the pieces of this worker in this round, one batch at a time, which `take` owns:
 * stream.c. */
pawl_status linear_read_pieces(struct linear_worker *worker,
                               pawl_status (*take)(void *context, size_t piece, struct pawl_batch *batch),
                               void *context);

/* The losses of the rows of a minibatch at its weights, and their gradient: stream.c. */
void linear_stream_learn(const struct linear_worker *worker, const struct linear_order *order,
                         struct linear_minibatch *minibatch, struct linear_reply *reply);

/* One pass, in the scheduler: train/average.c. */
pawl_status linear_average_round(struct linear_run *run, struct linear_reply *sum_out, struct linear_outcome *outcome);

/* One step along the gradient, in the scheduler: train/gradient.c. */
pawl_status linear_gradient_round(struct linear_run *run, struct linear_reply *sum_out, struct linear_outcome *outcome);

/* Pulls the weights of features, by ascending keys of the vector, and the bias. */
pawl_status linear_pull_weights(struct linear_worker *worker, const uint64_t *keys, size_t count, double *weights,
                                double *bias);

/* Pushes a row for each feature of the share to a vector of the order, and waits. */
pawl_status linear_push(struct linear_worker *worker, const struct linear_order *order, enum linear_vector which,
                        const double *rows);

/* Random numbers that all workers draw alike from the same seed (splitmix64). */
static inline uint64_t linear_draw(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* A random order of 0 … count - 1. */
static inline void linear_shuffle(uint64_t *state, uint32_t *order, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  for (uint32_t i = count; i > 1; i--) {
    uint32_t k = (uint32_t)((linear_draw(state) >> 32) * i >> 32), swapped = order[i - 1];
    order[i - 1] = order[k];
    order[k] = swapped;
  }
}

#endif
