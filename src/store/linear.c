#include "store/linear.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 8
#define WHOLE_MAX 9007199254740992.0 /* 2^53: doubles represent all integers up to it */

bool pwi_linear_takes(enum pwi_linear kind, enum pwi_scalar type, double scalar) {
  if (type == PWI_SCALAR_F32 || type == PWI_SCALAR_F64 || !pwi_linear_has_scalar(kind)) return true;
  if (!(scalar >= -WHOLE_MAX && scalar <= WHOLE_MAX) || scalar != floor(scalar)) return false;
  if (kind != PWI_LINEAR_FILL) return true;
  if (type == PWI_SCALAR_I32) return scalar >= INT32_MIN && scalar <= INT32_MAX;
  return type != PWI_SCALAR_U64 || scalar >= 0;
}

/* --- changing ------------------------------------------------------------------------------------------- */

/* Integers are computed as unsigned, where wrapping around is defined. */
#define CHANGE(name, type)                                                                                             \
  static void change_##name(enum pwi_linear kind, type a, const type *x, type *y, size_t count) {                      \
    if (kind == PWI_LINEAR_FILL)                                                                                       \
      for (size_t i = 0; i < count; i++) y[i] = a;                                                                     \
    else if (kind == PWI_LINEAR_SCALE)                                                                                 \
      for (size_t i = 0; i < count; i++) y[i] = a * y[i];                                                              \
    else                                                                                                               \
      for (size_t i = 0; i < count; i++) y[i] = y[i] + a * x[i];                                                       \
  }

CHANGE(f32, float)
CHANGE(f64, double)
CHANGE(u32, uint32_t)
CHANGE(u64, uint64_t)

void pwi_linear_change(enum pwi_linear kind, enum pwi_scalar type, double scalar, const void *x, void *y,
                       size_t count) {
  assert(pwi_linear_takes(kind, type, scalar) && !pwi_linear_runs(kind));
  if (kind == PWI_LINEAR_COPY) {
    if (x != y) memcpy(y, x, count * pwi_scalar_size(type));
    return;
  }
  switch (type) {
  case PWI_SCALAR_F32:
    change_f32(kind, (float)scalar, x, y, count);
    break;
  case PWI_SCALAR_F64:
    change_f64(kind, scalar, x, y, count);
    break;
  case PWI_SCALAR_I32:
    change_u32(kind, (uint32_t)(int64_t)scalar, x, y, count);
    break;
  case PWI_SCALAR_I64:
  case PWI_SCALAR_U64:
    change_u64(kind, (uint64_t)(int64_t)scalar, x, y, count);
    break;
  }
}

/* --- sums ----------------------------------------------------------------------------------------------- */

/* Computes the rounding error of high + value (Knuth's two-sum). */
static void sum_add(struct pwi_sum *sum, double value) {
  double high = sum->high + value, back = high - sum->high;
  double lost = (sum->high - (high - back)) + (value - back);
  sum->high = high;
  if (isfinite(high)) sum->low += lost;
}

static double most_of(double a, double b) { return b > a || isnan(b) ? b : a; }

void pwi_sum_join(enum pwi_linear kind, struct pwi_sum *sum, struct pwi_sum other) {
  if (kind == PWI_LINEAR_MOST) {
    sum->high = most_of(sum->high, other.high);
    return;
  }
  sum_add(sum, other.high);
  sum->low += other.low;
}

double pwi_sum_value(struct pwi_sum sum) { return isfinite(sum.high) ? sum.high + sum.low : sum.high; }

/* --- folding -------------------------------------------------------------------------------------------- */

static double lanes_sum(const double lanes[LANES]) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

#define FOLD_LOOP(step)                                                                                                \
  size_t whole = count - count % LANES;                                                                                \
  for (size_t i = 0; i < whole; i += LANES)                                                                            \
    for (size_t j = 0; j < LANES; j++) step(i + j, j);                                                                 \
  for (size_t i = whole; i < count; i++) step(i, i - whole);

#define STEP_DOT(i, j) lanes[j] += (double)x[i] * (double)y[i]
#define STEP_ABS(i, j) lanes[j] += fabs((double)x[i])
#define STEP_COUNT(i, j) lanes[j] += x[i] != 0
#define STEP_MOST(i, j) lanes[j] = fabs((double)x[i]) > lanes[j] ? fabs((double)x[i]) : lanes[j]

/* Comparisons with NaN are false, so the maximum ignores NaN; the sum of absolute values detects it. */
#define FOLD(name, type)                                                                                               \
  static double dot_##name(const type *x, const type *y, size_t count) {                                               \
    double lanes[LANES] = {0};                                                                                         \
    FOLD_LOOP(STEP_DOT)                                                                                                \
    return lanes_sum(lanes);                                                                                           \
  }                                                                                                                    \
  static double abs_##name(const type *x, size_t count) {                                                              \
    double lanes[LANES] = {0};                                                                                         \
    FOLD_LOOP(STEP_ABS)                                                                                                \
    return lanes_sum(lanes);                                                                                           \
  }                                                                                                                    \
  static double count_##name(const type *x, size_t count) {                                                            \
    double lanes[LANES] = {0};                                                                                         \
    FOLD_LOOP(STEP_COUNT)                                                                                              \
    return lanes_sum(lanes);                                                                                           \
  }                                                                                                                    \
  static double most_##name(const type *x, size_t count) {                                                             \
    double lanes[LANES] = {0};                                                                                         \
    FOLD_LOOP(STEP_MOST)                                                                                               \
    for (size_t j = 1; j < LANES; j++) lanes[0] = most_of(lanes[0], lanes[j]);                                         \
    return isnan(abs_##name(x, count)) ? (double)NAN : lanes[0];                                                       \
  }                                                                                                                    \
  static double fold_##name(enum pwi_linear kind, const type *x, const type *y, size_t count) {                        \
    if (kind == PWI_LINEAR_ABS) return abs_##name(x, count);                                                           \
    if (kind == PWI_LINEAR_MOST) return most_##name(x, count);                                                         \
    if (kind == PWI_LINEAR_COUNT) return count_##name(x, count);                                                       \
    return dot_##name(x, kind == PWI_LINEAR_DOT ? y : x, count);                                                       \
  }

FOLD(f32, float)
FOLD(f64, double)
FOLD(i32, int32_t)
FOLD(i64, int64_t)
FOLD(u64, uint64_t)

static double fold(enum pwi_linear kind, enum pwi_scalar type, const void *x, const void *y, size_t count) {
  switch (type) {
  case PWI_SCALAR_F32:
    return fold_f32(kind, x, y, count);
  case PWI_SCALAR_F64:
    return fold_f64(kind, x, y, count);
  case PWI_SCALAR_I32:
    return fold_i32(kind, x, y, count);
  case PWI_SCALAR_I64:
    return fold_i64(kind, x, y, count);
  case PWI_SCALAR_U64:
    return fold_u64(kind, x, y, count);
  }
  return 0;
}

void pwi_linear_fold(enum pwi_linear kind, enum pwi_scalar type, const void *x, const void *y, size_t count,
                     struct pwi_sum *sum) {
  assert(pwi_linear_folds(kind));
  pwi_sum_join(kind, sum, (struct pwi_sum){.high = fold(kind, type, x, y, count)});
}
