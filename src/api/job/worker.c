/* The worker's side of <pawl/job.h>.
 *
 * Orders arrive at a desk (api/offered_functions.h), where the thread in pawl_worker_run waits: it drives
 * the session in the meantime, so it receives an order without a thread switch. At work it looks at the desk
 * between two pieces, for an order to yield some (job/walk.h). The worker waits for an open task of the
 * scheduler, which ends when the worker is not needed any more or the job ends, and is lost with the
 * scheduler. A worker that was declared dead loses that task, too; it then finds itself under another number,
 * and joins again. If its session stays dead it has no number any more, and ends.
 */
#include <pawl/job.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/group.h"
#include "job/messages.h"
#include "job/walk.h"
#include "api/job/names.h"
#include "api/session.h"
#include "base/memory.h"
#include "host/clock.h"

#define LOOK_NS (100 * INT64_C(1000000)) /* between two checks whether the job exists */
#define AGAIN_NS (5 * PWI_HOST_SECOND)   /* time for a worker that was declared dead to join again */
#define GROUP_NS (60 * PWI_HOST_SECOND)

/* Connects a worker with the callback that reports the end of the scheduler's task, which may come late.
 * Used inside the gate. */
struct tie {
  struct pwi_driver *driver;
  struct pawl_worker *worker; /* NULL: the worker has gone */
  unsigned references;
};

struct pawl_worker {
  struct pawl_session *session;
  const char *name;
  struct pwi_job_names names;
  const struct pawl_worker_calls *calls;
  void *context;
  struct pwi_desk desk;
  char host[PWI_SCHEDULER_HOST + 1];

  /* State of one membership in the job. */
  struct pwi_job_welcome welcome;
  struct pawl_node node;  /* the node number that it joined with */
  struct pawl_task *here; /* our task that the scheduler waits for */
  struct tie *tie;
  atomic_bool is_over;      /* the scheduler's task has ended */
  atomic_int over;          /* its status; valid if is_over */
  bool has_begun;           /* `begin` was called */
  bool is_done;             /* that order was the last one */
  pawl_status outcome;      /* valid if is_done */
  struct pawl_group *group; /* a peer group if the session is for peers only; changes inside the gate */
  uint32_t rank, count;
  struct pwi_walk walk; /* through its pieces */

  /* State of one order. */
  bool is_working; /* inside `work` */
  struct pwi_writer report;
  size_t report_size;
  char said[PWI_SCHEDULER_TEXT + 1];
};

/* --- for use in callbacks ------------------------------------------------------------------------------- */

struct pawl_session *pawl_worker_session(const struct pawl_worker *worker) {
  return worker->session;
}
struct pawl_group *pawl_worker_group(const struct pawl_worker *worker) {
  return worker->session->is_peers_only ? NULL : worker->group;
}
struct pawl_peers *pawl_worker_peers(const struct pawl_worker *worker) {
  return worker->session->is_peers_only ? pwi_group_peers(worker->group) : NULL;
}
uint32_t pawl_worker_count(const struct pawl_worker *worker) { return worker->count; }
uint32_t pawl_worker_rank(const struct pawl_worker *worker) { return worker->rank; }
bool pawl_worker_is_ending(const struct pawl_worker *worker) { return atomic_load(&worker->is_over); }

pawl_status pawl_worker_report(struct pawl_worker *worker, const void *bytes, size_t size) {
  if (!worker || (!bytes && size > 0)) return pwi_error(PAWL_INVALID, "report: bytes is NULL but size is %zu", size);
  if (size > PAWL_JOB_BYTES) return pwi_error_status(PAWL_TOO_LARGE, "report: %zu bytes", size);
  pwi_writer_reset(&worker->report);
  pwi_write_bytes(&worker->report, bytes, size);
  worker->report_size = worker->report.status ? 0 : size;
  return worker->report.status ? pwi_error_status(worker->report.status, "report: %zu bytes", size) : PAWL_OK;
}

void pawl_worker_say(struct pawl_worker *worker, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(worker->said, sizeof worker->said, format, arguments);
  va_end(arguments);
}

/* --- the tie -------------------------------------------------------------------------------------------- */

/* Inside the gate. */
static void release_tie(struct tie *tie) {
  if (--tie->references == 0) pwi_free(tie);
}

/* Runs at once, so that the process that ends a job knows that we have been told, whatever we are doing. */
static void let_go(void *context, struct pawl_task *task) {
  struct tie *tie = context;
  struct pwi_driver *driver = tie->driver;
  struct pawl_task *here = NULL;
  pwi_driver_enter(driver);
  if (tie->worker) {
    here = tie->worker->here;
    atomic_fetch_add(&here->references, 1);
    atomic_store(&tie->worker->over, task->inner.status);
    atomic_store(&tie->worker->is_over, true);
    if (task->inner.status && tie->worker->group)
      pwi_group_step_out(tie->worker->group); /* the others need not wait for us */
    pwi_event_set(driver, &tie->worker->desk.bell);
  }
  release_tie(tie);
  pwi_driver_leave(driver);
  if (here) {
    (void)pawl_task_end(here, PAWL_OK);
    pawl_task_release(here);
  }
  pawl_task_release(task);
}

static pawl_status tie_to(struct pawl_worker *worker, struct pawl_node scheduler) {
  struct pawl_task *task;
  struct tie *tie = pwi_alloc_zero(1, sizeof *tie);
  if (!tie) return pwi_error_status(PAWL_NO_MEMORY, "worker of %s", worker->name);
  pawl_status status = pwi_task_elsewhere_aside(worker->session, scheduler, worker->welcome.task, &task);
  if (status) {
    pwi_free(tie);
    return status;
  }
  *tie = (struct tie){&worker->session->driver, worker, 2};
  worker->tie = tie;
  return pawl_task_on_done(task, let_go, tie);
}

static void untie(struct pawl_worker *worker) {
  struct pwi_driver *driver = &worker->session->driver;
  if (!worker->tie) return;
  pwi_driver_enter(driver);
  worker->tie->worker = NULL;
  release_tie(worker->tie);
  pwi_driver_leave(driver);
  worker->tie = NULL;
}

/* --- joining -------------------------------------------------------------------------------------------- */

static pawl_status ask(struct pawl_worker *worker, struct pawl_task **task_out) {
  struct pwi_job_asking asking = {
      .what = PWI_JOB_ASK_JOIN, .task = pawl_task_id(worker->here), .pid = (uint64_t)getpid()};
  struct pwi_writer writer = {0};
  memcpy(asking.host, worker->host, sizeof asking.host);
  pwi_job_asking_write(&writer, &asking);
  pawl_status status = writer.status;
  if (!status)
    status = pwi_call_aside(worker->session, pawl_to_group(worker->names.scheduler), worker->names.job, writer.data,
                            writer.size, task_out);
  pwi_writer_fini(&writer);
  return status;
}

/* True if one of the members that we asked has admitted us. */
static bool read_welcome(struct pawl_worker *worker, const struct pawl_task *task, struct pawl_node *scheduler_out) {
  struct pawl_answer answer;
  for (size_t i = 0; i < pawl_answer_count(task); i++) {
    if (pawl_answer_get(task, i, &answer) != PAWL_OK || answer.status) continue;
    if (pwi_job_welcome_read(answer.bytes, answer.size, &worker->welcome) != PAWL_OK) continue;
    *scheduler_out = answer.node;
    return true;
  }
  return false;
}

/* Errors that waiting does not cure. */
static bool is_final(pawl_status status) {
  return status == PAWL_FORBIDDEN || status == PAWL_NODE_STOPPED || status == PAWL_NO_MEMORY || status == PAWL_INVALID;
}

/* One attempt: PAWL_NOT_FOUND if the job does not exist. Our task ends with the attempt: if the scheduler
 * has admitted us without our knowledge, it learns from that that we are gone. */
static pawl_status join_once(struct pawl_worker *worker, int64_t deadline) {
  struct pawl_task *task;
  struct pawl_node scheduler;
  pawl_status status = ask(worker, &task);
  if (status) return status;
  bool is_done = pwi_driver_wait(&worker->session->driver, &task->done, deadline);
  bool is_in = is_done && read_welcome(worker, task, &scheduler);
  status = is_in ? PAWL_OK : is_done && is_final(task->inner.status) ? task->inner.status : PAWL_NOT_FOUND;
  pawl_task_release(task);
  return is_in ? tie_to(worker, scheduler) : status;
}

static void forget_life(struct pawl_worker *worker) {
  if (worker->has_begun && worker->calls->end) worker->calls->end(worker, worker->context);
  untie(worker);
  pawl_group_leave(worker->group);
  worker->group = NULL;
  if (worker->here) {
    (void)pawl_task_end(worker->here, PAWL_OK);
    pawl_task_release(worker->here);
  }
  worker->here = NULL;
  worker->has_begun = worker->is_done = false;
  worker->rank = worker->count = 0;
  pwi_rangeset_fini(&worker->walk.pieces);
}

static pawl_status begin_life(struct pawl_worker *worker) {
  atomic_store(&worker->is_over, false);
  worker->node = pawl_session_node(worker->session);
  return pawl_task_begin(worker->session, "working", &worker->here);
}

static pawl_status join(struct pawl_worker *worker, int64_t deadline) {
  for (;;) {
    pawl_status status = begin_life(worker);
    if (!status) status = join_once(worker, deadline);
    if (!status) return PAWL_OK;
    forget_life(worker);
    if (is_final(status) || status == PAWL_NODE_GONE || status == PAWL_LINK_REVOKED)
      return pwi_error_status(status, "worker of %s", worker->name);
    int64_t now = pwi_host_now();
    if (now >= deadline) return pwi_error(PAWL_TIMED_OUT, "worker of %s: the job does not exist", worker->name);
    for (struct pawl_invocation *late; (late = pwi_desk_take(&worker->desk)) != NULL;)
      pwi_desk_end(late, PAWL_REFUSED); /* for an earlier membership */
    (void)pwi_desk_wait(&worker->desk, deadline - now < LOOK_NS ? deadline : now + LOOK_NS);
  }
}

/* --- orders --------------------------------------------------------------------------------------------- */

static pawl_status join_group(struct pawl_worker *worker, struct pawl_group **group_out) {
  struct pawl_session *session = worker->session;
  if (!session->is_peers_only) return pawl_group_join(session, worker->welcome.group, 1, GROUP_NS, group_out);
  return pwi_group_join(session, PWI_ENTRY_PEERS, worker->welcome.group, 1, pwi_host_after(GROUP_NS), group_out);
}

/* Without servers there are no ticks. */
static uint64_t tick_of(const struct pawl_worker *worker) {
  return worker->group && !worker->session->is_peers_only ? pawl_group_tick(worker->group) : 0;
}

static pawl_status begin(struct pawl_worker *worker, const struct pwi_job_order *order) {
  worker->has_begun = true;
  pawl_status status =
      worker->calls->begin ? worker->calls->begin(worker, worker->context, order->bytes, order->size) : PAWL_OK;
  struct pawl_group *group = NULL;
  if (!status) status = join_group(worker, &group);
  if (status) return status;
  pwi_driver_enter(&worker->session->driver);
  worker->group = group;
  pwi_driver_leave(&worker->session->driver);
  return PAWL_OK;
}

static pawl_status move(struct pawl_worker *worker, const struct pwi_job_order *order) {
  bool is_take = order->kind == PWI_JOB_ORDER_TAKE;
  pawl_status (*call)(struct pawl_worker *, void *, const struct pawl_range *, size_t) =
      is_take ? worker->calls->take : worker->calls->drop;
  size_t count = order->size / 16;
  struct pawl_range *ranges = pwi_alloc_zero(count, sizeof *ranges);
  if (!ranges) return pwi_error_status(PAWL_NO_MEMORY, "pieces of %s", worker->name);
  pwi_job_ranges_read(order->bytes, count, ranges);
  pawl_status status = call ? call(worker, worker->context, ranges, count) : PAWL_OK;
  for (size_t i = 0; i < count && !status; i++)
    status = is_take ? pwi_rangeset_add(&worker->walk.pieces, ranges[i])
                     : pwi_rangeset_remove(&worker->walk.pieces, ranges[i]);
  pwi_free(ranges);
  return status;
}

/* A worker that is behind, because it is new or its work failed, catches up first: all begin at the same
 * tick. */
static pawl_status work(struct pawl_worker *worker, const struct pwi_job_order *order) {
  while (tick_of(worker) < order->tick) {
    pawl_status status = pawl_group_clock(worker->group, NULL);
    if (status) return status;
  }
  worker->walk.next = 0;
  worker->is_working = true;
  pawl_status status = worker->calls->work(worker, worker->context, order->bytes, order->size);
  worker->is_working = false;
  return status;
}

/* An order to yield that comes when the work is done finds nothing to yield. */
static pawl_status obey(struct pawl_worker *worker, const struct pwi_job_order *order) {
  if (order->kind == PWI_JOB_ORDER_YIELD) return PAWL_OK;
  worker->rank = order->rank;
  worker->count = order->workers;
  switch (order->kind) {
  case PWI_JOB_ORDER_BEGIN:
    return begin(worker, order);
  case PWI_JOB_ORDER_TAKE:
  case PWI_JOB_ORDER_DROP:
    return move(worker, order);
  case PWI_JOB_ORDER_WORK:
    return work(worker, order);
  default:
    return PAWL_OK;
  }
}

/* If memory does not suffice to send a report, the answer says so. */
static pawl_status answer(struct pawl_worker *worker, struct pawl_invocation *invocation, pawl_status status,
                          int64_t took_ns) {
  struct pwi_job_answer said = {.status = status, .took_ns = took_ns, .tick = tick_of(worker)};
  if (status) memcpy(said.text, worker->said, sizeof said.text);
  if (worker->report.status) pwi_writer_reset(&worker->report);
  pwi_job_answer_write(&worker->report, &said);
  if (worker->report.status) return worker->report.status;
  return pawl_invocation_return(invocation, worker->report.data, worker->report.size);
}

/* A worker that could not begin, take or drop leaves; so does a worker that is told to. */
static void judge(struct pawl_worker *worker, const struct pwi_job_order *order, pawl_status status) {
  worker->is_done = order->kind == PWI_JOB_ORDER_LEAVE || (status && order->kind != PWI_JOB_ORDER_WORK);
  worker->outcome = order->kind == PWI_JOB_ORDER_LEAVE ? PAWL_CANCELLED : status;
}

static void serve(struct pawl_worker *worker, struct pawl_invocation *invocation) {
  struct pwi_job_order order;
  size_t size;
  const void *bytes = pawl_invocation_argument(invocation, &size);
  pawl_status status = pwi_job_order_read(bytes, size, &order);
  bool is_known = !status && order.number == worker->welcome.number && worker->here;
  bool is_due = is_known && (order.kind == PWI_JOB_ORDER_BEGIN) == !worker->group;
  if (!is_due && !(is_known && order.kind == PWI_JOB_ORDER_LEAVE)) {
    pwi_desk_end(invocation, status ? status : PAWL_REFUSED); /* for an earlier membership */
    return;
  }
  worker->said[0] = '\0';
  worker->report_size = 0;
  pwi_writer_reset(&worker->report);
  pwi_error_forget();
  int64_t begun = pwi_host_now();
  status = obey(worker, &order);
  if (status > PAWL_OK) status = PAWL_INVALID; /* not one of our statuses */
  if (status && !worker->said[0]) snprintf(worker->said, sizeof worker->said, "%s", pawl_error_text());
  judge(worker, &order, status);
  pwi_desk_end(invocation, answer(worker, invocation, status, pwi_host_now() - begun));
}

/* --- yielding ------------------------------------------------------------------------------------------- */

/* An answer of its own: the report of the round may be written already. */
static pawl_status answer_yield(struct pawl_worker *worker, struct pawl_invocation *invocation,
                                const struct pwi_rangeset *yields) {
  struct pwi_job_answer said = {.status = PAWL_OK, .tick = tick_of(worker)};
  struct pwi_writer writer = {0};
  pwi_job_ranges_write(&writer, yields->ranges, yields->count);
  pwi_job_answer_write(&writer, &said);
  pawl_status status = writer.status ? writer.status : pawl_invocation_return(invocation, writer.data, writer.size);
  pwi_writer_fini(&writer);
  return status;
}

/* A worker that has no memory to yield pieces, or cannot drop them, keeps them. If it has dropped them and
 * cannot say so, its call fails, and the scheduler takes it for lost. */
static pawl_status yield(struct pawl_worker *worker, struct pawl_invocation *invocation,
                         const struct pwi_job_order *order) {
  struct pwi_rangeset yields;
  pawl_status status = PAWL_OK;
  pwi_rangeset_init(&yields);
  if (pwi_walk_yields(&worker->walk, order->rank, order->workers, &yields)) pwi_rangeset_clear(&yields);
  if (yields.count > 0 && worker->calls->drop)
    status = worker->calls->drop(worker, worker->context, yields.ranges, yields.count);
  if (status) pwi_rangeset_clear(&yields);
  pwi_walk_yield(&worker->walk, &yields);
  pwi_desk_end(invocation, answer_yield(worker, invocation, &yields));
  pwi_rangeset_fini(&yields);
  return status;
}

/* No other order comes while this worker is at work. */
static pawl_status yield_if_asked(struct pawl_worker *worker) {
  struct pawl_invocation *invocation;
  struct pwi_job_order order;
  pawl_status status = PAWL_OK;
  while (!status && (invocation = pwi_desk_take(&worker->desk)) != NULL) {
    size_t size;
    const void *bytes = pawl_invocation_argument(invocation, &size);
    pawl_status is_read = pwi_job_order_read(bytes, size, &order);
    if (!is_read && order.number == worker->welcome.number && order.kind == PWI_JOB_ORDER_YIELD)
      status = yield(worker, invocation, &order);
    else
      pwi_desk_end(invocation, is_read ? is_read : PAWL_REFUSED);
  }
  return status;
}

pawl_status pawl_worker_next(struct pawl_worker *worker, uint64_t most, struct pawl_range *pieces_out) {
  if (!worker || !worker->is_working || most == 0 || !pieces_out)
    return pwi_error(PAWL_INVALID, "next: pieces_out is NULL, most is 0, or this is not inside `work`");
  pawl_status status = yield_if_asked(worker);
  if (!status) *pieces_out = pwi_walk_next(&worker->walk, most);
  return status;
}

/* --- one membership ------------------------------------------------------------------------------------- */

/* Runs until an order is the last one, or the scheduler's task has ended. */
static void live(struct pawl_worker *worker) {
  while (!worker->is_done) {
    struct pawl_invocation *invocation = pwi_desk_take(&worker->desk);
    if (invocation)
      serve(worker, invocation);
    else if (atomic_load(&worker->is_over))
      return;
    else
      (void)pwi_desk_wait(&worker->desk, PWI_NET_NEVER);
  }
}

static bool is_dead(const struct pawl_worker *worker, pawl_status *why_out) {
  struct pwi_client_state state;
  pwi_driver_enter(&worker->session->driver);
  pwi_client_state(worker->session->client, &state);
  pwi_driver_leave(&worker->session->driver);
  *why_out = state.trouble;
  return state.is_dead;
}

static pawl_status explain_death(const struct pawl_worker *worker, pawl_status why) {
  if (why == PAWL_LINK_REVOKED) return pwi_error_status(why, "worker of %s", worker->name);
  return pwi_error(PAWL_NODE_GONE, "worker of %s: the cluster declared it dead, and other workers have its pieces",
                   worker->name);
}

/* Sets the text last, because cleanup before it may set texts of its own. */
static pawl_status explain(const struct pawl_worker *worker, pawl_status outcome, bool was_told) {
  if (outcome == PAWL_OK) return PAWL_OK;
  if (!was_told) return pwi_error_status(outcome, "worker of %s: its scheduler", worker->name);
  return pwi_error(outcome, "worker of %s: %s", worker->name, *worker->said ? worker->said : pawl_status_text(outcome));
}

/* A worker that has lost the scheduler and finds itself under another number was declared dead, and joins
 * again. */
static pawl_status run(struct pawl_worker *worker, int64_t deadline) {
  pawl_status why;
  for (bool is_first = true;; is_first = false) {
    pawl_status status = join(worker, deadline);
    if (status && is_dead(worker, &why)) return explain_death(worker, why);
    /* the job has ended in the meantime */
    if (status) return is_first ? status : explain(worker, PAWL_NODE_GONE, false);
    live(worker);
    bool was_told = worker->is_done, is_lost = !was_told && atomic_load(&worker->over) != PAWL_OK;
    bool is_another = pawl_session_node(worker->session).id != worker->node.id;
    forget_life(worker);
    if (is_lost && is_dead(worker, &why)) return explain_death(worker, why);
    if (!is_lost || !is_another)
      return explain(worker, was_told ? worker->outcome : is_lost ? PAWL_NODE_GONE : PAWL_OK, was_told);
    deadline = pwi_host_after(AGAIN_NS);
  }
}

pawl_status pawl_worker_run(struct pawl_session *session, const char *name, const struct pawl_worker_calls *calls,
                            void *context, int64_t timeout_ns) {
  if (!session || !calls || !calls->work)
    return pwi_error(PAWL_INVALID, "worker: session, calls or calls->work is NULL");
  struct pawl_worker *worker = pwi_alloc_zero(1, sizeof *worker);
  if (!worker) return pwi_error_status(PAWL_NO_MEMORY, "worker");
  *worker = (struct pawl_worker){.session = session, .name = name, .calls = calls, .context = context};
  if (gethostname(worker->host, sizeof worker->host - 1) != 0) worker->host[0] = '\0';
  pawl_status status = pwi_session_job_names(session, name, &worker->names);
  if (status)
    status = pwi_error(status, "worker of '%s': the name must be a word of at most %d characters", name ? name : "",
                       PWI_JOB_NAME_MAX);
  if (!status) status = pwi_desk_open(&worker->desk, session, worker->names.worker);
  if (!status) {
    status = run(worker, pwi_driver_deadline(timeout_ns));
    pwi_desk_close(&worker->desk);
  }
  pwi_writer_fini(&worker->report);
  pwi_free(worker);
  return status;
}
