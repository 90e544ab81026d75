/* The real world: sockets, TLS, and a data plane where a pair has one. See net.h for what it does.
 *
 * Security. With keys or a certificate every tcp link is TLS 1.3. Without either, links are plain and tcp can only be
 * listened at on loopback addresses. Unix sockets are plain and accept only processes of the same user, or root. On one
 * host a data plane is for processes of the same user only, and the kernel must say so (meet.c), because a plane trusts
 * what its peer says.
 */
#ifndef PWI_NET_TCP_TCP_H
#define PWI_NET_TCP_TCP_H

#include <stdbool.h>

#include "net/key.h"
#include "net/net.h"

enum pwi_tcp_plane {
  PWI_PLANE_AUTO, /* use UCX with peers that can */
  PWI_PLANE_OFF,  /* never */
  PWI_PLANE_MUST, /* a pair without a data plane goes down with PAWL_LINK_PLANE */
};

struct pwi_tcp_config {
  struct pwi_net_limits limits;
  const char *name;               /* the node's name in the log; copied */
  const struct pwi_keyring *keys; /* NULL: no keys; borrowed as long as the net lives */
  const char *certificate;        /* PEM files, instead of keys: our chain, */
  const char *private_key;        /* its key, */
  const char *authority;          /* and who must have signed the peer's; all three or none */
  bool require_encryption;        /* then there is no data plane, and unix sockets are refused */
  enum pwi_tcp_plane plane;
  bool rdma; /* the data plane may also lead to other hosts, to peers with a key without limits: they are trusted
                with this process */
  const char *advertise; /* the host, or host:port, that others reach us at; NULL: as listened; copied */
};

void pwi_tcp_config_init(struct pwi_tcp_config *config);

/* Make a net. The actor struct is borrowed as long as the net lives. PAWL_NO_MEMORY, PAWL_NODE_LIMIT, PAWL_INVALID for
 * a configuration that contradicts itself, PAWL_LINK_KEY for certificates that cannot be used, PAWL_UNSUPPORTED for
 * PWI_PLANE_MUST without UCX. */
pawl_status pwi_tcp_create(const struct pwi_tcp_config *config, const struct pwi_actor *actor, void *self,
                           struct pwi_net **net_out);

/* Why there is or is not a data plane on this machine, for `pawl env`. A static string; `*available_out` may be NULL.
 */
const char *pwi_tcp_plane_about(bool *available_out);

#endif
