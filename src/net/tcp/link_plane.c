/* The negotiation of a data plane between two nodes, and its events.
 *
 *   1. Both sides send an OFFER over the link.
 *   2. If both have a plane, they meet (meet.c), and each learns the port of the other.
 *   3. Both connect to the port of the other and send a probe.
 *   4. Each side sends WORKS when the probe of the other has arrived.
 *   5. Once the connector has sent and received WORKS, it sends USE, and its link is up.
 *   6. The link of the acceptor is up when USE arrives.
 *
 * The connector decides. If the two do not meet in time, it sends DO_WITHOUT, and the link
 * serves both lanes. Between hosts there is no meeting: if both have an RDMA device and are configured to use
 * it, the offer contains the address of the port, and a connector that could not meet sends FABRIC.
 */
#include <string.h>

#include <openssl/rand.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/tcp/world.h"

/* Fields of a PLANE frame: step u32, flags u32; of an offer also nonce (16 bytes), door (16 bytes), link u64.
 * The upper 24 bits of an offer's flags are a hash of the ends of the connection (owner.c). The body of an
 * offer with a fabric: tag u64, address. */
enum plane_step {
  PLANE_OFFER = 1,
  PLANE_WORKS = 2,
  PLANE_USE = 3,
  PLANE_DO_WITHOUT = 4,
  PLANE_FAILS = 5,
  PLANE_FABRIC = 6
};
#define OFFER_HAS_PLANE 1u
#define OFFER_HAS_FABRIC 2u
#define OFFER_MUST 4u
#define OFFER_ENDS_SHIFT 8
#define PLANE_FIELDS 48
#define FABRIC_HEAD 8

static void send_fields(struct tcp_link *link, const uint8_t fields[PLANE_FIELDS], const struct iovec *body) {
  size_t size = body[0].iov_len + body[1].iov_len;
  pawl_status status = pwi_tcp_queue_frame(link, PWI_FRAME_PLANE, fields, body, 2, size, false, 0);
  if (status != PAWL_OK) pwi_tcp_link_fail(link, status, NULL);
}

static void send_step(struct tcp_link *link, enum plane_step step) {
  uint8_t fields[PLANE_FIELDS] = {0};
  struct iovec nothing[2] = {{0}};
  pwi_put_u32(fields, step);
  send_fields(link, fields, nothing);
}

/* Offering. */

/* On an unencrypted link any user of the machine may be the peer, so no plane is tried unless it is the same
 * user. */
static bool may_offer(const struct tcp_link *link) {
  struct tcp_net *net = link->net;
  return net->plane && !pwi_plane_is_full(net->plane) && (link->tls || pwi_tcp_is_same_user(link->socket));
}

/* An address from another host cannot be verified. Neither a key with limits nor a certificate, whose rights
 * are not known here, suffices. */
static bool may_use_fabric(const struct tcp_link *link) {
  struct tcp_net *net = link->net;
  struct pwi_key_limits limits;
  if (!net->plane || !pwi_plane_has_fabric(net->plane) || !link->tls) return false;
  const char *name = pwi_tls_peer(link->tls);
  if (!net->keys || strncmp(name, "key:", 4) != 0) return false;
  return pwi_keyring_limits(net->keys, name + 4, strlen(name + 4), &limits) && !limits.read_only &&
         !limits.is_operator && !limits.space[0];
}

void pwi_tcp_plane_offer(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  uint8_t fields[PLANE_FIELDS] = {0}, tag[FABRIC_HEAD];
  struct iovec body[2] = {{0}};
  uint32_t flags = pwi_tcp_hash_ends(link) << OFFER_ENDS_SHIFT;
  if (net->plane_wish == PWI_PLANE_MUST) flags |= OFFER_MUST;
  if (RAND_bytes(link->nonce, sizeof link->nonce) != 1 ||
      RAND_bytes((unsigned char *)&link->our_tag, sizeof link->our_tag) != 1)
    pwi_tcp_link_fail(link, PAWL_IO, "no random numbers");
  link->offers_plane = may_offer(link);
  if (link->offers_plane) flags |= OFFER_HAS_PLANE;
  if (link->offers_plane && may_use_fabric(link) && pwi_plane_port_open(net->plane, &link->port) == PAWL_OK) {
    flags |= OFFER_HAS_FABRIC;
    pwi_put_u64(tag, link->our_tag);
    body[0] = (struct iovec){tag, sizeof tag};
    body[1].iov_base = (void *)(uintptr_t)pwi_plane_port_address(link->port, &body[1].iov_len);
  }
  pwi_put_u32(fields, PLANE_OFFER);
  pwi_put_u32(fields + 4, flags);
  memcpy(fields + 8, link->nonce, sizeof link->nonce);
  memcpy(fields + 24, net->door_name, sizeof net->door_name);
  pwi_put_u64(fields + 40, link->id.id);
  send_fields(link, fields, body);
}

/* Deciding. */

static void give_up_plane(struct tcp_link *link) {
  pwi_plane_close(link->plane, PAWL_CANCELLED);
  link->plane = NULL;
  pwi_plane_port_close(link->port);
  link->port = NULL;
  pwi_tcp_meet_end(link);
  link->can &= ~(unsigned)(PWI_LINK_HAS_PLANE | PWI_LINK_IN_PLACE);
}

void pwi_tcp_plane_do_without(struct tcp_link *link) {
  give_up_plane(link);
  if (link->peer_insists) {
    pwi_tcp_link_refuse(link, PAWL_LINK_PLANE, "the peer requires a data plane");
    return;
  }
  send_step(link, PLANE_DO_WITHOUT);
  pwi_tcp_link_come_up(link);
}

void pwi_tcp_plane_fails(struct tcp_link *link) { send_step(link, PLANE_FAILS); }

static pawl_status connect_plane(struct tcp_link *link, struct pwi_plane_route *route) {
  struct pwi_plane_port *port = link->port;
  link->port = NULL;
  route->our_tag = link->our_tag;
  pawl_status status = pwi_plane_connect(port, link, route, &link->plane);
  if (status != PAWL_OK) return status;
  link->can |= PWI_LINK_HAS_PLANE | (route->same_host ? PWI_LINK_IN_PLACE : 0u);
  return pwi_plane_probe(link->plane);
}

/* The two processes have met; the route leads to the peer. */
void pwi_tcp_plane_try(struct tcp_link *link, struct pwi_plane_route *route) {
  if (connect_plane(link, route) == PAWL_OK) return;
  if (link->accepted) {
    give_up_plane(link);
    send_step(link, PLANE_FAILS);
  } else {
    pwi_tcp_plane_do_without(link);
  }
}

static bool try_fabric(struct tcp_link *link) {
  struct pwi_plane_route route = {.process = PWI_NO_PROCESS, .channel = -1};
  if (!link->port || !link->fabric) return false;
  route.address = link->fabric + FABRIC_HEAD;
  route.address_size = link->fabric_size - FABRIC_HEAD;
  route.their_tag = pwi_get_u64(link->fabric);
  return connect_plane(link, &route) == PAWL_OK;
}

static void decide(struct tcp_link *link) {
  if (link->accepted || link->stage != STAGE_PLANE || !link->probed || !link->peer_probed) return;
  send_step(link, PLANE_USE);
  pwi_tcp_link_come_up(link);
}

static void probed(struct tcp_link *link) {
  if (link->stage != STAGE_PLANE || link->probed) return;
  link->probed = true;
  send_step(link, PLANE_WORKS);
  decide(link);
}

/* The connector connects to the door of the acceptor, which waits for it. */
static void begin_plane(struct tcp_link *link) {
  link->stage = STAGE_PLANE;
  link->plane_deadline = pwi_tcp_now() + PWI_PLANE_PATIENCE;
  if (link->accepted) {
    pwi_tcp_meet_wait(link);
  } else if (pwi_tcp_meet_begin(link, link->fields + 24, pwi_get_u64(link->fields + 40)) != PAWL_OK) {
    if (try_fabric(link))
      send_step(link, PLANE_FABRIC);
    else
      pwi_tcp_plane_do_without(link);
  }
}

static void got_offer(struct tcp_link *link) {
  uint32_t flags = pwi_get_u32(link->fields + 4), ends = pwi_tcp_hash_ends(link);
  if (ends != 0 && flags >> OFFER_ENDS_SHIFT == ends) link->can |= PWI_LINK_LOCAL;
  memcpy(link->their_nonce, link->fields + 8, sizeof link->their_nonce);
  link->peer_insists = (flags & OFFER_MUST) != 0;
  if ((flags & OFFER_HAS_FABRIC) && link->port && link->frame.body_size > FABRIC_HEAD) {
    link->fabric = link->small;
    link->fabric_size = (size_t)link->frame.body_size;
    link->small = NULL;
  }
  if (link->offers_plane && (flags & OFFER_HAS_PLANE))
    begin_plane(link);
  else if (flags & OFFER_MUST)
    pwi_tcp_link_refuse(link, PAWL_LINK_PLANE, "the peer requires a data plane");
  else
    pwi_tcp_link_come_up(link);
}

/* Handles the decisions of the connector, which only an acceptor that tries a plane receives. False if this
 * is out of turn. */
static bool is_told(struct tcp_link *link, uint32_t step) {
  if (step == PLANE_USE && link->plane) {
    pwi_tcp_link_come_up(link);
  } else if (step == PLANE_DO_WITHOUT) {
    give_up_plane(link);
    pwi_tcp_link_come_up(link);
  } else if (step == PLANE_FABRIC && !link->plane && !link->has_met) {
    if (!try_fabric(link)) send_step(link, PLANE_FAILS);
  } else {
    return false;
  }
  return true;
}

void pwi_tcp_link_offered(struct tcp_link *link) {
  uint32_t step = pwi_get_u32(link->fields);
  if (link->stage == STAGE_OFFER && step == PLANE_OFFER) {
    got_offer(link);
  } else if (link->stage == STAGE_PLANE && step == PLANE_WORKS) {
    link->peer_probed = true;
    decide(link);
  } else if (link->stage == STAGE_PLANE && !link->accepted && step == PLANE_FAILS) {
    pwi_tcp_plane_do_without(link); /* the plane will not come up */
  } else if ((step == PLANE_WORKS || step == PLANE_FAILS) && link->stage == STAGE_UP) {
    return; /* crossed the decision to do without */
  } else if (link->stage != STAGE_PLANE || !link->accepted || !is_told(link, step)) {
    pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, "unexpected PLANE frame");
  }
}

/* Events of the data plane. */

static void plane_probed(void *owner) { probed(owner); }

static bool plane_begin(void *owner, const uint8_t *head, size_t body_size, bool ready,
                        struct pwi_plane_wish *wish_out) {
  struct tcp_link *link = owner;
  /* In STAGE_PLANE the peer is already up, and its USE has not arrived yet. */
  if (link->stage == STAGE_PLANE || pwi_tcp_is_holding(link)) {
    link->plane_blocked = true;
    return false;
  }
  *wish_out = (struct pwi_plane_wish){.is_dropped = true};
  link->net->moved = true;
  link->plane_wanted = link->stage == STAGE_UP && !link->is_failed;
  if (body_size > link->net->base.limits.message_max) {
    pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, "message too large");
    link->plane_wanted = false;
  }
  if (!link->plane_wanted) return true;
  struct pwi_message message = {.head = head, .body_size = body_size, .lane = PWI_LANE_DATA, .ready = ready};
  pawl_status why;
  if (!pwi_incoming_begin(&link->plane_incoming, &link->net->base, link->id, &message, &why)) {
    pwi_tcp_link_refuse(link, why, "message refused");
    link->plane_wanted = false;
    return true;
  }
  const struct pwi_places *places = pwi_incoming_places(&link->plane_incoming);
  link->plane_ready = ready && link->plane_incoming.plan.how == PWI_RECEIVE_PIECES;
  wish_out->is_dropped = link->plane_incoming.plan.how == PWI_RECEIVE_DROP;
  wish_out->has_places = places != NULL;
  if (places) wish_out->places = *places;
  return true;
}

/* A ready message continues even if the link has failed because of an action of the actor. */
static bool is_plane_wanted(const struct tcp_link *link) {
  return link->plane_wanted && link->stage == STAGE_UP && (!link->is_failed || link->plane_ready);
}

static void plane_piece(void *owner, const void *data, size_t size) {
  struct tcp_link *link = owner;
  link->net->moved = true;
  if (is_plane_wanted(link)) pwi_incoming_piece(&link->plane_incoming, &link->net->base, link->id, data, size);
}

static void plane_end(void *owner) {
  struct tcp_link *link = owner;
  link->net->moved = true; /* a message that took several turns may end in a round without other events */
  link->plane_received++;
  if (is_plane_wanted(link)) pwi_incoming_end(&link->plane_incoming, &link->net->base, link->id, PAWL_OK);
  pwi_tcp_link_check_bye(link);
}

static void plane_done(void *owner, uint64_t cookie, pawl_status status, size_t bytes) {
  struct tcp_link *link = owner;
  link->plane_operations--;
  link->plane_bytes -= bytes;
  link->net->moved = true;
  if (cookie) pwi_tcp_end_operation(link, cookie, status);
  if (link->data_was_full || link->stage == STAGE_CLOSING) pwi_tcp_mark_dirty(link);
}

static void plane_notified(void *owner, uint64_t value) {
  struct tcp_link *link = owner;
  struct pwi_net *base = &link->net->base;
  link->net->moved = true;
  link->plane_received++;
  if (value != 0 && link->stage == STAGE_UP && !link->is_failed && base->actor->notified)
    base->actor->notified(base->self, link->id, value);
  pwi_tcp_link_check_bye(link);
}

static void plane_taken(void *owner) { pwi_tcp_mark_dirty(owner); }

static void plane_failed(void *owner, const char *why) {
  struct tcp_link *link = owner;
  if (link->stage != STAGE_PLANE)
    pwi_tcp_link_hung_up(link, PAWL_LINK_PLANE, why); /* also the sign that the peer has closed */
  else if (link->accepted)
    pwi_tcp_plane_fails(link);
  else
    link->plane_deadline = 0;
}

const struct pwi_plane_events pwi_tcp_link_plane_events = {
    .probed = plane_probed,
    .begin = plane_begin,
    .piece = plane_piece,
    .end = plane_end,
    .done = plane_done,
    .notified = plane_notified,
    .taken = plane_taken,
    .failed = plane_failed,
};
