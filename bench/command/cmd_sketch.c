/* `pawl-bench sketch`: items per second into a sketch. */
#include <stdio.h>

#include "bench.h"
#include "sketch.h"

enum {
  LETTER_SECONDS = 300,
  LETTER_THINGS,
  LETTER_SEED,
  LETTER_DATA,
  LETTER_KILL,
  LETTER_TRANSPORT,
};

#define SECONDS_MAX 600

static bool read_option(void *context, int letter, const char *value) {
  struct pwi_bench_sketch *bench = context;
  switch (letter) {
  case LETTER_SECONDS:
    return pwi_bench_positive(value, SECONDS_MAX, &bench->seconds);
  case LETTER_THINGS:
    return pwi_cli_number(value, &bench->things) && bench->things >= 2 && bench->things <= UINT64_C(1) << 40;
  case LETTER_SEED:
    return pwi_cli_number(value, &bench->seed);
  case LETTER_DATA:
    bench->data = value;
    return true;
  case LETTER_TRANSPORT:
    return pwi_bench_transport(value, &bench->is_tcp);
  default:
    bench->with_kill |= letter == LETTER_KILL;
    bench->json |= letter == PWI_CLI_LETTER_JSON;
    return true;
  }
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_bench_sketch bench = {.command = command, .seconds = 2, .things = 10000000, .seed = 1};
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &bench, &exit_code)) return exit_code;
  if (!bench.json) {
    pwi_bench_print_machine();
    puts("one worker, one server; a Zipf stream, and uniform 64-bit numbers:");
  }
  if (!pwi_bench_sketch_speed(&bench)) return PWI_EXIT_FAILURE;
  if (bench.data && !pwi_bench_sketch_data(&bench)) return PWI_EXIT_FAILURE;
  if (bench.with_kill && !pwi_bench_sketch_kill(&bench)) return PWI_EXIT_FAILURE;
  return PWI_EXIT_OK;
}

static const struct pwi_cli_option options[] = {
    {LETTER_SECONDS, "seconds", "S", "seconds per measurement (default: 2)"},
    {LETTER_THINGS, "things", "N", "distinct items of the Zipf stream (default: 10 million)"},
    {LETTER_SEED, "seed", "N", "seed of both streams (default: 1)"},
    {LETTER_DATA, "data", "FOLDER", "also count real streams, and compare with exact counts"},
    {LETTER_KILL, "kill", NULL, "also kill a server while items are added"},
    {LETTER_TRANSPORT, "transport", "KIND", "auto, or tcp: no shared memory (default: auto)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_sketch = {
    .name = "sketch",
    .summary = "measure how fast a sketch counts",
    .text = "Starts one server process and adds items from this process: a Zipf stream, and\n"
            "distinct 64-bit numbers, which cannot be aggregated on the way. Compares with\n"
            "Redis on this machine, if it is installed, and with one thread that fills the\n"
            "same sketch in memory.\n\n"
            "  pawl-bench sketch\n"
            "  pawl-bench sketch --kill --data stream/ --json\n",
    .options = options,
    .run = run,
};
