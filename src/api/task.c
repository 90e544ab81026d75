/* The calls of <pawl/task.h>. A task that has finished is asked without looking at its session, which may be gone. */
#include <pawl/task.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/error.h"
#include "api/tasks.h"

bool pawl_task_is_done(const struct pawl_task *task) { return pwi_event_is_set(&task->done); }

static pawl_status tell_failure(const struct pawl_task *task) {
  char text[PWI_ERROR_TEXT_MAX + 1];
  pawl_status status = task->inner.status;
  if (status == PAWL_OK) return PAWL_OK;
  pawl_task_describe(task, text, sizeof text);
  return pwi_error(status, "%s", text);
}

pawl_status pawl_task_wait(struct pawl_task *task, int64_t timeout_ns) {
  if (!task) return pwi_error(PAWL_INVALID, "wait for a task: there is none");
  if (!pawl_task_is_done(task)) {
    struct pwi_driver *driver = task->line->driver;
    if (!pwi_driver_wait(driver, &task->done, pwi_driver_deadline(timeout_ns)))
      return pwi_error(PAWL_TIMED_OUT, "%s %s: not finished after %" PRId64 " ns; it goes on", task->what,
                       task->subject, timeout_ns);
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
  if (!task || !call) return pwi_error(PAWL_INVALID, "on_done: there is no task, or nobody to call");
  if (atomic_exchange(&task->has_call, true))
    return pwi_error(PAWL_EXISTS, "%s %s: the task has a callback already", task->what, task->subject);
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
    return pwi_error(PAWL_NOT_FOUND, "%s %s: there is no failure number %zu", task->what, task->subject, index);
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

void pawl_task_describe(const struct pawl_task *task, char *text, size_t size) {
  if (size == 0) return;
  size_t used = add(text, size, 0, "%s %s: ", task->what, task->subject);
  if (!pawl_task_is_done(task)) {
    add(text, size, used, "under way");
    return;
  }
  if (task->called) {
    pwi_called_describe(task, text, size);
    return;
  }
  size_t count = task->inner.failure_count;
  if (count == 0) {
    add(text, size, used, "%s", pawl_status_text(task->inner.status));
    return;
  }
  for (size_t i = 0; i < count && i < PWI_TASK_FAILURES; i++) {
    const struct pwi_task_failure *failure = &task->inner.failures[i];
    used = add(text, size, used, "%s", i > 0 ? "; " : "");
    if (failure->range.end != PAWL_KEY_END || failure->range.begin != 0)
      used = add(text, size, used, "[%" PRIu64 ", %" PRIu64 ") ", failure->range.begin, failure->range.end);
    used = add(text, size, used, "%s", pawl_status_text(failure->status));
  }
  if (count > PWI_TASK_FAILURES) add(text, size, used, "; and %zu more", count - PWI_TASK_FAILURES);
}
