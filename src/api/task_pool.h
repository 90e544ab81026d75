/* Tasks of a session: where they come from, and what happens when they finish.
 *
 * A *pool* gives tasks out inside the session's gate and takes them back from any thread, without a lock: those that come
 * back are put on a stack, which the pool picks up as a whole when it has none left. So calls in a steady state allocate
 * nothing. The pool outlives its session until the last task has come back: a task may be asked after the session was
 * closed.
 *
 * A task has a reference of the client's until it has finished, and one of the caller's if it has a handle.
 *
 * A task that others wait for, or that waits for others, is in the session's order as well (api/sequence.h): its own end goes
 * there, and it has finished when the order says so.
 *
 * The *line* lists tasks that have not finished in the order of their start: for flushing, and for closing.
 */
#ifndef PWI_API_TASK_POOL_H
#define PWI_API_TASK_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pawl/task.h>

#include "api/driver.h"
#include "client/client.h"
#include "sync/order.h"

struct pwi_task_line;
struct pwi_dependent;

/* Why a task failed that did nothing wrong itself: another one that did. */
struct pwi_cause {
  const char *what, *subject; /* of that one; NULL: there is none */
  uint64_t id;
  pawl_status status;
  uint64_t step;
};

struct pawl_task {
  struct pwi_task inner; /* first */
  struct pwi_event done;
  struct pwi_work work; /* calls `call` */
  atomic_uint references;
  atomic_bool has_call;
  bool has_handle;
  const char *what;    /* "push to" */
  const char *subject; /* a vector's or group's name; lives as long as the pool */
  void (*call)(void *context, struct pawl_task *task);
  void *context;
  uint64_t id; /* of all tasks of the session: what people and other sessions know it by */

  /* Its place among others (api/sequence.h); inside the gate. */
  struct pwi_step step;
  bool is_in_order, is_own, has_ended;
  struct pwi_dependent *held; /* NULL: it has started, or is the caller's own */
  struct pawl_task *parent;   /* with a reference; NULL: none */
  pawl_status part_status;    /* the first failure of a part of it */
  struct pwi_cause cause;

  /* Inside the gate, when it has finished and nobody was told yet. NULL: nothing. */
  void (*over)(struct pawl_task *task);
  void *over_context;
  uint64_t over_number;

  struct pwi_clock_list clocks; /* that came with its answers */

  uint64_t serial;
  struct pwi_step issued;      /* its place below the call that it was started by (api/offered_functions.h); 0: none */
  struct pwi_called *called;   /* of a call: what was called, and the results */
  struct pwi_trigger *trigger; /* of a trigger: goes with the task */
  struct pawl_task *told_next; /* among those that others are to be told of (api/offered_functions.h) */
  struct pawl_task *next, *before; /* in the line; the first also on the pool's lists */
  struct pwi_task_line *line;      /* valid until it has finished */
  struct pwi_task_pool *pool;
};

/* --- the pool ------------------------------------------------------------------------------------------------------- */

struct pwi_task_pool;

/* PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_task_pool_create(struct pwi_task_pool **pool_out);

/* The session needs it no more. It goes with its last task. NULL is fine. */
void pwi_task_pool_release(struct pwi_task_pool *pool);

/* Inside the gate. The task is cleared and has one reference. NULL if there is no memory. */
struct pawl_task *pwi_task_take(struct pwi_task_pool *pool);

/* Inside the gate: the id given last. */
uint64_t pwi_task_pool_last_id(const struct pwi_task_pool *pool);

/* Inside the gate. A copy of a name that lives as long as the pool; equal names are kept once. NULL if there is no
 * memory. */
const char *pwi_task_pool_name(struct pwi_task_pool *pool, const char *name);

/* Any thread. The last reference gives the task back. */
void pwi_task_unref(struct pawl_task *task);

/* api/call.c. NULL is fine. The second as pawl_task_describe, of one that has finished. */
void pwi_called_destroy(struct pwi_called *called);
void pwi_called_describe(const struct pawl_task *task, char *text, size_t size);

/* --- the line ------------------------------------------------------------------------------------------------------- */

/* Somebody waits until all tasks up to a serial have finished. */
struct pwi_flush {
  struct pwi_event done;
  uint64_t serial;
  struct pwi_flush *next;
};

/* All fields are used inside the gate only. */
struct pwi_task_line {
  struct pwi_driver *driver;
  struct pwi_sequence *sequence; /* NULL: no task of it comes after others */
  struct pawl_task *first, *last;
  uint64_t serial;           /* of the task started last */
  size_t count;              /* tasks in it */
  pawl_status failure;       /* the first one of tasks without a handle since somebody asked */
  struct pwi_flush *flushes; /* not yet done */

  /* Called when a task has finished, or was undone; NULL: nobody cares. */
  void (*watch)(void *context, struct pawl_task *task, bool is_undone);
  void *watch_context;
};

/* Inside the gate: puts a task in line that the client is about to be given. */
void pwi_task_line_up(struct pwi_task_line *line, struct pawl_task *task);

/* Inside the gate: the client did not take it: it is as if it had not been. */
void pwi_task_line_undo(struct pwi_task_line *line, struct pawl_task *task);

/* Inside the gate: the task has finished, and so have all its parts; its status is set. */
void pwi_task_conclude(struct pawl_task *task);

/* Inside the gate: takes all tasks out; they finish with `status`, and those that wait for them with PAWL_CANCELLED. */
void pwi_task_line_end(struct pwi_task_line *line, pawl_status status);

/* Inside the gate: begin and end waiting for tasks up to and including a serial: line->serial for all. */
void pwi_flush_begin(struct pwi_task_line *line, struct pwi_flush *flush, uint64_t serial);
void pwi_flush_cancel(struct pwi_task_line *line, struct pwi_flush *flush);

#endif
