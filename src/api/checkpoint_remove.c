/* Removes a checkpoint from a directory of this machine. */
#include <sys/random.h>

#include <pawl/checkpoint.h>

#include "api/error.h"
#include "checkpoint/checkpoint.h"

pawl_status pawl_checkpoint_remove(const char *directory, const char *name) {
  struct pwi_files *files;
  uint64_t number;
  if (!directory || !name) return pwi_error(PAWL_INVALID, "remove: directory or name is NULL");
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
    return pwi_error(PAWL_IO, "remove: the system returned no random number");
  pawl_status status = pwi_files_posix_open_guarded(directory, &files);
  if (status) return pwi_error_status(status, "remove from %s", directory);
  status = pwi_saved_remove(files, name, number);
  pwi_files_posix_close(files);
  if (status == PAWL_EXISTS)
    return pwi_error(status, "%s/%s contains files that do not belong to the checkpoint: nothing was removed",
                     directory, name);
  return status ? pwi_error_status(status, "remove %s/%s", directory, name) : PAWL_OK;
}
