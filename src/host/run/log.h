/* Where a manager of this machine keeps its log: which directory, opening it, and what to say if that does not work.
 *
 * The log is DIRECTORY/manager.log. The directory is
 *   - what is asked for;
 *   - else, for an address whose port was left to the system, none: nobody would find the manager there again;
 *   - else $XDG_STATE_HOME/pawl/NAME, or $HOME/.local/state/pawl/NAME, or pawl-data/NAME below the working directory, where
 *     NAME is the port, or the path of the socket with '_' for '/'.
 * Directories that are missing are made, for their owner alone: a log holds the secrets by which nodes are known.
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
#define PWI_RUN_LOG_NONE "none" /* asked for: keep it in memory */
#define PWI_RUN_LOG_PATH_MAX 1024

/* A struct of zeros is one that is closed. */
struct pwi_run_log {
  struct pwi_files *files;         /* NULL: in memory */
  struct pwi_journal *journal;     /* for manager/manager.h */
  char path[PWI_RUN_LOG_PATH_MAX]; /* of the log; "": in memory */
};

/* The directory for a manager that listens where `listen` says and is reached at `address`. `asked` may be NULL or "".
 * False: in memory. PAWL_TOO_LARGE if the path is. */
PAWL_MUST_USE pawl_status pwi_run_log_directory(const char *asked, const char *listen, const char *address,
                                                char directory[PWI_RUN_LOG_PATH_MAX], bool *in_memory_out);

/* Opens it, or begins one: with `anew` also if there is one, which then gets the name manager.log.old, or manager.log.old.1,
 * and so on. `log` is borrowed until it is closed. Errors as pwi_journal_file_open; `problem` says what to do. */
PAWL_MUST_USE pawl_status pwi_run_log_open(const char *asked, const char *listen, const char *address, bool anew,
                                           const struct pwi_log *log, struct pwi_run_log *run_log_out,
                                           struct pwi_run_problem *problem);

/* The records in it are sound, and yet no ledger can be made of them: as pwi_manager_create says. */
void pwi_run_log_problem(const struct pwi_run_log *run_log, pawl_status status, struct pwi_run_problem *problem);

/* After the manager is destroyed. */
void pwi_run_log_close(struct pwi_run_log *run_log);

#endif
