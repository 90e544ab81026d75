/* Shared by the targets of model files (apps/common/model_code.h): the input unchanged, and the input as the header of a
 * file whose first line, arrays and checksum are correct. */
#ifndef PWI_FUZZ_MODEL_FUZZ_H
#define PWI_FUZZ_MODEL_FUZZ_H

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include <xxhash.h>

#define MODEL_HEADER_MOST 8192
#define MODEL_LINE 22 /* bytes of the first line */
#define MODEL_CHECKSUM 8

/* Bytes of the largest file with arrays of this size, and the 0 that follows a file in memory. */
#define MODEL_ROOM(arrays) (MODEL_LINE + MODEL_HEADER_MOST + (arrays) + MODEL_CHECKSUM + 1)

/* Calls `decode` for both. `file` has MODEL_ROOM(arrays_size) bytes. */
static inline void fuzz_model(const uint8_t *data, size_t size, const char *arrays, size_t arrays_size, char *file,
                              void (*decode)(const char *bytes, size_t size)) {
  if (size == 0 || size > MODEL_HEADER_MOST) return;
  char *bytes = malloc(size + 1);
  assert(bytes);
  memcpy(bytes, data, size);
  bytes[size] = 0;
  decode(bytes, size);
  free(bytes);

  size_t begin = MODEL_LINE + size, end = begin + arrays_size;
  memset(file, 0, MODEL_ROOM(arrays_size));
  snprintf(file, MODEL_LINE + 1, "pawl-model 1 %08u\n", (unsigned)begin);
  memcpy(file + MODEL_LINE, data, size);
  memcpy(file + begin, arrays, arrays_size);
  pwi_put_u64(file + end, XXH3_64bits(file, end));
  decode(file, end + MODEL_CHECKSUM);
}

#endif
