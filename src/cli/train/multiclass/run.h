/* The run of `pawl train multiclass`. */
#ifndef PWI_CLI_TRAIN_MULTICLASS_RUN_H
#define PWI_CLI_TRAIN_MULTICLASS_RUN_H

#include "cli/cli.h"

int pwi_train_multiclass_run(const struct pwi_command *command, int argc, char **argv);

#endif
