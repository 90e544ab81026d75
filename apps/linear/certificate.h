/* How far weights are from the optimum, at most: a bound that is measured, and holds whatever led to the
 * weights.
 *
 * For any numbers a_i the dual
 *
 *   D(a) = - sum_i loss*_i(-a_i)  -  sum_j penalty*(g_j)       g = X' (-a),   sum_i a_i = 0 if there is a bias
 *
 * is at most the least objective there is (Fenchel; for l1 see Kim et al. 2007, and Fercoq, Gramfort and
 * Salmon 2015). Near the optimum the slopes at the weights, a_i = -c_i loss'(z_i), nearly are the best ones,
 * so F(w) - D(a) is nearly how far it is:
 *
 *   loss            -loss*(-a)                                penalty*(g)
 *   logistic        c h(|a| / c), h(p) = -p ln p - (1 - p) ln(1 - p)     l2 > 0:  max(0, |g| - l1)^2 / (2 l2)
 *   squared hinge   |a| - a^2 / (4 c)                         l2 = 0:  0 if |g| <= l1, else infinite
 *   hinge           |a|
 *   squared         a y - a^2 / (2 c)
 *
 * The slopes have to be made to fit. If there is a bias, those of one class are shrunk until both classes
 * weigh the same; for regression their mean is taken off. Without l2 all are shrunk until no |g_j| is above
 * l1. D is concave, so between two factors s at which it is known it is at least the chord.
 *
 * A worker adds up over its rows, by class, the slopes, g and D for each of LINEAR_SHRINKS factors
 * (derive.c). For regression the "classes" are: g and the sum of slopes in the first; in the second sum_i c_i
 * x_ij and sum_i c_i, by which the mean is taken off; and the conjugates are sum a y, sum a^2 / c and sum c
 * y. */
#ifndef LINEAR_CERTIFICATE_H
#define LINEAR_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

#include "apps/linear/inside.h"

struct linear_certificate {
  enum pawl_linear_loss loss;
  double l1, l2;
  double factors[2];                /* of the sums of each class */
  double most;                      /* the highest |g_j| */
  double squares[LINEAR_SHRINKS];   /* sum_j max(0, |s g_j| - l1)^2 */
  double violation, violation_most; /* of the optimality conditions at the weights: sum and largest */
  double reach;                     /* their sum, each times its |w_j| */
};

/* `sum`: what the workers replied. */
void linear_certificate_init(struct linear_certificate *certificate, enum pawl_linear_loss loss, bool has_bias,
                             double l1, double l2, const struct linear_reply *sum);

/* A feature: its weight, and its sums g of both classes. */
void linear_certificate_add(struct linear_certificate *certificate, double weight, const double g[2]);

/* At the end: F(w) - D(a) as a part of F(w); infinite where there is no bound. */
double linear_certificate_gap(const struct linear_certificate *certificate, const struct linear_reply *sum,
                              double objective);

/* A row's -loss*(-a). */
double linear_conjugate(enum pawl_linear_loss loss, double c, double a);

#endif
