/* The objective once more, slow and plain, and its minimum by accelerated gradient steps over all rows. */
#ifndef MLR_REFERENCE_TEST_H
#define MLR_REFERENCE_TEST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/mlr/rows.h"

struct reference {
  const struct pawl_mlr_rows *rows;
  size_t classes, width; /* width: features and the constant */
  bool has_bias;
  double l2;
};

static inline struct reference reference_of(const struct pawl_mlr_rows *rows, double l2, bool has_bias) {
  return (struct reference){rows, rows->info.classes, (size_t)rows->info.features + has_bias, has_bias, l2};
}

/* The value of a feature in a row. */
static inline double reference_value(const struct reference *is, size_t row, size_t feature) {
  if (feature == is->rows->info.features) return 1;
  for (uint64_t n = is->rows->starts[row]; n < is->rows->starts[row + 1]; n++)
    if (is->rows->at[n] == feature) return (double)is->rows->values[n];
  return 0;
}

/* The objective at `w`, width x classes, and its slope, unless that is NULL. */
static inline double reference_objective(const struct reference *is, const double *w, double *slope) {
  double sum = 0, *z = calloc(is->classes, sizeof *z);
  for (size_t i = 0; i < is->width * is->classes; i++) {
    sum += is->l2 / 2 * w[i] * w[i];
    if (slope) slope[i] = is->l2 * w[i];
  }
  for (size_t row = 0; row < is->rows->info.rows; row++) {
    double total = 0, most = -INFINITY;
    size_t own = is->rows->classes[row];
    for (size_t j = 0; j < is->classes; j++) {
      z[j] = 0;
      for (size_t d = 0; d < is->width; d++) z[j] += w[d * is->classes + j] * reference_value(is, row, d);
      most = fmax(most, z[j]);
    }
    for (size_t j = 0; j < is->classes; j++) total += exp(z[j] - most);
    sum += most + log(total) - z[own];
    for (size_t j = 0; slope && j < is->classes; j++)
      for (size_t d = 0; d < is->width; d++)
        slope[d * is->classes + j] += (exp(z[j] - most) / total - (j == own)) * reference_value(is, row, d);
  }
  free(z);
  return sum;
}

/* The minimum, to about 12 digits: Nesterov's method, which begins anew whenever the objective rises. */
static inline double reference_minimum(const struct reference *is, int steps) {
  size_t size = is->width * is->classes;
  double bend = is->l2, *w = calloc(size, sizeof *w), *y = calloc(size, sizeof *y),
         *slope = calloc(size, sizeof *slope);
  double last = INFINITY, best = INFINITY, t = 1;
  for (size_t row = 0; row < is->rows->info.rows; row++)
    for (size_t d = 0; d < is->width; d++) bend += 0.5 * pow(reference_value(is, row, d), 2);
  for (int i = 0; i < steps; i++) {
    double now = reference_objective(is, y, slope), next = (1 + sqrt(1 + 4 * t * t)) / 2;
    best = fmin(best, now);
    if (now > last) {
      t = next = 1;
      memcpy(y, w, size * sizeof *y);
      last = INFINITY;
      continue;
    }
    last = now;
    for (size_t n = 0; n < size; n++) {
      double to = y[n] - slope[n] / bend;
      y[n] = to + (t - 1) / next * (to - w[n]);
      w[n] = to;
    }
    t = next;
  }
  free(w);
  free(y);
  free(slope);
  return best;
}

#endif
