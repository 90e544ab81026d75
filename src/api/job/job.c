/* The scheduler's side of <pawl/job.h>: connects job/scheduler.h to calls.
 *
 * Only the thread inside a call of the job uses the scheduler: it reads the inputs
 * (api/job/input_queue.h), advances the time, and carries out the scheduler's orders. An order is a call
 * to the worker's desk. The scheduler waits for an open task of each worker, and so learns when a worker
 * is gone; each worker waits for an open task of the scheduler. The scheduler is told of a loss once the
 * worker is fenced (api/job/fence.h), so pieces move only then.
 */
#include <pawl/job.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <pawl/group.h>

#include "api/group.h"
#include "api/job/input_queue.h"
#include "api/job/fence.h"
#include "api/job/round.h"
#include "api/options.h"
#include "api/job/names.h"
#include "api/session.h"
#include "base/memory.h"
#include "host/clock.h"

#define PATIENCE_NS (60 * PWI_HOST_SECOND)
#define FENCE_NS (100 * INT64_C(1000000)) /* between two checks for other events */
/* for telling workers that the job has ended; others will notice by themselves */
#define FAREWELL_NS PWI_HOST_SECOND

/* A worker's state besides that in the scheduler. */
struct colleague {
  struct colleague *next;
  uint64_t number, node;
  bool is_lost;             /* lost, but not fenced yet, so the scheduler has not been told */
  int64_t lost_at;          /* when it was lost */
  struct pawl_task *stay;   /* our task that the worker waits for; NULL: ended */
  bool is_watched;          /* an input will report when it is gone */
  struct pawl_task *result; /* its WORK call of this round; NULL: it has not answered */
};

struct pawl_job {
  struct pawl_session *session;
  struct pawl_job_options options; /* name and spec are copies */
  struct pwi_job_names names;
  struct pwi_scheduler *scheduler;
  struct pwi_job_queue *queue;
  struct pawl_group *name_group; /* the group of the job's name */
  struct colleague *colleagues;
  bool is_wanted; /* a round is under way, with these fields */
  void *argument;
  size_t argument_size;
};

void pawl_job_options_init_sized(struct pawl_job_options *options, size_t struct_size) {
  const struct pawl_job_options defaults = {.least = 1, .most = UINT32_MAX, .patience_ns = PATIENCE_NS};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- workers -------------------------------------------------------------------------------------------- */

static struct colleague *find(const struct pawl_job *job, uint64_t number) {
  struct colleague *colleague = job->colleagues;
  while (colleague && colleague->number != number) colleague = colleague->next;
  return colleague;
}

static void dismiss(struct colleague *colleague) {
  if (!colleague->stay) return;
  (void)pawl_task_end(colleague->stay, PAWL_OK);
  pawl_task_release(colleague->stay);
  colleague->stay = NULL;
}

/* Removes workers that the scheduler no longer knows. */
static void sweep(struct pawl_job *job) {
  for (struct colleague **at = &job->colleagues; *at;) {
    struct colleague *colleague = *at;
    if (!pwi_scheduler_has(job->scheduler, colleague->number)) dismiss(colleague);
    if (colleague->stay || colleague->is_watched || colleague->result || colleague->is_lost) {
      at = &colleague->next;
      continue;
    }
    *at = colleague->next;
    pwi_free(colleague);
  }
}

static pawl_status watch(struct pawl_job *job, uint64_t number, uint64_t node, uint64_t their_task) {
  struct pawl_task *task;
  pawl_status status = pwi_task_elsewhere_aside(job->session, (struct pawl_node){node}, their_task, &task);
  return status ? status : pwi_job_queue_expect(job->queue, PWI_JOB_INPUT_GONE, number, 0, task);
}

/* Admits a worker. If memory is short it is told to go. */
static void take_in(struct pawl_job *job, struct pwi_job_input *input) {
  struct colleague *colleague = pwi_alloc_zero(1, sizeof *colleague);
  if (!colleague) {
    (void)pawl_task_end(input->task, PAWL_NO_MEMORY);
    pawl_task_release(input->task);
    return;
  }
  *colleague = (struct colleague){
      .next = job->colleagues, .number = input->name.number, .node = input->name.node, .stay = input->task};
  job->colleagues = colleague;
  /* the next sweep removes it */
  if (watch(job, input->name.number, input->name.node, input->their_task)) return;
  colleague->is_watched = true;
  if (pwi_scheduler_join(job->scheduler, &input->name) != PAWL_OK) dismiss(colleague);
}

/* --- losses --------------------------------------------------------------------------------------------- */

static void lose(struct pawl_job *job, uint64_t number) {
  struct colleague *colleague = find(job, number);
  if (!colleague || colleague->is_lost || !pwi_scheduler_has(job->scheduler, number)) return;
  colleague->is_lost = true;
  colleague->lost_at = pwi_host_now();
}

static bool has_pieces(const struct pawl_job *job, uint64_t number) {
  const struct pwi_rangeset *pieces;
  uint64_t owner;
  for (size_t i = 0; (pieces = pwi_scheduler_pieces(job->scheduler, i, &owner)) != NULL; i++)
    if (owner == number) return pieces->count > 0;
  return false;
}

/* A worker without pieces need not be fenced. If the manager is too old to retire it, the job continues
 * without a fence. */
static bool is_fenced(const struct pawl_job *job, const struct colleague *colleague) {
  if (!has_pieces(job, colleague->number)) return true;
  pawl_status status = pwi_job_fence(job->session, colleague->node, pwi_host_after(FENCE_NS));
  return status == PAWL_OK || status == PAWL_UNSUPPORTED;
}

/* True if a lost worker is left that may still be pushing. */
static bool fence_lost(struct pawl_job *job) {
  bool is_any_left = false;
  for (struct colleague *colleague = job->colleagues; colleague; colleague = colleague->next) {
    if (!colleague->is_lost) continue;
    if (!is_fenced(job, colleague)) {
      is_any_left = true;
      continue;
    }
    colleague->is_lost = false;
    pwi_scheduler_lost(job->scheduler, colleague->number);
  }
  return is_any_left;
}

static bool is_fencing_hopeless(const struct pawl_job *job) {
  for (const struct colleague *colleague = job->colleagues; colleague; colleague = colleague->next)
    if (colleague->is_lost && pwi_host_now() - colleague->lost_at > job->options.patience_ns) return true;
  return false;
}

/* --- inputs --------------------------------------------------------------------------------------------- */

/* A call without an answer of the worker means that the worker is gone. */
static bool read_answer(const struct pawl_task *task, struct pwi_job_answer *answer_out) {
  struct pawl_answer answer;
  if (pawl_answer_get(task, 0, &answer) != PAWL_OK || answer.status) return false;
  return pwi_job_answer_read(answer.bytes, answer.size, answer_out) == PAWL_OK;
}

/* False if it is not certain which pieces the worker has kept. */
static bool take_yield(struct pawl_job *job, const struct pwi_job_input *input, const struct pwi_job_answer *said) {
  struct pawl_answer answer;
  size_t count = said->size / 16;
  if (said->status || said->size % 16 != 0 || pawl_answer_get(input->task, 0, &answer) != PAWL_OK) return false;
  struct pawl_range *pieces = pwi_alloc_zero(count, sizeof *pieces);
  if (!pieces) return false;
  pwi_job_ranges_read(answer.bytes, count, pieces);
  pawl_status status = pwi_scheduler_yielded(job->scheduler, input->name.number, pieces, count);
  pwi_free(pieces);
  return status == PAWL_OK;
}

static void take_answer(struct pawl_job *job, struct pwi_job_input *input) {
  struct colleague *colleague = find(job, input->name.number);
  struct pwi_job_answer said;
  bool is_sound = read_answer(input->task, &said), is_yield = input->order == PWI_JOB_ORDER_YIELD;
  if (is_sound && is_yield) is_sound = take_yield(job, input, &said);
  if (!is_sound) lose(job, input->name.number);
  if (!is_sound || is_yield) {
    pawl_task_release(input->task);
    return;
  }
  bool is_working = pwi_scheduler_state(job->scheduler) == PWI_SCHEDULER_WORKING; /* not in a round that has ended */
  struct pwi_scheduler_answer answer = {said.status, said.text, said.took_ns, said.tick};
  pwi_scheduler_answered(job->scheduler, input->name.number, &answer);
  bool is_result = colleague && input->order == PWI_JOB_ORDER_WORK && is_working && !colleague->result;
  if (is_result)
    colleague->result = input->task;
  else
    pawl_task_release(input->task);
}

static void take_loss(struct pawl_job *job, struct pwi_job_input *input) {
  struct colleague *colleague = find(job, input->name.number);
  if (colleague) colleague->is_watched = false;
  lose(job, input->name.number);
  pawl_task_release(input->task);
}

static void read_inputs(struct pawl_job *job) {
  for (struct pwi_job_input *input = pwi_job_queue_take(job->queue), *next; input; input = next) {
    next = input->next;
    if (input->kind == PWI_JOB_INPUT_JOINED)
      take_in(job, input);
    else if (input->kind == PWI_JOB_INPUT_ANSWERED)
      take_answer(job, input);
    else
      take_loss(job, input);
    pwi_free(input);
  }
}

/* --- orders --------------------------------------------------------------------------------------------- */

static void write_order(const struct pawl_job *job, const struct pwi_scheduler_order *order,
                        struct pwi_writer *writer) {
  struct pwi_job_order said = {.number = order->name.number,
                               .kind = order->kind,
                               .rank = order->rank,
                               .workers = order->workers,
                               .tick = order->tick};
  pwi_job_ranges_write(writer, order->pieces, order->piece_count);
  if (order->kind == PWI_JOB_ORDER_BEGIN) {
    said.bytes = job->options.spec;
    said.size = job->options.spec_size;
  } else if (order->kind == PWI_JOB_ORDER_WORK) {
    said.bytes = job->argument;
    said.size = job->argument_size;
  }
  pwi_job_order_write(writer, &said);
}

static pawl_status send_order(struct pawl_job *job, const struct pwi_scheduler_order *order,
                              struct pwi_writer *writer) {
  struct pawl_task *task;
  struct pawl_target target = pawl_to_node((struct pawl_node){order->name.node});
  pwi_writer_reset(writer);
  write_order(job, order, writer);
  pawl_status status = writer->status;
  if (!status) status = pwi_call_aside(job->session, target, job->names.worker, writer->data, writer->size, &task);
  return status ? status
                : pwi_job_queue_expect(job->queue, PWI_JOB_INPUT_ANSWERED, order->name.number, order->kind, task);
}

/* A worker that cannot be sent an order counts as lost. True if there was one. */
static bool send_orders(struct pawl_job *job) {
  struct pwi_writer writer = {0};
  struct pwi_scheduler_order order;
  bool is_any_lost = false;
  while (pwi_scheduler_next_order(job->scheduler, &order)) {
    uint64_t number = order.name.number;
    if (send_order(job, &order, &writer) == PAWL_OK) continue;
    lose(job, number);
    is_any_lost = true;
  }
  pwi_writer_fini(&writer);
  return is_any_lost;
}

/* --- events and starts ---------------------------------------------------------------------------------- */

static void tell(const struct pawl_job *job, const struct pwi_scheduler_event *event) {
  struct pawl_job_event told = {.what = event->what,
                                .node = {event->name.node},
                                .host = event->name.host,
                                .pid = event->name.pid,
                                .workers = event->workers,
                                .pieces = event->pieces,
                                .text = event->text};
  job->options.tell(job->options.context, &told);
}

static void tell_all(struct pawl_job *job) {
  struct pwi_scheduler_event event;
  while (pwi_scheduler_next_event(job->scheduler, &event))
    if (job->options.tell) tell(job, &event);
}

/* Without a `start` callback workers come by themselves. Returns the first failure; missing workers are
 * requested again. */
static pawl_status start_workers(struct pawl_job *job) {
  pawl_status first = PAWL_OK;
  for (uint32_t left = pwi_scheduler_starts(job->scheduler); left > 0; left--) {
    pawl_status status = job->options.start ? job->options.start(job->options.context) : PAWL_OK;
    if (status) pwi_scheduler_start_failed(job->scheduler);
    if (status && !first) first = status;
  }
  return first;
}

/* --- creating ------------------------------------------------------------------------------------------- */

static void destroy(struct pawl_job *job) {
  pwi_job_queue_close(job->queue);
  pawl_group_leave(job->name_group);
  while (job->colleagues) {
    struct colleague *colleague = job->colleagues;
    job->colleagues = colleague->next;
    dismiss(colleague);
    pawl_task_release(colleague->result);
    pwi_free(colleague);
  }
  pwi_scheduler_destroy(job->scheduler);
  pwi_free(job->argument);
  pwi_free((void *)(uintptr_t)job->options.name);
  pwi_free((void *)(uintptr_t)job->options.spec);
  pwi_free(job);
}

static pawl_status copy_options(struct pawl_job *job, const struct pawl_job_options *options) {
  job->options = *options;
  job->options.name = pwi_copy_string(options->name);
  void *spec = pwi_alloc(options->spec_size);
  job->options.spec = spec;
  if (!job->options.name || !spec) return pwi_error_status(PAWL_NO_MEMORY, "job %s", options->name);
  if (options->spec_size > 0) memcpy(spec, options->spec, options->spec_size);
  struct pwi_scheduler_options inner = {.pieces = options->pieces,
                                        .least = options->least,
                                        .most = options->most,
                                        .on_loss = options->on_loss,
                                        .patience_ns = options->patience_ns,
                                        .drop_slowest = options->drop_slowest,
                                        .join_in_round = options->join_in_round};
  pawl_status status = pwi_scheduler_create(&inner, &job->scheduler);
  if (status == PAWL_INVALID)
    return pwi_error(status,
                     "job %s: invalid options: least must be at least 1 and at most `most`, drop_slowest above 1, "
                     "times not negative",
                     options->name);
  return status ? pwi_error_status(status, "job %s", options->name) : PAWL_OK;
}

/* The group's name is unique to the job, so ticks begin at 0: node numbers and task ids are never reused. */
static pawl_status make_queue(struct pawl_job *job) {
  char group[PAWL_NAME_MAX + 1];
  struct pawl_task *task;
  pawl_status status = pawl_task_begin(job->session, "a job", &task);
  if (status) return status;
  snprintf(group, sizeof group, "%s/job.%" PRIx64 ".%" PRIx64, job->options.name, pawl_session_node(job->session).id,
           pawl_task_id(task));
  (void)pawl_task_end(task, PAWL_OK);
  pawl_task_release(task);
  status = pwi_job_queue_create(job->session, &job->names, group, &job->queue);
  if (status) return pwi_error_status(status, "job %s", job->options.name);
  pwi_job_queue_describe(job->queue, job->options.spec, job->options.spec_size);
  return PAWL_OK;
}

static pawl_status join_name(struct pawl_job *job, int64_t deadline) {
  int64_t left = deadline == PWI_NET_NEVER ? PAWL_FOREVER : deadline - pwi_host_now();
  if (job->session->is_peers_only)
    return pwi_group_join(job->session, PWI_ENTRY_PEERS, job->names.scheduler, 1, deadline, &job->name_group);
  return pawl_group_join(job->session, job->names.scheduler, 1, left > 0 ? left : 0, &job->name_group);
}

static pawl_status build(struct pawl_job *job, const struct pawl_job_options *options, int64_t deadline) {
  pawl_status status = copy_options(job, options);
  if (!status) status = make_queue(job);
  if (!status) status = pwi_job_queue_open(job->queue);
  if (!status) {
    status = join_name(job, deadline);
  }
  if (!status) status = pwi_job_queue_contest(job->queue, deadline);
  if (!status) {
    status = start_workers(job);
    if (status) return pwi_error_status(status, "job %s: a worker could not be started", options->name);
  }
  return status;
}

pawl_status pawl_job_create(struct pawl_session *session, const struct pawl_job_options *options, int64_t timeout_ns,
                            struct pawl_job **job_out) {
  struct pwi_job_names names;
  struct pawl_job_options is;
  if (!session || !options || !job_out) return pwi_error(PAWL_INVALID, "job: session, options or job_out is NULL");
  pawl_job_options_init(&is);
  pawl_status status = pwi_take_options("job", options, &is, sizeof is);
  if (status) return status;
  options = &is;
  if (pwi_session_job_names(session, options->name, &names) || (!options->spec && options->spec_size > 0))
    return pwi_error(
        PAWL_INVALID,
        "job '%s': the name must be a word of at most %d characters, and spec must not be NULL if its size is above 0",
        options->name ? options->name : "", PWI_JOB_NAME_MAX);
  if (options->spec_size > PAWL_JOB_BYTES)
    return pwi_error_status(PAWL_TOO_LARGE, "job %s: %zu bytes", options->name, options->spec_size);
  struct pawl_job *job = pwi_alloc_zero(1, sizeof *job);
  if (!job) return pwi_error_status(PAWL_NO_MEMORY, "job %s", options->name);
  job->session = session;
  job->names = names;
  status = build(job, options, pwi_driver_deadline(timeout_ns));
  if (status) {
    destroy(job);
    return status;
  }
  *job_out = job;
  return PAWL_OK;
}

/* --- rounds --------------------------------------------------------------------------------------------- */

/* Gives all results to the round, or releases them. */
static pawl_status conclude(struct pawl_job *job, struct pawl_round **round_out) {
  const char *text;
  size_t count;
  struct pawl_round *round = NULL;
  pawl_status status = pwi_scheduler_verdict(job->scheduler, &text);
  struct pwi_scheduler_report *reports = pwi_scheduler_close(job->scheduler, &count);
  if (status)
    pwi_free(reports);
  else
    status = pwi_round_create(reports, count, &round);
  for (struct colleague *colleague = job->colleagues; colleague; colleague = colleague->next) {
    if (colleague->result && !(round && pwi_round_give(round, colleague->number, colleague->result)))
      pawl_task_release(colleague->result);
    colleague->result = NULL;
  }
  sweep(job);
  job->is_wanted = false;
  if (status) return pwi_error(status, "job %s: %s", job->options.name, *text ? text : pawl_status_text(status));
  *round_out = round;
  return PAWL_OK;
}

/* Does everything that can be done now. True if it must be repeated soon, even without an event. */
static bool step(struct pawl_job *job) {
  bool is_fencing;
  do {
    read_inputs(job);
    is_fencing = fence_lost(job);
    pwi_scheduler_advance(job->scheduler, pwi_host_now());
  } while (send_orders(job));
  (void)start_workers(job);
  tell_all(job);
  sweep(job);
  return is_fencing;
}

static pawl_status give_up_fencing(const struct pawl_job *job) {
  return pwi_error(
      PAWL_TIMED_OUT,
      "job %s: a worker was lost, and its pieces cannot move, because the manager has not declared it dead; "
      "the round continues",
      job->options.name);
}

pawl_status pawl_job_await(struct pawl_job *job, int64_t timeout_ns, struct pawl_round **round_out) {
  if (!job || !round_out || !job->is_wanted) return pwi_error(PAWL_INVALID, "await: no round is under way");
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  for (;;) {
    bool is_fencing = step(job);
    if (pwi_scheduler_state(job->scheduler) == PWI_SCHEDULER_OVER) return conclude(job, round_out);
    if (is_fencing && is_fencing_hopeless(job)) return give_up_fencing(job);
    int64_t wake_at = pwi_scheduler_wake_at(job->scheduler), soon = pwi_host_after(FENCE_NS);
    if (is_fencing && soon < wake_at) wake_at = soon;
    bool has_rung = pwi_job_queue_wait(job->queue, wake_at < deadline ? wake_at : deadline);
    if (!has_rung && deadline != PWI_NET_NEVER && pwi_host_now() >= deadline)
      return pwi_session_error(job->session, PAWL_TIMED_OUT,
                               "job %s: a round has not finished after %" PRId64 " ns; it continues", job->options.name,
                               timeout_ns);
  }
}

pawl_status pawl_job_round(struct pawl_job *job, const void *argument, size_t size, int64_t timeout_ns,
                           struct pawl_round **round_out) {
  if (!job || !round_out || (!argument && size > 0))
    return pwi_error(PAWL_INVALID, "round: job or round_out is NULL, or argument is NULL but size is %zu", size);
  if (job->is_wanted) return pwi_error(PAWL_INVALID, "job %s: a round is under way; await it first", job->options.name);
  if (size > PAWL_JOB_BYTES) return pwi_error_status(PAWL_TOO_LARGE, "job %s: %zu bytes", job->options.name, size);
  void *copy = pwi_resize(job->argument, size > 0 ? size : 1);
  if (!copy) return pwi_error_status(PAWL_NO_MEMORY, "job %s: %zu bytes", job->options.name, size);
  job->argument = copy;
  job->argument_size = size;
  if (size > 0) memcpy(copy, argument, size);
  pawl_status status = pwi_scheduler_want(job->scheduler);
  if (status) return pwi_error_status(status, "job %s", job->options.name);
  job->is_wanted = true;
  return pawl_job_await(job, timeout_ns, round_out);
}

pawl_status pawl_job_resize(struct pawl_job *job, uint32_t least, uint32_t most) {
  if (!job) return pwi_error(PAWL_INVALID, "resize: job is NULL");
  if (pwi_scheduler_resize(job->scheduler, least, most) == PAWL_OK) return PAWL_OK;
  return pwi_error(PAWL_INVALID, "job %s: between %" PRIu32 " and %" PRIu32 " workers is not a valid range",
                   job->options.name, least, most);
}

/* --- the end -------------------------------------------------------------------------------------------- */

static bool has_watched(const struct pawl_job *job) {
  const struct colleague *colleague = job->colleagues;
  while (colleague && !colleague->is_watched) colleague = colleague->next;
  return colleague != NULL;
}

/* Waits until the workers have confirmed the end: if our session were closed before, they would take us
 * for dead. */
void pawl_job_end(struct pawl_job *job) {
  if (!job) return;
  int64_t deadline = pwi_host_after(FAREWELL_NS);
  pwi_job_queue_withdraw(job->queue);
  do {
    read_inputs(job);
    for (struct colleague *colleague = job->colleagues; colleague; colleague = colleague->next) dismiss(colleague);
  } while (has_watched(job) && pwi_job_queue_wait(job->queue, deadline));
  destroy(job);
}
