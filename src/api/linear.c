/* <pawl/linear.h>. The client detects invalid calls; this file explains them. */
#include <pawl/linear.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/vector.h"
#include "store/functions/rows.h"

struct linear_call {
  const char *what;
  enum pwi_linear kind;
  struct pawl_vector *vector, *other; /* `other` may be NULL */
  double scalar;
  struct pawl_range range;
  uint32_t column;      /* counted from 1; 0: all */
  const char *function; /* of PWI_LINEAR_RUN and PWI_LINEAR_RUN_WITH */
};

static pawl_status check(const struct linear_call *call) {
  bool lacks_other = pwi_linear_has_other(call->kind) && !call->other;
  if (!call->vector || lacks_other) return pwi_error(PAWL_INVALID, "%s: vector is NULL", call->what);
  if (call->other && call->other->session != call->vector->session)
    return pwi_error(PAWL_INVALID, "%s %s with %s: the vectors belong to different sessions", call->what,
                     call->vector->name, call->other->name);
  if (call->range.begin > call->range.end)
    return pwi_error(PAWL_INVALID, "%s %s: the range ends before it begins", call->what, call->vector->name);
  return PAWL_OK;
}

static pawl_status explain(pawl_status status, const struct linear_call *call) {
  const struct pawl_vector *vector = call->vector;
  uint64_t size = vector->entry->is.size;
  if (status == PAWL_MISMATCH && call->other)
    return pwi_error(status, "%s %s with %s: the vectors differ in type, width, size, placement or layout", call->what,
                     vector->name, call->other->name);
  if (status == PAWL_OUT_OF_SPAN)
    return pwi_error(status, "%s %s: [%" PRIu64 ", %" PRIu64 ") reaches beyond the span [0, %" PRIu64 ")", call->what,
                     vector->name, call->range.begin, call->range.end, size);
  if (status == PAWL_UNSUPPORTED && call->kind == PWI_LINEAR_FILL)
    return pwi_error(status, "%s %s: a sparse vector cannot be filled", call->what, vector->name);
  if (status == PAWL_UNSUPPORTED)
    return pwi_error(status, "%s %s: with mixed placement the range must be the whole vector", call->what,
                     vector->name);
  if (status == PAWL_INVALID && call->column > 0)
    return pwi_error(status, "%s %s: rows have no column %" PRIu32, call->what, vector->name, call->column - 1);
  if (status == PAWL_INVALID)
    return pwi_error(status, "%s %s: %g does not fit the vector's type", call->what, vector->name, call->scalar);
  return pwi_error_status(status, "%s %s", call->what, vector->name);
}

/* Inside the gate. */
static pawl_status start(const struct linear_call *call, bool has_handle, struct pawl_task **task_out) {
  struct pawl_session *session = call->vector->session;
  struct pwi_flow *other = call->other ? call->other->flow : NULL;
  struct pawl_task *task;
  pawl_status status = pwi_session_task(session, &session->line, has_handle, call->what, call->vector->name, &task);
  if (status) return status;
  if (call->function)
    status = pwi_client_run(session->client, &task->inner, call->vector->flow, other, call->function, call->range);
  else if (call->column > 0)
    status = pwi_client_fold_column(session->client, &task->inner, call->vector->flow, call->kind, call->column - 1,
                                    call->range);
  else
    status = pwi_client_linear(session->client, &task->inner, call->vector->flow, other, call->kind, call->scalar,
                               call->range);
  return pwi_session_started(session, task, status, task_out);
}

static pawl_status run(const struct linear_call *call, bool has_handle, struct pawl_task **task_out) {
  pawl_status status = check(call);
  if (!status) status = pwi_session_needs_servers(call->vector->session, call->what, call->vector->name);
  if (status) return status;
  struct pawl_session *session = call->vector->session;
  pwi_driver_enter(&session->driver);
  status = start(call, has_handle, task_out);
  bool is_crowded = session->line.count >= PWI_SESSION_TASKS;
  pwi_driver_leave(&session->driver);
  if (is_crowded) pwi_session_catch_up(session);
  return status ? explain(status, call) : PAWL_OK;
}

/* --- changes -------------------------------------------------------------------------------------------- */

pawl_status pawl_vector_fill(struct pawl_vector *vector, struct pawl_range range, double value,
                             struct pawl_task **task_out) {
  return run(&(struct linear_call){"fill of", PWI_LINEAR_FILL, vector, NULL, value, range, 0, NULL}, task_out,
             task_out);
}

pawl_status pawl_vector_scale(struct pawl_vector *vector, struct pawl_range range, double factor,
                              struct pawl_task **task_out) {
  return run(&(struct linear_call){"scale of", PWI_LINEAR_SCALE, vector, NULL, factor, range, 0, NULL}, task_out,
             task_out);
}

pawl_status pawl_vector_axpy(struct pawl_vector *y, double factor, struct pawl_vector *x, struct pawl_range range,
                             struct pawl_task **task_out) {
  return run(&(struct linear_call){"axpy to", PWI_LINEAR_AXPY, y, x, factor, range, 0, NULL}, task_out, task_out);
}

pawl_status pawl_vector_copy(struct pawl_vector *y, struct pawl_vector *x, struct pawl_range range,
                             struct pawl_task **task_out) {
  return run(&(struct linear_call){"copy to", PWI_LINEAR_COPY, y, x, 0, range, 0, NULL}, task_out, task_out);
}

/* --- row functions -------------------------------------------------------------------------------------- */

/* Only the servers know users' functions; mistakes in calls of built-in ones are explained here. */
static pawl_status check_function(const struct pawl_vector *vector, const char *function) {
  struct pwi_row_rule rule;
  struct pwi_function_problem problem;
  if (!vector || !function) return pwi_error(PAWL_INVALID, "run on: vector or function is NULL");
  if (strnlen(function, PAWL_RULE_MAX + 1) > PAWL_RULE_MAX)
    return pwi_error(PAWL_INVALID, "run on %s: the function has more than %d characters", vector->name, PAWL_RULE_MAX);
  pawl_status status = pwi_row_rule_parse(NULL, function, &rule, &problem);
  bool is_blank = function[strspn(function, PWI_RULE_BLANKS)] == '\0';
  if (is_blank) return pwi_error(PAWL_INVALID, "run on %s: expected the name of a row function", vector->name);
  return status == PAWL_INVALID ? pwi_error(status, "run on %s: %s", vector->name, problem.text) : PAWL_OK;
}

pawl_status pawl_vector_run(struct pawl_vector *vector, struct pawl_vector *other, struct pawl_range range,
                            const char *function, struct pawl_task **task_out) {
  enum pwi_linear kind = other ? PWI_LINEAR_RUN_WITH : PWI_LINEAR_RUN;
  pawl_status status = check_function(vector, function);
  if (status) return status;
  return run(&(struct linear_call){"run on", kind, vector, other, 0, range, 0, function}, task_out, task_out);
}

size_t pawl_task_results(const struct pawl_task *task, double *results_out, size_t room) {
  if (!task || !pawl_task_is_done(task)) return 0;
  for (size_t i = 0; i < task->inner.result_count && i < room; i++) results_out[i] = task->inner.results[i];
  return task->inner.result_count;
}

/* --- sums ----------------------------------------------------------------------------------------------- */

static pawl_status fold(const struct linear_call *call, int64_t timeout_ns, double *result_out) {
  struct pawl_task *task;
  if (!result_out) return pwi_error(PAWL_INVALID, "%s: result_out is NULL", call->what);
  pawl_status status = run(call, true, &task);
  if (status) return status;
  status = pawl_task_wait(task, timeout_ns);
  if (!status) *result_out = task->inner.folded;
  pwi_task_unref(task);
  return status;
}

pawl_status pawl_vector_dot(struct pawl_vector *x, struct pawl_vector *y, struct pawl_range range, int64_t timeout_ns,
                            double *result_out) {
  return fold(&(struct linear_call){"dot product of", PWI_LINEAR_DOT, x, y, 0, range, 0, NULL}, timeout_ns, result_out);
}

/* `column` is counted from 1; 0: all. */
static pawl_status fold_norm(struct pawl_vector *vector, struct pawl_range range, uint32_t column, enum pawl_norm norm,
                             int64_t timeout_ns, double *result_out) {
  static const enum pwi_linear kinds[] = {0, PWI_LINEAR_ABS, PWI_LINEAR_SQUARES, PWI_LINEAR_MOST, PWI_LINEAR_COUNT};
  if (norm < PAWL_NORM_1 || norm > PAWL_NORM_COUNT) return pwi_error(PAWL_INVALID, "norm: unknown norm %d", (int)norm);
  struct linear_call call = {"norm of", kinds[norm], vector, NULL, 0, range, column, NULL};
  pawl_status status = fold(&call, timeout_ns, result_out);
  if (!status && norm == PAWL_NORM_2) *result_out = sqrt(*result_out);
  return status;
}

pawl_status pawl_vector_norm(struct pawl_vector *vector, struct pawl_range range, enum pawl_norm norm,
                             int64_t timeout_ns, double *result_out) {
  return fold_norm(vector, range, 0, norm, timeout_ns, result_out);
}

pawl_status pawl_vector_norm_column(struct pawl_vector *vector, struct pawl_range range, uint32_t column,
                                    enum pawl_norm norm, int64_t timeout_ns, double *result_out) {
  if (column == UINT32_MAX) return pwi_error(PAWL_INVALID, "norm of a column: rows have no column %" PRIu32, column);
  return fold_norm(vector, range, column + 1, norm, timeout_ns, result_out);
}
