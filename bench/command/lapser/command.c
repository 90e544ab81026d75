/* `pawl-bench lapser`: the command line. */
#include <stdio.h>
#include <string.h>

#include "bench/command/bench.h"
#include "plan.h"

enum {
  LETTER_FIGURE = 300,
  LETTER_WORKERS,
  LETTER_ROUNDS,
  LETTER_ITERATIONS,
  LETTER_RANK,
  LETTER_SEED,
  LETTER_SVG,
  LETTER_DATA,
  LETTER_USERS,
  LETTER_ITEMS,
  LETTER_RATINGS,
  LETTER_TCP,
  LETTER_SIM,
  LETTER_GIGABITS,
  LETTER_GIGAFLOPS
};

#define COUNT_MAX 100000000
#define RANK_MAX 256
#define TEST_SHARE 0.2 /* as in the thesis (5.1) */

struct lapser_options {
  struct pwi_lapser_plan plan;
  struct pwi_lapser_shape shape;
  const char *data; /* NULL: generated */
  bool has_figure, has_sim_option;
};

static bool read_figure(struct lapser_options *options, const char *value) {
  options->has_figure = true;
  if (strcmp(value, "table") == 0) return true;
  if (strncmp(value, "5.", 2) == 0) value += 2;
  return pwi_bench_count(value, 1, PWI_LAPSER_FIGURE_LAST, &options->plan.figure);
}

static bool read_count(struct lapser_options *options, int letter, const char *value) {
  struct pwi_lapser_plan *plan = &options->plan;
  switch (letter) {
  case LETTER_WORKERS:
    return pwi_bench_count(value, 1, PWI_LAPSER_WORKERS_MAX, &plan->workers);
  case LETTER_ROUNDS:
    return pwi_bench_count(value, 1, PWI_LAPSER_ROUNDS_MAX, &plan->rounds);
  case LETTER_ITERATIONS:
    return pwi_bench_count(value, 2, PWI_LAPSER_ITERATIONS_MAX, &plan->task.iterations);
  case LETTER_RANK:
    return pwi_bench_count(value, 1, RANK_MAX, &plan->task.rank);
  case LETTER_USERS:
    return pwi_bench_count(value, PWI_LAPSER_WORKERS_MAX, COUNT_MAX, &options->shape.users);
  case LETTER_ITEMS:
    return pwi_bench_count(value, PWI_LAPSER_WORKERS_MAX, COUNT_MAX, &options->shape.items);
  default:
    return pwi_bench_count(value, 100, COUNT_MAX, &options->shape.ratings);
  }
}

static bool read_option(void *context, int letter, const char *value) {
  struct lapser_options *options = context;
  switch (letter) {
  case LETTER_FIGURE:
    return read_figure(options, value);
  case LETTER_SEED:
    return pwi_cli_number(value, &options->shape.seed);
  case LETTER_SVG:
    options->plan.svg = value;
    return true;
  case LETTER_DATA:
    options->data = value;
    return true;
  case LETTER_TCP:
    return options->plan.task.is_tcp = true;
  case LETTER_SIM:
    return options->plan.task.is_simulated = true;
  case LETTER_GIGABITS:
    return options->has_sim_option = pwi_bench_positive(value, 10000, &options->plan.task.gigabits);
  case LETTER_GIGAFLOPS:
    return options->has_sim_option = pwi_bench_positive(value, 1e6, &options->plan.task.gigaflops);
  case PWI_CLI_LETTER_JSON:
    return options->plan.json = true;
  default:
    return read_count(options, letter, value);
  }
}

static int check(const struct pwi_command *command, const struct lapser_options *options) {
  const struct pwi_lapser_task *task = &options->plan.task;
  if (!options->has_figure)
    return pwi_cli_usage(command, "no figure given; name one with --figure: table, or 5.1 to 5.%d",
                         PWI_LAPSER_FIGURE_LAST);
  if (task->is_simulated && task->is_tcp) return pwi_cli_usage(command, "--tcp and --sim exclude each other");
  if (!task->is_simulated && options->has_sim_option)
    return pwi_cli_usage(command, "--gigabits and --gigaflops need --sim");
  if (options->plan.figure != 8 && options->plan.workers == 1)
    return pwi_cli_usage(command, "one worker exchanges nothing; use --workers 2 or more");
  return PWI_EXIT_OK;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct lapser_options options = {.shape = {.users = 4000, .items = 2000, .ratings = 200000, .seed = 1}};
  struct pwi_lapser_plan *plan = &options.plan;
  struct pwi_lapser_problem problem;
  int exit_code;
  *plan = (struct pwi_lapser_plan){.command = command, .problem = &problem};
  plan->task = (struct pwi_lapser_task){
      .test_share = TEST_SHARE, .rank = 16, .iterations = 50, .gigabits = 56, .gigaflops = 100};
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  exit_code = check(command, &options);
  if (exit_code) return exit_code;
  if (plan->rounds == 0) plan->rounds = plan->task.is_simulated ? 1 : 3;
  exit_code = pwi_lapser_problem_open(command, options.data, &options.shape, plan->task.test_share, &problem);
  if (exit_code == PWI_EXIT_OK) {
    plan->task.data = &problem.data;
    plan->task.path = problem.path;
    plan->task.seed = options.shape.seed;
    plan->task.burn_in = plan->task.iterations / 10;
    exit_code = pwi_lapser_carry_out(plan);
  }
  pwi_lapser_problem_close(&problem);
  return exit_code;
}

static const struct pwi_cli_option cli_options[] = {
    PWI_CLI_HEADING("Figure"),
    {LETTER_FIGURE, "figure", "N", "the figure of the thesis: table (5.2), or 5.1 to 5.8"},
    {LETTER_WORKERS, "workers", "N", "workers, up to 16 (default: 2, with --sim 16); figure 5.8: the most"},
    {LETTER_ROUNDS, "rounds", "N", "times that all runs are repeated, up to 15 (default: 3, with --sim 1)"},
    {LETTER_SEED, "seed", "N", "seed of ratings, samples and delays (default: 1)"},
    {LETTER_SVG, "svg", "FILE", "also draw the figure to this file"},
    PWI_CLI_JSON,
    PWI_CLI_HEADING("Learning"),
    {LETTER_DATA, "data", "FILE", "ratings in any format that pawl reads (default: generated)"},
    {LETTER_USERS, "users", "N", "users of generated ratings (default: 4000)"},
    {LETTER_ITEMS, "items", "N", "items of generated ratings (default: 2000)"},
    {LETTER_RATINGS, "ratings", "N", "ratings that are generated (default: 200000)"},
    {LETTER_RANK, "rank", "N", "numbers of a row, up to 256 (default: 16)"},
    {LETTER_ITERATIONS, "iterations", "N", "iterations of a run, up to 1000 (default: 50)"},
    PWI_CLI_HEADING("Machines"),
    {LETTER_TCP, "tcp", NULL, "processes exchange rows over sockets, as on several hosts"},
    {LETTER_SIM, "sim", NULL, "simulate hosts, network and the time of computing"},
    {LETTER_GIGABITS, "gigabits", "G", "Gbit/s of a simulated network card (default: 56)"},
    {LETTER_GIGAFLOPS, "gigaflops", "G", "Gflop/s of a simulated worker (default: 100)"},
    {0},
};

const struct pwi_command pwi_command_bench_lapser = {
    .name = "lapser",
    .summary = "measure items in matrix factorisation, as the Lapser thesis does",
    .text = "Repeats a table or figure of the Lapser thesis (2021). Workers factorise ratings\n"
            "by Gibbs sampling and exchange rows as items, pushed or pulled, with slack; by\n"
            "an exchange written by hand on the same data plane; and by MPI, if Open MPI was\n"
            "found when pawl was built. Each worker has one thread.\n\n"
            "  table    seconds of an iteration and error by way (table 5.2)\n"
            "  5.1      error along time by way, for a large set of ratings\n"
            "  5.2      the same for a small set\n"
            "  5.3      communication and computation by way\n"
            "  5.4      seconds of an iteration and error by slack: 0, 1, 2, 4, 8\n"
            "  5.5      seconds of each iteration by slack\n"
            "  5.6      error after each iteration by slack\n"
            "  5.7      error along time by slack\n"
            "  5.8      seconds of an iteration by number of workers\n\n"
            "All figures print the same table; --svg draws, and --json lists each iteration.\n"
            "Without slack all ways must compute the same samples; otherwise the exit code\n"
            "is 1. On one host push and pull are the same, because consumers read the memory\n"
            "of producers; --tcp and --sim show the difference.\n\n"
            "  pawl-bench lapser --figure table --data ratings.csv --rank 128\n"
            "  pawl-bench lapser --figure 5.4 --tcp --svg 4.svg\n"
            "  pawl-bench lapser --figure 5.8 --sim\n",
    .options = cli_options,
    .run = run,
};
