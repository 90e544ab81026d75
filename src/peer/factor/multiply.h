/* Sums of outer products, added to a matrix, in an order that no machine changes.
 *
 * Every value of the matrix is changed by one product after the other, in the order of the pairs, and by fma of C: the
 * product is not rounded, and each sum is. So the result has the same bits on every processor, with and without vector
 * instructions, and the same bits as pair after pair. A processor without fused multiply-add computes the same, slowly.
 * BLAS promises no order, and a BLAS without threads may be called by one thread of the process at a time, under a lock
 * that the applications own; so a program that wants it passes it in.
 *
 * Threads: pure. */
#ifndef PWI_PEER_FACTOR_MULTIPLY_H
#define PWI_PEER_FACTOR_MULTIPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* matrix += sum of u v' over dense pairs: see factor_multiply in pairs.h. */
void pwi_factor_multiply_f32(size_t rows, size_t columns, size_t pairs, const float *u, const float *v, float *matrix);
void pwi_factor_multiply_f64(size_t rows, size_t columns, size_t pairs, const double *u, const double *v,
                             double *matrix);

/* One side of a pair. */
struct pwi_factor_side {
  const void *values;      /* in the type of the matrix */
  const uint32_t *indices; /* NULL: dense */
  size_t count;
};

/* matrix += u v' */
void pwi_factor_rank_one_f32(size_t columns, const struct pwi_factor_side *u, const struct pwi_factor_side *v,
                             float *matrix);
void pwi_factor_rank_one_f64(size_t columns, const struct pwi_factor_side *u, const struct pwi_factor_side *v,
                             double *matrix);

/* The sets of instructions for which there are loops, the plainest first; for tests and benchmarks. All functions above
 * use the last one that this processor has. */
enum pwi_factor_set { PWI_FACTOR_PLAIN, PWI_FACTOR_FMA, PWI_FACTOR_AVX512, PWI_FACTOR_SETS };

/* The last one that this processor has. */
enum pwi_factor_set pwi_factor_set(void);

/* By one set that this processor has. */
void pwi_factor_multiply_by_f32(enum pwi_factor_set set, size_t rows, size_t columns, size_t pairs, const float *u,
                                const float *v, float *matrix);
void pwi_factor_multiply_by_f64(enum pwi_factor_set set, size_t rows, size_t columns, size_t pairs, const double *u,
                                const double *v, double *matrix);

#endif
