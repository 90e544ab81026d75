/* How long workers wait under bounded delay, and what a longer delay costs (OSDI'14 5.1, figures 10 and 13):
 * `pawl sim osdi` and `pawl-bench wait`.
 *
 * Algorithm 3 of the paper, delayed block proximal gradient for l1-regularised logistic regression:
 *
 *   minimise   f(w) = sum over examples i of log(1 + exp(-y_i <x_i, w>))  +  l1 |w|_1
 *
 * Iteration t handles one block of features. Each worker computes, from its current weights, its share of
 * the gradient g and of the diagonal u that bounds the second derivative, and pushes both. The servers
 * aggregate the pushes of all workers and take one proximal step (docs/functions.md, "The block proximal
 * step"). Each worker pulls the block. A worker may start iteration t when all iterations up to t - tau -
 * 1 have finished, pull included.
 *
 * Roles, policies and numbers are real; the network, the machines and time are simulated. A worker takes
 * one *block time* to compute, four with probability 0.1, and a push takes half a block time. So the
 * figures depend on the seed alone.
 */
#ifndef PWI_CLI_OSDI_WAIT_H
#define PWI_CLI_OSDI_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "cli/cli.h"

#define PWI_WAIT_INFINITE UINT64_MAX
#define PWI_WAIT_ADAPTIVE (UINT64_MAX - 1) /* the policy finds the bound: "adaptive 0 16" */
#define PWI_WAIT_WORKERS_MAX 32
#define PWI_WAIT_BLOCKS_MAX 256
#define PWI_WAIT_BLOCK_FEATURES 32
#define PWI_WAIT_TAUS_MAX 32

/* --- the problem ---------------------------------------------------------------------------------------- */

struct pwi_wait_shape {
  uint32_t workers, blocks, features, examples; /* `features` is a multiple of `blocks` */
  uint32_t per_example;                         /* features per example */
  double l1, rate;
  uint64_t seed;
};

/* The examples of one worker, by feature: which examples have it. All values are 1. */
struct pwi_wait_share {
  uint32_t examples;
  float *labels;   /* 1 or -1 */
  uint32_t *first; /* features + 1 elements: where the examples of a feature begin in `which` */
  uint32_t *which;
};

struct pwi_wait_problem {
  struct pwi_wait_shape shape;
  struct pwi_wait_share *shares; /* one per worker */
  double target;                 /* the objective that a run must reach */
};

/* Generates the data and computes the target: slightly above the objective that one machine reaches by
 * steps block by block, without delay. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_wait_problem_create(const struct pwi_wait_shape *shape,
                                                  struct pwi_wait_problem **problem_out);
void pwi_wait_problem_destroy(struct pwi_wait_problem *problem); /* NULL is fine */

static inline uint32_t pwi_wait_block_size(const struct pwi_wait_shape *shape) {
  return shape->features / shape->blocks;
}

/* g and u of a block, alternating by feature, from the products of the share's examples with the weights. */
void pwi_wait_gradient(const struct pwi_wait_problem *problem, uint32_t worker, uint32_t block, const double *products,
                       double *pairs);

/* Updates weights and products with new weights of a block. */
void pwi_wait_update(const struct pwi_wait_problem *problem, uint32_t worker, uint32_t block,
                     const double *block_weights, double *weights, double *products);

/* The objective of one share, which is all that a worker knows, from the products of its examples. */
double pwi_wait_own_objective(const struct pwi_wait_problem *problem, uint32_t worker, const double *weights,
                              const double *products);

/* The objective over all shares. */
double pwi_wait_objective(const struct pwi_wait_problem *problem, const double *weights);

/* --- a run ---------------------------------------------------------------------------------------------- */

struct pwi_wait_figures {
  bool is_reached;     /* the target, within the permitted number of iterations */
  double wait_pct;     /* share of all workers' time in which they did not compute */
  double compute_s;    /* mean of the workers */
  double total_s;      /* until the target was reached */
  uint64_t iterations; /* of the first worker at that time */
  double objective;    /* at that time */
  uint64_t bound;      /* of the first worker at that time */

  /* Of each worker until then, by its number: the time in which it computed. */
  double computed_s[PWI_WAIT_WORKERS_MAX];
};

/* "8", "inf" or "adaptive". */
#define PWI_WAIT_NAME_MAX 24
void pwi_wait_name(uint64_t tau, char name[PWI_WAIT_NAME_MAX]);

#define PWI_WAIT_BLOCK_S 0.1                   /* a block time in virtual seconds */
#define PWI_WAIT_PUSH_S (PWI_WAIT_BLOCK_S / 2) /* a block's push on its way */

/* Draws how long a worker computes a block, in seconds. */
double pwi_wait_block_time(struct pwi_random *random);

/* PAWL_NO_MEMORY; any other error comes from the simulation, and `why` explains it. */
PAWL_MUST_USE pawl_status pwi_wait_run(const struct pwi_wait_problem *problem, uint64_t tau,
                                       struct pwi_wait_figures *figures_out, char *why, size_t why_size);

/* System A of the paper on the same problem: L-BFGS, one gradient of all features after the other. `iterations` are
 * gradients. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_wait_lbfgs(const struct pwi_wait_problem *problem, struct pwi_wait_figures *figures_out);

/* --- a picture ------------------------------------------------------------------------------------------ */

/* Draws bars of computing and waiting. False if the file cannot be written. */
bool pwi_wait_draw(const char *path, const char *under, const char (*names)[PWI_WAIT_NAME_MAX],
                   const struct pwi_wait_figures *figures, size_t count);

#endif
