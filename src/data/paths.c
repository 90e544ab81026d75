#include "data/paths.h"

#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

static bool add_path(struct pwi_paths *paths, const char *path) {
  if (!PWI_GROW(paths->items, paths->room, paths->count + 1)) return false;
  char *copy = pwi_copy_string(path);
  if (copy) paths->items[paths->count++] = copy;
  return copy != NULL;
}

void pwi_paths_fini(struct pwi_paths *paths) {
  for (size_t i = 0; i < paths->count; i++) pwi_free(paths->items[i]);
  pwi_free(paths->items);
}

/* Sorts by bytes and not by locale, so that all workers agree. */
static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static pawl_status add_matches(struct pwi_paths *paths, const char *pattern, struct pwi_fault *fault) {
  glob_t found;
  pawl_status status = PAWL_OK;
  int result = glob(pattern, GLOB_NOSORT, NULL, &found);
  if (result == GLOB_NOMATCH)
    status = pwi_fault(fault, PAWL_NOT_FOUND, "%s: no file matches", pattern);
  else if (result)
    status = pwi_fault_plain(fault, result == GLOB_NOSPACE ? PAWL_NO_MEMORY : PAWL_IO, pattern);
  if (!status) {
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_name);
    for (size_t i = 0; i < found.gl_pathc && !status; i++)
      if (!add_path(paths, found.gl_pathv[i])) status = pwi_fault_plain(fault, PAWL_NO_MEMORY, pattern);
  }
  globfree(&found);
  return status;
}

pawl_status pwi_paths_expand(const char *const *given, size_t count, struct pwi_paths *paths, struct pwi_fault *fault) {
  for (size_t i = 0; i < count; i++) {
    pawl_status status = PAWL_OK;
    bool is_pattern = strpbrk(given[i], "*?[") && access(given[i], F_OK) != 0;
    if (is_pattern)
      status = add_matches(paths, given[i], fault);
    else if (!add_path(paths, given[i]))
      status = pwi_fault_plain(fault, PAWL_NO_MEMORY, given[i]);
    if (status) return status;
  }
  return PAWL_OK;
}
