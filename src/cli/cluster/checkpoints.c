#include "cli/cluster/checkpoints.h"

#include <stdio.h>
#include <string.h>

bool pwi_checkpoint_path(const char *path, struct pwi_checkpoint_path *path_out) {
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') end--;
  size_t begin = end;
  while (begin > 0 && path[begin - 1] != '/') begin--;
  size_t length = begin;
  while (length > 1 && path[length - 1] == '/') length--;
  if (end == begin || end - begin >= sizeof path_out->name || length >= sizeof path_out->directory) return false;
  snprintf(path_out->name, sizeof path_out->name, "%.*s", (int)(end - begin), path + begin);
  snprintf(path_out->directory, sizeof path_out->directory, "%.*s", length > 0 ? (int)length : 1,
           length > 0 ? path : ".");
  return true;
}

int pwi_checkpoint_failure(const struct pwi_command *command, pawl_status status, const struct pwi_problem *problem) {
  if (problem->text[0] == '\0') return pwi_cli_failure(command, "%s", pawl_status_text(status));
  return pwi_cli_failure(command, "%s", problem->text);
}

int pwi_checkpoint_open(const struct pwi_command *command, const char *path, struct pwi_checkpoint *checkpoint_out) {
  struct pwi_checkpoint_path parts;
  struct pwi_problem problem;
  struct pwi_checkpoint checkpoint;
  if (!pwi_checkpoint_path(path, &parts))
    return pwi_cli_usage(command, "'%s' is not a checkpoint; expected DIR/NAME", path);
  pawl_status status = pwi_files_posix_open(parts.directory, &checkpoint.files);
  if (status != PAWL_OK) return pwi_cli_failure(command, "%s: %s", parts.directory, pawl_status_text(status));
  status = pwi_saved_open(checkpoint.files, parts.name, &checkpoint.saved, &problem);
  if (status != PAWL_OK) {
    pwi_files_posix_close(checkpoint.files);
    return pwi_checkpoint_failure(command, status, &problem);
  }
  *checkpoint_out = checkpoint;
  return PWI_EXIT_OK;
}

void pwi_checkpoint_close(struct pwi_checkpoint *checkpoint) {
  pwi_saved_close(&checkpoint->saved);
  pwi_files_posix_close(checkpoint->files);
}
