/* Files that a command writes must not be files that it reads. */
#ifndef PWI_CLI_APART_H
#define PWI_CLI_APART_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

/* Whether both names are of one regular file, by links too; equal names of a file that is not there yet are. */
bool pwi_cli_is_same_file(const char *one, const char *other);

/* Returns PWI_EXIT_OK, or complains that `what` would replace one of the files that are read, whose names may be NULL.
 * `written` NULL: nothing is written. */
int pwi_cli_apart(const struct pwi_command *command, const char *what, const char *written, const char *const *read,
                  size_t count);

#endif
