#include "apps/common/blas.h"

#include <pthread.h>

#include <cblas.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool apps_blas_enter(void) {
  if (openblas_get_parallel() != OPENBLAS_SEQUENTIAL) return false;
  pthread_mutex_lock(&lock);
  return true;
}

void apps_blas_leave(bool is_locked) {
  if (is_locked) pthread_mutex_unlock(&lock);
}

bool apps_blas_threads(uint32_t threads) {
  if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL) return threads <= 1;
  openblas_set_num_threads((int)threads);
  return true;
}
