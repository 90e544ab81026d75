/* numpy.lib.format, version 1.0. */
#include "checkpoint/array_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define PREFIX 10 /* magic, version, length of the dictionary */
#define ALIGNMENT 64
#define HEAD_SIZE 192 /* larger than the longest dictionary */

static const char *const descriptions[] = {[PWI_SCALAR_F32] = "<f4",
                                           [PWI_SCALAR_F64] = "<f8",
                                           [PWI_SCALAR_I32] = "<i4",
                                           [PWI_SCALAR_I64] = "<i8",
                                           [PWI_SCALAR_U64] = "<u8"};

static void format_shape(const struct pwi_array *array, char *shape, size_t size) {
  if (array->width > 0)
    snprintf(shape, size, "(%" PRIu64 ", %" PRIu32 ")", array->rows, array->width);
  else
    snprintf(shape, size, "(%" PRIu64 ",)", array->rows);
}

/* The dictionary is padded with spaces and ends with a line break. */
static size_t format_head(const struct pwi_array *array, unsigned char *head) {
  char shape[64], *dictionary = (char *)head + PREFIX;
  format_shape(array, shape, sizeof shape);
  int length = snprintf(dictionary, HEAD_SIZE - PREFIX, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                        descriptions[array->type], shape);
  size_t used = PREFIX + (size_t)length, size = (used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  memset(head + used, ' ', size - 1 - used);
  head[size - 1] = '\n';
  memcpy(head, "\x93NUMPY\x01\x00", 8);
  pwi_put_u16(head + 8, (uint16_t)(size - PREFIX));
  return size;
}

pawl_status pwi_npy_begin(struct pwi_file *file, struct pwi_array *array) {
  unsigned char head[HEAD_SIZE];
  uint64_t bytes;
  pawl_status status = pwi_array_bytes(array, &bytes);
  if (status != PAWL_OK) return status;
  size_t size = format_head(array, head);
  if (bytes > INT64_MAX - size) return PAWL_TOO_LARGE;
  status = pwi_file_write(file, 0, head, size);
  if (status == PAWL_OK) status = pwi_file_truncate(file, size + bytes);
  if (status == PAWL_OK) array->offset = size;
  return status;
}
