/* The loops of multiply_loops.h for float and double, as they are and with AVX2. */
#include "peer/factor/multiply.h"

#define TARGET
#define VALUE float
#define WIDTH 4
#define NAME(word) plain_##word##_f32
#include "peer/factor/multiply_loops.h"
#define VALUE double
#define WIDTH 2
#define NAME(word) plain_##word##_f64
#include "peer/factor/multiply_loops.h"
#undef TARGET

void pwi_factor_multiply_plain_f32(size_t rows, size_t columns, size_t pairs, const float *u, const float *v,
                                   float *matrix) {
  plain_multiply_f32(rows, columns, pairs, u, v, matrix);
}

void pwi_factor_multiply_plain_f64(size_t rows, size_t columns, size_t pairs, const double *u, const double *v,
                                   double *matrix) {
  plain_multiply_f64(rows, columns, pairs, u, v, matrix);
}

#if defined(__x86_64__)

/* Not FMA, which does not round the product. */
#define TARGET __attribute__((target("avx2")))
#define VALUE float
#define WIDTH 8
#define NAME(word) avx2_##word##_f32
#include "peer/factor/multiply_loops.h"
#define VALUE double
#define WIDTH 4
#define NAME(word) avx2_##word##_f64
#include "peer/factor/multiply_loops.h"
#undef TARGET

void pwi_factor_multiply_f32(size_t rows, size_t columns, size_t pairs, const float *u, const float *v, float *matrix) {
  (__builtin_cpu_supports("avx2") ? avx2_multiply_f32 : plain_multiply_f32)(rows, columns, pairs, u, v, matrix);
}

void pwi_factor_multiply_f64(size_t rows, size_t columns, size_t pairs, const double *u, const double *v,
                             double *matrix) {
  (__builtin_cpu_supports("avx2") ? avx2_multiply_f64 : plain_multiply_f64)(rows, columns, pairs, u, v, matrix);
}

#else

void pwi_factor_multiply_f32(size_t rows, size_t columns, size_t pairs, const float *u, const float *v, float *matrix) {
  plain_multiply_f32(rows, columns, pairs, u, v, matrix);
}

void pwi_factor_multiply_f64(size_t rows, size_t columns, size_t pairs, const double *u, const double *v,
                             double *matrix) {
  plain_multiply_f64(rows, columns, pairs, u, v, matrix);
}

#endif
