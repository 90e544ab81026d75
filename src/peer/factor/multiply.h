/* Sums of outer products of dense vectors, added to a matrix, in an order that no machine changes.
 *
 * Every value of the matrix is changed by one product after the other, in the order of the pairs, and each product and
 * each sum is rounded. So the result has the same bits on every processor, with and without vector instructions, and the
 * same bits as pair after pair. BLAS promises no order, and a BLAS without threads may be called by one thread of the
 * process at a time, under a lock that the applications own; so a program that wants it passes it in.
 *
 * Threads: pure. */
#ifndef PWI_PEER_FACTOR_MULTIPLY_H
#define PWI_PEER_FACTOR_MULTIPLY_H

#include <stdbool.h>
#include <stddef.h>

/* matrix += sum of u v' over the pairs: see factor_multiply in pairs.h. */
void pwi_factor_multiply_f32(size_t rows, size_t columns, size_t pairs, const float *u, const float *v, float *matrix);
void pwi_factor_multiply_f64(size_t rows, size_t columns, size_t pairs, const double *u, const double *v,
                             double *matrix);

/* The same without vector instructions of the processor at hand; for tests. */
void pwi_factor_multiply_plain_f32(size_t rows, size_t columns, size_t pairs, const float *u, const float *v,
                                   float *matrix);
void pwi_factor_multiply_plain_f64(size_t rows, size_t columns, size_t pairs, const double *u, const double *v,
                                   double *matrix);

#endif
