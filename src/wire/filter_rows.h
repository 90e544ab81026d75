/* Arithmetic on a row of any type, for the filters. Rows are aligned to their values. Integer sums wrap
 * around. */
#ifndef PWI_WIRE_FILTER_ROWS_H
#define PWI_WIRE_FILTER_ROWS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/vector.h>

static inline bool pwi_type_is_float(enum pawl_type type) { return type == PAWL_F32 || type == PAWL_F64; }

/* One value as a double; exact except for integers beyond 2^53. */
static inline double pwi_row_value(enum pawl_type type, const void *row, size_t at) {
  switch (type) {
  case PAWL_F32:
    return (double)((const float *)row)[at];
  case PAWL_F64:
    return ((const double *)row)[at];
  case PAWL_I32:
    return (double)((const int32_t *)row)[at];
  case PAWL_I64:
    return (double)((const int64_t *)row)[at];
  case PAWL_U64:
    return (double)((const uint64_t *)row)[at];
  }
  return 0;
}

static inline void pwi_row_add(enum pawl_type type, size_t width, void *to, const void *from) {
  switch (type) {
  case PAWL_F32:
    for (size_t i = 0; i < width; i++) ((float *)to)[i] += ((const float *)from)[i];
    break;
  case PAWL_F64:
    for (size_t i = 0; i < width; i++) ((double *)to)[i] += ((const double *)from)[i];
    break;
  case PAWL_I32:
    for (size_t i = 0; i < width; i++) ((uint32_t *)to)[i] += ((const uint32_t *)from)[i];
    break;
  case PAWL_I64:
  case PAWL_U64:
    for (size_t i = 0; i < width; i++) ((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
    break;
  }
}

/* True if every value of the row is at most `limit` in magnitude. False for NaN. */
static inline bool pwi_row_within(enum pawl_type type, size_t width, const void *row, double limit) {
  for (size_t i = 0; i < width; i++)
    if (!(fabs(pwi_row_value(type, row, i)) <= limit)) return false;
  return true;
}

/* True if every value of the row is less than `limit` in magnitude. False for NaN. */
static inline bool pwi_row_below(enum pawl_type type, size_t width, const void *row, double limit) {
  for (size_t i = 0; i < width; i++)
    if (!(fabs(pwi_row_value(type, row, i)) < limit)) return false;
  return true;
}

#endif
