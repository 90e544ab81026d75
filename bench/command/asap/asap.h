/* `pawl-bench asap`: the figures of ASAP (Kadav and Kruus, "Asynchronous Approximate Data-Parallel
 * Computation", 2016, section 6).
 *
 * Workers train a linear support vector machine by averaging their models over a graph (<pawl/reduce.h>):
 *
 *   minimise   f(w) = lambda / 2 |w|^2  +  1 / n  sum over examples i of max(0, 1 - y_i <x_i, w>)
 *
 * Each worker has a share of the examples and its own copy of w. In each step it takes SGD steps on a batch of
 * its examples, as Bottou's SVM-SGD does, and then reduces w with its neighbours. A run has reached its target
 * once the model of *every* worker is within the tolerance of the optimum. The optimum is a lower bound that a
 * serial solver has computed by dual coordinate descent. No run has any part in it.
 *
 * The simulated figures use the real engine, client and manager; network, machines and time are simulated. So
 * they depend on the seed alone. The other figures are measured between real processes of this machine.
 */
#ifndef BENCH_COMMAND_ASAP_H
#define BENCH_COMMAND_ASAP_H

#include <pawl/reduce.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "cli/cli.h"
#include "graph/topology.h"

#define PWI_ASAP_WORKERS_MAX 128

/* --- the problem (problem.c, optimum.c) ------------------------------------------------------- */

struct pwi_asap_shape {
  uint32_t examples, features, per_example;
  uint32_t topics; /* examples are sorted by topic, as the files of a crawler are; 1: none */
  double topical;  /* share of an example's features that are those of its topic */
  double noise;    /* share of the labels that are wrong */
  double lambda;   /* 0: 1 / examples */
  uint64_t seed;
};

/* Rows have length 1. */
struct pwi_asap_problem {
  uint32_t examples, features;
  size_t *first; /* examples + 1 elements: where the entries of a row begin */
  uint32_t *ids;
  float *values;
  float *labels; /* 1 or -1 */
  double lambda;
  double optimum; /* a lower bound of f: the value of the dual problem */
  double gap;     /* how far above it the best f is at most, relative to f */
};

/* Generated data. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_asap_generate(const struct pwi_asap_shape *shape, struct pwi_asap_problem **problem_out);

/* Data of a file that <pawl/data.h> can read; labels above 0 are 1 and all others -1. PAWL_TOO_LARGE for 2^32 rows
 * or features; errors as pawl_data_open and pawl_data_read, with pawl_error_text. */
PAWL_MUST_USE pawl_status pwi_asap_load(const char *path, double lambda, struct pwi_asap_problem **problem_out);
void pwi_asap_problem_destroy(struct pwi_asap_problem *problem); /* NULL is fine */

double pwi_asap_objective(const struct pwi_asap_problem *problem, const float *weights);

/* Dual coordinate descent (Hsieh et al., ICML 2008) until the duality gap is at most `gap` of f, or for `passes`
 * passes. The result is in optimum and gap. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_asap_solve(struct pwi_asap_problem *problem, double gap, uint32_t passes);

/* --- a worker's learning (learn.c) ----------------------------------------------------------------- */

/* Bottou's SVM-SGD on a share of the examples, in an order of its own. The step size after t examples is
 * rate / (1 + lambda * rate * t). */
struct pwi_asap_learner {
  const struct pwi_asap_problem *problem;
  uint32_t *order; /* of its examples */
  uint32_t count, next;
  uint64_t seen;
  double rate;
  struct pwi_random random;
};

PAWL_MUST_USE pawl_status pwi_asap_learner_init(struct pwi_asap_learner *learner,
                                                const struct pwi_asap_problem *problem, uint32_t worker,
                                                uint32_t workers, double rate, uint64_t seed);
void pwi_asap_learner_fini(struct pwi_asap_learner *learner);
void pwi_asap_learn(struct pwi_asap_learner *learner, uint32_t examples, float *weights);

/* --- a simulated run (sim.c, cards.c) --------------------------------------------------------- */

/* One run: N members of a peer group without servers. A worker computes for `step_ns` of virtual time, or for a
 * multiple of it, and reduces. Every network card sends one thing at a time and receives one at a time. */
struct pwi_asap_setup {
  uint32_t workers;
  enum pwi_topology graph;
  enum pawl_reduce_mode mode;
  uint32_t batch;   /* examples between two reduces */
  double rate;      /* of SGD */
  double tolerance; /* the target is (1 + tolerance) * optimum */
  uint32_t look;    /* steps between two looks at the objective while it is far from the target */
  uint64_t rounds;  /* steps after which a run without success ends */
  bool is_whole;    /* all workers make all these steps, success or not */
  double seconds;   /* above 0: only steps are counted, for so long in virtual time; nothing is learned */
  int64_t step_ns;  /* of computing, on average */
  double jitter;    /* a step takes up to this share of step_ns longer, or less long */
  int64_t put_ns;   /* in which a network card moves one model */
  double slow;      /* the last worker computes so many times longer; 1: not at all */
  double stall;     /* chance that a step of any worker takes `stall_times` as long */
  double stall_times;
  uint64_t seed;
};

struct pwi_asap_outcome {
  bool is_reached;                           /* all workers are within the tolerance */
  double objective;                          /* of the worst of the models that were looked at last */
  uint64_t rounds;                           /* of the worker with most steps */
  uint64_t steps;                            /* of all workers; each is one reduce */
  double seconds;                            /* virtual */
  uint64_t bytes;                            /* that all workers sent, with headers */
  uint64_t expected, used, current;          /* inputs of all reduces, as in struct pawl_reduce_report */
  uint64_t by_used[PWI_ASAP_WORKERS_MAX];    /* reduces with so many complete inputs, of any version */
  uint64_t by_current[PWI_ASAP_WORKERS_MAX]; /* reduces with so many inputs of their own version */
};

/* PAWL_NO_MEMORY; any other error comes from the simulation, and `why` explains it. */
PAWL_MUST_USE pawl_status pwi_asap_simulate(const struct pwi_asap_problem *problem, const struct pwi_asap_setup *setup,
                                            struct pwi_asap_outcome *outcome_out, char *why, size_t why_size);

/* The network of a simulated run: messages take little time, and models queue for the cards of both ends. */
struct pwi_asap_cards {
  int64_t put_ns;
  size_t bytes; /* of a model */
  int64_t *sends_until, *receives_until;
  uint32_t nodes;
};

struct pwi_sim_packet;
int64_t pwi_asap_delivery_time(void *cards, const struct pwi_sim_packet *packet, int64_t now,
                               struct pwi_random *random);

/* --- pictures (picture.c) --------------------------------------------------------------------------- */

#define PWI_ASAP_GROUPS_MAX 16
#define PWI_ASAP_SERIES_MAX 4

/* Groups of bars, one bar of each series in a group. */
struct pwi_asap_chart {
  const char *title, *axis; /* above the bars; below the groups */
  const char *series[PWI_ASAP_SERIES_MAX];
  size_t series_count;
  char groups[PWI_ASAP_GROUPS_MAX][32];
  double values[PWI_ASAP_GROUPS_MAX][PWI_ASAP_SERIES_MAX]; /* NaN: no bar */
  size_t group_count;
  int digits; /* behind the decimal point of a value */
};

/* False if the file cannot be written. */
bool pwi_asap_draw(const char *path, const struct pwi_asap_chart *chart);

/* --- the figures ---------------------------------------------------------------------------------------- */

struct pwi_asap_plan {
  const struct pwi_command *command;
  const struct pwi_asap_problem *problem;
  uint32_t figure;
  uint32_t workers; /* 0: as many as the paper has */
  uint32_t batch;   /* 0: by figure */
  double rate;      /* of SGD */
  double tolerance;
  double gigabits; /* a second, of a simulated network card */
  double seconds;  /* that figures which count steps run, in virtual time */
  uint64_t rounds; /* steps of a worker after which a run without success ends */
  uint64_t seed;
  bool json;
  const char *svg; /* NULL: none */
  bool is_real;    /* between processes of this machine */

  /* Figures 8 to 10. */
  bool has_graph; /* else the one of the paper */
  enum pwi_topology graph;
  double stall, stall_times; /* as in struct pwi_asap_setup */

  /* Where the problem comes from, for processes that must make it again. */
  struct pwi_asap_shape shape;
  const char *data; /* NULL: generated */
};

/* graphs.c: 5, 6 and 7, bytes to an accuracy by graph; modes.c: 8, 9 and 10, by mode. Each runs the
 * figure in the simulator, prints and draws it, and returns an exit code: PWI_EXIT_FAILURE also if a run has not
 * reached its accuracy. */
int pwi_asap_by_graph(const struct pwi_asap_plan *plan);
int pwi_asap_by_mode(const struct pwi_asap_plan *plan);

/* plan.c. */
const char *pwi_asap_mode_name(enum pawl_reduce_mode mode);
/* What all runs of a plan have in common. */
struct pwi_asap_setup pwi_asap_setup_of(const struct pwi_asap_plan *plan, uint32_t workers);
/* Runs it, and says why if it fails. */
bool pwi_asap_try(const struct pwi_asap_plan *plan, const struct pwi_asap_setup *setup,
                  struct pwi_asap_outcome *outcome_out);
void pwi_asap_print_head(const struct pwi_asap_plan *plan, const char *title);
/* One object; `scene` says what disturbs the workers. */
void pwi_asap_print_json(const struct pwi_asap_plan *plan, const char *scene, const struct pwi_asap_setup *setup,
                         const struct pwi_asap_outcome *outcome);
/* Draws the chart if a picture was asked for; returns the exit code. */
int pwi_asap_finish(const struct pwi_asap_plan *plan, const struct pwi_asap_chart *chart, int exit_code);

extern const struct pwi_command pwi_command_bench_asap;

#endif
