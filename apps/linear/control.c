/* From one round to the next: see control.h. */
#include "apps/linear/control.h"

#include <math.h>
#include <string.h>

/* So many rounds of active features alone come between two full ones. */
enum { ACTIVE_ROUNDS = 2 };

#define DAMPING_MOST 1e6
#define ROUNDING 2e-8 /* of the objective: what slopes and exponentials of single precision leave of it */

void linear_control_next(struct linear_control *control) {
  control->rounds = 0;
  control->previous = control->best = control->last_full = INFINITY;
  control->last_fall = control->left = INFINITY;
  control->last_dual = -INFINITY;
  control->last_factors[0] = control->last_factors[1] = 1;
  control->first_violation = control->last_violation = 0;
  control->log_slope = NAN;
  control->since_full = 0;
  control->is_full = true;
  control->slack = 1e300; /* nobody is left out before anything is known; JSON has no infinity */
  control->is_done = control->lowers_rate = false;
}

void linear_control_init(struct linear_control *control, const struct linear_options *options,
                         enum linear_method method, uint64_t rows, double crowd) {
  memset(control, 0, sizeof *control);
  control->method = method;
  control->tolerance = options->tolerance > 0 ? options->tolerance : method == LINEAR_METHOD_DUAL ? 2e-3 : 1e-4;
  control->keep_all = options->keep_all;
  control->rows = rows;
  control->workers = options->workers_most > options->workers ? options->workers_most : options->workers;
  control->least_damping = control->damping = crowd > 1 && method == LINEAR_METHOD_BLOCKS ? crowd : 1;
  /* dual.c: without delay few rows are under way together; with it, begin with what is safe whatever they are */
  if (method == LINEAR_METHOD_DUAL && options->tau > 0) control->damping = control->workers;
  control->rate = options->rate;
  linear_control_next(control);
}

/* Steps that overshoot make the objective rise; then they are made shorter, and slowly longer again. */
static void adjust_damping(struct linear_control *control, const struct linear_outcome *outcome) {
  if (outcome->objective > control->previous * (1 + 1e-6)) {
    control->damping = fmin(2 * control->damping, DAMPING_MOST);
    control->is_full = true;
  } else {
    control->damping = fmax(control->least_damping, 0.98 * control->damping);
  }
}

static void judge_violation(struct linear_control *control, const struct linear_outcome *outcome) {
  control->slack = outcome->violation_max / (double)(control->rows ? control->rows : 1);
  if (!outcome->was_full) return;
  if (control->first_violation == 0) control->first_violation = outcome->violation;
  control->last_violation = outcome->violation;
}

/* How far it is to the optimum: if falls from one full round to the next shrink by a constant factor, as they do when a method like
 * this converges, what is left is the sum of a geometric series. Of three factors in a row the worst is believed. */
static void judge_objective(struct linear_control *control, const struct linear_outcome *outcome) {
  if (!outcome->was_full) return;
  if (outcome->objective == 0) { /* nothing can be less: rows that are told apart without a penalty */
    control->left = 0;
    control->is_done = true;
    return;
  }
  double fallen = fabs(control->last_full - outcome->objective), factor = 1;
  if (isfinite(fallen) && isfinite(control->last_fall)) factor = fallen / fmax(control->last_fall, 1e-300);
  double worst = fmin(fmax(factor, fmax(control->last_factors[0], control->last_factors[1])), 0.999);
  control->left = fallen * worst / (1 - worst) / fabs(outcome->objective);
  bool is_still = fmax(fallen, control->last_fall) <= ROUNDING * fabs(outcome->objective);
  control->is_done = is_still || fmax(control->left, fallen / fabs(outcome->objective) / 2) <= control->tolerance;
  if (control->tolerance <= LINEAR_NEVER_DONE) control->is_done = false;
  control->last_factors[1] = control->last_factors[0];
  control->last_factors[0] = factor;
  control->last_fall = fallen;
  control->last_full = outcome->objective;
}

static void hear_blocks(struct linear_control *control, const struct linear_outcome *outcome) {
  control->since_full = outcome->was_full ? 0 : control->since_full + 1;
  control->is_full = control->keep_all || !outcome->is_whole || control->since_full >= ACTIVE_ROUNDS;
  if (!outcome->is_whole) return;
  judge_violation(control, outcome);
  if (!isfinite(outcome->objective)) return;
  judge_objective(control, outcome);
  adjust_damping(control, outcome);
}

/* A dual objective that falls means that steps were too long together: shorter ones, and never again as long. Twice the number of
 * workers is always short enough (dual.c). */
static void adjust_dual_damping(struct linear_control *control, const struct linear_outcome *outcome) {
  double most = 2 * control->workers;
  if (outcome->dual < control->last_dual) {
    control->least_damping = fmin(1.2 * control->damping, most);
    control->damping = fmin(2 * control->damping, most);
  } else {
    control->damping = fmax(control->least_damping, 0.9 * control->damping);
  }
  control->last_dual = outcome->dual;
}

static void hear_dual(struct linear_control *control, const struct linear_outcome *outcome) {
  if (!outcome->is_whole || !isfinite(outcome->objective)) return;
  double gap = outcome->objective - outcome->dual;
  adjust_dual_damping(control, outcome);
  control->is_done = gap <= control->tolerance * fabs(outcome->objective);
  if (control->first_violation == 0) control->first_violation = gap;
  double slope = log(gap / control->first_violation) / (double)control->rounds;
  control->log_slope = slope < 0 ? slope : NAN;
  control->last_violation = gap;
}

/* Distributed gradients: half the rate when the objective rises, and done when it hardly falls any more. */
static void hear_gradient(struct linear_control *control, const struct linear_outcome *outcome) {
  control->lowers_rate = false;
  if (!outcome->is_whole || !isfinite(outcome->objective)) return;
  if (outcome->objective > control->previous * (1 + 1e-9)) {
    control->rate /= 2;
    control->lowers_rate = true;
  } else if (isfinite(control->previous)) {
    control->is_done = control->previous - outcome->objective < 1e-2 * control->tolerance * fabs(outcome->objective);
  }
}

void linear_control_hear(struct linear_control *control, const struct linear_outcome *outcome) {
  control->rounds++;
  if (control->method == LINEAR_METHOD_BLOCKS)
    hear_blocks(control, outcome);
  else if (control->method == LINEAR_METHOD_DUAL)
    hear_dual(control, outcome);
  else if (control->method == LINEAR_METHOD_SUBGRADIENT)
    hear_gradient(control, outcome);
  if (outcome->is_whole && isfinite(outcome->objective)) {
    control->previous = outcome->objective;
    if (outcome->objective < control->best) control->best = outcome->objective;
  }
}

double linear_control_left(const struct linear_control *control) {
  double left = NAN;
  if (control->method == LINEAR_METHOD_DUAL && control->log_slope < 0)
    left = log(control->tolerance * fabs(control->previous) / control->last_violation) / control->log_slope;
  if (control->method == LINEAR_METHOD_BLOCKS && isfinite(control->left) && control->last_factors[0] < 1)
    left = (ACTIVE_ROUNDS + 1) * log(control->tolerance / control->left) / log(control->last_factors[0]);
  return isnan(left) || left > 0 ? left : 0;
}
