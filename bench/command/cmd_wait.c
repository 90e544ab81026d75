/* `pawl-bench wait`: bounded delay, from none to unlimited. `pawl sim osdi --figure 13` runs the same. */
#include "bench.h"
#include "cli/osdi/osdi.h"
#include "wait.h"

enum { LETTER_TAU = 300, LETTER_WORKERS, LETTER_BLOCKS, LETTER_SEED, LETTER_RATE, LETTER_SVG, LETTER_BY_WORKER };

static bool read_option(void *context, int letter, const char *value) {
  struct pwi_osdi_options *options = context;
  switch (letter) {
  case LETTER_TAU:
    return pwi_osdi_read_taus(value, options);
  case LETTER_WORKERS:
    return pwi_bench_count(value, 1, PWI_WAIT_WORKERS_MAX, &options->shape.workers);
  case LETTER_BLOCKS:
    return pwi_bench_count(value, 1, PWI_WAIT_BLOCKS_MAX, &options->shape.blocks);
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

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_osdi_options options = {.program = "bench", .name = "wait", .figure = PWI_OSDI_13};
  int exit_code;
  pwi_osdi_wait_defaults(&options);
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  return pwi_osdi_delays(command, &options);
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
