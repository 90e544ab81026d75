/* Decisions of the scheduler between rounds: when to stop, when to visit all features, how far to step. All
 * functions are pure: they depend on the outcomes of rounds only. */
#ifndef LINEAR_CONTROL_H
#define LINEAR_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/linear/methods.h"

#define LINEAR_NEVER_DONE 1e-15 /* with this tolerance training goes on for all its rounds */

/* The outcome of a round: the sum of all workers' replies, and the penalty that the servers compute. */
struct linear_outcome {
  bool is_whole;                   /* every worker replied, and no piece has moved since the round before */
  bool was_full;                   /* the round visited all features */
  double objective;                /* NAN if not known */
  double violation, violation_max; /* of the optimality conditions: sum and largest */
  double dual;                     /* dual objective, of dual methods */
  double before;                   /* objective before the round, if it was the first; else NAN */
  /* bound on the distance to the optimum, relative to the objective (certificate.h); NAN: none */
  double gap;
  double left;   /* Newton steps: distance by the quadratic that the step came from */
  bool is_stuck; /* Newton steps: no step lowers the objective */
};

struct linear_control {
  const struct linear_method_descriptor *method;
  double tolerance;
  bool keep_all;
  uint64_t rows;
  double workers;
  uint64_t rounds;        /* of this point, so far */
  double previous, best;  /* objectives */
  double last_full;       /* objective after the last full round */
  double last_fall;       /* how much the objective fell between the last two full rounds */
  double last_factors[2]; /* ratios of consecutive falls, the newest first */
  double worst_factor;    /* the highest of the last three, below 1 */
  double last_dual, best_dual;
  double first_rate;
  bool is_rate_given; /* by the user */
  double left;        /* estimated distance to the optimum, relative to the objective */
  /* last measured bound on that distance; NAN before the first measurement */
  double gap;
  double start;                           /* the first objective */
  double first_violation, last_violation; /* in full rounds; first: 0 while not known */
  double log_slope; /* change of the logarithm of the violation per round, to estimate the remaining rounds */
  uint32_t since_full, since_check, rises, flat_rounds; /* counts of rounds */
  /* violation below which the distance is measured again */
  double check_below;
  bool has_penalty;
  bool is_smooth; /* the loss has a second derivative everywhere */
  double balance; /* share of the rows that have the rarer label; 1 for regression */

  /* Decisions for the next round. */
  bool is_full; /* visit all features */
  double slack, damping, least_damping, rate;
  bool is_done;
  bool is_stuck;    /* steps are as short as possible, and none lowers the objective */
  bool wants_check; /* training seems to have converged: measure, and call linear_control_measured */
  bool keeps;       /* keep the weights of this round: they are the best so far */
  bool goes_back;   /* the objective has risen: go back to the weights that were kept */
};

/* `crowd`: about how many features of a row change at a time, in steps that do not know of one another
 * (train/describe.c). */
void linear_control_init(struct linear_control *control, const struct pawl_linear_options *options,
                         const struct linear_method_descriptor *method, uint64_t rows, double crowd);

/* The first learning rate: the one that the user gave, or the method's choice for data with so many rows and
 * this sum of all squared values. May be called again when features are scaled. */
void linear_control_settle_rate(struct linear_control *control, const struct linear_spec *spec, uint64_t rows,
                                double squares);

/* Begins a new penalty with the present damping and rate. */
void linear_control_next(struct linear_control *control);

/* The measured distance of the weights to the optimum. */
struct linear_distance {
  double gap;       /* bound, relative to the objective */
  double violation; /* of the optimality conditions, summed over features */
  /* The same sum with each term times |w_j|, relative to the objective. As F is convex, it is a bound if no
   * weight of the optimum is further from ours than 0 is */
  double reach;
  /* The same sum with each term times the way that w_j went since the last full round; infinite if the weights of that
   * round were not kept. If weights converge geometrically, the sum is about as large as the distance itself */
  double moved;
};

/* Decides after a measurement, which `wants_check` asked for. */
void linear_control_measured(struct linear_control *control, const struct linear_distance *distance);

/* Decides after a round. */
void linear_control_hear(struct linear_control *control, const struct linear_outcome *outcome);

/* The part of linear_control_hear that differs from method to method. Descriptors of methods name one of
 * these, or a function of their own. */
void linear_control_hear_blocks(struct linear_control *control, const struct linear_outcome *outcome);
void linear_control_hear_newton(struct linear_control *control, const struct linear_outcome *outcome);
void linear_control_hear_dual(struct linear_control *control, const struct linear_outcome *outcome);
void linear_control_hear_gradient(struct linear_control *control, const struct linear_outcome *outcome);

/* The first damping of steps, and the rounds that are left, likewise. */
void linear_control_begin_blocks(struct linear_control *control, const struct pawl_linear_options *options,
                                 double crowd);
void linear_control_begin_dual(struct linear_control *control, const struct pawl_linear_options *options, double crowd);
double linear_control_left_blocks(const struct linear_control *control);
double linear_control_left_dual(const struct linear_control *control);

/* Estimate of the remaining rounds; NAN if there is none. */
double linear_control_left(const struct linear_control *control);

#endif
