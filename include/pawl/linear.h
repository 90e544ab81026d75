/* Linear algebra on the servers (OSDI'14 3.1). The servers fill, scale, add and multiply vectors in place;
 * only results are sent.
 *
 * RANGES. A call works on the keys of `range`; PAWL_ALL is the whole span. An empty range names no key: a
 * change changes nothing, and a sum is 0. For a vector with mixed placement only the whole span and an empty
 * range are allowed. A dense vector (see pawl_vector_info) has a row for every key of the range,
 * zeros until it is written. A sparse vector has only the rows that take memory: scale visits the rows of the
 * vector, axpy the rows of x, and copy the rows of both (y becomes zero where x has no row). fill is
 * PAWL_UNSUPPORTED for a sparse vector.
 *
 * TWO VECTORS of one call must have the same session, type, stored width, size, placement and layout, so that
 * their rows are on the same servers. Otherwise the call returns PAWL_MISMATCH before it sends anything. They
 * may be the same vector.
 *
 * GUARANTEES OF A CHANGE. fill, scale, axpy and copy are pushes: they are applied exactly once to each key,
 * in the order of the session's calls, and are replicated like any push. They return a task. The work is cut
 * into slices of 2 MiB of rows; each slice is applied completely or not at all. A slice reads x at the moment
 * when it is applied: with every push to x that this session called earlier, and with none that it called
 * later. The servers keep this order, so a program need not wait for tasks, and the session sends the calls at
 * once (docs/tasks.md, "A graph sent whole").
 * (Calls that come *after* tasks, see <pawl/vector.h>, count from their start; the calls of this header start
 * at once.) Concurrent changes of x by other sessions may be visible in some slices and not in others.
 *
 * SERVER FUNCTIONS. On a vector with a server function (options.rule) these calls change the stored values by
 * plain arithmetic. They do not call the function, and its hidden state stays unchanged.
 *
 * NUMBERS. A float vector computes in its own type, to which the scalar is rounded. An integer vector wraps
 * around; the scalar must be an integer of at most 2^53 in magnitude, and a fill value must be representable
 * in the type: PAWL_INVALID otherwise. Sums are computed in double with compensation for rounding errors;
 * integers beyond 2^53 are rounded first. A dot product of the same contents gives the same bits as long as
 * servers hold the same parts of the span; after parts have moved, the last bit may differ.
 *
 * THREADS: any. ERRORS as in <pawl/vector.h>; PAWL_OUT_OF_SPAN for a range beyond the span; PAWL_UNSUPPORTED
 * for a part of a vector with mixed placement. If servers refuse a change for some keys (PAWL_NODE_FULL,
 * PAWL_RESTORED if x was loaded from a checkpoint in the meantime, PAWL_NOT_FOUND if x was deleted), the
 * change has no effect on these keys, and the task names them.
 *
 * One step of conjugate gradients, with A p in q (examples/conjugate.c):
 *
 *   pawl_vector_dot(p, q, PAWL_ALL, PAWL_FOREVER, &curvature);
 *   pawl_vector_axpy(x, rho / curvature, p, PAWL_ALL, NULL);
 *   pawl_vector_axpy(r, -rho / curvature, q, PAWL_ALL, NULL);
 *   pawl_vector_dot(r, r, PAWL_ALL, PAWL_FOREVER, &next);
 *   pawl_vector_scale(p, PAWL_ALL, next / rho, NULL);
 *   pawl_vector_axpy(p, 1, r, PAWL_ALL, NULL);
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

/* --- changes: `task_out` may be NULL, as with push ------------------------------------------------------ */

/* Sets every value to `value`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_fill(struct pawl_vector *vector, struct pawl_range range, double value,
                                                    struct pawl_task **task_out);

/* Multiplies every value by `factor`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_scale(struct pawl_vector *vector, struct pawl_range range, double factor,
                                                     struct pawl_task **task_out);

/* y = y + factor x. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_axpy(struct pawl_vector *y, double factor, struct pawl_vector *x,
                                                    struct pawl_range range, struct pawl_task **task_out);

/* y = x. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_copy(struct pawl_vector *y, struct pawl_vector *x,
                                                    struct pawl_range range, struct pawl_task **task_out);

/* Runs a row function on every row of the range (<pawl/row_function.h>, docs/row-functions.md): a change like those
 * above, with all their guarantees, by the code of a user. `function` is a name with parameters, as in a rule:
 * "proximal rate=0.1 l1=2"; at most PAWL_RULE_MAX characters. `other` is the second vector, which the function only
 * reads, or NULL. Of a sparse vector it visits the rows that `vector` or `other` has. The hidden state of a server
 * function (options.rule) stays unchanged.
 *
 * The function runs once on each row, whatever breaks; so its results are those of the only run, although servers
 * may die and requests be sent again. PAWL_INVALID for parameters of a built-in function that make no sense. The
 * task fails with
 *   PAWL_NOT_FOUND        no server function of that name on a server; `other` was deleted
 *   PAWL_INVALID          its parameters make no sense
 *   PAWL_UNSUPPORTED      it does not work on the type, or with, or without a second vector; a server is too old
 *   PAWL_OUTCOME_UNKNOWN  it has run, but a replica of an earlier version took over without the results
 * and like other changes, with no effect on the keys that the task names. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_run(struct pawl_vector *vector, struct pawl_vector *other,
                                                   struct pawl_range range, const char *function,
                                                   struct pawl_task **task_out);

/* The results of a finished pawl_vector_run, combined over all rows, in the order in which the function declares
 * them: up to `room`, which is at most PAWL_ROW_RESULTS_MAX (8). Returns their number; 0 for other tasks, tasks
 * that failed, and an empty range. */
PAWL_API size_t pawl_task_results(const struct pawl_task *task, double *results_out, size_t room);

/* --- sums: these wait, and see every push of this session that was started before ----------------------- */

/* The sum of all products x y. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_dot(struct pawl_vector *x, struct pawl_vector *y,
                                                   struct pawl_range range, int64_t timeout_ns, double *result_out);

enum pawl_norm {
  PAWL_NORM_1 = 1,     /* the sum of |x| */
  PAWL_NORM_2 = 2,     /* the square root of the sum of squares; overflows if the sum does */
  PAWL_NORM_MAX = 3,   /* the highest |x|; NaN if any value is NaN */
  PAWL_NORM_COUNT = 4, /* the number of values that are not zero; NaN counts */
};

/* A norm of all values of the range, taken as one column. PAWL_INVALID also for an unknown norm. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_norm(struct pawl_vector *vector, struct pawl_range range,
                                                    enum pawl_norm norm, int64_t timeout_ns, double *result_out);

/* A norm of one column: of value number `column`, from 0, of each stored row (pawl_vector_info has the stored
 * width). PAWL_INVALID for a column beyond that width; PAWL_UNSUPPORTED, as with PAWL_NORM_COUNT, if a server
 * is too old to support it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_norm_column(struct pawl_vector *vector, struct pawl_range range,
                                                           uint32_t column, enum pawl_norm norm, int64_t timeout_ns,
                                                           double *result_out);

#ifdef __cplusplus
}
#endif

#endif
