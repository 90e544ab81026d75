/* Data from pipes: standard input (`-`), FIFOs and other paths that are not regular files. Data is read in
 * pieces, by several processes and more than once, so a pipe is first copied to a temporary file in TMPDIR or
 * /tmp.
 *
 * The copies are removed by pwi_spool_fini, at exit, and by signals that end the process; kill -9 leaves them
 * behind. Single-threaded.
 */
#ifndef PWI_CLI_SPOOL_H
#define PWI_CLI_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

struct pwi_spool {
  const char **paths; /* the given paths; copied ones are replaced by their copies */
  size_t count;
};

/* Copies the pipes among `paths`, which must outlive the spool. `quiet`: prints no message. If it returns
 * false, it has printed an error; return `*exit_out`. */
bool pwi_spool_init(struct pwi_spool *spool, const struct pwi_command *command, const char *const *paths, size_t count,
                    bool quiet, int *exit_out);
void pwi_spool_fini(struct pwi_spool *spool); /* a struct of zeros is fine */

/* Removes all copies, before a call of _exit. Async-signal-safe. */
void pwi_spool_remove(void);

#endif
