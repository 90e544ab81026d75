/* Names of files and folders of a training, and whether they can be used: looked at before anything is started. */
#ifndef PWI_CLI_TRAIN_PATHS_H
#define PWI_CLI_TRAIN_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/data.h>

#include "cli/cli.h"

/* What follows the last slash. */
const char *pwi_train_path_base(const char *path);

/* As somebody in another folder would call it. NULL: no memory, or too long. Freed with pwi_free. */
char *pwi_train_path_absolute(const char *path);
char **pwi_train_paths_absolute(const char *const *paths, size_t count);
void pwi_train_paths_free(char **paths, size_t count); /* NULL is fine */

/* A name in the current folder that goes with data: "x/a9a.svm.gz" and ".model" make "a9a.model". As above. */
char *pwi_train_path_beside(const char *data, const char *suffix);

/* The following are PWI_EXIT_OK, or have said what is wrong.
 * Opens data by the names that were given. The caller closes it. */
int pwi_train_path_data(const struct pwi_command *command, const char *const *paths, size_t count,
                        const struct pawl_data_options *reading, struct pawl_data **data_out);

/* A model can be written there: an hour of work must not end with a folder that is not there. */
int pwi_train_path_output(const struct pwi_command *command, const char *output);

/* The folder is there, or is made. */
int pwi_train_path_folder(const struct pwi_command *command, const char *path);

#endif
