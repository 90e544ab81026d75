/* Sending messages. */
#include <string.h>

#include "base/memory.h"
#include "net/ucx/ucx_internal.h"

void pwi_ucx_send_packet(struct operation *operation, const struct packet *packet, const void *payload, size_t size,
                         uint32_t flags) {
  ucp_request_param_t param = pwi_ucx_param(operation);
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = flags;
  pwi_ucx_watch(operation, ucp_am_send_nbx(operation->peer->endpoint, ACTIVE_MESSAGE_ID, packet, sizeof *packet,
                                           payload, size, &param));
}

pawl_status pwi_ucx_tell(struct pwi_plane_peer *peer, enum packet_kind kind, uint64_t number, const void *payload,
                         size_t payload_size) {
  struct operation *operation = pwi_ucx_begin(peer, 0, 0, false);
  if (!operation) return PAWL_NO_MEMORY;
  operation->packet.kind = kind;
  operation->packet.number = number;
  if (payload_size) memcpy(operation->payload, payload, payload_size);
  pwi_ucx_send_packet(operation, &operation->packet, operation->payload, payload_size, UCP_AM_SEND_FLAG_EAGER);
  pawl_status status = operation->status;
  pwi_ucx_step(operation, PAWL_OK);
  return status;
}

static void send_small(struct operation *operation, const struct iovec *body, size_t body_count) {
  char *at = operation->payload + PWI_NET_HEAD_SIZE;
  for (size_t i = 0; i < body_count; i++) {
    if (body[i].iov_len) memcpy(at, body[i].iov_base, body[i].iov_len);
    at += body[i].iov_len;
  }
  operation->packet.kind = PACKET_SMALL;
  pwi_ucx_send_packet(operation, &operation->packet, operation->payload, (size_t)(at - operation->payload),
                      UCP_AM_SEND_FLAG_EAGER);
}

static pawl_status plan_shared(struct operation *operation, const struct pwi_plane_memory *memory, const void *from,
                               struct plane_part *part) {
  pawl_status status = pwi_ucx_introduce(operation->peer, memory);
  if (status != PAWL_OK) return status;
  part->kind = PART_SHARED;
  part->memory = memory->number;
  part->offset = (uint64_t)((const char *)from - (const char *)memory->shared.memory);
  operation->memories[operation->memory_count++] = memory;
  return PAWL_OK;
}

/* Chooses how the parts of a large body are sent. If the parts in private memory are small in total, all of
 * them go inline, so that a body that lies mostly in regions is ready when it arrives. Small parts in regions
 * use the remaining inline room. */
static pawl_status plan_parts(struct operation *operation, const struct iovec *body, size_t body_count,
                              struct plane_part *parts) {
  struct pwi_plane_peer *peer = operation->peer;
  const struct pwi_plane_memory *memories[PARTS_MAX] = {0};
  size_t private = 0;
  for (size_t i = 0; i < body_count; i++) {
    if (peer->same_host) memories[i] = pwi_ucx_memory_of(peer->plane, body[i].iov_base, body[i].iov_len);
    if (!memories[i]) private += body[i].iov_len;
  }
  bool is_private_inline = private <= INLINE_MAX;
  size_t inlined = is_private_inline ? private : 0;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < body_count && status == PAWL_OK; i++) {
    size_t size = body[i].iov_len;
    parts[i] = (struct plane_part){.kind = PART_INLINE, .size = size};
    if (!memories[i] && is_private_inline) continue;
    if (size <= INLINE_PART && inlined + size <= INLINE_MAX) {
      inlined += size;
      continue;
    }
    parts[i].kind = peer->same_host ? PART_REMOTE : PART_PULLED;
    parts[i].offset = peer->same_host ? (uint64_t)(uintptr_t)body[i].iov_base : 0;
    if (memories[i]) status = plan_shared(operation, memories[i], body[i].iov_base, &parts[i]);
    if (status == PAWL_QUEUE_FULL)
      status = PAWL_OK; /* the peer has other regions to take first; the part is copied instead */
  }
  return status;
}

static void send_pulled(struct operation *operation, const struct iovec *from) {
  operation->part_packet = (struct packet){.tag = operation->packet.tag, .kind = PACKET_PART};
  for (size_t at = 0; at < from->iov_len && operation->status == PAWL_OK; at += CHUNK) {
    size_t size = from->iov_len - at < CHUNK ? from->iov_len - at : CHUNK;
    pwi_ucx_send_packet(operation, &operation->part_packet, (const char *)from->iov_base + at, size,
                        UCP_AM_SEND_FLAG_RNDV);
  }
}

static pawl_status send_large(struct operation *operation, const struct iovec *body, size_t body_count,
                              size_t body_size) {
  struct plane_part parts[PARTS_MAX];
  pawl_status status = plan_parts(operation, body, body_count, parts);
  if (status != PAWL_OK) return status;
  char *at = operation->payload + PWI_NET_HEAD_SIZE;
  memcpy(at, parts, body_count * sizeof *parts);
  at += body_count * sizeof *parts;
  for (size_t i = 0; i < body_count; i++) {
    if (parts[i].kind != PART_INLINE || body[i].iov_len == 0) continue;
    memcpy(at, body[i].iov_base, body[i].iov_len);
    at += body[i].iov_len;
  }
  operation->packet.kind = PACKET_LARGE;
  operation->packet.count = (uint32_t)body_count;
  operation->packet.size = body_size;
  operation->packet.number = ++operation->peer->last_large;
  if (operation->peer->same_host) { /* pending until the receiver has read it all */
    operation->large = operation->packet.number;
    operation->pending++;
  }
  pwi_ucx_send_packet(operation, &operation->packet, operation->payload, (size_t)(at - operation->payload),
                      UCP_AM_SEND_FLAG_EAGER);
  for (size_t i = 0; i < body_count; i++)
    if (parts[i].kind == PART_PULLED) send_pulled(operation, &body[i]);
  return PAWL_OK;
}

/* Cancels an operation of which nothing was sent. */
static void take_back(struct operation *operation) {
  operation->is_counted = false;
  operation->peer->outstanding--;
  pwi_ucx_step(operation, PAWL_OK);
}

pawl_status pwi_plane_send(struct pwi_plane_peer *peer, const void *head, const struct iovec *body, size_t body_count,
                           size_t body_size, uint64_t cookie) {
  struct operation *operation = pwi_ucx_begin(peer, cookie, body_size, true);
  if (!operation) return PAWL_NO_MEMORY;
  memcpy(operation->payload, head, PWI_NET_HEAD_SIZE);
  if (body_size <= PWI_NET_COPY_MAX) {
    send_small(operation, body, body_count);
  } else {
    pawl_status status = send_large(operation, body, body_count, body_size);
    if (status != PAWL_OK) {
      take_back(operation);
      return status;
    }
  }
  pwi_ucx_step(operation, PAWL_OK);
  return PAWL_OK;
}

void pwi_ucx_acknowledged(struct pwi_plane_peer *peer, uint64_t number) {
  for (struct operation *operation = peer->operations; operation; operation = operation->next) {
    if (operation->large != number) continue;
    operation->large = 0;
    pwi_ucx_step(operation, PAWL_OK);
    return;
  }
}
