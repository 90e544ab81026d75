/* Waits until every key of a cluster has a server, for commands that cannot work earlier. */
#ifndef PWI_CLI_CLUSTER_CLUSTER_WHOLE_H
#define PWI_CLI_CLUSTER_CLUSTER_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

struct pawl_session;

/* Waits until the head of every arc is up and has a link to the manager. With `lose_data`, gives up servers
 * that are down and have the only copy of some keys, like `pawl server forget --lose-data`, as soon as
 * another server is up, and names them on standard error. Returns PWI_EXIT_OK, or prints an error. */
int pwi_cluster_await(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                      bool lose_data);

/* Gives up all servers that are down and have the only copy of some keys, and waits until every key has a
 * server again. `*count_out` is the number of their shards. Returns PWI_EXIT_OK, or prints an error. */
int pwi_cluster_give_up(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                        size_t *count_out);

#endif
