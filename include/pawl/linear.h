/* Linear algebra on the servers (OSDI'14 3.1): vectors are filled, scaled, added and multiplied where they lie, and no values
 * travel but the result.
 *
 * RANGES. A call is about the keys of `range`; {0, 0} is all of the span. A vector with mixed placement is worked on as a
 * whole only. Of a dense vector (pawl_vector_info tells) every key of the range has a row, which is zeros until it is written.
 * Of a sparse one only rows that take memory count, on the servers as in these calls: scale goes over the rows of the vector,
 * axpy over those of x, copy over those of both (where x has none, y becomes zeros), and fill is PAWL_UNSUPPORTED.
 *
 * TWO VECTORS of one call are of the same session, type, stored width, size, placement and layout, so that their rows lie on
 * the same servers: PAWL_MISMATCH otherwise, found before anything is sent. They may be the same vector.
 *
 * WHAT A CHANGE PROMISES. fill, scale, axpy and copy are pushes: applied exactly once to each key, whatever breaks, in the
 * order of the session's calls, and replicated like any push. They return a task. Work is cut into slices of 2 MiB of rows,
 * each of which is applied whole or not at all. x is read at the moment when a slice is applied: with every push of this
 * session to x that was called before, and none that was called later. (A later push to x waits for that; nobody has to wait
 * for a task only to keep the order. Calls that come *after* tasks, see <pawl/vector.h>, count from when they start; the ones
 * here start at once.) What other sessions do meanwhile may be in x for some slices and not for others.
 *
 * A vector with a server function (options.rule): these calls change what is stored, by plain arithmetic, and do not call the
 * function. Its hidden state stays what it is.
 *
 * NUMBERS. A float vector computes in its own type, the scalar rounded to it. An integer vector wraps around, and the scalar
 * must be a whole number of at most 2^53 either way; what is filled in must be a value of the type: PAWL_INVALID otherwise.
 * Sums are taken in double, from products and values that are doubles, with the rounding errors of partial sums carried
 * along; integers beyond 2^53 are rounded first. A dot product of the same contents gives the same bits as long as servers hold
 * the same parts of the span; after parts have moved, the last bit may differ.
 *
 * THREADS: any. ERRORS as in <pawl/vector.h>; PAWL_OUT_OF_SPAN for a range that reaches beyond the span; PAWL_UNSUPPORTED for a
 * part of a vector with mixed placement. A change that servers refuse on some keys (PAWL_NODE_FULL, PAWL_RESTORED if x was
 * loaded from a checkpoint meanwhile, PAWL_NOT_FOUND if it was deleted) changes nothing there, and the task names them.
 *
 * One step of conjugate gradients, with A p in q (examples/conjugate.c):
 *
 *   pawl_vector_dot(p, q, all, PAWL_FOREVER, &curvature);
 *   pawl_vector_axpy(x, rho / curvature, p, all, NULL);
 *   pawl_vector_axpy(r, -rho / curvature, q, all, NULL);
 *   pawl_vector_dot(r, r, all, PAWL_FOREVER, &next);
 *   pawl_vector_scale(p, all, next / rho, NULL);
 *   pawl_vector_axpy(p, 1, r, all, NULL);
 */
#ifndef PAWL_LINEAR_H
#define PAWL_LINEAR_H

#include <stdint.h>

#include <pawl/export.h>
#include <pawl/range.h>
#include <pawl/status.h>
#include <pawl/task.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- changes: `task_out` may be NULL, as with push -------------------------------------------------------------------- */

/* Every value becomes `value`. */
PAWL_API pawl_status pawl_vector_fill(struct pawl_vector *vector, struct pawl_range range, double value,
                                      struct pawl_task **task_out);

/* Every value is multiplied by `factor`. */
PAWL_API pawl_status pawl_vector_scale(struct pawl_vector *vector, struct pawl_range range, double factor,
                                       struct pawl_task **task_out);

/* y = y + factor x. */
PAWL_API pawl_status pawl_vector_axpy(struct pawl_vector *y, double factor, struct pawl_vector *x,
                                      struct pawl_range range, struct pawl_task **task_out);

/* y = x. */
PAWL_API pawl_status pawl_vector_copy(struct pawl_vector *y, struct pawl_vector *x, struct pawl_range range,
                                      struct pawl_task **task_out);

/* --- sums: these wait, and see every push of this session that was started before ------------------------------------- */

/* The sum over all values of x y. */
PAWL_API pawl_status pawl_vector_dot(struct pawl_vector *x, struct pawl_vector *y, struct pawl_range range,
                                     int64_t timeout_ns, double *result_out);

enum pawl_norm {
  PAWL_NORM_1 = 1,     /* the sum of |x| */
  PAWL_NORM_2 = 2,     /* the root of the sum of squares, which overflows where that does */
  PAWL_NORM_MAX = 3,   /* the highest |x|; NaN if any value is */
  PAWL_NORM_COUNT = 4, /* how many values are not zero; NaN is not */
};

/* A norm of all values of the range, as if they were one column. PAWL_INVALID also for a norm that there is not. */
PAWL_API pawl_status pawl_vector_norm(struct pawl_vector *vector, struct pawl_range range, enum pawl_norm norm,
                                      int64_t timeout_ns, double *result_out);

/* The same of one value of each row: number `column`, from 0, of those that are stored for a key (pawl_vector_info tells how
 * many). PAWL_INVALID for a column that rows do not have; PAWL_UNSUPPORTED, as with PAWL_NORM_COUNT, if a server is too old to
 * know of it. */
PAWL_API pawl_status pawl_vector_norm_column(struct pawl_vector *vector, struct pawl_range range, uint32_t column,
                                             enum pawl_norm norm, int64_t timeout_ns, double *result_out);

#ifdef __cplusplus
}
#endif

#endif
