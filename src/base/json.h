/* Conversion of untrusted text to JSON strings.
 *
 * JSON requires UTF-8, but paths, host names, labels and lines of files may contain other bytes. The JSON
 * library refuses such text, and then no object can be built. All text from outside therefore passes through
 * this module: bytes that are not UTF-8 become \xHH, four characters; everything else stays unchanged. */
#ifndef PWI_BASE_JSON_H
#define PWI_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Returns the number of bytes of the first character; 0 if the `size` bytes do not begin with a valid UTF-8
 * character. */
size_t pwi_utf8_step(const char *text, size_t size);

/* Returns a new JSON string. NULL if there is no memory or if `text` is NULL. */
json_t *pwi_json_string(const char *text);

/* Returns the converted text, for json_pack with "s", which accepts only UTF-8. Free it with pwi_free. NULL
 * if there is no memory. */
char *pwi_json_text(const char *text);

#endif
