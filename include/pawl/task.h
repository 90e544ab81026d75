/* Tasks: what push, pull and the other calls return before their work is done.
 *
 * A task is waited for, asked, or told whom to call. It is released when nobody needs it any more, finished or not:
 * releasing gives up the handle, never the work. A push that has begun is seen through while the session lives.
 *
 * ORDER. A call may come after tasks (<pawl/vector.h>, "when"), pawl_task_all makes one task of several, and pawl_task_begin
 * one of your own whose parts are calls. A task can only come after one that was there before it, so no cycle can be made;
 * a graph that is drawn up whole before its calls are made is checked with pawl_graph_check.
 *
 * Threads: any. Several may wait for one task.
 */
#ifndef PAWL_TASK_H
#define PAWL_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/range.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_task;

#define PAWL_FOREVER INT64_MAX
#define PAWL_SECOND INT64_C(1000000000) /* nanoseconds */

/* Waits until the task has finished: its status, PAWL_OK or the first failure's. PAWL_TIMED_OUT after `timeout_ns` (0: do
 * not wait): that ends the waiting and never the task, whose memory still belongs to it. The waiting thread does the
 * session's work itself meanwhile, so this is also the fastest way to get it done. */
PAWL_API pawl_status pawl_task_wait(struct pawl_task *task, int64_t timeout_ns);

/* Waits and releases: for calls that are made one at a time. If the time runs out the task is released all the same, and
 * its memory must then live until pawl_session_flush or pawl_session_close has succeeded. NULL is fine: PAWL_OK. */
PAWL_API pawl_status pawl_task_finish(struct pawl_task *task, int64_t timeout_ns);

PAWL_API bool pawl_task_is_done(const struct pawl_task *task);

/* Calls `call` once when the task has finished, at once if it has. It runs in some thread that is inside a call of this
 * session or in the session's own, without locks held: it may call anything but pawl_session_close, and should not wait.
 * One callback per task; PAWL_EXISTS for a second. */
PAWL_API pawl_status pawl_task_on_done(struct pawl_task *task, void (*call)(void *context, struct pawl_task *task),
                                       void *context);

/* Where and why a finished task failed: failure number `index` of pawl_task_failure_count. The range is of keys (for
 * vectors with mixed placement, of places that mean nothing to the caller). On what it names nothing was applied, or, for
 * PAWL_OUTCOME_UNKNOWN, perhaps. Only the first sixteen are kept; PAWL_NOT_FOUND for others. */
PAWL_API size_t pawl_task_failure_count(const struct pawl_task *task);
PAWL_API pawl_status pawl_task_failure(const struct pawl_task *task, size_t index, struct pawl_range *range_out,
                                       pawl_status *status_out);

/* All of it as one line for people, such as "push to ads/w: [0, 500) the server has no memory left for it", or for a call that
 * has not started what it waits for: cut to `size` with its final zero. */
PAWL_API void pawl_task_describe(const struct pawl_task *task, char *text, size_t size);

/* Which task of its session this is, from 1 on: texts name tasks by it, and other sessions know it by it (<pawl/call.h>). */
PAWL_API uint64_t pawl_task_id(const struct pawl_task *task);

/* --- several as one --------------------------------------------------------------------------------------------------- */

struct pawl_session;

/* A task that has finished when all of these have: well, or with PAWL_CANCELLED if one of them failed, which its description
 * names. The others' handles may be released at once. PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_API pawl_status pawl_task_all(struct pawl_session *session, struct pawl_task *const *tasks, size_t count,
                                   struct pawl_task **task_out);

/* A task of your own, called `name` in texts. Calls become parts of it by where.parent. It has finished when pawl_task_end was
 * called for it and all its parts have finished; its status is then what was said, or that of its first part that failed.
 * Others may come after it. pawl_session_flush does not wait for it, but for its parts; if the session is closed before it was
 * ended it fails with PAWL_NODE_STOPPED. PAWL_NO_MEMORY. */
PAWL_API pawl_status pawl_task_begin(struct pawl_session *session, const char *name, struct pawl_task **task_out);

/* No more parts will come; `status` is PAWL_OK, or why it failed. PAWL_INVALID if it is no task of pawl_task_begin, or was ended. */
PAWL_API pawl_status pawl_task_end(struct pawl_task *task, pawl_status status);

/* Task number `to` comes after number `from`, counted from 0. */
struct pawl_edge {
  uint32_t from, to;
};

/* Whether tasks can be started in the order that these edges draw. PAWL_INVALID if an edge names a task beyond `count` or some
 * task would have to wait for itself: pawl_error_text says which. PAWL_NO_MEMORY. */
PAWL_API pawl_status pawl_graph_check(size_t count, const struct pawl_edge *edges, size_t edge_count);

/* --- clocks ------------------------------------------------------------------------------------------------------------ */

/* The number by which clocks know a push, a pushpull or a pawl_group_clock once it has started. Numbers of a session only rise. 0
 * for what changes nothing, or has not started. */
PAWL_API uint64_t pawl_task_number(const struct pawl_task *task);

/* What a pull has seen of somebody's pushes in a range: all up to this number. */
struct pawl_clock {
  struct pawl_range range; /* of keys; as in pawl_task_failure */
  uint64_t node;           /* whose: pawl_session_node */
  uint64_t number;
};

/* The clocks of a pull that asked for them (where.clocks) and has finished well: up to `room` of them, by range, in the order in which answers came.
 * Who has pushed nothing there is left out. `*count_out` is how many there are, also if `room` is less. */
PAWL_API pawl_status pawl_task_clocks(const struct pawl_task *task, struct pawl_clock *clocks, size_t room,
                                      size_t *count_out);

/* Gives up the handle. NULL is fine. */
PAWL_API void pawl_task_release(struct pawl_task *task);

#ifdef __cplusplus
}
#endif

#endif
