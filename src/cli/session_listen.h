/* The address on which a session of this command listens, so that other nodes of the cluster can reach it. */
#ifndef PWI_CLI_SESSION_LISTEN_H
#define PWI_CLI_SESSION_LISTEN_H

#include "cli/cli.h"
#include "net/net.h"

#define PWI_SESSION_LISTEN_MAX PWI_NET_ADDRESS_MAX

/* Returns `chosen` if it is not NULL. Otherwise a free port on the address by which this machine reaches the
 * manager at `cluster` (the first of several), or on loopback if `cluster` is NULL. Returns PWI_EXIT_OK, or
 * prints an error. */
int pwi_session_listen(const struct pwi_command *command, const char *cluster, const char *chosen,
                       char listen_out[PWI_SESSION_LISTEN_MAX]);

#endif
