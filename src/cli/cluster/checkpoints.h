/* Checkpoints on the command line: DIR is a directory of checkpoints, DIR/NAME is one of them. */
#ifndef PWI_CLI_CLUSTER_CHECKPOINTS_H
#define PWI_CLI_CLUSTER_CHECKPOINTS_H

#include "cli/cli.h"
#include "checkpoint/checkpoint.h"

/* A path, cut at its last slash. */
struct pwi_checkpoint_path {
  char directory[4096]; /* "." if there is no slash */
  char name[256];
};

/* Splits a path. Returns false if it is too long or has no last component, as "/" and "". Trailing slashes
 * are dropped. */
bool pwi_checkpoint_path(const char *path, struct pwi_checkpoint_path *path_out);

/* Opens a checkpoint with its bases. Release it with pwi_checkpoint_close. Returns PWI_EXIT_OK, or prints an
 * error. */
struct pwi_checkpoint {
  struct pwi_files *files;
  struct pwi_saved saved;
};

int pwi_checkpoint_open(const struct pwi_command *command, const char *path, struct pwi_checkpoint *checkpoint_out);
void pwi_checkpoint_close(struct pwi_checkpoint *checkpoint);

/* Prints an error. Returns the exit code. */
int pwi_checkpoint_failure(const struct pwi_command *command, pawl_status status, const struct pwi_problem *problem);

extern const struct pwi_command pwi_command_checkpoint_save;
extern const struct pwi_command pwi_command_checkpoint_load;
extern const struct pwi_command pwi_command_checkpoint_export;

#endif
