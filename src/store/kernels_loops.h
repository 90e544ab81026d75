/* The loops behind kernels.h. The file of each set includes them and so compiles them for its processor.
 *
 * Elements are accessed with memcpy because arrays of the caller need not be aligned; compilers optimise it
 * away. Integers are added as unsigned, where wrapping around is defined.
 */
#ifndef PWI_STORE_KERNELS_LOOPS_H
#define PWI_STORE_KERNELS_LOOPS_H

#include <string.h>

#include "store/kernels.h"

#define PWI_LOOP static inline __attribute__((always_inline))

/* The number of rows ahead to prefetch: far enough for a cache miss to be resolved by then. */
#define PWI_AHEAD 32

/* X(name, type for sums, type for comparisons), in the order of enum pwi_scalar. */
#define PWI_SCALARS(X)                                                                                                 \
  X(f32, float, float)                                                                                                 \
  X(f64, double, double)                                                                                               \
  X(i32, uint32_t, int32_t)                                                                                            \
  X(i64, uint64_t, int64_t)                                                                                            \
  X(u64, uint64_t, uint64_t)

#define PWI_SUM(old, new) ((old) + (new))
#define PWI_NEW(old, new) ((void)(old), (new))
#define PWI_LEAST(old, new) ((new) < (old) ? (new) : (old))
#define PWI_MOST(old, new) ((new) > (old) ? (new) : (old))

/* Applies row i of `from` to row slots[i] of `to`; the width may be a compile-time constant. */
#define PWI_ROW_LOOP(name, type, combine)                                                                              \
  PWI_LOOP void one_##name(char *restrict to, const char *restrict from, char *restrict out) {                         \
    type old, new;                                                                                                     \
    memcpy(&old, to, sizeof old);                                                                                      \
    memcpy(&new, from, sizeof new);                                                                                    \
    old = combine(old, new);                                                                                           \
    memcpy(to, &old, sizeof old);                                                                                      \
    if (out) memcpy(out, &old, sizeof old);                                                                            \
  }                                                                                                                    \
  PWI_LOOP void loop_##name(char *restrict to, const char *restrict from, size_t count, char *restrict out) {          \
    for (size_t i = 0; i < count; i++)                                                                                 \
      one_##name(to + i * sizeof(type), from + i * sizeof(type), out ? out + i * sizeof(type) : NULL);                 \
  }                                                                                                                    \
  PWI_LOOP void singles_##name(char *restrict to, const uint32_t *restrict slots, size_t count,                        \
                               const char *restrict from, char *restrict out) {                                        \
    size_t i = 0;                                                                                                      \
    for (; i + PWI_AHEAD + 4 <= count; i += 4) {                                                                       \
      for (size_t j = i; j < i + 4; j++) {                                                                             \
        __builtin_prefetch(to + slots[j + PWI_AHEAD] * sizeof(type), 1);                                               \
        one_##name(to + slots[j] * sizeof(type), from + j * sizeof(type), out ? out + j * sizeof(type) : NULL);        \
      }                                                                                                                \
    }                                                                                                                  \
    for (; i < count; i++)                                                                                             \
      one_##name(to + slots[i] * sizeof(type), from + i * sizeof(type), out ? out + i * sizeof(type) : NULL);          \
  }                                                                                                                    \
  PWI_LOOP void wide_##name(char *restrict to, const uint32_t *restrict slots, size_t count, size_t width,             \
                            const char *restrict from, char *restrict out) {                                           \
    size_t bytes = width * sizeof(type);                                                                               \
    for (size_t i = 0; i < count; i++) {                                                                               \
      if (i + 4 < count) __builtin_prefetch(to + slots[i + 4] * bytes, 1);                                             \
      loop_##name(to + slots[i] * bytes, from + i * bytes, width, out ? out + i * bytes : NULL);                       \
    }                                                                                                                  \
  }                                                                                                                    \
  PWI_LOOP void rows_##name(void *to, const uint32_t *slots, size_t count, size_t width, const void *from,             \
                            void *out) {                                                                               \
    if (width == 1) {                                                                                                  \
      singles_##name(to, slots, count, from, out);                                                                     \
    } else if (width % 8 == 0) {                                                                                       \
      wide_##name(to, slots, count, width & ~(size_t)7, from, out); /* no loop needs a remainder */                    \
    } else {                                                                                                           \
      wide_##name(to, slots, count, width, from, out);                                                                 \
    }                                                                                                                  \
  }

#define PWI_ROW_LOOPS(name, sum, compare)                                                                              \
  PWI_ROW_LOOP(name##_add, sum, PWI_SUM)                                                                               \
  PWI_ROW_LOOP(name##_assign, sum, PWI_NEW)                                                                            \
  PWI_ROW_LOOP(name##_min, compare, PWI_LEAST)                                                                         \
  PWI_ROW_LOOP(name##_max, compare, PWI_MOST)

PWI_SCALARS(PWI_ROW_LOOPS)

/* Rows of a size known to the compiler. */
PWI_LOOP void gather_fixed(char *restrict to, const char *restrict from, const uint32_t *restrict slots, size_t count,
                           size_t bytes) {
  size_t i = 0;
  for (; i + PWI_AHEAD + 4 <= count; i += 4) {
    for (size_t j = 0; j < 4; j++) {
      __builtin_prefetch(from + slots[i + j + PWI_AHEAD] * bytes, 0);
      memcpy(to + (i + j) * bytes, from + slots[i + j] * bytes, bytes);
    }
  }
  for (; i < count; i++) memcpy(to + i * bytes, from + slots[i] * bytes, bytes);
}

PWI_LOOP void gather_any(char *restrict to, const char *restrict from, const uint32_t *restrict slots, size_t count,
                         size_t bytes) {
  for (size_t i = 0; i < count; i++) {
    if (i + 4 < count) __builtin_prefetch(from + slots[i + 4] * bytes, 0);
    memcpy(to + i * bytes, from + slots[i] * bytes, bytes);
  }
}

PWI_LOOP void loop_gather(void *to, const void *from, const uint32_t *slots, size_t count, size_t bytes) {
  switch (bytes) {
  case 4:
    gather_fixed(to, from, slots, count, 4);
    break;
  case 8:
    gather_fixed(to, from, slots, count, 8);
    break;
  case 16:
    gather_fixed(to, from, slots, count, 16);
    break;
  case 32:
    gather_fixed(to, from, slots, count, 32);
    break;
  case 64:
    gather_fixed(to, from, slots, count, 64);
    break;
  default:
    gather_any(to, from, slots, count, bytes);
    break;
  }
}

/* The functions of a set, each with the attribute TARGET, and the fields that name them. */
#define PWI_ROW_FUNCTION(TARGET, name)                                                                                 \
  TARGET static void array_##name(void *to, const void *from, size_t count) { loop_##name(to, from, count, NULL); }    \
  TARGET static void at_##name(void *to, const uint32_t *slots, size_t count, size_t width, const void *from,          \
                               void *out) {                                                                            \
    if (out) /* so that the compiler knows in either */                                                                \
      rows_##name(to, slots, count, width, from, out);                                                                 \
    else                                                                                                               \
      rows_##name(to, slots, count, width, from, NULL);                                                                \
  }
#define PWI_ROW_FUNCTIONS_OF(TARGET, op)                                                                               \
  PWI_ROW_FUNCTION(TARGET, f32_##op)                                                                                   \
  PWI_ROW_FUNCTION(TARGET, f64_##op)                                                                                   \
  PWI_ROW_FUNCTION(TARGET, i32_##op)                                                                                   \
  PWI_ROW_FUNCTION(TARGET, i64_##op)                                                                                   \
  PWI_ROW_FUNCTION(TARGET, u64_##op)
#define PWI_ROW_FUNCTIONS(TARGET)                                                                                      \
  PWI_ROW_FUNCTIONS_OF(TARGET, add)                                                                                    \
  PWI_ROW_FUNCTIONS_OF(TARGET, assign)                                                                                 \
  PWI_ROW_FUNCTIONS_OF(TARGET, min)                                                                                    \
  PWI_ROW_FUNCTIONS_OF(TARGET, max)                                                                                    \
  TARGET static void gather(void *to, const void *from, const uint32_t *slots, size_t count, size_t bytes) {           \
    loop_gather(to, from, slots, count, bytes);                                                                        \
  }

#define PWI_ROW_FIELDS(kind, op)                                                                                       \
  { kind##_f32_##op, kind##_f64_##op, kind##_i32_##op, kind##_i64_##op, kind##_u64_##op }
#define PWI_ROW_ENTRIES                                                                                                \
  .gather = gather,                                                                                                    \
  .array = {PWI_ROW_FIELDS(array, add), PWI_ROW_FIELDS(array, assign), PWI_ROW_FIELDS(array, min),                     \
            PWI_ROW_FIELDS(array, max)},                                                                               \
  .rows = {PWI_ROW_FIELDS(at, add), PWI_ROW_FIELDS(at, assign), PWI_ROW_FIELDS(at, min), PWI_ROW_FIELDS(at, max)}

#endif
