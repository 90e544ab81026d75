/* The bytes that a step of all workers takes by each way (SFB, section 2.1), from non-zeros of pairs that were measured.
 * Indices count as the engine of factors writes them (src/peer/factor/pairs.h). */
#ifndef SHARED_MATRIX_COST_H
#define SHARED_MATRIX_COST_H

#include "apps/common/shared_matrix/share.h"

/* Pairs of some steps of one process, which has the whole batch of a step. */
struct matrix_sample {
  struct matrix_shape shape;
  bool is_sparse; /* WHOLE: only rows with changes go to servers and back */
  uint64_t pairs;
  uint64_t pair_bytes; /* of all vectors, by matrix_vector_bytes */
  uint64_t rows;       /* sparse: different rows of the matrix in a worker's part of a step, added up over all parts */
  /* SERVERS: values of u and of v that are not 0. Both 0: not counted, and taken from pair_bytes. */
  uint64_t u_nonzeros, v_nonzeros;
  double pairs_per_step; /* on average: the last step of an epoch may have fewer than those of the sample */
};

/* The bytes of a vector with so many values other than 0 in a commit. */
uint64_t matrix_vector_bytes(const struct matrix_shape *shape, uint64_t length, uint64_t nonzeros);

/* `factors` is NAN for a graph whose members do not forward: the number of its edges is not known here. */
struct pawl_matrix_costs matrix_costs(const struct matrix_sample *sample, const struct pawl_matrix_sharing *sharing,
                                      uint32_t workers);

#endif
