/* `pawl-bench asap`: the command line. */
#include <inttypes.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <string.h>

#include "asap.h"
#include "bench/command/bench.h"
#include "real.h"

enum {
  LETTER_FIGURE = 300,
  LETTER_WORKERS,
  LETTER_DATA,
  LETTER_EXAMPLES,
  LETTER_FEATURES,
  LETTER_LAMBDA,
  LETTER_BATCH,
  LETTER_RATE,
  LETTER_ACCURACY,
  LETTER_ROUNDS,
  LETTER_GIGABITS,
  LETTER_SECONDS,
  LETTER_SEED,
  LETTER_SVG,
  LETTER_REAL,
  LETTER_GRAPH,
  LETTER_STALL,
  LETTER_STALL_TIMES
};

#define FIGURE_FIRST 5
#define FIGURE_LAST 10
#define GAP 1e-5 /* of the reference */
#define PASSES 20000
#define COUNT_MAX 100000000
#define ROUNDS 5000
#define ROUNDS_REAL 1000

struct asap_options {
  struct pwi_asap_plan plan;
  uint32_t rounds; /* 0: the default */
};

static bool read_percent(const char *text, double *share_out) {
  double percent;
  if (!pwi_bench_positive(text, 100, &percent)) return false;
  *share_out = percent / 100;
  return true;
}

static bool read_size(struct asap_options *options, int letter, const char *value) {
  switch (letter) {
  case LETTER_FIGURE:
    return pwi_bench_count(value, FIGURE_FIRST, FIGURE_LAST, &options->plan.figure);
  case LETTER_WORKERS:
    return pwi_bench_count(value, 2, PWI_ASAP_WORKERS_MAX, &options->plan.workers);
  case LETTER_EXAMPLES:
    return pwi_bench_count(value, PWI_ASAP_WORKERS_MAX, COUNT_MAX, &options->plan.shape.examples);
  case LETTER_FEATURES:
    return pwi_bench_count(value, 1, COUNT_MAX, &options->plan.shape.features);
  case LETTER_BATCH:
    return pwi_bench_count(value, 1, COUNT_MAX, &options->plan.batch);
  default:
    return pwi_bench_count(value, 1, COUNT_MAX, &options->rounds);
  }
}

static bool read_option(void *context, int letter, const char *value) {
  struct asap_options *options = context;
  switch (letter) {
  case LETTER_DATA:
    options->plan.data = value;
    return true;
  case LETTER_LAMBDA:
    return pwi_bench_positive(value, 1, &options->plan.shape.lambda);
  case LETTER_RATE:
    return pwi_bench_positive(value, 1000, &options->plan.rate);
  case LETTER_ACCURACY:
    return read_percent(value, &options->plan.tolerance);
  case LETTER_GIGABITS:
    return pwi_bench_positive(value, 1000, &options->plan.gigabits);
  case LETTER_SECONDS:
    return pwi_bench_positive(value, 3600, &options->plan.seconds);
  case LETTER_SEED:
    return pwi_cli_number(value, &options->plan.seed);
  case LETTER_SVG:
    options->plan.svg = value;
    return true;
  case LETTER_GRAPH:
    return options->plan.has_graph = pwi_topology_find(value, &options->plan.graph);
  case LETTER_STALL:
    return pwi_bench_positive(value, 1, &options->plan.stall);
  case LETTER_STALL_TIMES:
    return pwi_bench_positive(value, 1000, &options->plan.stall_times);
  case LETTER_REAL:
    return options->plan.is_real = true;
  case PWI_CLI_LETTER_JSON:
    return options->plan.json = true;
  default:
    return read_size(options, letter, value);
  }
}

/* The data and its optimum. */
static int prepare(const struct pwi_command *command, struct asap_options *options,
                   struct pwi_asap_problem **problem_out) {
  struct pwi_asap_problem *problem = NULL;
  options->plan.shape.seed = options->plan.seed;
  pawl_status status = options->plan.data ? pwi_asap_load(options->plan.data, options->plan.shape.lambda, &problem)
                                          : pwi_asap_generate(&options->plan.shape, &problem);
  if (status == PAWL_NO_MEMORY) return pwi_cli_failure(command, "not enough memory for the data");
  if (status == PAWL_TOO_LARGE)
    return pwi_cli_failure(command, "'%s' has too many rows or features", options->plan.data);
  if (status) return pwi_cli_failure(command, "%s", pawl_error_text());
  int exit_code = PWI_EXIT_OK;
  if (problem->examples < PWI_ASAP_WORKERS_MAX)
    exit_code = pwi_cli_failure(command, "'%s' has %" PRIu32 " rows; %d are needed", options->plan.data,
                                problem->examples, PWI_ASAP_WORKERS_MAX);
  else if (pwi_asap_solve(problem, GAP, PASSES))
    exit_code = pwi_cli_failure(command, "not enough memory for the optimum");
  else if (problem->gap > 10 * GAP && problem->gap > options->plan.tolerance / 10)
    exit_code = pwi_cli_failure(command, "the optimum was not found: the duality gap is %g; use a larger --lambda",
                                problem->gap);
  if (exit_code)
    pwi_asap_problem_destroy(problem);
  else
    *problem_out = problem;
  return exit_code;
}

static int run_figure(const struct pwi_asap_plan *plan) {
  if (plan->is_real && plan->figure == 5) return pwi_asap_beside(plan);
  return plan->figure < 8 ? pwi_asap_by_graph(plan) : pwi_asap_by_mode(plan);
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct asap_options options = {
      .plan = {
          .command = command,
          .rate = 4,
          .tolerance = 0.01,
          .gigabits = 10,
          .seconds = 2,
          .seed = 1,
          .stall = 0.04,
          .stall_times = 10,
          .shape = {
              .examples = 12800, .features = 2000, .per_example = 30, .topics = 1, .noise = 0.05, .lambda = 3e-4}}};
  struct pwi_asap_plan *plan = &options.plan;
  struct pwi_asap_problem *problem = NULL;
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  if (plan->figure == 0)
    return pwi_cli_usage(command, "no figure given; name one with --figure, from %d to %d", FIGURE_FIRST, FIGURE_LAST);
  if (plan->is_real && plan->figure != 5 && plan->figure != 8)
    return pwi_cli_usage(command, "--real needs --figure 5 or 8");
  if (options.rounds == 0) options.rounds = plan->is_real ? ROUNDS_REAL : ROUNDS;
  plan->rounds = options.rounds;
  exit_code = prepare(command, &options, &problem);
  if (exit_code) return exit_code;
  plan->problem = problem;
  exit_code = run_figure(plan);
  pwi_asap_problem_destroy(problem);
  return exit_code;
}

static const struct pwi_cli_option cli_options[] = {
    PWI_CLI_HEADING("Figure"),
    {LETTER_FIGURE, "figure", "N", "the figure of the paper: 5, 6, 7, 8, 9 or 10"},
    {LETTER_WORKERS, "workers", "N", "workers, up to 128 (default: as in the paper)"},
    {LETTER_SEED, "seed", "N", "seed of data, delays and orders (default: 1)"},
    {LETTER_SVG, "svg", "FILE", "also draw the figure to this file"},
    PWI_CLI_JSON,
    PWI_CLI_HEADING("Learning"),
    {LETTER_DATA, "data", "FILE", "examples in LIBSVM format, or any other that pawl reads (default: generated)"},
    {LETTER_EXAMPLES, "examples", "N", "examples that are generated (default: 12800)"},
    {LETTER_FEATURES, "features", "N", "features that are generated (default: 2000)"},
    {LETTER_LAMBDA, "lambda", "L", "regularisation (default: 3e-4)"},
    {LETTER_BATCH, "batch", "N", "examples between two reduces (default: 20; figure 7: a worker's share)"},
    {LETTER_RATE, "rate", "R", "first step size of SGD (default: 4)"},
    {LETTER_ACCURACY, "accuracy", "P", "per cent above the optimum that all workers must reach (default: 1)"},
    {LETTER_ROUNDS, "rounds", "N",
     "steps of a worker after which a run without success ends (default: 5000; with --real 1000)"},
    PWI_CLI_HEADING("Machines"),
    {LETTER_GIGABITS, "gigabits", "G", "Gbit/s of a simulated network card (default: 10)"},
    {LETTER_GRAPH, "graph", "NAME", "figures 8 to 10: a topology of `pawl graph list` (default: as in the paper)"},
    {LETTER_STALL, "stall", "P", "figures 9 and 10: chance that a step stalls (default: 0.04)"},
    {LETTER_STALL_TIMES, "stall-times", "T", "such a step takes so many times as long (default: 10)"},
    {LETTER_SECONDS, "seconds", "S", "seconds in which steps are counted, virtual ones without --real (default: 2)"},
    {LETTER_REAL, "real", NULL, "figures 5 and 8: between processes of this machine"},
    {0},
};

const struct pwi_command pwi_command_bench_asap = {
    .name = "asap",
    .summary = "measure reduce by graph and by mode, as the ASAP paper does",
    .text = "Repeats a figure of Kadav and Kruus, \"Asynchronous Approximate Data-Parallel\n"
            "Computation\" (2016). Workers train a linear SVM by SGD and average their models\n"
            "over a graph. The accuracy is relative to the optimum, which a serial solver\n"
            "computes first; a run has reached it when the model of every worker has.\n\n"
            "  5, 6, 7  bytes to an accuracy by graph, with 4, 64 and 25 workers\n"
            "  8        inputs that a reduce uses, by mode, with 8 workers, one slow\n"
            "  9, 10    steps a second and time to an accuracy by mode, with and without\n"
            "           stragglers: 8 workers on all-reduce, 25 on the root graph\n\n"
            "With --real, processes of this machine take part instead. Figure 8 is the same;\n"
            "figure 5 is then the time to the accuracy, beside servers and MPI_Allreduce.\n\n"
            "The roles and the numbers are real, network and time are simulated: without --real the same\n"
            "seed gives the same figures on any machine. The exit code is 1 if a run did not\n"
            "reach its accuracy; only async runs may fail to, as they do in the paper.\n\n"
            "  pawl-bench asap --figure 6\n"
            "  pawl-bench asap --figure 8 --json\n"
            "  pawl-bench asap --figure 5 --real --workers 2\n"
            "  pawl-bench asap --figure 7 --data rcv1.svm --lambda 1e-3 --svg 7.svg\n",
    .options = cli_options,
    .run = run,
};
