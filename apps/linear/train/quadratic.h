/* The step of a Newton method: the least of a quadratic with a penalty.
 *
 *   minimise over v    g . (v - w) + 1/2 (v - w)' H (v - w) + sum_j (l1_j |v_j| + l2_j / 2 v_j^2)
 *
 * H is symmetric and has no negative curvature. Without l1 this is a system of equations (Cholesky). With l1
 * the solver alternates between two steps. Coordinate descent finds the v_j that are zero, and the signs of the
 * others. A system of equations then solves for the variables that are not zero; with correlated columns it
 * replaces thousands of sweeps of coordinate descent. Neither step raises the objective: if the solution of the
 * system has a variable of another sign, the solver goes towards it only until a variable reaches zero.
 *
 * `count` variables; the last one is the bias, without penalty. */
#ifndef LINEAR_QUADRATIC_H
#define LINEAR_QUADRATIC_H

#include <stddef.h>

#include <pawl/status.h>

struct linear_quadratic {
  size_t count;
  const double *hessian; /* count rows of as many */
  const double *g, *w;
  double l1, l2;
  double ridge; /* the diagonal of H counts 1 + ridge times */
};

/* The step v - w. PAWL_NO_MEMORY. `*fall_out` is by how much the quadratic falls. */
pawl_status linear_quadratic_solve(const struct linear_quadratic *quadratic, double *step_out, double *fall_out);

#endif
