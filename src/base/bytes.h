/* Little-endian fields in byte buffers of any alignment: the only way wire fields are read and written. */
#ifndef PWI_BASE_BYTES_H
#define PWI_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PWI_LE16(x) (x)
#define PWI_LE32(x) (x)
#define PWI_LE64(x) (x)
#else
#define PWI_LE16(x) __builtin_bswap16(x)
#define PWI_LE32(x) __builtin_bswap32(x)
#define PWI_LE64(x) __builtin_bswap64(x)
#endif

static inline uint16_t pwi_get_u16(const void *from) {
  uint16_t value;
  memcpy(&value, from, sizeof value);
  return PWI_LE16(value);
}

static inline uint32_t pwi_get_u32(const void *from) {
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return PWI_LE32(value);
}

static inline uint64_t pwi_get_u64(const void *from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return PWI_LE64(value);
}

static inline void pwi_put_u16(void *to, uint16_t value) {
  value = PWI_LE16(value);
  memcpy(to, &value, sizeof value);
}

static inline void pwi_put_u32(void *to, uint32_t value) {
  value = PWI_LE32(value);
  memcpy(to, &value, sizeof value);
}

static inline void pwi_put_u64(void *to, uint64_t value) {
  value = PWI_LE64(value);
  memcpy(to, &value, sizeof value);
}

/* The bits of a binary64, in which it is sent; and the number of such bits. */
static inline uint64_t pwi_double_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline double pwi_double_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
