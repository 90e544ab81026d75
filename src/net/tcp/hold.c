/* The messages of the data lane that wait, and holding those of the peer.
 *
 * A message of the data lane is parked while the peer holds the lane, and behind other parked messages. On a
 * link without a data plane it is also parked while the socket has enough to write. So a hold takes effect
 * soon: only the little that was queued for the socket before still goes out, and messages of the link lane
 * never wait behind much.
 *
 * The receiver of a hold frame parks. The sender of the frame also lets no message of a data plane begin,
 * because those do not pass through the socket that carries the frame.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/tcp/world.h"

#define ENOUGH ((size_t)256 << 10) /* bytes queued for a socket from which on messages are parked */
#define POOL_MAX 64                /* unused structs that a net keeps */
#define HOLD_FIELDS 16

enum hold_step { HOLD_ENDS = 0, HOLD_BEGINS = 1, HOLD_CLOSES = 2 };

/* Small bodies are copied to `copy`, as pwi_net_send promises. */
struct pwi_parked {
  struct pwi_parked *next; /* in the pool */
  uint8_t head[PWI_NET_HEAD_SIZE];
  struct iovec body[PWI_NET_IOV_MAX];
  size_t body_count, body_size;
  uint64_t cookie;
  char copy[PWI_NET_COPY_MAX];
};

static struct pwi_parked *take(struct tcp_net *net) {
  struct pwi_parked *parked = net->parked_pool;
  if (!parked) return pwi_alloc(sizeof *parked);
  net->parked_pool = parked->next;
  net->parked_spare--;
  return parked;
}

static void give(struct tcp_net *net, struct pwi_parked *parked) {
  if (net->parked_spare == POOL_MAX) {
    pwi_free(parked);
    return;
  }
  parked->next = net->parked_pool;
  net->parked_pool = parked;
  net->parked_spare++;
}

void pwi_tcp_free_parked(struct tcp_net *net) {
  while (net->parked_pool) {
    struct pwi_parked *parked = net->parked_pool;
    net->parked_pool = parked->next;
    pwi_free(parked);
  }
}

/* --- parking -------------------------------------------------------------------------------------------- */

/* A side that closes sends everything. */
static bool is_stopped(const struct tcp_link *link) { return link->is_held && link->stage == STAGE_UP; }

static bool has_enough(const struct tcp_link *link) { return !link->plane && link->queued_bytes >= ENOUGH; }

bool pwi_tcp_must_park(const struct tcp_link *link) {
  return is_stopped(link) || has_enough(link) || pwi_fifo_count(&link->parked) > 0;
}

static void copy_body(struct pwi_parked *parked) {
  char *at = parked->copy;
  for (size_t i = 0; i < parked->body_count; i++) {
    if (parked->body[i].iov_len) memcpy(at, parked->body[i].iov_base, parked->body[i].iov_len);
    at += parked->body[i].iov_len;
  }
  parked->body[0] = (struct iovec){parked->copy, parked->body_size};
  parked->body_count = parked->body_size > 0;
}

pawl_status pwi_tcp_park(struct tcp_link *link, const struct pwi_send *send, size_t body_size) {
  struct tcp_net *net = link->net;
  pawl_status status = pwi_fifo_reserve(&link->parked, pwi_fifo_count(&link->parked) + 1);
  struct pwi_parked *parked = status == PAWL_OK ? take(net) : NULL;
  if (!parked) return PAWL_NO_MEMORY;
  status = pwi_tcp_owe(net, send->cookie);
  if (status != PAWL_OK) {
    give(net, parked);
    return status;
  }
  memcpy(parked->head, send->head, PWI_NET_HEAD_SIZE);
  if (send->body_count) memcpy(parked->body, send->body, send->body_count * sizeof *send->body);
  parked->body_count = send->body_count;
  parked->body_size = body_size;
  parked->cookie = send->cookie;
  if (body_size <= PWI_NET_COPY_MAX) {
    copy_body(parked);
    pwi_tcp_end_operation(link, parked->cookie, PAWL_OK);
    parked->cookie = 0;
  }
  link->parked_bytes += body_size;
  *(struct pwi_parked **)pwi_fifo_push(&link->parked) = parked;
  return PAWL_OK;
}

static struct pwi_parked *first(const struct tcp_link *link) {
  return *(struct pwi_parked **)pwi_fifo_at(&link->parked, 0);
}

static void remove_first(struct tcp_link *link) {
  struct pwi_parked *parked = first(link);
  pwi_fifo_pop(&link->parked);
  link->parked_bytes -= parked->body_size;
  give(link->net, parked);
}

void pwi_tcp_unpark(struct tcp_link *link) {
  bool had = pwi_fifo_count(&link->parked) > 0;
  if (link->bye_queued) return; /* the last frame */
  while (pwi_fifo_count(&link->parked) > 0 && !is_stopped(link) && !has_enough(link) && !link->is_failed) {
    const struct pwi_parked *parked = first(link);
    struct pwi_send send = {.lane = PWI_LANE_DATA,
                            .head = parked->head,
                            .body = parked->body,
                            .body_count = parked->body_count,
                            .cookie = parked->cookie};
    if (parked->cookie) link->net->owed--; /* pwi_tcp_send_now counts it again */
    pawl_status status = pwi_tcp_send_now(link, &send, parked->body_size);
    if (status != PAWL_OK) {
      if (parked->cookie) link->net->owed++;
      pwi_tcp_link_fail(link, status, NULL);
      return;
    }
    remove_first(link);
  }
  if (had && (link->data_was_full || link->stage == STAGE_CLOSING)) pwi_tcp_mark_dirty(link);
}

void pwi_tcp_drop_parked(struct tcp_link *link, pawl_status why) {
  while (pwi_fifo_count(&link->parked) > 0) {
    pwi_tcp_end_operation(link, first(link)->cookie, why);
    remove_first(link);
  }
}

bool pwi_tcp_parked_uses(const struct tcp_link *link, const char *begin, size_t size) {
  for (size_t i = 0; i < pwi_fifo_count(&link->parked); i++) {
    const struct pwi_parked *parked = *(struct pwi_parked **)pwi_fifo_at(&link->parked, i);
    for (size_t j = 0; j < parked->body_count; j++) {
      const char *part = parked->body[j].iov_base;
      if (part < begin + size && part + parked->body[j].iov_len > begin) return true;
    }
  }
  return false;
}

/* --- holding -------------------------------------------------------------------------------------------- */

bool pwi_tcp_is_holding(const struct tcp_link *link) {
  return link->holds && link->stage == STAGE_UP && !link->bye_came && !link->peer_closes && !link->is_failed;
}

static pawl_status send_hold(struct tcp_link *link, enum hold_step step) {
  uint8_t fields[HOLD_FIELDS] = {0};
  pwi_put_u32(fields, step);
  return pwi_tcp_queue_frame(link, PWI_FRAME_HOLD, fields, NULL, 0, 0, false, 0);
}

pawl_status pwi_tcp_hold(struct pwi_net *base, struct pwi_link id, bool hold) {
  struct tcp_link *link = pwi_tcp_find_link((struct tcp_net *)base, id);
  if (!link || link->stage != STAGE_UP || link->is_failed) return PAWL_NOT_FOUND;
  if (link->version < PWI_FRAME_HOLDS) return PAWL_UNSUPPORTED;
  if (link->holds == hold) return PAWL_OK;
  pawl_status status = send_hold(link, hold ? HOLD_BEGINS : HOLD_ENDS);
  if (status == PAWL_OK) link->holds = hold;
  return status;
}

/* The peer must take what it has held: BYE waits for the data plane. */
void pwi_tcp_end_holds(struct tcp_link *link) {
  if (!link->plane || pwi_plane_outstanding(link->plane) == 0 || link->version < PWI_FRAME_HOLDS) return;
  if (send_hold(link, HOLD_CLOSES) != PAWL_OK) pwi_tcp_link_fail(link, PAWL_NO_MEMORY, NULL);
}

void pwi_tcp_link_held(struct tcp_link *link) {
  uint32_t step = pwi_get_u32(link->fields);
  struct pwi_net *base = &link->net->base;
  if (step == HOLD_CLOSES) {
    link->peer_closes = true;
    pwi_tcp_mark_dirty(link);
    return;
  }
  if (step != HOLD_ENDS && step != HOLD_BEGINS) {
    pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, "invalid HOLD frame");
    return;
  }
  if (link->is_held == (step == HOLD_BEGINS)) return;
  link->is_held = step == HOLD_BEGINS;
  link->net->moved = true;
  if (!link->is_held) {
    pwi_tcp_unpark(link);
    pwi_tcp_mark_dirty(link);
  }
  if (base->actor->held) base->actor->held(base->self, link->id, link->is_held);
}
