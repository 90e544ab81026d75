/* System A of OSDI'14: L-BFGS with an l1 term (OWL-QN, Andrew and Gao 2007) on the problem of wait.h.
 *
 * Workers compute the gradient of all features, wait for one another, and the step is taken for all of them. So the
 * numbers are those of one process, and only time has to be simulated: a pass over all blocks takes each worker the sum
 * of its blocks' times, the slowest one decides, and the gradient of all blocks is as long on its way as the blocks of
 * Algorithm 3 together are. A pass is one value of the objective with its gradient; the search for the length of a step
 * may need several.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "cli/osdi/wait.h"

#define PAIRS 10
#define SUFFICIENT 1e-4 /* Armijo's rule */
#define PASSES_MAX 1000

struct descent {
  const struct pwi_wait_problem *problem;
  size_t count;
  double *memory;
  double *weights, *gradient, *slopes, *step, *next, *next_gradient, *own;
  double *pairs, *products; /* of a block; of a worker's rows */
  double *steps[PAIRS], *changes[PAIRS], products_of[PAIRS];
  uint64_t kept, passes; /* kept: pairs so far, of which the last PAIRS are there */
  double objective;
};

static double dot(const double *a, const double *b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

/* --- the objective and its gradient --------------------------------------------------------------------- */

/* One pass of all workers over their rows. Returns the objective. */
static double pass(struct descent *descent, const double *weights, double *gradient_out) {
  const struct pwi_wait_problem *problem = descent->problem;
  uint32_t size = pwi_wait_block_size(&problem->shape);
  double objective = 0;
  memset(gradient_out, 0, descent->count * sizeof *gradient_out);
  for (uint32_t r = 0; r < problem->shape.workers; r++) {
    memset(descent->products, 0, problem->shares[r].examples * sizeof(double));
    memset(descent->own, 0, descent->count * sizeof(double));
    for (uint32_t b = 0; b < problem->shape.blocks; b++)
      pwi_wait_update(problem, r, b, weights + (size_t)b * size, descent->own, descent->products);
    for (uint32_t b = 0; b < problem->shape.blocks; b++) {
      pwi_wait_gradient(problem, r, b, descent->products, descent->pairs);
      for (uint32_t i = 0; i < size; i++) gradient_out[b * size + i] += descent->pairs[2 * i];
    }
    objective += pwi_wait_own_objective(problem, r, descent->own, descent->products);
  }
  descent->passes++;
  return objective;
}

/* --- a direction ---------------------------------------------------------------------------------------- */

/* The slope of the whole objective: towards zero, |w| has the slope l1, and at zero none that is below it. */
static void find_slopes(struct descent *descent) {
  double l1 = descent->problem->shape.l1;
  for (size_t i = 0; i < descent->count; i++) {
    double w = descent->weights[i], g = descent->gradient[i];
    descent->slopes[i] = w > 0 ? g + l1 : w < 0 ? g - l1 : g > l1 ? g - l1 : g < -l1 ? g + l1 : 0;
  }
}

/* -B slopes, where B comes from the last steps. Parts that do not go down are left out. */
static void find_step(struct descent *descent) {
  double *step = descent->step, factors[PAIRS];
  size_t count = descent->count;
  uint64_t kept = descent->kept < PAIRS ? descent->kept : PAIRS, first = descent->kept - kept;
  for (size_t i = 0; i < count; i++) step[i] = -descent->slopes[i];
  for (uint64_t n = descent->kept; n-- > first;) {
    size_t at = n % PAIRS;
    factors[at] = dot(descent->steps[at], step, count) / descent->products_of[at];
    for (size_t i = 0; i < count; i++) step[i] -= factors[at] * descent->changes[at][i];
  }
  const double *newest = descent->changes[(descent->kept + PAIRS - 1) % PAIRS];
  double scale = kept ? descent->products_of[(descent->kept - 1) % PAIRS] / dot(newest, newest, count)
                      : 1 / sqrt(dot(step, step, count));
  for (size_t i = 0; i < count; i++) step[i] *= scale;
  for (uint64_t n = first; n < descent->kept; n++) {
    size_t at = n % PAIRS;
    double more = factors[at] - dot(descent->changes[at], step, count) / descent->products_of[at];
    for (size_t i = 0; i < count; i++) step[i] += more * descent->steps[at][i];
  }
  for (size_t i = 0; i < count; i++)
    if (step[i] * descent->slopes[i] >= 0) step[i] = 0;
}

/* --- a step --------------------------------------------------------------------------------------------- */

/* A weight that would change its sign stops at zero. */
static void go(struct descent *descent, double length) {
  for (size_t i = 0; i < descent->count; i++) {
    double w = descent->weights[i], to = w + length * descent->step[i];
    double side = w != 0 ? w : -descent->slopes[i];
    descent->next[i] = to * side > 0 ? to : 0;
  }
}

static void keep_pair(struct descent *descent) {
  size_t at = descent->kept % PAIRS;
  for (size_t i = 0; i < descent->count; i++) {
    descent->steps[at][i] = descent->next[i] - descent->weights[i];
    descent->changes[at][i] = descent->next_gradient[i] - descent->gradient[i];
  }
  descent->products_of[at] = dot(descent->steps[at], descent->changes[at], descent->count);
  if (descent->products_of[at] > 0) descent->kept++;
}

/* False: no length of the step lowers the objective. */
static bool take_step(struct descent *descent) {
  for (double length = 1; length > 1e-10 && descent->passes < PASSES_MAX; length /= 2) {
    double fall = 0;
    go(descent, length);
    for (size_t i = 0; i < descent->count; i++) fall += descent->slopes[i] * (descent->next[i] - descent->weights[i]);
    double objective = pass(descent, descent->next, descent->next_gradient);
    if (!(objective <= descent->objective + SUFFICIENT * fall)) continue;
    keep_pair(descent);
    memcpy(descent->weights, descent->next, descent->count * sizeof *descent->weights);
    memcpy(descent->gradient, descent->next_gradient, descent->count * sizeof *descent->gradient);
    descent->objective = objective;
    return true;
  }
  return false;
}

/* --- time ----------------------------------------------------------------------------------------------- */

/* The same draws as those of the workers of wait.h, one for each block. */
static void take_time(const struct descent *descent, struct pwi_wait_figures *figures) {
  const struct pwi_wait_shape *shape = &descent->problem->shape;
  struct pwi_random randoms[PWI_WAIT_WORKERS_MAX];
  for (uint32_t r = 0; r < shape->workers; r++) pwi_random_init(&randoms[r], shape->seed, 100 + r);
  for (uint64_t n = 0; n < descent->passes; n++) {
    double slowest = 0;
    for (uint32_t r = 0; r < shape->workers; r++) {
      double own = 0;
      for (uint32_t b = 0; b < shape->blocks; b++) own += pwi_wait_block_time(&randoms[r]);
      figures->computed_s[r] += own;
      slowest = fmax(slowest, own);
    }
    figures->total_s += slowest + shape->blocks * PWI_WAIT_PUSH_S;
  }
  for (uint32_t r = 0; r < shape->workers; r++) figures->compute_s += figures->computed_s[r] / shape->workers;
  figures->wait_pct = 100 * (1 - figures->compute_s / figures->total_s);
}

static bool open_descent(struct descent *descent) {
  const struct pwi_wait_problem *problem = descent->problem;
  size_t count = descent->count, rows = 0, pairs = 2 * (size_t)pwi_wait_block_size(&problem->shape);
  for (uint32_t r = 0; r < problem->shape.workers; r++)
    if (problem->shares[r].examples > rows) rows = problem->shares[r].examples;
  double *at = descent->memory = pwi_alloc_zero((7 + 2 * PAIRS) * count + pairs + rows, sizeof *at);
  if (!at) return false;
  double **parts[] = {&descent->weights, &descent->gradient,      &descent->slopes, &descent->step,
                      &descent->next,    &descent->next_gradient, &descent->own};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++, at += count) *parts[i] = at;
  for (size_t i = 0; i < PAIRS; i++, at += 2 * count) {
    descent->steps[i] = at;
    descent->changes[i] = at + count;
  }
  descent->pairs = at;
  descent->products = at + pairs;
  return true;
}

pawl_status pwi_wait_lbfgs(const struct pwi_wait_problem *problem, struct pwi_wait_figures *figures_out) {
  struct descent descent = {.problem = problem, .count = problem->shape.features};
  bool moves = true;
  if (!open_descent(&descent)) return PAWL_NO_MEMORY;
  descent.objective = pass(&descent, descent.weights, descent.gradient);
  while (moves && descent.objective > problem->target && descent.passes < PASSES_MAX) {
    find_slopes(&descent);
    find_step(&descent);
    moves = take_step(&descent);
  }
  struct pwi_wait_figures figures = {
      .is_reached = descent.objective <= problem->target, .objective = descent.objective, .iterations = descent.passes};
  take_time(&descent, &figures);
  pwi_free(descent.memory);
  *figures_out = figures;
  return PAWL_OK;
}
