/* Decisions between rounds: see control.h. */
#include "apps/linear/control.h"

#include <math.h>
#include <string.h>

/* Rounds that visit active features only, between two full rounds. */
enum { ACTIVE_ROUNDS = 2 };

#define DAMPING_MOST 1e9
#define RATE_LEAST 1e-18 /* lowest learning rate, relative to the first one */

/* Relative to the objective. */
#define ROUNDING 1e-7    /* error of exponentials of single precision: a smaller rise does not count */
#define LEFT_LEAST 1e-12 /* error of double precision */
#define STILL 1e-10      /* a full round with a smaller fall is no progress */

/* Relative to the tolerance. */
#define FLAT 2e-3       /* the fall that the last Newton quadratic may have promised */
#define FLAT_TWICE 0.06 /* the same for losses that are not smooth, twice in a row */
#define REACH 2         /* the highest `reach` of struct linear_distance that counts as converged */
#define REACH_MOST 10   /* the same if `moved` is small as well */
#define MOVED 0.5       /* the highest `moved`, times the way that is still to go */
#define GUESSED 0.1     /* the distance is measured when its estimate is below */

enum { CHECK_AFTER = 20 }; /* rounds since the last measurement */

void linear_control_next(struct linear_control *control) {
  control->rounds = 0;
  control->previous = control->best = control->last_full = INFINITY;
  control->last_fall = control->left = INFINITY;
  control->last_dual = control->best_dual = -INFINITY;
  control->last_factors[0] = control->last_factors[1] = 1;
  control->worst_factor = 0.999;
  control->first_violation = control->last_violation = 0;
  control->log_slope = NAN;
  control->since_full = 0;
  control->is_full = true;
  control->slack = 1e300; /* no feature is left out at first; JSON has no infinity */
  control->gap = control->start = NAN;
  control->since_check = control->rises = control->flat_rounds = 0;
  control->check_below = INFINITY;
  control->is_done = control->is_stuck = false;
  control->wants_check = control->keeps = control->goes_back = false;
}

void linear_control_init(struct linear_control *control, const struct pawl_linear_options *options,
                         const struct linear_method_descriptor *method, uint64_t rows, double crowd) {
  memset(control, 0, sizeof *control);
  control->method = method;
  control->tolerance = options->tolerance > 0 ? options->tolerance : 1e-3;
  control->keep_all = options->keep_all;
  control->rows = rows;
  control->workers = options->workers_most > options->workers ? options->workers_most : options->workers;
  control->least_damping = control->damping = 1;
  control->rate = options->rate;
  control->is_rate_given = options->rate != 0;
  control->has_penalty = true;
  control->is_smooth = linear_loss_of(options->loss)->is_smooth;
  control->balance = 1;
  if (method->begin_control) method->begin_control(control, options, crowd);
  linear_control_next(control);
}

void linear_control_settle_rate(struct linear_control *control, const struct linear_spec *spec, uint64_t rows,
                                double squares) {
  const struct linear_method_descriptor *method = control->method;
  if (!control->is_rate_given)
    control->rate = method->settle_rate ? method->settle_rate(spec, rows, squares) : method->rate;
  control->first_rate = control->rate;
}

void linear_control_begin_blocks(struct linear_control *control, const struct pawl_linear_options *options,
                                 double crowd) {
  (void)options;
  if (crowd > 1) control->least_damping = control->damping = crowd;
}

/* Without delay few rows are in progress at a time (dual.c). With delay, the first damping is one that is
 * always safe. */
void linear_control_begin_dual(struct linear_control *control, const struct pawl_linear_options *options,
                               double crowd) {
  (void)crowd;
  if (options->tau > 0) control->damping = control->workers;
}

/* If steps overshoot, the objective rises. Then the weights go back to the best ones so far, and steps become
 * shorter: the more the objective rose, the shorter, and never again as long as the steps that failed.
 * Otherwise the weights are the best so far, and steps slowly become longer. */
static void guard(struct linear_control *control, const struct linear_outcome *outcome) {
  if (isfinite(outcome->before) && !(control->best < outcome->before)) control->best = outcome->before;
  if (isnan(control->start)) control->start = isfinite(outcome->before) ? outcome->before : outcome->objective;
  bool is_finite = isfinite(outcome->objective);
  if (is_finite && outcome->objective <= control->best + ROUNDING * fabs(control->best)) {
    control->keeps = outcome->objective < control->best;
    control->best = fmin(control->best, outcome->objective);
    control->damping = fmax(control->least_damping, 0.98 * control->damping);
    return;
  }
  double factor = !is_finite || outcome->objective > 2 * fabs(control->best) ? 8 : 2;
  control->goes_back = isfinite(control->best);
  control->is_full = true;
  control->rises++;
  if (control->damping >= DAMPING_MOST) control->is_stuck = true;
  control->least_damping = fmin(1.3 * control->damping, DAMPING_MOST);
  control->damping = fmin(factor * control->damping, DAMPING_MOST);
  control->last_full = control->last_fall = control->left = INFINITY;
  control->last_factors[0] = control->last_factors[1] = 1;
}

static void judge_violation(struct linear_control *control, const struct linear_outcome *outcome) {
  control->slack = outcome->violation_max / (double)(control->rows ? control->rows : 1);
  if (!outcome->was_full) return;
  if (control->first_violation == 0) control->first_violation = outcome->violation;
  control->last_violation = outcome->violation;
}

/* Estimates the distance to the optimum. When a method like this converges, the falls of the objective
 * from one full round to the next shrink by a constant factor, so the remaining fall is the sum of a
 * geometric series. The estimate uses the worst of three consecutive factors. It decides when to measure
 * the distance. */
static void guess(struct linear_control *control, const struct linear_outcome *outcome) {
  if (!outcome->was_full) return;
  double fallen = fabs(control->last_full - outcome->objective), factor = 1;
  if (isfinite(fallen) && isfinite(control->last_fall)) factor = fallen / fmax(control->last_fall, 1e-300);
  double worst = fmin(fmax(factor, fmax(control->last_factors[0], control->last_factors[1])), 0.999);
  control->worst_factor = worst;
  control->left = fallen * worst / (1 - worst) / fabs(outcome->objective);
  control->last_factors[1] = control->last_factors[0];
  control->last_factors[0] = factor;
  control->last_fall = fallen;
  control->last_full = outcome->objective;
}

/* An objective of 0 cannot fall: rows that weights separate, without a penalty. Without a penalty there is no
 * bound on the distance, and the estimate decides. */
static void judge_end(struct linear_control *control, const struct linear_outcome *outcome) {
  control->since_check++;
  if (!outcome->was_full || control->tolerance <= LINEAR_NEVER_DONE) return;
  bool is_nothing = outcome->objective == 0 || (!control->has_penalty && outcome->objective <= 1e-9 * control->start);
  bool seems = fmax(control->left, control->last_fall / fabs(outcome->objective) / 2) <= GUESSED * control->tolerance;
  control->is_done = is_nothing || (seems && !control->has_penalty);
  control->wants_check = !control->is_done && seems && control->has_penalty &&
                         (outcome->violation <= control->check_below || control->since_check >= CHECK_AFTER);
}

/* As F is convex, the distance is at most the sum of the violations, each times the way from w_j to the optimum. Two
 * guesses of that way have to agree: w_j itself, and the way since the last full round times what is left of a
 * geometric series. The objective falls by the square of the factor by which the weights come closer.
 *
 * Returns by which factor the violation has to fall until both are small enough; 1 and more if they are. `moved` falls
 * with its square. */
static double to_be_near(const struct linear_control *control, const struct linear_distance *distance) {
  double factor = sqrt(control->worst_factor), to_go = fmax(1, factor / (1 - factor));
  double near = REACH_MOST * control->tolerance / distance->reach;
  double still = sqrt(MOVED * control->tolerance / (to_go * distance->moved));
  return fmax(REACH * control->tolerance / distance->reach, fmin(near, still));
}

/* Training is done if the bound is within the tolerance. If the penalty is small for the size of the values,
 * the bound is useless. Then four conditions decide. The violation of the optimality conditions is, by
 * default, a hundredth of the first one (LIBLINEAR's rule; less where a class is rare: Yuan et al. 2010, 6).
 * The estimate is at most a tenth of the tolerance; otherwise nothing is measured. Steps are not damped, as
 * short steps creep. And the weights are near (to_be_near). The bound falls about as fast as the violation, which each round
 * reports. */
void linear_control_measured(struct linear_control *control, const struct linear_distance *distance) {
  double gap = distance->gap, allowed = 10 * control->tolerance * control->balance * control->first_violation;
  double factor = fmin(to_be_near(control, distance), allowed / distance->violation);
  bool is_flat = control->damping <= 1 && factor >= 1;
  control->gap = gap;
  control->is_done = gap <= control->tolerance || is_flat;
  control->wants_check = false;
  control->since_check = 0;
  if (!(control->damping <= 1 && factor > control->tolerance / gap)) factor = control->tolerance / gap;
  control->check_below = control->last_violation * factor;
  control->is_stuck = !control->is_done && control->last_fall <= STILL * fabs(control->best);
}

void linear_control_hear_blocks(struct linear_control *control, const struct linear_outcome *outcome) {
  control->since_full = outcome->was_full ? 0 : control->since_full + 1;
  control->is_full = control->keep_all || !outcome->is_whole || control->since_full >= ACTIVE_ROUNDS;
  if (!outcome->is_whole) return;
  judge_violation(control, outcome);
  guard(control, outcome);
  if (control->goes_back || !isfinite(outcome->objective)) return;
  guess(control, outcome);
  judge_end(control, outcome);
}

/* After a Newton step. If the penalty is small for the size of the values, the bound is useless. Then the
 * quadratic decides: with the whole Hessian, its fall is the distance to the optimum before the step. For
 * losses that are not smooth the quadratic may be wrong, so it has to promise little twice in a row. */
void linear_control_hear_newton(struct linear_control *control, const struct linear_outcome *outcome) {
  if (isnan(control->start)) control->start = outcome->objective;
  control->gap = control->has_penalty ? outcome->gap : NAN;
  control->left = outcome->left;
  control->best = fmin(control->best, outcome->objective);
  control->is_stuck = outcome->is_stuck;
  if (control->tolerance <= LINEAR_NEVER_DONE) return;
  bool is_nothing = outcome->objective == 0 || (!control->has_penalty && outcome->objective <= 1e-9 * control->start);
  bool is_flat = outcome->left <= fmax((control->is_smooth ? FLAT : FLAT_TWICE) * control->tolerance, LEFT_LEAST);
  control->flat_rounds = is_flat ? control->flat_rounds + 1 : 0;
  is_flat = control->flat_rounds >= (control->is_smooth ? 1 : 2);
  control->is_done = is_nothing || is_flat || control->gap <= control->tolerance;
}

/* If the dual objective falls, the steps of all workers together were too long. Then they become shorter, and
 * are never again as long. A damping of twice the number of workers is always enough (dual.c). */
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

void linear_control_hear_dual(struct linear_control *control, const struct linear_outcome *outcome) {
  if (!outcome->is_whole || !isfinite(outcome->objective) || !isfinite(outcome->dual)) return;
  adjust_dual_damping(control, outcome);
  if (isfinite(outcome->before) && !(control->best < outcome->before)) control->best = outcome->before;
  control->keeps = outcome->objective < control->best;
  control->best = fmin(control->best, outcome->objective);
  control->best_dual = fmax(control->best_dual, outcome->dual);
  double gap = fmax(control->best - control->best_dual, 0);
  control->gap = control->best != 0 ? gap / fabs(control->best) : 0;
  control->is_done = control->gap <= control->tolerance && control->tolerance > LINEAR_NEVER_DONE;
  if (control->first_violation == 0) control->first_violation = gap;
  double slope = log(fmax(gap, 1e-300) / control->first_violation) / (double)control->rounds;
  control->log_slope = slope < 0 ? slope : NAN;
  control->last_violation = gap;
}

/* Distributed gradients: if the objective rises, the rate is halved, and training goes back to the best
 * weights. */
void linear_control_hear_gradient(struct linear_control *control, const struct linear_outcome *outcome) {
  double first = control->first_rate;
  if (!outcome->is_whole) return;
  double previous = control->best;
  control->last_violation = 1;
  guard(control, outcome);
  if (control->goes_back || !isfinite(outcome->objective)) {
    control->rate /= control->goes_back && isfinite(outcome->objective) ? 2 : 16;
    control->is_stuck = control->rate < RATE_LEAST * first;
    return;
  }
  control->since_check++;
  if (control->tolerance <= LINEAR_NEVER_DONE || !isfinite(previous)) return;
  bool seems = previous - outcome->objective < 1e-2 * control->tolerance * fabs(outcome->objective);
  control->is_done = outcome->objective == 0 || (seems && !control->has_penalty);
  control->wants_check = seems && control->has_penalty && (control->since_check >= CHECK_AFTER || isnan(control->gap));
}

void linear_control_hear(struct linear_control *control, const struct linear_outcome *outcome) {
  control->rounds++;
  control->wants_check = control->keeps = control->goes_back = false;
  if (control->method->hear) control->method->hear(control, outcome);
  if (outcome->is_whole && isfinite(outcome->objective)) control->previous = outcome->objective;
}

double linear_control_left_dual(const struct linear_control *control) {
  if (!(control->log_slope < 0)) return NAN;
  return log(control->tolerance * fabs(control->previous) / control->last_violation) / control->log_slope;
}

double linear_control_left_blocks(const struct linear_control *control) {
  if (!isfinite(control->left) || !(control->last_factors[0] < 1)) return NAN;
  return (ACTIVE_ROUNDS + 1) * log(GUESSED * control->tolerance / control->left) / log(control->last_factors[0]);
}

double linear_control_left(const struct linear_control *control) {
  double left = control->method->left ? control->method->left(control) : NAN;
  return isnan(left) || left > 0 ? left : 0;
}
