/* The pool, the line, and the end of a task. */
#include "api/task_pool.h"

#include <assert.h>
#include <string.h>

#include "api/offered_functions.h"
#include "api/sequence.h"
#include "base/memory.h"

#define TASKS_AT_ONCE 64

/* --- the pool ------------------------------------------------------------------------------------------- */

struct task_block {
  struct task_block *next;
  struct pawl_task tasks[TASKS_AT_ONCE];
};

struct kept_name {
  struct kept_name *next;
  char text[];
};

struct pwi_task_pool {
  struct pawl_task *idle;               /* used inside the gate */
  _Atomic(struct pawl_task *) returned; /* used by any thread */
  atomic_size_t references;             /* tasks outside the pool, and the session */
  struct task_block *chunks;
  struct kept_name *names;
  uint64_t last_id; /* used inside the gate */
};

pawl_status pwi_task_pool_create(struct pwi_task_pool **pool_out) {
  struct pwi_task_pool *pool = pwi_alloc_zero(1, sizeof *pool);
  if (!pool) return PAWL_NO_MEMORY;
  atomic_init(&pool->references, 1);
  *pool_out = pool;
  return PAWL_OK;
}

void pwi_task_pool_release(struct pwi_task_pool *pool) {
  if (!pool || atomic_fetch_sub(&pool->references, 1) > 1) return;
  while (pool->chunks) {
    struct task_block *chunk = pool->chunks;
    pool->chunks = chunk->next;
    for (int i = 0; i < TASKS_AT_ONCE; i++) pwi_clock_list_fini(&chunk->tasks[i].clocks);
    pwi_free(chunk);
  }
  while (pool->names) {
    struct kept_name *name = pool->names;
    pool->names = name->next;
    pwi_free(name);
  }
  pwi_free(pool);
}

const char *pwi_task_pool_name(struct pwi_task_pool *pool, const char *name) {
  for (const struct kept_name *kept = pool->names; kept; kept = kept->next)
    if (strcmp(kept->text, name) == 0) return kept->text;
  size_t size = strlen(name) + 1;
  struct kept_name *kept = pwi_alloc(sizeof *kept + size);
  if (!kept) return NULL;
  memcpy(kept->text, name, size);
  kept->next = pool->names;
  pool->names = kept;
  return kept->text;
}

static bool make_more(struct pwi_task_pool *pool) {
  struct task_block *chunk = pwi_alloc_zero(1, sizeof *chunk);
  if (!chunk) return false;
  chunk->next = pool->chunks;
  pool->chunks = chunk;
  for (int i = 0; i < TASKS_AT_ONCE; i++) {
    chunk->tasks[i].pool = pool;
    chunk->tasks[i].next = pool->idle;
    pool->idle = &chunk->tasks[i];
  }
  return true;
}

struct pawl_task *pwi_task_take(struct pwi_task_pool *pool) {
  if (!pool->idle) pool->idle = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
  if (!pool->idle && !make_more(pool)) return NULL;
  struct pawl_task *task = pool->idle;
  pool->idle = task->next;
  atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
  task->inner = (struct pwi_task){0};
  atomic_store_explicit(&task->done.is_set, false, memory_order_relaxed);
  atomic_store_explicit(&task->references, 1, memory_order_relaxed);
  atomic_store_explicit(&task->has_call, false, memory_order_relaxed);
  task->has_handle = false;
  task->call = NULL;
  task->id = ++pool->last_id;
  task->step = (struct pwi_ordered_task){0};
  task->is_in_order = task->is_own = task->has_ended = false;
  task->held = NULL;
  task->parent = NULL;
  task->part_status = PAWL_OK;
  task->cause = (struct pwi_cause){0};
  task->over = NULL;
  task->over_context = NULL;
  pwi_clock_list_fini(&task->clocks);
  task->issued = (struct pwi_ordered_task){0};
  task->called = NULL;
  task->trigger = NULL;
  task->next = task->before = NULL;
  return task;
}

uint64_t pwi_task_pool_last_id(const struct pwi_task_pool *pool) { return pool->last_id; }

void pwi_task_unref(struct pawl_task *task) {
  if (atomic_fetch_sub_explicit(&task->references, 1, memory_order_acq_rel) > 1) return;
  pwi_called_destroy(task->called);
  pwi_free(task->trigger);
  struct pwi_task_pool *pool = task->pool;
  task->next = atomic_load_explicit(&pool->returned, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&pool->returned, &task->next, task, memory_order_release,
                                                memory_order_relaxed)) {
  }
  pwi_task_pool_release(pool);
}

/* --- the line ------------------------------------------------------------------------------------------- */

static void tell_flushes(struct pwi_task_line *line) {
  struct pwi_flush **at = &line->flushes;
  while (*at) {
    struct pwi_flush *flush = *at;
    if (line->first && line->first->serial <= flush->serial) {
      at = &flush->next;
      continue;
    }
    *at = flush->next;
    pwi_event_set(line->driver, &flush->done);
  }
}

static void take_out(struct pwi_task_line *line, struct pawl_task *task) {
  *(task->before ? &task->before->next : &line->first) = task->next;
  *(task->next ? &task->next->before : &line->last) = task->before;
  task->next = task->before = NULL;
  line->count--;
  if (line->flushes) tell_flushes(line);
}

static void run_call(struct pwi_work *work) {
  struct pawl_task *task = (struct pawl_task *)((char *)work - offsetof(struct pawl_task, work));
  struct pawl_invocation *invocation = pwi_offered_functions_step_out();
  task->call(task->context, task);
  pwi_offered_functions_step_in(invocation);
  pwi_task_unref(task);
}

/* A waiting thread may use the task as soon as the event is set, so that comes late. The client's
 * reference is released last, or passed to the callback. */
void pwi_task_conclude(struct pawl_task *task) {
  struct pwi_task *inner = &task->inner;
  struct pwi_task_line *line = task->line;
  struct pwi_driver *driver = line->driver;
  take_out(line, task);
  if (line->watch) line->watch(line->watch_context, task, false);
  if (!task->has_handle && inner->status && !line->failure) line->failure = inner->status;
  if (task->over) task->over(task);
  bool must_call = task->call != NULL;
  pwi_event_set(driver, &task->done);
  if (!must_call) {
    pwi_task_unref(task);
    return;
  }
  task->work.run = run_call;
  pwi_driver_post(driver, &task->work);
}

/* Inside the gate: the task's own work has ended. */
static void finish(struct pwi_task *inner) {
  struct pawl_task *task = (struct pawl_task *)inner;
  if (task->is_in_order)
    pwi_sequence_ended(task->line->sequence, task);
  else
    pwi_task_conclude(task);
}

void pwi_task_line_up(struct pwi_task_line *line, struct pawl_task *task) {
  task->line = line;
  task->serial = ++line->serial;
  task->inner.finished = finish;
  task->before = line->last;
  task->next = NULL;
  *(line->last ? &line->last->next : &line->first) = task;
  line->last = task;
  line->count++;
}

void pwi_task_line_undo(struct pwi_task_line *line, struct pawl_task *task) {
  take_out(line, task);
  if (line->watch) line->watch(line->watch_context, task, true);
  pwi_task_unref(task);
}

/* A held task waits for others, which also end here. */
static struct pawl_task *first_started(const struct pwi_task_line *line) {
  struct pawl_task *task = line->first;
  while (task && (task->held || task->has_ended)) task = task->next;
  return task;
}

void pwi_task_line_end(struct pwi_task_line *line, pawl_status status) {
  for (struct pawl_task *task; (task = first_started(line));) {
    struct pwi_task *inner = &task->inner;
    inner->status = status;
    if (inner->failure_count < PWI_TASK_FAILURES)
      inner->failures[inner->failure_count] = (struct pwi_task_failure){{0, PAWL_KEY_END}, status};
    inner->failure_count++;
    inner->finished(inner);
  }
}

void pwi_flush_begin(struct pwi_task_line *line, struct pwi_flush *flush, uint64_t serial) {
  flush->serial = serial;
  flush->next = line->flushes;
  line->flushes = flush;
  tell_flushes(line);
}

void pwi_flush_cancel(struct pwi_task_line *line, struct pwi_flush *flush) {
  for (struct pwi_flush **at = &line->flushes; *at; at = &(*at)->next)
    if (*at == flush) {
      *at = flush->next;
      return;
    }
}
