/* The run of `pawl train sparse-coding`. */
#ifndef PWI_CLI_TRAIN_SPARSE_CODING_RUN_H
#define PWI_CLI_TRAIN_SPARSE_CODING_RUN_H

#include "cli/cli.h"

int pwi_train_sparse_run(const struct pwi_command *command, int argc, char **argv);

#endif
