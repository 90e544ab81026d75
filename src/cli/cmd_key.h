/* Commands of `pawl key` that have a file of their own. */
#ifndef PWI_CLI_CMD_KEY_H
#define PWI_CLI_CMD_KEY_H

#include "cli/cli.h"

extern const struct pwi_command pwi_command_key_token;

#endif
