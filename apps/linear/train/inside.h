/* The scheduler of a linear job, inside: what train.c, apps/linear/train/point.c, train_state.c and
 * validate.c share. */
#ifndef APPS_LINEAR_TRAIN_INSIDE_H
#define APPS_LINEAR_TRAIN_INSIDE_H

#include "apps/common/run.h"
#include "apps/linear/control.h"
#include "apps/linear/inside.h"

/* Validation data, in this process. */
struct linear_validation {
  struct linear_share share;
  struct linear_scatter scatter;
  struct linear_worker reader; /* only its vectors and scatter are used, for pulling */
  double best;
  uint32_t worse;            /* rounds since the best */
  struct linear_model model; /* of the best round, if there may be an early stop */
};

/* What is kept from one checkpoint to the next start. */
struct linear_state {
  char checkpoint[PAWL_CHECKPOINT_NAME_MAX + 1], before[PAWL_CHECKPOINT_NAME_MAX + 1];
  uint64_t round, first_round, features, rows, entries;
  size_t point;
  uint32_t generation, blocks;
  double labels[2], damping, rate, objective;
  struct apps_digest digest;
};

/* The weights of the best round that are not zero, by rising key. */
struct linear_kept {
  uint64_t *keys;
  double *weights, bias;
  size_t count, room;
  bool is_there;
};

struct linear_run {
  struct apps_run common;
  const struct linear_options *options;
  struct linear_spec spec;
  struct pawl_data *data;
  struct linear_order order; /* of the next round */
  struct linear_control control;
  struct linear_validation validation;
  struct pawl_vector *weights, *bias, *alpha;
  struct pawl_vector *scales;   /* NULL: features are as they are */
  struct linear_kept kept;      /* apps/linear/train/guard.c */
  struct linear_newton *newton; /* NULL before the first Newton step */
  bool has_vectors;
  struct linear_progress progress;
  char slowest_host[256];
  struct linear_result result;
  /* the newest checkpoints, the newer first: the others are removed */
  char saved[2][PAWL_CHECKPOINT_NAME_MAX + 1];
  int64_t trained_ns, saved_ns;
  uint64_t first_round;      /* of the point */
  uint64_t resumed;          /* rounds of it that an earlier run has done */
  struct apps_digest digest; /* of the data; its pieces are 0 while it is not known */
  double waited_s, worked_s;
  /* how often pieces have changed hands, or workers were lost: so far, and at the last round, */
  uint64_t moved, seen_moved;
  uint64_t gathered_moved; /* and when the weights were last gathered */
  bool is_best;            /* the weights on the servers are those that are kept */
  uint64_t resumed_round;  /* the first one after resuming */
  double nothing;          /* the loss with all weights zero */
  double penalty;          /* at the end */
  bool zero_based;         /* ids of features begin at 0 */
  double class_rows[2];
};

/* Tells the caller how far the training is: round.c. */
void linear_show(struct linear_run *run, const char *stage);

/* For struct apps_run. A pass over streamed data may take hours, and is left in the middle when the caller
 * wants to stop; rounds of other methods are short, and finished. */
bool linear_hear(void *application, const struct pawl_job_event *event);
bool linear_wait(void *application);

/* One round of the order as it stands; the sum of the replies. `*whole_out`: no worker was missing. A
 * worker's failure is the round's. PAWL_CANCELLED: the caller wants to stop. */
pawl_status linear_round(struct linear_run *run, struct linear_reply *sum_out, bool *whole_out);

/* The first round: describe.c. */
pawl_status linear_describe(struct linear_run *run);

/* Vectors of the order's point and generation: made (or opened, if they are there), closed, deleted. */
pawl_status linear_make_vectors(struct linear_run *run);
void linear_close_vectors(struct linear_run *run);
void linear_delete_vectors(struct linear_run *run, const struct linear_order *order);

/* One of them: made, or opened if it is there; deleted. */
pawl_status linear_make_vector(struct linear_run *run, enum linear_vector which, struct pawl_vector **vector_out);
void linear_delete_vector(struct linear_run *run, const struct linear_order *order, enum linear_vector which);

/* Vectors that a job of this name has left behind, which would not be zeros. */
pawl_status linear_delete_leftovers(struct linear_run *run);

/* New vectors of a point and a generation that begin as `weights` and `bias` are; those of the order before
 * are deleted. */
pawl_status linear_begin_vectors(struct linear_run *run, size_t point, uint32_t generation, struct pawl_vector *weights,
                                 struct pawl_vector *bias, bool with_alpha);

/* The penalty of the weights that the servers hold. */
pawl_status linear_read_penalty(struct linear_run *run, double *penalty_out, uint64_t *nonzeros_out);

/* The best weights so far are kept, and gone back to: apps/linear/train/guard.c. */
pawl_status linear_keep(struct linear_run *run);
pawl_status linear_go_back(struct linear_run *run);
pawl_status linear_end_with_the_best(struct linear_run *run);
void linear_forget_kept(struct linear_run *run);

/* Measures how far the weights are from the optimum: what linear_control_measured is told. */
pawl_status linear_measure(struct linear_run *run, struct linear_distance *distance_out);

/* Whether the result is what was asked for, and what to try if it is not. */
void linear_judge_end(struct linear_run *run);

/* Frees the scheduler's state of Newton steps: train/newton.c. */
void linear_newton_end(struct linear_run *run);

/* Trains for the order's point: rounds until it is done, then evaluation, and `found`. */
pawl_status linear_train_point(struct linear_run *run, size_t point, bool resumes);

/* Features divided by their size: apps/linear/train/scale.c. The divisors are measured, or opened where a run
 * goes on; and read, by rising key. */
pawl_status linear_scale_settle(struct linear_run *run);
pawl_status linear_scale_open(struct linear_run *run);
pawl_status linear_scale_pull(struct linear_run *run, const uint64_t *keys, size_t count, double *scales);

/* The weights that the servers hold, as a model. */
pawl_status linear_read_bias(struct linear_run *run, double *bias_out);
pawl_status linear_read_model(struct linear_run *run, struct linear_model *model_out);
/* Adds names of features, where the data has them. */
void linear_name_features(struct linear_run *run, struct linear_model *model);
pawl_status linear_write_start(struct linear_run *run, const struct linear_model *model);
pawl_status linear_write_vector(struct linear_run *run, struct pawl_vector *vector, const uint64_t *keys,
                                const double *values, size_t count); /* all others become zero */

/* Validation. */
/* How one part of the rows is read, where some are held out. */
void linear_split(const struct linear_options *options, enum pawl_data_part part, struct pawl_data_options *reading);
pawl_status linear_validation_load(struct linear_run *run);
pawl_status linear_validate(struct linear_run *run);
void linear_validation_fini(struct linear_run *run);

/* Checkpoints. */
/* A digest that workers have sent: taken if it is of all pieces. */
void linear_state_digest(struct linear_run *run, const struct apps_digest *digest);
pawl_status linear_state_save(struct linear_run *run);
pawl_status linear_state_load(struct linear_run *run, struct linear_state *state_out);

#endif
