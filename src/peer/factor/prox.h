/* Proximal operators of a matrix: W becomes the minimum of step * h(V) + |V - W|^2 / 2 over V (SFB, section 2).
 *
 * Every operator gives the same bits on all machines. The trace norm needs the singular value decomposition, for which
 * LAPACK promises no such thing; trace.c has one by rotations, which is slower on large matrices. A program that does not
 * need equal bits can pass its own operator.
 *
 * Threads: pure. */
#ifndef PWI_PEER_FACTOR_PROX_H
#define PWI_PEER_FACTOR_PROX_H

#include <pawl/factor.h>

struct factor_prox {
  enum pawl_factor_prox kind;
  double weight, weight2;
  pawl_status (*call)(void *context, void *matrix, size_t rows, size_t columns, double step);
  void *context;
};

/* Memory for the operator; NULL: it needs none. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_factor_prox_memory(enum pawl_factor_prox kind, size_t rows, size_t columns,
                                                 double **memory_out);

/* The matrix has rows x columns values, row by row. PAWL_DIVERGED: the trace norm of a matrix with NaN or an infinity;
 * the matrix is as before. Any status of the program's operator. */
PAWL_MUST_USE pawl_status pwi_factor_prox(const struct factor_prox *prox, size_t rows, size_t columns, bool is_double,
                                          double step, double *memory, void *matrix);

/* trace.c: shrinks each singular value by `by`, at most to 0. `memory` has pwi_factor_trace_memory values. */
PAWL_MUST_USE bool pwi_factor_trace_memory(size_t rows, size_t columns, size_t *count_out); /* false: too large */
PAWL_MUST_USE pawl_status pwi_factor_trace(size_t rows, size_t columns, bool is_double, double by, double *memory,
                                           void *matrix);

#endif
