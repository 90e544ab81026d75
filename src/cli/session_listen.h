/* Where a session of this command listens, so that other nodes of its cluster reach it. */
#ifndef PWI_CLI_SESSION_LISTEN_H
#define PWI_CLI_SESSION_LISTEN_H

#include "cli/cli.h"
#include "net/net.h"

#define PWI_SESSION_LISTEN_MAX PWI_NET_ADDRESS_MAX

/* `chosen` if it is not NULL; else a free port of the address by which this machine reaches the manager at `cluster`, the first of
 * them if there are several; loopback if `cluster` is NULL. PWI_EXIT_OK, or it has said why not. */
int pwi_session_listen(const struct pwi_command *command, const char *cluster, const char *chosen,
                       char listen_out[PWI_SESSION_LISTEN_MAX]);

#endif
