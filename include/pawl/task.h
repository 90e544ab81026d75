/* Tasks: what push, pull and the other calls return before their work is done.
 *
 * A task is waited for, asked, or told whom to call. It is released when nobody needs it any more, finished or not:
 * releasing gives up the handle, never the work. A push that has begun is seen through while the session lives.
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

/* All of it as one line for people, such as "push to ads/w: [0, 500) the server's memory cap is reached": cut to `size`
 * with its final zero. */
PAWL_API void pawl_task_describe(const struct pawl_task *task, char *text, size_t size);

/* Gives up the handle. NULL is fine. */
PAWL_API void pawl_task_release(struct pawl_task *task);

#ifdef __cplusplus
}
#endif

#endif
