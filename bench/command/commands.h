/* pawl-bench: the list of benchmarks. Each is a command that reads its own options. */
#ifndef BENCH_COMMAND_COMMANDS_H
#define BENCH_COMMAND_COMMANDS_H

#include "cli/cli.h"

extern const struct pwi_command pwi_bench_root;

#endif
