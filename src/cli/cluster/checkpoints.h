/* Checkpoints as the command line names them: DIR is a directory of checkpoints, DIR/NAME one of them. */
#ifndef PWI_CLI_CLUSTER_CHECKPOINTS_H
#define PWI_CLI_CLUSTER_CHECKPOINTS_H

#include "cli/cli.h"
#include "checkpoint/checkpoint.h"

/* A path, cut at its last slash. */
struct pwi_checkpoint_path {
  char directory[4096]; /* "." if there is no slash */
  char name[256];
};

/* False if it is too long or ends in nothing, as "/" and "" do. Slashes at the end are dropped. */
bool pwi_checkpoint_path(const char *path, struct pwi_checkpoint_path *path_out);

/* Opens a checkpoint with its bases. End it with pwi_checkpoint_close. PWI_EXIT_OK, or it has said why not. */
struct pwi_checkpoint {
  struct pwi_files *files;
  struct pwi_saved saved;
};

int pwi_checkpoint_open(const struct pwi_command *command, const char *path, struct pwi_checkpoint *checkpoint_out);
void pwi_checkpoint_close(struct pwi_checkpoint *checkpoint);

/* Says what is wrong; the exit code. */
int pwi_checkpoint_failure(const struct pwi_command *command, pawl_status status, const struct pwi_problem *problem);

extern const struct pwi_command pwi_command_checkpoint_save;
extern const struct pwi_command pwi_command_checkpoint_load;
extern const struct pwi_command pwi_command_checkpoint_export;

#endif
