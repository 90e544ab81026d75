/* The data of `pawl-bench wait`, its gradients and its objective.
 *
 * Examples have features drawn by a power law, spread over all blocks, like words and pages. So blocks
 * depend on one another, and a step from old weights is worse than one from new ones. Labels come from
 * weights of which most are zero. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "cli/osdi/wait.h"

#define PASSES 150          /* of the serial reference */
#define TARGET_SLACK 1.0005 /* relative to the reference */
#define EPS 1e-10           /* as in block_proximal */
#define POWER 1.1
#define TRUE_SHARE 0.2 /* share of the features with a weight */

/* --- drawing -------------------------------------------------------------------------------------------- */

/* Sums of 1 / (rank + 10)^POWER, so that a draw is a binary search. */
static void fill_ranks(double *sums, uint32_t count) {
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sums[i] = sum += pow(i + 10.0, -POWER);
}

static uint32_t draw_rank(struct pwi_random *random, const double *sums, uint32_t count) {
  double at = pwi_random_unit(random) * sums[count - 1];
  uint32_t low = 0, high = count - 1;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (sums[middle] < at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Features of neighbouring ranks are in different blocks. */
static uint32_t feature_of(const struct pwi_wait_shape *shape, uint32_t rank) {
  return rank % shape->blocks * pwi_wait_block_size(shape) + rank / shape->blocks;
}

struct wait_draft {
  struct pwi_random random;
  double *sums, *truth;
  uint32_t *drawn; /* of one example */
  uint32_t *pairs; /* example, feature, alternating, of one share */
  size_t pair_count;
};

static void draw_example(struct wait_draft *draft, const struct pwi_wait_shape *shape, struct pwi_wait_share *share,
                         uint32_t example) {
  double product = 0;
  uint32_t count = 0;
  for (uint32_t tries = 0; tries < shape->per_example; tries++) {
    uint32_t feature = feature_of(shape, draw_rank(&draft->random, draft->sums, shape->features));
    bool is_new = true;
    for (uint32_t i = 0; i < count; i++) is_new = is_new && draft->drawn[i] != feature;
    if (is_new) draft->drawn[count++] = feature;
  }
  for (uint32_t i = 0; i < count; i++) {
    draft->pairs[2 * draft->pair_count] = example;
    draft->pairs[2 * draft->pair_count++ + 1] = draft->drawn[i];
    product += draft->truth[draft->drawn[i]];
  }
  share->labels[example] = pwi_random_unit(&draft->random) < 1 / (1 + exp(-product)) ? 1.0f : -1.0f;
}

/* Turns pairs into lists of examples by feature. While they are filled, the next free place of f is
 * first[f + 1]. */
static pawl_status sort_share(const struct wait_draft *draft, const struct pwi_wait_shape *shape,
                              struct pwi_wait_share *share) {
  share->first = pwi_alloc_zero(shape->features + 2, sizeof *share->first);
  share->which = pwi_alloc_zero(draft->pair_count + 1, sizeof *share->which);
  if (!share->first || !share->which) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < draft->pair_count; i++) share->first[draft->pairs[2 * i + 1] + 2]++;
  for (uint32_t f = 1; f <= shape->features; f++) share->first[f + 1] += share->first[f];
  for (size_t i = 0; i < draft->pair_count; i++)
    share->which[share->first[draft->pairs[2 * i + 1] + 1]++] = draft->pairs[2 * i];
  return PAWL_OK;
}

static pawl_status draw_share(struct wait_draft *draft, const struct pwi_wait_shape *shape,
                              struct pwi_wait_share *share) {
  share->examples = shape->examples / shape->workers;
  share->labels = pwi_alloc_zero(share->examples, sizeof *share->labels);
  if (!share->labels) return PAWL_NO_MEMORY;
  draft->pair_count = 0;
  for (uint32_t i = 0; i < share->examples; i++) draw_example(draft, shape, share, i);
  return sort_share(draft, shape, share);
}

static pawl_status draw(struct pwi_wait_problem *problem) {
  const struct pwi_wait_shape *shape = &problem->shape;
  size_t per_share = (size_t)shape->examples / shape->workers * shape->per_example;
  struct wait_draft draft = {.sums = pwi_alloc_zero(shape->features, sizeof(double)),
                             .truth = pwi_alloc_zero(shape->features, sizeof(double)),
                             .drawn = pwi_alloc_zero(shape->per_example, sizeof(uint32_t)),
                             .pairs = pwi_alloc_zero(2 * per_share + 2, sizeof(uint32_t))};
  pawl_status status = draft.sums && draft.truth && draft.drawn && draft.pairs ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) {
    pwi_random_init(&draft.random, shape->seed, 1);
    fill_ranks(draft.sums, shape->features);
    for (uint32_t f = 0; f < shape->features; f++)
      if (pwi_random_chance(&draft.random, TRUE_SHARE)) draft.truth[f] = 4 * (pwi_random_unit(&draft.random) - 0.5);
  }
  for (uint32_t i = 0; i < shape->workers && !status; i++) status = draw_share(&draft, shape, &problem->shares[i]);
  pwi_free(draft.pairs);
  pwi_free(draft.drawn);
  pwi_free(draft.truth);
  pwi_free(draft.sums);
  return status;
}

/* --- numbers -------------------------------------------------------------------------------------------- */

void pwi_wait_gradient(const struct pwi_wait_problem *problem, uint32_t worker, uint32_t block, const double *products,
                       double *pairs) {
  const struct pwi_wait_share *share = &problem->shares[worker];
  uint32_t size = pwi_wait_block_size(&problem->shape);
  for (uint32_t i = 0; i < size; i++) {
    uint32_t feature = block * size + i;
    double g = 0, u = 0;
    for (uint32_t at = share->first[feature]; at < share->first[feature + 1]; at++) {
      double y = share->labels[share->which[at]];
      g -= y / (1 + exp(y * products[share->which[at]]));
      u += 0.25; /* p (1 - p) is never larger */
    }
    pairs[2 * i] = g;
    pairs[2 * i + 1] = u;
  }
}

void pwi_wait_update(const struct pwi_wait_problem *problem, uint32_t worker, uint32_t block,
                     const double *block_weights, double *weights, double *products) {
  const struct pwi_wait_share *share = &problem->shares[worker];
  uint32_t size = pwi_wait_block_size(&problem->shape);
  for (uint32_t i = 0; i < size; i++) {
    uint32_t feature = block * size + i;
    double change = block_weights[i] - weights[feature];
    weights[feature] = block_weights[i];
    if (change == 0) continue;
    for (uint32_t at = share->first[feature]; at < share->first[feature + 1]; at++)
      products[share->which[at]] += change;
  }
}

static double loss(double margin) { return margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin; }

double pwi_wait_own_objective(const struct pwi_wait_problem *problem, uint32_t worker, const double *weights,
                              const double *products) {
  const struct pwi_wait_shape *shape = &problem->shape;
  const struct pwi_wait_share *share = &problem->shares[worker];
  double sum = 0;
  for (uint32_t f = 0; f < shape->features; f++) sum += shape->l1 / shape->workers * fabs(weights[f]);
  for (uint32_t i = 0; i < share->examples; i++) sum += loss(share->labels[i] * products[i]);
  return sum;
}

double pwi_wait_objective(const struct pwi_wait_problem *problem, const double *weights) {
  const struct pwi_wait_shape *shape = &problem->shape;
  double sum = 0;
  for (uint32_t f = 0; f < shape->features; f++) sum += shape->l1 * fabs(weights[f]);
  for (uint32_t r = 0; r < shape->workers; r++) {
    const struct pwi_wait_share *share = &problem->shares[r];
    double *products = pwi_alloc_zero(share->examples, sizeof *products);
    if (!products) return INFINITY;
    for (uint32_t f = 0; f < shape->features; f++)
      for (uint32_t at = share->first[f]; weights[f] != 0 && at < share->first[f + 1]; at++)
        products[share->which[at]] += weights[f];
    for (uint32_t i = 0; i < share->examples; i++) sum += loss(share->labels[i] * products[i]);
    pwi_free(products);
  }
  return sum;
}

/* --- the reference -------------------------------------------------------------------------------------- */

static double shrink(double x, double by) { return x > by ? x - by : x < -by ? x + by : 0; }

/* A worker's knowledge: the weights, and the products of its examples with them. */
struct wait_known {
  double *weights, *products;
};

/* One machine with all data: the gradient of all shares, and one step that takes effect at once. */
static void step_alone(const struct pwi_wait_problem *problem, uint32_t block, double *pairs, double *sums,
                       struct wait_known *known) {
  const struct pwi_wait_shape *shape = &problem->shape;
  uint32_t size = pwi_wait_block_size(shape);
  memset(sums, 0, 2 * (size_t)size * sizeof *sums);
  for (uint32_t r = 0; r < shape->workers; r++) {
    pwi_wait_gradient(problem, r, block, known[r].products, pairs);
    for (uint32_t i = 0; i < 2 * size; i++) sums[i] += pairs[i];
  }
  for (uint32_t i = 0; i < size; i++) {
    double a = sums[2 * i + 1] / shape->rate + EPS;
    pairs[i] = shrink(a * known[0].weights[block * size + i] - sums[2 * i], shape->l1) / a;
  }
  for (uint32_t r = 0; r < shape->workers; r++)
    pwi_wait_update(problem, r, block, pairs, known[r].weights, known[r].products);
}

static pawl_status find_target(struct pwi_wait_problem *problem) {
  const struct pwi_wait_shape *shape = &problem->shape;
  uint32_t size = pwi_wait_block_size(shape);
  double *pairs = pwi_alloc_zero(2 * (size_t)size, sizeof *pairs),
         *sums = pwi_alloc_zero(2 * (size_t)size, sizeof *sums);
  struct wait_known *known = pwi_alloc_zero(shape->workers, sizeof *known);
  pawl_status status = pairs && sums && known ? PAWL_OK : PAWL_NO_MEMORY;
  for (uint32_t r = 0; r < shape->workers && !status; r++) {
    known[r].weights = pwi_alloc_zero(shape->features, sizeof(double));
    known[r].products = pwi_alloc_zero(problem->shares[r].examples, sizeof(double));
    if (!known[r].weights || !known[r].products) status = PAWL_NO_MEMORY;
  }
  for (uint32_t t = 0; t < PASSES * shape->blocks && !status; t++)
    step_alone(problem, t % shape->blocks, pairs, sums, known);
  if (!status) problem->target = TARGET_SLACK * pwi_wait_objective(problem, known[0].weights);
  for (uint32_t r = 0; known && r < shape->workers; r++) {
    pwi_free(known[r].weights);
    pwi_free(known[r].products);
  }
  pwi_free(known);
  pwi_free(sums);
  pwi_free(pairs);
  return status;
}

/* --- life ----------------------------------------------------------------------------------------------- */

pawl_status pwi_wait_problem_create(const struct pwi_wait_shape *shape, struct pwi_wait_problem **problem_out) {
  struct pwi_wait_problem *problem = pwi_alloc_zero(1, sizeof *problem);
  if (!problem) return PAWL_NO_MEMORY;
  problem->shape = *shape;
  problem->shares = pwi_alloc_zero(shape->workers, sizeof *problem->shares);
  pawl_status status = problem->shares ? draw(problem) : PAWL_NO_MEMORY;
  if (!status) status = find_target(problem);
  if (status) {
    pwi_wait_problem_destroy(problem);
    return status;
  }
  *problem_out = problem;
  return PAWL_OK;
}

void pwi_wait_problem_destroy(struct pwi_wait_problem *problem) {
  if (!problem) return;
  for (uint32_t i = 0; problem->shares && i < problem->shape.workers; i++) {
    pwi_free(problem->shares[i].labels);
    pwi_free(problem->shares[i].first);
    pwi_free(problem->shares[i].which);
  }
  pwi_free(problem->shares);
  pwi_free(problem);
}
