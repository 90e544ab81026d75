/* The loops of kernel.h. A source defines BPMF_TARGET, the attribute of its functions, and includes this file.
 *
 * Loops are written with the compiler's vectors of 8 floats and 4 doubles, which become two where the processor has
 * shorter ones. A block of 8 x 4 of a Gram matrix needs 8 of them as sums, which stay in registers.
 */
#ifndef BPMF_KERNEL_LOOPS_H
#define BPMF_KERNEL_LOOPS_H

#include <math.h>
#include <string.h>

#include "apps/bpmf/kernel.h"

#define BPMF_INLINE static inline BPMF_TARGET __attribute__((always_inline))

/* They may lie anywhere, and are read from arrays of their elements. */
typedef float bpmf_floats8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double bpmf_doubles4 __attribute__((vector_size(32), aligned(8), may_alias));

BPMF_INLINE void gram_block(const double *panel, size_t count, size_t width, size_t row, size_t column, double factor,
                            double *matrix) {
  bpmf_doubles4 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
  for (size_t n = 0; n < count; n++, panel += width) {
    bpmf_doubles4 across = *(const bpmf_doubles4 *)(panel + column);
    const double *down = panel + row;
    s0 += down[0] * across;
    s1 += down[1] * across;
    s2 += down[2] * across;
    s3 += down[3] * across;
    s4 += down[4] * across;
    s5 += down[5] * across;
    s6 += down[6] * across;
    s7 += down[7] * across;
  }
  double *to = matrix + row * width + column;
  *(bpmf_doubles4 *)to += factor * s0;
  *(bpmf_doubles4 *)(to + width) += factor * s1;
  *(bpmf_doubles4 *)(to + 2 * width) += factor * s2;
  *(bpmf_doubles4 *)(to + 3 * width) += factor * s3;
  *(bpmf_doubles4 *)(to + 4 * width) += factor * s4;
  *(bpmf_doubles4 *)(to + 5 * width) += factor * s5;
  *(bpmf_doubles4 *)(to + 6 * width) += factor * s6;
  *(bpmf_doubles4 *)(to + 7 * width) += factor * s7;
}

BPMF_INLINE void gram_loops(const double *panel, const float *values, size_t count, size_t width, double factor,
                            double *matrix, double *vector) {
  for (size_t row = 0; row < width; row += 8)
    for (size_t column = row; column < width; column += 4) gram_block(panel, count, width, row, column, factor, matrix);
  for (size_t column = 0; values && column < width; column += 4) {
    bpmf_doubles4 sum = {0};
    for (size_t n = 0; n < count; n++) sum += (double)values[n] * *(const bpmf_doubles4 *)(panel + n * width + column);
    *(bpmf_doubles4 *)(vector + column) += factor * sum;
  }
}

/* A row as doubles. */
BPMF_INLINE void widen_loops(const float *row, size_t width, double *to) {
  for (size_t i = 0; i < width; i++) to[i] = (double)row[i];
}

/* Scales row j to a row of R, and subtracts it from the rows below it up to `end`. */
BPMF_INLINE bool factor_row(double *matrix, size_t width, size_t j, size_t end, double *inverse) {
  double *row = matrix + j * width, pivot = row[j];
  if (!(pivot > 0) || !(pivot < (double)INFINITY)) return false;
  double scale = 1 / sqrt(pivot);
  inverse[j] = scale;
  for (size_t c = j & ~(size_t)3; c < width; c += 4) *(bpmf_doubles4 *)(row + c) *= scale;
  for (size_t i = j + 1; i < end; i++) {
    double *below = matrix + i * width, times = row[i];
    for (size_t c = i & ~(size_t)3; c < width; c += 4)
      *(bpmf_doubles4 *)(below + c) -= times * *(const bpmf_doubles4 *)(row + c);
  }
  return true;
}

/* Four rows at a time: each of them first, then all rows below them once. Vectors begin at multiples of 4, so elements
 * below the diagonal change as well; nothing reads them. */
BPMF_INLINE bool factor_loops(double *matrix, size_t width, double *inverse) {
  for (size_t j = 0; j < width; j += 4) {
    const double *r0 = matrix + j * width, *r1 = r0 + width, *r2 = r1 + width, *r3 = r2 + width;
    for (size_t k = j; k < j + 4; k++)
      if (!factor_row(matrix, width, k, j + 4, inverse)) return false;
    for (size_t i = j + 4; i < width; i++) {
      double *below = matrix + i * width, t0 = r0[i], t1 = r1[i], t2 = r2[i], t3 = r3[i];
      for (size_t c = i & ~(size_t)3; c < width; c += 4) {
        bpmf_doubles4 sum = *(const bpmf_doubles4 *)(below + c);
        sum -= t0 * *(const bpmf_doubles4 *)(r0 + c);
        sum -= t1 * *(const bpmf_doubles4 *)(r1 + c);
        sum -= t2 * *(const bpmf_doubles4 *)(r2 + c);
        sum -= t3 * *(const bpmf_doubles4 *)(r3 + c);
        *(bpmf_doubles4 *)(below + c) = sum;
      }
    }
  }
  return true;
}

BPMF_INLINE double sum4(const bpmf_doubles4 *sums) {
  double values[4];
  memcpy(values, sums, sizeof values);
  return (values[0] + values[1]) + (values[2] + values[3]);
}

/* Four unknowns at a time, which are stored as one vector: a vector that is read just after one of its elements was
 * written would wait for that element to reach the cache. */
BPMF_INLINE void solve_loops(const double *matrix, const double *inverse, const double *noise, size_t width,
                             double *x) {
  for (size_t i = 0; i < width; i += 4) { /* R'y = x */
    const double *r0 = matrix + i * width, *r1 = r0 + width, *r2 = r1 + width, *r3 = r2 + width;
    double y0 = x[i] * inverse[i], y1 = (x[i + 1] - r0[i + 1] * y0) * inverse[i + 1];
    double y2 = (x[i + 2] - r0[i + 2] * y0 - r1[i + 2] * y1) * inverse[i + 2];
    double y3 = (x[i + 3] - r0[i + 3] * y0 - r1[i + 3] * y1 - r2[i + 3] * y2) * inverse[i + 3];
    for (size_t c = i + 4; c < width; c += 4) {
      bpmf_doubles4 sum = *(const bpmf_doubles4 *)(x + c);
      sum -= y0 * *(const bpmf_doubles4 *)(r0 + c);
      sum -= y1 * *(const bpmf_doubles4 *)(r1 + c);
      sum -= y2 * *(const bpmf_doubles4 *)(r2 + c);
      sum -= y3 * *(const bpmf_doubles4 *)(r3 + c);
      *(bpmf_doubles4 *)(x + c) = sum;
    }
    *(bpmf_doubles4 *)(x + i) = (bpmf_doubles4){y0, y1, y2, y3} + *(const bpmf_doubles4 *)(noise + i);
  }
  for (size_t i = width; i > 0;) { /* R x = y + noise, from the last rows */
    i -= 4;
    const double *r0 = matrix + i * width, *r1 = r0 + width, *r2 = r1 + width, *r3 = r2 + width;
    bpmf_doubles4 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (size_t c = i + 4; c < width; c += 4) {
      bpmf_doubles4 known = *(const bpmf_doubles4 *)(x + c);
      s0 += known * *(const bpmf_doubles4 *)(r0 + c);
      s1 += known * *(const bpmf_doubles4 *)(r1 + c);
      s2 += known * *(const bpmf_doubles4 *)(r2 + c);
      s3 += known * *(const bpmf_doubles4 *)(r3 + c);
    }
    double x3 = (x[i + 3] - sum4(&s3)) * inverse[i + 3];
    double x2 = (x[i + 2] - sum4(&s2) - r2[i + 3] * x3) * inverse[i + 2];
    double x1 = (x[i + 1] - sum4(&s1) - r1[i + 2] * x2 - r1[i + 3] * x3) * inverse[i + 1];
    double x0 = (x[i] - sum4(&s0) - r0[i + 1] * x1 - r0[i + 2] * x2 - r0[i + 3] * x3) * inverse[i];
    *(bpmf_doubles4 *)(x + i) = (bpmf_doubles4){x0, x1, x2, x3};
  }
}

BPMF_INLINE float dot_loops(const float *a, const float *b, size_t width) {
  bpmf_floats8 sum = {0};
  float values[8];
  for (size_t i = 0; i < width; i += 8) sum += *(const bpmf_floats8 *)(a + i) * *(const bpmf_floats8 *)(b + i);
  memcpy(values, &sum, sizeof values);
  return ((values[0] + values[1]) + (values[2] + values[3])) + ((values[4] + values[5]) + (values[6] + values[7]));
}

static BPMF_TARGET void widen_any(const float *row, size_t width, double *to) { widen_loops(row, width, to); }

static BPMF_TARGET float dot_any(const float *a, const float *b, size_t width) { return dot_loops(a, b, width); }

/* The functions of one width, which the compiler knows. */
#define BPMF_FUNCTIONS(known)                                                                                          \
  static BPMF_TARGET void gram_##known(const double *panel, const float *values, size_t count, size_t width,           \
                                       double factor, double *matrix, double *vector) {                                \
    (void)width;                                                                                                       \
    gram_loops(panel, values, count, known, factor, matrix, vector);                                                   \
  }                                                                                                                    \
  static BPMF_TARGET bool factor_##known(double *matrix, size_t width, double *inverse) {                              \
    (void)width;                                                                                                       \
    return factor_loops(matrix, known, inverse);                                                                       \
  }                                                                                                                    \
  static BPMF_TARGET void solve_##known(const double *matrix, const double *inverse, const double *noise,              \
                                        size_t width, double *x) {                                                     \
    (void)width;                                                                                                       \
    solve_loops(matrix, inverse, noise, known, x);                                                                     \
  }                                                                                                                    \
  static BPMF_TARGET void widen_##known(const float *row, size_t width, double *to) {                                  \
    (void)width;                                                                                                       \
    widen_loops(row, known, to);                                                                                       \
  }

BPMF_FUNCTIONS(8)
BPMF_FUNCTIONS(16)
BPMF_FUNCTIONS(24)
BPMF_FUNCTIONS(32)

static BPMF_TARGET void gram_any(const double *panel, const float *values, size_t count, size_t width, double factor,
                                 double *matrix, double *vector) {
  gram_loops(panel, values, count, width, factor, matrix, vector);
}

static BPMF_TARGET bool factor_any(double *matrix, size_t width, double *inverse) {
  return factor_loops(matrix, width, inverse);
}

static BPMF_TARGET void solve_any(const double *matrix, const double *inverse, const double *noise, size_t width,
                                  double *x) {
  solve_loops(matrix, inverse, noise, width, x);
}

#define BPMF_KERNEL(label, known)                                                                                      \
  { label, widen_##known, gram_##known, factor_##known, solve_##known, dot_any }

#define BPMF_KERNELS(label)                                                                                            \
  {                                                                                                                    \
    BPMF_KERNEL(label, 8), BPMF_KERNEL(label, 16), BPMF_KERNEL(label, 24), BPMF_KERNEL(label, 32),                     \
        BPMF_KERNEL(label, any), {                                                                                     \
      label " lapack", widen_any, gram_any, bpmf_factor_large, solve_any, dot_any                                      \
    }                                                                                                                  \
  }

/* The place of a width in a list of kernels. */
static inline size_t bpmf_kernel_place(size_t width) {
  if (width <= BPMF_KNOWN_MAX) return width / 8 - 1;
  return width <= BPMF_OWN_MAX ? 4 : 5;
}

#endif
