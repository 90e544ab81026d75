/* Single values of pairs as bytes: whole, or narrowed to 32 or 16 bits. Threads: pure. */
#ifndef PWI_PEER_FACTOR_VALUES_H
#define PWI_PEER_FACTOR_VALUES_H

#include "base/bytes.h"
#include "peer/factor/pairs.h"
#include "wire/half.h"

static inline size_t pwi_factor_code_size(enum factor_code code) {
  return code == FACTOR_F64 ? 8 : code == FACTOR_F32 ? 4 : 2;
}

static inline unsigned char *pwi_factor_put_value(enum factor_code code, double value, unsigned char *to) {
  uint32_t bits = pwi_float_bits((float)value);
  if (code == FACTOR_F64)
    pwi_put_u64(to, pwi_double_bits(value));
  else if (code == FACTOR_F32)
    pwi_put_u32(to, bits);
  else
    pwi_put_u16(to, code == FACTOR_F16 ? pwi_f16_from_f32(bits) : pwi_bf16_from_f32(bits));
  return to + pwi_factor_code_size(code);
}

static inline double pwi_factor_get_value(enum factor_code code, const unsigned char *from) {
  if (code == FACTOR_F64) return pwi_double_of_bits(pwi_get_u64(from));
  if (code == FACTOR_F32) return (double)pwi_float_of_bits(pwi_get_u32(from));
  uint32_t bits = code == FACTOR_F16 ? pwi_f32_from_f16(pwi_get_u16(from)) : pwi_f32_from_bf16(pwi_get_u16(from));
  return (double)pwi_float_of_bits(bits);
}

/* The value that receivers get. */
static inline double pwi_factor_narrowed(enum factor_code code, double value) {
  unsigned char bytes[8];
  pwi_factor_put_value(code, value, bytes);
  return pwi_factor_get_value(code, bytes);
}

#endif
