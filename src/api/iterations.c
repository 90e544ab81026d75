/* Iterations under a policy: <pawl/policy.h>. sync/pace.h decides which iteration may start. This file
 * reports events to it, and wakes waiting threads when its decision may have changed. Everything is used
 * inside the gate. */
#include <pawl/policy.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/group.h"
#include "api/session.h"
#include "base/memory.h"
#include "host/clock.h"
#include "sync/pace.h"

#define FIND_OUT_NS (200 * INT64_C(1000000)) /* time to find out which members are behind */
#define BEHIND_MAX 4                         /* most members that are named */

struct pawl_iterations {
  struct pwi_owned owned; /* must be first */
  struct pawl_session *session;
  struct pawl_group *group; /* NULL: none */
  struct pwi_pace pace;
  struct pwi_event news;
  uint64_t awaited; /* the lowest tick that the servers were asked to report; 0: none */
  pawl_status failure;
  char failure_text[256];
  bool (*lets)(void *context, uint64_t iteration, const struct pawl_progress *progress);
  void *context;

  int64_t began; /* start of the open iteration, and the time that it waited before */
  int64_t waited_now;
  int64_t waited_ns, worked_ns;
  double objective; /* the last reported one; NAN: none */
};

static void tell(struct pawl_iterations *iterations) { pwi_event_set(&iterations->session->driver, &iterations->news); }

/* --- life ----------------------------------------------------------------------------------------------- */

void pwi_iterations_free(struct pwi_owned *owned) {
  struct pawl_iterations *iterations = (struct pawl_iterations *)owned;
  pwi_pace_fini(&iterations->pace);
  pwi_free(iterations);
}

static pawl_status make(struct pawl_session *session, struct pawl_group *group, const struct pwi_policy *policy,
                        struct pawl_iterations **iterations_out) {
  struct pawl_iterations *iterations = pwi_alloc_zero(1, sizeof *iterations);
  if (!iterations) return pwi_error_status(PAWL_NO_MEMORY, "iterations");
  iterations->session = session;
  iterations->group = group;
  iterations->objective = NAN;
  pwi_pace_init(&iterations->pace, policy, group, group ? pawl_group_tick(group) : 0);
  pwi_driver_enter(&session->driver);
  pwi_owned_add(&session->iterations, &iterations->owned);
  pwi_driver_leave(&session->driver);
  *iterations_out = iterations;
  return PAWL_OK;
}

pawl_status pawl_iterations_create(struct pawl_session *session, struct pawl_group *group, const char *policy,
                                   struct pawl_iterations **iterations_out) {
  struct pwi_policy parsed;
  char why[PWI_POLICY_TEXT_MAX];
  if (!session || !policy || !iterations_out)
    return pwi_error(PAWL_INVALID, "iterations: session, policy or iterations_out is NULL");
  pawl_status status = pwi_policy_parse(policy, &parsed, why);
  if (status) return pwi_error(status, "policy '%s': %s", policy, why);
  if (!group && (parsed.kind == PWI_POLICY_SSP || parsed.kind == PWI_POLICY_ABSP))
    return pwi_error(PAWL_INVALID, "policy '%s' needs a group", policy);
  return make(session, group, &parsed, iterations_out);
}

/* Converts between the internal and the public struct, so that the public one can stay stable. */
static bool ask_user(void *context, uint64_t iteration, const struct pwi_progress *progress) {
  const struct pawl_iterations *iterations = context;
  struct pawl_progress told = {progress->finished, progress->slowest};
  return iterations->lets(iterations->context, iteration, &told);
}

pawl_status pawl_iterations_create_user(struct pawl_session *session, struct pawl_group *group,
                                        bool (*lets)(void *context, uint64_t iteration,
                                                     const struct pawl_progress *progress),
                                        void *context, struct pawl_iterations **iterations_out) {
  struct pwi_policy policy = {.kind = PWI_POLICY_USER, .lets = ask_user};
  if (!session || !lets || !iterations_out)
    return pwi_error(PAWL_INVALID, "iterations: session, lets or iterations_out is NULL");
  pawl_status status = make(session, group, &policy, iterations_out);
  if (status) return status;
  (*iterations_out)->lets = lets;
  (*iterations_out)->context = context;
  (*iterations_out)->pace.policy.context = *iterations_out;
  return PAWL_OK;
}

/* Unfinished tasks must not report their end to us any more. */
static void forget_us(struct pwi_task_line *line, const struct pawl_iterations *iterations) {
  for (struct pawl_task *task = line->first; task; task = task->next)
    if (task->over_context == iterations) {
      task->over = NULL;
      task->over_context = NULL;
    }
}

void pawl_iterations_destroy(struct pawl_iterations *iterations) {
  if (!iterations) return;
  struct pawl_session *session = iterations->session;
  pwi_driver_enter(&session->driver);
  forget_us(&session->line, iterations);
  forget_us(&session->awaits, iterations);
  forget_us(&session->owns, iterations);
  pwi_owned_remove(&iterations->owned);
  pwi_driver_leave(&session->driver);
  pwi_iterations_free(&iterations->owned);
}

/* --- events --------------------------------------------------------------------------------------------- */

static void task_over(struct pawl_task *task) {
  struct pawl_iterations *iterations = task->over_context;
  pwi_pace_over(&iterations->pace, task->over_number);
  tell(iterations);
  if (!task->inner.status || iterations->failure) return;
  iterations->failure = task->inner.status;
  snprintf(iterations->failure_text, sizeof iterations->failure_text, "iteration %" PRIu64 ": %s %s: %s",
           task->over_number, task->what, task->subject, pawl_status_text(task->inner.status));
}

static void awaited(struct pawl_task *task) {
  struct pawl_iterations *iterations = task->over_context;
  if (iterations->awaited == task->over_number) iterations->awaited = 0;
  if (!task->inner.status) pwi_pace_heard(&iterations->pace, task->inner.found);
  tell(iterations);
}

/* Asks the servers to report when all members have finished this tick, unless they will report an earlier
 * one anyway. */
static pawl_status await(struct pawl_iterations *iterations, uint64_t tick) {
  struct pawl_session *session = iterations->session;
  struct pawl_task *task;
  if (iterations->awaited != 0 && iterations->awaited <= tick) return PAWL_OK;
  pawl_status status =
      pwi_session_task(session, &session->awaits, false, "wait for", pwi_group_name(iterations->group), &task);
  if (status) return status;
  task->over = awaited;
  task->over_context = iterations;
  task->over_number = tick;
  uint64_t before = iterations->awaited;
  iterations->awaited = tick; /* the answer may come at once */
  status = pwi_client_await(session->client, &task->inner, pwi_group_flow(iterations->group), tick);
  if (status) iterations->awaited = before;
  return pwi_session_started(session, task, status, NULL);
}

/* --- describing waits ----------------------------------------------------------------------------------- */

static const struct pawl_task *find_task(const struct pwi_task_line *line, const struct pawl_iterations *iterations,
                                         uint64_t until) {
  for (const struct pawl_task *task = line->first; task; task = task->next)
    if (task->over_context == iterations && task->over_number <= until) return task;
  return NULL;
}

static void describe_own(struct pawl_iterations *iterations, uint64_t until, char *text, size_t size) {
  struct pawl_session *session = iterations->session;
  snprintf(text, size, "iteration %" PRIu64 " of our own", until);
  pwi_driver_enter(&session->driver);
  const struct pawl_task *task = find_task(&session->line, iterations, until);
  if (!task) task = find_task(&session->owns, iterations, until);
  if (task)
    snprintf(text, size, "iteration %" PRIu64 " of our own, of which call %" PRIu64 ", %s %s, is %s", task->over_number,
             task->id, task->what, task->subject, task->held ? "waiting for another" : "under way");
  pwi_driver_leave(&session->driver);
}

static size_t name_behind(const struct pawl_task *task, uint64_t until, char *text, size_t size) {
  size_t used = 0, behind = 0;
  for (size_t i = 0; i < task->clocks.count; i++) {
    const struct pwi_clock_seen *seen = &task->clocks.items[i];
    if (seen->time >= until) continue;
    if (behind++ < BEHIND_MAX && used < size)
      used += (size_t)snprintf(text + used, size - used, "%s node %" PRIu64 " has finished %" PRIu64,
                               behind > 1 ? "," : ":", seen->sender.id, seen->time);
  }
  if (behind > BEHIND_MAX && used < size) snprintf(text + used, size - used, ", and %zu more", behind - BEHIND_MAX);
  return behind;
}

/* Asks the servers for the ticks of all members. An incomplete group gets no answer. */
static void describe_group(struct pawl_iterations *iterations, uint64_t until, char *text, size_t size) {
  struct pawl_session *session = iterations->session;
  struct pawl_task *task = NULL;
  char who[160] = "";
  pwi_driver_enter(&session->driver);
  pawl_status status =
      pwi_session_task(session, &session->awaits, true, "look at", pwi_group_name(iterations->group), &task);
  if (!status) {
    task->inner.clocks = &task->clocks;
    status = pwi_client_await(session->client, &task->inner, pwi_group_flow(iterations->group), 0);
    status = pwi_session_started(session, task, status, NULL);
  }
  pwi_driver_leave(&session->driver);
  if (!status) {
    if (!pwi_driver_wait(&session->driver, &task->done, pwi_driver_deadline(FIND_OUT_NS)))
      snprintf(who, sizeof who, ", which is not complete, or whose server does not answer: %" PRIu32 " members",
               pawl_group_size(iterations->group));
    else if (!task->inner.status)
      name_behind(task, until, who, sizeof who);
    pwi_task_unref(task);
  }
  snprintf(text, size, "tick %" PRIu64 " of %s%s", until, pwi_group_name(iterations->group), who);
}

/* The deadline has passed. After the text is set nothing may leave the gate, because callbacks of the user
 * set texts, too. */
static pawl_status explain(struct pawl_iterations *iterations, bool to_send, struct pwi_policy_wait wait) {
  struct pwi_driver *driver = &iterations->session->driver;
  char what[320] = "its function to permit it", policy[PWI_POLICY_TEXT_MAX], why[PWI_ERROR_TEXT_MAX + 1] = "";
  if (wait.cause == PWI_WAITS_OWN) describe_own(iterations, wait.until, what, sizeof what);
  if (wait.cause == PWI_WAITS_GROUP) describe_group(iterations, wait.until, what, sizeof what);
  pwi_driver_enter(driver);
  pwi_policy_print(&iterations->pace.policy, policy);
  uint64_t number = iterations->pace.begun + !to_send;
  pwi_driver_leave(driver);
  bool waits = pwi_session_waits(iterations->session, why, sizeof why);
  return pwi_error(PAWL_TIMED_OUT, "iteration %" PRIu64 " may not %s: policy '%s' waits for %s%s%s", number,
                   to_send ? "send" : "start", policy, what, waits ? "; " : "", why);
}

/* --- iterations ----------------------------------------------------------------------------------------- */

/* Inside the gate: makes sure that news will come. */
static pawl_status await_news(struct pawl_iterations *iterations, struct pwi_policy_wait wait) {
  atomic_store(&iterations->news.is_set, false);
  if (wait.cause == PWI_WAITS_GROUP) return await(iterations, wait.until);
  if (wait.cause == PWI_WAITS_USER && iterations->group) return await(iterations, iterations->pace.slowest + 1);
  return PAWL_OK;
}

/* Inside the gate: begins the next iteration if it may, or lets the current one send its results if it may. */
static pawl_status try_step(struct pawl_iterations *iterations, bool to_send, struct pwi_policy_wait *wait_out) {
  struct pwi_pace *pace = &iterations->pace;
  if (iterations->session->is_closed) return PAWL_NODE_STOPPED;
  if (pace->is_open != to_send) return PAWL_INVALID;
  if (iterations->failure) return iterations->failure;
  *wait_out = to_send ? pwi_pace_ask_to_send(pace) : pwi_pace_ask(pace);
  if (wait_out->cause != PWI_WAITS_NOT) return await_news(iterations, *wait_out);
  return to_send ? PAWL_OK : pwi_pace_begin(pace);
}

/* Inside the gate. A failure of an earlier iteration is reported once. */
static void describe_failure(struct pawl_iterations *iterations, pawl_status status, char *text, size_t size) {
  uint64_t begun = iterations->pace.begun;
  if (status == PAWL_INVALID && iterations->pace.is_open) {
    snprintf(text, size, "iteration %" PRIu64 " was not ended", begun);
  } else if (status == PAWL_INVALID) {
    snprintf(text, size, "no iteration was begun");
  } else if (status == iterations->failure) {
    snprintf(text, size, "%s", iterations->failure_text);
    iterations->failure = PAWL_OK;
  } else {
    snprintf(text, size, "after iteration %" PRIu64 ": %s", begun, pawl_status_text(status));
  }
}

/* Inside the gate. */
static void count_waiting(struct pawl_iterations *iterations, int64_t *since) {
  int64_t now = pwi_host_now();
  iterations->waited_now += now - *since;
  iterations->waited_ns += now - *since;
  *since = now;
}

static pawl_status step_until(struct pawl_iterations *iterations, bool to_send, int64_t deadline,
                              uint64_t *number_out) {
  struct pwi_driver *driver = &iterations->session->driver;
  struct pwi_policy_wait wait = {0};
  char text[sizeof iterations->failure_text] = "";
  int64_t start = pwi_host_now(), since = start;
  for (bool is_late = false;; is_late = !pwi_driver_wait(driver, &iterations->news, deadline)) {
    pwi_driver_enter(driver);
    pawl_status status = try_step(iterations, to_send, &wait);
    count_waiting(iterations, &since);
    if (status) describe_failure(iterations, status, text, sizeof text);
    bool is_done = !status && wait.cause == PWI_WAITS_NOT;
    iterations->began = to_send ? iterations->began + since - start : since; /* waiting is not working */
    start = since;
    if (is_done && number_out) *number_out = iterations->pace.begun;
    pwi_driver_leave(driver);
    if (status) return pwi_error(status, "%s", text);
    if (is_done) return PAWL_OK;
    if (is_late) return explain(iterations, to_send, wait);
  }
}

pawl_status pawl_iteration_begin(struct pawl_iterations *iterations, int64_t timeout_ns, uint64_t *number_out) {
  if (!iterations) return pwi_error(PAWL_INVALID, "iteration: iterations is NULL");
  return step_until(iterations, false, pwi_driver_deadline(timeout_ns), number_out);
}

pawl_status pawl_iteration_ready(struct pawl_iterations *iterations, int64_t timeout_ns) {
  if (!iterations) return pwi_error(PAWL_INVALID, "iteration: iterations is NULL");
  return step_until(iterations, true, pwi_driver_deadline(timeout_ns), NULL);
}

pawl_status pawl_iteration_add(struct pawl_iterations *iterations, struct pawl_task *task) {
  if (!iterations || !task) return pwi_error(PAWL_INVALID, "iteration: iterations or task is NULL");
  struct pawl_session *session = iterations->session;
  pwi_driver_enter(&session->driver);
  pawl_status status = !iterations->pace.is_open || task->pool != session->pool ? PAWL_INVALID : PAWL_OK;
  if (!status && task->over_context) status = PAWL_EXISTS;
  if (!status) {
    task->over_context = iterations;
    task->over_number = iterations->pace.begun;
    pwi_pace_add(&iterations->pace);
    if (pwi_event_is_set(&task->done))
      task_over(task);
    else
      task->over = task_over;
  }
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "%s %s: the task cannot be added to an iteration", task->what, task->subject)
                : PAWL_OK;
}

pawl_status pawl_iteration_end(struct pawl_iterations *iterations, double objective) {
  if (!iterations) return pwi_error(PAWL_INVALID, "iteration: iterations is NULL");
  struct pwi_pace *pace = &iterations->pace;
  struct pwi_driver *driver = &iterations->session->driver;
  int64_t now = pwi_host_now();
  pwi_driver_enter(driver);
  int64_t worked = now - iterations->began;
  double gain = iterations->objective - objective;
  bool is_open = pace->is_open;
  bool must_clock = is_open && pwi_pace_end(pace, 1e-9 * (double)iterations->waited_now, 1e-9 * (double)worked, gain);
  if (is_open && isfinite(objective)) iterations->objective = objective;
  if (is_open) iterations->worked_ns += worked;
  if (is_open) iterations->waited_now = 0;
  pwi_driver_leave(driver);
  if (!is_open) return pwi_error(PAWL_INVALID, "iteration: no iteration was begun");
  return must_clock && iterations->group ? pawl_group_clock(iterations->group, NULL) : PAWL_OK;
}

pawl_status pawl_iterations_set_bound(struct pawl_iterations *iterations, uint64_t bound) {
  if (!iterations) return pwi_error(PAWL_INVALID, "iterations: iterations is NULL");
  struct pwi_driver *driver = &iterations->session->driver;
  pwi_driver_enter(driver);
  pawl_status status = pwi_pace_set_bound(&iterations->pace, bound);
  if (!status) tell(iterations);
  pwi_driver_leave(driver);
  return status ? pwi_error(status, "the policy has no bound, or does not permit %" PRIu64, bound) : PAWL_OK;
}

void pawl_iterations_figures(struct pawl_iterations *iterations, struct pawl_iterations_figures *figures_out) {
  struct pwi_driver *driver = &iterations->session->driver;
  const struct pwi_pace *pace = &iterations->pace;
  pwi_driver_enter(driver);
  *figures_out = (struct pawl_iterations_figures){.begun = pace->begun,
                                                  .finished = pace->finished,
                                                  .slowest = iterations->group ? pace->slowest : UINT64_MAX,
                                                  .bound = pace->policy.bound,
                                                  .waited_ns = iterations->waited_ns,
                                                  .worked_ns = iterations->worked_ns};
  pwi_driver_leave(driver);
}
