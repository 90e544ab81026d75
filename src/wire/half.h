/* Conversion of single sixteen-bit floats: the reference for all faster implementations.
 *
 * The functions work on bit patterns, so that the floating-point environment of the caller has no influence,
 * except that the conversion from binary64 requires subnormals to be enabled. NaN keeps its sign and the
 * upper bits of its payload and becomes quiet, as with the conversion instructions of x86 and arm64.
 */
#ifndef PWI_WIRE_HALF_H
#define PWI_WIRE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t pwi_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float pwi_float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* `value` / 2^shift, to nearest, ties to even; 0 < shift < 32, and the value stays below 2^31. */
static inline uint32_t pwi_shift_rounded(uint32_t value, unsigned shift) {
  uint32_t below_half = (UINT32_C(1) << (shift - 1)) - 1;
  return (value + below_half + ((value >> shift) & 1)) >> shift;
}

#define PWI_F32_INFINITY UINT32_C(0x7f800000)
#define PWI_F32_SIGN UINT32_C(0x80000000)

/* binary32 to binary16. */
static inline uint16_t pwi_f16_from_f32(uint32_t bits) {
  uint32_t sign = (bits & PWI_F32_SIGN) >> 16;
  uint32_t magnitude = bits & ~PWI_F32_SIGN;
  uint32_t exponent = magnitude >> 23;
  if (magnitude > PWI_F32_INFINITY) return (uint16_t)(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (exponent >= 143) return (uint16_t)(sign | 0x7c00); /* 2^16 and above */
  /* Rounding may carry into the exponent, and from the largest half into infinity: both are right. */
  if (exponent >= 113) return (uint16_t)(sign | pwi_shift_rounded(magnitude - (UINT32_C(112) << 23), 13));
  if (exponent < 102) return (uint16_t)sign; /* below 2^-25, half the smallest subnormal */
  uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  return (uint16_t)(sign | pwi_shift_rounded(significand, 126 - exponent));
}

/* binary16 to binary32; exact. */
static inline uint32_t pwi_f32_from_f16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 0x1f;
  uint32_t fraction = half & 0x3ff;
  if (exponent == 0x1f) return sign | PWI_F32_INFINITY | (fraction ? 0x400000 : 0) | fraction << 13;
  if (exponent == 0) return sign | pwi_float_bits((float)fraction * 0x1p-24f);
  return sign | (exponent + 112) << 23 | fraction << 13;
}

/* binary32 to bfloat16. The add may carry into the exponent, and up to infinity. */
static inline uint16_t pwi_bf16_from_f32(uint32_t bits) {
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x40;
  return (uint16_t)((bits & ~PWI_F32_SIGN) > PWI_F32_INFINITY ? quiet : rounded);
}

/* bfloat16 to binary32; exact, and NaN is kept as it is. */
static inline uint32_t pwi_f32_from_bf16(uint16_t half) { return (uint32_t)half << 16; }

/* binary64 to binary32, rounded to odd: an inexact result is the neighbour whose last bit is 1. Unlike
 * rounding to nearest this preserves the side on which the value was, so that rounding the result again, to
 * sixteen bits, gives the same as rounding once. A finite value never becomes infinite. */
static inline uint32_t pwi_f32_odd_from_f64(double value) {
  float near = (float)value;
  uint32_t bits = pwi_float_bits(near);
  double back = (double)near;
  /* At an even last bit the two neighbours of `near` are odd; the value lies towards one of them. */
  uint32_t inexact = back != value && value == value && !(bits & 1);
  uint32_t outward = (back < 0 ? -back : back) < (value < 0 ? -value : value);
  return bits + (inexact & outward) - (inexact & !outward);
}

#endif
