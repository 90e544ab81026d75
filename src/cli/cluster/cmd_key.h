/* Options shared by the commands of `pawl key`. */
#ifndef PWI_CLI_CLUSTER_CMD_KEY_H
#define PWI_CLI_CLUSTER_CMD_KEY_H

#include <stdbool.h>

#include "cli/cli.h"
#include "net/key.h"

enum {
  PWI_KEY_LETTER_FORCE = 257,
  PWI_KEY_LETTER_FIRST,
  PWI_KEY_LETTER_READ_ONLY,
  PWI_KEY_LETTER_OPERATOR,
  PWI_KEY_LETTER_SPACE,
  PWI_KEY_LETTER_MEMORY,
  PWI_KEY_LETTER_RATE,
  PWI_KEY_LETTER_CONNECTIONS,
  PWI_KEY_LETTER_PRIORITY,
};

#define PWI_KEY_LIMIT_OPTIONS                                                                                          \
  {PWI_KEY_LETTER_READ_ONLY, "read-only", NULL, "allow reading only"},                                                 \
      {PWI_KEY_LETTER_OPERATOR, "operator", NULL, "allow operating the cluster, but not reading or writing values"},   \
      {PWI_KEY_LETTER_SPACE, "space", "NAME", "allow only the vectors NAME/..."},                                      \
      {PWI_KEY_LETTER_MEMORY, "memory", "SIZE", "limit the memory of the space's tables on each server, e.g. 4G"},     \
      {PWI_KEY_LETTER_RATE, "rate", "SIZE", "limit the bytes per second on each shard, e.g. 100M"},                    \
      {PWI_KEY_LETTER_CONNECTIONS, "connections", "N", "limit the links to the manager and to each shard"}, {          \
    PWI_KEY_LETTER_PRIORITY, "priority", "N", "limit the priority of requests, from 1 to 9"                            \
  }

/* Handles an option that pwi_cli_next returned. If it returns false, the option is an invalid limit; return
 * `*exit_out`. */
bool pwi_key_limit_option(const struct pwi_command *command, int letter, const char *value,
                          struct pwi_key_limits *limits, int *exit_out);

/* After the last option: checks that the limits are compatible. */
bool pwi_key_limits_settle(const struct pwi_command *command, const struct pwi_key_limits *limits, int *exit_out);

extern const struct pwi_command pwi_command_key_add;
extern const struct pwi_command pwi_command_key_revoke;
extern const struct pwi_command pwi_command_key_token;

#endif
