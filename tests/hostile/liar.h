/* A client that lies. It is the real client role, joined to a cluster of the simulator, with another net. The
 * net decodes each request to a server, passes it to the test, and encodes it again with a valid checksum. */
#ifndef TESTS_HOSTILE_LIAR_H
#define TESTS_HOSTILE_LIAR_H

#include "net/net_ops.h"
#include "protocol/protocol.h"
#include "sim/cluster.h"
#include "wire/message.h"

/* A request before it is sent. */
struct lie {
  struct pwi_message_head head;
  struct pwi_terms terms;
  bool drops_keys, drops_values, drops_filters; /* omit these sections */
  struct pwi_section section;                   /* an additional section, if its type is not 0 */
  const void *section_data;
};

struct liar {
  struct pwi_cluster_client client;
  bool (*lie)(struct liar *liar, struct lie *lie); /* may change the request; returns false to send it
                                                      unchanged. NULL: all are sent unchanged */
  uint64_t told;                                   /* number of lies so far */

  const struct pwi_net_ops *honest; /* private */
  struct pwi_net_ops ops;
};

/* Adds the client to the cluster and waits until it has joined. Set its fields of pwi_cluster_client as for
 * pwi_cluster_client_add, except context and started. Only one liar may exist at a time. */
void liar_add(struct pwi_cluster *cluster, struct liar *liar);

/* The same for a client of any other net, such as a session's. Call it inside the session's gate, or before
 * any other use. */
void liar_take_net(struct liar *liar, struct pwi_net *net);

/* Lies about a push or pull of BOAST keys: all keys of a long range, or a list that was never sent; and no
 * values. */
#define BOAST (UINT64_C(1) << 38)
bool liar_boast_of_range(struct liar *self, struct lie *lie);
bool liar_boast_of_signature(struct liar *self, struct lie *lie);

#endif
