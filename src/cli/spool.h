/* Data that comes by a pipe: `-`, which is standard input, FIFOs, and whatever else is no file. Data is read in pieces, by several processes and
 * more than once, so that it is copied to a temporary file first, in TMPDIR or /tmp.
 *
 * The files go with pwi_spool_fini, at exit, and with a signal that ends the process; kill -9 leaves them behind. Single-threaded.
 */
#ifndef PWI_CLI_SPOOL_H
#define PWI_CLI_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

struct pwi_spool {
  const char **paths; /* as they were given, but for what was copied */
  size_t count;
};

/* Copies what has to be. `quiet`: does not say so. False: it has said why, return `*exit_out`. `paths` must outlive it. */
bool pwi_spool_init(struct pwi_spool *spool, const struct pwi_command *command, const char *const *paths, size_t count,
                    bool quiet, int *exit_out);
void pwi_spool_fini(struct pwi_spool *spool); /* a struct of zeros is fine */

/* Removes all copies that there are: for whoever is about to call _exit. Async-signal-safe. */
void pwi_spool_remove(void);

#endif
