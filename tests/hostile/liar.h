/* A client that lies. It is the real client role, joined to a cluster of the simulator, but for its net: what it sends to servers is
 * taken apart there, given to whoever wrote the test, and put together again, with a checksum that is right.
 */
#ifndef TESTS_HOSTILE_LIAR_H
#define TESTS_HOSTILE_LIAR_H

#include "net/net_ops.h"
#include "protocol/protocol.h"
#include "sim/cluster.h"
#include "wire/message.h"

/* A request as it is about to be sent. */
struct lie {
  struct pwi_message_head head;
  struct pwi_terms terms;
  bool drops_keys, drops_values, drops_filters; /* these sections are left out */
  struct pwi_section section;                   /* one more, if it has a type */
  const void *section_data;
};

struct liar {
  struct pwi_cluster_client client;
  bool (*lie)(struct liar *liar, struct lie *lie); /* false: it goes as it is. NULL: nothing is changed */
  uint64_t told;                                   /* lies so far */

  const struct pwi_net_ops *honest; /* private */
  struct pwi_net_ops ops;
};

/* Adds it to the cluster, and waits until it has joined. Its fields of pwi_cluster_client are set as for
 * pwi_cluster_client_add, but for context and started. One at a time. */
void liar_add(struct pwi_cluster *cluster, struct liar *liar);

/* The same for a client of any other net, such as a session's; inside its gate, or before anybody else uses it. */
void liar_take_net(struct liar *liar, struct pwi_net *net);

#endif
