/* Limited-memory BFGS (Liu and Nocedal 1989): a direction of descent from the last few steps and the changes
 * of the gradient along them.
 *
 *   d = -B g     where B approximates the inverse Hessian: gamma I, corrected by each pair (s, y)
 *
 * It costs a few products of vectors, where a Newton step costs the whole Hessian. */
#ifndef APPS_LINEAR_TRAIN_LBFGS_H
#define APPS_LINEAR_TRAIN_LBFGS_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

enum { LINEAR_LBFGS_PAIRS = 10 };

struct linear_lbfgs {
  size_t count;                        /* elements of a vector */
  size_t pairs;                        /* pairs that were added so far; the newest LINEAR_LBFGS_PAIRS are kept */
  double *steps, *changes;             /* LINEAR_LBFGS_PAIRS vectors each; pair n is at n % LINEAR_LBFGS_PAIRS */
  double products[LINEAR_LBFGS_PAIRS]; /* s . y of each pair */
  double gamma;                        /* s . y / y . y of the newest pair */
};

/* PAWL_NO_MEMORY; call linear_lbfgs_fini in any case. */
pawl_status linear_lbfgs_init(struct linear_lbfgs *lbfgs, size_t count);
void linear_lbfgs_fini(struct linear_lbfgs *lbfgs);

/* Adds a step s and the change y of the gradient along it. A pair without positive curvature (s . y <= 0, to
 * rounding) would make B indefinite and is left out. */
void linear_lbfgs_add(struct linear_lbfgs *lbfgs, const double *step, const double *change);

/* The direction at a gradient. Without pairs it is -first g. */
void linear_lbfgs_direction(const struct linear_lbfgs *lbfgs, const double *gradient, double first,
                            double *direction_out);

double linear_dot(const double *a, const double *b, size_t count);

#endif
