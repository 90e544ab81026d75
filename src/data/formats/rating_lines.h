/* Lines of files of ratings: csv, triples and Matrix Market. Pure.
 *
 * The text must be followed by PWI_NUMBER_SLACK readable bytes.
 */
#ifndef PWI_DATA_FORMATS_RATING_LINES_H
#define PWI_DATA_FORMATS_RATING_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/ratings.h>

#include "data/formats/parser.h"

#define PWI_RATING_NAME_MAX 255 /* bytes of an id */
#define PWI_RATING_FIELDS 3     /* of a line; others are ignored */

/* How the lines of one file are read. */
struct pwi_rating_rule {
  enum pawl_ratings_format format;
  char separator;         /* ',', ';' or '\t'; ' ' for any run of blanks; ':' for "::" */
  bool values_optional;   /* set by the caller */
  bool is_pattern;        /* mtx: the entries have no values */
  uint64_t rows, columns; /* mtx: the highest indices */
  uint64_t entries;       /* mtx: number of entries that the head states */
  size_t head_size;       /* bytes before the first rating */
  uint64_t head_lines;    /* lines in them */
};

/* One rating. Fields point into the line; a double quote inside a quoted field is doubled. */
struct pwi_rating_line {
  struct pwi_field user, item;
  double value;     /* NAN: the line has none */
  char problem[96]; /* after a failure: what is wrong */
};

/* Finds out from the first lines of a file how to read it. `format` is the format that was asked for.
 * PAWL_CORRUPT, PAWL_UNSUPPORTED: `why_out` explains, and rule->head_lines + 1 is the number of the line. */
PAWL_MUST_USE pawl_status pwi_rating_rule_of(const char *text, size_t size, enum pawl_ratings_format format,
                                             struct pwi_rating_rule *rule, const char **why_out);

/* Parses a line without its line break. False: line->problem says what is wrong. */
bool pwi_rating_line_parse(const struct pwi_rating_rule *rule, const char *begin, const char *end,
                           struct pwi_rating_line *line);

/* Splits a line into its first fields. Returns how many there are; -1: a quote is not closed, or text follows it. */
int pwi_rating_fields(char separator, const char *begin, const char *end, struct pwi_field fields[PWI_RATING_FIELDS]);

/* The separator of a line: ':' for "::", a tab, or `otherwise`. */
char pwi_rating_separator(const char *begin, const char *end, char otherwise);

/* The end of the line that begins at `begin`, without its line break; `next_out` is where the next one begins. */
const char *pwi_rating_line_end(const char *begin, const char *end, const char **next_out);

#endif
