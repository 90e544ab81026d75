/* Comparison of encoded bytes with the worked examples of docs/wire-format.md. Include it after cmocka. */
#ifndef PWI_WIRE_DOCUMENTED_TESTING_H
#define PWI_WIRE_DOCUMENTED_TESTING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Writes bytes as hexadecimal text, sixteen per line, as in the document. */
static inline void testing_dump(const void *bytes, size_t size, char *text) {
  for (size_t i = 0; i < size; i++) {
    if (i % 16 == 0) text += sprintf(text, "%04zx ", i);
    text += sprintf(text, " %02x", ((const uint8_t *)bytes)[i]);
    if (i % 16 == 15 || i + 1 == size) text += sprintf(text, "\n");
  }
}

/* Asserts that the document contains the example. Skips the test if PAWL_SOURCE is not set. */
static inline void testing_assert_documented(const char *example) {
  const char *source = getenv("PAWL_SOURCE");
  if (!source) skip();
  char path[4096], *text = pwi_alloc(1 << 18);
  assert_non_null(text);
  snprintf(path, sizeof path, "%s/docs/wire-format.md", source);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, (1 << 18) - 1, file)] = 0;
  fclose(file);
  assert_non_null(strstr(text, example));
  pwi_free(text);
}

#endif
