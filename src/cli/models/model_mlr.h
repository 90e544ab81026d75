/* `pawl model show` and `pawl model export` of a multiclass model. */
#ifndef PWI_CLI_MODELS_MODEL_MLR_H
#define PWI_CLI_MODELS_MODEL_MLR_H

#include "cli/cli.h"

/* Prints the properties of a model, and the `top` largest weights of each class. Returns the exit code. */
int pwi_model_mlr_show(const struct pwi_command *command, const char *path, uint64_t top, bool json);

/* Writes a model in LIBLINEAR's format. Returns the exit code. */
int pwi_model_mlr_export(const struct pwi_command *command, const char *path, const char *output, bool json);

#endif
