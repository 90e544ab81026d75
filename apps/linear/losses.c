/* The descriptors of losses, with their loops over many rows: see losses.h. CMakeLists.txt compiles this file
 * with options that let compilers turn the loops into vectors. */
#include "apps/linear/losses.h"

#include <string.h>

/* exp(x) for x <= 0, with a relative error of about 2e-7: 2^n e^r with |r| <= ln 2 / 2. Below -87, and for
 * NAN, it is exp(-87). */
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
    /* probability of the class that the row does not have */
    float wrong = m < 0 ? right : e * right;
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
      /* NAN stays NAN */
      sums[k] += (double)c[i + k] * (log_above_one(e) + (m > 0 ? 0 : away));
    }
  for (; i < count; i++) all += (double)c[i] * linear_log_loss((double)y[i] * z[i]);
  for (size_t k = 0; k < 8; k++) all += sums[k];
  return all;
}

static double hinge_losses(size_t count, const float *y, const double *z, const float *c) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += (double)c[i] * linear_hinge_value((double)y[i], z[i]);
  return sum;
}

static double squared_hinge_losses(size_t count, const float *y, const double *z, const float *c) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += (double)c[i] * linear_squared_hinge_value((double)y[i], z[i]);
  return sum;
}

static double squared_losses(size_t count, const float *y, const double *z, const float *c) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += (double)c[i] * linear_squared_value((double)y[i], z[i]);
  return sum;
}

/* --- conjugates ----------------------------------------------------------------------------------------- */

static double entropy(double p) { return (p > 0 ? -p * log(p) : 0) - (p < 1 ? (1 - p) * log1p(-p) : 0); }

static double logistic_conjugate(double c, double a) { return c * entropy(a / c); }

static double squared_hinge_conjugate(double c, double a) { return a - a * a / (4 * c); }

static double hinge_conjugate(double c, double a) {
  (void)c;
  return a;
}

/* --- the table ------------------------------------------------------------------------------------------ */

static const struct linear_loss_descriptor linear_logistic = {.name = "logistic",
                                                              .is_smooth = true,
                                                              .curvature_varies = true,
                                                              .rate = 16,
                                                              .slopes = logistic,
                                                              .sum = logistic_losses,
                                                              .conjugate = logistic_conjugate};

static const struct linear_loss_descriptor linear_hinge = {
    .name = "hinge", .rate = 4, .sum = hinge_losses, .conjugate = hinge_conjugate};

static const struct linear_loss_descriptor linear_squared_hinge = {.name = "squared hinge",
                                                                   .rate = 4,
                                                                   .slopes = squared_hinge,
                                                                   .sum = squared_hinge_losses,
                                                                   .conjugate = squared_hinge_conjugate};

static const struct linear_loss_descriptor linear_squared = {
    .name = "squared", .is_smooth = true, .rate = 4, .slopes = squared, .sum = squared_losses};

#define ROW(NAME, prefix, is_regression, is_curved) [PAWL_LINEAR_##NAME] = &prefix,
static const struct linear_loss_descriptor *const table[] = {LINEAR_LOSSES(ROW)};

enum { COUNT = sizeof table / sizeof *table };

const struct linear_loss_descriptor *linear_loss_of(enum pawl_linear_loss loss) {
  return (size_t)loss < COUNT ? table[loss] : NULL;
}

bool linear_loss_find(const char *name, enum pawl_linear_loss *loss_out) {
  for (size_t i = 0; i < COUNT; i++)
    if (table[i] && strcmp(table[i]->name, name) == 0) {
      *loss_out = (enum pawl_linear_loss)i;
      return true;
    }
  return false;
}
