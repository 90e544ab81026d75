/* `pawl-bench busy`: push and pull on a machine whose cores other processes use. */
#ifndef BENCH_COMMAND_BUSY_H
#define BENCH_COMMAND_BUSY_H

#include "cli/cli.h"

extern const struct pwi_command pwi_command_bench_busy;

#endif
