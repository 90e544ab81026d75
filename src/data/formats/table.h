/* Tables: csv, and criteo's log. Their head lines, and fields. Pure. */
#ifndef PWI_DATA_FORMATS_TABLE_H
#define PWI_DATA_FORMATS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "data/formats/parser.h"

#define PWI_CRITEO_COUNTS 13
#define PWI_CRITEO_CATEGORIES 26
#define PWI_CRITEO_COLUMNS (1 + PWI_CRITEO_COUNTS + PWI_CRITEO_CATEGORIES)

/* `[Id,]Label,I1, …`, by commas or tabs. */
bool pwi_csv_is_criteo_head(const char *begin, const char *end);

/* Both find out about columns by the first line of a file, which lies at `begin` in the text that begins at `head` and has `size`
 * bytes. A table whose `width` is known may have one column less: the label's (data/parse.h).
 * PAWL_CORRUPT, PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_table_layout_of_criteo(struct pwi_table_layout *table, const char *head,
                                                     const char *begin, const char *end, const char **why_out);
PAWL_MUST_USE pawl_status pwi_table_layout_of_csv(struct pwi_table_layout *table, const char *head, size_t size,
                                                  const char *begin, const char *end, const char *label,
                                                  const char **why_out);

/* The field at `*at`, which is moved to the separator behind it or to `line_end`. False: a quote is not closed, or
 * something follows it. */
bool pwi_csv_field(char separator, const char **at, const char *line_end, struct pwi_field *field_out);

/* A field that is a number and nothing else. Where semicolons stand between columns, a comma may stand for the decimal point. */
bool pwi_csv_number(char separator, struct pwi_field field, double *value_out);

/* The name of a column, counted from 0, in the head line. False: there is none. Quotes inside are doubled. */
bool pwi_csv_name(const char *begin, const char *end, char separator, size_t column, struct pwi_field *field_out);

#endif
