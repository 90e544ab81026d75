/* `pawl bench checkpoint`. */
#ifndef BENCH_COMMAND_CHECKPOINT_H
#define BENCH_COMMAND_CHECKPOINT_H

#include "cli/cli.h"

extern const struct pwi_command pwi_command_bench_checkpoint;

#endif
