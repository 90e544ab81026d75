/* `pawl-bench sfb`: the figures of sufficient factor broadcasting (SFB: Xie et al., "Lighter-Communication Distributed
 * Machine Learning via Sufficient Factor Broadcasting", 2016, section 5).
 *
 * Workers train multiclass logistic regression by SGD:
 *
 *   minimise   F(W)  =  mean over rows of -log p_y,     p = softmax(W x)
 *
 * A worker computes K pairs (p - y) x' of its share of the rows, and sends them to the others (<pawl/factor.h>). A run has
 * reached its target when F of the matrix of *every* worker is at most the target.
 *
 * The simulated figures use the real manager, clients and engines of factors, and the matrices are computed. Network,
 * machines and time are simulated: a commit stands for so many times more bytes than it has as its sizes are smaller than
 * those of the paper. So the same seed prints the same figures on every machine. Figure 8 is measured between real
 * processes, and the rate of multiplication in this one.
 */
#ifndef BENCH_COMMAND_SFB_H
#define BENCH_COMMAND_SFB_H

#include <pawl/factor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "cli/cli.h"
#include "graph/graph.h"

#define PWI_SFB_WORKERS_MAX 64
#define PWI_SFB_MARKS 10

/* --- the problem (problem.c) -------------------------------------------------------------------------------- */

struct pwi_sfb_shape {
  uint32_t classes, features, rows;
  double signal; /* length of the scores by which labels are drawn */
  uint64_t seed;
};

struct pwi_sfb_problem {
  struct pwi_sfb_shape shape;
  float *x; /* rows x features */
  uint32_t *labels;
};

/* Rows of normal values, and labels that are drawn from the softmax of a random matrix. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sfb_generate(const struct pwi_sfb_shape *shape, struct pwi_sfb_problem *problem_out);
void pwi_sfb_problem_fini(struct pwi_sfb_problem *problem);

/* u = p - y of one row; returns -log p_y. W is stored as features x classes: so loops over classes vectorise. */
double pwi_sfb_error(const struct pwi_sfb_problem *problem, const float *w, uint32_t row, float *u_out);
double pwi_sfb_objective(const struct pwi_sfb_problem *problem, const float *w, float *u);

/* --- a simulated run (sim.c, network.c) ------------------------------------------------------------------------- */

struct pwi_sfb_setup {
  uint32_t workers;
  const struct pwi_graph *graph; /* NULL: everyone to everyone */
  bool forwards;
  enum pawl_factor_mode mode;
  uint64_t staleness;
  uint32_t batch;    /* K: rows of a worker's commit */
  double rate;       /* a row changes W by rate / (K * workers that are heard) times its pair */
  bool rate_is_each; /* by rate / K instead: more workers go further in a step */
  bool falls;        /* the rate of clock c is rate / sqrt(c) */
  double target;     /* 0: none; the run has all its rounds */
  uint64_t rounds;   /* most commits of a worker */
  uint64_t look;     /* commits between two looks at the objective; 0: none at all */
  double row_s;      /* in which a worker computes a pair */
  double apply_s;    /* in which it applies one */
  double jitter;     /* a step computes up to this share longer, or less long */
  double gigabits;   /* of a network card */
  double magnify;    /* a byte of a commit stands for so many */
  uint64_t seed;
};

struct pwi_sfb_outcome {
  bool is_reached;
  double objective;      /* of the worst worker at the end */
  uint64_t rounds;       /* of the worker with most commits */
  double seconds;        /* virtual, since all had opened */
  double compute_s;      /* of a worker on average; the rest of the time it waits */
  uint64_t commit_bytes; /* that the engines of all workers sent */
  uint64_t wire_bytes;   /* of all packets between workers, with heads and confirmations */
  bool is_same;          /* all matrices have the same hash at the end */
  uint64_t hash;         /* of the first one */
  uint32_t marks;        /* clocks 1, 2, 4, 8, ... */
  /* at each: the largest distance of a worker's matrix to the mean of all, relative to its length */
  double disagreement[PWI_SFB_MARKS];
};

/* PAWL_NO_MEMORY; any other error comes from the simulation, and `why` explains it. */
PAWL_MUST_USE pawl_status pwi_sfb_simulate(const struct pwi_sfb_problem *problem, const struct pwi_sfb_setup *setup,
                                           struct pwi_sfb_outcome *outcome_out, char *why, size_t why_size);

/* A data centre that counts bytes between workers. */
struct pwi_sfb_network;
struct pwi_sim_fabric;
PAWL_MUST_USE pawl_status pwi_sfb_network_create(const struct pwi_sfb_setup *setup,
                                                 struct pwi_sfb_network **network_out);
void pwi_sfb_network_destroy(struct pwi_sfb_network *network);
const struct pwi_sim_fabric *pwi_sfb_network_fabric(struct pwi_sfb_network *network);
uint64_t *pwi_sfb_network_bytes(struct pwi_sfb_network *network);

/* Seconds in which every one of `workers` machines, each with a share of the servers, sends `bytes` to them and gets as
 * many back. An ideal: nothing takes time but the cards, which send and receive at once. */
double pwi_sfb_exchange_s(uint32_t workers, double bytes, double gigabits);

/* --- the figures ------------------------------------------------------------------------------------------------- */

enum pwi_sfb_figure {
  PWI_SFB_TIME,         /* 28 machines, and the scaling: section 5, "Convergence Speed" and figure 7 */
  PWI_SFB_PARTIAL,      /* figure 9 */
  PWI_SFB_REAL,         /* figures 6 and 8, by processes of this machine */
  PWI_SFB_BYTES,        /* figure 4 */
  PWI_SFB_DISAGREEMENT, /* theorem 1 */
  PWI_SFB_LARGE,        /* a commit of the paper's size, between processes of this machine */
  PWI_SFB_RATE,
  PWI_SFB_FIGURES
};

struct pwi_sfb_plan {
  const struct pwi_command *command;
  enum pwi_sfb_figure figure;
  uint32_t workers;           /* 0: as many as the figure has */
  struct pwi_sfb_shape shape; /* that are computed */
  struct pwi_sfb_setup setup; /* what runs have in common; magnify: see there */
  double target;              /* share of the objective of W = 0 */
  uint32_t repeats;           /* of what is measured on this machine */
  bool json;
  const char *svg; /* NULL: none */
};

/* Each prints a figure and returns an exit code. */
int pwi_sfb_time(const struct pwi_sfb_plan *plan);
int pwi_sfb_partial(const struct pwi_sfb_plan *plan);
int pwi_sfb_real(const struct pwi_sfb_plan *plan);
int pwi_sfb_bytes(const struct pwi_sfb_plan *plan);
int pwi_sfb_disagreement(const struct pwi_sfb_plan *plan);
int pwi_sfb_large(const struct pwi_sfb_plan *plan);
int pwi_sfb_rate(const struct pwi_sfb_plan *plan);

/* plan.c */
bool pwi_sfb_try(const struct pwi_sfb_plan *plan, const struct pwi_sfb_problem *problem,
                 const struct pwi_sfb_setup *setup, struct pwi_sfb_outcome *outcome_out);
bool pwi_sfb_open(const struct pwi_sfb_plan *plan, struct pwi_sfb_problem *problem_out); /* false after a message */
double pwi_sfb_start(const struct pwi_sfb_problem *problem);                             /* the objective of W = 0 */
/* Writes the values of a figure as bars; returns the exit code. */
struct pwi_asap_chart;
int pwi_sfb_finish(const struct pwi_sfb_plan *plan, const struct pwi_asap_chart *chart, int exit_code);

extern const struct pwi_command pwi_command_bench_sfb;

#endif
