/* The proximal operator of the trace norm, by a singular value decomposition with rotations (one-sided Jacobi; Golub and
 * Van Loan, 8.6.3).
 *
 * The shorter side of the matrix gives m vectors of n values. Rotations of two vectors at a time make all of them
 * orthogonal: R A = D, whose lengths are the singular values. Each vector of D is shortened, and the rotations are taken
 * back: the result is R' D. */
#include <float.h>
#include <math.h>

#include "base/checked.h"
#include "peer/factor/prox.h"

#define SWEEPS 60 /* about ten are needed */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t most(size_t a, size_t b) { return a < b ? b : a; }

bool pwi_factor_trace_memory(size_t rows, size_t columns, size_t *count_out) {
  size_t m = least(rows, columns), n = most(rows, columns), vectors, rotations;
  return pwi_mul_size(m, n, &vectors) && pwi_mul_size(m, m, &rotations) &&
         pwi_add_size(vectors, rotations, count_out) && pwi_add_size(*count_out, n, count_out);
}

/* Value k of vector i in the matrix. */
static size_t place(size_t rows, size_t columns, size_t i, size_t k) {
  return rows <= columns ? i * columns + k : k * columns + i;
}

static double dot(const double *a, const double *b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

static void rotate(double *a, double *b, size_t count, double cosine, double sine) {
  for (size_t i = 0; i < count; i++) {
    double one = a[i], two = b[i];
    a[i] = cosine * one - sine * two;
    b[i] = sine * one + cosine * two;
  }
}

/* Makes two vectors orthogonal; false if they were, to within rounding. */
static bool separate(double *a, double *b, size_t n, double *turns_a, double *turns_b, size_t m) {
  double aa = dot(a, a, n), bb = dot(b, b, n), ab = dot(a, b, n);
  if (fabs(ab) <= 1e-15 * sqrt(aa) * sqrt(bb) || fabs(ab) < DBL_MIN) return false;
  double half = (bb - aa) / (2 * ab), tangent = (half < 0 ? -1 : 1) / (fabs(half) + sqrt(1 + half * half));
  double cosine = 1 / sqrt(1 + tangent * tangent), sine = cosine * tangent;
  rotate(a, b, n, cosine, sine);
  rotate(turns_a, turns_b, m, cosine, sine);
  return true;
}

static void decompose(double *vectors, double *turns, size_t m, size_t n) {
  bool has_turned = true;
  for (size_t i = 0; i < m * m; i++) turns[i] = i % (m + 1) == 0;
  for (int sweep = 0; has_turned && sweep < SWEEPS; sweep++) {
    has_turned = false;
    for (size_t i = 0; i + 1 < m; i++)
      for (size_t j = i + 1; j < m; j++)
        has_turned |= separate(vectors + i * n, vectors + j * n, n, turns + i * m, turns + j * m, m);
  }
}

/* Divides by the largest value, so that no square overflows. */
static double load(size_t rows, size_t columns, bool is_double, const void *matrix, double *vectors) {
  size_t m = least(rows, columns), n = most(rows, columns);
  double largest = 0;
  bool is_finite = true;
  for (size_t i = 0; i < m; i++)
    for (size_t k = 0; k < n; k++) {
      size_t at = place(rows, columns, i, k);
      double value = is_double ? ((const double *)matrix)[at] : (double)((const float *)matrix)[at];
      vectors[i * n + k] = value;
      is_finite &= isfinite(value) != 0;
      largest = fmax(largest, fabs(value));
    }
  for (size_t i = 0; i < m * n && largest > 0; i++) vectors[i] /= largest;
  return is_finite ? largest : (double)NAN;
}

pawl_status pwi_factor_trace(size_t rows, size_t columns, bool is_double, double by, double *memory, void *matrix) {
  size_t m = least(rows, columns), n = most(rows, columns);
  double *vectors = memory, *turns = vectors + m * n, *sum = turns + m * m;
  double largest = load(rows, columns, is_double, matrix, vectors);
  if (!isfinite(largest)) return PAWL_DIVERGED;
  if (largest == 0) return PAWL_OK;
  decompose(vectors, turns, m, n);
  for (size_t i = 0; i < m; i++) {
    double length = sqrt(dot(vectors + i * n, vectors + i * n, n));
    double times = length * largest > by ? 1 - by / (length * largest) : 0;
    for (size_t k = 0; k < n; k++) vectors[i * n + k] *= times * largest;
  }
  for (size_t i = 0; i < m; i++) {
    for (size_t k = 0; k < n; k++) sum[k] = 0;
    for (size_t j = 0; j < m; j++)
      for (size_t k = 0; k < n; k++) sum[k] += turns[j * m + i] * vectors[j * n + k];
    for (size_t k = 0; k < n; k++) {
      size_t at = place(rows, columns, i, k);
      if (is_double)
        ((double *)matrix)[at] = sum[k];
      else
        ((float *)matrix)[at] = (float)sum[k];
    }
  }
  return PAWL_OK;
}
