/* `pawl model show` and `pawl model export` of a dictionary. */
#ifndef PWI_CLI_MODELS_MODEL_SPARSE_H
#define PWI_CLI_MODELS_MODEL_SPARSE_H

#include "cli/cli.h"

/* Prints the properties of a model, and the `top` atoms that most rows use. Returns the exit code. */
int pwi_model_sparse_show(const struct pwi_command *command, const char *path, uint64_t top, bool json);

/* Writes the atoms as a picture. Returns the exit code. */
int pwi_model_sparse_export(const struct pwi_command *command, const char *path, const char *output, bool json);

#endif
