/* `pawl-bench wait`: bounded delay, from none to unlimited. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "wait.h"

enum { LETTER_TAU = 300, LETTER_WORKERS, LETTER_BLOCKS, LETTER_SEED, LETTER_RATE, LETTER_SVG, LETTER_BY_WORKER };

#define BLOCKS_MAX 256
#define TAU_MAX 1000000
#define BLOCK_FEATURES 32

struct wait_options {
  uint64_t taus[PWI_WAIT_TAUS_MAX];
  size_t tau_count;
  struct pwi_wait_shape shape;
  const char *svg;
  bool json, by_worker;
};

/* --- printing ------------------------------------------------------------------------------------------- */

static json_t *tau_json(uint64_t tau) {
  char name[PWI_WAIT_NAME_MAX];
  pwi_wait_name(tau, name);
  return tau >= PWI_WAIT_ADAPTIVE ? json_string(name) : json_integer((json_int_t)tau);
}

static json_t *computed_json(const struct pwi_wait_shape *shape, const struct pwi_wait_figures *figures) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < shape->workers; i++) json_array_append_new(list, json_real(figures->computed_s[i]));
  return list;
}

static void print_json(const struct pwi_command *command, const struct pwi_wait_shape *shape, uint64_t tau,
                       const struct pwi_wait_figures *figures) {
  json_t *total = figures->is_reached ? json_real(figures->total_s) : json_null();
  pwi_cli_print_json(command, json_pack("{s:s, s:o, s:f, s:f, s:o, s:I, s:b, s:f, s:i, s:i, s:f, s:f, s:I, s:o}",
                                        "bench", "wait", "tau", tau_json(tau), "wait_pct", figures->wait_pct,
                                        "compute_s", figures->compute_s, "total_s", total, "iterations",
                                        (json_int_t)figures->iterations, "reached", figures->is_reached, "objective",
                                        figures->objective, "workers", (int)shape->workers, "blocks",
                                        (int)shape->blocks, "block_s", PWI_WAIT_BLOCK_S, "rate", shape->rate, "seed",
                                        (json_int_t)shape->seed, "computed_s", computed_json(shape, figures)));
}

static void print_head(const struct pwi_wait_problem *problem) {
  const struct pwi_wait_shape *shape = &problem->shape;
  printf("%" PRIu32 " workers, %" PRIu32 " examples, %" PRIu32 " features in %" PRIu32
         " blocks; virtual time, %g s a block; until the objective is %.2f\n\n",
         shape->workers, shape->examples, shape->features, shape->blocks, PWI_WAIT_BLOCK_S, problem->target);
  printf("     tau   waiting   computing      total   iterations\n");
}

static void print_row(uint64_t tau, const struct pwi_wait_figures *figures) {
  char name[PWI_WAIT_NAME_MAX], bound[40] = "";
  pwi_wait_name(tau, name);
  if (tau == PWI_WAIT_ADAPTIVE) snprintf(bound, sizeof bound, "   the last bound is %" PRIu64, figures->bound);
  printf("%8s  %6.1f %%  %8.1f s %8.1f s   %10" PRIu64 "%s%s\n", name, figures->wait_pct, figures->compute_s,
         figures->total_s, figures->iterations, bound, figures->is_reached ? "" : "   the objective was not reached");
}

/* OSDI'14, figure 10: computing and waiting, worker by worker. */
static void print_workers(const struct pwi_wait_shape *shape, const struct pwi_wait_figures *figures) {
  for (uint32_t i = 0; i < shape->workers; i++)
    printf("          worker %2" PRIu32 ": computing %8.1f s, waiting %8.1f s\n", i, figures->computed_s[i],
           figures->total_s - figures->computed_s[i]);
}

/* --- options -------------------------------------------------------------------------------------------- */

static bool read_taus(const char *text, struct wait_options *options) {
  char part[24];
  options->tau_count = 0;
  while (*text) {
    size_t size = strcspn(text, ",");
    if (size == 0 || size >= sizeof part || options->tau_count == PWI_WAIT_TAUS_MAX) return false;
    memcpy(part, text, size);
    part[size] = '\0';
    uint64_t tau = PWI_WAIT_INFINITE;
    if (strcmp(part, "adaptive") == 0)
      tau = PWI_WAIT_ADAPTIVE;
    else if (strcmp(part, "inf") != 0 && (!pwi_cli_number(part, &tau) || tau > TAU_MAX))
      return false;
    options->taus[options->tau_count++] = tau;
    text += size;
    if (*text == ',' && *++text == '\0') return false;
  }
  return options->tau_count > 0;
}

static bool read_option(void *context, int letter, const char *value) {
  struct wait_options *options = context;
  switch (letter) {
  case LETTER_TAU:
    return read_taus(value, options);
  case LETTER_WORKERS:
    return pwi_bench_count(value, 1, PWI_WAIT_WORKERS_MAX, &options->shape.workers);
  case LETTER_BLOCKS:
    return pwi_bench_count(value, 1, BLOCKS_MAX, &options->shape.blocks);
  case LETTER_SEED:
    return pwi_cli_number(value, &options->shape.seed);
  case LETTER_RATE:
    return pwi_bench_positive(value, 2, &options->shape.rate);
  case LETTER_BY_WORKER:
    options->by_worker = true;
    return true;
  case LETTER_SVG:
    options->svg = value;
    return true;
  default:
    options->json |= letter == PWI_CLI_LETTER_JSON;
    return true;
  }
}

/* --- running -------------------------------------------------------------------------------------------- */

static int measure(const struct pwi_command *command, const struct wait_options *options,
                   const struct pwi_wait_problem *problem) {
  struct pwi_wait_figures figures[PWI_WAIT_TAUS_MAX];
  char why[256];
  if (!options->json) print_head(problem);
  for (size_t i = 0; i < options->tau_count; i++) {
    if (pwi_wait_run(problem, options->taus[i], &figures[i], why, sizeof why))
      return pwi_cli_failure(command, "the run with tau %" PRIu64 " failed: %s", options->taus[i], why);
    if (options->json)
      print_json(command, &problem->shape, options->taus[i], &figures[i]);
    else
      print_row(options->taus[i], &figures[i]);
    if (options->by_worker && !options->json) print_workers(&problem->shape, &figures[i]);
    fflush(stdout);
  }
  if (options->svg && !pwi_wait_draw(options->svg, options->taus, figures, options->tau_count))
    return pwi_cli_failure(command, "'%s' cannot be written", options->svg);
  return PWI_EXIT_OK;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct wait_options options = {.taus = {0, 1, 4, 8, 16, PWI_WAIT_INFINITE, PWI_WAIT_ADAPTIVE}, .tau_count = 7};
  struct pwi_wait_problem *problem;
  int exit_code;
  options.shape = (struct pwi_wait_shape){
      .workers = 4, .blocks = 64, .examples = 8000, .per_example = 30, .l1 = 2, .rate = 0.6, .seed = 1};
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  options.shape.features = options.shape.blocks * BLOCK_FEATURES;
  if (pwi_wait_problem_create(&options.shape, &problem))
    return pwi_cli_failure(command, "not enough memory for the data");
  exit_code = measure(command, &options, problem);
  pwi_wait_problem_destroy(problem);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {LETTER_TAU, "tau", "LIST",
     "delay bounds; inf: unlimited; adaptive: found on the way, up to 16\n(default: 0,1,4,8,16,inf,adaptive)"},
    {LETTER_BY_WORKER, "by-worker", NULL, "print computing and waiting of each worker, too"},
    {LETTER_WORKERS, "workers", "N", "workers (default: 4)"},
    {LETTER_BLOCKS, "blocks", "N", "blocks of 32 features (default: 64)"},
    {LETTER_SEED, "seed", "N", "seed of data and delays (default: 1)"},
    {LETTER_RATE, "rate", "R", "step size, up to 2 (default: 0.6)"},
    {LETTER_SVG, "svg", "FILE", "also draw the figures to this file"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_wait = {
    .name = "wait",
    .summary = "measure how much workers wait under bounded delay",
    .text = "Trains l1-regularised logistic regression by Algorithm 3 of OSDI'14 on generated\n"
            "data, once for each bound tau: up to tau iterations of a worker may be in progress\n"
            "besides the one that it computes. A block takes 4 times longer with probability\n"
            "0.1, and a push takes half a block time. Prints the share of their\n"
            "time that workers waited, and the time until all runs' common objective was\n"
            "reached.\n\n"
            "Roles and numbers are real, network and time are simulated: the same seed gives\n"
            "the same figures on any machine.\n\n"
            "  pawl-bench wait\n"
            "  pawl-bench wait --tau 0,8,inf --json\n"
            "  pawl-bench wait --svg wait.svg\n",
    .options = options,
    .run = run,
};
