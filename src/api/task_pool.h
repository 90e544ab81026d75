/* The tasks of a session: allocation, and the end of a task.
 *
 * A *pool* hands out tasks inside the session's gate and takes them back from any thread, without a lock:
 * returned tasks go on a stack, which the pool picks up as a whole when it has none left. So calls in a
 * steady state allocate nothing. The pool outlives its session until the last task is returned, because a
 * task may be queried after the session was closed.
 *
 * The client has a reference to a task until it has finished; the caller has one if the task has a handle.
 *
 * A task that others wait for, or that waits for others, is also in the session's order (api/sequence.h):
 * its own end is reported there, and it has finished when the order says so.
 *
 * The *line* lists unfinished tasks in the order of their start, for flushing and closing.
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

/* The task that caused the failure of a task that did not fail itself. */
struct pwi_cause {
  const char *what, *subject; /* of the causing task; NULL: there is none */
  uint64_t id;
  pawl_status status;
  uint64_t step;
};

struct pawl_task {
  struct pwi_task inner; /* must be first */
  struct pwi_event done;
  struct pwi_work work; /* calls `call` */
  atomic_uint references;
  atomic_bool has_call;
  bool has_handle;
  const char *what;    /* "push to" */
  const char *subject; /* name of a vector or group; lives as long as the pool */
  void (*call)(void *context, struct pawl_task *task);
  void *context;
  uint64_t id; /* unique in the session; people and other sessions identify the task by it */

  /* Its place in the order (api/sequence.h); used inside the gate. */
  struct pwi_ordered_task step;
  bool is_in_order, is_own, has_ended;
  struct pwi_dependent *held; /* NULL: it has started, or is a task of the caller */
  struct pawl_task *parent;   /* with a reference; NULL: none */
  pawl_status part_status;    /* the first failure of a part */
  struct pwi_cause cause;

  /* Called inside the gate when the task has finished and before others are told. NULL: none. */
  void (*over)(struct pawl_task *task);
  void *over_context;
  uint64_t over_number;

  struct pwi_clock_list clocks; /* clocks of its answers */

  uint64_t serial;
  /* its place below the invocation that started it (api/offered_functions.h); 0: none */
  struct pwi_ordered_task issued;
  struct pwi_called *called;       /* of a call: the called functions and their results */
  struct pwi_trigger *trigger;     /* of a trigger: freed with the task */
  struct pawl_task *told_next;     /* list of finished tasks to report (api/offered_functions.h) */
  struct pawl_task *next, *before; /* in the line; `next` also in the pool's lists */
  struct pwi_task_line *line;      /* valid until the task has finished */
  struct pwi_task_pool *pool;
};

/* --- the pool ------------------------------------------------------------------------------------------- */

struct pwi_task_pool;

/* PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_task_pool_create(struct pwi_task_pool **pool_out);

/* The session no longer needs the pool. It is freed with its last task. NULL is fine. */
void pwi_task_pool_release(struct pwi_task_pool *pool);

/* Inside the gate: a cleared task with one reference. NULL if memory is short. */
struct pawl_task *pwi_task_take(struct pwi_task_pool *pool);

/* Inside the gate: the last id that was assigned. */
uint64_t pwi_task_pool_last_id(const struct pwi_task_pool *pool);

/* Inside the gate: a copy of a name that lives as long as the pool; equal names are stored once. NULL if
 * memory is short. */
const char *pwi_task_pool_name(struct pwi_task_pool *pool, const char *name);

/* Any thread. Releasing the last reference returns the task. */
void pwi_task_unref(struct pawl_task *task);

/* api/call.c. NULL is fine. The second is pawl_task_describe for a call that has finished. */
void pwi_called_destroy(struct pwi_called *called);
void pwi_called_describe(const struct pawl_task *task, char *text, size_t size);

/* --- the line ------------------------------------------------------------------------------------------- */

/* A wait until all tasks up to a serial have finished. */
struct pwi_flush {
  struct pwi_event done;
  uint64_t serial;
  struct pwi_flush *next;
};

/* All fields are used inside the gate only. */
struct pwi_task_line {
  struct pwi_driver *driver;
  struct pwi_sequence *sequence; /* NULL: no task of this line comes after others */
  struct pawl_task *first, *last;
  uint64_t serial;           /* of the last task that was started */
  size_t count;              /* number of unfinished tasks */
  pawl_status failure;       /* the first failure of tasks without a handle since it was last queried */
  struct pwi_flush *flushes; /* unfinished waits */

  /* Called when a task has finished or was undone; NULL: none. */
  void (*watch)(void *context, struct pawl_task *task, bool is_undone);
  void *watch_context;
};

/* Inside the gate: puts a task in line before it is given to the client. */
void pwi_task_line_up(struct pwi_task_line *line, struct pawl_task *task);

/* Inside the gate: the client refused the task; removes it again. */
void pwi_task_line_undo(struct pwi_task_line *line, struct pawl_task *task);

/* Inside the gate: the task and all its parts have finished, and its status is set. */
void pwi_task_conclude(struct pawl_task *task);

/* Inside the gate: removes all tasks. They finish with `status`, and calls that wait for them with
 * PAWL_CANCELLED. */
void pwi_task_line_end(struct pwi_task_line *line, pawl_status status);

/* Inside the gate: begin and end a wait for tasks up to and including a serial; line->serial for all. */
void pwi_flush_begin(struct pwi_task_line *line, struct pwi_flush *flush, uint64_t serial);
void pwi_flush_cancel(struct pwi_task_line *line, struct pwi_flush *flush);

#endif
