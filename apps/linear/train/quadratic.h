/* The step of a Newton method: the least of a quadratic with a penalty.
 *
 *   minimise over v    g . (v - w) + 1/2 (v - w)' H (v - w) + sum_j (l1_j |v_j| + l2_j / 2 v_j^2)
 *
 * H is symmetric and has no negative curvature. Without l1 this is a system of equations (Cholesky). With it,
 * two things take turns: coordinate descent, which finds out which v_j are zero and of what sign the others
 * are, and a system of equations for those that are not zero, which brings in one go what coordinate descent
 * takes thousands of sweeps for where columns are correlated. Neither makes it worse: where the solution of
 * the system has another sign, the way there is gone as far as signs hold.
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
