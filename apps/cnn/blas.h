/* Products of matrices by OpenBLAS.
 *
 * An OpenBLAS without threads of its own is guarded by a lock (apps/common/blas.h). An OpenBLAS with threads is told how many to use: by default one, because every worker is a process of
 * its own and the machine has only so many processors.
 */
#ifndef CNN_BLAS_H
#define CNN_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Row-major. The element (i, j) of the matrix is at[i * step + j], or at[j * step + i] if it is transposed. */
struct cnn_matrix {
  const float *at;
  size_t step;
  bool is_transposed;
};

/* C = A B, or C += A B: A has `rows` x `inner` elements, B `inner` x `columns`. All numbers are below 2^31. */
void cnn_multiply(size_t rows, size_t columns, size_t inner, struct cnn_matrix a, struct cnn_matrix b, bool adds,
                  float *c, size_t c_step);

/* Sets the number of threads of OpenBLAS for the whole process. Returns false if this OpenBLAS has no threads and
 * more than one is wanted. */
bool cnn_blas_threads(uint32_t threads);

#endif
