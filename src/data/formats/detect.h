/* Detects the format of a file by its first lines, and the column layout of tables. Pure. */
#ifndef PWI_DATA_FORMATS_DETECT_H
#define PWI_DATA_FORMATS_DETECT_H

#include <stddef.h>

#include "data/formats/parser.h"

/* Examines the first `size` bytes of a text, with slack behind them; the last line may be cut off. On
 * entry `rule->format` is AUTO or the requested format. Writes the format and the table layout.
 * PAWL_CORRUPT: the format is unknown, or is not the requested one; PAWL_TRUNCATED: the text has no row;
 * PAWL_INVALID: there is no column called `label`. `*why_out` is a static text that explains the error. */
PAWL_MUST_USE pawl_status pwi_detect(const char *head, size_t size, const char *label, struct pwi_parse_rule *rule,
                                     const char **why_out);

#endif
