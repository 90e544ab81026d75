/* `pawl model show` of factorised ratings. */
#ifndef PWI_CLI_MODELS_MODEL_BPMF_H
#define PWI_CLI_MODELS_MODEL_BPMF_H

#include "cli/cli.h"

/* Returns the exit code. */
int pwi_model_bpmf_show(const struct pwi_command *command, const char *path, bool json);

#endif
