/* Receiving messages.
 *
 * Packets of a peer are processed strictly in order. A packet that cannot be processed now (the owner is not
 * up yet, a part is still being fetched, or the turn of the peer is over) waits in the queue of the peer.
 */
#include <string.h>
#include <sys/uio.h>

#include "base/checked.h"
#include "base/memory.h"
#include "net/ucx/ucx_internal.h"

/* Handing a body to the owner in aligned pieces of whole steps. */

static bool is_aligned(const void *data) { return (uintptr_t)data % PWI_NET_PIECE_ALIGN == 0; }

static void hand_on(struct pwi_plane_peer *peer, const void *data, size_t size) {
  if (size > 0) peer->plane->events->piece(peer->owner, data, size);
}

static bool has_bounce(struct pwi_plane_peer *peer) {
  if (!peer->bounce) peer->bounce = pwi_alloc(CHUNK + PWI_NET_PIECE_STEP);
  if (!peer->bounce) pwi_ucx_fail(peer, "no memory to receive");
  return peer->bounce != NULL;
}

/* `size` more bytes are in the bounce buffer: delivers whole steps, or everything at the end of the body. */
static void bounce_grew(struct pwi_plane_peer *peer, size_t size, bool is_last) {
  peer->bounced += size;
  size_t ready = is_last ? peer->bounced : peer->bounced - peer->bounced % PWI_NET_PIECE_STEP;
  hand_on(peer, peer->bounce, ready);
  memmove(peer->bounce, peer->bounce + ready, peer->bounced - ready);
  peer->bounced -= ready;
}

/* Processes bytes of the body at any address. */
static void feed(struct pwi_plane_peer *peer, const char *data, size_t size) {
  bool ends = peer->handed + size == peer->large.size;
  peer->handed += size;
  if (peer->has_places) {
    pwi_places_write(&peer->places, data, size);
    return;
  }
  if (peer->bounced == 0 && is_aligned(data)) {
    size_t ready = ends ? size : size - size % PWI_NET_PIECE_STEP;
    hand_on(peer, data, ready);
    data += ready;
    size -= ready;
  }
  while (size > 0 && has_bounce(peer)) {
    size_t step = size < CHUNK ? size : CHUNK;
    memcpy(peer->bounce + peer->bounced, data, step);
    data += step;
    size -= step;
    bounce_grew(peer, step, ends && size == 0);
  }
}

/* Small messages. */

static bool deliver_small(struct pwi_plane_peer *peer, const struct arrival *arrival) {
  const struct pwi_plane_events *events = peer->plane->events;
  size_t body_size = arrival->size - PWI_NET_HEAD_SIZE;
  const char *head = arrival->data;
  struct pwi_plane_wish wish;
  if (!events->begin(peer->owner, (const uint8_t *)head, body_size, true, &wish)) {
    peer->is_blocked = true;
    return false;
  }
  const char *body = head + PWI_NET_HEAD_SIZE;
  if (wish.has_places) {
    pwi_places_write(&wish.places, body, body_size);
  } else if (body_size > 0 && !wish.is_dropped) {
    char *aligned = peer->plane->small + (-(uintptr_t)peer->plane->small & (PWI_NET_PIECE_ALIGN - 1));
    memcpy(aligned, body, body_size);
    hand_on(peer, aligned, body_size);
  }
  events->end(peer->owner);
  return true;
}

/* Large messages. */

/* The parts must tile the body; shared parts must lie in a mapped region. */
static bool check_parts(struct pwi_plane_peer *peer, const struct packet *packet, size_t inlined) {
  uint64_t total = 0, inline_total = 0;
  for (size_t i = 0; i < packet->count; i++) {
    const struct plane_part *part = &peer->parts[i];
    if (!pwi_add_u64(total, part->size, &total)) return false;
    if (part->kind == PART_INLINE) inline_total += part->size;
    if (part->kind < PART_INLINE || part->kind > PART_PULLED) return false;
    if ((part->kind == PART_PULLED) == peer->same_host && part->kind != PART_INLINE) return false;
    if (inline_total > inlined) return false;
  }
  return total == packet->size && inline_total == inlined;
}

static const char *shared_part(const struct pwi_plane_peer *peer, const struct plane_part *part) {
  for (size_t i = 0; i < peer->region_count; i++) {
    const struct pwi_mapping *mapping = &peer->regions[i];
    if (mapping->number != part->memory) continue;
    return pwi_span_fits(part->offset, part->size, mapping->size) ? (const char *)mapping->memory + part->offset : NULL;
  }
  return NULL;
}

static void end_large(struct pwi_plane_peer *peer) {
  peer->in_large = false;
  peer->plane->events->end(peer->owner);
  if (peer->same_host && !peer->has_failed && pwi_ucx_tell(peer, PACKET_ACK, peer->large.number, NULL, 0) != PAWL_OK)
    pwi_ucx_fail(peer, "cannot acknowledge");
}

/* True if every part is in readable memory. It stays readable until this packet is processed, because only
 * another packet can remove a region. */
static bool is_ready(const struct pwi_plane_peer *peer, const struct packet *packet) {
  for (size_t i = 0; i < packet->count; i++) {
    const struct plane_part *part = &peer->parts[i];
    if (part->kind != PART_INLINE && (part->kind != PART_SHARED || !shared_part(peer, part))) return false;
  }
  return true;
}

/* Delivers a ready message: all pieces, as they lie in memory, and its end. Nothing can intervene, whatever
 * the peer does. */
static void hand_over(struct pwi_plane_peer *peer) {
  for (size_t i = 0; i < peer->large.count; i++) {
    const struct plane_part *part = &peer->parts[i];
    const char *data = part->kind == PART_SHARED ? shared_part(peer, part) : peer->inlined + peer->inlined_at;
    if (part->kind == PART_INLINE) peer->inlined_at += (size_t)part->size;
    hand_on(peer, data, (size_t)part->size);
  }
  end_large(peer);
}

static bool begin_large(struct pwi_plane_peer *peer, const struct arrival *arrival) {
  const struct packet *packet = &arrival->packet;
  size_t table = packet->count * sizeof(struct plane_part);
  size_t inlined = arrival->size - PWI_NET_HEAD_SIZE - table;
  struct pwi_plane_wish wish;
  if (packet->count > PARTS_MAX || arrival->size < PWI_NET_HEAD_SIZE + table || inlined > INLINE_MAX) {
    pwi_ucx_fail(peer, "malformed message on the data plane");
    return true;
  }
  const char *head = arrival->data;
  memcpy(peer->parts, head + PWI_NET_HEAD_SIZE, table);
  memcpy(peer->inlined, head + PWI_NET_HEAD_SIZE + table, inlined);
  if (!check_parts(peer, packet, inlined)) {
    pwi_ucx_fail(peer, "malformed parts on the data plane");
    return true;
  }
  bool ready = is_ready(peer, packet);
  if (!peer->plane->events->begin(peer->owner, (const uint8_t *)head, (size_t)packet->size, ready, &wish)) {
    peer->is_blocked = true;
    return false;
  }
  peer->in_large = true;
  peer->large = *packet;
  peer->inlined_at = peer->part_at = peer->part_offset = peer->handed = peer->bounced = 0;
  peer->has_places = wish.has_places;
  peer->places = wish.places;
  peer->is_dropped = wish.is_dropped;
  if (ready && !wish.has_places && !wish.is_dropped) hand_over(peer);
  return true;
}

static void part_fetched(struct pwi_plane_peer *peer, size_t size) {
  bool ends = peer->handed + size == peer->large.size;
  peer->is_receiving = false;
  peer->handed += size;
  peer->part_offset += size;
  if (!peer->has_places)
    bounce_grew(peer, size, ends);
  else if (peer->detours)
    pwi_places_write(&peer->places, peer->bounce, size);
  else
    pwi_places_advance(&peer->places, size);
}

static void fetch_ended(void *request, ucs_status_t status, size_t size, void *user_data) {
  struct pwi_plane_peer *peer = user_data;
  ucp_request_free(request);
  peer->plane->moved = true;
  if (status != UCS_OK || size != peer->fetching) {
    peer->is_receiving = false;
    pwi_ucx_fail(peer, ucs_status_string(status));
    return;
  }
  if (peer->is_closing) {
    peer->is_receiving = false;
    return;
  }
  part_fetched(peer, size);
  pwi_ucx_advance(peer);
}

/* The destination for fetching a chunk: directly its final place, if that is contiguous. NULL if there is no
 * memory. */
static char *fetch_place(struct pwi_plane_peer *peer, size_t size) {
  struct iovec parts[2];
  if (peer->has_places && pwi_places_next(&peer->places, size, parts) == 1) return parts[0].iov_base;
  peer->detours = peer->has_places;
  return has_bounce(peer) ? peer->bounce + peer->bounced : NULL;
}

/* Fetches the next chunk of a pulled part, which has been announced. */
static void fetch(struct pwi_plane_peer *peer, const struct arrival *arrival) {
  const struct plane_part *part = &peer->parts[peer->part_at];
  size_t left = (size_t)part->size - peer->part_offset;
  size_t expected = left < CHUNK ? left : CHUNK;
  if (arrival->size != expected) {
    pwi_ucx_fail(peer, "part of an unexpected size on the data plane");
    return;
  }
  peer->detours = false;
  char *place = fetch_place(peer, expected);
  if (!place) return;
  if (!arrival->is_rendezvous) {
    memcpy(place, arrival->data, expected);
    part_fetched(peer, expected);
    return;
  }
  peer->is_receiving = true;
  peer->fetching = expected;
  ucp_request_param_t param = {
      .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
      .cb.recv_am = fetch_ended,
      .user_data = peer,
  };
  void *request = ucp_am_recv_data_nbx(peer->port->worker, arrival->data, place, expected, &param);
  if (UCS_PTR_IS_PTR(request)) return;
  if (UCS_PTR_IS_ERR(request)) {
    peer->is_receiving = false;
    pwi_ucx_fail(peer, ucs_status_string(UCS_PTR_STATUS(request)));
    return;
  }
  part_fetched(peer, expected);
}

/* Copies bytes of a remote part to their destination. False if the memory of the peer cannot be read, because
 * it is dying. */
static bool read_remote(struct pwi_plane_peer *peer, const struct plane_part *part, size_t size) {
  struct iovec local[2];
  size_t count = 1;
  if (peer->has_places)
    count = pwi_places_next(&peer->places, size, local);
  else if (has_bounce(peer))
    local[0] = (struct iovec){peer->bounce + peer->bounced, size};
  else
    return false;
  if (!pwi_process_read(&peer->process, local, count, part->offset + peer->part_offset, size)) {
    pwi_ucx_fail(peer, "the peer's memory cannot be read");
    return false;
  }
  part_fetched(peer, size);
  return true;
}

/* Delivers up to `turn` bytes of a part that can be read now. */
static bool take_part(struct pwi_plane_peer *peer, const struct plane_part *part, size_t *turn) {
  size_t step = (size_t)part->size - peer->part_offset;
  peer->plane->moved = true; /* counts as progress also without an arrival */
  if (peer->is_dropped) {
    peer->part_offset += step;
    return true;
  }
  if (step > *turn) step = *turn;
  if (part->kind == PART_REMOTE) {
    if (!peer->has_places && step > CHUNK) step = CHUNK;
    *turn -= step;
    return read_remote(peer, part, step);
  }
  const char *data = part->kind == PART_INLINE ? peer->inlined + peer->inlined_at : shared_part(peer, part);
  if (!data) {
    pwi_ucx_fail(peer, "part outside of the mapped regions");
    return false;
  }
  if (part->kind == PART_SHARED) data += peer->part_offset;
  if (part->kind == PART_INLINE) peer->inlined_at += step;
  *turn -= step;
  peer->part_offset += step;
  feed(peer, data, step);
  return true;
}

/* Delivers the available parts. False if the turn is over or the peer failed. */
static bool continue_large(struct pwi_plane_peer *peer, size_t *turn) {
  while (peer->part_at < peer->large.count && !peer->has_failed) {
    const struct plane_part *part = &peer->parts[peer->part_at];
    if (peer->part_offset == part->size) {
      peer->part_at++;
      peer->part_offset = 0;
      continue;
    }
    if (part->kind == PART_PULLED) return true; /* not arrived yet */
    if (*turn == 0 || !take_part(peer, part, turn)) return false;
  }
  if (peer->has_failed) return false;
  end_large(peer);
  return true;
}

/* The queue. */

static void release(struct pwi_plane_peer *peer, struct arrival *arrival) {
  if (arrival->is_ours)
    pwi_free(arrival->data);
  else if (arrival->data && !arrival->is_rendezvous)
    ucp_am_data_release(peer->port->worker, arrival->data);
}

/* Processes one packet. False if it has to wait. */
static bool deal_with(struct pwi_plane_peer *peer, const struct arrival *arrival) {
  switch (arrival->packet.kind) {
  case PACKET_SMALL:
    if (peer->in_large || arrival->size < PWI_NET_HEAD_SIZE || arrival->size > PWI_NET_HEAD_SIZE + PWI_NET_COPY_MAX ||
        arrival->is_rendezvous) {
      pwi_ucx_fail(peer, "malformed message on the data plane");
      return true;
    }
    return deliver_small(peer, arrival);
  case PACKET_LARGE:
    if (peer->in_large || arrival->is_rendezvous) {
      pwi_ucx_fail(peer, "message inside a message on the data plane");
      return true;
    }
    return begin_large(peer, arrival);
  default: /* PACKET_PART */
    if (!peer->in_large) {
      pwi_ucx_fail(peer, "part without a message on the data plane");
      return true;
    }
    fetch(peer, arrival);
    return true;
  }
}

static void stay_busy(struct pwi_plane_peer *peer) {
  if (peer->is_busy) return;
  peer->is_busy = true;
  peer->next_busy = peer->plane->busy;
  peer->plane->busy = peer;
}

/* True if a new packet may be processed now. */
static bool is_free(struct pwi_plane_peer *peer, size_t *turn) {
  if (peer->is_blocked || peer->is_receiving || peer->has_failed) return false;
  if (!peer->in_large) return true;
  bool wants_more = continue_large(peer, turn);
  if (*turn == 0 && peer->in_large) stay_busy(peer);
  return wants_more && !peer->is_receiving;
}

void pwi_ucx_advance(struct pwi_plane_peer *peer) {
  size_t turn = TURN;
  while (is_free(peer, &turn) && pwi_fifo_count(&peer->arrivals) > 0) {
    struct arrival arrival = *(struct arrival *)pwi_fifo_at(&peer->arrivals, 0);
    pwi_fifo_pop(&peer->arrivals);
    peer->plane->moved = true;
    if (!deal_with(peer, &arrival)) {
      /* The packet was declined and returns to the front of the queue. */
      struct pwi_fifo *fifo = &peer->arrivals;
      fifo->first = fifo->first == 0 ? fifo->capacity - 1 : fifo->first - 1;
      fifo->count++;
      *(struct arrival *)pwi_fifo_at(fifo, 0) = arrival;
      return;
    }
    release(peer, &arrival);
  }
}

void pwi_ucx_drop_arrivals(struct pwi_plane_peer *peer) {
  while (pwi_fifo_count(&peer->arrivals) > 0) {
    struct arrival *arrival = pwi_fifo_at(&peer->arrivals, 0);
    if (arrival->is_rendezvous)
      ucp_am_data_release(peer->port->worker, arrival->data);
    else
      release(peer, arrival);
    pwi_fifo_pop(&peer->arrivals);
  }
}

void pwi_ucx_probed(struct pwi_plane_peer *peer, uint64_t tag, const struct probe *probe) {
  peer->port->has_early = false;
  if (tag != peer->our_tag) return;
  uint64_t value = probe->value;
  if (peer->same_host) {
    struct iovec local = {&value, sizeof value};
    if (!pwi_process_read(&peer->process, &local, 1, probe->address, sizeof value)) value = ~probe->value;
  }
  if (value == probe->value)
    peer->plane->events->probed(peer->owner);
  else
    pwi_ucx_fail(peer, "the peer's memory cannot be read");
}

static void probe_came(struct pwi_plane_port *port, uint64_t tag, const void *data, size_t size) {
  if (size != sizeof port->early) return;
  memcpy(&port->early, data, size);
  port->early_tag = tag;
  port->has_early = true; /* processed at the end of this round, or once the peer is connected */
}

/* The put of this notification may have come after the region was closed. */
static bool is_put_lost(const struct pwi_plane_peer *peer, const struct packet *packet) {
  return peer->same_host && !pwi_ucx_is_introduced(peer, packet->size);
}

/* Processes packets that need no order at once; true if it did. */
static bool deal_at_once(struct pwi_plane_peer *peer, const struct packet *packet) {
  switch (packet->kind) {
  case PACKET_ACK:
    pwi_ucx_acknowledged(peer, packet->number);
    return true;
  case PACKET_REGION:
    pwi_ucx_regions_came(peer);
    return true;
  case PACKET_FORGET:
    pwi_ucx_region_left(peer, packet->number);
    return true;
  case PACKET_NOTIFY:
    peer->plane->events->notified(peer->owner, is_put_lost(peer, packet) ? 0 : packet->number);
    return true;
  case PACKET_SMALL:
  case PACKET_LARGE:
  case PACKET_PART:
    return false;
  default:
    pwi_ucx_fail(peer, "unknown packet on the data plane");
    return true;
  }
}

/* Keeps a packet for later; returns the status for UCX about its data. */
static ucs_status_t keep(struct pwi_plane_peer *peer, struct arrival arrival, uint64_t attributes) {
  bool may_keep = arrival.is_rendezvous || (attributes & UCP_AM_RECV_ATTR_FLAG_DATA);
  if (!may_keep) {
    void *copy = pwi_alloc(arrival.size);
    if (copy) memcpy(copy, arrival.data, arrival.size);
    arrival.data = copy;
    arrival.is_ours = true;
  }
  struct arrival *slot = arrival.data ? pwi_fifo_push(&peer->arrivals) : NULL;
  if (!slot) {
    if (arrival.is_ours) pwi_free(arrival.data);
    pwi_ucx_fail(peer, "no memory to receive");
    return UCS_OK;
  }
  *slot = arrival;
  return may_keep ? UCS_INPROGRESS : UCS_OK;
}

ucs_status_t pwi_ucx_arrived(void *argument, const void *header, size_t header_size, void *data, size_t size,
                             const ucp_am_recv_param_t *param) {
  struct pwi_plane_port *port = argument;
  struct pwi_plane_peer *peer = port->peer;
  struct arrival arrival = {.data = data, .size = size};
  if (header_size != sizeof arrival.packet) return UCS_OK;
  memcpy(&arrival.packet, header, sizeof arrival.packet);
  arrival.is_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  port->plane->moved = true;
  if (arrival.packet.kind == PACKET_PROBE) {
    probe_came(port, arrival.packet.tag, data, arrival.is_rendezvous ? 0 : size);
    return UCS_OK;
  }
  if (!peer || peer->has_failed || peer->is_closing || arrival.packet.tag != peer->our_tag) return UCS_OK;
  if (deal_at_once(peer, &arrival.packet)) return UCS_OK;

  size_t turn = TURN;
  if (pwi_fifo_count(&peer->arrivals) > 0 || !is_free(peer, &turn) || !deal_with(peer, &arrival))
    return peer->has_failed ? UCS_OK : keep(peer, arrival, param->recv_attr);
  bool fetching = arrival.is_rendezvous && peer->is_receiving;
  if (!peer->is_receiving) pwi_ucx_advance(peer);
  return fetching ? UCS_INPROGRESS : UCS_OK;
}
