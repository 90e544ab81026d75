/* Titles of items, such as movies.csv of MovieLens: lines of id and title, separated by commas, a tab or "::". Further
 * columns are ignored, and so is a header, which is a line like any other. */
#ifndef PWI_DATA_TITLES_H
#define PWI_DATA_TITLES_H

#include <stddef.h>

#include "data/fault.h"

/* Finds the titles of `count` ids. titles_out[i] is the title of ids[i], which the caller frees with pwi_free, or NULL if
 * the file has none. PAWL_CORRUPT (a line without a title, or a quote that is not closed), PAWL_NO_MEMORY, and the errors
 * of data/stream.h; then all titles are NULL. */
PAWL_MUST_USE pawl_status pwi_titles_find(const char *path, const char *const *ids, size_t count, char **titles_out,
                                          struct pwi_fault *fault);

#endif
