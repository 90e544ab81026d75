/* Tasks in a partial order: what must have finished before what may start (OSDI'14 3.2 and 3.5; design, section 4).
 *
 * A task waits for the tasks that it comes *after*. When all of them have finished well it is ready, and is handed out, in the
 * order in which tasks became ready; whoever does the work says when it has ended, and how. A task that comes after one that
 * failed fails too, without having begun, and remembers which one that was.
 *
 * SUBTASKS. A task may be begun on behalf of another, its parent, as long as that one has not finished. The parent has finished
 * only when its own work has ended and all its subtasks have finished; the first failure among them is its own.
 *
 * Tasks are named by numbers that rise and are not used again. A number that was given once and is not under way any more is
 * that of a task that has finished; of those that failed the last 4096 are remembered, so that what comes after them later
 * fails as well.
 *
 * WHOLE GRAPHS. pwi_order_check looks at a graph that somebody else has drawn up, before anything of it is begun.
 *
 * The `finished` callback runs inside of whichever call brought it about. It may add tasks; it must not end any.
 *
 * Threads: one at a time. Nothing here waits, or knows of time.
 */
#ifndef PWI_SYNC_ORDER_H
#define PWI_SYNC_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/fifo.h"
#include "base/idmap.h"

#define PWI_ORDER_FAILURES 4096

struct pwi_step {
  uint64_t id; /* 0: none */
};

/* How a task has finished. */
struct pwi_step_end {
  pawl_status status;
  struct pwi_step cause; /* the task that failed first; itself, if it is that one; 0 if all went well */
};

struct pwi_order {
  struct pwi_idmap open; /* struct step * by id */
  struct pwi_fifo ready; /* struct pwi_step */
  uint64_t last;
  struct {
    struct pwi_step step;
    struct pwi_step_end end;
  } failures[PWI_ORDER_FAILURES]; /* a ring */
  size_t failure_count;           /* ever */
  void (*finished)(void *context, struct pwi_step step, void *item, struct pwi_step_end end);
  void *context;
};

/* `finished` may be NULL. */
void pwi_order_init(struct pwi_order *order,
                    void (*finished)(void *context, struct pwi_step step, void *item, struct pwi_step_end end),
                    void *context);
void pwi_order_fini(struct pwi_order *order); /* what is open is forgotten, and not called finished */

/* A new task after `count` others, which may have finished long ago, on behalf of `parent` or, if that is 0, of nobody. `item` is
 * the caller's. PAWL_INVALID if one of the others was never there, or the parent has finished; PAWL_NO_MEMORY: nothing has
 * happened. */
PAWL_MUST_USE pawl_status pwi_order_add(struct pwi_order *order, const struct pwi_step *after, size_t count,
                                        struct pwi_step parent, void *item, struct pwi_step *step_out);

/* The same for a task that comes after the others however they end: a failure of theirs is not its own. */
PAWL_MUST_USE pawl_status pwi_order_add_anyway(struct pwi_order *order, const struct pwi_step *after, size_t count,
                                               struct pwi_step parent, void *item, struct pwi_step *step_out);

/* The next task that may begin; false: none now. */
bool pwi_order_next(struct pwi_order *order, struct pwi_step *step_out, void **item_out);

/* The work of a task that was handed out has ended. Its subtasks may still be under way. */
void pwi_order_end(struct pwi_order *order, struct pwi_step step, pawl_status status);

/* True if it has finished; `*end_out` says how, unless it is NULL. A failure so old that it is forgotten reads as finished well. */
bool pwi_order_is_finished(const struct pwi_order *order, struct pwi_step step, struct pwi_step_end *end_out);

/* How many have not finished. */
size_t pwi_order_open(const struct pwi_order *order);

/* One of those that a task still waits for; 0 if it waits for none. */
struct pwi_step pwi_order_waits_for(const struct pwi_order *order, struct pwi_step step);

/* --- whole graphs ----------------------------------------------------------------------------------------------------- */

/* Task number `to` comes after number `from`, of those in one graph, counted from 0. */
struct pwi_edge {
  uint32_t from, to;
};

/* PAWL_INVALID if an edge leads nowhere or there is a cycle: `*culprit_out` is then a task of it, or the edge's wrong end.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_order_check(size_t count, const struct pwi_edge *edges, size_t edge_count,
                                          uint32_t *culprit_out);

/* As check, and puts them into an order in which each stands behind all that it comes after. `sorted` has room for `count`, and
 * after a failure anything may be in it. NULL for `culprit_out` saves looking for one, which takes long in a large graph. */
PAWL_MUST_USE pawl_status pwi_order_sort(size_t count, const struct pwi_edge *edges, size_t edge_count,
                                         uint32_t *sorted, uint32_t *culprit_out);

#endif
