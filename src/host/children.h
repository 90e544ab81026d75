/* Starts child processes, waits until they are ready, and ends them.
 *
 * A child gets standard input from /dev/null; standard output and standard error in one place, so that
 * they never mix with the results that this process prints; and the writing end of a pipe as descriptor
 * PWI_CHILD_READY_FD. The child writes one line to the pipe when it is ready. The pipe also tells the
 * child when this process is gone (see parent.h): the reading end stays open here until pwi_child_stop. No
 * other descriptor is passed on. In the child all signals are unblocked and have their default action,
 * whatever this process does with its own.
 *
 * The line is `ready`, followed by words key=value: `ready address=tcp://127.0.0.1:4711 pid=12`.
 *
 * A child is identified by a pidfd, so no unrelated process is ever signalled; on kernels without pidfds
 * (before Linux 5.4), by its pid. Both work in a program that ignores SIGCHLD or that reaps unknown
 * children; then only the exit status of the child is lost. No zombie is left once pwi_child_wait or
 * pwi_child_stop has seen the end.
 *
 * Threads: calls for different children may run at the same time, calls for one child may not. Starting a
 * child reads the environment, which no other thread may change in the meantime. Deadlines are times on
 * pwi_host_now's clock (clock.h); a call with a past deadline does not wait.
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
  PWI_CHILD_OUTPUT_INHERIT = -1, /* standard error of this process */
  /* a file in memory, which grows with the output: for children that write little */
  PWI_CHILD_OUTPUT_KEEP = -2,
};

struct pwi_child_config {
  const char *path;  /* of the program; PATH is not searched. See pwi_child_command */
  char *const *argv; /* includes argv[0], ends with NULL */
  /* NAME=value, ends with NULL: added to or replacing this process's variables; may be NULL */
  const char *const *environment;
  int output_fd;      /* where the child's output goes: a descriptor of the caller, or one of the two above */
  bool own_group;     /* run in its own process group: the terminal's interrupt reaches this process only */
  bool without_pidfd; /* behave as on an old kernel; for tests */
};

enum pwi_child_how {
  PWI_CHILD_RUNS,
  PWI_CHILD_EXITED,    /* `number` is its exit code */
  PWI_CHILD_SIGNALLED, /* `number` is the signal that ended it */
  PWI_CHILD_ENDED,     /* another part of the program reaped it, so its exit status is unknown */
};

struct pwi_child_end {
  enum pwi_child_how how;
  int number;
};

struct pwi_child;

/* Starts a child. `config` is only used during the call. Errors:
 *   PAWL_NOT_FOUND, PAWL_FORBIDDEN   no such program, or it may not be executed
 *   PAWL_NODE_LIMIT                  too many processes or descriptors
 *   PAWL_NO_MEMORY
 *   PAWL_IO                          any other error, such as a program for another machine
 */
PAWL_MUST_USE pawl_status pwi_child_start(const struct pwi_child_config *config, struct pwi_child **child_out);

/* Waits until the child is ready, and returns its line, which is valid until the child is stopped. May be
 * called repeatedly, before and after success. Errors:
 *   PAWL_TIMED_OUT      the child is not ready yet; it still runs
 *   PAWL_NODE_STOPPED   the child ended before: see pwi_child_wait and pwi_child_last_words
 *   PAWL_CORRUPT        the child wrote something else, or too much
 */
PAWL_MUST_USE pawl_status pwi_child_ready(struct pwi_child *child, int64_t deadline_ns, const char **line_out);

/* The value of a word key=value of a ready line. PAWL_NOT_FOUND if there is no such word, PAWL_TOO_LARGE
 * if the value does not fit. */
PAWL_MUST_USE pawl_status pwi_child_value(const char *line, const char *key, char *value_out, size_t size);

/* Waits until the child has ended. PAWL_TIMED_OUT if it still runs. */
PAWL_MUST_USE pawl_status pwi_child_wait(struct pwi_child *child, int64_t deadline_ns, struct pwi_child_end *end_out);

/* The end of the child's output so far, at most `size - 1` bytes, as a string; unprintable bytes become
 * '?'. Empty unless the output goes to memory or to a regular file. */
void pwi_child_last_words(const struct pwi_child *child, char *text_out, size_t size);

/* `exit code 3`, `signal 9`, `running`, `ended`. Returns `text_out`. */
const char *pwi_child_end_print(struct pwi_child_end end, char *text_out, size_t size);

pid_t pwi_child_pid(const struct pwi_child *child);

/* Sends SIGTERM and does not wait. To end many children, ask all of them before stopping the first. */
void pwi_child_ask(struct pwi_child *child);

/* Ends the child and frees it: sends SIGTERM, waits up to `grace_ns`, then sends SIGKILL and waits. A
 * child that has ended gets no signal. Returns how it ended. NULL is fine. */
struct pwi_child_end pwi_child_stop(struct pwi_child *child, int64_t grace_ns);

/* Finds the `pawl` command, for starting roles. If PAWL_COMMAND is set in the environment, only that
 * counts. Otherwise searches beside the library that contains this function, in the bin/ of its
 * installation, beside the running program, in that program's bin/, and on the PATH. PAWL_NOT_FOUND,
 * PAWL_TOO_LARGE if the path does not fit. */
PAWL_MUST_USE pawl_status pwi_child_command(char *path_out, size_t size);

#endif
