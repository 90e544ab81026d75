/* The arithmetic of one row: a Gram matrix, a Cholesky factor, and two triangular systems.
 *
 * Rows of U and V are floats, padded with zeros to `width`, a multiple of 8. Matrices are doubles, width x width,
 * row by row; only their upper triangles count. Products of two floats are exact as doubles and are added up as such:
 * with floats, rows whose ratings say much about some directions and nothing about others would lose the latter.
 *
 * The loops use vectors of the compiler, and are compiled for any processor (kernel.c) and for x86-64 with AVX2
 * (kernel_avx2.c); up to rank 32 for each width. Above rank 128, LAPACK factors the matrix (kernel_large.c). Up to there
 * any number of threads may run the loops, while an OpenBLAS without threads serves one at a time.
 *
 * Pure. Results are the same on every machine that chooses the same kernel.
 */
#ifndef BPMF_KERNEL_H
#define BPMF_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BPMF_TILE 32      /* rows of a panel */
#define BPMF_KNOWN_MAX 32 /* highest width that loops are compiled for */
#define BPMF_OWN_MAX 128  /* highest width without LAPACK */

struct bpmf_kernel {
  const char *name; /* "avx2" or "plain"; with LAPACK, "avx2 lapack" or "plain lapack" */

  /* Copies a row as doubles. */
  void (*widen)(const float *row, size_t width, double *to);

  /* matrix += factor * P'P and vector += factor * P'values, where P has `count` rows, at most BPMF_TILE. `values` may be
   * NULL: then vector stays. */
  void (*gram)(const double *panel, const float *values, size_t count, size_t width, double factor, double *matrix,
               double *vector);

  /* Replaces the upper triangle of A by R, where A = R'R, and writes 1 / diagonal. False: A is not positive definite,
   * or not finite. */
  bool (*factor)(double *matrix, size_t width, double *inverse_out);

  /* x = R^-1 (R'^-1 x + noise): with A = R'R and standard normal noise, a draw from N(A^-1 x, A^-1). */
  void (*solve)(const double *matrix, const double *inverse, const double *noise, size_t width, double *x);

  /* The product of two rows. */
  float (*dot)(const float *a, const float *b, size_t width);
};

/* The width of rows of a rank. */
static inline size_t bpmf_width(uint32_t rank) { return ((size_t)rank + 7) / 8 * 8; }

/* The best kernel of this machine for rows of this width, or the one that runs on any machine. */
const struct bpmf_kernel *bpmf_kernel_best(size_t width);
const struct bpmf_kernel *bpmf_kernel_plain(size_t width);

/* For the two above: the kernels of kernel_avx2.c, NULL if this machine cannot run them; and factoring by LAPACK. */
const struct bpmf_kernel *bpmf_kernel_avx2(size_t width);
bool bpmf_factor_large(double *matrix, size_t width, double *inverse_out);

#endif
