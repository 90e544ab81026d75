/* Sets of ratings: the functions of <pawl/ratings.h>, with errors explained in a struct pwi_fault. */
#ifndef PWI_DATA_RATINGS_H
#define PWI_DATA_RATINGS_H

#include <pawl/ratings.h>

#include "data/fault.h"
#include "data/id_names.h"

/* The first rating of a file. */
struct pwi_ratings_file {
  char *path;
  uint64_t first;
};

struct pawl_ratings {
  struct pawl_ratings_info info;
  struct pawl_rating *list;
  size_t list_room;
  uint32_t *lines; /* line of each rating in its file */
  size_t lines_room;
  struct pwi_id_names users, items;
  struct pwi_ratings_file *files; /* by ascending first rating */
  size_t file_count;
  char first_bad[1024]; /* as struct pwi_fault */
};

PAWL_MUST_USE pawl_status pwi_ratings_read(const char *const *paths, size_t count,
                                           const struct pawl_ratings_options *options,
                                           struct pawl_ratings **ratings_out, struct pwi_fault *fault);
void pwi_ratings_destroy(struct pawl_ratings *ratings); /* NULL is fine */

const char *pwi_ratings_place(const struct pawl_ratings *ratings, uint64_t n, uint64_t *line_out);

/* Adds the text of one file, which PWI_NUMBER_SLACK bytes follow; for pwi_ratings_read and for the fuzzer. A set of
 * zeros is empty. */
PAWL_MUST_USE pawl_status pwi_ratings_add(struct pawl_ratings *ratings, const struct pawl_ratings_options *options,
                                          const char *path, const char *text, size_t size, struct pwi_fault *fault);

/* Deals with duplicates, after the last file. */
PAWL_MUST_USE pawl_status pwi_ratings_finish(struct pawl_ratings *ratings, const struct pawl_ratings_options *options,
                                             struct pwi_fault *fault);

#endif
