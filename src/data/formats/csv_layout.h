/* Tables: csv files and Criteo's log. Parses their head lines and fields. Pure. */
#ifndef PWI_DATA_FORMATS_CSV_LAYOUT_H
#define PWI_DATA_FORMATS_CSV_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "data/formats/parser.h"

#define PWI_CRITEO_COUNTS 13
#define PWI_CRITEO_CATEGORIES 26
#define PWI_CRITEO_COLUMNS (1 + PWI_CRITEO_COUNTS + PWI_CRITEO_CATEGORIES)

/* Whether the line is `[Id,]Label,I1, …`, separated by commas or tabs. */
bool pwi_csv_is_criteo_head(const char *begin, const char *end);

/* Both derive the column layout from the first line of a file. The line starts at `begin`, in the text
 * that starts at `head` and has `size` bytes. A table whose `width` is known may lack one column: the
 * label (data/formats/parser.h). With `has_words` labels may be words, so that a first line without any number
 * is a head line. PAWL_CORRUPT, PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_csv_layout_of_criteo(struct pwi_csv_layout *table, const char *head, const char *begin,
                                                   const char *end, const char **why_out);
PAWL_MUST_USE pawl_status pwi_csv_layout_of_csv(struct pwi_csv_layout *table, const char *head, size_t size,
                                                const char *begin, const char *end, const char *label, bool has_words,
                                                const char **why_out);

/* Parses the field at `*at`, and moves `*at` to the separator behind it or to `line_end`. False: a quote
 * is not closed, or text follows the closing quote. */
bool pwi_csv_field(char separator, const char **at, const char *line_end, struct pwi_field *field_out);

/* Parses a field that is a number and nothing else. If the separator is a semicolon, a comma may be the
 * decimal point. */
bool pwi_csv_number(char separator, struct pwi_field field, double *value_out);

/* The name of a column, counted from 0, in the head line. False: there is no such column. Quotes inside
 * the name are doubled. */
bool pwi_csv_name(const char *begin, const char *end, char separator, size_t column, struct pwi_field *field_out);

#endif
