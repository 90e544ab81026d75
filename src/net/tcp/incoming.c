#include "net/tcp/incoming.h"

#include <assert.h>

#include "base/memory.h"

#define KEEP_MAX ((size_t)1 << 20)  /* a collecting buffer larger than this is not kept */
#define KEEP_ALL ((size_t)16 << 20) /* limit for the collecting buffers of a net in total */

static void free_whole(struct pwi_incoming *incoming, struct pwi_net *net) {
  pwi_free(incoming->whole);
  net->kept -= incoming->kept;
  incoming->whole = NULL;
  incoming->whole_capacity = incoming->kept = 0;
}

void pwi_incoming_fini(struct pwi_incoming *incoming, struct pwi_net *net) { free_whole(incoming, net); }

/* Also allocated for an empty body: its piece must not be a null pointer, which memcpy does not accept. */
static bool make_room(struct pwi_incoming *incoming, struct pwi_net *net) {
  if (incoming->whole && incoming->body_size <= incoming->whole_capacity) return true;
  free_whole(incoming, net);
  incoming->whole = pwi_alloc(incoming->body_size);
  incoming->whole_capacity = incoming->whole ? incoming->body_size : 0;
  return incoming->whole != NULL;
}

/* Returns false if there is no memory. */
static bool choose_places(struct pwi_incoming *incoming, struct pwi_net *net) {
  const struct pwi_receive *plan = &incoming->plan;
  switch (plan->how) {
  case PWI_RECEIVE_WHOLE:
    if (!make_room(incoming, net)) return false;
    incoming->places = pwi_places_one(incoming->whole, incoming->body_size);
    break;
  case PWI_RECEIVE_INTO:
    incoming->places = pwi_places_one(plan->into, incoming->body_size);
    break;
  case PWI_RECEIVE_SPLIT:
    incoming->places = pwi_places_two(plan->into, plan->prefix, plan->rest, incoming->body_size);
    break;
  case PWI_RECEIVE_PIECES:
  case PWI_RECEIVE_DROP:
  case PWI_RECEIVE_REFUSE:
    break;
  }
  return true;
}

bool pwi_incoming_begin(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link,
                        const struct pwi_message *message, pawl_status *why_out) {
  assert(!incoming->active);
  incoming->plan = net->actor->message ? net->actor->message(net->self, link, message)
                                       : (struct pwi_receive){.how = PWI_RECEIVE_DROP};
  incoming->active = true;
  incoming->lane = message->lane;
  incoming->body_size = message->body_size;
  incoming->offset = 0;
  if (incoming->plan.how == PWI_RECEIVE_REFUSE) {
    *why_out = PAWL_LINK_PROTOCOL;
    return false;
  }
  if (!choose_places(incoming, net)) {
    *why_out = PAWL_NO_MEMORY;
    return false;
  }
  return true;
}

struct pwi_places *pwi_incoming_places(struct pwi_incoming *incoming) {
  switch (incoming->plan.how) {
  case PWI_RECEIVE_WHOLE:
  case PWI_RECEIVE_INTO:
  case PWI_RECEIVE_SPLIT:
    return &incoming->places;
  case PWI_RECEIVE_PIECES:
  case PWI_RECEIVE_DROP:
  case PWI_RECEIVE_REFUSE:
    break;
  }
  return NULL;
}

void pwi_incoming_piece(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link, const void *data,
                        size_t size) {
  size_t offset = incoming->offset;
  incoming->offset += size;
  if (incoming->plan.how == PWI_RECEIVE_PIECES && size > 0 && net->actor->piece)
    net->actor->piece(net->self, link, incoming->plan.context, offset, data, size);
}

void pwi_incoming_end(struct pwi_incoming *incoming, struct pwi_net *net, struct pwi_link link, pawl_status status) {
  if (!incoming->active) return;
  incoming->active = false;
  if (status == PAWL_OK) {
    net->counts.messages_received++;
    net->counts.bytes_received += PWI_NET_HEAD_SIZE + incoming->body_size;
  }
  if (incoming->plan.how == PWI_RECEIVE_WHOLE && status == PAWL_OK && net->actor->piece)
    net->actor->piece(net->self, link, incoming->plan.context, 0, incoming->whole, incoming->body_size);
  if (net->actor->message_end) net->actor->message_end(net->self, link, incoming->plan.context, status);
  if (incoming->kept > 0) return;
  if (incoming->whole_capacity > KEEP_MAX || net->kept + incoming->whole_capacity > KEEP_ALL) {
    free_whole(incoming, net);
  } else {
    incoming->kept = incoming->whole_capacity;
    net->kept += incoming->kept;
  }
}
