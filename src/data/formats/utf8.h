/* Validates, decodes and encodes UTF-8. Pure. */
#ifndef PWI_DATA_FORMATS_UTF8_H
#define PWI_DATA_FORMATS_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The first byte of [begin, end) that is not part of well-formed UTF-8 (Unicode, table 3-7: no surrogates,
 * no overlong forms, nothing beyond U+10FFFF); NULL if all of it is well-formed. */
const char *pwi_utf8_wrong(const char *begin, const char *end);

/* Decodes the well-formed character at `at`. Returns its length in bytes. */
static inline size_t pwi_utf8_get(const char *at, uint32_t *character_out) {
  const unsigned char *byte = (const unsigned char *)at;
  if (byte[0] < 0x80) return *character_out = byte[0], 1;
  if (byte[0] < 0xe0) return *character_out = (byte[0] & 0x1fu) << 6 | (byte[1] & 0x3fu), 2;
  if (byte[0] < 0xf0) return *character_out = (byte[0] & 0xfu) << 12 | (byte[1] & 0x3fu) << 6 | (byte[2] & 0x3fu), 3;
  *character_out = (byte[0] & 7u) << 18 | (byte[1] & 0x3fu) << 12 | (byte[2] & 0x3fu) << 6 | (byte[3] & 0x3fu);
  return 4;
}

/* Encodes a character. Returns its length, 1 to 4 bytes. */
static inline size_t pwi_utf8_put(uint32_t character, char *to) {
  if (character < 0x80) return to[0] = (char)character, 1;
  size_t size = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = size - 1; i > 0; i--, character >>= 6) to[i] = (char)(0x80 | (character & 0x3f));
  to[0] = (char)(marks[size] | character);
  return size;
}

#endif
