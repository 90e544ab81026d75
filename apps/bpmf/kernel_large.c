/* Factors matrices of ranks above 128 by LAPACK.
 *
 * The upper triangle row by row is the lower one column by column, which LAPACK's dpotrf takes. */
#include <cblas.h>
#include <lapacke.h>

#include "apps/bpmf/kernel.h"
#include "apps/common/blas.h"

bool bpmf_factor_large(double *matrix, size_t width, double *inverse) {
  bool is_locked = apps_blas_enter();
  lapack_int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)width, matrix, (lapack_int)width);
  apps_blas_leave(is_locked);
  if (info != 0) return false;
  for (size_t j = 0; j < width; j++) {
    double diagonal = matrix[j * width + j];
    if (!(diagonal > 0 && diagonal < 1e300)) return false;
    inverse[j] = 1 / diagonal;
  }
  return true;
}
