#include "base/json.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

/* True if the byte is a continuation byte in [least, most]. The second byte of a character may have narrower
 * limits. */
static bool goes_on(unsigned char byte, unsigned char least, unsigned char most) {
  return byte >= least && byte <= most;
}

/* RFC 3629, section 4: no overlong forms, no surrogates, nothing past U+10FFFF. */
size_t pwi_utf8_step(const char *text, size_t size) {
  const unsigned char *byte = (const unsigned char *)text;
  if (size == 0) return 0;
  if (byte[0] < 0x80) return 1;
  size_t length = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
  unsigned char least = byte[0] == 0xe0 ? 0xa0 : byte[0] == 0xf0 ? 0x90 : 0x80;
  unsigned char most = byte[0] == 0xed ? 0x9f : byte[0] == 0xf4 ? 0x8f : 0xbf;
  if (byte[0] < 0xc2 || byte[0] > 0xf4 || size < length || !goes_on(byte[1], least, most)) return 0;
  for (size_t i = 2; i < length; i++)
    if (!goes_on(byte[i], 0x80, 0xbf)) return 0;
  return length;
}

char *pwi_json_text(const char *text) {
  static const char digits[] = "0123456789abcdef";
  size_t size = strlen(text), room, used = 0;
  if (!pwi_mul_size(size, 4, &room) || !pwi_add_size(room, 1, &room)) return NULL;
  char *copy = pwi_alloc(room);
  for (size_t at = 0, step; copy && at < size; at += step) {
    step = pwi_utf8_step(text + at, size - at);
    if (step > 0) {
      memcpy(copy + used, text + at, step);
      used += step;
      continue;
    }
    unsigned char byte = (unsigned char)text[at];
    const char escaped[4] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    memcpy(copy + used, escaped, sizeof escaped);
    used += sizeof escaped;
    step = 1;
  }
  if (copy) copy[used] = '\0';
  return copy;
}

json_t *pwi_json_string(const char *text) {
  json_t *string = text ? json_string(text) : NULL;
  if (string || !text) return string;
  char *escaped = pwi_json_text(text);
  string = escaped ? json_string(escaped) : NULL;
  pwi_free(escaped);
  return string;
}
