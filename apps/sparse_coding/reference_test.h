/* The method once more, slow and plain: codes by FISTA (Beck and Teboulle 2009) with the whole matrix, and the online method row
 * by row and number by number. */
#ifndef SPARSE_REFERENCE_TEST_H
#define SPARSE_REFERENCE_TEST_H

#include <math.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/sparse_coding/rows.h"

/* 1/2 |x - B a|^2 + lambda |a|_1; `slope_out`, which may be NULL, gets -B'(x - B a). */
static inline double plain_objective(size_t atoms, size_t features, const double *b, const double *x, double lambda,
                                     const double *a, double *slope_out) {
  double sum = 0, *rest = apps_alloc_zero(features, sizeof *rest);
  for (size_t d = 0; d < features; d++) {
    rest[d] = x[d];
    for (size_t j = 0; j < atoms; j++) rest[d] -= b[j * features + d] * a[j];
    sum += rest[d] * rest[d] / 2;
  }
  for (size_t j = 0; j < atoms; j++) sum += lambda * fabs(a[j]);
  for (size_t j = 0; slope_out && j < atoms; j++) {
    slope_out[j] = 0;
    for (size_t d = 0; d < features; d++) slope_out[j] -= b[j * features + d] * rest[d];
  }
  apps_free(rest);
  return sum;
}

/* P - D for the dual point s (x - B a), s = min(1, lambda / |B'(x - B a)|max). */
static inline double plain_gap(size_t atoms, size_t features, const double *b, const double *x, double lambda,
                               const double *a) {
  double *slope = apps_alloc_zero(atoms, sizeof *slope), largest = 0, cross = 0, square = 0;
  double objective = plain_objective(atoms, features, b, x, lambda, a, slope);
  for (size_t j = 0; j < atoms; j++) largest = fmax(largest, fabs(slope[j]));
  for (size_t d = 0; d < features; d++) {
    double rest = x[d];
    for (size_t j = 0; j < atoms; j++) rest -= b[j * features + d] * a[j];
    cross += x[d] * rest;
    square += rest * rest;
  }
  double s = largest > lambda ? lambda / largest : 1;
  apps_free(slope);
  return objective - s * cross + s * s * square / 2;
}

/* Codes by FISTA, until the gap is at most `tolerance` times the objective. Returns the objective. */
static inline double plain_code(size_t atoms, size_t features, const double *b, const double *x, double lambda,
                                double tolerance, double *a) {
  double *y = apps_alloc_zero(atoms, sizeof *y), *slope = apps_alloc_zero(atoms, sizeof *slope), bend = 1e-12, t = 1;
  for (size_t i = 0; i < atoms * features; i++) bend += b[i] * b[i]; /* at least the largest eigenvalue of B'B */
  memset(a, 0, atoms * sizeof *a);
  for (int step = 0; step < 200000; step++) {
    if (step % 20 == 0 && plain_gap(atoms, features, b, x, lambda, a) <=
                              tolerance * plain_objective(atoms, features, b, x, lambda, a, NULL))
      break;
    plain_objective(atoms, features, b, x, lambda, y, slope);
    double next = (1 + sqrt(1 + 4 * t * t)) / 2;
    for (size_t j = 0; j < atoms; j++) {
      double to = y[j] - slope[j] / bend, size = fabs(to) - lambda / bend, now = size > 0 ? copysign(size, to) : 0;
      y[j] = now + (t - 1) / next * (now - a[j]);
      a[j] = now;
    }
    t = next;
  }
  apps_free(y);
  apps_free(slope);
  return plain_objective(atoms, features, b, x, lambda, a, NULL);
}

/* One pass of the online method over all rows in their order, from the atoms in `b`: batches, sums without forgetting, one
 * round of block coordinate descent each. Then measures: returns the objective of all rows. Codes are found up to a gap of
 * `tolerance`. */
static inline double plain_epoch(const struct sparse_view *view, size_t atoms, size_t batch, double lambda,
                                 double tolerance, double *b) {
  size_t features = view->features, rows = (size_t)view->rows->info.rows;
  double *c = apps_alloc_zero(atoms * features, sizeof *c), *s = apps_alloc_zero(atoms * atoms, sizeof *s);
  double *x = apps_alloc_zero(features, sizeof *x), *a = apps_alloc_zero(atoms, sizeof *a), sum = 0;
  for (size_t i = 0; i < rows; i++) {
    sparse_view_get(view, i, x);
    plain_code(atoms, features, b, x, lambda, tolerance, a);
    for (size_t j = 0; j < atoms; j++) {
      for (size_t d = 0; d < features; d++) c[j * features + d] += a[j] * x[d];
      for (size_t k = 0; k < atoms; k++) s[j * atoms + k] += a[j] * a[k];
    }
    if ((i + 1) % batch != 0 && i + 1 < rows) continue;
    for (size_t j = 0; j < atoms; j++) {
      double square = 0;
      if (s[j * atoms + j] == 0) continue;
      for (size_t d = 0; d < features; d++) {
        double slope = c[j * features + d];
        for (size_t k = 0; k < atoms; k++) slope -= s[j * atoms + k] * b[k * features + d];
        x[d] = b[j * features + d] + slope / s[j * atoms + j];
        square += x[d] * x[d];
      }
      for (size_t d = 0; d < features; d++) b[j * features + d] = x[d] / fmax(1, sqrt(square));
    }
  }
  for (size_t i = 0; i < rows; i++) {
    sparse_view_get(view, i, x);
    sum += plain_code(atoms, features, b, x, lambda, tolerance, a);
  }
  apps_free(c);
  apps_free(s);
  apps_free(x);
  apps_free(a);
  return sum;
}

#endif
