/* The addresses on which the roles of a process listen, and under which others reach them. */
#ifndef PWI_HOST_RUN_ADDRESS_H
#define PWI_HOST_RUN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/address.h"

/* The address on which shard number `shard` of a process listens, given the `address` of the first:
 *   host:first-last   the same; each shard takes the first free port
 *   host:0            the same
 *   host:port         the first shard at this port, the others at the next free ones behind it
 *   unix:/path        /path, /path.1, /path.2, …
 * `text_out` has PWI_NET_ADDRESS_MAX bytes. PAWL_INVALID if the address is malformed, or no port is left
 * behind it. */
PAWL_MUST_USE pawl_status pwi_run_shard_address(const char *address, uint32_t shard, char *text_out);

/* Whether the address means all interfaces, to which no peer can connect. */
bool pwi_run_is_wildcard(const char *address);

/* The local address from which this machine reaches `peer`, as text, IPv6 in brackets. Nothing is sent; a
 * host name is looked up, which may block. A unix socket is reached over loopback. `host_out` has
 * PWI_NET_ADDRESS_MAX bytes. PAWL_INVALID, PAWL_LINK_RESOLVE, PAWL_LINK_UNREACHABLE. */
PAWL_MUST_USE pawl_status pwi_run_route(const char *peer, char *host_out, bool *is_loopback_out);

#endif
