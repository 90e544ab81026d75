/* The run of `pawl train bpmf`. */
#ifndef PWI_CLI_TRAIN_BPMF_RUN_H
#define PWI_CLI_TRAIN_BPMF_RUN_H

#include "cli/cli.h"

int pwi_train_bpmf_run(const struct pwi_command *command, int argc, char **argv);

#endif
