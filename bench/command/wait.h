/* `pawl bench wait`: how long workers wait under bounded delay, and what it costs them not to (OSDI'14 5.1, figure 10).
 *
 * Algorithm 3 of the paper, delayed block proximal gradient for l1-regularised logistic regression:
 *
 *   minimise   f(w) = sum over examples i of log(1 + exp(-y_i <x_i, w>))  +  l1 |w|_1
 *
 * Iteration t is about one block of features. Each worker computes, from the weights as it has them, its share of the gradient g and
 * of the diagonal u that bounds the second derivative there, and pushes both; the servers add up what all workers pushed and take one
 * proximal step (docs/functions.md, "the block proximal step"); each worker pulls the block. It may start iteration t when t - tau - 1
 * and all before have finished, pull included.
 *
 * Roles, policies and numbers are real; the network, the machines and time are simulated. A worker takes one *block time* to compute,
 * four with probability 0.1, and a push is half a block time on its way. So the figures depend on the seed alone.
 */
#ifndef BENCH_COMMAND_WAIT_H
#define BENCH_COMMAND_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

#define PWI_WAIT_INFINITE UINT64_MAX
#define PWI_WAIT_TAUS_MAX 32

/* --- the problem ------------------------------------------------------------------------------------------------------ */

struct pwi_wait_shape {
  uint32_t workers, blocks, features, examples; /* features: a multiple of blocks */
  uint32_t per_example;                         /* features that an example has */
  double l1, rate;
  uint64_t seed;
};

/* One worker's examples: which of them have a feature, by feature. Values are 1. */
struct pwi_wait_share {
  uint32_t examples;
  float *labels;   /* 1 or -1 */
  uint32_t *first; /* features + 1 of them: where a feature's examples begin in `which` */
  uint32_t *which;
};

struct pwi_wait_problem {
  struct pwi_wait_shape shape;
  struct pwi_wait_share *shares; /* one for each worker */
  double target;                 /* the objective that a run has to reach */
};

/* Draws the data, and finds the target: a little above what one machine reaches that steps block by block and waits for nobody.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_wait_problem_create(const struct pwi_wait_shape *shape,
                                                  struct pwi_wait_problem **problem_out);
void pwi_wait_problem_destroy(struct pwi_wait_problem *problem); /* NULL is fine */

static inline uint32_t pwi_wait_block_size(const struct pwi_wait_shape *shape) {
  return shape->features / shape->blocks;
}

/* g and u of a block, for each feature one after the other, from the products of the share's examples with the weights. */
void pwi_wait_gradient(const struct pwi_wait_problem *problem, uint32_t worker, uint32_t block, const double *products,
                       double *pairs);

/* A block has new weights: the products and the weights follow. */
void pwi_wait_update(const struct pwi_wait_problem *problem, uint32_t worker, uint32_t block,
                     const double *block_weights, double *weights, double *products);

/* Of all shares. */
double pwi_wait_objective(const struct pwi_wait_problem *problem, const double *weights);

/* --- a run ------------------------------------------------------------------------------------------------------------ */

struct pwi_wait_figures {
  bool is_reached;     /* the target, within the iterations that a run may take */
  double wait_pct;     /* of all workers' time, in which they did not compute */
  double compute_s;    /* of a worker, on average */
  double total_s;      /* until the target was reached */
  uint64_t iterations; /* that the first worker had finished by then */
  double objective;    /* by then */
};

#define PWI_WAIT_BLOCK_S 0.1 /* a block time, of virtual time */

/* PAWL_NO_MEMORY; another: what went wrong in the simulation, and `why` says it. */
PAWL_MUST_USE pawl_status pwi_wait_run(const struct pwi_wait_problem *problem, uint64_t tau,
                                       struct pwi_wait_figures *figures_out, char *why, size_t why_size);

/* --- a picture -------------------------------------------------------------------------------------------------------- */

/* Bars of computing and waiting, one for each tau. False if the file cannot be written. */
bool pwi_wait_draw(const char *path, const uint64_t *taus, const struct pwi_wait_figures *figures, size_t count);

extern const struct pwi_command pwi_command_bench_wait;

#endif
