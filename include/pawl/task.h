/* Tasks: calls in progress. push, pull and other calls return a task before their work is done.
 *
 * A program can wait for a task, query it, or set a callback. It releases the task when it no longer needs
 * the handle, whether the task has finished or not; the work continues. A push that has begun is completed as
 * long as the session lives.
 *
 * ORDER. A call may come after other tasks (<pawl/vector.h>, "WHEN"). pawl_task_begin creates a task whose
 * parts are calls. A task can only come after existing tasks, so no cycle can arise.
 *
 * Threads: any. Several threads may wait for one task.
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

/* Waits until the task has finished and returns its status: PAWL_OK or that of the first failure.
 * PAWL_TIMED_OUT after `timeout_ns` (0: do not wait). A timeout ends the waiting, not the task, which still
 * uses its keys and values. The waiting thread does the work of the session itself, so this is also the
 * fastest way to complete a task. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_wait(struct pawl_task *task, int64_t timeout_ns);

/* Waits for the task and releases it, for calls that are made one at a time. After a timeout the task is
 * released all the same; its keys and values must then remain valid until pawl_session_flush or
 * pawl_session_close has succeeded. NULL is allowed: PAWL_OK. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_finish(struct pawl_task *task, int64_t timeout_ns);

PAWL_API bool pawl_task_is_done(const struct pawl_task *task);

/* Sets a callback, which is called once when the task has finished, or at once if it already has. It runs in
 * a thread that is inside a call of this session, or in the session's own thread, without locks. It may call
 * anything except pawl_session_close, and should not wait. A task has one callback; PAWL_EXISTS for a
 * second. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_on_done(struct pawl_task *task,
                                                     void (*call)(void *context, struct pawl_task *task),
                                                     void *context);

/* Reads failure number `index`, below pawl_task_failure_count, of a finished task: the range of keys and the
 * status. For vectors with mixed placement the range is internal and has no meaning for the caller. Nothing
 * was applied to these keys, or for PAWL_OUTCOME_UNKNOWN possibly something. Only the first sixteen failures
 * are kept; PAWL_NOT_FOUND for others. */
PAWL_API size_t pawl_task_failure_count(const struct pawl_task *task);
PAWL_API PAWL_MUST_USE pawl_status pawl_task_failure(const struct pawl_task *task, size_t index,
                                                     struct pawl_range *range_out, pawl_status *status_out);

/* Describes the task in one line, such as "push to ads/w: [0, 500) the server has no memory left", or
 * names the tasks that a call waits for before it starts. The text is truncated to `size` bytes, including
 * the final zero. */
PAWL_API void pawl_task_describe(const struct pawl_task *task, char *text, size_t size);

/* The number of the task in its session, from 1. Messages name tasks by this number, and other sessions refer
 * to it (<pawl/call.h>). */
PAWL_API uint64_t pawl_task_id(const struct pawl_task *task);

/* --- tasks with parts ----------------------------------------------------------------------------------- */

struct pawl_session;

/* Creates a task called `name` in messages. Calls become parts of it by where.parent. It finishes when
 * pawl_task_end was called for it and all its parts have finished. Its status is then the one given to
 * pawl_task_end, or that of the first part that failed. Other tasks may come after it. pawl_session_flush
 * waits for its parts, not for the task itself. If the session is closed before pawl_task_end, the task fails
 * with PAWL_NODE_STOPPED. PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_begin(struct pawl_session *session, const char *name,
                                                   struct pawl_task **task_out);

/* Declares that the task gets no more parts. `status` is PAWL_OK or the reason of a failure. PAWL_INVALID if
 * the task is not from pawl_task_begin, or has ended already. */
PAWL_API pawl_status pawl_task_end(struct pawl_task *task, pawl_status status);

/* --- clocks --------------------------------------------------------------------------------------------- */

/* The number of a push, a pushpull or a pawl_group_clock in clocks, assigned when it starts. The numbers of a
 * session increase. 0 for a call that changes nothing or has not started. */
PAWL_API uint64_t pawl_task_number(const struct pawl_task *task);

/* The pushes of one sender that a pull has seen in a range: all pushes up to `number`. */
struct pawl_clock {
  struct pawl_range range; /* range of keys, as in pawl_task_failure */
  uint64_t node;           /* the sender: pawl_session_node */
  uint64_t number;
};

/* Reads the clocks of a successful pull that asked for them (where.clocks): up to `room` clocks, by range, in
 * the order in which answers arrived. Senders that have pushed nothing in a range are omitted. `*count_out`
 * is the number of clocks, even if it exceeds `room`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_task_clocks(const struct pawl_task *task, struct pawl_clock *clocks,
                                                    size_t room, size_t *count_out);

/* Releases the handle. NULL is allowed. */
PAWL_API void pawl_task_release(struct pawl_task *task);

#ifdef __cplusplus
}
#endif

#endif
