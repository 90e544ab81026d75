/* Loops that compilers vectorise well, for the tables of values_kernels.h. The file of each table includes
 * them and so compiles them for its processor. Elements are accessed with memcpy because arrays need not be
 * aligned.
 */
#ifndef PWI_WIRE_VALUES_LOOPS_H
#define PWI_WIRE_VALUES_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/half.h"

#define PWI_LOOP static inline __attribute__((always_inline))

PWI_LOOP uint32_t load32(const void *from, size_t at) {
  uint32_t bits;
  memcpy(&bits, (const char *)from + at * sizeof bits, sizeof bits);
  return bits;
}

PWI_LOOP void store32(void *to, size_t at, uint32_t bits) { memcpy((char *)to + at * sizeof bits, &bits, sizeof bits); }

PWI_LOOP uint16_t load16(const void *from, size_t at) {
  uint16_t bits;
  memcpy(&bits, (const char *)from + at * sizeof bits, sizeof bits);
  return bits;
}

PWI_LOOP void store16(void *to, size_t at, uint16_t bits) { memcpy((char *)to + at * sizeof bits, &bits, sizeof bits); }

PWI_LOOP uint64_t load64(const void *from, size_t at) {
  uint64_t bits;
  memcpy(&bits, (const char *)from + at * sizeof bits, sizeof bits);
  return bits;
}

PWI_LOOP double load_double(const void *from, size_t at) {
  double value;
  memcpy(&value, (const char *)from + at * sizeof value, sizeof value);
  return value;
}

PWI_LOOP void loop_f16_from_f32(const void *restrict from, size_t count, void *restrict to) {
  for (size_t i = 0; i < count; i++) store16(to, i, pwi_f16_from_f32(load32(from, i)));
}

PWI_LOOP void loop_f32_from_f16(const void *restrict from, size_t count, void *restrict to) {
  for (size_t i = 0; i < count; i++) store32(to, i, pwi_f32_from_f16(load16(from, i)));
}

PWI_LOOP void loop_bf16_from_f32(const void *restrict from, size_t count, void *restrict to) {
  for (size_t i = 0; i < count; i++) store16(to, i, pwi_bf16_from_f32(load32(from, i)));
}

PWI_LOOP void loop_f32_from_bf16(const void *restrict from, size_t count, void *restrict to) {
  for (size_t i = 0; i < count; i++) store32(to, i, pwi_f32_from_bf16(load16(from, i)));
}

PWI_LOOP void loop_f32_odd_from_f64(const void *restrict from, size_t count, void *restrict to) {
  for (size_t i = 0; i < count; i++) store32(to, i, pwi_f32_odd_from_f64(load_double(from, i)));
}

PWI_LOOP void loop_f32_from_f64(const void *restrict from, size_t count, void *restrict to) {
  for (size_t i = 0; i < count; i++) store32(to, i, pwi_float_bits((float)load_double(from, i)));
}

PWI_LOOP void loop_f64_from_f32(const void *restrict from, size_t count, void *restrict to) {
  for (size_t i = 0; i < count; i++) {
    double value = (double)pwi_float_of_bits(load32(from, i));
    memcpy((char *)to + i * sizeof value, &value, sizeof value);
  }
}

/* Floats without their sign are ordered as their bits are, and infinities and NaN come last. */
PWI_LOOP uint32_t loop_f32_largest(const void *from, size_t count) {
  int32_t largest = 0;
  for (size_t i = 0; i < count; i++) {
    int32_t magnitude = (int32_t)(load32(from, i) & ~PWI_F32_SIGN);
    largest = magnitude > largest ? magnitude : largest;
  }
  return (uint32_t)largest;
}

/* Adding 1.5 * 2^23 leaves no bits for a fraction: the addition itself rounds, and the lowest byte of the sum
 * is the result in two's complement. The product is a separate statement so that it is not fused with the
 * addition. */
PWI_LOOP void loop_i8_from_f32(const void *restrict from, size_t count, float factor, void *restrict to) {
  uint8_t *out = to;
  for (size_t i = 0; i < count; i++) {
    float scaled = pwi_float_of_bits(load32(from, i)) * factor;
    float shifted = scaled + 0x1.8p23f;
    out[i] = (uint8_t)pwi_float_bits(shifted);
  }
}

PWI_LOOP void loop_f32_from_i8(const void *restrict from, size_t count, float scale, void *restrict to) {
  const int8_t *in = from;
  for (size_t i = 0; i < count; i++) store32(to, i, pwi_float_bits((float)in[i] * scale));
}

/* Most groups of mostly-zero values are all zero; an OR over the group finds this faster than 64 tests. */
PWI_LOOP uint64_t mask_of_32(const void *from) {
  uint32_t any = 0;
  for (size_t i = 0; i < 64; i++) any |= load32(from, i);
  if (!any) return 0;
  uint64_t mask = 0;
  for (size_t i = 0; i < 64; i++) mask |= (uint64_t)(load32(from, i) != 0) << i;
  return mask;
}

PWI_LOOP uint64_t mask_of_64(const void *from) {
  uint64_t any = 0;
  for (size_t i = 0; i < 64; i++) any |= load64(from, i);
  if (!any) return 0;
  uint64_t mask = 0;
  for (size_t i = 0; i < 64; i++) mask |= (uint64_t)(load64(from, i) != 0) << i;
  return mask;
}

PWI_LOOP void loop_masks_of_32(const void *from, size_t groups, uint64_t *masks_out) {
  for (size_t g = 0; g < groups; g++) masks_out[g] = mask_of_32((const char *)from + g * 256);
}

PWI_LOOP void loop_masks_of_64(const void *from, size_t groups, uint64_t *masks_out) {
  for (size_t g = 0; g < groups; g++) masks_out[g] = mask_of_64((const char *)from + g * 512);
}

/* Defines the functions of a table that are these loops on every processor, compiled with `attribute`, and
 * their entries. */
#define PWI_LOOP_FUNCTIONS(attribute)                                                                                  \
  PWI_LOOP_CONVERT(attribute, bf16_from_f32)                                                                           \
  PWI_LOOP_CONVERT(attribute, f32_from_bf16)                                                                           \
  PWI_LOOP_CONVERT(attribute, f32_odd_from_f64)                                                                        \
  PWI_LOOP_CONVERT(attribute, f32_from_f64)                                                                            \
  PWI_LOOP_CONVERT(attribute, f64_from_f32)                                                                            \
  attribute static uint32_t f32_largest(const void *from, size_t count) { return loop_f32_largest(from, count); }      \
  attribute static void i8_from_f32(const void *from, size_t count, float factor, void *to) {                          \
    loop_i8_from_f32(from, count, factor, to);                                                                         \
  }                                                                                                                    \
  attribute static void f32_from_i8(const void *from, size_t count, float scale, void *to) {                           \
    loop_f32_from_i8(from, count, scale, to);                                                                          \
  }

#define PWI_LOOP_CONVERT(attribute, name)                                                                              \
  attribute static void name(const void *from, size_t count, void *to) { loop_##name(from, count, to); }

#define PWI_LOOP_ENTRIES                                                                                               \
  .bf16_from_f32 = bf16_from_f32, .f32_from_bf16 = f32_from_bf16, .f32_odd_from_f64 = f32_odd_from_f64,                \
  .f32_from_f64 = f32_from_f64, .f64_from_f32 = f64_from_f32, .f32_largest = f32_largest, .i8_from_f32 = i8_from_f32,  \
  .f32_from_i8 = f32_from_i8

#endif
