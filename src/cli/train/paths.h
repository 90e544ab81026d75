/* Names of files and folders of a run, and checks that they can be used, before the run starts. */
#ifndef PWI_CLI_TRAIN_PATHS_H
#define PWI_CLI_TRAIN_PATHS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <pawl/data.h>

#include "cli/cli.h"
#include "cli/train/base.h"

/* The part of a path after the last slash. */
const char *pwi_train_path_base(const char *path);

/* The absolute path. NULL: out of memory, or too long. Free it with pwi_free. */
char *pwi_train_path_absolute(const char *path);
char **pwi_train_paths_absolute(const char *const *paths, size_t count);
void pwi_train_paths_free(char **paths, size_t count); /* NULL is fine */

/* A name in the current folder derived from data: "x/a9a.svm.gz" and ".model" give "a9a.model". NULL: out of
 * memory. Free it with pwi_free. */
char *pwi_train_path_beside(const char *data, const char *suffix);

/* The following functions return PWI_EXIT_OK, or print an error. Opens data by the given names. The caller
 * closes it. */
int pwi_train_path_data(const struct pwi_command *command, const char *const *paths, size_t count,
                        const struct pawl_data_options *reading, struct pawl_data **data_out);

/* Checks that a model can be written to a path, so that a long run does not end without a model. */
int pwi_train_path_output(const struct pwi_command *command, const char *output);

/* Checks that a log can be written to a path. Changes no file. */
int pwi_train_path_log(const struct pwi_command *command, const char *path);

/* Checks that the files that the run writes are no two names of one file, and replace none that it reads: its data, its graph
 * and `more`, whose entries may be NULL. `checkpoint` NULL: no such file. */
int pwi_train_path_apart(const struct pwi_train_base *base, const char *output, const char *checkpoint,
                         const char *const *more, size_t more_count);

/* Creates a folder if it does not exist. */
int pwi_train_path_folder(const struct pwi_command *command, const char *path);

/* The absolute path of the folder of checkpoints: `given`, or beside the model. It is created; if the run resumes, it must
 * exist. Free *folder_out with pwi_free, in any case. */
int pwi_train_path_checkpoints(const struct pwi_train_base *base, const char *given, const char *output,
                               char **folder_out);

/* --- the files that a run of this process alone writes ------------------------------------------------------------ */

struct pwi_train_names {
  char *output;              /* path of the model */
  char checkpoint[PATH_MAX]; /* the default name */
};

/* Names the files and checks that they can be written. Sets `*checkpoint` to the default name if it is NULL and the run has
 * checkpoints: --resume was given, or `has_checkpoints`. `more` are files that it reads besides data. `names` must outlive the run. Returns PWI_EXIT_OK, or prints an
 * error. Release with pwi_train_names_fini in any case. */
int pwi_train_names_init(struct pwi_train_names *names, const struct pwi_train_base *base, bool has_checkpoints,
                         const char **checkpoint, const char *const *more, size_t more_count);
void pwi_train_names_fini(struct pwi_train_names *names);

#endif
