/* The real world: sockets, TLS, and a data plane for pairs of nodes that have one. See net.h for the
 * contract.
 *
 * Security. With keys or a certificate every tcp link uses TLS 1.3. Without either, links are plain and a net
 * can listen only at loopback addresses. Unix sockets are plain and accept only processes of the same user or
 * root. On one host a data plane is only for processes of the same user, as confirmed by the kernel (meet.c),
 * because a plane trusts its peer.
 */
#ifndef PWI_NET_TCP_TCP_H
#define PWI_NET_TCP_TCP_H

#include <stdbool.h>

#include "net/key.h"
#include "net/net.h"

#define PWI_DSCP_MAX 63

enum pwi_tcp_plane {
  PWI_PLANE_AUTO, /* use UCX with peers that support it */
  PWI_PLANE_OFF,  /* never */
  PWI_PLANE_MUST, /* a pair without a data plane goes down with PAWL_LINK_PLANE */
};

struct pwi_tcp_config {
  struct pwi_net_limits limits;
  const char *name;               /* name of the node in the log; copied */
  const struct pwi_keyring *keys; /* NULL: no keys; must remain valid as long as the net */
  const char *certificate;        /* instead of keys: PEM file with the certificate chain */
  const char *private_key;        /* PEM file with the private key of the certificate */
  const char *authority;          /* PEM file with the authority that must have signed the peer's certificate;
                                     all three or none */
  bool require_encryption;        /* no data plane, and no unix sockets */
  enum pwi_tcp_plane plane;
  bool rdma;             /* use a data plane to other hosts too, for peers with a key without limits: these
                            are fully trusted */
  unsigned dscp;         /* mark of packets for routers (DSCP), up to 63; 0: the mark of the system */
  const char *advertise; /* host or host:port at which others reach this node; NULL: the listening address;
                            copied */
};

void pwi_tcp_config_init(struct pwi_tcp_config *config);

/* Creates a net. The actor struct must remain valid as long as the net. PAWL_NO_MEMORY, PAWL_NODE_LIMIT,
 * PAWL_INVALID for an inconsistent configuration, PAWL_LINK_KEY for unusable certificates, PAWL_UNSUPPORTED
 * for PWI_PLANE_MUST without UCX. */
pawl_status pwi_tcp_create(const struct pwi_tcp_config *config, const struct pwi_actor *actor, void *self,
                           struct pwi_net **net_out);

/* Describes the data plane of this machine, or the reason why there is none, for `pawl env`. The string is
 * static; `available_out` may be NULL.
 */
const char *pwi_tcp_plane_about(bool *available_out);

#endif
