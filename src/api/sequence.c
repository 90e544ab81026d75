#include "api/sequence.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/memory.h"

static bool is_done(const struct pawl_task *task) { return pwi_event_is_set(&task->done); }

/* --- causes --------------------------------------------------------------------------------------------- */

/* The cause of a task's failure: the task itself, or the cause of its own failure. */
static struct pwi_cause cause_of(const struct pawl_task *task) {
  if (task->cause.what) return task->cause;
  return (struct pwi_cause){task->what, task->subject, task->id, task->inner.status, task->step.id};
}

static void fail(struct pawl_task *task, pawl_status status) {
  struct pwi_task *inner = &task->inner;
  inner->status = status;
  inner->failures[0] = (struct pwi_task_failure){{0, PAWL_KEY_END}, status};
  inner->failure_count = 1;
}

/* The task that the order blames, among those that the call waited for. */
static struct pwi_cause find_cause(const struct pwi_dependent *held, struct pwi_ordered_task step) {
  struct pwi_cause found = {0};
  for (size_t i = 0; i < held->after_count; i++) {
    if (!is_done(held->after[i]) || !held->after[i]->inner.status) continue;
    struct pwi_cause cause = cause_of(held->after[i]);
    if (!found.what || cause.step == step.id) found = cause;
  }
  return found;
}

/* --- held calls ----------------------------------------------------------------------------------------- */

static void let_go(struct pwi_sequence *sequence, struct pawl_task *task) {
  struct pwi_dependent *held = task->held;
  if (!held) return;
  task->held = NULL;
  sequence->held--;
  for (size_t i = 0; i < held->after_count; i++) pwi_task_unref(held->after[i]);
  pwi_keylist_release(held->call.where.list);
  pwi_free(held);
}

static pawl_status start(struct pwi_sequence *sequence, struct pawl_task *task, const struct pwi_held_call *call) {
  if (call->begin) return call->begin(sequence->client, task);
  if (call->kind == PWI_REQUEST_TICK) return pwi_client_tick(sequence->client, &task->inner, call->flow, call->tick);
  return pwi_client_start(sequence->client, &task->inner, call->flow, call->kind, &call->where, call->in, call->out);
}

/* The call is copied, because a task that finishes at once may be reused at once. The client handles its
 * list from now on. */
static void start_held(struct pwi_sequence *sequence, struct pawl_task *task) {
  struct pwi_held_call call = task->held->call;
  if (call.where.list) pwi_keylist_retain(call.where.list);
  let_go(sequence, task);
  pawl_status status = PAWL_OK;
  if (call.kind == 0 && !call.begin)
    task->inner.finished(&task->inner);
  else
    status = start(sequence, task, &call);
  if (status) {
    fail(task, status);
    task->inner.finished(&task->inner);
  }
  pwi_keylist_release(call.where.list);
}

/* A task that the order starts without having been held is already under way, or is the caller's own. A
 * call that finishes at once comes here recursively. */
static void go_on(struct pwi_sequence *sequence) {
  struct pwi_ordered_task step;
  void *item;
  if (sequence->is_going_on) return;
  sequence->is_going_on = true;
  while (pwi_task_order_next(&sequence->order, &step, &item)) {
    struct pawl_task *task = item;
    if (task->held) start_held(sequence, task);
  }
  sequence->is_going_on = false;
}

/* --- finishing ------------------------------------------------------------------------------------------ */

/* The first failure of a part is the failure of the whole. */
static void blame_parent(struct pawl_task *parent, const struct pawl_task *part) {
  if (!part->inner.status || parent->part_status) return;
  parent->part_status = part->inner.status;
  parent->cause = cause_of(part);
}

static void tell_parent(struct pawl_task *task) {
  struct pawl_task *parent = task->parent;
  if (!parent) return;
  task->parent = NULL;
  blame_parent(parent, task);
  pwi_task_unref(parent);
}

/* Called by the order. */
static void finished(void *context, struct pwi_ordered_task step, void *item, struct pwi_task_end end) {
  struct pawl_task *task = item;
  task->step = step;
  task->is_in_order = false;
  if (end.status && !task->inner.status) { /* a task that it waited for has failed, or a part of it */
    if (task->held) task->cause = find_cause(task->held, end.cause);
    fail(task, end.status);
  }
  let_go(context, task);
  tell_parent(task);
  pwi_task_conclude(task);
}

void pwi_sequence_init(struct pwi_sequence *sequence) {
  pwi_task_order_init(&sequence->order, finished, sequence);
  sequence->client = NULL;
  sequence->held = 0;
  sequence->is_going_on = false;
}

void pwi_sequence_fini(struct pwi_sequence *sequence) { pwi_task_order_fini(&sequence->order); }

void pwi_sequence_ended(struct pwi_sequence *sequence, struct pawl_task *task) {
  task->has_ended = true;
  if (!task->inner.status && task->part_status) fail(task, task->part_status);
  pwi_task_order_end(&sequence->order, task->step, task->inner.status);
  go_on(sequence);
}

/* --- holding -------------------------------------------------------------------------------------------- */

static pawl_status put_in(struct pwi_sequence *sequence, struct pawl_task *task) {
  if (task->is_in_order) return PAWL_OK;
  pawl_status status = pwi_task_order_add(&sequence->order, NULL, 0, (struct pwi_ordered_task){0}, task, &task->step);
  if (status) return status;
  task->is_in_order = true;
  go_on(sequence);
  return PAWL_OK;
}

pawl_status pwi_sequence_own(struct pwi_sequence *sequence, struct pawl_task *task) {
  task->is_own = true;
  return put_in(sequence, task);
}

static pawl_status check(const struct pawl_task *task, const struct pwi_after *after) {
  const struct pawl_task *parent = after->parent;
  for (size_t i = 0; i < after->count; i++)
    if (!after->tasks[i] || after->tasks[i]->pool != task->pool) return PAWL_INVALID;
  if (!parent) return PAWL_OK;
  return parent->pool == task->pool && parent->is_own && parent->is_in_order && !parent->has_ended ? PAWL_OK
                                                                                                   : PAWL_INVALID;
}

static const struct pawl_task *find_failed(const struct pwi_after *after) {
  for (size_t i = 0; i < after->count && !after->is_anyway; i++)
    if (is_done(after->tasks[i]) && after->tasks[i]->inner.status) return after->tasks[i];
  return NULL;
}

/* Tasks that have not finished are put into the order; their steps are returned behind the new struct. */
static pawl_status make_held(struct pwi_sequence *sequence, const struct pwi_held_call *call,
                             const struct pwi_after *after, struct pwi_dependent **held_out,
                             struct pwi_ordered_task **steps_out) {
  struct pwi_dependent *held = NULL;
  struct pwi_ordered_task *steps = pwi_alloc_zero(after->count + 1, sizeof *steps);
  size_t bytes;
  if (pwi_mul_size(after->count, sizeof *held->after, &bytes) && pwi_add_size(bytes, sizeof *held, &bytes))
    held = pwi_alloc_zero(1, bytes);
  pawl_status status = steps && held ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t i = 0; i < after->count && !status; i++) {
    struct pawl_task *task = after->tasks[i];
    if (is_done(task)) continue;
    status = put_in(sequence, task);
    if (status) break;
    steps[held->after_count] = task->step;
    held->after[held->after_count++] = task;
  }
  if (status) {
    pwi_free(held);
    pwi_free(steps);
    return status;
  }
  held->call = *call;
  *held_out = held;
  *steps_out = steps;
  return PAWL_OK;
}

static void hold(struct pwi_sequence *sequence, struct pawl_task *task, struct pwi_dependent *held,
                 struct pawl_task *parent) {
  for (size_t i = 0; i < held->after_count; i++) atomic_fetch_add(&held->after[i]->references, 1);
  if (held->call.where.list) pwi_keylist_retain(held->call.where.list);
  if (parent) atomic_fetch_add(&parent->references, 1);
  task->parent = parent;
  task->held = held;
  task->is_in_order = true;
  sequence->held++;
}

static void undo_hold(struct pwi_sequence *sequence, struct pawl_task *task) {
  if (task->parent) pwi_task_unref(task->parent);
  task->parent = NULL;
  task->is_in_order = false;
  let_go(sequence, task);
}

pawl_status pwi_sequence_hold(struct pwi_sequence *sequence, struct pawl_task *task, const struct pwi_held_call *call,
                              const struct pwi_after *after) {
  struct pwi_dependent *held;
  struct pwi_ordered_task *steps, parent = after->parent ? after->parent->step : (struct pwi_ordered_task){0};
  pawl_status status = check(task, after);
  if (status) return status;
  const struct pawl_task *failed = find_failed(after);
  if (failed) {
    task->cause = cause_of(failed);
    fail(task, PAWL_CANCELLED);
    if (after->parent) blame_parent(after->parent, task);
    pwi_task_conclude(task);
    return PAWL_OK;
  }
  status = make_held(sequence, call, after, &held, &steps);
  if (status) return status;
  hold(sequence, task, held, after->parent);
  status = (after->is_anyway ? pwi_task_order_add_anyway : pwi_task_order_add)(
      &sequence->order, steps, held->after_count, parent, task, &task->step);
  if (status)
    undo_hold(sequence, task);
  else
    go_on(sequence);
  pwi_free(steps);
  return status;
}

/* Whether a tick must wait for the task: for calls that change values, and for earlier ticks. */
static bool counts(const struct pawl_task *task) {
  return task->held && pwi_request_is_numbered(task->held->call.kind);
}

pawl_status pwi_sequence_hold_behind(struct pwi_sequence *sequence, struct pawl_task *task,
                                     const struct pwi_held_call *call) {
  struct pawl_task **tasks = pwi_alloc_zero(sequence->held + 1, sizeof(struct pawl_task *));
  struct pwi_after after = {.tasks = tasks, .is_anyway = true};
  if (!tasks) return PAWL_NO_MEMORY;
  for (struct pawl_task *at = task->line->first; at && after.count < sequence->held; at = at->next)
    if (counts(at)) tasks[after.count++] = at;
  pawl_status status = pwi_sequence_hold(sequence, task, call, &after);
  pwi_free(tasks);
  return status;
}

void pwi_dependent_describe(const struct pwi_dependent *held, char *text, size_t size) {
  const struct pawl_task *first = NULL;
  size_t more = 0;
  for (size_t i = 0; i < held->after_count; i++) {
    if (is_done(held->after[i])) continue;
    if (first)
      more++;
    else
      first = held->after[i];
  }
  if (!first)
    snprintf(text, size, "nothing");
  else if (more == 0)
    snprintf(text, size, "call %" PRIu64 ", %s %s", first->id, first->what, first->subject);
  else
    snprintf(text, size, "call %" PRIu64 ", %s %s, and %zu more", first->id, first->what, first->subject, more);
}
