/* The log of a manager on this machine: chooses its directory, opens it, and explains errors.
 *
 * The log is DIRECTORY/manager.log. The directory is
 *   - the requested one;
 *   - else, if the system chooses the port of the manager's address, none: nobody would find the manager
 *     there again;
 *   - else $XDG_STATE_HOME/pawl/NAME, or $HOME/.local/state/pawl/NAME, or pawl-data/NAME below the working
 *     directory, where NAME is the port, or the path of the socket with '_' for '/'.
 * Missing directories are created with access for their owner only, because a log contains the secrets of
 * nodes.
 */
#ifndef PWI_HOST_RUN_LOG_H
#define PWI_HOST_RUN_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

#include "base/files.h"
#include "base/log.h"
#include "host/run/problem.h"
#include "manager/ledger/journal.h"

#define PWI_RUN_LOG_NAME "manager.log"
#define PWI_RUN_LOG_NONE "none" /* as the requested directory: keep the log in memory */
#define PWI_RUN_LOG_PATH_MAX 1024

/* A struct of zeros is closed. */
struct pwi_run_log {
  struct pwi_files *files;         /* NULL: the log is in memory */
  struct pwi_journal *journal;     /* for manager/manager.h */
  char path[PWI_RUN_LOG_PATH_MAX]; /* of the log; "": the log is in memory */
};

/* The directory for a manager that listens on `listen` and is reached at `address`. `asked` may be NULL or
 * "". `*in_memory_out`: there is none, and the log is kept in memory. PAWL_TOO_LARGE if the path is too
 * long. */
PAWL_MUST_USE pawl_status pwi_run_log_directory(const char *asked, const char *listen, const char *address,
                                                char directory[PWI_RUN_LOG_PATH_MAX], bool *in_memory_out);

/* Opens the log or creates one. With `anew` an existing log is renamed to manager.log.old, or
 * manager.log.old.1, and so on, and a new one is created. `log` is borrowed until close. Errors as
 * pwi_journal_file_open; `problem` says what to do. */
PAWL_MUST_USE pawl_status pwi_run_log_open(const char *asked, const char *listen, const char *address, bool anew,
                                           const struct pwi_log *log, struct pwi_run_log *run_log_out,
                                           struct pwi_run_problem *problem);

/* Explains why the manager cannot be restored from intact records; `status` as returned by
 * pwi_manager_create. */
void pwi_run_log_problem(const struct pwi_run_log *run_log, pawl_status status, struct pwi_run_problem *problem);

/* Call it after the manager is destroyed. */
void pwi_run_log_close(struct pwi_run_log *run_log);

#endif
