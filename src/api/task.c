/* The functions of <pawl/task.h>. A task that has finished is queried without its session, which may be
 * closed. */
#include <pawl/task.h>

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "api/session.h"
#include "sync/order.h"

bool pawl_task_is_done(const struct pawl_task *task) { return pwi_event_is_set(&task->done); }

static pawl_status tell_failure(const struct pawl_task *task) {
  char text[PWI_ERROR_TEXT_MAX + 1];
  pawl_status status = task->inner.status;
  if (status == PAWL_OK) return PAWL_OK;
  pawl_task_describe(task, text, sizeof text);
  return pwi_error(status, "%s", text);
}

/* A session may be closed while threads wait for its tasks, but not while they query them: its driver
 * still exists. */
static pawl_status tell_delay(const struct pawl_task *task, int64_t timeout_ns) {
  char text[PWI_ERROR_TEXT_MAX + 1], why[PWI_ERROR_TEXT_MAX + 1];
  struct pawl_session *session =
      (struct pawl_session *)((char *)task->line->driver - offsetof(struct pawl_session, driver));
  pawl_task_describe(task, text, sizeof text);
  bool waits = timeout_ns > 0 && pwi_session_waits(session, why, sizeof why);
  return pwi_error(PAWL_TIMED_OUT, "%s; not finished after %" PRId64 " ns; it continues%s%s", text, timeout_ns,
                   waits ? "; " : "", waits ? why : "");
}

pawl_status pawl_task_wait(struct pawl_task *task, int64_t timeout_ns) {
  if (!task) return pwi_error(PAWL_INVALID, "wait: task is NULL");
  if (!pawl_task_is_done(task)) {
    struct pwi_driver *driver = task->line->driver;
    if (!pwi_driver_wait(driver, &task->done, pwi_driver_deadline(timeout_ns))) {
      return tell_delay(task, timeout_ns);
    }
  }
  return tell_failure(task);
}

pawl_status pawl_task_finish(struct pawl_task *task, int64_t timeout_ns) {
  if (!task) return PAWL_OK;
  pawl_status status = pawl_task_wait(task, timeout_ns);
  pwi_task_unref(task);
  return status;
}

void pawl_task_release(struct pawl_task *task) {
  if (task) pwi_task_unref(task);
}

pawl_status pawl_task_on_done(struct pawl_task *task, void (*call)(void *context, struct pawl_task *task),
                              void *context) {
  if (!task || !call) return pwi_error(PAWL_INVALID, "on_done: task or call is NULL");
  if (atomic_exchange(&task->has_call, true))
    return pwi_error(PAWL_EXISTS, "%s %s: the task already has a callback", task->what, task->subject);
  bool is_done = pawl_task_is_done(task);
  if (!is_done) {
    struct pwi_driver *driver = task->line->driver;
    pwi_driver_enter(driver);
    is_done = pawl_task_is_done(task);
    if (!is_done) {
      task->context = context;
      task->call = call;
    }
    pwi_driver_leave(driver);
  }
  if (is_done) call(context, task);
  return PAWL_OK;
}

size_t pawl_task_failure_count(const struct pawl_task *task) {
  return pawl_task_is_done(task) ? task->inner.failure_count : 0;
}

pawl_status pawl_task_failure(const struct pawl_task *task, size_t index, struct pawl_range *range_out,
                              pawl_status *status_out) {
  if (index >= pawl_task_failure_count(task) || index >= PWI_TASK_FAILURES)
    return pwi_error(PAWL_NOT_FOUND, "%s %s: failure %zu does not exist", task->what, task->subject, index);
  *range_out = task->inner.failures[index].range;
  *status_out = task->inner.failures[index].status;
  return PAWL_OK;
}

static size_t add(char *text, size_t size, size_t used, const char *format, ...) PAWL_PRINTF(4, 5);

static size_t add(char *text, size_t size, size_t used, const char *format, ...) {
  va_list arguments;
  if (used >= size) return used;
  va_start(arguments, format);
  int more = vsnprintf(text + used, size - used, format, arguments);
  va_end(arguments);
  return more > 0 ? used + (size_t)more : used;
}

/* What a call waits for is known inside the gate only. */
static void describe_open(const struct pawl_task *task, char *text, size_t size) {
  char waits[PWI_ERROR_TEXT_MAX + 1] = "";
  struct pwi_driver *driver = task->line->driver;
  pwi_driver_enter(driver);
  bool is_held = task->held, has_ended = task->has_ended;
  if (is_held) pwi_dependent_describe(task->held, waits, sizeof waits);
  pwi_driver_leave(driver);
  if (is_held)
    add(text, size, 0, "%s %s: waits for %s", task->what, task->subject, waits);
  else
    add(text, size, 0, "%s %s: %s", task->what, task->subject,
        has_ended ? "some of its parts are under way" : "under way");
}

static size_t describe_cause(const struct pawl_task *task, char *text, size_t size, size_t used) {
  const struct pwi_cause *cause = &task->cause;
  return add(text, size, used, "%s: call %" PRIu64 ", %s %s, failed: %s", pawl_status_text(task->inner.status),
             cause->id, cause->what, cause->subject, pawl_status_text(cause->status));
}

static void describe_failures(const struct pawl_task *task, char *text, size_t size, size_t used) {
  size_t count = task->inner.failure_count;
  for (size_t i = 0; i < count && i < PWI_TASK_FAILURES; i++) {
    const struct pwi_task_failure *failure = &task->inner.failures[i];
    used = add(text, size, used, "%s", i > 0 ? "; " : "");
    if (failure->range.end != PAWL_KEY_END || failure->range.begin != 0)
      used = add(text, size, used, "[%" PRIu64 ", %" PRIu64 ") ", failure->range.begin, failure->range.end);
    used = add(text, size, used, "%s", pawl_status_text(failure->status));
  }
  if (count > PWI_TASK_FAILURES) add(text, size, used, "; and %zu more", count - PWI_TASK_FAILURES);
}

void pawl_task_describe(const struct pawl_task *task, char *text, size_t size) {
  if (size == 0) return;
  if (!pawl_task_is_done(task)) {
    describe_open(task, text, size);
    return;
  }
  size_t used = add(text, size, 0, "%s %s: ", task->what, task->subject);
  if (task->inner.status && task->cause.what)
    describe_cause(task, text, size, used);
  else if (task->called)
    pwi_called_describe(task, text, size);
  else if (task->inner.failure_count == 0)
    add(text, size, used, "%s", pawl_status_text(task->inner.status));
  else
    describe_failures(task, text, size, used);
}

uint64_t pawl_task_id(const struct pawl_task *task) { return task->id; }

/* --- tasks with parts ----------------------------------------------------------------------------------- */

pawl_status pawl_task_begin(struct pawl_session *session, const char *name, struct pawl_task **task_out) {
  struct pawl_task *task = NULL;
  if (!session || !name || !task_out) return pwi_error(PAWL_INVALID, "task: session, name or task_out is NULL");
  pwi_driver_enter(&session->driver);
  const char *kept = pwi_task_pool_name(session->pool, name);
  pawl_status status = kept ? pwi_session_task(session, &session->owns, true, "task", kept, &task) : PAWL_NO_MEMORY;
  if (!status) status = pwi_session_started(session, task, pwi_sequence_own(&session->sequence, task), task_out);
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "task %s", name) : PAWL_OK;
}

pawl_status pawl_task_end(struct pawl_task *task, pawl_status status) {
  if (!task || pawl_task_is_done(task)) return pwi_error(PAWL_INVALID, "end: task is NULL or has finished");
  struct pwi_driver *driver = task->line->driver;
  pwi_driver_enter(driver);
  bool may = task->is_own && task->is_in_order && !task->has_ended;
  if (may) {
    task->inner.status = status;
    task->inner.finished(&task->inner);
  }
  pwi_driver_leave(driver);
  if (may) return PAWL_OK;
  return pwi_error(PAWL_INVALID, "end %s %s: not a task of pawl_task_begin, or already ended", task->what,
                   task->subject);
}

/* --- clocks --------------------------------------------------------------------------------------------- */

/* Another thread numbers a held call. */
uint64_t pawl_task_number(const struct pawl_task *task) {
  if (pawl_task_is_done(task)) return task->inner.number;
  struct pwi_driver *driver = task->line->driver;
  pwi_driver_enter(driver);
  uint64_t number = task->inner.number;
  pwi_driver_leave(driver);
  return number;
}

pawl_status pawl_task_clocks(const struct pawl_task *task, struct pawl_clock *clocks, size_t room, size_t *count_out) {
  if (!task || (!clocks && room > 0) || !count_out)
    return pwi_error(PAWL_INVALID, "clocks: task, clocks or count_out is NULL");
  if (!pawl_task_is_done(task) || task->inner.status || !task->inner.clocks)
    return pwi_error(PAWL_INVALID, "%s %s: no clocks: the task did not succeed, or they were not requested", task->what,
                     task->subject);
  for (size_t i = 0; i < task->clocks.count && i < room; i++) {
    const struct pwi_clock_seen *seen = &task->clocks.items[i];
    clocks[i] = (struct pawl_clock){seen->range, seen->sender.id, seen->time};
  }
  *count_out = task->clocks.count;
  return PAWL_OK;
}
