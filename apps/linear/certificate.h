/* A bound on the distance of weights to the optimum. It is computed from the weights alone, and holds for any
 * method.
 *
 * For any numbers a_i the dual
 *
 *   D(a) = - sum_i loss*_i(-a_i)  -  sum_j penalty*(g_j)       g = X' (-a),   sum_i a_i = 0 if there is a bias
 *
 * is at most the minimum of the objective (Fenchel; for l1 see Kim et al. 2007, and Fercoq, Gramfort and
 * Salmon 2015). Near the optimum the slopes at the weights, a_i = -c_i loss'(z_i), are nearly the best
 * choice, so F(w) - D(a) is close to the distance itself:
 *
 *   loss            -loss*(-a)                                penalty*(g)
 *   logistic        c h(|a| / c), h(p) = -p ln p - (1 - p) ln(1 - p)     l2 > 0:  max(0, |g| - l1)^2 / (2 l2)
 *   squared hinge   |a| - a^2 / (4 c)                         l2 = 0:  0 if |g| <= l1, else infinite
 *   hinge           |a|
 *   squared         a y - a^2 / (2 c)
 *
 * The slopes must be made feasible. If there is a bias, the slopes of one class are shrunk until both classes
 * have the same sum; for regression their mean is subtracted. Without l2 all slopes are shrunk until no |g_j|
 * is above l1. D is concave, so between two factors s at which D is known it is at least the chord.
 *
 * A worker sums over its rows, for each class, the slopes, g, and D for each of LINEAR_SHRINKS factors
 * (derive.c). For regression the two "classes" mean something else. The first has g and the sum of slopes.
 * The second has sum_i c_i x_ij and sum_i c_i, which serve to subtract the mean. The conjugates are sum a y,
 * sum a^2 / c and sum c y. */
#ifndef LINEAR_CERTIFICATE_H
#define LINEAR_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

#include "apps/linear/inside.h"

struct linear_certificate {
  enum pawl_linear_loss loss;
  double l1, l2;
  double factors[2];              /* of the sums of each class */
  double most;                    /* the largest |g_j| */
  double squares[LINEAR_SHRINKS]; /* sum_j max(0, |s g_j| - l1)^2 */
  /* violation of the optimality conditions at the weights: sum and maximum */
  double violation, violation_most;
  double reach; /* sum of the violations, each times its |w_j| */
  double moved; /* the same, each times the way that w_j went */
};

/* `sum` is the sum of the workers' replies. */
void linear_certificate_init(struct linear_certificate *certificate, enum pawl_linear_loss loss, bool has_bias,
                             double l1, double l2, const struct linear_reply *sum);

/* Adds a feature: its weight, the one that it had at the last full round, and its sums g for both classes. */
void linear_certificate_add(struct linear_certificate *certificate, double weight, double earlier, const double g[2]);

/* Returns (F(w) - D(a)) / F(w) once all features are added; infinite if there is no bound. */
double linear_certificate_gap(const struct linear_certificate *certificate, const struct linear_reply *sum,
                              double objective);

/* -loss*(-a) of one row. */
double linear_conjugate(enum pawl_linear_loss loss, double c, double a);

#endif
