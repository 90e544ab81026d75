#include "apps/cnn/blas.h"

#include <pthread.h>

#include <cblas.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CBLAS_TRANSPOSE direction(struct cnn_matrix matrix) { return matrix.is_transposed ? CblasTrans : CblasNoTrans; }

void cnn_multiply(size_t rows, size_t columns, size_t inner, struct cnn_matrix a, struct cnn_matrix b, bool adds,
                  float *c, size_t c_step) {
  pthread_mutex_lock(&lock);
  cblas_sgemm(CblasRowMajor, direction(a), direction(b), (blasint)rows, (blasint)columns, (blasint)inner, 1, a.at,
              (blasint)a.step, b.at, (blasint)b.step, adds ? 1 : 0, c, (blasint)c_step);
  pthread_mutex_unlock(&lock);
}

bool cnn_blas_threads(uint32_t threads) {
  if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL) return threads <= 1;
  pthread_mutex_lock(&lock);
  openblas_set_num_threads((int)threads);
  pthread_mutex_unlock(&lock);
  return true;
}
