/* The loops behind store/functions/kernels.h. The file of each set includes them and so compiles them for its
 * processor.
 *
 * The formulas are written once, in store/functions/steps.h and store/functions/proximal.h, and included here
 * for each value type:
 *   VALUE        the type
 *   ROOT, ABS    its square root and its absolute value, which are exact to the last bit everywhere
 *   NAMED(name)  the name with a suffix for the type
 *
 * These files are compiled without -fmath-errno and -ftrapping-math (CMakeLists.txt): a square root then is
 * one instruction, and both sides of a choice may be computed. No value depends on either.
 */
#ifndef PWI_STORE_FUNCTIONS_LOOPS_H
#define PWI_STORE_FUNCTIONS_LOOPS_H

#include <math.h>
#include <string.h>

#include "store/functions/kernels.h"

#define PWI_LOOP static inline __attribute__((always_inline))

/* Moves z towards zero by `least`, but not beyond. The result is never -0, whose bits are not all zero. */
PWI_LOOP float shrink_f32(float z, float least) {
  float size = fabsf(z) - least;
  return size > 0 ? copysignf(size, z) : 0;
}

PWI_LOOP double shrink_f64(double z, double least) {
  double size = fabs(z) - least;
  return size > 0 ? copysign(size, z) : 0;
}

#define VALUE float
#define ROOT sqrtf
#define ABS fabsf
#define NAMED(name) name##_f32
#include "store/functions/steps.h"
#include "store/functions/proximal.h"
#undef VALUE
#undef ROOT
#undef ABS
#undef NAMED

#define VALUE double
#define ROOT sqrt
#define ABS fabs
#define NAMED(name) name##_f64
#include "store/functions/steps.h"
#include "store/functions/proximal.h"
#undef VALUE
#undef ROOT
#undef ABS
#undef NAMED

/* True if all bits of the exponent are set. The bits are compared as an integer, because the values need not
 * be aligned. */
#define PWI_FINITE(name, bits, exponent)                                                                               \
  PWI_LOOP bool loop_finite_##name(const char *values, size_t count) {                                                 \
    bits wrong = 0;                                                                                                    \
    for (size_t i = 0; i < count; i++) {                                                                               \
      bits value;                                                                                                      \
      memcpy(&value, values + i * sizeof value, sizeof value);                                                         \
      wrong |= (value & (exponent)) == (exponent);                                                                     \
    }                                                                                                                  \
    return wrong == 0;                                                                                                 \
  }
PWI_FINITE(f32, uint32_t, UINT32_C(0x7f800000))
PWI_FINITE(f64, uint64_t, UINT64_C(0x7ff0000000000000))

/* Four rows of the operand at a time, so that a result is loaded and stored once for four products. */
#define PWI_EXPAND(name, VALUE)                                                                                        \
  PWI_LOOP void expand_row_##name(const VALUE *times, const VALUE *operand, size_t rows, size_t width, VALUE *to) {    \
    memset(to, 0, width * sizeof *to);                                                                                 \
    for (size_t k = 0; k < rows;) {                                                                                    \
      const VALUE *v[4] = {operand, operand, operand, operand};                                                        \
      VALUE u[4] = {0, 0, 0, 0};                                                                                       \
      size_t count = 0;                                                                                                \
      for (; k < rows && count < 4; k++) {                                                                             \
        if (times[k] == 0) continue;                                                                                   \
        u[count] = times[k];                                                                                           \
        v[count++] = operand + k * width;                                                                              \
      }                                                                                                                \
      if (count == 4)                                                                                                  \
        for (size_t j = 0; j < width; j++)                                                                             \
          to[j] = (((to[j] + u[0] * v[0][j]) + u[1] * v[1][j]) + u[2] * v[2][j]) + u[3] * v[3][j];                     \
      else                                                                                                             \
        for (size_t i = 0; i < count; i++)                                                                             \
          for (size_t j = 0; j < width; j++) to[j] += u[i] * v[i][j];                                                  \
    }                                                                                                                  \
  }                                                                                                                    \
  PWI_LOOP void loop_expand_##name(const struct pawl_function_call *call) {                                            \
    const VALUE *pushed = call->pushed, *operand = call->operand;                                                      \
    VALUE *to = call->stored;                                                                                          \
    for (size_t i = 0; i < call->count; i++)                                                                           \
      expand_row_##name(pushed + i * call->operand_rows, operand, call->operand_rows, call->pushed_width,              \
                        to + i * call->pushed_width);                                                                  \
  }
PWI_EXPAND(f32, float)
PWI_EXPAND(f64, double)

/* The functions of a set, each with the attribute TARGET, and the fields that name them. */
#define PWI_GRADIENT_FUNCTION(TARGET, name)                                                                            \
  TARGET static void step_##name##_f32(const struct pawl_function_call *call) { name##_f32(call); }                    \
  TARGET static void step_##name##_f64(const struct pawl_function_call *call) { name##_f64(call); }
#define PWI_GRADIENT_CHECKS(TARGET)                                                                                    \
  TARGET static bool finite_f32(const void *values, size_t count) { return loop_finite_f32(values, count); }           \
  TARGET static bool finite_f64(const void *values, size_t count) { return loop_finite_f64(values, count); }           \
  TARGET static void expand_f32(const struct pawl_function_call *call) { loop_expand_f32(call); }                      \
  TARGET static void expand_f64(const struct pawl_function_call *call) { loop_expand_f64(call); }                      \
  TARGET static bool curved_f32(const void *values, size_t pairs) { return loop_curved_f32(values, pairs); }           \
  TARGET static bool curved_f64(const void *values, size_t pairs) { return loop_curved_f64(values, pairs); }

#define PWI_GRADIENT_FIELD(name) [PWI_GRADIENT_##name] = {step_##name##_f32, step_##name##_f64},
#define PWI_GRADIENT_ENTRIES                                                                                           \
  .apply = {PWI_GRADIENT_STEPS(PWI_GRADIENT_FIELD)}, .finite = {finite_f32, finite_f64},                               \
  .curved = {curved_f32, curved_f64}, .expand = {expand_f32, expand_f64}

#endif
