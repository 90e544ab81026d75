/* One lock for all calls of OpenBLAS: an OpenBLAS without threads of its own (Debian's libopenblas-serial) may be called
 * by one thread at a time. */
#ifndef APPS_COMMON_BLAS_H
#define APPS_COMMON_BLAS_H

#include <stdbool.h>
#include <stdint.h>

/* Call them around calls of BLAS and LAPACK. Enter waits only if this OpenBLAS needs the lock, and tells leave. */
bool apps_blas_enter(void);
void apps_blas_leave(bool is_locked);

/* Sets the number of threads of OpenBLAS for the whole process. Returns false if this OpenBLAS has no threads and
 * more than one is wanted. */
bool apps_blas_threads(uint32_t threads);

#endif
