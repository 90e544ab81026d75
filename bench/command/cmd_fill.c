/* `pawl-bench fill`: a server joins while workers push. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "bench.h"
#include "fill.h"
#include "kv.h"
#include "cli/machine.h"

enum {
  LETTER_SERVERS = 300,
  LETTER_SHARDS,
  LETTER_WORKERS,
  LETTER_OUTSTANDING,
  LETTER_REPLICAS,
  LETTER_GIGABYTES,
  LETTER_SECONDS,
  LETTER_RATE,
  LETTER_TRANSPORT,
};

#define PROCESSES_MAX 32
#define REPLICAS_MAX 5
#define GIGABYTES_MAX 1000
#define SECONDS_MAX 600
#define MEMORY_LEFT 1.5e9 /* memory left for other processes */

/* --- printing ------------------------------------------------------------------------------------------- */

static void print_json(const struct pwi_fill_options *options, const struct pwi_fill_figures *figures) {
  pwi_cli_print_json(
      options->command,
      json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:o, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o}",
                "bench", "fill", "servers", (int)options->servers, "shards", (int)options->shards, "workers",
                (int)options->workers, "outstanding", (int)options->outstanding, "replicas", (int)options->replicas,
                "transport", options->is_tcp ? "tcp" : "auto", "rate",
                options->rate > 0 ? json_real(options->rate) : json_null(), "gigabytes", options->gigabytes,
                "filled_gb", figures->gigabytes, "seconds", figures->seconds, "gb_per_s",
                pwi_bench_number(figures->gigabytes / figures->seconds), "push_gb_per_s_before",
                pwi_bench_number(figures->before), "push_gb_per_s_during", pwi_bench_number(figures->during),
                "push_ratio", pwi_bench_number(figures->during / figures->before), "longest_pause_ms",
                figures->longest_pause_ms, "heads_moved", pwi_bench_number(figures->heads), "replicas_moved",
                pwi_bench_number(figures->replicas), "machine", pwi_bench_machine_json()));
}

static void print_table(const struct pwi_fill_options *options, const struct pwi_fill_figures *figures) {
  pwi_bench_print_machine();
  printf("a server joins %" PRIu32 ", which hold %g GB with %" PRIu32 " replicas; %" PRIu32 " workers push\n",
         options->servers, options->gigabytes, options->replicas, options->workers);
  printf("  filled                    %.2f GB in %.2f s: %.2f GB/s\n", figures->gigabytes, figures->seconds,
         figures->gigabytes / figures->seconds);
  if (figures->before > 0)
    printf("  pushes before, during     %.2f GB/s, %.2f GB/s: %.2f\n", figures->before, figures->during,
           figures->during / figures->before);
  else
    printf("  pushes before, during     none ended before, %.2f GB/s; increase --seconds\n", figures->during);
  printf("  longest gap               %.0f ms\n", figures->longest_pause_ms);
  printf("  arcs with a new head      %.2f of its share\n", figures->heads);
  if (isfinite(figures->replicas)) printf("  arcs with new replicas    %.2f of its share\n", figures->replicas);
}

/* --- options -------------------------------------------------------------------------------------------- */

static bool read_option(void *context, int letter, const char *value) {
  struct pwi_fill_options *options = context;
  switch (letter) {
  case LETTER_SERVERS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->servers);
  case LETTER_SHARDS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->shards);
  case LETTER_WORKERS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->workers);
  case LETTER_OUTSTANDING:
    return pwi_bench_count(value, 1, PWI_KV_OUTSTANDING, &options->outstanding);
  case LETTER_REPLICAS:
    return pwi_bench_count(value, 0, REPLICAS_MAX, &options->replicas);
  case LETTER_GIGABYTES:
    return pwi_bench_positive(value, GIGABYTES_MAX, &options->gigabytes);
  case LETTER_SECONDS:
    return pwi_bench_positive(value, SECONDS_MAX, &options->seconds);
  case LETTER_RATE:
    return pwi_bench_positive(value, GIGABYTES_MAX, &options->rate);
  case LETTER_TRANSPORT:
    return pwi_bench_transport(value, &options->is_tcp);
  default:
    options->json |= letter == PWI_CLI_LETTER_JSON;
    return true;
  }
}

/* Data that moves exists twice for a while. */
static bool has_memory(const struct pwi_fill_options *options) {
  struct pwi_machine machine;
  double copies = (double)options->replicas + 1, wanted = 2 * options->gigabytes * 1e9 * copies;
  pwi_machine_look(&machine);
  if (wanted + MEMORY_LEFT < (double)machine.memory_available) return true;
  pwi_cli_failure(options->command, "%g GB may need %.1f GB of memory, but only %.1f GB are free", options->gigabytes,
                  wanted / 1e9, (double)machine.memory_available / 1e9);
  return false;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_fill_options options = {
      .command = command, .servers = 2, .shards = 1, .workers = 1, .outstanding = 8, .gigabytes = 3, .seconds = 2};
  struct pwi_fill_figures figures;
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  if (options.replicas >= options.servers)
    return pwi_cli_usage(command, "%" PRIu32 " replicas need more than %" PRIu32 " servers", options.replicas,
                         options.servers);
  if (!has_memory(&options) || !pwi_fill_run(&options, &figures)) return PWI_EXIT_FAILURE;
  (options.json ? print_json : print_table)(&options, &figures);
  return PWI_EXIT_OK;
}

static const struct pwi_cli_option options[] = {
    {LETTER_SERVERS, "servers", "N", "server processes before the join (default: 2)"},
    {LETTER_SHARDS, "shards", "N", "shards per server (default: 1)"},
    {LETTER_REPLICAS, "replicas", "K", "replicas of each key besides the first copy (default: 0)"},
    {LETTER_GIGABYTES, "gigabytes", "G", "GB of values, without replicas (default: 3)"},
    {LETTER_WORKERS, "workers", "N", "worker processes (default: 1)"},
    {LETTER_OUTSTANDING, "outstanding", "N", "concurrent pushes per worker (default: 8)"},
    {LETTER_RATE, "rate", "R", "GB/s of pushes of all workers (default: unlimited)"},
    {LETTER_SECONDS, "seconds", "S", "seconds of the measurement before the join (default: 2)"},
    {LETTER_TRANSPORT, "transport", "KIND", "auto, or tcp: no shared memory (default: auto)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_fill = {
    .name = "fill",
    .summary = "measure how fast a joining server gets its share",
    .text = "Starts a cluster and workers on this machine and fills a vector. While the\n"
            "workers push to all of it, a server joins. Prints how fast it got its share,\n"
            "how much slower pushes were in the meantime, and how much data moved, relative\n"
            "to its fair share.\n\n"
            "  pawl-bench fill\n"
            "  pawl-bench fill --rate 1\n"
            "  pawl-bench fill --replicas 1 --gigabytes 4 --json\n",
    .options = options,
    .run = run,
};
