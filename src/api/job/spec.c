/* pawl_job_spec: the specification of a job, for a process that has not joined it. */
#include <pawl/job.h>

#include <string.h>

#include "api/job/names.h"
#include "api/session.h"
#include "base/memory.h"
#include "host/clock.h"

#define LOOK_NS (100 * INT64_C(1000000)) /* between two checks whether the job exists */

static pawl_status ask(struct pawl_session *session, const struct pwi_job_names *names, struct pawl_task **task_out) {
  struct pwi_job_asking asking = {.what = PWI_JOB_ASK_SPEC};
  struct pwi_writer writer = {0};
  pwi_job_asking_write(&writer, &asking);
  pawl_status status = writer.status;
  if (!status)
    status = pwi_call_aside(session, pawl_to_group(names->scheduler), names->job, writer.data, writer.size, task_out);
  pwi_writer_fini(&writer);
  return status;
}

/* Of all candidates only the scheduler answers. */
static pawl_status read_answer(const struct pawl_task *task, void *spec_out, size_t room, size_t *size_out) {
  struct pawl_answer answer;
  for (size_t i = 0; i < pawl_answer_count(task); i++) {
    if (pawl_answer_get(task, i, &answer) != PAWL_OK || answer.status) continue;
    if (answer.size > room) return PAWL_TOO_LARGE;
    if (answer.size > 0) memcpy(spec_out, answer.bytes, answer.size);
    *size_out = answer.size;
    return PAWL_OK;
  }
  return PAWL_NOT_FOUND;
}

/* PAWL_NOT_FOUND: not now, perhaps later. */
static pawl_status look(struct pawl_session *session, const struct pwi_job_names *names, int64_t deadline,
                        void *spec_out, size_t room, size_t *size_out) {
  struct pawl_task *task;
  pawl_status status = ask(session, names, &task);
  if (status) return status;
  bool is_done = pwi_driver_wait(&session->driver, &task->done, deadline);
  status = is_done ? read_answer(task, spec_out, room, size_out) : PAWL_NOT_FOUND;
  if (status == PAWL_NOT_FOUND && is_done && task->inner.status) status = task->inner.status;
  pawl_task_release(task);
  return status;
}

/* Errors that waiting does not cure. */
static bool is_final(pawl_status status) {
  return status == PAWL_FORBIDDEN || status == PAWL_NODE_STOPPED || status == PAWL_NO_MEMORY ||
         status == PAWL_INVALID || status == PAWL_TOO_LARGE;
}

pawl_status pawl_job_spec(struct pawl_session *session, const char *name, int64_t timeout_ns, void *spec_out,
                          size_t room, size_t *size_out) {
  struct pwi_job_names names;
  if (!session || !size_out || (!spec_out && room > 0))
    return pwi_error(PAWL_INVALID, "job: session or size_out is NULL, or spec_out is NULL but room > 0");
  if (pwi_session_job_names(session, name, &names))
    return pwi_error(PAWL_INVALID, "job '%s': the name must be a word of at most %d characters", name ? name : "",
                     PWI_JOB_NAME_MAX);
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  struct pwi_event never = {0};
  for (;;) {
    pawl_status status = look(session, &names, deadline, spec_out, room, size_out);
    if (!status) return PAWL_OK;
    if (is_final(status)) return pwi_error_status(status, "job %s", name);
    int64_t now = pwi_host_now();
    if (now >= deadline) return pwi_error(PAWL_TIMED_OUT, "job %s does not exist", name);
    (void)pwi_driver_wait(&session->driver, &never, deadline - now < LOOK_NS ? deadline : now + LOOK_NS);
  }
}
