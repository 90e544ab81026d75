/* The runs of `pawl train`, one for each kind of model. Each returns the exit code. */
#ifndef PWI_CLI_TRAIN_METHODS_H
#define PWI_CLI_TRAIN_METHODS_H

#include "cli/train/options.h"

int pwi_train_linear_run(const struct pwi_command *command, enum pwi_train_kind kind, int argc, char **argv);
int pwi_train_lda_run(const struct pwi_command *command, int argc, char **argv);
int pwi_train_cnn_run(const struct pwi_command *command, int argc, char **argv);

#endif
