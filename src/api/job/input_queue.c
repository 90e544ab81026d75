#include "api/job/input_queue.h"

#include <string.h>

#include "api/session.h"
#include "base/memory.h"
#include "host/clock.h"

enum contest_standing { CONTENDING, OWNING, BEATEN };

struct pwi_job_queue {
  struct pawl_session *session;
  struct pwi_job_names names;
  char group[PAWL_NAME_MAX + 1];
  const void *spec;
  size_t spec_size;
  struct pwi_event bell;
  bool is_offered;

  pthread_mutex_t mutex; /* guards the fields below */
  size_t references;     /* one for the job, and one for each unfinished call */
  enum contest_standing standing;
  bool is_closed;
  struct pwi_job_input *inputs, **inputs_end;
  uint64_t last_number;
};

pawl_status pwi_job_queue_create(struct pawl_session *session, const struct pwi_job_names *names, const char *group,
                                 struct pwi_job_queue **queue_out) {
  struct pwi_job_queue *queue = pwi_alloc_zero(1, sizeof *queue);
  if (!queue) return PAWL_NO_MEMORY;
  queue->session = session;
  queue->names = *names;
  strncpy(queue->group, group, sizeof queue->group - 1);
  queue->references = 1;
  queue->inputs_end = &queue->inputs;
  pthread_mutex_init(&queue->mutex, NULL); /* cannot fail on Linux */
  *queue_out = queue;
  return PAWL_OK;
}

void pwi_job_queue_describe(struct pwi_job_queue *queue, const void *spec, size_t size) {
  queue->spec = spec;
  queue->spec_size = size;
}

static void release(struct pwi_job_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  bool is_last = --queue->references == 0;
  pthread_mutex_unlock(&queue->mutex);
  if (!is_last) return;
  pthread_mutex_destroy(&queue->mutex);
  pwi_free(queue);
}

/* --- inputs --------------------------------------------------------------------------------------------- */

static void ring(struct pwi_job_queue *queue) {
  pwi_driver_enter(&queue->session->driver);
  pwi_event_set(&queue->session->driver, &queue->bell);
  pwi_driver_leave(&queue->session->driver);
}

/* False if the queue is closed: the caller keeps the input. */
static bool put(struct pwi_job_queue *queue, struct pwi_job_input *input) {
  pthread_mutex_lock(&queue->mutex);
  bool is_open = !queue->is_closed;
  if (is_open) {
    *queue->inputs_end = input;
    queue->inputs_end = &input->next;
  }
  pthread_mutex_unlock(&queue->mutex);
  if (is_open) ring(queue);
  return is_open;
}

static void ended(void *context, struct pawl_task *task) {
  struct pwi_job_input *input = context;
  struct pwi_job_queue *queue = input->queue;
  if (!put(queue, input)) {
    pawl_task_release(task);
    pwi_free(input);
  }
  release(queue);
}

pawl_status pwi_job_queue_expect(struct pwi_job_queue *queue, enum pwi_job_input_kind kind, uint64_t number,
                                 enum pwi_job_order_kind order, struct pawl_task *task) {
  struct pwi_job_input *input = pwi_alloc_zero(1, sizeof *input);
  if (!input) {
    pawl_task_release(task);
    return pwi_error_status(PAWL_NO_MEMORY, "job");
  }
  *input =
      (struct pwi_job_input){.kind = kind, .name = {.number = number}, .task = task, .order = order, .queue = queue};
  pthread_mutex_lock(&queue->mutex);
  queue->references++;
  pthread_mutex_unlock(&queue->mutex);
  return pawl_task_on_done(task, ended, input);
}

struct pwi_job_input *pwi_job_queue_take(struct pwi_job_queue *queue) {
  atomic_store(&queue->bell.is_set, false); /* reset before reading, so that a later input rings again */
  pthread_mutex_lock(&queue->mutex);
  struct pwi_job_input *inputs = queue->inputs;
  queue->inputs = NULL;
  queue->inputs_end = &queue->inputs;
  pthread_mutex_unlock(&queue->mutex);
  return inputs;
}

bool pwi_job_queue_wait(struct pwi_job_queue *queue, int64_t deadline) {
  return pwi_driver_wait(&queue->session->driver, &queue->bell, deadline);
}

/* --- requests of other nodes ---------------------------------------------------------------------------- */

static pawl_status meet_contender(struct pwi_job_queue *queue, uint64_t contender) {
  uint64_t self = pawl_session_node(queue->session).id;
  pthread_mutex_lock(&queue->mutex);
  if (queue->standing == CONTENDING && contender < self) queue->standing = BEATEN;
  bool is_beaten = queue->standing == BEATEN;
  pthread_mutex_unlock(&queue->mutex);
  return is_beaten ? PAWL_OK : PAWL_EXISTS;
}

/* The task belongs to the scheduler, and is not a subtask of the call by which the worker joins. */
static pawl_status begin_task(struct pwi_job_queue *queue, struct pawl_task **task_out) {
  struct pawl_invocation *invocation = pwi_offered_functions_step_out();
  pawl_status status = pawl_task_begin(queue->session, "a worker", task_out);
  pwi_offered_functions_step_in(invocation);
  return status;
}

static pawl_status welcome(struct pwi_job_queue *queue, struct pawl_invocation *invocation,
                           struct pwi_job_input *input) {
  struct pwi_job_welcome said = {.number = input->name.number, .task = pawl_task_id(input->task)};
  struct pwi_writer writer = {0};
  memcpy(said.group, queue->group, sizeof said.group);
  pwi_job_welcome_write(&writer, &said);
  pawl_status status = writer.status ? writer.status : pawl_invocation_return(invocation, writer.data, writer.size);
  pwi_writer_fini(&writer);
  return !status && !put(queue, input) ? PAWL_NOT_FOUND : status;
}

static pawl_status take_in(struct pwi_job_queue *queue, struct pawl_invocation *invocation,
                           const struct pwi_job_asking *asking) {
  pthread_mutex_lock(&queue->mutex);
  bool is_ours = queue->standing == OWNING;
  uint64_t number = ++queue->last_number;
  pthread_mutex_unlock(&queue->mutex);
  if (!is_ours) return PAWL_NOT_FOUND;
  struct pwi_job_input *input = pwi_alloc_zero(1, sizeof *input);
  if (!input) return PAWL_NO_MEMORY;
  input->kind = PWI_JOB_INPUT_JOINED;
  input->name = (struct pwi_worker_name){number, pawl_invocation_caller(invocation).id, asking->pid, ""};
  memcpy(input->name.host, asking->host, sizeof input->name.host);
  input->their_task = asking->task;
  pawl_status status = begin_task(queue, &input->task);
  if (!status) {
    status = welcome(queue, invocation, input);
    if (!status) return PAWL_OK;
    (void)pawl_task_end(input->task, PAWL_OK);
    pawl_task_release(input->task);
  }
  pwi_free(input);
  return status;
}

static pawl_status describe(struct pwi_job_queue *queue, struct pawl_invocation *invocation) {
  pthread_mutex_lock(&queue->mutex);
  bool is_ours = queue->standing == OWNING;
  pthread_mutex_unlock(&queue->mutex);
  return is_ours ? pawl_invocation_return(invocation, queue->spec, queue->spec_size) : PAWL_NOT_FOUND;
}

static pawl_status asked(struct pawl_invocation *invocation, void *context) {
  struct pwi_job_queue *queue = context;
  struct pwi_job_asking asking;
  size_t size;
  const void *bytes = pawl_invocation_argument(invocation, &size);
  pawl_status status = pwi_job_asking_read(bytes, size, &asking);
  if (status) return status;
  if (asking.what == PWI_JOB_ASK_CONTEST) return meet_contender(queue, pawl_invocation_caller(invocation).id);
  if (asking.what == PWI_JOB_ASK_SPEC) return describe(queue, invocation);
  return take_in(queue, invocation, &asking);
}

/* --- becoming the scheduler ----------------------------------------------------------------------------- */

pawl_status pwi_job_queue_open(struct pwi_job_queue *queue) {
  pawl_status status = pwi_offered_function_add(queue->session, queue->names.job, asked, queue);
  queue->is_offered = !status;
  return status;
}

/* A member that does not answer is dead, or has not offered the function yet and will ask us. */
static bool is_held(const struct pawl_task *task, uint64_t self) {
  struct pawl_answer answer;
  for (size_t i = 0; i < pawl_answer_count(task); i++)
    if (pawl_answer_get(task, i, &answer) == PAWL_OK && answer.node.id != self && answer.status == PAWL_EXISTS)
      return true;
  return false;
}

static pawl_status ask_others(struct pwi_job_queue *queue, int64_t deadline, struct pawl_task **task_out) {
  struct pwi_job_asking asking = {.what = PWI_JOB_ASK_CONTEST};
  struct pwi_writer writer = {0};
  pwi_job_asking_write(&writer, &asking);
  pawl_status status = writer.status;
  if (!status)
    status = pwi_call_aside(queue->session, pawl_to_group(queue->names.scheduler), queue->names.job, writer.data,
                            writer.size, task_out);
  pwi_writer_fini(&writer);
  if (status) return status;
  if (pwi_driver_wait(&queue->session->driver, &(*task_out)->done, deadline)) return PAWL_OK;
  pawl_task_release(*task_out);
  return PAWL_TIMED_OUT;
}

pawl_status pwi_job_queue_contest(struct pwi_job_queue *queue, int64_t deadline) {
  struct pawl_task *task;
  pawl_status status = ask_others(queue, deadline, &task);
  if (status) return pwi_error_status(status, "%s", queue->names.scheduler);
  bool is_taken = is_held(task, pawl_session_node(queue->session).id);
  pawl_task_release(task);
  pthread_mutex_lock(&queue->mutex);
  if (queue->standing == CONTENDING) queue->standing = is_taken ? BEATEN : OWNING;
  bool is_ours = queue->standing == OWNING;
  pthread_mutex_unlock(&queue->mutex);
  return is_ours ? PAWL_OK : pwi_error_status(PAWL_EXISTS, "%s", queue->names.scheduler);
}

/* --- closing -------------------------------------------------------------------------------------------- */

void pwi_job_queue_withdraw(struct pwi_job_queue *queue) {
  if (queue->is_offered) (void)pawl_function_withdraw(queue->session, queue->names.job);
  queue->is_offered = false;
}

void pwi_job_queue_close(struct pwi_job_queue *queue) {
  if (!queue) return;
  pwi_job_queue_withdraw(queue);
  pthread_mutex_lock(&queue->mutex);
  queue->is_closed = true;
  struct pwi_job_input *inputs = queue->inputs;
  queue->inputs = NULL;
  pthread_mutex_unlock(&queue->mutex);
  while (inputs) {
    struct pwi_job_input *input = inputs;
    inputs = input->next;
    if (input->kind == PWI_JOB_INPUT_JOINED) (void)pawl_task_end(input->task, PAWL_OK);
    pawl_task_release(input->task);
    pwi_free(input);
  }
  release(queue);
}
