/* Finds the `pawl` command from a library that may be installed, part of a package of another language, or
 * linked into the running program. */
#include "host/children.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "pawl"

static bool is_program(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

static bool try_folder(const char *folder, size_t length, const char *below, char found[PATH_MAX]) {
  int written = snprintf(found, PATH_MAX, "%.*s/%s" NAME, (int)length, folder, below);
  return written > 0 && written < PATH_MAX && is_program(found);
}

/* Tries the folder of the file, the bin/ beside that folder, and the bin/ one level up, for libraries in
 * lib/<architecture>/. */
static bool try_beside(const char *file, char found[PATH_MAX]) {
  static const char *const places[] = {"", "../bin/", "../../bin/"};
  char real[PATH_MAX];
  if (!realpath(file, real)) return false;
  size_t length = (size_t)(strrchr(real, '/') - real);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (try_folder(real, length, places[i], found)) return true;
  return false;
}

static bool try_library(char found[PATH_MAX]) {
  static const char here;
  Dl_info info;
  return dladdr(&here, &info) != 0 && info.dli_fname && try_beside(info.dli_fname, found);
}

/* Relative folders, which depend on the working directory, are skipped. */
static bool try_path(char found[PATH_MAX]) {
  const char *folder = secure_getenv("PATH");
  while (folder && *folder) {
    size_t length = strcspn(folder, ":");
    if (*folder == '/' && length < PATH_MAX && try_folder(folder, length, "", found)) return true;
    folder += length;
    if (*folder == ':') folder++;
  }
  return false;
}

pawl_status pwi_child_command(char *path_out, size_t size) {
  char found[PATH_MAX];
  const char *path = secure_getenv("PAWL_COMMAND");
  if (path && *path) {
    if (!is_program(path)) return PAWL_NOT_FOUND;
  } else {
    if (!try_library(found) && !try_beside("/proc/self/exe", found) && !try_path(found)) return PAWL_NOT_FOUND;
    path = found;
  }
  size_t length = strlen(path);
  if (length >= size) return PAWL_TOO_LARGE;
  memcpy(path_out, path, length + 1);
  return PAWL_OK;
}
