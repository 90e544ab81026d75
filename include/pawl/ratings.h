/* Ratings: triples of a user, an item and a number, read from files into memory.
 *
 * Three formats are known; files may be compressed with gzip, zstd, xz or bzip2:
 *
 *   csv      user,item,rating and further columns, which are ignored; the format of MovieLens. Semicolons separate if
 *            the first line has no comma. Fields may be in double quotes
 *   triples  the same columns separated by a tab, by blanks, or by :: (MovieLens 1M)
 *   mtx      Matrix Market: a coordinate matrix of reals or integers; rows are users, columns are items
 *
 * A first line of csv or triples is a header if its third column is called rating, score, stars or value, or if its
 * first three columns all begin with a letter and have no digit.
 *
 * IDS of users and items are any text of 1 to 255 bytes, such as numbers with gaps. A set numbers both from 0 in the
 * order in which they first appear, and keeps their names. "7" and "07" are two users.
 *
 * BAD LINES: lines with too few fields, an empty or overlong id, or a rating that is no finite number. The first one
 * is an error, unless `skip_bad` allows to skip some; these are counted. Empty lines are ignored.
 *
 * DUPLICATES: a user that rates an item twice is an error, unless the options say which rating counts.
 *
 * SEVERAL FILES form one set, in the order of their paths. A set never changes; any number of threads may use it.
 *
 * ERRORS: pawl_error_text has `file:line: problem`.
 *   PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_IO   a file cannot be read, or a pattern matches nothing
 *   PAWL_CORRUPT                              a bad line, a damaged header, a wrong number of entries
 *   PAWL_TRUNCATED                            a file is empty, or its compressed data ends early
 *   PAWL_EXISTS                               a user rates an item twice
 *   PAWL_UNSUPPORTED                          a Matrix Market file of another kind
 *   PAWL_TOO_LARGE, PAWL_NO_MEMORY            2^32 ratings or more, or they do not fit into memory
 *   PAWL_INVALID                              no path, or an option is invalid
 */
#ifndef PAWL_RATINGS_H
#define PAWL_RATINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_ratings;

enum pawl_ratings_format {
  PAWL_RATINGS_AUTO = 0, /* mtx if a file begins with %%MatrixMarket, csv if its first line has a comma, else triples */
  PAWL_RATINGS_CSV = 1,
  PAWL_RATINGS_TRIPLES = 2,
  PAWL_RATINGS_MTX = 3,
};

/* What happens if a user rates an item more than once. */
enum pawl_ratings_duplicates {
  PAWL_RATINGS_REFUSE = 0,
  PAWL_RATINGS_LAST = 1, /* the last of them counts */
  PAWL_RATINGS_MEAN = 2, /* their mean counts */
  PAWL_RATINGS_ALL = 3,  /* each of them stays in the list, for pairs that are only predicted */
};

struct pawl_ratings_options {
  size_t struct_size; /* set by pawl_ratings_options_init */
  enum pawl_ratings_format format;
  enum pawl_ratings_duplicates duplicates;
  uint64_t skip_bad;    /* number of bad lines to skip in all files; default 0 */
  bool values_optional; /* lines may consist of user and item only; the value is then NAN */
};

PAWL_API void pawl_ratings_options_init_sized(struct pawl_ratings_options *options, size_t struct_size);
static inline void pawl_ratings_options_init(struct pawl_ratings_options *options) {
  pawl_ratings_options_init_sized(options, sizeof *options);
}

/* Reads all ratings of the files. A path may be a pattern (*, ?, [..]), which stands for the matching files in the order
 * of their names. `options` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ratings_read(const char *const *paths, size_t count,
                                                     const struct pawl_ratings_options *options,
                                                     struct pawl_ratings **ratings_out);
PAWL_API void pawl_ratings_destroy(struct pawl_ratings *ratings); /* NULL is allowed */

struct pawl_ratings_info {
  uint64_t count;
  uint32_t users, items;
  uint64_t skipped;    /* bad lines */
  uint64_t duplicates; /* ratings that were replaced by, or merged with, another one */
};

PAWL_API void pawl_ratings_info(const struct pawl_ratings *ratings, struct pawl_ratings_info *info_out);

struct pawl_rating {
  uint32_t user, item; /* from 0 */
  float value;         /* finite; NAN: the line had none */
};

/* All info.count ratings in the order of the files; valid as long as the set. */
PAWL_API const struct pawl_rating *pawl_ratings_list(const struct pawl_ratings *ratings);

/* The ids of a user and of an item, whose numbers are below info.users and info.items; valid as long as the set. */
PAWL_API const char *pawl_ratings_user(const struct pawl_ratings *ratings, uint32_t user);
PAWL_API const char *pawl_ratings_item(const struct pawl_ratings *ratings, uint32_t item);

/* The line of rating number `n`, which is below info.count, and the path of its file; valid as long as the set. */
PAWL_API const char *pawl_ratings_place(const struct pawl_ratings *ratings, uint64_t n, uint64_t *line_out);

/* The first bad line that was skipped, as `file:line: problem`; "" if there was none. Valid as long as the set. */
PAWL_API const char *pawl_ratings_first_bad(const struct pawl_ratings *ratings);

/* Parses "csv", "triples" or "mtx". PAWL_INVALID for any other name. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ratings_format_parse(const char *name, enum pawl_ratings_format *format_out);

#ifdef __cplusplus
}
#endif

#endif
