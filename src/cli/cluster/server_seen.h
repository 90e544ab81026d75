/* One server in the manager's status, for the commands that deal with one server. */
#ifndef PWI_CLI_CLUSTER_SERVER_SEEN_H
#define PWI_CLI_CLUSTER_SERVER_SEEN_H

#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "net/net.h"

struct pawl_session;

struct pwi_server_seen {
  long long process, node; /* of the shard that was named; 0: not found */
  size_t shards, down, draining;
  size_t away;      /* number of its shards that are down or have no link to the manager */
  size_t arcs;      /* number of arcs whose chain it is in */
  size_t alone;     /* number of these arcs of which no other server has a full copy */
  double alone_sum; /* share of the ring of these arcs, from 0 to 1 */
  size_t moves;     /* number of moves in progress from it */
  size_t others;    /* number of shards of other servers that are up */
  char address[PWI_NET_ADDRESS_MAX];
};

/* Finds the server with a shard named by `wanted`, the number of a node or an address. A later call looks for
 * the same process, whose shards may leave one by one. Returns PWI_EXIT_OK, even if the server is not found,
 * or prints an error. */
int pwi_server_look(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                    const char *wanted, struct pwi_server_seen *seen);

#endif
