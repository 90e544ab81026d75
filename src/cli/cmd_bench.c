/* `pawl bench`: tells where to find the benchmarks, which are a separate program that is not installed. */
#include "cli/cli.h"

static int run(const struct pwi_command *command, int argc, char **argv) {
  const char *name = argc > 1 && argv[1][0] != '-' ? argv[1] : "COMMAND";
  return pwi_cli_usage(command,
                       "the benchmarks are a separate program, built from pawl's sources:\n"
                       "  make bench                  builds build/pawl-bench and runs all benchmarks\n"
                       "  build/pawl-bench %-11s  runs one of them",
                       name);
}

const struct pwi_command pwi_command_bench = {
    .name = "bench",
    .summary = "show where to find the benchmarks",
    .text = "The benchmarks are a separate program, pawl-bench. 'make bench' in pawl's\n"
            "sources builds it as build/pawl-bench and runs all benchmarks\n"
            "(docs/pawl-bench.md).\n",
    .run = run,
};
