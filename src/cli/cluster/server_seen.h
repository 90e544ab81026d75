/* One server as the manager sees it: what the commands that are about one server ask `pawl status` for. */
#ifndef PWI_CLI_CLUSTER_SERVER_SEEN_H
#define PWI_CLI_CLUSTER_SERVER_SEEN_H

#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "net/net.h"

struct pawl_session;

struct pwi_server_seen {
  long long process, node; /* of the shard that was named; 0: there is none */
  size_t shards, down, draining;
  size_t arcs;      /* that it is in the chain of */
  size_t alone;     /* of these, arcs of which nobody else has everything */
  double alone_sum; /* the part of the ring that these are, between 0 and 1 */
  size_t moves;     /* under way from it */
  size_t others;    /* shards of other servers that are up */
  char address[PWI_NET_ADDRESS_MAX];
};

/* Looks for the server that `wanted`, a node's number or an address, is a shard of; when it is looked at again, for the same
 * process, whose shards may go one by one. PWI_EXIT_OK, also if there is none, or it has said what is wrong. */
int pwi_server_look(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                    const char *wanted, struct pwi_server_seen *seen);

#endif
