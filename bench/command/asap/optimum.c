/* The reference of `pawl-bench asap`: the optimum by dual coordinate descent, which shares nothing with SGD.
 *
 * With C = 1 / (lambda n), f / lambda is P(w) = 1/2 |w|^2 + C sum of the hinge losses. Its dual is
 *
 *   maximise   D(a) = sum of a_i - 1/2 |sum of a_i y_i x_i|^2   for 0 <= a_i <= C,
 *
 * and P(w) >= D(a) for every w and every such a. So D is a lower bound of every run, whatever the solver does. */
#include <math.h>
#include <string.h>

#include "asap.h"
#include "base/memory.h"

struct dual {
  const struct pwi_asap_problem *problem;
  double *alphas, *weights;
  uint32_t *order;
  double most; /* C */
};

static double product(const struct pwi_asap_problem *problem, uint32_t row, const double *weights) {
  double sum = 0;
  for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
    sum += problem->values[i] * weights[problem->ids[i]];
  return sum;
}

static double square(const struct pwi_asap_problem *problem, uint32_t row) {
  double sum = 0;
  for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
    sum += (double)problem->values[i] * problem->values[i];
  return sum;
}

/* The best value of one coordinate, all others kept. A row without entries is best at C. */
static void improve(struct dual *dual, uint32_t row) {
  const struct pwi_asap_problem *problem = dual->problem;
  double y = problem->labels[row], length = square(problem, row), old = dual->alphas[row];
  double best = length > 0 ? old + (1 - y * product(problem, row, dual->weights)) / length : dual->most;
  best = fmin(fmax(best, 0), dual->most);
  if (best == old) return;
  dual->alphas[row] = best;
  for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
    dual->weights[problem->ids[i]] += (best - old) * y * problem->values[i];
}

/* Both values from scratch, so that rounding does not add up over passes. */
static void compare(const struct dual *dual, double *primal_out, double *bound_out) {
  const struct pwi_asap_problem *problem = dual->problem;
  double length = 0, losses = 0, sum = 0;
  memset(dual->weights, 0, problem->features * sizeof *dual->weights);
  for (uint32_t row = 0; row < problem->examples; row++) {
    sum += dual->alphas[row];
    for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
      dual->weights[problem->ids[i]] += dual->alphas[row] * problem->labels[row] * problem->values[i];
  }
  for (uint32_t j = 0; j < problem->features; j++) length += dual->weights[j] * dual->weights[j];
  for (uint32_t row = 0; row < problem->examples; row++)
    losses += fmax(0, 1 - problem->labels[row] * product(problem, row, dual->weights));
  *primal_out = length / 2 + dual->most * losses;
  *bound_out = sum - length / 2;
}

pawl_status pwi_asap_solve(struct pwi_asap_problem *problem, double gap, uint32_t passes) {
  struct dual dual = {.problem = problem,
                      .alphas = pwi_alloc_zero(problem->examples, sizeof(double)),
                      .weights = pwi_alloc_zero(problem->features, sizeof(double)),
                      .order = pwi_alloc_zero(problem->examples, sizeof(uint32_t)),
                      .most = 1 / (problem->lambda * problem->examples)};
  pawl_status status = dual.alphas && dual.weights && dual.order ? PAWL_OK : PAWL_NO_MEMORY;
  struct pwi_random random;
  double primal = 1, bound = 0;
  pwi_random_init(&random, 1, 3);
  for (uint32_t i = 0; i < problem->examples && !status; i++) dual.order[i] = i;
  for (uint32_t pass = 0; pass < passes && primal - bound > gap * primal && !status; pass++) {
    pwi_random_shuffle(&random, dual.order, problem->examples, sizeof *dual.order);
    for (uint32_t i = 0; i < problem->examples; i++) improve(&dual, dual.order[i]);
    if (pass % 8 == 7 || pass + 1 == passes) compare(&dual, &primal, &bound);
  }
  if (!status) {
    problem->optimum = problem->lambda * bound;
    problem->gap = (primal - bound) / primal;
  }
  pwi_free(dual.order);
  pwi_free(dual.weights);
  pwi_free(dual.alphas);
  return status;
}
