/* Where the roles of a process listen, and under which name others reach them. */
#ifndef PWI_HOST_RUN_ADDRESS_H
#define PWI_HOST_RUN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/address.h"

/* Where shard number `shard` of a process listens whose first one listens at `address`:
 *   host:first-last   the same, each shard takes the first port that is still free
 *   host:0            the same
 *   host:port         the first at the port itself, the others at the next ones that are free behind it
 *   unix:/path        /path, /path.1, /path.2, …
 * `text_out` has room for PWI_NET_ADDRESS_MAX. PAWL_INVALID if the address cannot be read, or has no port behind it. */
PAWL_MUST_USE pawl_status pwi_run_shard_address(const char *address, uint32_t shard, char *text_out);

/* True for an address of all interfaces, which nobody can be told to connect to. */
bool pwi_run_is_wildcard(const char *address);

/* How this machine reaches `peer`: the address of its own that packets to it carry, as text, IPv6 in brackets. Nothing is
 * sent; a host name is looked up, which may block. A unix socket is reached by loopback. `host_out` has room for
 * PWI_NET_ADDRESS_MAX. PAWL_INVALID, PAWL_LINK_RESOLVE, PAWL_LINK_UNREACHABLE. */
PAWL_MUST_USE pawl_status pwi_run_route(const char *peer, char *host_out, bool *is_loopback_out);

#endif
