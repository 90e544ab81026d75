/* The scheduler of a linear job: declarations that the files of train/ share. train.c calls describe.c and
 * point.c; these call newton.c, gradient.c, guard.c, model.c, scale.c, state.c and validate.c; all call round.c and
 * vectors.c. */
#ifndef APPS_LINEAR_TRAIN_INSIDE_H
#define APPS_LINEAR_TRAIN_INSIDE_H

#include "apps/common/run.h"
#include "apps/linear/control.h"
#include "apps/linear/inside.h"

/* Validation data, which the scheduler keeps itself. */
struct linear_validation {
  struct linear_share share;
  struct linear_scatter scatter;
  struct linear_worker reader; /* only its vectors and scatter are used, for pulling */
  double best;
  uint32_t worse;                 /* rounds since the best one */
  struct pawl_linear_model model; /* of the best round, if there may be an early stop */
  double guess;                   /* see struct pawl_linear_result */
  bool is_guessing;               /* the present weights are */
};

/* The state in a checkpoint from which training resumes. */
struct linear_state {
  char checkpoint[PAWL_CHECKPOINT_NAME_MAX + 1], before[PAWL_CHECKPOINT_NAME_MAX + 1];
  uint64_t round, first_round, features, rows, entries;
  size_t point;
  uint32_t generation, blocks;
  double labels[2], damping, rate, objective;
  struct apps_digest digest;
  struct apps_reduce_saved files;
};

/* The weights of the best round that are not zero, by ascending key: guard.c. */
struct linear_kept {
  uint64_t *keys;
  double *weights, bias;
  size_t count, room;
  bool is_there;
};

struct linear_run {
  struct apps_run common;
  const struct pawl_linear_options *options;
  struct linear_spec spec;
  struct pawl_data *data;
  struct linear_order order; /* of the next round */
  struct linear_control control;
  struct linear_validation validation;
  struct pawl_vector *weights, *bias, *alpha;
  struct pawl_vector *scales; /* NULL: features are not scaled */
  struct linear_kept kept;
  struct linear_kept earlier;     /* the same at the last full round; not there if that was not the best one */
  double *mean;                   /* of the weights of workers that average, by id, the bias last; NULL: none yet */
  size_t mean_size;               /* of `mean` */
  uint64_t met_moved;             /* `moved` when workers that average last met */
  struct apps_reduce_saved files; /* their newest checkpoint */
  struct linear_newton *newton;   /* NULL before the first Newton step */
  struct pawl_vector *gradient;   /* on the servers, for the next step: gradient.c; NULL: none */
  bool has_gradient;              /* it is that of the loss at the weights; otherwise zeros */
  uint64_t gradient_serial;       /* part of its name */
  double bias_slope;              /* the derivative by the bias */
  bool has_vectors;
  struct pawl_linear_progress progress;
  char slowest_host[256];
  struct pawl_linear_result result;
  bool keeps_model;                /* the caller of pawl_linear_train wants the last model */
  struct pawl_linear_model *model; /* that model; NULL: there is none yet, or it is not wanted */
  /* The two newest checkpoints, the newest first. Older ones are removed */
  char saved[2][PAWL_CHECKPOINT_NAME_MAX + 1];
  int64_t trained_ns, saved_ns;
  uint64_t first_round;      /* of the point */
  uint64_t resumed;          /* rounds of the point that an earlier run has done */
  struct apps_digest digest; /* of the data; 0 pieces: not known yet */
  double waited_s, worked_s;
  uint64_t moved;          /* how often pieces have moved or workers were lost, so far */
  uint64_t seen_moved;     /* `moved` at the last round */
  uint64_t gathered_moved; /* `moved` when weights were last gathered */
  bool is_best;            /* the weights on the servers are the ones that are kept */
  uint64_t resumed_round;  /* the first round after resuming */
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

/* Creates (or opens, if they exist), closes and deletes the vectors of the order's point and generation. */
pawl_status linear_make_vectors(struct linear_run *run);
void linear_close_vectors(struct linear_run *run);
void linear_delete_vectors(struct linear_run *run, const struct linear_order *order);

/* The same for one vector. */
pawl_status linear_make_vector(struct linear_run *run, enum linear_vector which, struct pawl_vector **vector_out);
void linear_delete_vector(struct linear_run *run, const struct linear_order *order, enum linear_vector which);

/* Deletes vectors that an earlier job of this name has left behind: they would not be zeros. */
pawl_status linear_delete_leftovers(struct linear_run *run);

/* Creates vectors of a point as copies of those of the order, which it deletes. */
pawl_status linear_begin_vectors(struct linear_run *run, size_t point);

/* Workers that average: `collect` brings their mean to the scheduler, where it takes the place of the vectors; the rest
 * reads it. average.c. */
pawl_status linear_average_collect(struct linear_run *run);
pawl_status linear_average_penalty(const struct linear_run *run, double *penalty_out, uint64_t *nonzeros_out);

/* The files of workers that average. *next_out: what they have saved, if `*is_there_out`; else result.unsaved may say why not. */
pawl_status linear_average_save(struct linear_run *run, struct apps_reduce_saved *next_out, bool *is_there_out);
pawl_status linear_average_load_files(struct linear_run *run);

/* The penalty of the weights on the servers. */
pawl_status linear_read_penalty(struct linear_run *run, double *penalty_out, uint64_t *nonzeros_out);

/* Keeps the best weights so far, and goes back to them: guard.c. */
pawl_status linear_keep(struct linear_run *run);
pawl_status linear_go_back(struct linear_run *run);
pawl_status linear_end_with_the_best(struct linear_run *run);
void linear_forget_kept(struct linear_run *run);

/* Remembers the weights that were kept in this full round, until the next one measures how far they have gone. */
pawl_status linear_remember(struct linear_run *run);

/* Measures the distance of the weights to the optimum, for linear_control_measured. */
pawl_status linear_measure(struct linear_run *run, struct linear_distance *distance_out);

/* Decides whether the result is as the user wanted, and what to try if it is not. */
void linear_judge_end(struct linear_run *run);

/* Deletes the gradient on the servers: gradient.c. */
void linear_gradient_end(struct linear_run *run);

/* Frees the scheduler's state of Newton steps: newton.c. */
void linear_newton_end(struct linear_run *run);

/* Trains for one point: rounds until it is done, then evaluation, and `found`. */
pawl_status linear_train_point(struct linear_run *run, size_t point, bool resumes);

/* The divisors of features: measured, opened when a run resumes, and pulled, by ascending key. scale.c. */
pawl_status linear_scale_settle(struct linear_run *run);
pawl_status linear_scale_open(struct linear_run *run);
pawl_status linear_scale_pull(struct linear_run *run, const uint64_t *keys, size_t count, double *scales);

/* The weights on the servers, as a model, and back: model.c. */
pawl_status linear_read_bias(struct linear_run *run, double *bias_out);
pawl_status linear_read_model(struct linear_run *run, struct pawl_linear_model *model_out);
/* Adds the names of features, if the data has names. */
void linear_name_features(struct linear_run *run, struct pawl_linear_model *model);
pawl_status linear_write_start(struct linear_run *run, const struct pawl_linear_model *model);
pawl_status linear_write_vector(struct linear_run *run, struct pawl_vector *vector, const uint64_t *keys,
                                const double *values, size_t count); /* all other elements become zero */

/* Validation: validate.c. linear_split says how one part of the rows is read if some are held out. */
void linear_split(const struct pawl_linear_options *options, enum pawl_data_part part,
                  struct pawl_data_options *reading);
pawl_status linear_validation_load(struct linear_run *run);
pawl_status linear_validate(struct linear_run *run);
void linear_validation_fini(struct linear_run *run);

/* Checkpoints: state.c. linear_state_digest takes a digest from workers if it covers all pieces. */
void linear_state_digest(struct linear_run *run, const struct apps_digest *digest);
pawl_status linear_state_save(struct linear_run *run);
pawl_status linear_state_load(struct linear_run *run, struct linear_state *state_out);

#endif
