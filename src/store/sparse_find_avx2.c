/* The searches for x86-64 with AVX2: four fences, or a line of keys, are compared at once. */
#include "store/sparse.h"

#if defined(__x86_64__)

#include <assert.h>
#include <immintrin.h>

#define SEARCH __attribute__((target("avx2,bmi2")))

static SEARCH inline uint32_t signs(__m256i four) { return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(four)); }

static SEARCH inline __m256i four_of(const uint64_t *keys) { return _mm256_loadu_si256((const void *)keys); }

/* The processor compares signed numbers, but keys are unsigned: flipping the highest bit converts the
 * order. */
static SEARCH inline size_t upto(const uint64_t *fences, uint64_t key) {
  static_assert(PWI_SPARSE_PAD == 4, "one vector");
  __m256i turn = _mm256_set1_epi64x(INT64_MIN), mine = _mm256_set1_epi64x((long long)(key ^ UINT64_C(1) << 63));
  uint32_t above = signs(_mm256_cmpgt_epi64(_mm256_xor_si256(four_of(fences), turn), mine));
  return (size_t)__builtin_ctz(above | 1u << PWI_SPARSE_PAD);
}

static SEARCH inline uint32_t places_of(const uint64_t *line, uint64_t key) {
  static_assert(PWI_LINE == 8, "two vectors");
  __m256i mine = _mm256_set1_epi64x((long long)key);
  return signs(_mm256_cmpeq_epi64(four_of(line), mine)) | signs(_mm256_cmpeq_epi64(four_of(line + 4), mine)) << 4;
}

#include "store/sparse_find_loops.h"

SEARCH size_t pwi_sparse_find_avx2(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count,
                                   uint32_t *slots_out) {
  return find_all(sparse, keys, count, slots_out);
}

bool pwi_sparse_find_avx2_runs(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }

#else

bool pwi_sparse_find_avx2_runs(void) { return false; }

#endif
