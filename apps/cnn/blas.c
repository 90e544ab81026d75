#include "apps/cnn/blas.h"

#include <cblas.h>

#include "apps/common/blas.h"

static CBLAS_TRANSPOSE direction(struct cnn_matrix matrix) { return matrix.is_transposed ? CblasTrans : CblasNoTrans; }

void cnn_multiply(size_t rows, size_t columns, size_t inner, struct cnn_matrix a, struct cnn_matrix b, bool adds,
                  float *c, size_t c_step) {
  bool is_locked = apps_blas_enter();
  cblas_sgemm(CblasRowMajor, direction(a), direction(b), (blasint)rows, (blasint)columns, (blasint)inner, 1, a.at,
              (blasint)a.step, b.at, (blasint)b.step, adds ? 1 : 0, c, (blasint)c_step);
  apps_blas_leave(is_locked);
}

bool cnn_blas_threads(uint32_t threads) { return apps_blas_threads(threads); }
