#include "cli/train/keep.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/train/paths.h"

#define RESCUED ".rescued"

struct keep {
  const char *path;
  pwi_train_keep_write *write;
  void *context;
  char kept[PATH_MAX]; /* path of the saved model; "" if not saved yet */
};

/* Does not replace an existing file. */
static bool try_path(struct keep *keep, const char *path) {
  char error[PWI_TRAIN_KEEP_TEXT] = "";
  struct stat about;
  if (lstat(path, &about) == 0) return false;
  if (keep->write(keep->context, path, true, error)) return false;
  snprintf(keep->kept, sizeof keep->kept, "%s", path);
  return true;
}

static bool try_folder(struct keep *keep, const char *folder) {
  char path[PATH_MAX];
  if (!folder || !*folder) return false;
  int size = snprintf(path, sizeof path, "%s/%s-%ld" RESCUED, folder, pwi_train_path_base(keep->path), (long)getpid());
  return size > 0 && (size_t)size < sizeof path && try_path(keep, path);
}

/* The name of the model may be too long to extend, so the last attempt uses a short one. */
static bool try_short(struct keep *keep) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/pawl-%ld" RESCUED, (long)getpid());
  return try_path(keep, path);
}

static bool rescue(struct keep *keep) {
  char path[PATH_MAX];
  int size = snprintf(path, sizeof path, "%s" RESCUED, keep->path);
  if (size > 0 && (size_t)size < sizeof path && try_path(keep, path)) return true;
  return try_folder(keep, ".") || try_folder(keep, getenv("TMPDIR")) || try_folder(keep, "/tmp") ||
         try_folder(keep, getenv("HOME")) || try_short(keep);
}

pawl_status pwi_train_keep(const char *path, pwi_train_keep_write *write, void *context,
                           char error[PWI_TRAIN_KEEP_TEXT]) {
  struct keep keep = {.path = path, .write = write, .context = context};
  char why[PWI_TRAIN_KEEP_TEXT] = "";
  pawl_status status = write(context, path, false, why);
  if (!status) return PAWL_OK;
  if (!*why) snprintf(why, sizeof why, "cannot write %.300s: %s", path, pawl_status_text(status));
  if (rescue(&keep))
    snprintf(error, PWI_TRAIN_KEEP_TEXT, "%.280s; the model was saved to %.190s instead", why, keep.kept);
  else
    snprintf(error, PWI_TRAIN_KEEP_TEXT, "%.400s; the model could not be written anywhere else either", why);
  return status;
}
