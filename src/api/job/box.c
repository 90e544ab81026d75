#include "api/job/box.h"

#include <string.h>

#include "api/session.h"
#include "base/memory.h"
#include "host/clock.h"

enum standing { CONTENDING, OWNING, BEATEN };

struct pwi_job_box {
  struct pawl_session *session;
  struct pwi_job_names names;
  char group[PAWL_NAME_MAX + 1];
  const void *spec;
  size_t spec_size;
  struct pwi_event bell;
  bool is_offered;

  pthread_mutex_t mutex; /* for the rest */
  size_t references;     /* the job's, and one for each call that has not ended */
  enum standing standing;
  bool is_closed, is_interrupted;
  struct pwi_letter *letters, **letters_end;
  uint64_t last_number;
};

pawl_status pwi_job_box_create(struct pawl_session *session, const struct pwi_job_names *names, const char *group,
                               struct pwi_job_box **box_out) {
  struct pwi_job_box *box = pwi_alloc_zero(1, sizeof *box);
  if (!box) return PAWL_NO_MEMORY;
  box->session = session;
  box->names = *names;
  strncpy(box->group, group, sizeof box->group - 1);
  box->references = 1;
  box->letters_end = &box->letters;
  pthread_mutex_init(&box->mutex, NULL); /* cannot fail on Linux */
  *box_out = box;
  return PAWL_OK;
}

void pwi_job_box_describe(struct pwi_job_box *box, const void *spec, size_t size) {
  box->spec = spec;
  box->spec_size = size;
}

static void release(struct pwi_job_box *box) {
  pthread_mutex_lock(&box->mutex);
  bool is_last = --box->references == 0;
  pthread_mutex_unlock(&box->mutex);
  if (!is_last) return;
  pthread_mutex_destroy(&box->mutex);
  pwi_free(box);
}

/* --- letters ------------------------------------------------------------------------------------------------------------ */

static void ring(struct pwi_job_box *box) {
  pwi_driver_enter(&box->session->driver);
  pwi_event_set(&box->session->driver, &box->bell);
  pwi_driver_leave(&box->session->driver);
}

/* False if nobody reads any more: the letter is still the caller's. */
static bool put(struct pwi_job_box *box, struct pwi_letter *letter) {
  pthread_mutex_lock(&box->mutex);
  bool is_open = !box->is_closed;
  if (is_open) {
    *box->letters_end = letter;
    box->letters_end = &letter->next;
  }
  pthread_mutex_unlock(&box->mutex);
  if (is_open) ring(box);
  return is_open;
}

static void ended(void *context, struct pawl_task *task) {
  struct pwi_letter *letter = context;
  struct pwi_job_box *box = letter->box;
  if (!put(box, letter)) {
    pawl_task_release(task);
    pwi_free(letter);
  }
  release(box);
}

pawl_status pwi_job_box_expect(struct pwi_job_box *box, enum pwi_letter_kind kind, uint64_t number,
                               enum pwi_crew_order_kind order, struct pawl_task *task) {
  struct pwi_letter *letter = pwi_alloc_zero(1, sizeof *letter);
  if (!letter) {
    pawl_task_release(task);
    return pwi_error_status(PAWL_NO_MEMORY, "job");
  }
  *letter = (struct pwi_letter){.kind = kind, .name = {.number = number}, .task = task, .order = order, .box = box};
  pthread_mutex_lock(&box->mutex);
  box->references++;
  pthread_mutex_unlock(&box->mutex);
  return pawl_task_on_done(task, ended, letter);
}

struct pwi_letter *pwi_job_box_take(struct pwi_job_box *box) {
  atomic_store(&box->bell.is_set, false); /* before we look: what comes after it rings again */
  pthread_mutex_lock(&box->mutex);
  struct pwi_letter *letters = box->letters;
  box->letters = NULL;
  box->letters_end = &box->letters;
  pthread_mutex_unlock(&box->mutex);
  return letters;
}

bool pwi_job_box_wait(struct pwi_job_box *box, int64_t deadline) {
  return pwi_driver_wait(&box->session->driver, &box->bell, deadline);
}

void pwi_job_box_interrupt(struct pwi_job_box *box) {
  pthread_mutex_lock(&box->mutex);
  box->is_interrupted = true;
  pthread_mutex_unlock(&box->mutex);
  ring(box);
}

bool pwi_job_box_was_interrupted(struct pwi_job_box *box) {
  pthread_mutex_lock(&box->mutex);
  bool was = box->is_interrupted;
  box->is_interrupted = false;
  pthread_mutex_unlock(&box->mutex);
  return was;
}

/* --- what others ask ------------------------------------------------------------------------------------------------------ */

static pawl_status meet_contender(struct pwi_job_box *box, uint64_t contender) {
  uint64_t self = pawl_session_node(box->session).id;
  pthread_mutex_lock(&box->mutex);
  if (box->standing == CONTENDING && contender < self) box->standing = BEATEN;
  bool is_beaten = box->standing == BEATEN;
  pthread_mutex_unlock(&box->mutex);
  return is_beaten ? PAWL_OK : PAWL_EXISTS;
}

/* The task is the scheduler's own, and no part of the call by which the worker joins. */
static pawl_status begin_task(struct pwi_job_box *box, struct pawl_task **task_out) {
  struct pawl_invocation *invocation = pwi_functions_step_out();
  pawl_status status = pawl_task_begin(box->session, "a worker", task_out);
  pwi_functions_step_in(invocation);
  return status;
}

static pawl_status welcome(struct pwi_job_box *box, struct pawl_invocation *invocation, struct pwi_letter *letter) {
  struct pwi_job_welcome said = {.number = letter->name.number, .task = pawl_task_id(letter->task)};
  struct pwi_writer writer = {0};
  memcpy(said.group, box->group, sizeof said.group);
  pwi_job_welcome_write(&writer, &said);
  pawl_status status = writer.status ? writer.status : pawl_invocation_return(invocation, writer.data, writer.size);
  pwi_writer_fini(&writer);
  return !status && !put(box, letter) ? PAWL_NOT_FOUND : status;
}

static pawl_status take_in(struct pwi_job_box *box, struct pawl_invocation *invocation,
                           const struct pwi_job_asking *asking) {
  pthread_mutex_lock(&box->mutex);
  bool is_ours = box->standing == OWNING;
  uint64_t number = ++box->last_number;
  pthread_mutex_unlock(&box->mutex);
  if (!is_ours) return PAWL_NOT_FOUND;
  struct pwi_letter *letter = pwi_alloc_zero(1, sizeof *letter);
  if (!letter) return PAWL_NO_MEMORY;
  letter->kind = PWI_LETTER_JOINED;
  letter->name = (struct pwi_worker_name){number, pawl_invocation_caller(invocation).id, asking->pid, ""};
  memcpy(letter->name.host, asking->host, sizeof letter->name.host);
  letter->their_task = asking->task;
  pawl_status status = begin_task(box, &letter->task);
  if (!status) {
    status = welcome(box, invocation, letter);
    if (!status) return PAWL_OK;
    (void)pawl_task_end(letter->task, PAWL_OK);
    pawl_task_release(letter->task);
  }
  pwi_free(letter);
  return status;
}

static pawl_status describe(struct pwi_job_box *box, struct pawl_invocation *invocation) {
  pthread_mutex_lock(&box->mutex);
  bool is_ours = box->standing == OWNING;
  pthread_mutex_unlock(&box->mutex);
  return is_ours ? pawl_invocation_return(invocation, box->spec, box->spec_size) : PAWL_NOT_FOUND;
}

static pawl_status asked(struct pawl_invocation *invocation, void *context) {
  struct pwi_job_box *box = context;
  struct pwi_job_asking asking;
  size_t size;
  const void *bytes = pawl_invocation_argument(invocation, &size);
  pawl_status status = pwi_job_asking_read(bytes, size, &asking);
  if (status) return status;
  if (asking.what == PWI_JOB_ASK_CONTEST) return meet_contender(box, pawl_invocation_caller(invocation).id);
  if (asking.what == PWI_JOB_ASK_SPEC) return describe(box, invocation);
  return take_in(box, invocation, &asking);
}

/* --- who is the scheduler ------------------------------------------------------------------------------------------------- */

pawl_status pwi_job_box_open(struct pwi_job_box *box) {
  pawl_status status = pwi_function_offer(box->session, box->names.job, asked, box);
  box->is_offered = !status;
  return status;
}

/* Whoever does not answer is dead, or has not got as far as offering the function, and will ask us. */
static bool is_held(const struct pawl_task *task, uint64_t self) {
  struct pawl_answer answer;
  for (size_t i = 0; i < pawl_answer_count(task); i++)
    if (pawl_answer_get(task, i, &answer) == PAWL_OK && answer.node.id != self && answer.status == PAWL_EXISTS)
      return true;
  return false;
}

static pawl_status ask_others(struct pwi_job_box *box, int64_t deadline, struct pawl_task **task_out) {
  struct pwi_job_asking asking = {.what = PWI_JOB_ASK_CONTEST};
  struct pwi_writer writer = {0};
  pwi_job_asking_write(&writer, &asking);
  pawl_status status = writer.status;
  if (!status)
    status = pwi_call_aside(box->session, pawl_to_group(box->names.scheduler), box->names.job, writer.data, writer.size,
                            task_out);
  pwi_writer_fini(&writer);
  if (status) return status;
  if (pwi_driver_wait(&box->session->driver, &(*task_out)->done, deadline)) return PAWL_OK;
  pawl_task_release(*task_out);
  return PAWL_TIMED_OUT;
}

pawl_status pwi_job_box_contest(struct pwi_job_box *box, int64_t deadline) {
  struct pawl_task *task;
  pawl_status status = ask_others(box, deadline, &task);
  if (status) return pwi_error_status(status, "%s", box->names.scheduler);
  bool is_taken = is_held(task, pawl_session_node(box->session).id);
  pawl_task_release(task);
  pthread_mutex_lock(&box->mutex);
  if (box->standing == CONTENDING) box->standing = is_taken ? BEATEN : OWNING;
  bool is_ours = box->standing == OWNING;
  pthread_mutex_unlock(&box->mutex);
  return is_ours ? PAWL_OK : pwi_error_status(PAWL_EXISTS, "%s", box->names.scheduler);
}

/* --- going -------------------------------------------------------------------------------------------------------------- */

void pwi_job_box_withdraw(struct pwi_job_box *box) {
  if (box->is_offered) (void)pawl_function_withdraw(box->session, box->names.job);
  box->is_offered = false;
}

void pwi_job_box_close(struct pwi_job_box *box) {
  if (!box) return;
  pwi_job_box_withdraw(box);
  pthread_mutex_lock(&box->mutex);
  box->is_closed = true;
  struct pwi_letter *letters = box->letters;
  box->letters = NULL;
  pthread_mutex_unlock(&box->mutex);
  while (letters) {
    struct pwi_letter *letter = letters;
    letters = letter->next;
    if (letter->kind == PWI_LETTER_JOINED) (void)pawl_task_end(letter->task, PAWL_OK);
    pawl_task_release(letter->task);
    pwi_free(letter);
  }
  release(box);
}
