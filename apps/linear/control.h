/* What the scheduler decides from one round to the next: when to stop, when to look at all features, how far
 * to step. A pure function of what the rounds have brought. */
#ifndef LINEAR_CONTROL_H
#define LINEAR_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/linear/linear.h"

/* The sum of all workers' replies to a sweep, and what the servers say. */
struct linear_outcome {
  bool is_whole; /* every worker replied, and the pieces were those of the round before */
  bool was_full;
  double objective; /* NAN if not known */
  double violation, violation_max;
  double dual;   /* of dual methods */
  double before; /* the objective before the round, if it was the first; else NAN */
  /* a bound on how far it is to the optimum, as a part of the objective (certificate.h); NAN if there is
   * none */
  double gap;
  double left;   /* of Newton steps: how far it is by the quadratic that the step came from */
  bool is_stuck; /* of Newton steps: none brings the objective down */
};

struct linear_control {
  const struct linear_method_descriptor *method;
  double tolerance;
  bool keep_all;
  uint64_t rows;
  double workers;
  uint64_t rounds;       /* in this point, so far */
  double previous, best; /* objectives */
  double last_full, last_fall,
      last_factors[2]; /* the objective after the last full round, and how it falls between them */
  double last_dual, best_dual;
  double first_rate;
  bool is_rate_given;                     /* by the user */
  double left;                            /* to the optimum, as a part of the objective, about: a guess */
  double gap;                             /* the same, as it was measured last: a bound; NAN before */
  double start;                           /* the first objective */
  double first_violation, last_violation; /* of full rounds; first: 0 while not known */
  /* of the violation, per round: for guessing how long it will take */
  double log_slope;
  uint32_t since_full, since_check, rises, flat_rounds;
  double check_below;          /* the violation from which on it is worth another look at how far it is */
  bool has_penalty, is_smooth; /* the loss has a second derivative everywhere */
  double balance;              /* rows of the rarer class, as a part of all; 1 for regression */

  /* For the next round: */
  bool is_full;
  double slack, damping, least_damping, rate;
  bool is_done;
  bool is_stuck;    /* steps are as short as they may be, and none brings the objective down */
  bool wants_check; /* it seems to be done: measure, and tell linear_control_measured */
  bool keeps;       /* the weights of this round are the best so far: keep them */
  bool goes_back;   /* the objective has risen: go back to those that were kept */
  bool lowers_rate; /* the rate was too high: begin a new generation with `rate` */
};

/* `crowd`: how many features of a row, about, are changed without knowing of one another (train.c). */
void linear_control_init(struct linear_control *control, const struct linear_options *options,
                         const struct linear_method_descriptor *method, uint64_t rows, double crowd);

/* The first learning rate: the one that the user gave, or the method's choice for data with so many rows and
 * this sum of all squared values. May be called again when features are scaled. */
void linear_control_settle_rate(struct linear_control *control, const struct linear_spec *spec, uint64_t rows,
                                double squares);

/* A new penalty: begins with what the last one ended with. */
void linear_control_next(struct linear_control *control);

/* How far it is, measured at the weights. */
struct linear_distance {
  double gap;       /* a bound, as a part of the objective */
  double violation; /* of the optimality conditions, summed over features */
  double
      reach; /* the same sum, each times |w_j|, as a part of the objective: as F is convex, a bound if no weight of the optimum is further from ours
                       than 0 is */
};

/* After `wants_check`. */
void linear_control_measured(struct linear_control *control, const struct linear_distance *distance);

void linear_control_hear(struct linear_control *control, const struct linear_outcome *outcome);

/* The part of linear_control_hear that differs from method to method. Descriptors of methods name one of
 * these, or a function of their own. */
void linear_control_hear_blocks(struct linear_control *control, const struct linear_outcome *outcome);
void linear_control_hear_newton(struct linear_control *control, const struct linear_outcome *outcome);
void linear_control_hear_dual(struct linear_control *control, const struct linear_outcome *outcome);
void linear_control_hear_gradient(struct linear_control *control, const struct linear_outcome *outcome);

/* The first damping of steps, and the rounds that are left, likewise. */
void linear_control_begin_blocks(struct linear_control *control, const struct linear_options *options, double crowd);
void linear_control_begin_dual(struct linear_control *control, const struct linear_options *options, double crowd);
double linear_control_left_blocks(const struct linear_control *control);
double linear_control_left_dual(const struct linear_control *control);

/* Rounds that are still needed, about; NAN if there is no telling. */
double linear_control_left(const struct linear_control *control);

#endif
