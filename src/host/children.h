/* Processes that this one starts, is told by that they are ready, and ends.
 *
 * A child gets: standard input from /dev/null; standard output and standard error in one place, so that they never mix
 * with the results this process prints; and the writing end of a pipe as descriptor PWI_CHILD_READY_FD. On it the child
 * writes one line when it is ready, and by it the child notices that this process is gone (see parent.h): the reading
 * end stays open here until pwi_child_stop. No other descriptor is passed on. Signals are unblocked in the child, and
 * all have their default action, whatever this process does with its own.
 *
 * The line is `ready`, followed by words key=value: `ready address=tcp://127.0.0.1:4711 pid=12`.
 *
 * A child is known by a pidfd, so that nobody else's process is ever signalled; where the kernel has none (before Linux
 * 5.4), by its pid. Both work beside a program that ignores SIGCHLD or that reaps children it does not know: only the
 * way in which the child ended is lost then. No zombie is left once pwi_child_wait or pwi_child_stop has seen the end.
 *
 * Threads: calls for different children may run at the same time, calls for one child may not. Starting reads the
 * environment, which no other thread may change meanwhile. Deadlines are times on pwi_host_now's clock (clock.h); one
 * that has passed makes a call look and not wait.
 */
#ifndef PWI_HOST_CHILDREN_H
#define PWI_HOST_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pawl/status.h>

#define PWI_CHILD_READY_FD 3
#define PWI_READY_LINE_MAX 1023 /* bytes, without the line break */

enum {
  PWI_CHILD_OUTPUT_INHERIT = -1, /* to this process's standard error */
  PWI_CHILD_OUTPUT_KEEP = -2,    /* to a file in memory, which grows with what the child says: for those of few words */
};

struct pwi_child_config {
  const char *path;               /* of the program; not searched for. See pwi_child_command */
  char *const *argv;              /* with argv[0], ending in NULL */
  const char *const *environment; /* NAME=value, ending in NULL: added to this process's, or in their place; or NULL */
  int output_fd;                  /* where it writes to: a descriptor of the caller's, or one of the two above */
  bool own_group;     /* in a process group of its own: the terminal's interrupt reaches this process only */
  bool without_pidfd; /* as on an old kernel; for tests */
};

enum pwi_child_how {
  PWI_CHILD_RUNS,
  PWI_CHILD_EXITED,    /* `number` is its exit code */
  PWI_CHILD_SIGNALLED, /* `number` is the signal that ended it */
  PWI_CHILD_ENDED,     /* somebody else took the news of how */
};

struct pwi_child_end {
  enum pwi_child_how how;
  int number;
};

struct pwi_child;

/* Starts it. Everything in `config` is read during the call only. Errors:
 *   PAWL_NOT_FOUND, PAWL_FORBIDDEN   no such program, or it may not be executed
 *   PAWL_NODE_LIMIT                  too many processes or descriptors
 *   PAWL_NO_MEMORY
 *   PAWL_IO                          anything else: not a program of this machine, for instance
 */
PAWL_MUST_USE pawl_status pwi_child_start(const struct pwi_child_config *config, struct pwi_child **child_out);

/* Waits until the child says that it is ready, and gives its line; it is valid until the child is stopped. May be called
 * again, before and after success. Errors:
 *   PAWL_TIMED_OUT      it has not said so yet; it still runs
 *   PAWL_NODE_STOPPED   it ended before: pwi_child_wait and pwi_child_last_words tell more
 *   PAWL_CORRUPT        it said something else, or too much
 */
PAWL_MUST_USE pawl_status pwi_child_ready(struct pwi_child *child, int64_t deadline_ns, const char **line_out);

/* The value of a word key=value of a ready line. PAWL_NOT_FOUND if there is none, PAWL_TOO_LARGE if it does not fit. */
PAWL_MUST_USE pawl_status pwi_child_value(const char *line, const char *key, char *value_out, size_t size);

/* Waits until the child has ended. PAWL_TIMED_OUT if it still runs. */
PAWL_MUST_USE pawl_status pwi_child_wait(struct pwi_child *child, int64_t deadline_ns, struct pwi_child_end *end_out);

/* The end of what the child has written so far, at most `size - 1` bytes of it, as a string; unprintable bytes become
 * '?'. Empty unless its output goes to memory or to a regular file. */
void pwi_child_last_words(const struct pwi_child *child, char *text_out, size_t size);

/* `exit code 3`, `signal 9`, `running`, `ended`. Returns `text_out`. */
const char *pwi_child_end_print(struct pwi_child_end end, char *text_out, size_t size);

pid_t pwi_child_pid(const struct pwi_child *child);

/* Sends SIGTERM and does not wait: with many children, ask them all before the first is stopped. */
void pwi_child_ask(struct pwi_child *child);

/* Ends the child and frees it: SIGTERM, `grace_ns` to obey, then SIGKILL, which is waited for. A child that has ended
 * gets no signal. Returns how it ended. NULL is fine. */
struct pwi_child_end pwi_child_stop(struct pwi_child *child, int64_t grace_ns);

/* Where the `pawl` command is, for starting roles: the environment's PAWL_COMMAND, and nothing else if that is set;
 * else beside the library that holds this function, or in the bin/ of its installation; else beside the running
 * program, or in its bin/; else on the PATH. PAWL_NOT_FOUND, PAWL_TOO_LARGE if it does not fit. */
PAWL_MUST_USE pawl_status pwi_child_command(char *path_out, size_t size);

#endif
