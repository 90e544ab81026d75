/* Content that can be checked at any offset. */
#include "pattern.h"

#include "base/bytes.h"

static inline uint64_t word(uint64_t seed, uint64_t number) {
  uint64_t x = (seed ^ number) * UINT64_C(0x9e3779b97f4a7c15);
  return x ^ (x >> 29);
}

static inline uint8_t byte(uint64_t seed, uint64_t offset) {
  return (uint8_t)(word(seed, offset / 8) >> (8 * (offset % 8)));
}

void pattern_fill(uint64_t seed, uint64_t offset, void *to, size_t size) {
  uint8_t *bytes = to;
  size_t i = 0;
  for (; i < size && (offset + i) % 8 != 0; i++) bytes[i] = byte(seed, offset + i);
  for (; size - i >= 8; i += 8) pwi_put_u64(bytes + i, word(seed, (offset + i) / 8));
  for (; i < size; i++) bytes[i] = byte(seed, offset + i);
}

size_t pattern_check(uint64_t seed, uint64_t offset, const void *data, size_t size) {
  const uint8_t *bytes = data;
  size_t i = 0;
  for (; i < size && (offset + i) % 8 != 0; i++)
    if (bytes[i] != byte(seed, offset + i)) return i;
  for (; size - i >= 8; i += 8)
    if (pwi_get_u64(bytes + i) != word(seed, (offset + i) / 8)) return i;
  for (; i < size; i++)
    if (bytes[i] != byte(seed, offset + i)) return i;
  return size;
}
