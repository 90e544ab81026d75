/* What the scheduler (train.c) and the workers (worker.c) of linear methods tell one another, and what a
 * method is.
 *
 * When a worker joins it gets a *spec*: what never changes. Each round has an *order*, which says all the
 * rest, so that a worker that has just come needs to know nothing of earlier rounds; and every worker returns
 * a *reply*. All three travel as JSON.
 */
#ifndef LINEAR_INSIDE_H
#define LINEAR_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/common/clock.h"
#include "apps/linear/hessian.h"
#include "apps/linear/linear.h"
#include "apps/linear/rows.h"
#include "apps/linear/share.h"

#define LINEAR_TIMEOUT (60 * PAWL_SECOND) /* for opening what should be there */

/* Newton steps: the most features there may be, and up to which, and to how many pairs of entries of a row,
 * they are chosen by themselves. */
#define LINEAR_NEWTON_MOST 16383
#define LINEAR_NEWTON_AUTO 3200
#define LINEAR_NEWTON_SPARSE                                                                                           \
  1000 /* the same where rows have fewer than a sixteenth of the features: blocks are faster there */
#define LINEAR_NEWTON_PAIRS 1e11

/* By what part of itself the curvature of a row may have changed before the Hessian takes note: hessian.h. */
#define LINEAR_HESSIAN_SLACK 0.5
/* The hinge loss: up to so many bytes of text one worker has all rows; and how many times as large a
 * compressed file is, about. */
#define LINEAR_DUAL_ALONE (UINT64_C(256) << 20)
#define LINEAR_PACKED 5

struct linear_spec {
  char job[64]; /* also the space of the vectors */
  enum linear_loss loss;
  const struct linear_method_descriptor *method; /* its number travels */
  char **paths;
  size_t path_count;
  struct pawl_data_options reading;
  char label[128];      /* reading.label points here, if it is not empty */
  uint64_t fingerprint; /* of the data as the scheduler sees it, */
  uint64_t pieces;      /* of which there are so many */
  bool bias;
  bool digests; /* workers digest what they read: there will be checkpoints */
  double class_weights[2];
  enum linear_scale scale;
  uint32_t tau, threads, minibatch;
  double rate;
};

void linear_spec_fini(struct linear_spec *spec);

enum linear_do {
  LINEAR_DESCRIBE = 1, /* count rows, features, labels */
  LINEAR_SWEEP = 2,    /* one pass of the method over the data */
  LINEAR_EVALUATE = 3, /* loss and accuracy with the weights that are on the servers */
  LINEAR_GATHER = 4,   /* begin, and push what the weights are the sum of */
  /* derivatives at the weights that are on the servers, and what bounds the optimum: derive.c */
  LINEAR_DERIVE = 5,
  /* losses at some points between the weights and a step that the scheduler proposes: derive.c */
  LINEAR_SEARCH = 6,
  LINEAR_MEASURE = 7, /* how large features are: scale.h */
};

/* Points of a search: steps of `rate`, half of it, a quarter, … */
enum { LINEAR_TRIALS = 6 };

/* By how much a point of the dual is shrunk, to make it feasible: certificate.h. */
enum { LINEAR_SHRINKS = 8 };
extern const double linear_shrinks[LINEAR_SHRINKS];

struct linear_order {
  enum linear_do what;
  uint64_t round; /* counted over all points */
  size_t point;   /* which vectors: see linear_vector_name */
  /* likewise: methods whose sums depend on who takes part begin new ones when that changes */
  uint32_t generation;
  double l1, l2;
  uint64_t features; /* the span of ids: the highest, and one more */
  uint64_t rows;     /* of all workers */
  double labels[2];
  uint32_t blocks;
  uint64_t seed;
  bool is_full;    /* look at features that the KKT filter leaves out, too */
  double slack;    /* of the KKT filter */
  double damping;  /* what curvatures are multiplied by; 1 if all goes well */
  double rate;     /* of methods with a learning rate, in this round */
  uint64_t serial; /* of DERIVE: which vectors the derivatives are added up in */
  bool is_first;   /* of SWEEP: the loss before it is wanted, too */
  bool is_curved;  /* of DERIVE: the Hessian, too */
};

struct linear_reply {
  struct linear_census census;
  uint64_t rows, correct;
  double loss;
  /* of the optimality conditions: sum and largest, over features looked at */
  double violation, violation_max;
  uint64_t looked_at; /* features, in this round */
  double waited_s, worked_s;
  uint64_t bytes_sent, bytes_received;
  double dual;                         /* of dual methods: this worker's part of the dual objective */
  double loss_before, loss_of_nothing; /* before a sweep that is the first; with all weights zero */
  double slopes[2]; /* of DERIVE: their sums over rows of each class; for regression: certificate.h */
  double conjugates[2][LINEAR_SHRINKS]; /* likewise: certificate.h */
  double trials[LINEAR_TRIALS];         /* of SEARCH: losses */
};

/* JSON texts; NULL without memory. Freed by the caller with free. Reading gives false for anything that is
 * not whole. */
char *linear_spec_write(const struct linear_spec *spec);
bool linear_spec_read(const void *bytes, size_t size, struct linear_spec *spec_out);
char *linear_order_write(const struct linear_order *order);
bool linear_order_read(const void *bytes, size_t size, struct linear_order *order_out);
char *linear_reply_write(const struct linear_reply *reply);
bool linear_reply_read(const void *bytes, size_t size, struct linear_reply *reply_out);

/* --- vectors -------------------------------------------------------------------------------------------- */

/* What the servers hold for a point: weights by key, the bias, and what else a method needs. */
enum linear_vector {
  LINEAR_WEIGHTS,
  LINEAR_BIAS,
  LINEAR_ALPHA,
  LINEAR_GRADIENT, /* derivatives: by key, of each class; */
  LINEAR_HESSIAN,  /* the upper triangle, row after row, by key, the bias last; */
  LINEAR_STEP,     /* a step that is searched along, by key, the bias last; */
  LINEAR_MOST,     /* of values: the largest, by key; */
  LINEAR_SUMS,     /* sums, and of squares, by key; */
  LINEAR_SCALES,   /* what features are divided by, by key, for the whole job: scale.h */
};

void linear_vector_name(const struct linear_spec *spec, const struct linear_order *order, enum linear_vector which,
                        char name[PAWL_NAME_MAX + 1]);

/* The options with which the method's vector is made. False: the method does not have it. */
bool linear_vector_options(const struct linear_spec *spec, const struct linear_order *order, enum linear_vector which,
                           struct pawl_vector_options *options_out);

/* --- methods -------------------------------------------------------------------------------------------- */

/* What a worker keeps of derivatives: derive.c. */
struct linear_derived {
  double *w, *z; /* the scores of rows at these weights, of which the last is the bias; NULL: not known */
  struct linear_hessian hessian;
};

/* A worker's side of a job. */
struct linear_worker {
  struct pawl_worker *worker;
  struct pawl_session *session;
  struct linear_spec spec;
  struct pawl_data *data;
  struct linear_share share;      /* by columns; empty for methods that stream */
  struct linear_rows rows;        /* the same by rows, once they are needed */
  struct linear_derived *derived; /* of the share as it is; NULL before the first derivatives */
  struct linear_scatter scatter;
  struct pawl_range *pieces; /* of methods that stream: what is ours */
  size_t piece_count;
  size_t point; /* that the vectors are open for; SIZE_MAX: none */
  uint32_t generation;
  struct pawl_vector *weights, *bias, *alpha;
  void *state; /* of the method */
  bool is_begun;
  bool has_said; /* by pawl_worker_say, why the work fails */
};

/* y of a label: -1 or +1, or for regression the label itself. c: the weight of a row of that class. */
static inline double linear_y(const struct linear_spec *spec, const struct linear_order *order, double label) {
  return linear_is_regression(spec->loss) ? label : label == order->labels[1] ? 1 : -1;
}

static inline double linear_c(const struct linear_spec *spec, double y) {
  return linear_is_regression(spec->loss) ? 1 : spec->class_weights[y > 0];
}

/* Loss and accuracy over this worker's rows with the weights that the servers hold: of any method. */
pawl_status linear_evaluate(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply);

/* Derivatives, and losses along a step: derive.c. */
pawl_status linear_derive(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply);
pawl_status linear_search(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply);
void linear_derived_forget(struct linear_worker *worker); /* the share has changed, or it is the end */

/* The weights of these features, which rise, by the vector's own keys. */
pawl_status linear_pull_weights(struct linear_worker *worker, const uint64_t *keys, size_t count, double *weights,
                                double *bias);

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
