/* `pawl model show` and `pawl model export` of a metric. */
#ifndef PWI_CLI_MODELS_MODEL_METRIC_H
#define PWI_CLI_MODELS_MODEL_METRIC_H

#include "cli/cli.h"

/* Prints the properties of a model. Returns the exit code. */
int pwi_model_metric_show(const struct pwi_command *command, const char *path, bool json);

/* Writes the matrix as text. Returns the exit code. */
int pwi_model_metric_export(const struct pwi_command *command, const char *path, const char *output, bool json);

#endif
