/* The files that a user has named: a path may be a pattern (*, ?, [..]). */
#ifndef PWI_DATA_PATHS_H
#define PWI_DATA_PATHS_H

#include <stddef.h>

#include <pawl/export.h>
#include <pawl/status.h>

#include "data/fault.h"

/* All zero at first. */
struct pwi_paths {
  char **items; /* NULL: a caller has taken the item */
  size_t count, room;
};

/* Replaces each pattern by the matching files, sorted by name. A path that exists is no pattern. Call fini
 * also after a failure. PAWL_NOT_FOUND (a pattern matches nothing), PAWL_IO, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_paths_expand(const char *const *given, size_t count, struct pwi_paths *paths,
                                           struct pwi_fault *fault);
void pwi_paths_fini(struct pwi_paths *paths);

#endif
