/* The table for x86-64 with AVX2 and F16C. Loops that the compiler vectorises are only compiled again for
 * these processors; intrinsics are used for instructions that the compiler would not choose. */
#include "wire/values_kernels.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "wire/values_loops.h"

#define AVX2 __attribute__((target("avx2,f16c")))

AVX2 static void f16_from_f32(const void *from, size_t count, void *to) {
  const char *in = from;
  char *out = to;
  size_t done = 0;
  for (; count - done >= 8; done += 8) {
    __m256 floats = _mm256_loadu_ps((const float *)(const void *)(in + done * 4));
    __m128i halves = _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)(out + done * 2), halves);
  }
  loop_f16_from_f32(in + done * 4, count - done, out + done * 2);
}

AVX2 static void f32_from_f16(const void *from, size_t count, void *to) {
  const char *in = from;
  char *out = to;
  size_t done = 0;
  for (; count - done >= 8; done += 8) {
    __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)(in + done * 2));
    _mm256_storeu_ps((float *)(void *)(out + done * 4), _mm256_cvtph_ps(halves));
  }
  loop_f32_from_f16(in + done * 2, count - done, out + done * 4);
}

PWI_LOOP_FUNCTIONS(AVX2)

AVX2 static void masks_of_32(const void *from, size_t groups, uint64_t *masks_out) {
  const __m256i *in = from;
  const __m256i zero = _mm256_setzero_si256();
  for (size_t g = 0; g < groups; g++) {
    uint64_t zeros = 0;
    for (unsigned i = 0; i < 8; i++) {
      __m256i equal = _mm256_cmpeq_epi32(_mm256_loadu_si256(in++), zero);
      zeros |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(equal)) << (8 * i);
    }
    masks_out[g] = ~zeros;
  }
}

AVX2 static void masks_of_64(const void *from, size_t groups, uint64_t *masks_out) {
  const __m256i *in = from;
  const __m256i zero = _mm256_setzero_si256();
  for (size_t g = 0; g < groups; g++) {
    uint64_t zeros = 0;
    for (unsigned i = 0; i < 16; i++) {
      __m256i equal = _mm256_cmpeq_epi64(_mm256_loadu_si256(in++), zero);
      zeros |= (uint64_t)(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(equal)) << (4 * i);
    }
    masks_out[g] = ~zeros;
  }
}

/* The check of the compiler covers AVX2 and the system's support for its registers; not all compilers know
 * F16C. */
bool pwi_kernels_avx2_runs(void) {
  unsigned a, b, c, d;
  if (!__builtin_cpu_supports("avx2")) return false;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

const struct pwi_kernels pwi_kernels_avx2 = {
    .name = "avx2",
    .f16_from_f32 = f16_from_f32,
    .f32_from_f16 = f32_from_f16,
    .masks_of_32 = masks_of_32,
    .masks_of_64 = masks_of_64,
    PWI_LOOP_ENTRIES,
};

#endif
