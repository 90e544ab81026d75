/* The runs of `pawl train logistic`, `svm` and `linear`. */
#ifndef PWI_CLI_TRAIN_LINEAR_H
#define PWI_CLI_TRAIN_LINEAR_H

#include "cli/train/options.h"

/* The exit code. */
int pwi_train_linear_run(const struct pwi_command *command, enum pwi_train_kind kind, int argc, char **argv);

#endif
