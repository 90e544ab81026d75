/* Which format a file is in, by its first lines; and the columns of tables. Pure. */
#ifndef PWI_DATA_FORMATS_DETECT_H
#define PWI_DATA_FORMATS_DETECT_H

#include <stddef.h>

#include "data/formats/parser.h"

/* Looks at the head of a text, `size` bytes with slack behind them, of which the last line may be cut off.
 * `rule->format` is AUTO or what was asked for. Writes format and table. PAWL_CORRUPT: it is none that is known, or
 * not that one; PAWL_TRUNCATED: there is no row; PAWL_INVALID: no such label. `*why_out`, which is static, says it. */
PAWL_MUST_USE pawl_status pwi_detect(const char *head, size_t size, const char *label, struct pwi_parse_rule *rule,
                                     const char **why_out);

#endif
