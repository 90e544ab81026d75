/* The delivery of one message to the actor: ensures the guarantees of net.h about pieces on both lanes. */
#ifndef PWI_NET_TCP_INCOMING_H
#define PWI_NET_TCP_INCOMING_H

#include "net/net_ops.h"
#include "net/places.h"

struct pwi_incoming {
  bool active;
  enum pwi_lane lane;
  struct pwi_receive plan;
  size_t body_size;
  size_t offset;            /* bytes delivered in pieces */
  struct pwi_places places; /* destination of the rest, if it is not delivered in pieces */
  char *whole;              /* PWI_RECEIVE_WHOLE: collects a body that arrives in parts; kept for the next
                               message */
  size_t whole_capacity;
  size_t kept; /* bytes of it that are counted in the total of the net */
};

void pwi_incoming_fini(struct pwi_incoming *incoming, struct pwi_net *net);

/* Announces a message to the actor when its head has arrived. False if the actor refuses the message, or if
 * there is no memory to collect it: the caller takes the link down with `*why_out`, which ends the
 * message. */
bool pwi_incoming_begin(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link,
                        const struct pwi_message *message, pawl_status *why_out);

/* The destination of the rest of the body; NULL if it is delivered in pieces or dropped. */
struct pwi_places *pwi_incoming_places(struct pwi_incoming *incoming);

/* Delivers bytes of a message that is received in pieces. */
void pwi_incoming_piece(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link, const void *data,
                        size_t size);

/* Ends the message: the body is complete, or the link failed. */
void pwi_incoming_end(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link, pawl_status status);

#endif
