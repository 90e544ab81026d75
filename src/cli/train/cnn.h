/* The run of `pawl train cnn`. */
#ifndef PWI_CLI_TRAIN_CNN_H
#define PWI_CLI_TRAIN_CNN_H

#include "cli/cli.h"

int pwi_train_cnn_run(const struct pwi_command *command, int argc, char **argv);

#endif
