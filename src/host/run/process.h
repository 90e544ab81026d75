/* How a process that runs a role is told to stop: by SIGTERM, SIGINT, or because its parent is gone.
 *
 * Each signal counts one: the first asks for an orderly end, a second for an end at once. A parent that is gone counts two.
 * There is one of this per process, because there is one set of signal handlers.
 *
 * Threads: open and close from the main thread; `stop` runs in a signal handler or in a thread of the watch.
 */
#ifndef PWI_HOST_RUN_PROCESS_H
#define PWI_HOST_RUN_PROCESS_H

#include <sys/types.h>

#include <pawl/status.h>

struct pwi_run_process_config {
  pid_t parent; /* to watch; 0: none */
  int ready_fd; /* where to say ready; also watched with a parent; -1: nowhere */

  /* Told to stop, for the `times`-th time. May be called in a signal handler, in several threads, and more than twice. */
  void (*stop)(void *context, int times);
  void (*reload)(void *context); /* SIGHUP: read keys anew; in a signal handler. NULL: the signal is left alone */
  void *context;
};

/* From now on signals and the parent's end are noticed. PAWL_EXISTS for a second one; else as pwi_parent_watch. */
PAWL_MUST_USE pawl_status pwi_run_process_open(const struct pwi_run_process_config *config);

/* Signals have the effect they had before. */
void pwi_run_process_close(void);

/* Says `ready address=ADDRESS` on the ready descriptor, if there is one. As pwi_parent_say_ready. */
PAWL_MUST_USE pawl_status pwi_run_process_ready(const char *address);

#endif
