#include "api/offered_functions.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "api/session.h"
#include "base/bytes.h"
#include "base/memory.h"

#define FAILURES 4096

struct offered {
  struct offered *next;
  pawl_status (*function)(struct pawl_invocation *invocation, void *context);
  void *context;
  struct pwi_desk *desk; /* NULL: the session's threads run it */
  size_t running;
  bool is_withdrawn;
  struct pwi_event gone; /* set when it is withdrawn and no thread runs it */
  char name[PAWL_NAME_MAX + 1];
};

struct pawl_invocation {
  struct pawl_invocation *next;
  struct pwi_offered_functions *functions;
  struct pwi_running *running;
  struct offered *offered;
  void *bytes;
  size_t size;
};

/* A caller elsewhere that waits for a task of ours. */
struct waiting_caller {
  struct waiting_caller *next;
  struct pwi_running *running;
  uint64_t task; /* its id */
};

struct pwi_offered_functions {
  struct pawl_session *session;
  struct pwi_callee *callee;

  /* Inside the gate. */
  struct offered *offered;
  struct waiting_caller *waiting;
  struct pawl_task *told; /* finished tasks to report, with a reference each */
  struct pwi_work telling;
  bool is_telling; /* the work is posted */
  bool is_mute;
  struct {
    uint64_t task;
    pawl_status status;
  } failures[FAILURES]; /* ring of failed tasks */
  size_t failure_count;

  pthread_mutex_t mutex; /* guards the fields below */
  pthread_cond_t more, less;
  struct pawl_invocation *queue, **queue_end;
  size_t idle, busy, thread_count;
  bool is_stopping;
  pthread_t threads[PAWL_CALL_THREADS];
};

static _Thread_local struct pawl_invocation *current;

struct pawl_invocation *pwi_offered_functions_step_out(void) {
  struct pawl_invocation *invocation = current;
  current = NULL;
  return invocation;
}

void pwi_offered_functions_step_in(struct pawl_invocation *invocation) { current = invocation; }

/* --- running -------------------------------------------------------------------------------------------- */

static void let_go(struct pwi_offered_functions *functions, struct offered *offered) {
  offered->running--;
  if (offered->is_withdrawn && offered->running == 0) pwi_event_set(&functions->session->driver, &offered->gone);
}

static void end(struct pawl_invocation *invocation, pawl_status status) {
  struct pwi_offered_functions *functions = invocation->functions;
  struct pwi_driver *driver = &functions->session->driver;
  bool is_of_desk = invocation->offered->desk; /* its owner comes back at once */
  pwi_driver_enter(driver);
  let_go(functions, invocation->offered);
  if (status > PAWL_OK) status = PAWL_INVALID; /* not one of our statuses */
  if (!functions->is_mute)
    pwi_callee_end(functions->callee, invocation->running, status, invocation->bytes, invocation->size);
  pwi_driver_look(driver);
  pwi_driver_leave(driver);
  if (!is_of_desk) pwi_driver_hurry(driver);
  pwi_free(invocation);
}

/* The next invocation, or NULL when the thread must end. */
static struct pawl_invocation *take(struct pwi_offered_functions *functions) {
  pthread_mutex_lock(&functions->mutex);
  functions->idle++;
  while (!functions->queue && !functions->is_stopping) pthread_cond_wait(&functions->more, &functions->mutex);
  functions->idle--;
  struct pawl_invocation *invocation = functions->queue;
  if (invocation) {
    functions->queue = invocation->next;
    if (!functions->queue) functions->queue_end = &functions->queue;
    functions->busy++;
  }
  pthread_mutex_unlock(&functions->mutex);
  return invocation;
}

static void put_down(struct pwi_offered_functions *functions) {
  pthread_mutex_lock(&functions->mutex);
  functions->busy--;
  pthread_cond_broadcast(&functions->less);
  pthread_mutex_unlock(&functions->mutex);
}

static void *work(void *context) {
  struct pwi_offered_functions *functions = context;
  for (struct pawl_invocation *invocation; (invocation = take(functions)) != NULL;) {
    pthread_mutex_lock(&functions->mutex);
    bool is_late = functions->is_stopping;
    pthread_mutex_unlock(&functions->mutex);
    current = invocation;
    pawl_status status =
        is_late ? PAWL_NODE_STOPPED : invocation->offered->function(invocation, invocation->offered->context);
    current = NULL;
    end(invocation, status);
    put_down(functions);
  }
  return NULL;
}

/* Signals are for the application's threads. */
static void add_thread(struct pwi_offered_functions *functions) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&functions->threads[functions->thread_count], NULL, work, functions) == 0)
    functions->thread_count++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* False if there is no thread and none can be created, or all threads must end. */
static bool enqueue(struct pwi_offered_functions *functions, struct pawl_invocation *invocation) {
  pthread_mutex_lock(&functions->mutex);
  size_t ahead = 0;
  for (const struct pawl_invocation *at = functions->queue; at && ahead <= functions->idle; at = at->next) ahead++;
  bool is_short = functions->idle <= ahead && functions->thread_count < PAWL_CALL_THREADS;
  if (is_short && !functions->is_stopping) add_thread(functions);
  bool can_run = functions->thread_count > 0 && !functions->is_stopping;
  if (can_run) {
    *functions->queue_end = invocation;
    functions->queue_end = &invocation->next;
    pthread_cond_signal(&functions->more);
  }
  pthread_mutex_unlock(&functions->mutex);
  return can_run;
}

/* --- tasks of ours that other nodes wait for ------------------------------------------------------------ */

static bool is_open(const struct pwi_task_line *line, uint64_t id) {
  for (const struct pawl_task *task = line->first; task; task = task->next)
    if (task->id == id) return true;
  return false;
}

static pawl_status recall(const struct pwi_offered_functions *functions, uint64_t id) {
  size_t count = functions->failure_count < FAILURES ? functions->failure_count : FAILURES;
  for (size_t i = 0; i < count; i++)
    if (functions->failures[i].task == id) return functions->failures[i].status;
  return PAWL_OK;
}

static void run_wait(struct pwi_offered_functions *functions, struct pwi_running *running) {
  struct pawl_session *session = functions->session;
  uint64_t id = running->item->size == sizeof id ? pwi_get_u64(running->item->argument) : 0;
  pawl_status status = id == 0 || id > pwi_task_pool_last_id(session->pool) ? PAWL_INVALID : PAWL_OK;
  bool must_wait =
      !status && (is_open(&session->line, id) || is_open(&session->awaits, id) || is_open(&session->owns, id));
  if (!status && !must_wait) status = recall(functions, id);
  struct waiting_caller *waiting = must_wait ? pwi_alloc_zero(1, sizeof *waiting) : NULL;
  if (must_wait && !waiting) status = PAWL_NO_MEMORY;
  if (!waiting) {
    pwi_callee_end(functions->callee, running, status, NULL, 0);
    return;
  }
  *waiting = (struct waiting_caller){functions->waiting, running, id};
  functions->waiting = waiting;
}

static void tell_waiting(struct pwi_offered_functions *functions, uint64_t id, pawl_status status) {
  for (struct waiting_caller **at = &functions->waiting; *at;) {
    struct waiting_caller *waiting = *at;
    if (waiting->task != id) {
      at = &waiting->next;
      continue;
    }
    *at = waiting->next;
    struct pwi_running *running = waiting->running;
    pwi_free(waiting);
    pwi_callee_end(functions->callee, running, status, NULL, 0);
    at = &functions->waiting; /* the list may have changed */
  }
}

/* Outside the gate: reports finished tasks. */
static void tell_all(struct pwi_work *posted) {
  struct pwi_offered_functions *functions =
      (struct pwi_offered_functions *)((char *)posted - offsetof(struct pwi_offered_functions, telling));
  struct pwi_driver *driver = &functions->session->driver;
  pwi_driver_enter(driver);
  functions->is_telling = false;
  for (struct pawl_task *task; (task = functions->told) != NULL;) {
    functions->told = task->told_next;
    pawl_status status = task->inner.status;
    if (!functions->is_mute) tell_waiting(functions, task->id, status);
    if (!functions->is_mute && task->issued.id)
      pwi_callee_issued_end(functions->callee, task->issued, task->has_handle ? PAWL_OK : status);
    pwi_task_unref(task);
  }
  if (!functions->is_mute) pwi_driver_look(driver);
  pwi_driver_leave(driver);
}

static bool is_waited_for(const struct pwi_offered_functions *functions, uint64_t id) {
  const struct waiting_caller *waiting = functions->waiting;
  while (waiting && waiting->task != id) waiting = waiting->next;
  return waiting != NULL;
}

/* Called by the line: a task has finished, or was never started. Reporting may end other tasks, possibly
 * while the order is being processed, so it is done later. */
static void watch(void *context, struct pawl_task *task, bool is_undone) {
  struct pwi_offered_functions *functions = context;
  if (is_undone) task->inner.status = PAWL_OK; /* for callers that could already know of it */
  if (task->inner.status) {
    size_t at = functions->failure_count++ % FAILURES;
    functions->failures[at].task = task->id;
    functions->failures[at].status = task->inner.status;
  }
  if (functions->is_mute || (task->issued.id == 0 && !is_waited_for(functions, task->id))) return;
  atomic_fetch_add(&task->references, 1);
  task->told_next = functions->told;
  functions->told = task;
  if (functions->is_telling) return;
  functions->is_telling = true;
  functions->telling.run = tell_all;
  pwi_driver_post(&functions->session->driver, &functions->telling);
}

pawl_status pwi_offered_functions_adopt(struct pwi_offered_functions *functions, struct pawl_task *task) {
  if (!functions || !current || current->functions != functions) return PAWL_OK;
  return pwi_callee_issue(functions->callee, current->running, &task->issued);
}

/* --- offering ------------------------------------------------------------------------------------------- */

static struct offered *find(const struct pwi_offered_functions *functions, const char *name) {
  struct offered *offered = functions->offered;
  while (offered && strcmp(offered->name, name) != 0) offered = offered->next;
  return offered;
}

static struct offered *remove_offer(struct pwi_offered_functions *functions, const char *name) {
  struct offered *offered = find(functions, name);
  for (struct offered **at = &functions->offered; offered && *at; at = &(*at)->next)
    if (*at == offered) {
      *at = offered->next;
      break;
    }
  return offered;
}

static void put_on_desk(struct pwi_offered_functions *functions, struct pwi_desk *desk,
                        struct pawl_invocation *invocation) {
  *desk->queue_end = invocation;
  desk->queue_end = &invocation->next;
  pwi_event_set(&functions->session->driver, &desk->bell);
}

/* Called by the callee, inside the gate. */
static void run(void *context, struct pwi_running *running) {
  struct pwi_offered_functions *functions = context;
  if (strcmp(running->item->name, PWI_FUNCTION_WAIT) == 0) {
    run_wait(functions, running);
    return;
  }
  struct offered *offered = find(functions, running->item->name);
  struct pawl_invocation *invocation = offered ? pwi_alloc_zero(1, sizeof *invocation) : NULL;
  if (!invocation) {
    pwi_callee_end(functions->callee, running, offered ? PAWL_NO_MEMORY : PAWL_NOT_FOUND, NULL, 0);
    return;
  }
  *invocation = (struct pawl_invocation){.functions = functions, .running = running, .offered = offered};
  if (offered->desk) {
    offered->running++;
    put_on_desk(functions, offered->desk, invocation);
    return;
  }
  if (!enqueue(functions, invocation)) {
    pwi_free(invocation);
    pwi_callee_end(functions->callee, running, functions->is_stopping ? PAWL_NODE_STOPPED : PAWL_NODE_LIMIT, NULL, 0);
    return;
  }
  offered->running++;
}

static pawl_status offer(struct pwi_offered_functions *functions, const char *name,
                         pawl_status (*function)(struct pawl_invocation *invocation, void *context), void *context,
                         struct pwi_desk *desk) {
  if (functions->session->is_closed) return PAWL_NODE_STOPPED;
  if (find(functions, name)) return PAWL_EXISTS;
  struct offered *offered = pwi_alloc_zero(1, sizeof *offered);
  if (!offered) return PAWL_NO_MEMORY;
  offered->function = function;
  offered->context = context;
  offered->desk = desk;
  memcpy(offered->name, name, strlen(name) + 1);
  offered->next = functions->offered;
  functions->offered = offered;
  return PAWL_OK;
}

static pawl_status offer_checked(struct pawl_session *session, const char *name,
                                 pawl_status (*function)(struct pawl_invocation *invocation, void *context),
                                 void *context, struct pwi_desk *desk) {
  if (!session->functions)
    return pwi_error(PAWL_INVALID, "offer %s: the session was opened without `listen`, so it cannot be called", name);
  pwi_driver_enter(&session->driver);
  pawl_status status = offer(session->functions, name, function, context, desk);
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "offer %s", name) : PAWL_OK;
}

pawl_status pwi_offered_function_add(struct pawl_session *session, const char *name,
                                     pawl_status (*function)(struct pawl_invocation *invocation, void *context),
                                     void *context) {
  return offer_checked(session, name, function, context, NULL);
}

pawl_status pawl_function_offer(struct pawl_session *session, const char *name,
                                pawl_status (*function)(struct pawl_invocation *invocation, void *context),
                                void *context) {
  if (!session || !function) return pwi_error(PAWL_INVALID, "offer: session or function is NULL");
  if (pwi_call_name_check(name) || name[0] == '.')
    return pwi_error(PAWL_INVALID, "offer '%s': the name of a function must be words separated by slashes",
                     name ? name : "");
  return offer_checked(session, name, function, context, NULL);
}

pawl_status pawl_function_withdraw(struct pawl_session *session, const char *name) {
  if (!session || !name) return pwi_error(PAWL_INVALID, "withdraw: session or name is NULL");
  struct pwi_offered_functions *functions = session->functions;
  struct pwi_driver *driver = &session->driver;
  if (!functions) return pwi_error_status(PAWL_NOT_FOUND, "withdraw %s", name);
  pwi_driver_enter(driver);
  struct offered *offered = remove_offer(functions, name);
  if (offered) offered->is_withdrawn = true;
  if (offered && offered->running == 0) pwi_event_set(driver, &offered->gone);
  pwi_driver_leave(driver);
  if (!offered) return pwi_error_status(PAWL_NOT_FOUND, "withdraw %s", name);
  (void)pwi_driver_wait(driver, &offered->gone, PWI_NET_NEVER);
  pwi_driver_enter(driver); /* the thread that set the event may still be inside */
  pwi_driver_leave(driver);
  pwi_free(offered);
  return PAWL_OK;
}

/* --- desks ---------------------------------------------------------------------------------------------- */

pawl_status pwi_desk_open(struct pwi_desk *desk, struct pawl_session *session, const char *name) {
  *desk = (struct pwi_desk){.session = session};
  desk->queue_end = &desk->queue;
  memcpy(desk->name, name, strlen(name) + 1);
  return offer_checked(session, name, NULL, NULL, desk);
}

struct pawl_invocation *pwi_desk_take(struct pwi_desk *desk) {
  pwi_driver_enter(&desk->session->driver);
  struct pawl_invocation *invocation = desk->queue;
  if (invocation) {
    desk->queue = invocation->next;
    if (!desk->queue) desk->queue_end = &desk->queue;
  }
  atomic_store(&desk->bell.is_set, desk->queue != NULL);
  pwi_driver_leave(&desk->session->driver);
  return invocation;
}

void pwi_desk_end(struct pawl_invocation *invocation, pawl_status status) { end(invocation, status); }

void pwi_desk_ring(struct pwi_desk *desk) {
  pwi_driver_enter(&desk->session->driver);
  pwi_event_set(&desk->session->driver, &desk->bell);
  pwi_driver_leave(&desk->session->driver);
}

bool pwi_desk_wait(struct pwi_desk *desk, int64_t deadline) {
  return pwi_driver_wait(&desk->session->driver, &desk->bell, deadline);
}

void pwi_desk_close(struct pwi_desk *desk) {
  struct pwi_offered_functions *functions = desk->session->functions;
  struct pwi_driver *driver = &desk->session->driver;
  pwi_driver_enter(driver);
  struct offered *offered = remove_offer(functions, desk->name);
  pwi_driver_leave(driver);
  for (struct pawl_invocation *invocation; (invocation = pwi_desk_take(desk)) != NULL;)
    pwi_desk_end(invocation, PAWL_NOT_FOUND);
  pwi_driver_enter(driver); /* the last caller may still be inside */
  pwi_driver_leave(driver);
  pwi_free(offered);
}

/* --- inside a function ---------------------------------------------------------------------------------- */

const void *pawl_invocation_argument(const struct pawl_invocation *invocation, size_t *size_out) {
  *size_out = invocation->running->item->size;
  return invocation->running->item->argument;
}

struct pawl_node pawl_invocation_caller(const struct pawl_invocation *invocation) {
  return (struct pawl_node){invocation->running->caller};
}

pawl_status pawl_invocation_return(struct pawl_invocation *invocation, const void *bytes, size_t size) {
  const char *name = invocation->running->item->name;
  if (!bytes && size > 0) return pwi_error(PAWL_INVALID, "result of %s: bytes is NULL but size is %zu", name, size);
  if (size > PAWL_CALL_BYTES) return pwi_error_status(PAWL_TOO_LARGE, "result of %s: %zu bytes", name, size);
  void *copy = pwi_alloc(size);
  if (!copy) return pwi_error_status(PAWL_NO_MEMORY, "result of %s", name);
  if (size > 0) memcpy(copy, bytes, size);
  pwi_free(invocation->bytes);
  invocation->bytes = copy;
  invocation->size = size;
  return PAWL_OK;
}

/* --- life ----------------------------------------------------------------------------------------------- */

pawl_status pwi_offered_functions_create(struct pawl_session *session, struct pwi_offered_functions **functions_out) {
  struct pwi_offered_functions *functions = pwi_alloc_zero(1, sizeof *functions);
  if (!functions) return PAWL_NO_MEMORY;
  functions->session = session;
  functions->queue_end = &functions->queue;
  pawl_status status = pwi_client_offer(session->client, run, functions, &functions->callee);
  if (status) {
    pwi_free(functions);
    return status;
  }
  pthread_mutex_init(&functions->mutex, NULL); /* neither can fail on Linux */
  pthread_cond_init(&functions->more, NULL);
  pthread_cond_init(&functions->less, NULL);
  session->line.watch = session->awaits.watch = session->owns.watch = watch;
  session->line.watch_context = session->awaits.watch_context = session->owns.watch_context = functions;
  *functions_out = functions;
  return PAWL_OK;
}

void pwi_offered_functions_stop(struct pwi_offered_functions *functions) {
  if (!functions) return;
  pwi_driver_enter(&functions->session->driver);
  pwi_callee_stop(functions->callee);
  pwi_driver_leave(&functions->session->driver);
  pthread_mutex_lock(&functions->mutex);
  functions->is_stopping = true;
  pthread_cond_broadcast(&functions->more);
  while (functions->queue || functions->busy > 0) pthread_cond_wait(&functions->less, &functions->mutex);
  size_t count = functions->thread_count;
  functions->thread_count = 0; /* further invocations of a graph are refused */
  pthread_mutex_unlock(&functions->mutex);
  for (size_t i = 0; i < count; i++) pthread_join(functions->threads[i], NULL);
}

void pwi_offered_functions_mute(struct pwi_offered_functions *functions) {
  if (functions) functions->is_mute = true;
}

void pwi_offered_functions_destroy(struct pwi_offered_functions *functions) {
  if (!functions) return;
  while (functions->offered) {
    struct offered *offered = functions->offered;
    functions->offered = offered->next;
    pwi_free(offered);
  }
  while (functions->waiting) {
    struct waiting_caller *waiting = functions->waiting;
    functions->waiting = waiting->next;
    pwi_free(waiting);
  }
  pthread_cond_destroy(&functions->less);
  pthread_cond_destroy(&functions->more);
  pthread_mutex_destroy(&functions->mutex);
  pwi_free(functions);
}
