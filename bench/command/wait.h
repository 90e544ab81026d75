/* `pawl-bench wait`. What it runs is in cli/osdi/wait.h. */
#ifndef BENCH_COMMAND_WAIT_H
#define BENCH_COMMAND_WAIT_H

#include "cli/cli.h"

extern const struct pwi_command pwi_command_bench_wait;

#endif
