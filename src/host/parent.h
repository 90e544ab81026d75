/* The child's side of children.h: reports that it is ready, and notices when its parent is gone.
 *
 * When the parent ends, for whatever reason, its children must end, too. PR_SET_PDEATHSIG does not
 * suffice: it is bound to the thread that started the child, and fires when that thread ends. So two
 * things are watched, and either suffices:
 *
 *   - the parent's pidfd: the parent exited, was killed, or crashed, even if others keep its descriptors
 *     open;
 *   - the ready pipe, whose only reading end the parent holds until it stops the child: it also closes
 *     when the parent becomes another program by exec, and it works on kernels without pidfds (before
 *     Linux 5.3).
 */
#ifndef PWI_HOST_PARENT_H
#define PWI_HOST_PARENT_H

#include <sys/types.h>

#include <pawl/status.h>

/* Writes `line` and a line break in one write. `fd` is the ready pipe or any writable descriptor, and
 * stays open. Raises no SIGPIPE. Errors:
 *   PAWL_INVALID       the line contains a line break, or has more than PWI_READY_LINE_MAX bytes
 *   PAWL_LINK_CLOSED   the reader is gone
 *   PAWL_IO            `fd` cannot be written to
 */
PAWL_MUST_USE pawl_status pwi_parent_say_ready(int fd, const char *line);

struct pwi_parent_watch;

/* Calls `gone` once when the process `parent` is gone, also if it is gone already. The call comes from a
 * thread of the watch, in which all signals are blocked. `parent` is the pid that the direct parent passed
 * to us; 0: watch `fd` only. `fd` is the ready pipe, or -1 to watch the process only. The caller keeps
 * `fd` and must not close it before the watch; it is marked close-on-exec, so that no child of ours keeps
 * it open. Errors:
 *   PAWL_INVALID       there is nothing to watch, or `fd` is not open
 *   PAWL_UNSUPPORTED   there is only `parent` to watch, and the kernel has no pidfds
 *   PAWL_NODE_LIMIT    too many threads or descriptors
 *   PAWL_NO_MEMORY
 */
PAWL_MUST_USE pawl_status pwi_parent_watch(pid_t parent, int fd, void (*gone)(void *context), void *context,
                                           struct pwi_parent_watch **watch_out);

/* Ends the watch and waits for a running `gone`; must not be called from `gone`. NULL is fine. */
void pwi_parent_watch_close(struct pwi_parent_watch *watch);

#endif
