/* Newton steps, the scheduler's side: for data with so few features that the whole Hessian fits.
 *
 *   v <- argmin  g . (v - w) + 1/2 (v - w)' H (v - w) + l1 |v|_1 + l2/2 |v|^2          (quadratic.h)
 *   w <- w + t (v - w)   with the t of 4, 2, 1, 1/2, 1/4, … that lowers the objective most (with l1: from 1 on)
 *
 * Workers compute g, H and the losses along the step (derive.c), the servers add them up, and the scheduler
 * does the rest: a proximal Newton method (Lee, Sun and Saunders 2014; newGLMNET, Yuan, Ho and Lin 2012, of
 * which it keeps the whole Hessian instead of approximating its least by some coordinate steps). The Hessian
 * is that of the weights up to a factor that is known (hessian.h): steps by it still fall, and the stop rule
 * counts with the factor. How features are scaled and correlated does not matter to it; per-feature scaling
 * changes nothing but rounding.
 *
 * The objective never rises: weights are written only once the losses along the step have shown that it
 * falls. Where no t does, which with exact derivatives takes a t below 2^-LINEAR_TRIALS, the diagonal of H is
 * made heavier (Levenberg and Marquardt), which bends the step towards the gradient and makes it shorter.
 *
 * Each derivative comes with a certificate of how far it is to the optimum (certificate.h); that ends it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/certificate.h"
#include "apps/linear/train/quadratic.h"
#include "apps/linear/train/inside.h"

#define RIDGE_MOST 1e12
#define RIDGE_NONE 1e-6  /* of curvatures: with no more the quadratic is as good as without */
#define FALL_LEAST 1e-14 /* of the objective: less is rounding */
#define LONGEST 4        /* that is tried, of the steps that the quadratic asks for */

enum { SEARCHES = 4 };

struct linear_newton {
  size_t count; /* features and the bias */
  double *w, *step, *g, *hessian;
  double ridge;           /* of the next Hessian */
  double objective;       /* at w */
  struct linear_reply at; /* what the workers said of w */
  double gap, fall;
  bool is_exact; /* the fall is that of a quadratic without a ridge */
};

void linear_newton_end(struct linear_run *run) {
  struct linear_newton *newton = run->newton;
  if (!newton) return;
  apps_free(newton->w);
  apps_free(newton->step);
  apps_free(newton->g);
  apps_free(newton->hessian);
  apps_free(newton);
  run->newton = NULL;
}

/* --- between here and the servers ----------------------------------------------------------------------- */

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

/* The triangle as the servers have it becomes a whole matrix. */
static pawl_status read_hessian(struct linear_run *run, struct linear_newton *newton, struct pawl_vector *vector) {
  size_t count = newton->count, whole = count * (count + 1) / 2, at = 0, part = 1 << 20;
  double *triangle = apps_alloc(whole * sizeof *triangle);
  pawl_status status = triangle ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t begin = 0; begin < whole && !status; begin += part) {
    struct pawl_task *task = NULL;
    size_t end = begin + part < whole ? begin + part : whole;
    status = pawl_vector_pull(vector, pawl_at_range(begin, end), triangle + begin, &task);
    status = finish(status, task);
  }
  for (size_t i = 0; i < count && !status; i++)
    for (size_t k = i; k < count; k++, at++)
      newton->hessian[i * count + k] = newton->hessian[k * count + i] = triangle[at];
  for (size_t i = 0; i < count && !status && !run->bias; i++) /* no step of it */
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
    linear_certificate_add(&certificate, newton->w[j], pairs + 2 * j);
    newton->g[j] = pairs[2 * j] + (is_regression ? 0 : pairs[2 * j + 1]);
  }
  newton->g[features] = run->bias ? newton->at.slopes[0] + (is_regression ? 0 : newton->at.slopes[1]) : 0;
  newton->gap = linear_certificate_gap(&certificate, &newton->at, newton->objective);
  apps_free(pairs);
  return status;
}

/* One round of the workers, whose sums go to vectors of its own: a part that comes late must not be added to
 * anything else. */
static pawl_status derive_once(struct linear_run *run, struct linear_newton *newton, bool *whole_out) {
  struct pawl_vector *gradient = NULL, *hessian = NULL;
  run->order.what = LINEAR_DERIVE;
  run->order.serial++;
  run->order.is_curved = true;
  pawl_status status = linear_make_vector(run, LINEAR_GRADIENT, &gradient);
  if (!status) status = linear_make_vector(run, LINEAR_HESSIAN, &hessian);
  if (!status) status = linear_round(run, &newton->at, whole_out);
  if (!status && *whole_out) {
    newton->objective = newton->at.loss + penalty_of(run, newton, 0);
    status = take_gradient(run, newton, gradient);
    if (!status) status = read_hessian(run, newton, hessian);
  }
  pawl_vector_close(gradient);
  pawl_vector_close(hessian);
  linear_delete_vector(run, &run->order, LINEAR_GRADIENT);
  linear_delete_vector(run, &run->order, LINEAR_HESSIAN);
  return status;
}

static pawl_status derive(struct linear_run *run, struct linear_newton *newton) {
  bool is_whole = false;
  pawl_status status = PAWL_OK;
  while (!is_whole && !status) status = derive_once(run, newton, &is_whole);
  return status;
}

/* --- a step --------------------------------------------------------------------------------------------- */

/* The best of some lengths of the step; 0 if the objective falls with none. Losses that flatten out, all but
 * the squared one, are less than the quadratic has them, and far from the optimum steps that are longer than
 * it asks for bring more. With l1 they would carry weights past zero, which at 1 become zero. */
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
      if (!(objective < best)) continue; /* also what is no number */
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

/* Solves, searches, and takes the step. `*moved_out`: there was one. */
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
  for (size_t j = 0; j < newton->count; j++) newton->w[j] += length * newton->step[j];
  return write_weights(run, newton);
}

static pawl_status begin(struct linear_run *run) {
  size_t count = (size_t)run->order.features + 1;
  struct linear_newton *newton = apps_alloc_zero(1, sizeof *newton);
  run->newton = newton;
  if (!newton) return PAWL_NO_MEMORY;
  newton->count = count;
  newton->w = apps_alloc_zero(count, sizeof *newton->w);
  newton->step = apps_alloc_zero(count, sizeof *newton->step);
  newton->g = apps_alloc_zero(count, sizeof *newton->g);
  newton->hessian = apps_alloc_zero(count * count, sizeof *newton->hessian);
  if (!newton->w || !newton->step || !newton->g || !newton->hessian) return PAWL_NO_MEMORY;
  pawl_status status = read_weights(run, newton);
  return status ? status : derive(run, newton);
}

static pawl_status newton_round(struct linear_run *run, struct linear_reply *sum_out, struct linear_outcome *outcome) {
  pawl_status status = run->newton ? PAWL_OK : begin(run);
  struct linear_newton *newton = run->newton;
  bool moved = false, is_done = newton && newton->gap <= run->control.tolerance;
  if (!status && (!is_done || run->control.tolerance <= LINEAR_NEVER_DONE)) {
    status = step(run, newton, &moved);
    /* also if there was none: who was lost meanwhile has to be noticed */
    if (!status) status = derive(run, newton);
    outcome->is_stuck = !moved && (newton->ridge > RIDGE_MOST || !(newton->fall > 0));
  }
  if (status) return status;
  bool is_inexact = linear_loss_of(run->spec.loss)->curvature_varies; /* the Hessian: hessian.h */
  double trust = is_inexact ? 1 + LINEAR_HESSIAN_SLACK : 1;
  *sum_out = newton->at;
  outcome->is_whole = outcome->was_full = true;
  outcome->objective = newton->objective;
  outcome->gap = newton->gap;
  outcome->left = newton->is_exact ? trust * newton->fall / fabs(newton->objective) : INFINITY;
  return PAWL_OK;
}

/* --- the method ----------------------------------------------------------------------------------------- */

static void rule(const struct linear_spec *spec, const struct linear_order *order, double l1, double l2,
                 struct pawl_vector_options *options) {
  (void)spec, (void)order, (void)l1, (void)l2;
  options->function = PAWL_ASSIGN;
}

/* Workers keep nothing of the method: derive.c keeps derivatives for all of them. */
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
