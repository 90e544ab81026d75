/* One message on its way to the actor: keeps the promises of net.h about pieces, whatever the lane. */
#ifndef PWI_NET_TCP_INCOMING_H
#define PWI_NET_TCP_INCOMING_H

#include "net/net_ops.h"
#include "net/places.h"

struct pwi_incoming {
  bool active;
  enum pwi_lane lane;
  struct pwi_receive plan;
  size_t body_size;
  size_t offset;            /* bytes that were handed on in pieces */
  struct pwi_places places; /* where the rest goes that is not wanted in pieces */
  char *whole;              /* PWI_RECEIVE_WHOLE: gathers the body if it comes in parts; kept for the next */
  size_t whole_capacity;
  size_t kept; /* of it, counted in what the net keeps */
};

void pwi_incoming_fini(struct pwi_incoming *incoming, struct pwi_net *net);

/* A head has come: ask the actor. False if it refused the message, or if there is no memory to gather it: the caller
 * takes the link down with `*why_out`, which ends the message. */
bool pwi_incoming_begin(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link,
                        const struct pwi_message *message, pawl_status *why_out);

/* Where the rest of the body is to be written, or NULL if it is wanted in pieces (or not at all). */
struct pwi_places *pwi_incoming_places(struct pwi_incoming *incoming);

/* Bytes for a message that is wanted in pieces. */
void pwi_incoming_piece(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link, const void *data,
                        size_t size);

/* The body is complete, or will never be. */
void pwi_incoming_end(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link, pawl_status status);

#endif
