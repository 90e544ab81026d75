#include "checkpoint/array_file.h"

#include "base/checked.h"

size_t pwi_array_row_bytes(const struct pwi_array *array) {
  return pwi_scalar_size(array->type) * (array->width > 0 ? array->width : 1);
}

pawl_status pwi_array_bytes(const struct pwi_array *array, uint64_t *bytes_out) {
  uint64_t bytes;
  if (!pwi_mul_u64(array->rows, pwi_array_row_bytes(array), &bytes) || bytes > INT64_MAX) return PAWL_TOO_LARGE;
  *bytes_out = bytes;
  return PAWL_OK;
}

pawl_status pwi_array_write(struct pwi_file *file, const struct pwi_array *array, uint64_t row, uint64_t count,
                            const void *values) {
  size_t row_bytes = pwi_array_row_bytes(array), size;
  if (!pwi_span_fits(row, count, array->rows) || !pwi_mul_size(count, row_bytes, &size)) return PAWL_INVALID;
  return pwi_file_write(file, array->offset + row * row_bytes, values, size);
}
