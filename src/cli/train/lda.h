/* The run of `pawl train lda`. */
#ifndef PWI_CLI_TRAIN_LDA_H
#define PWI_CLI_TRAIN_LDA_H

#include "cli/cli.h"

/* The exit code. */
int pwi_train_lda_run(const struct pwi_command *command, int argc, char **argv);

#endif
