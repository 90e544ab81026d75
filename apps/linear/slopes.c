/* Slopes in vectors: see slopes.h. */
#include "apps/linear/slopes.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "apps/linear/losses.h"

/* exp(x) for x <= 0, to about 2e-7 of itself: 2^n e^r with |r| <= ln 2 / 2. Below -87, and for what is no number, it is
 * exp(-87), which is next to nothing. */
static inline float exp_below_zero(float x) {
  x = x > -87.0f ? x : -87.0f;
  int n = (int)(x * 1.44269504f - 0.5f);
  float r = x - (float)n * 0.693359375f - (float)n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  int32_t bits;
  memcpy(&bits, &p, sizeof bits);
  bits += n * (1 << 23);
  memcpy(&p, &bits, sizeof p);
  return p;
}

static inline float largest(float a, float b) { return a > b ? a : b; }

static void logistic(size_t count, const float *restrict y, const float *restrict z, const float *restrict c,
                     float *restrict pairs) {
  for (size_t i = 0; i < count; i++) {
    float m = y[i] * z[i], away = m < 0 ? -m : m;
    float e = exp_below_zero(-away), right = 1 / (1 + e); /* the probability of the likelier class */
    float wrong = m < 0 ? right : e * right;              /* that of the class that the row is not */
    float bound = (right - 0.5f) / (away + 1e-6f) * 0.125f;
    pairs[2 * i] = -c[i] * y[i] * wrong;
    pairs[2 * i + 1] = c[i] * largest(e * right * right, bound);
  }
}

static void squared_hinge(size_t count, const float *restrict y, const float *restrict z, const float *restrict c,
                          float *restrict pairs) {
  for (size_t i = 0; i < count; i++) {
    float short_by = 1 - y[i] * z[i];
    pairs[2 * i] = -2 * c[i] * y[i] * largest(short_by, 0);
    pairs[2 * i + 1] = c[i] * (short_by > 0 ? 2.0f : 0.25f);
  }
}

static void squared(size_t count, const float *restrict y, const float *restrict z, const float *restrict c,
                    float *restrict pairs) {
  for (size_t i = 0; i < count; i++) {
    pairs[2 * i] = c[i] * (z[i] - y[i]);
    pairs[2 * i + 1] = c[i];
  }
}

void linear_slopes(enum linear_loss loss, size_t count, const float *y, const float *z, const float *c, float *pairs) {
  if (loss == LINEAR_LOGISTIC)
    logistic(count, y, z, c, pairs);
  else if (loss == LINEAR_SQUARED_HINGE)
    squared_hinge(count, y, z, c, pairs);
  else
    squared(count, y, z, c, pairs);
}

/* log(1 + e) for e in [0, 1], by the series of 2 artanh(e / (2 + e)). */
static inline double log_above_one(double e) {
  double s = e / (2 + e), q = s * s;
  double sum = 1.0 / 15;
  sum = sum * q + 1.0 / 13;
  sum = sum * q + 1.0 / 11;
  sum = sum * q + 1.0 / 9;
  sum = sum * q + 1.0 / 7;
  sum = sum * q + 1.0 / 5;
  sum = sum * q + 1.0 / 3;
  return 2 * s * (sum * q + 1);
}

static double logistic_losses(size_t count, const float *y, const double *z, const float *c) {
  double sums[8] = {0}, all = 0;
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t k = 0; k < 8; k++) {
      double m = (double)y[i + k] * z[i + k], away = m < 0 ? -m : m;
      double e = (double)exp_below_zero((float)-away);
      sums[k] += (double)c[i + k] * (log_above_one(e) + (m > 0 ? 0 : away)); /* what is no number stays none */
    }
  for (; i < count; i++) all += (double)c[i] * linear_log_loss((double)y[i] * z[i]);
  for (size_t k = 0; k < 8; k++) all += sums[k];
  return all;
}

double linear_losses(enum linear_loss loss, size_t count, const float *y, const double *z, const float *c) {
  if (loss == LINEAR_LOGISTIC) return logistic_losses(count, y, z, c);
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += (double)c[i] * linear_loss_value(loss, (double)y[i], z[i]);
  return sum;
}
