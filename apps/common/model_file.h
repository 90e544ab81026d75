/* Files of models: read as a whole, and written atomically. Also the error texts of all applications. */
#ifndef APPS_COMMON_MODEL_FILE_H
#define APPS_COMMON_MODEL_FILE_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include <pawl/export.h>
#include <pawl/status.h>

#include "apps/common/memory.h"

#define APPS_TEXT_MAX 512 /* bytes of every `error` and `why` */

/* Writes an error text, unless `error` is NULL, and returns the status. */
pawl_status apps_say(char *error, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);

/* Reads a whole file and appends a 0. The caller frees the bytes with apps_free. */
pawl_status apps_file_read(const char *path, char **bytes_out, size_t *size_out, char *error);

/* Lets `fill` write a new file, then renames it to `path`. A path that is not a regular file, such as
 * /dev/null, is written in place. */
pawl_status apps_file_write(const char *path, pawl_status (*fill)(FILE *file, const void *context), const void *context,
                            char *error);

/* Writes a model with apps_file_write, in the C locale. */
pawl_status apps_model_write(const char *path, pawl_status (*fill)(FILE *file, const void *model), const void *model,
                             char *error);

/* Reads a file and decodes it, in the C locale. `decode` gets the bytes, which a 0 follows, and writes an error without
 * the name of the file to `why`. */
pawl_status apps_model_read(const char *path,
                            pawl_status (*decode)(const char *bytes, size_t size, void *model_out, char *why),
                            void *model_out, char *error);

/* Enters the C locale, in which numbers have decimal points, and leaves it again. Both are for this thread only. */
locale_t apps_locale_enter(locale_t *before_out);
void apps_locale_leave(locale_t c, locale_t before);

/* The header of a model as text, with one key per line or all on one line. The caller frees it with free;
 * NULL if it is out of memory. */
char *apps_about_text(const json_t *about, bool lines);

#endif
