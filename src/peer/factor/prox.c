/* Proximal operators that change each value, or each column, by itself. */
#include "peer/factor/prox.h"

#include <math.h>

#include "base/checked.h"
#include "base/memory.h"

pawl_status pwi_factor_prox_memory(enum pawl_factor_prox kind, size_t rows, size_t columns, double **memory_out) {
  size_t count = columns;
  *memory_out = NULL;
  if (kind != PAWL_FACTOR_UNIT_COLUMNS && kind != PAWL_FACTOR_TRACE_NORM) return PAWL_OK;
  if (kind == PAWL_FACTOR_TRACE_NORM && !pwi_factor_trace_memory(rows, columns, &count)) return PAWL_TOO_LARGE;
  *memory_out = pwi_alloc_zero(count, sizeof **memory_out);
  return *memory_out ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Towards 0 by `by`, but not beyond it; then times `times`. */
#define PWI_FACTOR_SHRINK(type, name)                                                                                  \
  static void name(type *values, size_t count, type by, type times) {                                                  \
    for (size_t i = 0; i < count; i++) {                                                                               \
      type value = values[i], rest = value > by ? value - by : value < -by ? value + by : 0;                           \
      values[i] = value != value ? value : rest * times;                                                               \
    }                                                                                                                  \
  }
PWI_FACTOR_SHRINK(float, shrink_f32)
PWI_FACTOR_SHRINK(double, shrink_f64)

#define PWI_FACTOR_POSITIVE(type, name)                                                                                \
  static void name(type *values, size_t count) {                                                                       \
    for (size_t i = 0; i < count; i++)                                                                                 \
      if (values[i] < 0) values[i] = 0;                                                                                \
  }
PWI_FACTOR_POSITIVE(float, positive_f32)
PWI_FACTOR_POSITIVE(double, positive_f64)

/* Columns whose norm is above 1 are divided by it. Squares are added row by row. */
#define PWI_FACTOR_UNIT(type, name)                                                                                    \
  static void name(type *values, size_t rows, size_t columns, double *norms) {                                         \
    for (size_t j = 0; j < columns; j++) norms[j] = 0;                                                                 \
    for (size_t i = 0; i < rows; i++)                                                                                  \
      for (size_t j = 0; j < columns; j++)                                                                             \
        norms[j] += (double)values[i * columns + j] * (double)values[i * columns + j];                                 \
    for (size_t j = 0; j < columns; j++) norms[j] = norms[j] > 1 ? sqrt(norms[j]) : 1;                                 \
    for (size_t i = 0; i < rows; i++)                                                                                  \
      for (size_t j = 0; j < columns; j++)                                                                             \
        if (norms[j] > 1) values[i * columns + j] = (type)((double)values[i * columns + j] / norms[j]);                \
  }
PWI_FACTOR_UNIT(float, unit_f32)
PWI_FACTOR_UNIT(double, unit_f64)

static void shrink(void *matrix, size_t count, bool is_double, double by, double times) {
  if (is_double)
    shrink_f64(matrix, count, by, times);
  else
    shrink_f32(matrix, count, (float)by, (float)times);
}

pawl_status pwi_factor_prox(const struct factor_prox *prox, size_t rows, size_t columns, bool is_double, double step,
                            double *memory, void *matrix) {
  size_t count = rows * columns;
  switch (prox->kind) {
  case PAWL_FACTOR_L1:
    shrink(matrix, count, is_double, step * prox->weight, 1);
    break;
  case PAWL_FACTOR_L2:
    shrink(matrix, count, is_double, 0, 1 / (1 + step * prox->weight));
    break;
  case PAWL_FACTOR_ELASTIC_NET:
    shrink(matrix, count, is_double, step * prox->weight, 1 / (1 + step * prox->weight2));
    break;
  case PAWL_FACTOR_NONNEGATIVE:
    if (is_double)
      positive_f64(matrix, count);
    else
      positive_f32(matrix, count);
    break;
  case PAWL_FACTOR_UNIT_COLUMNS:
    if (is_double)
      unit_f64(matrix, rows, columns, memory);
    else
      unit_f32(matrix, rows, columns, memory);
    break;
  case PAWL_FACTOR_TRACE_NORM:
    return pwi_factor_trace(rows, columns, is_double, step * prox->weight, memory, matrix);
  case PAWL_FACTOR_CALL:
    return prox->call(prox->context, matrix, rows, columns, step);
  default:
    break;
  }
  return PAWL_OK;
}
