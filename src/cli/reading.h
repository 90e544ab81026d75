/* What commands that read data share: the separator of columns, and files of plain text. */
#ifndef PWI_CLI_READING_H
#define PWI_CLI_READING_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/data.h>

#define PWI_SEPARATOR_WANTED "one character, or comma, semicolon, tab, space or bar"

/* One character, or its name: comma, semicolon, tab, space, bar. Data with a separator is csv. */
bool pwi_separator_read(const char *text, struct pawl_data_options *reading);

/* For commands that read documents: files that are called .txt (or .text, or so and packed) and look like no documents of numbers are plain
 * text, unless a format was asked for. `takes_rows`: what looks like libsvm is not text either. Sets reading->format. */
void pwi_reading_text(const char *const *paths, size_t count, bool takes_rows, struct pawl_data_options *reading);

#endif
