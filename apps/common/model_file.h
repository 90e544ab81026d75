/* Files of models: read whole, and written whole or not at all. And the texts of errors, which all
 * applications write alike. */
#ifndef APPS_COMMON_MODEL_FILE_H
#define APPS_COMMON_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include <pawl/export.h>
#include <pawl/status.h>

#define APPS_TEXT_MAX 512 /* bytes of every `error` and `why` */

/* Writes the sentence, unless `error` is NULL, and returns the status. */
pawl_status apps_say(char *error, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);

/* Reads all bytes of a file and puts a 0 behind them. The caller frees them. */
pawl_status apps_file_read(const char *path, char **bytes_out, size_t *size_out, char *error);

/* Has `fill` write a new file, which then takes the name. What is no regular file, as /dev/null, is written
 * in place. */
pawl_status apps_file_write(const char *path, pawl_status (*fill)(FILE *file, const void *context), const void *context,
                            char *error);

/* The description of a model as text, one key a line or all in one, for the caller to free; NULL without
 * memory. */
char *apps_about_text(const json_t *about, bool lines);

#endif
