/* The losses of linear methods, as functions of a row's score z: value, slope, curvature.
 *
 * Training and metrics share them, so that the objective that `pawl predict` recomputes is the one that was minimised. y is -1 or
 * +1, and any number for the squared loss; m = y z is the margin. No score overflows any of them to anything but what is right:
 * a score that is not a number gives a result that is none. A loop over rows with the same `loss` pays for the choice once, as
 * it is inlined and moved out of the loop.
 */
#ifndef LINEAR_LOSSES_H
#define LINEAR_LOSSES_H

#include <math.h>

#include "apps/linear/model/model.h"

/* 1 / (1 + exp(-z)): the probability of the second class that a score of the logistic loss stands for. */
static inline double linear_sigmoid(double z) {
  double e = exp(-fabs(z));
  return z < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* log(1 + exp(-m)), by way of exp of what is below zero alone: max(0, -m) + log(1 + exp(-|m|)). */
static inline double linear_log_loss(double m) { return (m < 0 ? -m : 0) + log1p(exp(-fabs(m))); }

/*   logistic        log(1 + exp(-m))
 *   squared hinge   max(0, 1 - m)^2
 *   hinge           max(0, 1 - m)
 *   squared         (y - z)^2 / 2 */
static inline double linear_loss_value(enum linear_loss loss, double y, double z) {
  double m = y * z, short_by = m >= 1 ? 0 : 1 - m;
  switch (loss) {
  case LINEAR_LOGISTIC:
    return linear_log_loss(m);
  case LINEAR_SQUARED_HINGE:
    return short_by * short_by;
  case LINEAR_HINGE:
    return short_by;
  case LINEAR_SQUARED:
    return (y - z) * (y - z) / 2;
  }
  return NAN;
}

/* The derivative of the loss in z; for the hinge at its kink, the slope to the right of it.
 *
 *   logistic        -y / (1 + exp(m))
 *   squared hinge   -2 y max(0, 1 - m)
 *   hinge           -y where m < 1, else 0
 *   squared         z - y */
static inline double linear_loss_slope(enum linear_loss loss, double y, double z) {
  double m = y * z, short_by = m >= 1 ? 0 : 1 - m;
  switch (loss) {
  case LINEAR_LOGISTIC:
    return -y / (1 + exp(m)); /* exp may become infinite, and the slope 0: as it should */
  case LINEAR_SQUARED_HINGE:
    return -2 * y * short_by;
  case LINEAR_HINGE:
    return m >= 1 ? 0 : -y;
  case LINEAR_SQUARED:
    return z - y;
  }
  return NAN;
}

/* The second derivative of the loss in z, or what is used in its place: the squared hinge has none where m = 1.
 *
 *   logistic        p (1 - p), p = 1 / (1 + exp(-m)); never above 1/4
 *   squared hinge   2 where m < 1, else 0
 *   hinge           0: it has no curvature, and methods of second order do not take it
 *   squared         1 */
static inline double linear_loss_curvature(enum linear_loss loss, double y, double z) {
  double m = y * z, e = 0;
  switch (loss) {
  case LINEAR_LOGISTIC:
    e = exp(-fabs(m));
    return e / ((1 + e) * (1 + e));
  case LINEAR_SQUARED_HINGE:
    return m < 1 ? 2 : 0;
  case LINEAR_HINGE:
    return 0;
  case LINEAR_SQUARED:
    return 1;
  }
  return NAN;
}

#endif
