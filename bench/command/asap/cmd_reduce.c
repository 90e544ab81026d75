/* `pawl-bench reduce`, and the command line that `pawl-bench collective` has, too. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/command/bench.h"
#include "bench/command/mpi_run.h"
#include "speed.h"

enum { LETTER_SIZE = 300, LETTER_PEERS, LETTER_SECONDS, LETTER_ROUNDS };

#define LARGE ((size_t)4 << 20)
#define SMALL 1024

struct speed_options {
  struct pwi_asap_speed speed; /* size or peers 0: not given */
  bool json;
};

static bool read_option(void *context, int letter, const char *value) {
  struct speed_options *options = context;
  switch (letter) {
  case LETTER_SIZE:
    return pwi_bench_size(value, &options->speed.size) && options->speed.size % sizeof(float) == 0;
  case LETTER_PEERS:
    return pwi_bench_count(value, 1, PWI_ASAP_SPEED_PEERS_MAX, &options->speed.peers);
  case LETTER_SECONDS:
    return pwi_bench_positive(value, 60, &options->speed.seconds);
  case LETTER_ROUNDS:
    return pwi_bench_count(value, 1, PWI_ASAP_SPEED_ROUNDS_MAX, &options->speed.rounds);
  default:
    return options->json = true;
  }
}

static double gb_per_s(const struct pwi_asap_speed *speed, double us) { return (double)speed->size / us / 1e3; }

static uint32_t counted(const struct pwi_asap_speed_case *measured, const struct pwi_asap_speed *speed) {
  return strcmp(measured->counted, "members") == 0 ? speed->peers + 1 : speed->peers;
}

static void print_json(const struct pwi_command *command, const struct pwi_asap_speed_case *measured,
                       const struct pwi_asap_speed *speed, const struct pwi_asap_speed_figures *figures) {
  pwi_cli_print_json(
      command,
      json_pack("{s:s, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "bench", command->name, "size",
                (json_int_t)speed->size, measured->counted, (int)counted(measured, speed), "us", figures->reduce_us,
                "memcpy_us", figures->copy_us, "gb_per_s", gb_per_s(speed, figures->reduce_us), "memcpy_gb_per_s",
                gb_per_s(speed, figures->copy_us), "of_memcpy", figures->copy_us / figures->reduce_us, "cpu_us",
                pwi_bench_number(figures->cpu_us), "mpi_us", pwi_bench_number(figures->mpi_us)));
}

static void print_row(const struct pwi_asap_speed_case *measured, const struct pwi_asap_speed *speed,
                      const struct pwi_asap_speed_figures *figures) {
  char mpi[32] = "-", cpu[32] = "-";
  if (!isnan(figures->mpi_us)) snprintf(mpi, sizeof mpi, "%.2f us", figures->mpi_us);
  if (!isnan(figures->cpu_us)) snprintf(cpu, sizeof cpu, "%.2f us", figures->cpu_us);
  printf("%9zu %7" PRIu32 " %12.2f us %10.2f us %9.2fx %9.2f GB/s %14s %14s\n", speed->size, counted(measured, speed),
         figures->reduce_us, figures->copy_us, figures->copy_us / figures->reduce_us,
         gb_per_s(speed, figures->reduce_us), cpu, mpi);
}

static int measure(const struct pwi_command *command, const struct pwi_asap_speed_case *measured,
                   const struct speed_options *options, size_t size, uint32_t peers) {
  struct pwi_asap_speed speed = options->speed;
  struct pwi_asap_speed_figures figures;
  speed.size = size;
  speed.peers = peers;
  if (!measured->run(command, &speed, &figures)) return PWI_EXIT_FAILURE;
  figures.mpi_us = pwi_asap_speed_mpi(&speed);
  if (options->json)
    print_json(command, measured, &speed, &figures);
  else
    print_row(measured, &speed, &figures);
  fflush(stdout);
  return PWI_EXIT_OK;
}

int pwi_asap_speed_command(const struct pwi_command *command, const struct pwi_asap_speed_case *measured, int argc,
                           char **argv) {
  struct speed_options options = {.speed = {.seconds = 0.5, .rounds = 5}};
  int exit_code = PWI_EXIT_OK;
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  if (!options.json) {
    pwi_bench_print_machine();
    printf("     size %7s %12s        memcpy  of memcpy                 processor time  MPI_Allreduce\n",
           measured->counted, measured->what);
  }
  size_t size = options.speed.size;
  uint32_t peers = options.speed.peers;
  if (size > 0 || peers > 0) exit_code = measure(command, measured, &options, size ? size : LARGE, peers ? peers : 1);
  for (size_t i = 0; size == 0 && peers == 0 && i < 2 && !exit_code; i++)
    exit_code = measure(command, measured, &options, measured->usual[i].size, measured->usual[i].peers);
  if (!options.json) pwi_mpi_explain("mpi_allreduce");
  return exit_code;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  static const struct pwi_asap_speed_case reduce = {
      .what = "reduce", .counted = "peers", .usual = {{LARGE, 1}, {SMALL, 4}}, .run = pwi_asap_speed_run};
  return pwi_asap_speed_command(command, &reduce, argc, argv);
}

const struct pwi_cli_option pwi_asap_speed_options[] = {
    {LETTER_SIZE, "size", "S", "bytes of the values, such as 1k or 4m, up to 256m (default: 4m)"},
    {LETTER_PEERS, "peers", "N", "other processes, which are the neighbours of each, up to 63 (default: 1)"},
    {LETTER_SECONDS, "seconds", "S", "seconds per measurement, up to 60 (default: 0.5)"},
    {LETTER_ROUNDS, "rounds", "N",
     "the operation and memcpy take turns N times, up to 15; medians are printed (default: 5)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_reduce = {
    .name = "reduce",
    .summary = "measure one reduce between processes of this machine",
    .text = "Starts processes that average a tensor by notify-ack on the complete graph, one\n"
            "step after the other, and prints the median of the time of a step beside a\n"
            "memcpy of the same bytes in the same run, the processor time of one process for\n"
            "a step, waiting included as far as it spins, and the time of MPI_Allreduce if\n"
            "Open MPI was found when pawl was built. Without --size and --peers it measures\n"
            "4 MB with one neighbour and 1 KB with four.\n\n"
            "  pawl-bench reduce\n"
            "  pawl-bench reduce --size 64k --peers 3 --json\n",
    .options = pwi_asap_speed_options,
    .run = run,
};
