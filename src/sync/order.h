/* Tasks in a partial order: a task may start once its predecessors have finished (OSDI'14 3.2 and 3.5;
 * docs/tasks.md).
 *
 * A task waits for its predecessors, the tasks that it comes *after*. When all of them have succeeded, it is
 * ready. pwi_task_order_next returns ready tasks in the order in which they became ready; the caller does the
 * work and reports its end with pwi_task_order_end. If a predecessor fails, the task fails too, without
 * having begun, and records which task failed first.
 *
 * SUBTASKS. A task may have a parent that has not finished. The parent finishes when its own work has ended
 * and all its subtasks have finished. If any of these fails, the parent fails with the first failure.
 *
 * Tasks have increasing ids that are never reused. An assigned id that is no longer open belongs to a
 * finished task. The last 4096 failures are remembered, so that tasks added later after a failed task fail as
 * well.
 *
 * WHOLE GRAPHS. pwi_task_order_sort checks a graph before any of its tasks begins.
 *
 * The `finished` callback runs inside the call that finished the task. It may add tasks but must not end any.
 *
 * Threads: one at a time. Nothing here waits or depends on time.
 */
#ifndef PWI_SYNC_ORDER_H
#define PWI_SYNC_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/fifo.h"
#include "base/idmap.h"

#define PWI_TASK_ORDER_FAILURES 4096

struct pwi_ordered_task {
  uint64_t id; /* 0: none */
};

/* The result of a task. */
struct pwi_task_end {
  pawl_status status;
  struct pwi_ordered_task cause; /* the task that failed first, which may be this one; 0 on success */
};

struct pwi_task_order {
  struct pwi_idmap open; /* struct open_task * by id */
  struct pwi_fifo ready; /* struct pwi_ordered_task */
  uint64_t last;
  struct {
    struct pwi_ordered_task step;
    struct pwi_task_end end;
  } failures[PWI_TASK_ORDER_FAILURES]; /* a ring */
  size_t failure_count;                /* number of failures since the beginning */
  void (*finished)(void *context, struct pwi_ordered_task step, void *item, struct pwi_task_end end);
  void *context;
};

/* `finished` may be NULL. */
void pwi_task_order_init(struct pwi_task_order *order,
                         void (*finished)(void *context, struct pwi_ordered_task step, void *item,
                                          struct pwi_task_end end),
                         void *context);
void pwi_task_order_fini(struct pwi_task_order *order); /* open tasks are dropped without a callback */

/* Adds a task after `count` others, which may have finished already. `parent` is its parent, or 0 for none.
 * `item` belongs to the caller. PAWL_INVALID if one of the others never existed or the parent has finished;
 * PAWL_NO_MEMORY changes nothing. */
PAWL_MUST_USE pawl_status pwi_task_order_add(struct pwi_task_order *order, const struct pwi_ordered_task *after,
                                             size_t count, struct pwi_ordered_task parent, void *item,
                                             struct pwi_ordered_task *step_out);

/* The same, but the task runs after the others whether they succeed or fail. */
PAWL_MUST_USE pawl_status pwi_task_order_add_anyway(struct pwi_task_order *order, const struct pwi_ordered_task *after,
                                                    size_t count, struct pwi_ordered_task parent, void *item,
                                                    struct pwi_ordered_task *step_out);

/* Returns the next task that may begin; false if there is none now. */
bool pwi_task_order_next(struct pwi_task_order *order, struct pwi_ordered_task *step_out, void **item_out);

/* Reports that the work of a task has ended. Its subtasks may still be in progress. */
void pwi_task_order_end(struct pwi_task_order *order, struct pwi_ordered_task step, pawl_status status);

/* True if the task has finished; `*end_out`, unless NULL, is its result. A failure that is no longer
 * remembered counts as success. */
bool pwi_task_order_is_finished(const struct pwi_task_order *order, struct pwi_ordered_task step,
                                struct pwi_task_end *end_out);

/* The number of tasks that have not finished. */
size_t pwi_task_order_open(const struct pwi_task_order *order);

/* One of the tasks that a task still waits for; 0 if there is none. */
struct pwi_ordered_task pwi_task_order_waits_for(const struct pwi_task_order *order, struct pwi_ordered_task step);

/* --- whole graphs --------------------------------------------------------------------------------------- */

/* Task number `to` of a graph comes after task number `from`; numbers begin at 0. */
struct pwi_edge {
  uint32_t from, to;
};

/* Writes the tasks to `sorted` such that each follows its predecessors. PAWL_INVALID if an edge names a task
 * that does not exist, or if there is a cycle; `*culprit_out` is then that number, or a task of the cycle.
 * PAWL_NO_MEMORY. `sorted` has room for `count` tasks; its contents are undefined after a failure. If
 * `culprit_out` is NULL, the search for a culprit is skipped, which takes long in a large graph. */
PAWL_MUST_USE pawl_status pwi_task_order_sort(size_t count, const struct pwi_edge *edges, size_t edge_count,
                                              uint32_t *sorted, uint32_t *culprit_out);

#endif
