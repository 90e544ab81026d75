/* Tells a process that runs a role to stop: on SIGTERM, on SIGINT, or when its parent is gone.
 *
 * Each signal counts one: the first asks for an orderly end, the second for an immediate one. The parent's
 * end counts two. There is one instance per process, because there is one set of signal handlers.
 *
 * Threads: open and close in the main thread; `stop` runs in a signal handler or in a thread of the watch.
 */
#ifndef PWI_HOST_RUN_PROCESS_H
#define PWI_HOST_RUN_PROCESS_H

#include <sys/types.h>

#include <pawl/status.h>

struct pwi_run_process_config {
  pid_t parent; /* process to watch; 0: none */
  int ready_fd; /* where to report readiness; also watched if there is a parent; -1: none */

  /* The process was told to stop for the `times`-th time. May be called in a signal handler, in several
   * threads, and more than twice. */
  void (*stop)(void *context, int times);
  void (*reload)(
      void *context); /* called in the handler of SIGHUP, to reload keys; NULL: the signal keeps its effect */
  void *context;
};

/* Starts to watch signals and the parent. PAWL_EXISTS if there already is an instance; else as
 * pwi_parent_watch. */
PAWL_MUST_USE pawl_status pwi_run_process_open(const struct pwi_run_process_config *config);

/* Restores the former effect of signals. */
void pwi_run_process_close(void);

/* Writes `ready address=ADDRESS` to the ready descriptor, if there is one. Errors as pwi_parent_say_ready. */
PAWL_MUST_USE pawl_status pwi_run_process_ready(const char *address);

#endif
