/* Reads rows out of text: picks the parser of a file's format (data/formats/parser.h). Pure, but for
 * memory. */
#ifndef PWI_DATA_PARSE_H
#define PWI_DATA_PARSE_H

#include <pawl/data.h>

#include "data/batch.h"
#include "data/formats/parser.h"

/* The name of a format, such as "libsvm"; "" if the number is not that of a format. */
const char *pwi_data_format_name(enum pawl_data_format format);

/* Appends the rows of the lines in `parse` to the batch. PAWL_OK: every line was read. PAWL_CORRUPT: a
 * line cannot be read, and struct pwi_parse says which and why; the batch holds the rows before it.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_parse_rows(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                         struct pwi_batch *batch);

#endif
