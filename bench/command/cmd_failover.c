/* `pawl-bench failover`: servers are lost while workers push continuously. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "bench.h"
#include "failover.h"
#include "cli/machine.h"

enum {
  LETTER_SERVERS = 300,
  LETTER_SHARDS,
  LETTER_WORKERS,
  LETTER_REPLICAS,
  LETTER_KILLS,
  LETTER_GIGABYTES,
  LETTER_MODE,
  LETTER_SEED,
  LETTER_TRANSPORT,
  LETTER_FOLDER,
};

#define PROCESSES_MAX 64
#define REPLICAS_MAX 15
#define GIGABYTES_MAX 10000
#define MEMORY_LEFT 1.5e9 /* memory left for other processes */

static const char *const modes[] = {"kill", "pause", "cut", "none"};

/* --- printing ------------------------------------------------------------------------------------------- */

static void print_json(const struct pwi_failover_options *options, const struct pwi_failover_figures *figures) {
  const struct pwi_storm_verdict *verdict = &figures->verdict;
  json_t *replicas = options->replicas < 0 ? json_null() : json_integer(options->replicas);
  pwi_cli_print_json(options->command,
                     json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:i, s:f, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, "
                               "s:I, s:I, s:I, s:I, s:I, s:I, "
                               "s:o}",
                               "bench", "failover", "mode", modes[options->mode], "servers", (int)options->servers,
                               "shards", (int)options->shards, "workers", (int)options->workers, "replicas", replicas,
                               "kills", (int)figures->faults, "gigabytes", options->gigabytes, "transport",
                               options->is_tcp || options->mode == PWI_FAILOVER_CUT ? "tcp" : "auto", "seed",
                               (json_int_t)options->seed, "p50_ms", figures->p50_ms, "p99_ms", figures->p99_ms,
                               "max_ms", figures->max_ms, "quiet_ms", figures->quiet_ms, "whole_ms", figures->whole_ms,
                               "pushes_per_s", figures->pushes_per_s, "acked", (json_int_t)verdict->acked, "open",
                               (json_int_t)verdict->open, "unknown", (json_int_t)verdict->unknown, "lost",
                               (json_int_t)verdict->lost, "double", (json_int_t)verdict->doubled, "stale",
                               (json_int_t)verdict->stale, "views", (json_int_t)figures->views, "machine",
                               pwi_bench_machine_json()));
}

static void print_table(const struct pwi_failover_options *options, const struct pwi_failover_figures *figures) {
  const struct pwi_storm_verdict *verdict = &figures->verdict;
  pwi_bench_print_machine();
  printf("%" PRIu32 " faults (%s), %" PRIu32 " servers, %" PRIu32 " workers, seed %" PRIu64 "\n", figures->faults,
         modes[options->mode], options->servers, options->workers, options->seed);
  printf("  longest push gap          p50 %.1f ms, p99 %.1f ms, max %.1f ms\n", figures->p50_ms, figures->p99_ms,
         figures->max_ms);
  printf("  gap without a fault       %.1f ms\n", figures->quiet_ms);
  printf("  complete again after      %.0f ms\n", figures->whole_ms);
  printf("  acknowledged              %" PRIu64 " pushes, %.0f a second\n", verdict->acked, figures->pushes_per_s);
  printf("  lost                      %" PRIu64 "\n  double                    %" PRIu64 "\n", verdict->lost,
         verdict->doubled);
  printf("  view changes              %" PRIu64 "\n", figures->views);
  if (verdict->stale) printf("  read too little           %" PRIu64 " times\n", verdict->stale);
}

/* --- options -------------------------------------------------------------------------------------------- */

static bool read_replicas(const char *text, int *replicas_out) {
  uint32_t value;
  if (!pwi_bench_count(text, 0, REPLICAS_MAX, &value)) return false;
  *replicas_out = (int)value;
  return true;
}

static bool read_gigabytes(const char *text, double *gigabytes_out) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= 0) || value > GIGABYTES_MAX) return false;
  *gigabytes_out = value;
  return true;
}

static bool read_mode(const char *text, enum pwi_failover_mode *mode_out) {
  for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(text, modes[i]) == 0) {
      *mode_out = (enum pwi_failover_mode)i;
      return true;
    }
  return false;
}

static bool read_option(void *context, int letter, const char *value) {
  struct pwi_failover_options *options = context;
  switch (letter) {
  case LETTER_SERVERS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->servers);
  case LETTER_SHARDS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->shards);
  case LETTER_WORKERS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->workers);
  case LETTER_KILLS:
    return pwi_bench_count(value, 1, PWI_FAILOVER_KILLS_MAX, &options->kills);
  case LETTER_REPLICAS:
    return read_replicas(value, &options->replicas);
  case LETTER_GIGABYTES:
    return read_gigabytes(value, &options->gigabytes);
  case LETTER_MODE:
    return read_mode(value, &options->mode);
  case LETTER_SEED:
    return pwi_cli_number(value, &options->seed) && options->seed <= INT64_MAX;
  case LETTER_TRANSPORT:
    return pwi_bench_transport(value, &options->is_tcp);
  case LETTER_FOLDER:
    options->folder = value;
    return true;
  default:
    options->json |= letter == PWI_CLI_LETTER_JSON;
    return true;
  }
}

/* A machine that swaps or kills processes would distort the measurement. */
static bool has_memory(const struct pwi_failover_options *options) {
  struct pwi_machine machine;
  /* a server may leave while another is filled */
  double wanted = options->gigabytes * 1e9 * (options->servers + 1);
  pwi_machine_look(&machine);
  if (options->gigabytes <= 0 || wanted + MEMORY_LEFT < (double)machine.memory_available) return true;
  pwi_cli_failure(options->command, "%g GB in each of %" PRIu32 " servers need %.1f GB, but only %.1f GB are free",
                  options->gigabytes, options->servers, wanted / 1e9, (double)machine.memory_available / 1e9);
  return false;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  static struct pwi_failover_figures figures;
  struct pwi_failover_options options = {
      .command = command, .servers = 4, .shards = 1, .workers = 4, .kills = 20, .replicas = PWI_STORM_NO_REPLICAS};
  int exit_code;
  options.seed = (uint64_t)time(NULL);
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  if (options.replicas >= 0 && (uint32_t)options.replicas >= options.servers)
    return pwi_cli_usage(command, "%d replicas need more than %" PRIu32 " servers", options.replicas, options.servers);
  if (!has_memory(&options)) return PWI_EXIT_FAILURE;
  if (!pwi_log_wants(PAWL_LOG_INFO)) pwi_cli_log_mute(true); /* links are lost all the time */
  pwi_failover_progress("seed %" PRIu64, options.seed);
  bool good = pwi_failover_run(&options, &figures);
  if (figures.faults > 0) (options.json ? print_json : print_table)(&options, &figures);
  bool is_false_alarm = options.mode == PWI_FAILOVER_NONE && figures.views > 0;
  if (is_false_alarm)
    pwi_cli_failure(command, "the view changed %" PRIu64 " times although no server was lost", figures.views);
  return good && !is_false_alarm && pwi_storm_is_clean(&figures.verdict) ? PWI_EXIT_OK : PWI_EXIT_FAILURE;
}

static const struct pwi_cli_option options[] = {
    {LETTER_SERVERS, "servers", "N", "server processes (default: 4)"},
    {LETTER_SHARDS, "shards", "N", "shards per server (default: 1)"},
    {LETTER_WORKERS, "workers", "N", "worker processes (default: 4)"},
    {LETTER_REPLICAS, "replicas", "K", "replicas of each arc besides its head (default: the manager's)"},
    {LETTER_KILLS, "kills", "N", "number of faults, one after another (default: 20)"},
    {LETTER_MODE, "mode", "MODE",
     "kill: kill -9 and a replacement; pause: SIGSTOP for\n"
     "2 s; cut: no network for 2 s, which needs root; none:\n"
     "nothing for 1 s, to count false alarms (default: kill)"},
    {LETTER_GIGABYTES, "gigabytes", "G", "GB held by each server, replicas included (default: 0)"},
    {LETTER_SEED, "seed", "N", "seed for the choice of servers and times (default: the time)"},
    {LETTER_TRANSPORT, "transport", "KIND", "auto, or tcp: no shared memory (default: auto)"},
    {LETTER_FOLDER, "keep", "FOLDER", "keep journals and logs in this folder (default: none)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_failover = {
    .name = "failover",
    .summary = "measure how long pushes pause when servers are lost",
    .text = "Starts a cluster and workers on this machine. While the workers push\n"
            "continuously, one server after another is lost; the cluster is complete again\n"
            "before the next fault. Prints the longest gap in any worker's pushes around\n"
            "each fault, and how many acknowledged pushes were lost or applied twice.\n"
            "Exits with 1 if any was, or if the view changed although nothing happened\n"
            "(--mode none).\n\n"
            "  pawl-bench failover --replicas 1\n"
            "  tools/loaded pawl-bench failover --replicas 1 --mode none --kills 300\n"
            "  pawl-bench failover --replicas 1 --gigabytes 4 --mode pause --json\n",
    .options = options,
    .run = run,
};
