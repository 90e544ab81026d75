/* Starts tasks and asks the manager: shared by all calls of a session. */
#include "api/session.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"

#define CATCH_UP_NS (10 * INT64_C(1000000))

pawl_status pwi_session_task(struct pawl_session *session, struct pwi_task_line *line, bool has_handle,
                             const char *what, const char *subject, struct pawl_task **task_out) {
  if (session->is_closed) return PAWL_NODE_STOPPED;
  struct pawl_task *task = pwi_task_take(session->pool);
  if (!task) return PAWL_NO_MEMORY;
  task->what = what;
  task->subject = subject;
  task->has_handle = has_handle;
  pawl_status status = line == &session->line ? pwi_offered_functions_adopt(session->functions, task) : PAWL_OK;
  if (status) {
    pwi_task_unref(task);
    return status;
  }
  if (has_handle) atomic_store_explicit(&task->references, 2, memory_order_relaxed);
  pwi_task_line_up(line, task);
  *task_out = task;
  return PAWL_OK;
}

pawl_status pwi_session_started(struct pawl_session *session, struct pawl_task *task, pawl_status status,
                                struct pawl_task **task_out) {
  if (status) {
    if (task->has_handle) pwi_task_unref(task);
    pwi_task_line_undo(task->line, task);
    return status;
  }
  if (task_out) *task_out = task;
  pwi_driver_nudge(&session->driver);
  return PAWL_OK;
}

bool pwi_session_settle(struct pawl_session *session, uint64_t serial, int64_t deadline) {
  struct pwi_flush flush = {0};
  pwi_driver_enter(&session->driver);
  pwi_flush_begin(&session->line, &flush, serial);
  pwi_driver_leave(&session->driver);
  bool is_done = pwi_driver_wait(&session->driver, &flush.done, deadline);
  /* also when it is done: the thread that set the event may still be inside */
  pwi_driver_enter(&session->driver);
  pwi_flush_cancel(&session->line, &flush);
  pwi_driver_leave(&session->driver);
  return is_done;
}

void pwi_session_catch_up(struct pawl_session *session) {
  pwi_driver_enter(&session->driver);
  uint64_t serial = session->line.serial - PWI_SESSION_TASKS / 2;
  pwi_driver_leave(&session->driver);
  (void)pwi_session_settle(session, serial, pwi_driver_deadline(CATCH_UP_NS));
}

/* On the stack of the asking thread. */
struct waiting_ask {
  struct pwi_asking asking;
  struct pwi_event done;
  struct pwi_driver *driver;
  bool wants_reply;
  pawl_status status;
  void *reply;
  size_t size;
};

static void take_reply(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct waiting_ask *question = (struct waiting_ask *)((char *)asking - offsetof(struct waiting_ask, asking));
  question->status = status;
  if (status == PAWL_OK && question->wants_reply) {
    question->reply = pwi_alloc(size);
    if (question->reply && size > 0) memcpy(question->reply, payload, size);
    if (!question->reply) question->status = PAWL_NO_MEMORY;
    question->size = size;
  }
  pwi_event_set(question->driver, &question->done);
}

pawl_status pwi_session_ask(struct pawl_session *session, enum pwi_ask what, const struct pwi_writer *payload,
                            int64_t deadline, void **reply_out, size_t *size_out) {
  struct waiting_ask question = {
      .asking.replied = take_reply, .driver = &session->driver, .wants_reply = reply_out, .status = PAWL_TIMED_OUT};
  if (payload && payload->status) return payload->status;
  pwi_driver_enter(&session->driver);
  pawl_status status = session->is_closed ? PAWL_NODE_STOPPED
                                          : pwi_client_ask(session->client, &question.asking, what,
                                                           payload ? payload->data : NULL, payload ? payload->size : 0);
  pwi_driver_leave(&session->driver);
  if (status) return status;
  pwi_driver_wait(&session->driver, &question.done, deadline);
  /* also when the answer has come: the thread that set the event may still be inside */
  pwi_driver_enter(&session->driver);
  if (!pwi_event_is_set(&question.done)) pwi_client_unask(session->client, &question.asking);
  pwi_driver_leave(&session->driver);
  if (question.status) return question.status;
  if (reply_out) {
    *reply_out = question.reply;
    *size_out = question.size;
  }
  return PAWL_OK;
}
