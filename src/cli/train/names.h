/* The files that a run of this process alone writes: the model, and the checkpoint beside it. */
#ifndef PWI_CLI_TRAIN_NAMES_H
#define PWI_CLI_TRAIN_NAMES_H

#include <limits.h>
#include <stdbool.h>

#include "cli/train/base.h"

struct pwi_train_names {
  char *output;              /* path of the model */
  char checkpoint[PATH_MAX]; /* the default name */
};

/* Names the files and checks that they can be written. Sets `*checkpoint` to the default name if it is NULL and the run has
 * checkpoints: --resume was given, or `has_checkpoints`. `names` must outlive the run. Returns PWI_EXIT_OK, or prints an
 * error. Release with pwi_train_names_fini in any case. */
int pwi_train_names_init(struct pwi_train_names *names, const struct pwi_train_base *base, bool has_checkpoints,
                         const char **checkpoint);
void pwi_train_names_fini(struct pwi_train_names *names);

#endif
