/* A slow and plain implementation of the sampler in double precision, without blocks, tiles and padding: for tests to
 * compare with. It draws its normal numbers from the same functions. */
#ifndef BPMF_REFERENCE_TEST_H
#define BPMF_REFERENCE_TEST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bpmf/random.h"
#include "base/testing.h"

#define REFERENCE_MAX 160 /* highest rank */

/* A = L L', in place, and 0 above the diagonal. */
static inline void reference_cholesky(double *a, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j <= i; j++) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
      if (i == j) assert_true(sum > 0);
      a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
      if (i != j) a[j * n + i] = 0;
    }
}

/* x = L^-1 x, and x = L'^-1 x. */
static inline void reference_forward(const double *l, size_t n, double *x) {
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) x[i] -= l[i * n + k] * x[k];
    x[i] /= l[i * n + i];
  }
}

static inline void reference_backward(const double *l, size_t n, double *x) {
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; k++) x[i] -= l[k * n + i] * x[k];
    x[i] /= l[i * n + i];
  }
}

/* A^-1, where A = L L'. */
static inline void reference_inverse(const double *l, size_t n, double *inverse) {
  double *column = calloc(n, sizeof *column);
  for (size_t c = 0; c < n; c++) {
    for (size_t i = 0; i < n; i++) column[i] = i == c;
    reference_forward(l, n, column);
    reference_backward(l, n, column);
    for (size_t i = 0; i < n; i++) inverse[i * n + c] = column[i];
  }
  free(column);
}

/* Draws from N(A^-1 b, A^-1) with this noise: b becomes the draw, A its factor. */
static inline void reference_draw(double *a, double *b, const double *noise, size_t n) {
  reference_cholesky(a, n);
  reference_forward(a, n, b);
  for (size_t i = 0; i < n; i++) b[i] += noise[i];
  reference_backward(a, n, b);
}

/* Lambda ~ Wishart(W, freedom), by Bartlett with the lower factor of W. */
static inline void reference_wishart(const double *w, size_t n, double freedom, struct apps_random *random,
                                     double *lambda) {
  double *c = malloc(n * n * sizeof *c), *b = calloc(n * n, sizeof *b), *t = calloc(n * n, sizeof *t);
  memcpy(c, w, n * n * sizeof *c);
  reference_cholesky(c, n);
  for (size_t i = 0; i < n; i++) {
    b[i * n + i] = sqrt(2 * bpmf_gamma(random, (freedom - (double)i) / 2));
    for (size_t j = 0; j < i; j++) b[i * n + j] = bpmf_normal(random);
  }
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t k = 0; k < n; k++) t[i * n + j] += c[i * n + k] * b[k * n + j];
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      lambda[i * n + j] = 0;
      for (size_t k = 0; k < n; k++) lambda[i * n + j] += t[i * n + k] * t[j * n + k];
    }
  free(c);
  free(b);
  free(t);
}

/* --- the whole sampler ------------------------------------------------------------------------------------ */

struct reference_rating {
  uint32_t row[2]; /* user, item */
  double value;
};

struct reference {
  size_t rank, rows[2], count;
  const struct reference_rating *ratings;
  double alpha, mean;
  double *x[2]; /* rows */
  struct apps_random random;
};

/* Salakhutdinov and Mnih, equation 14, term by term. */
static inline void reference_hyper(struct reference *is, int side, double *mu, double *lambda) {
  size_t n = is->rank, rows = is->rows[side];
  double beta = 2, count = (double)rows, *xbar = calloc(n, sizeof *xbar), *s = calloc(n * n, sizeof *s);
  double *inverse = calloc(n * n, sizeof *inverse), *w = calloc(n * n, sizeof *w);
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < n; k++) xbar[k] += is->x[side][i * n + k] / count;
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < n; k++)
      for (size_t l = 0; l < n; l++)
        s[k * n + l] += (is->x[side][i * n + k] - xbar[k]) * (is->x[side][i * n + l] - xbar[l]);
  for (size_t k = 0; k < n; k++)
    for (size_t l = 0; l < n; l++)
      inverse[k * n + l] = (k == l) + s[k * n + l] + beta * count / (beta + count) * xbar[k] * xbar[l];
  reference_cholesky(inverse, n);
  reference_inverse(inverse, n, w);
  reference_wishart(w, n, (double)n + count, &is->random, lambda);
  double *factor = malloc(n * n * sizeof *factor);
  for (size_t i = 0; i < n * n; i++) factor[i] = lambda[i] * (beta + count);
  reference_cholesky(factor, n);
  for (size_t k = 0; k < n; k++) mu[k] = bpmf_normal(&is->random);
  reference_backward(factor, n, mu);
  for (size_t k = 0; k < n; k++) mu[k] += count * xbar[k] / (beta + count);
  free(factor);
  free(xbar);
  free(s);
  free(inverse);
  free(w);
}

static inline void reference_rows(struct reference *is, int side, const double *mu, const double *lambda) {
  size_t n = is->rank;
  double *a = malloc(n * n * sizeof *a), *b = malloc(n * sizeof *b), noise[REFERENCE_MAX];
  for (size_t row = 0; row < is->rows[side]; row++) {
    memcpy(a, lambda, n * n * sizeof *a);
    for (size_t k = 0; k < n; k++) {
      b[k] = 0;
      for (size_t l = 0; l < n; l++) b[k] += lambda[k * n + l] * mu[l];
    }
    for (size_t i = 0; i < is->count; i++) {
      if (is->ratings[i].row[side] != row) continue;
      const double *v = is->x[1 - side] + is->ratings[i].row[1 - side] * n;
      for (size_t k = 0; k < n; k++) {
        b[k] += is->alpha * (is->ratings[i].value - is->mean) * v[k];
        for (size_t l = 0; l < n; l++) a[k * n + l] += is->alpha * v[k] * v[l];
      }
    }
    for (size_t k = 0; k < n; k++) noise[k] = bpmf_normal(&is->random);
    reference_draw(a, b, noise, n);
    memcpy(is->x[side] + row * n, b, n * sizeof *b);
  }
  free(a);
  free(b);
}

static inline void reference_step(struct reference *is) {
  double *mu = malloc(is->rank * sizeof *mu), *lambda = malloc(is->rank * is->rank * sizeof *lambda);
  for (int side = 0; side < 2; side++) {
    reference_hyper(is, side, mu, lambda);
    reference_rows(is, side, mu, lambda);
  }
  free(mu);
  free(lambda);
}

static inline void reference_init(struct reference *is, uint64_t seed) {
  bpmf_random_prepare();
  is->random = bpmf_random_of(seed, BPMF_FOR_ROWS, 7, 0, 0);
  is->mean = 0;
  for (size_t i = 0; i < is->count; i++) is->mean += is->ratings[i].value / (double)is->count;
  for (int side = 0; side < 2; side++) {
    is->x[side] = malloc(is->rows[side] * is->rank * sizeof *is->x[side]);
    for (size_t i = 0; i < is->rows[side] * is->rank; i++) is->x[side][i] = 0.3 * bpmf_normal(&is->random);
  }
}

static inline void reference_fini(struct reference *is) {
  free(is->x[0]);
  free(is->x[1]);
}

static inline double reference_predict(const struct reference *is, uint32_t user, uint32_t item) {
  double sum = is->mean;
  for (size_t k = 0; k < is->rank; k++) sum += is->x[0][user * is->rank + k] * is->x[1][item * is->rank + k];
  return sum;
}

#endif
