/* A growing text, into which pages, metrics and messages are written.
 *
 * A failure is recorded instead of returned: after it every call does nothing, and the reader of the text
 * checks pwi_text_status once. So the code that writes a page needs no error checks.
 *
 * Threads: a text belongs to one thread at a time. Errors: PAWL_NO_MEMORY; PAWL_TOO_LARGE beyond
 * PWI_TEXT_MAX.
 */
#ifndef PWI_HOST_TEXT_H
#define PWI_HOST_TEXT_H

#include <stddef.h>

#include <pawl/status.h>

#define PWI_TEXT_MAX ((size_t)64 << 20)

/* A struct of zeros is an empty text. Fields are read-only; `bytes` is NULL or ends with a NUL that is not
 * counted. */
struct pwi_text {
  char *bytes;
  size_t length;
  size_t room;
  pawl_status status;
};

void pwi_text_fini(struct pwi_text *text); /* leaves an empty text */

/* Empties the text and clears a failure; keeps the memory. */
void pwi_text_clear(struct pwi_text *text);

void pwi_text_add(struct pwi_text *text, const char *string);
void pwi_text_add_bytes(struct pwi_text *text, const void *bytes, size_t count);
void pwi_text_print(struct pwi_text *text, const char *format, ...) PAWL_PRINTF(2, 3);

/* PAWL_OK if everything that was added is in the text, else the first failure. */
pawl_status pwi_text_status(const struct pwi_text *text);

/* As a string, never NULL; valid until the text changes. */
const char *pwi_text_view(const struct pwi_text *text);

#endif
