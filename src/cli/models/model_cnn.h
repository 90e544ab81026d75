/* `pawl model show` of a convolutional net. */
#ifndef PWI_CLI_MODELS_MODEL_CNN_H
#define PWI_CLI_MODELS_MODEL_CNN_H

#include "cli/cli.h"

/* Returns the exit code. */
int pwi_model_cnn_show(const struct pwi_command *command, const char *path, bool json);

#endif
