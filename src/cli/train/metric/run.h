/* `pawl train metric`. */
#ifndef PWI_CLI_TRAIN_METRIC_RUN_H
#define PWI_CLI_TRAIN_METRIC_RUN_H

#include "cli/cli.h"

int pwi_train_metric_run(const struct pwi_command *command, int argc, char **argv);

#endif
