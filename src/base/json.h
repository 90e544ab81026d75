/* Texts from outside on their way into JSON.
 *
 * JSON is Unicode, and paths, host names, labels and lines of files need not be: a library for JSON refuses a text that is not
 * UTF-8, and then there is no object at all. So whatever somebody else may have written goes through here first: bytes that are
 * not UTF-8 become \xHH, four characters, and everything else stays as it is. */
#ifndef PWI_BASE_JSON_H
#define PWI_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Bytes of the first character; 0 if the text, which has `size` bytes, does not begin with one that is UTF-8. */
size_t pwi_utf8_step(const char *text, size_t size);

/* A new string, never invalid; NULL only if there is no memory, or for NULL. */
json_t *pwi_json_string(const char *text);

/* The same for text that is put into an object with json_pack ("s" takes no others): free with pwi_free. NULL if there is no
 * memory. */
char *pwi_json_text(const char *text);

#endif
