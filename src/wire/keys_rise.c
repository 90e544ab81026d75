/* Checks that a list ascends: in portable C, and with vector comparisons. */
#include "wire/keys.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

bool pwi_keys_rise_portable(const uint64_t *keys, size_t count) {
  unsigned bad = 0;
  for (size_t i = 1; i < count; i++) bad |= keys[i] <= keys[i - 1];
  return bad == 0;
}

#if defined(__x86_64__)

/* Vector comparisons of 64 bits are signed: flipping the top bit keeps the order. */
__attribute__((target("avx2"))) static bool rise_avx2(const uint64_t *keys, size_t count) {
  const __m256i top = _mm256_set1_epi64x(INT64_MIN);
  __m256i good = _mm256_set1_epi64x(-1);
  size_t i = 1;
  for (; i + 4 <= count; i += 4) {
    __m256i before = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(keys + i - 1)), top);
    __m256i here = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(keys + i)), top);
    good = _mm256_and_si256(good, _mm256_cmpgt_epi64(here, before));
  }
  if (_mm256_movemask_epi8(good) != -1) return false;
  return count == 0 || pwi_keys_rise_portable(keys + i - 1, count - (i - 1));
}

bool pwi_keys_rise(const uint64_t *keys, size_t count) {
  return __builtin_cpu_supports("avx2") ? rise_avx2(keys, count) : pwi_keys_rise_portable(keys, count);
}

#else

bool pwi_keys_rise(const uint64_t *keys, size_t count) { return pwi_keys_rise_portable(keys, count); }

#endif
