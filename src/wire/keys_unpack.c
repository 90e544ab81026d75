/* The unpackers. One load fetches each number completely; it is then shifted, masked and added up. There is
 * no special case per width, and no branch depends on the data. */
#include "wire/keys_unpack.h"

#include "base/bytes.h"

void pwi_keys_unpack_portable(const unsigned char *packed, unsigned width, size_t count, uint64_t floor,
                              uint64_t *keys) {
  uint64_t mask = (UINT64_C(1) << width) - 1;
  size_t bit = 0;
  for (size_t i = 0; i < count; i++, bit += width) {
    keys[i] = floor + (pwi_get_u64(packed + bit / 8) >> bit % 8 & mask);
    floor = keys[i] + 1;
  }
}

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* Eight numbers of w bits take w bytes, so the numbers of every group of eight are at the same bit positions.
 * Four numbers are fetched as two pairs: a pair spans at most 7 + 2 * 56 bits and so lies within 16 bytes. A
 * byte shuffle moves each number to its own 8 bytes, and a shift moves it down to bit 0. */
struct quad {
  __m256i shuffle, shift;
  size_t low, high; /* where the two pairs start, in bytes from the start of the group */
};

AVX2 static inline long long spread(size_t from) {
  return (long long)(from * UINT64_C(0x0101010101010101) + UINT64_C(0x0706050403020100));
}

AVX2 static inline struct quad quad_at(size_t bit, size_t width) {
  size_t bits[4] = {bit, bit + width, bit + 2 * width, bit + 3 * width};
  struct quad quad = {.low = bits[0] / 8, .high = bits[2] / 8};
  quad.shuffle =
      _mm256_setr_epi64x(spread(0), spread(bits[1] / 8 - quad.low), spread(0), spread(bits[3] / 8 - quad.high));
  quad.shift = _mm256_setr_epi64x((long long)(bits[0] % 8), (long long)(bits[1] % 8), (long long)(bits[2] % 8),
                                  (long long)(bits[3] % 8));
  return quad;
}

AVX2 static inline __m256i quad_fetch(const struct quad *quad, const unsigned char *group, __m256i mask) {
  __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(group + quad->low));
  __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(group + quad->high));
  __m256i bytes = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), quad->shuffle);
  return _mm256_and_si256(_mm256_srlv_epi64(bytes, quad->shift), mask);
}

/* Each number plus one, plus all before it. */
AVX2 static inline __m256i running_sum(__m256i numbers) {
  __m256i steps = _mm256_sub_epi64(numbers, _mm256_set1_epi64x(-1));
  __m256i pairs = _mm256_add_epi64(steps, _mm256_slli_si256(steps, 8));
  __m256i carry = _mm256_permute4x64_epi64(pairs, 0x50);
  return _mm256_add_epi64(pairs, _mm256_blend_epi32(carry, _mm256_setzero_si256(), 0x0f));
}

/* `last` is the previous key, in all four lanes. The sum of the four numbers is computed independently of the
 * keys, so that only one addition depends on the four previous keys. */
AVX2 static inline __m256i quad_write(__m256i numbers, __m256i last, uint64_t *keys) {
  __m256i sums = running_sum(numbers);
  _mm256_storeu_si256((__m256i *)(void *)keys, _mm256_add_epi64(sums, last));
  return _mm256_add_epi64(last, _mm256_permute4x64_epi64(sums, 0xff));
}

AVX2 static void unpack_avx2(const unsigned char *packed, unsigned width, size_t count, uint64_t floor,
                             uint64_t *keys) {
  const struct quad first = quad_at(0, width), second = quad_at((size_t)4 * width, width);
  __m256i mask = _mm256_set1_epi64x((long long)((UINT64_C(1) << width) - 1));
  __m256i last = _mm256_set1_epi64x((long long)(floor - 1));
  size_t done = 0;
  for (; count - done >= 8; done += 8, packed += width) {
    last = quad_write(quad_fetch(&first, packed, mask), last, keys + done);
    last = quad_write(quad_fetch(&second, packed, mask), last, keys + done + 4);
  }
  if (done < count) {
    floor = done > 0 ? keys[done - 1] + 1 : floor;
    pwi_keys_unpack_portable(packed, width, count - done, floor, keys + done);
  }
}

pwi_keys_unpacker *pwi_keys_unpacker_best(void) {
  return __builtin_cpu_supports("avx2") ? unpack_avx2 : pwi_keys_unpack_portable;
}

#else

pwi_keys_unpacker *pwi_keys_unpacker_best(void) { return pwi_keys_unpack_portable; }

#endif
