/* The losses of linear methods, as functions of a row's score z: value, slope, curvature; and the table of
 * them.
 *
 * Training and metrics share these functions, so `pawl predict` computes the same objective that training
 * minimised. y is -1 or +1, or any number for regression; m = y z is the margin. No score overflows to a
 * wrong result. A score that is not a number gives a result that is not a number. The functions are inlined,
 * and the compiler moves the choice of the loss out of a loop over rows.
 *
 * A new loss needs its number in <pawl/linear_model.h>, three functions here, a line in LINEAR_LOSSES, and
 * its descriptor in losses.c: docs/write-your-own-method.md.
 */
#ifndef LINEAR_LOSSES_H
#define LINEAR_LOSSES_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/linear_model.h>

/* The table: X(NAME, prefix of the functions, is regression, has curvature). The public header has the
 * numbers PAWL_LINEAR_NAME. Regression: labels are numbers, not two classes. Methods of second order need
 * curvature. */
#define LINEAR_LOSSES(X)                                                                                               \
  X(LOGISTIC, linear_logistic, false, true)                                                                            \
  X(HINGE, linear_hinge, false, false)                                                                                 \
  X(SQUARED_HINGE, linear_squared_hinge, false, true)                                                                  \
  X(SQUARED, linear_squared, true, true)

/* Sets of losses: bit `number` stands for a loss. */
#define LINEAR_LOSS_BIT(loss) (UINT32_C(1) << (loss))
#define LINEAR_LOSS_ANY(NAME, prefix, is_regression, is_curved) | LINEAR_LOSS_BIT(PAWL_LINEAR_##NAME)
#define LINEAR_LOSS_CURVED(NAME, prefix, is_regression, is_curved)                                                     \
  | (is_curved ? LINEAR_LOSS_BIT(PAWL_LINEAR_##NAME) : 0)
#define LINEAR_LOSS_NUMERIC(NAME, prefix, is_regression, is_curved)                                                    \
  | (is_regression ? LINEAR_LOSS_BIT(PAWL_LINEAR_##NAME) : 0)
#define LINEAR_ALL_LOSSES (UINT32_C(0) LINEAR_LOSSES(LINEAR_LOSS_ANY))
#define LINEAR_CURVED_LOSSES (UINT32_C(0) LINEAR_LOSSES(LINEAR_LOSS_CURVED))

static inline bool linear_is_regression(enum pawl_linear_loss loss) {
  return ((UINT32_C(0) LINEAR_LOSSES(LINEAR_LOSS_NUMERIC)) & LINEAR_LOSS_BIT(loss)) != 0;
}

/* 1 / (1 + exp(-z)): the probability of the second class that a score of the logistic loss stands for. */
static inline double linear_sigmoid(double z) {
  double e = exp(-fabs(z));
  return z < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* log(1 + exp(-m)) as max(0, -m) + log(1 + exp(-|m|)), which takes exp of negative numbers only. */
static inline double linear_log_loss(double m) { return (m < 0 ? -m : 0) + log1p(exp(-fabs(m))); }

static inline double linear_short_by(double y, double z) { return y * z >= 1 ? 0 : 1 - y * z; }

/* Logistic: log(1 + exp(-m)); its slope is -y / (1 + exp(m)); its curvature is p (1 - p) with
 * p = 1 / (1 + exp(-m)), at most 1/4. */
static inline double linear_logistic_value(double y, double z) { return linear_log_loss(y * z); }
static inline double linear_logistic_slope(double y, double z) {
  return -y / (1 + exp(y * z)); /* exp may become infinite, and the slope 0: as it should */
}
static inline double linear_logistic_curvature(double y, double z) {
  double e = exp(-fabs(y * z));
  return e / ((1 + e) * (1 + e));
}

/* Hinge: max(0, 1 - m). At the kink its slope is the one to the right. It has no curvature. */
static inline double linear_hinge_value(double y, double z) { return linear_short_by(y, z); }
static inline double linear_hinge_slope(double y, double z) { return y * z >= 1 ? 0 : -y; }
static inline double linear_hinge_curvature(double y, double z) {
  (void)y, (void)z;
  return 0;
}

/* Squared hinge: max(0, 1 - m)^2. It has no second derivative where m = 1; 0 is used there. */
static inline double linear_squared_hinge_value(double y, double z) {
  return linear_short_by(y, z) * linear_short_by(y, z);
}
static inline double linear_squared_hinge_slope(double y, double z) { return -2 * y * linear_short_by(y, z); }
static inline double linear_squared_hinge_curvature(double y, double z) { return y * z < 1 ? 2 : 0; }

/* Squared: (y - z)^2 / 2. */
static inline double linear_squared_value(double y, double z) { return (y - z) * (y - z) / 2; }
static inline double linear_squared_slope(double y, double z) { return z - y; }
static inline double linear_squared_curvature(double y, double z) {
  (void)y, (void)z;
  return 1;
}

/* The same three for a loss that is known at run time; NAN for an unknown one. */
#define LINEAR_LOSS_VALUE(NAME, prefix, is_regression, is_curved)                                                      \
  case PAWL_LINEAR_##NAME:                                                                                             \
    return prefix##_value(y, z);
#define LINEAR_LOSS_SLOPE(NAME, prefix, is_regression, is_curved)                                                      \
  case PAWL_LINEAR_##NAME:                                                                                             \
    return prefix##_slope(y, z);
#define LINEAR_LOSS_CURVATURE(NAME, prefix, is_regression, is_curved)                                                  \
  case PAWL_LINEAR_##NAME:                                                                                             \
    return prefix##_curvature(y, z);

static inline double linear_loss_value(enum pawl_linear_loss loss, double y, double z) {
  switch (loss) { LINEAR_LOSSES(LINEAR_LOSS_VALUE) }
  return NAN;
}

static inline double linear_loss_slope(enum pawl_linear_loss loss, double y, double z) {
  switch (loss) { LINEAR_LOSSES(LINEAR_LOSS_SLOPE) }
  return NAN;
}

static inline double linear_loss_curvature(enum pawl_linear_loss loss, double y, double z) {
  switch (loss) { LINEAR_LOSSES(LINEAR_LOSS_CURVATURE) }
  return NAN;
}

/* The rest of a loss. The descriptor is named `prefix`, and is in losses.c. */
struct linear_loss_descriptor {
  const char *name; /* in model files and messages */
  bool is_smooth;   /* it has a second derivative everywhere */
  /* curvature changes gradually: workers keep the Hessian up to LINEAR_HESSIAN_SLACK */
  bool curvature_varies;
  /* the first learning rate of subgradients is this over the sum of all squared values */
  double rate;

  /* For many rows at a time, in vectors. Slopes: NULL if the loss has no curvature. */
  void (*slopes)(size_t count, const float *y, const float *z, const float *c, float *pairs);
  double (*sum)(size_t count, const float *y, const double *z, const float *c);

  /* The conjugate of the loss of a row of weight c > 0 at slope a >= 0: certificate.h. NULL for regression,
   * which certificate.c computes from sums. */
  double (*conjugate)(double c, double a);
};

/* NULL if the number is not that of a loss. */
const struct linear_loss_descriptor *linear_loss_of(enum pawl_linear_loss loss);

/* Finds a loss by its name. */
bool linear_loss_find(const char *name, enum pawl_linear_loss *loss_out);

#define LINEAR_SLOPES_ROWS 256 /* how many rows block steps handle at a time */

/* Slope and curvature of the loss at many rows: the inner loop of block steps, in single precision and
 * without a call, so that compilers turn it into vectors. For each row i: pairs[2 i] = c[i] * slope, pairs[2
 * i + 1] = c[i] * curvature.
 *
 * The curvature is the one to step by, and not the second derivative where that would mislead. Rows far on
 * the wrong side of the logistic loss have almost none, although a step soon meets more; rows beyond the
 * squared hinge have none. A quadratic that lies above the logistic loss everywhere has curvature tanh(|z| /
 * 2) / (2 |z|) (Jaakkola and Jordan 2000); an eighth of it is the least that is returned. So no single step
 * is longer than eight times a safe one. */
static inline void linear_slopes(enum pawl_linear_loss loss, size_t count, const float *y, const float *z,
                                 const float *c, float *pairs) {
  linear_loss_of(loss)->slopes(count, y, z, c, pairs);
}

/* The sum of c[i] * loss over rows, in double. */
static inline double linear_losses(enum pawl_linear_loss loss, size_t count, const float *y, const double *z,
                                   const float *c) {
  return linear_loss_of(loss)->sum(count, y, z, c);
}

#endif
