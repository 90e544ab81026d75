/* `pawl bench checkpoint`. */
#ifndef PWI_CLI_BENCH_CHECKPOINT_H
#define PWI_CLI_BENCH_CHECKPOINT_H

#include "cli/cli.h"

extern const struct pwi_command pwi_command_bench_checkpoint;

#endif
