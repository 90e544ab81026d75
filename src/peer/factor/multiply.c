/* The loops of multiply_loops.h for float and double: as they are, with AVX2 and FMA, and with AVX-512. */
#include "peer/factor/multiply.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PAIRS 128                        /* that are packed at a time */
#define PACKED_BYTES ((size_t)192 << 10) /* of columns that are packed at a time */
#define FEW 24                           /* rows */
#if defined(__clang__)
#define PWI_UNROLL _Pragma("unroll")
#else
#define PWI_UNROLL _Pragma("GCC unroll 8")
#endif

/* --- without intrinsics --------------------------------------------------------------------------------- */

#define LANES_F32 4
#define LANES_F64 2

typedef float plain_f32 __attribute__((vector_size(16)));
typedef double plain_f64 __attribute__((vector_size(16)));

#define PLAIN_VECTORS(type, vector, lanes, fused)                                                                      \
  static inline vector vector##_load(const type *from) {                                                               \
    vector values;                                                                                                     \
    memcpy(&values, from, sizeof values);                                                                              \
    return values;                                                                                                     \
  }                                                                                                                    \
  static inline void vector##_store(type *to, vector values) { memcpy(to, &values, sizeof values); }                   \
  static inline vector vector##_splat(type value) { return value - (vector){0}; }                                      \
  static inline vector vector##_fused(vector a, vector b, vector c) {                                                  \
    for (size_t i = 0; i < (lanes); i++) c[i] = fused(a[i], b[i], c[i]);                                               \
    return c;                                                                                                          \
  }

PLAIN_VECTORS(float, plain_f32, LANES_F32, fmaf)
PLAIN_VECTORS(double, plain_f64, LANES_F64, fma)

#define TARGET
#define HIGH 4
#define WIDE 2
#define VALUE float
#define LANES LANES_F32
#define VECTOR plain_f32
#define LOAD plain_f32_load
#define STORE plain_f32_store
#define SPLAT plain_f32_splat
#define FUSED plain_f32_fused
#define FUSED_ONE fmaf
#define NAME(word) plain_##word##_f32
#include "peer/factor/multiply_loops.h"
#define VALUE double
#define LANES LANES_F64
#define VECTOR plain_f64
#define LOAD plain_f64_load
#define STORE plain_f64_store
#define SPLAT plain_f64_splat
#define FUSED plain_f64_fused
#define FUSED_ONE fma
#define NAME(word) plain_##word##_f64
#include "peer/factor/multiply_loops.h"
#undef TARGET
#undef HIGH
#undef WIDE

/* --- with intrinsics ------------------------------------------------------------------------------------ */

#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,fma")))
#define HIGH 6
#define WIDE 2
#define VALUE float
#define LANES 8
#define VECTOR __m256
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define SPLAT _mm256_set1_ps
#define FUSED _mm256_fmadd_ps
#define FUSED_ONE __builtin_fmaf
#define NAME(word) fma_##word##_f32
#include "peer/factor/multiply_loops.h"
#define VALUE double
#define LANES 4
#define VECTOR __m256d
#define LOAD _mm256_loadu_pd
#define STORE _mm256_storeu_pd
#define SPLAT _mm256_set1_pd
#define FUSED _mm256_fmadd_pd
#define FUSED_ONE __builtin_fma
#define NAME(word) fma_##word##_f64
#include "peer/factor/multiply_loops.h"
#undef TARGET
#undef WIDE

#define TARGET __attribute__((target("avx512f,fma")))
#define WIDE 4
#define VALUE float
#define LANES 16
#define VECTOR __m512
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define SPLAT _mm512_set1_ps
#define FUSED _mm512_fmadd_ps
#define FUSED_ONE __builtin_fmaf
#define NAME(word) avx512_##word##_f32
#include "peer/factor/multiply_loops.h"
#define VALUE double
#define LANES 8
#define VECTOR __m512d
#define LOAD _mm512_loadu_pd
#define STORE _mm512_storeu_pd
#define SPLAT _mm512_set1_pd
#define FUSED _mm512_fmadd_pd
#define FUSED_ONE __builtin_fma
#define NAME(word) avx512_##word##_f64
#include "peer/factor/multiply_loops.h"
#undef TARGET
#undef WIDE
#undef HIGH

enum pwi_factor_set pwi_factor_set(void) {
  if (__builtin_cpu_supports("avx512f")) return PWI_FACTOR_AVX512;
  return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2") ? PWI_FACTOR_FMA : PWI_FACTOR_PLAIN;
}

#else

#define fma_multiply_f32 plain_multiply_f32
#define fma_multiply_f64 plain_multiply_f64
#define fma_rank_one_f32 plain_rank_one_f32
#define fma_rank_one_f64 plain_rank_one_f64
#define avx512_multiply_f32 plain_multiply_f32
#define avx512_multiply_f64 plain_multiply_f64
#define avx512_rank_one_f32 plain_rank_one_f32
#define avx512_rank_one_f64 plain_rank_one_f64

enum pwi_factor_set pwi_factor_set(void) { return PWI_FACTOR_PLAIN; }

#endif

/* --- by set --------------------------------------------------------------------------------------------- */

#define BY_SET(type, suffix)                                                                                           \
  void pwi_factor_multiply_by_##suffix(enum pwi_factor_set set, size_t rows, size_t columns, size_t pairs,             \
                                       const type *u, const type *v, type *matrix) {                                   \
    static void (*const all[])(size_t, size_t, size_t, const type *, const type *,                                     \
                               type *) = {plain_multiply_##suffix, fma_multiply_##suffix, avx512_multiply_##suffix};   \
    all[set](rows, columns, pairs, u, v, matrix);                                                                      \
  }                                                                                                                    \
  void pwi_factor_multiply_##suffix(size_t rows, size_t columns, size_t pairs, const type *u, const type *v,           \
                                    type *matrix) {                                                                    \
    pwi_factor_multiply_by_##suffix(pwi_factor_set(), rows, columns, pairs, u, v, matrix);                             \
  }                                                                                                                    \
  void pwi_factor_rank_one_##suffix(size_t columns, const struct pwi_factor_side *u, const struct pwi_factor_side *v,  \
                                    type *matrix) {                                                                    \
    static void (*const all[])(size_t, const struct pwi_factor_side *, const struct pwi_factor_side *,                 \
                               type *) = {plain_rank_one_##suffix, fma_rank_one_##suffix, avx512_rank_one_##suffix};   \
    all[pwi_factor_set()](columns, u, v, matrix);                                                                      \
  }

BY_SET(float, f32)
BY_SET(double, f64)
