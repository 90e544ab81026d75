#include "host/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

void pwi_text_fini(struct pwi_text *text) {
  pwi_free(text->bytes);
  *text = (struct pwi_text){0};
}

void pwi_text_clear(struct pwi_text *text) {
  text->length = 0;
  text->status = PAWL_OK;
  if (text->bytes) text->bytes[0] = '\0';
}

/* Makes room for `more` bytes and the NUL behind them. Lengths stay below PWI_TEXT_MAX, so sums cannot
 * overflow. */
static bool reserve(struct pwi_text *text, size_t more) {
  if (text->status) return false;
  if (more >= PWI_TEXT_MAX - text->length) {
    text->status = PAWL_TOO_LARGE;
    return false;
  }
  if (!PWI_GROW(text->bytes, text->room, text->length + more + 1)) text->status = PAWL_NO_MEMORY;
  return text->status == PAWL_OK;
}

void pwi_text_add_bytes(struct pwi_text *text, const void *bytes, size_t count) {
  if (!reserve(text, count)) return;
  if (count) memcpy(text->bytes + text->length, bytes, count);
  text->length += count;
  text->bytes[text->length] = '\0';
}

void pwi_text_add(struct pwi_text *text, const char *string) { pwi_text_add_bytes(text, string, strlen(string)); }

void pwi_text_print(struct pwi_text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0 && !text->status) text->status = PAWL_INVALID;
  if (length < 0 || !reserve(text, (size_t)length)) return;
  va_start(arguments, format);
  vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
  va_end(arguments);
  text->length += (size_t)length;
}

pawl_status pwi_text_status(const struct pwi_text *text) { return text->status; }

const char *pwi_text_view(const struct pwi_text *text) { return text->bytes ? text->bytes : ""; }
