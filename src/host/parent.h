/* The child's side of children.h: saying that it is ready, and noticing that its parent is gone.
 *
 * Whatever becomes of the parent, its children must not stay behind. PR_SET_PDEATHSIG would not do: it goes by the
 * thread that started the child, and comes when that thread ends. So two things are watched, and either is enough:
 *
 *   - the parent's pidfd: it exited, was killed, or crashed, also while others keep its descriptors open;
 *   - the ready pipe, of which the parent holds the only reading end until it stops the child: it also closes when the
 *     parent becomes another program by exec, and it works where the kernel has no pidfd (before Linux 5.3).
 */
#ifndef PWI_HOST_PARENT_H
#define PWI_HOST_PARENT_H

#include <sys/types.h>

#include <pawl/status.h>

/* Writes `line` and a line break, in one piece. `fd` is the ready pipe, or anything that can be written to, and stays
 * open. Raises no SIGPIPE. Errors:
 *   PAWL_INVALID       a line break in the line, or more than PWI_READY_LINE_MAX bytes
 *   PAWL_LINK_CLOSED   nobody reads it any more
 *   PAWL_IO            it cannot be written to
 */
PAWL_MUST_USE pawl_status pwi_parent_say_ready(int fd, const char *line);

struct pwi_parent_watch;

/* Calls `gone` once when the process `parent` is gone, soon if it is already, from a thread of the watch's own in which
 * all signals are blocked. `parent` is the number that the direct parent gave of itself; 0 watches `fd` only. `fd` is
 * the ready pipe, or -1 to watch the process only; it stays the caller's, must be open until the watch is closed, and
 * is closed on exec from now on, lest a child of ours keep it. Errors:
 *   PAWL_INVALID       nothing to watch, or `fd` is not open
 *   PAWL_UNSUPPORTED   there is only `parent` to watch, and no pidfd here
 *   PAWL_NODE_LIMIT    too many threads or descriptors
 *   PAWL_NO_MEMORY
 */
PAWL_MUST_USE pawl_status pwi_parent_watch(pid_t parent, int fd, void (*gone)(void *context), void *context,
                                           struct pwi_parent_watch **watch_out);

/* Ends the watch; waits for a `gone` that is running, and so must not be called from it. NULL is fine. */
void pwi_parent_watch_close(struct pwi_parent_watch *watch);

#endif
