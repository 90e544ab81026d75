/* Options shared by the commands that read data: the separator of columns, and the detection of plain
 * text. */
#ifndef PWI_CLI_READING_H
#define PWI_CLI_READING_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/data.h>

#define PWI_SEPARATOR_WANTED "one character, or comma, semicolon, tab, space or bar"

/* Parses a separator: one character, or comma, semicolon, tab, space or bar. Sets the format to csv. */
bool pwi_separator_read(const char *text, struct pawl_data_options *reading);

/* For commands that read documents. Sets reading->format to text if no format was chosen, the files are named
 * .txt or .text, possibly compressed, and they do not look like documents of numbers. With `takes_rows`,
 * files that look like libsvm are not text either. */
void pwi_reading_text(const char *const *paths, size_t count, bool takes_rows, struct pawl_data_options *reading);

#endif
