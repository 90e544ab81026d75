/* Newton steps, the scheduler's side: for data with so few features that the whole Hessian fits into memory.
 *
 *   v <- argmin  g . (v - w) + 1/2 (v - w)' H (v - w) + l1 |v|_1 + l2/2 |v|^2          (quadratic.h)
 *   w <- w + t (v - w)   with the t of 4, 2, 1, 1/2, 1/4, … that lowers the objective most (with l1: from 1 on)
 *
 * Workers compute g, H and the losses along the step (derive.c), and the servers add them up. The scheduler
 * does the rest. This is a proximal Newton method (Lee, Sun and Saunders 2014). It differs from newGLMNET
 * (Yuan, Ho and Lin 2012) in keeping the whole Hessian: newGLMNET minimises the quadratic approximately, with
 * some coordinate steps. The Hessian is exact up to a known factor (hessian.h). With it steps still lower the
 * objective, and the stop rule takes the factor into account. Scaling and correlation of features do not
 * matter to the method; dividing features by their size changes only rounding errors.
 *
 * The objective never rises: the scheduler writes weights only after the losses along the step have shown
 * that it falls. With exact derivatives it falls unless the necessary t is below 2^-LINEAR_TRIALS. If it
 * falls for no t, the scheduler adds to the diagonal of H (Levenberg and Marquardt), which turns the step
 * towards the gradient and makes it shorter.
 *
 * Each round of derivatives also gives a bound on the distance to the optimum (certificate.h), which ends the
 * training.
 *
 * A Hessian costs as much as many gradients. With l2 and without l1, training therefore begins with steps of
 * L-BFGS (lbfgs.h), which need only gradients, for at most as many rounds as one Hessian would cost. If
 * features have similar sizes and little correlation, these rounds reach the tolerance and no Hessian is
 * computed. If the scheduler sees that they are too slow, it ends them early, and the Newton steps begin closer
 * to the optimum. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/certificate.h"
#include "apps/linear/train/inside.h"
#include "apps/linear/train/lbfgs.h"
#include "apps/linear/train/quadratic.h"

#define RIDGE_MOST 1e12
/* relative to curvatures: a ridge up to this size does not change the quadratic noticeably */
#define RIDGE_NONE 1e-6
#define FALL_LEAST 1e-14 /* relative to the objective: a smaller fall is rounding error */
#define LONGEST 4        /* the longest step that is tried, relative to that of the quadratic */

enum { SEARCHES = 4 };

struct linear_newton {
  size_t count; /* number of features, and one for the bias */
  double *w, *step, *g, *hessian;
  double ridge;           /* for the next Hessian */
  double objective;       /* at w */
  struct linear_reply at; /* sum of the workers' replies at w */
  double gap, fall;
  bool is_exact; /* the fall is that of a quadratic without a ridge */

  uint64_t cheap_rounds;     /* rounds of L-BFGS that are left */
  uint64_t cheap_done;       /* rounds of L-BFGS so far */
  double first_square;       /* |total|^2 before the first of them */
  struct linear_lbfgs lbfgs; /* steps and gradients of these rounds */
  double *total;             /* gradient of the objective at w: g and the slope of the penalty */
  double *change;            /* its change along the last step */
};

void linear_newton_end(struct linear_run *run) {
  struct linear_newton *newton = run->newton;
  if (!newton) return;
  apps_free(newton->w);
  apps_free(newton->step);
  apps_free(newton->g);
  apps_free(newton->hessian);
  apps_free(newton->total);
  apps_free(newton->change);
  linear_lbfgs_fini(&newton->lbfgs);
  apps_free(newton);
  run->newton = NULL;
}

/* --- exchange with the servers -------------------------------------------------------------------------- */

static pawl_status finish(pawl_status status, struct pawl_task *task) {
  pawl_status ended = pawl_task_finish(task, PAWL_FOREVER);
  return status ? status : ended;
}

static pawl_status read_weights(struct linear_run *run, struct linear_newton *newton) {
  struct pawl_task *task = NULL;
  size_t features = newton->count - 1;
  pawl_status status = pawl_vector_pull(run->weights, pawl_at_range(0, features), newton->w, &task);
  status = finish(status, task);
  newton->w[features] = 0;
  return !status && run->bias ? linear_read_bias(run, &newton->w[features]) : status;
}

static pawl_status write_weights(struct linear_run *run, const struct linear_newton *newton) {
  struct pawl_task *task = NULL, *bias_task = NULL;
  size_t features = newton->count - 1;
  pawl_status status = pawl_vector_push(run->weights, pawl_at_range(0, features), newton->w, &task);
  if (!status && run->bias) status = pawl_vector_push(run->bias, pawl_at_range(0, 1), newton->w + features, &bias_task);
  status = finish(status, task);
  return finish(status, bias_task);
}

static pawl_status write_step(struct linear_run *run, const struct linear_newton *newton) {
  struct pawl_vector *vector;
  struct pawl_task *task = NULL;
  pawl_status status = linear_make_vector(run, LINEAR_STEP, &vector);
  if (status) return status;
  status = pawl_vector_push(vector, pawl_at_range(0, newton->count), newton->step, &task);
  status = finish(status, task);
  pawl_vector_close(vector);
  return status;
}

/* Reads the triangle from the servers, and expands it to a whole matrix. */
static pawl_status read_hessian(struct linear_run *run, struct linear_newton *newton, struct pawl_vector *vector) {
  size_t count = newton->count, whole = count * (count + 1) / 2, at = 0, part = 1 << 20;
  double *triangle = apps_alloc(whole * sizeof *triangle);
  if (!newton->hessian) newton->hessian = apps_alloc_zero(count * count, sizeof *newton->hessian);
  pawl_status status = triangle && newton->hessian ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t begin = 0; begin < whole && !status; begin += part) {
    struct pawl_task *task = NULL;
    size_t end = begin + part < whole ? begin + part : whole;
    status = pawl_vector_pull(vector, pawl_at_range(begin, end), triangle + begin, &task);
    status = finish(status, task);
  }
  for (size_t i = 0; i < count && !status; i++)
    for (size_t k = i; k < count; k++, at++)
      newton->hessian[i * count + k] = newton->hessian[k * count + i] = triangle[at];
  for (size_t i = 0; i < count && !status && !run->bias; i++) /* without a bias its step is 0 */
    newton->hessian[i * count + count - 1] = newton->hessian[(count - 1) * count + i] = 0;
  apps_free(triangle);
  return status;
}

/* --- derivatives ---------------------------------------------------------------------------------------- */

static double penalty_of(const struct linear_run *run, const struct linear_newton *newton, double t) {
  double sum = 0, squares = 0;
  for (size_t j = 0; j + 1 < newton->count; j++) {
    double v = newton->w[j] + t * newton->step[j];
    sum += fabs(v);
    squares += v * v;
  }
  return run->order.l1 * sum + run->order.l2 / 2 * squares;
}

static pawl_status take_gradient(struct linear_run *run, struct linear_newton *newton, struct pawl_vector *vector) {
  size_t features = newton->count - 1;
  bool is_regression = linear_is_regression(run->spec.loss);
  struct linear_certificate certificate;
  struct pawl_task *task = NULL;
  double *pairs = apps_alloc((2 * features + 1) * sizeof *pairs);
  pawl_status status = pairs ? pawl_vector_pull(vector, pawl_at_range(0, features), pairs, &task) : PAWL_NO_MEMORY;
  status = finish(status, task);
  linear_certificate_init(&certificate, run->spec.loss, run->spec.bias, run->order.l1, run->order.l2, &newton->at);
  for (size_t j = 0; j < features && !status; j++) {
    linear_certificate_add(&certificate, newton->w[j], 0, pairs + 2 * j);
    newton->g[j] = pairs[2 * j] + (is_regression ? 0 : pairs[2 * j + 1]);
  }
  newton->g[features] = run->bias ? newton->at.slopes[0] + (is_regression ? 0 : newton->at.slopes[1]) : 0;
  newton->gap = linear_certificate_gap(&certificate, &newton->at, newton->objective);
  apps_free(pairs);
  return status;
}

/* One round of the workers. Its sums go to vectors of its own, so that a late push is not added to anything
 * else. */
static pawl_status derive_once(struct linear_run *run, struct linear_newton *newton, bool *whole_out) {
  struct pawl_vector *gradient = NULL, *hessian = NULL;
  bool is_curved = newton->cheap_rounds == 0;
  run->order.what = LINEAR_DERIVE;
  run->order.serial++;
  run->order.is_curved = is_curved;
  pawl_status status = linear_make_vector(run, LINEAR_GRADIENT, &gradient);
  if (!status && is_curved) status = linear_make_vector(run, LINEAR_HESSIAN, &hessian);
  if (!status) status = linear_round(run, &newton->at, whole_out);
  if (!status && *whole_out) {
    newton->objective = newton->at.loss + penalty_of(run, newton, 0);
    status = take_gradient(run, newton, gradient);
    if (!status && is_curved) status = read_hessian(run, newton, hessian);
  }
  pawl_vector_close(gradient);
  pawl_vector_close(hessian);
  linear_delete_vector(run, &run->order, LINEAR_GRADIENT);
  if (is_curved) linear_delete_vector(run, &run->order, LINEAR_HESSIAN);
  return status;
}

static pawl_status derive(struct linear_run *run, struct linear_newton *newton) {
  bool is_whole = false;
  pawl_status status = PAWL_OK;
  while (!is_whole && !status) status = derive_once(run, newton, &is_whole);
  return status;
}

/* --- a step --------------------------------------------------------------------------------------------- */

/* Finds the best length of the step; 0 if the objective falls with none. All losses but the squared one are
 * below their quadratic for long steps. So, far from the optimum, steps longer than that of the quadratic
 * bring more. With l1 longer steps would carry weights past zero that become zero at length 1. */
static pawl_status search(struct linear_run *run, struct linear_newton *newton, double *length_out) {
  double best = newton->objective * (1 - FALL_LEAST), length = run->order.l1 > 0 ? 1 : LONGEST;
  *length_out = 0;
  for (int round = 0; round < SEARCHES && *length_out == 0; round++) {
    struct linear_reply sum;
    bool is_whole = false;
    run->order.what = LINEAR_SEARCH;
    run->order.rate = length;
    while (!is_whole) {
      pawl_status status = linear_round(run, &sum, &is_whole);
      if (status) return status;
    }
    for (size_t k = 0; k < LINEAR_TRIALS; k++, length /= 2) {
      double objective = sum.trials[k] + penalty_of(run, newton, length);
      if (!(objective < best)) continue; /* also for NAN */
      best = objective;
      *length_out = length;
    }
  }
  return PAWL_OK;
}

static bool is_finite(const double *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(values[i])) return false;
  return true;
}

static pawl_status take_step(struct linear_run *run, struct linear_newton *newton, double length) {
  for (size_t j = 0; j < newton->count; j++) newton->w[j] += length * newton->step[j];
  return write_weights(run, newton);
}

/* Solves the quadratic, searches, and takes the step. `*moved_out`: a step was taken. */
static pawl_status step(struct linear_run *run, struct linear_newton *newton, bool *moved_out) {
  struct linear_quadratic quadratic = {newton->count, newton->hessian, newton->g,    newton->w,
                                       run->order.l1, run->order.l2,   newton->ridge};
  double length = 0;
  *moved_out = false;
  if (!is_finite(newton->g, newton->count) || !is_finite(newton->hessian, newton->count * newton->count))
    return apps_fail(&run->common, PAWL_INVALID,
                     "the derivatives of the loss are not finite: values of the data, or of the model to start from, "
                     "are too large; scale them, or use --unit-rows");
  pawl_status status = linear_quadratic_solve(&quadratic, newton->step, &newton->fall);
  if (status) return status;
  if (newton->fall > 0 && is_finite(newton->step, newton->count)) {
    status = write_step(run, newton);
    if (!status) status = search(run, newton, &length);
    if (status) return status;
  }
  newton->is_exact = newton->ridge <= RIDGE_NONE;
  newton->ridge = length >= 0.5 ? newton->ridge / 64 : length >= 0.1 ? newton->ridge : fmax(8 * newton->ridge, 1e-6);
  if (newton->ridge < 1e-9) newton->ridge = 0;
  newton->ridge = fmin(newton->ridge, 2 * RIDGE_MOST);
  if (length == 0) return PAWL_OK;
  *moved_out = true;
  return take_step(run, newton, length);
}

/* --- steps without a Hessian ---------------------------------------------------------------------------- */

/* Work of a row with m entries, in processor cycles about: GRADIENT m for a round of L-BFGS (the losses along
 * the step, the scores, the gradient), and at least HESSIAN m^2 for its part of the Hessian (hessian.c, by
 * tiles that are full). */
#define GRADIENT 6
#define HESSIAN 0.1

enum { CHEAP_TRIED = 5 }; /* rounds before it is asked whether they will do */

static uint64_t affordable_rounds(const struct linear_run *run) {
  double per_row = (double)run->progress.entries / (double)run->progress.rows;
  bool is_smooth = run->order.l1 == 0 && run->order.l2 > 0;
  return is_smooth ? (uint64_t)(HESSIAN / GRADIENT * per_row) : 0;
}

static void find_total(const struct linear_run *run, struct linear_newton *newton) {
  for (size_t j = 0; j < newton->count; j++) {
    double total = newton->g[j] + (j + 1 < newton->count ? run->order.l2 * newton->w[j] : 0);
    newton->change[j] = total - newton->total[j];
    newton->total[j] = total;
  }
}

/* The first direction has no scale yet. A quadratic that is nowhere below zero has its least along -g within
 * twice the objective / g . g, and the search tries LONGEST times a step. */
static double first_length(const struct linear_newton *newton) {
  double square = linear_dot(newton->total, newton->total, newton->count);
  return square > 0 ? newton->objective / square : 0;
}

/* One step of L-BFGS, with the gradient after it. If there is none to take, Newton steps follow. */
static pawl_status cheap_step(struct linear_run *run, struct linear_newton *newton, bool *moved_out) {
  double length = 0;
  pawl_status status = PAWL_OK;
  *moved_out = false;
  linear_lbfgs_direction(&newton->lbfgs, newton->total, first_length(newton), newton->step);
  if (is_finite(newton->step, newton->count) && linear_dot(newton->step, newton->total, newton->count) < 0) {
    status = write_step(run, newton);
    if (!status) status = search(run, newton, &length);
  }
  newton->cheap_rounds = length > 0 ? newton->cheap_rounds - 1 : 0;
  newton->cheap_done++;
  if (!status && length > 0) status = take_step(run, newton, length);
  if (!status) status = derive(run, newton);
  *moved_out = length > 0;
  if (status || newton->cheap_rounds == 0) return status;
  find_total(run, newton);
  for (size_t j = 0; j < newton->count; j++) newton->step[j] *= length;
  linear_lbfgs_add(&newton->lbfgs, newton->step, newton->change);
  return PAWL_OK;
}

/* Whether the rounds that are left will not do. |F'|^2 has to fall to 2 l2 times the distance that is allowed
 * (F is strongly convex); the rounds so far tell how fast it falls. */
static bool is_too_slow(const struct linear_run *run, const struct linear_newton *newton) {
  double square = linear_dot(newton->total, newton->total, newton->count);
  double wanted = 2 * run->order.l2 * run->control.tolerance * newton->objective;
  double fall = log(newton->first_square / square) / (double)newton->cheap_done; /* of the logarithm, a round */
  return newton->cheap_done >= CHEAP_TRIED && !(log(square / wanted) <= fall * (double)newton->cheap_rounds);
}

static pawl_status begin_cheap(struct linear_run *run, struct linear_newton *newton) {
  newton->cheap_rounds = affordable_rounds(run);
  if (newton->cheap_rounds == 0) return PAWL_OK;
  newton->total = apps_alloc_zero(newton->count, sizeof *newton->total);
  newton->change = apps_alloc_zero(newton->count, sizeof *newton->change);
  pawl_status status = linear_lbfgs_init(&newton->lbfgs, newton->count);
  return newton->total && newton->change ? status : PAWL_NO_MEMORY;
}

/* --- rounds --------------------------------------------------------------------------------------------- */

static pawl_status begin(struct linear_run *run) {
  size_t count = (size_t)run->order.features + 1;
  struct linear_newton *newton = apps_alloc_zero(1, sizeof *newton);
  run->newton = newton;
  if (!newton) return PAWL_NO_MEMORY;
  newton->count = count;
  newton->w = apps_alloc_zero(count, sizeof *newton->w);
  newton->step = apps_alloc_zero(count, sizeof *newton->step);
  newton->g = apps_alloc_zero(count, sizeof *newton->g);
  if (!newton->w || !newton->step || !newton->g) return PAWL_NO_MEMORY;
  pawl_status status = begin_cheap(run, newton);
  if (!status) status = read_weights(run, newton);
  if (!status) status = derive(run, newton);
  if (status || newton->cheap_rounds == 0) return status;
  find_total(run, newton);
  newton->first_square = linear_dot(newton->total, newton->total, newton->count);
  return PAWL_OK;
}

static pawl_status newton_round(struct linear_run *run, struct linear_reply *sum_out, struct linear_outcome *outcome) {
  pawl_status status = run->newton ? PAWL_OK : begin(run);
  struct linear_newton *newton = run->newton;
  bool moved = false, is_done = newton && newton->gap <= run->control.tolerance;
  if (!status && (!is_done || run->control.tolerance <= LINEAR_NEVER_DONE)) {
    if (newton->cheap_rounds > 0 && is_too_slow(run, newton)) {
      newton->cheap_rounds = 0;
      status = derive(run, newton);
    }
    bool is_cheap = newton->cheap_rounds > 0;
    if (!status) status = is_cheap ? cheap_step(run, newton, &moved) : step(run, newton, &moved);
    /* also without a step: the round notices lost workers */
    if (!status && !is_cheap) status = derive(run, newton);
    outcome->is_stuck = !is_cheap && !moved && (newton->ridge > RIDGE_MOST || !(newton->fall > 0));
  }
  if (status) return status;
  bool is_inexact = linear_loss_of(run->spec.loss)->curvature_varies; /* of the Hessian: hessian.h */
  double trust = is_inexact ? 1 + LINEAR_HESSIAN_SLACK : 1;
  *sum_out = newton->at;
  outcome->is_whole = outcome->was_full = true;
  outcome->objective = newton->objective;
  outcome->gap = newton->gap;
  outcome->left = newton->is_exact ? trust * newton->fall / fabs(newton->objective) : INFINITY;
  return linear_read_penalty(run, &run->progress.penalty, &run->progress.nonzeros);
}

/* --- the method ----------------------------------------------------------------------------------------- */

static void rule(const struct linear_spec *spec, const struct linear_order *order, double l1, double l2,
                 struct pawl_vector_options *options) {
  (void)spec, (void)order, (void)l1, (void)l2;
  options->function = PAWL_ASSIGN;
}

/* Workers have no state of this method: derive.c keeps the derivatives for all methods. */
static pawl_status begin_worker(struct linear_worker *worker, const struct linear_order *order) {
  (void)worker, (void)order;
  return PAWL_OK;
}

static void end_worker(struct linear_worker *worker) { (void)worker; }

const struct linear_method_descriptor linear_newton = {
    .name = "newton",
    .number = PAWL_LINEAR_METHOD_NEWTON,
    .losses = LINEAR_CURVED_LOSSES,
    .other_loss = LINEAR_NEEDS_CURVATURE,
    .rule = rule,
    .begin = begin_worker,
    .sweep = linear_derive,
    .end = end_worker,
    .hear = linear_control_hear_newton,
    .round = newton_round,
};
