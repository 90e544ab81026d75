/* Waiting until every key of a cluster has a server, for commands that are of no use before. */
#ifndef PWI_CLI_CLUSTER_CLUSTER_WHOLE_H
#define PWI_CLI_CLUSTER_CLUSTER_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

struct pawl_session;

/* Waits until the head of every arc is up and has a link to the manager. With `lose_data` servers that are down and have the
 * only copy of something are given up, as `pawl server forget --lose-data` does it, as soon as there are others; which ones is
 * said on standard error. PWI_EXIT_OK, or it has said what is missing. */
int pwi_cluster_await(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                      bool lose_data);

/* Gives up all servers that are down and have the only copy of something, and waits until every key has a server again. How many
 * shards that were is in `*count_out`. PWI_EXIT_OK, or it has said what is missing. */
int pwi_cluster_give_up(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                        size_t *count_out);

#endif
