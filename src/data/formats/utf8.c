#include "data/formats/utf8.h"

#include <stdbool.h>

#include "base/bytes.h"

static bool continues(const unsigned char *byte, const unsigned char *end, size_t count) {
  if ((size_t)(end - byte) < count) return false;
  for (size_t i = 0; i < count; i++)
    if ((byte[i] & 0xc0) != 0x80) return false;
  return true;
}

/* The length of a character whose first byte is 0x80 or more; 0: it is malformed. */
static size_t length_at(const unsigned char *byte, const unsigned char *end) {
  if (byte[0] < 0xc2 || byte[0] > 0xf4) return 0;
  size_t more = byte[0] < 0xe0 ? 1 : byte[0] < 0xf0 ? 2 : 3;
  if (!continues(byte + 1, end, more)) return 0;
  if (byte[0] == 0xe0 && byte[1] < 0xa0) return 0; /* overlong */
  if (byte[0] == 0xed && byte[1] > 0x9f) return 0; /* a surrogate */
  if (byte[0] == 0xf0 && byte[1] < 0x90) return 0;
  if (byte[0] == 0xf4 && byte[1] > 0x8f) return 0; /* beyond U+10FFFF */
  return 1 + more;
}

const char *pwi_utf8_wrong(const char *begin, const char *end) {
  const unsigned char *at = (const unsigned char *)begin, *stop = (const unsigned char *)end;
  while (at < stop) {
    while (stop - at >= 8 && !(pwi_get_u64(at) & UINT64_C(0x8080808080808080))) at += 8;
    while (at < stop && *at < 0x80) at++;
    while (at < stop && *at >= 0x80) {
      size_t length = length_at(at, stop);
      if (length == 0) return (const char *)at;
      at += length;
    }
  }
  return NULL;
}
