/* The send queue of a link, and writing it.
 *
 * The queue is a list of segments. Frame heads, small bodies and padding are copied into a ring of bytes;
 * consecutive ones form one segment, so that a burst of small messages takes one write. A large body is a
 * segment that points to the memory of the caller. Nothing is allocated once ring and list are large enough
 * for the traffic.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "net/tcp/world.h"

#define WRITE_PARTS 64    /* of one system call */
#define WRITE_ROUNDS 4    /* system calls before other links have their turn */
#define FIRST_RING 4096   /* bytes */
#define EAGER (256 << 10) /* with this many queued bytes, writing does not wait for the next poll */

/* The queue of a lane. That of the link lane is what waits for the socket; to that of the data lane and of
 * one-sided operations belongs everything. */
static size_t operations_of(const struct tcp_link *link, enum pwi_lane lane) {
  size_t others = link->plane_operations + pwi_fifo_count(&link->parked);
  return link->queued_operations + (lane == PWI_LANE_DATA ? others : 0);
}

static size_t bytes_of(const struct tcp_link *link, enum pwi_lane lane) {
  return link->queued_bytes + (lane == PWI_LANE_DATA ? link->plane_bytes + link->parked_bytes : 0);
}

bool pwi_tcp_has_room(struct tcp_link *link, enum pwi_lane lane, size_t size) {
  const struct pwi_net_limits *limits = &link->net->base.limits;
  size_t operations = operations_of(link, lane);
  bool fits =
      operations < limits->queue_count && (operations == 0 || bytes_of(link, lane) + size <= limits->queue_bytes);
  if (!fits && lane == PWI_LANE_DATA) link->data_was_full = true;
  if (!fits && lane == PWI_LANE_LINK) link->link_was_full = true;
  return fits;
}

bool pwi_tcp_is_choked(const struct tcp_link *link) {
  return link->queued_operations > 2 * link->net->base.limits.queue_count;
}

static bool is_half_empty(const struct tcp_link *link, enum pwi_lane lane) {
  const struct pwi_net_limits *limits = &link->net->base.limits;
  return operations_of(link, lane) <= limits->queue_count / 2 && bytes_of(link, lane) <= limits->queue_bytes / 2;
}

void pwi_tcp_check_writable(struct tcp_link *link) {
  if (link->stage != STAGE_UP) return;
  bool has_link = link->link_was_full && is_half_empty(link, PWI_LANE_LINK);
  bool has_data =
      link->data_was_full && is_half_empty(link, PWI_LANE_DATA) && !(link->plane && pwi_plane_is_stuffed(link->plane));
  if (!has_link && !has_data) return;
  if (has_link) link->link_was_full = false;
  if (has_data) link->data_was_full = false;
  link->net->moved = true;
  if (link->net->base.actor->writable) link->net->base.actor->writable(link->net->base.self, link->id);
}

static pawl_status reserve_ring(struct tcp_link *link, size_t size) {
  if (link->ring_capacity - link->ring_count >= size) return PAWL_OK;
  size_t capacity = link->ring_capacity ? link->ring_capacity : FIRST_RING;
  while (capacity - link->ring_count < size) capacity *= 2;
  char *ring = pwi_alloc(capacity);
  if (!ring) return PAWL_NO_MEMORY;
  size_t straight = link->ring_capacity - link->ring_begin;
  if (straight > link->ring_count) straight = link->ring_count;
  if (straight) memcpy(ring, link->ring + link->ring_begin, straight);
  if (link->ring_count > straight) memcpy(ring + straight, link->ring, link->ring_count - straight);
  pwi_free(link->ring);
  link->ring = ring;
  link->ring_capacity = capacity;
  link->ring_begin = 0;
  return PAWL_OK;
}

/* Room must have been reserved. `from` NULL appends zeros. */
static void append_ring(struct tcp_link *link, const void *from, size_t size) {
  if (size == 0) return;
  size_t mask = link->ring_capacity - 1;
  size_t at = (link->ring_begin + link->ring_count) & mask;
  size_t straight = link->ring_capacity - at < size ? link->ring_capacity - at : size;
  if (from) {
    memcpy(link->ring + at, from, straight);
    memcpy(link->ring, (const char *)from + straight, size - straight);
  } else {
    memset(link->ring + at, 0, straight);
    memset(link->ring, 0, size - straight);
  }
  link->ring_count += size;
  size_t count = pwi_fifo_count(&link->segments);
  struct segment *last = count ? pwi_fifo_at(&link->segments, count - 1) : NULL;
  if (!last || last->base) {
    last = pwi_fifo_push(&link->segments);
    *last = (struct segment){0};
  }
  last->size += size;
}

static void append_borrowed(struct tcp_link *link, const struct iovec *part) {
  if (part->iov_len == 0) return;
  struct segment *segment = pwi_fifo_push(&link->segments);
  *segment = (struct segment){.base = part->iov_base, .size = part->iov_len, .is_borrowed = true};
}

pawl_status pwi_tcp_queue_frame(struct tcp_link *link, enum pwi_frame_kind kind, const void *fields,
                                const struct iovec *body, size_t body_count, size_t body_size, bool borrow,
                                uint64_t cookie) {
  size_t fields_size = pwi_frame_fields(kind);
  size_t padding = pwi_frame_padding(body_size);
  size_t copied = PWI_FRAME_PREFIX + fields_size + (borrow ? 0 : body_size) + padding;
  pawl_status status = pwi_fifo_reserve(&link->segments, pwi_fifo_count(&link->segments) + body_count + 2);
  if (status == PAWL_OK) status = reserve_ring(link, copied);
  if (status == PAWL_OK && cookie) status = pwi_tcp_owe(link->net, cookie);
  if (status != PAWL_OK) return status;

  uint8_t head[PWI_FRAME_HEAD_MAX];
  pwi_frame_write(head, kind, body_size);
  if (fields_size) memcpy(head + PWI_FRAME_PREFIX, fields, fields_size);
  append_ring(link, head, PWI_FRAME_PREFIX + fields_size);
  for (size_t i = 0; i < body_count; i++) {
    if (borrow)
      append_borrowed(link, &body[i]);
    else
      append_ring(link, body[i].iov_base, body[i].iov_len);
  }
  struct segment *last = pwi_fifo_at(&link->segments, pwi_fifo_count(&link->segments) - 1);
  last->operations++;
  if (borrow)
    last->cookie = cookie;
  else if (cookie)
    pwi_tcp_end_operation(link, cookie, PAWL_OK); /* copied: the caller may reuse its memory already */
  append_ring(link, NULL, padding);
  link->queued_bytes += PWI_FRAME_PREFIX + fields_size + body_size + padding;
  link->queued_operations++;
  pwi_tcp_mark_dirty(link);
  return PAWL_OK;
}

static pawl_status send_on_plane(struct tcp_link *link, const struct pwi_send *send, size_t body_size) {
  pawl_status status = pwi_tcp_owe(link->net, send->cookie);
  if (status != PAWL_OK) return status;
  link->plane_operations++; /* counted before the call, because it may end at once */
  link->plane_bytes += body_size;
  status = pwi_plane_send(link->plane, send->head, send->body, send->body_count, body_size, send->cookie);
  if (status == PAWL_OK) {
    link->plane_sent++;
    return PAWL_OK;
  }
  link->plane_operations--;
  link->plane_bytes -= body_size;
  if (send->cookie) link->net->owed--;
  return status;
}

/* Sends on the plane, or queues for the socket. */
pawl_status pwi_tcp_send_now(struct tcp_link *link, const struct pwi_send *send, size_t body_size) {
  if (send->lane == PWI_LANE_DATA && link->plane) return send_on_plane(link, send, body_size);
  return pwi_tcp_queue_frame(link, PWI_FRAME_MESSAGE, send->head, send->body, send->body_count, body_size,
                             body_size > PWI_NET_COPY_MAX, send->cookie);
}

/* True if a large body would be written at once. TLS copies it in any case. */
static bool may_write_at_once(const struct tcp_link *link, const struct pwi_send *send, size_t body_size) {
  bool has_plane = send->lane == PWI_LANE_DATA && link->plane;
  return !has_plane && !link->tls && link->can_write && body_size > PWI_NET_COPY_MAX &&
         pwi_fifo_count(&link->segments) == 0;
}

/* Copies to the spare memory the bytes of the last part of a message, the newest in the queue, that the socket
 * did not take. */
static void spare_rest(struct tcp_link *link, const struct pwi_send *send) {
  const struct iovec *part = &send->body[send->body_count - 1];
  const char *begin = part->iov_base;
  for (size_t i = 0; i < pwi_fifo_count(&link->segments); i++) {
    struct segment *segment = pwi_fifo_at(&link->segments, i);
    if (!segment->base || segment->base < begin || segment->base >= begin + part->iov_len) continue;
    char *place = (char *)send->spare + (segment->base - begin);
    memcpy(place, segment->base, segment->size);
    segment->base = place;
  }
}

pawl_status pwi_tcp_send(struct pwi_net *base, struct pwi_link id, const struct pwi_send *send, size_t body_size) {
  struct tcp_link *link = pwi_tcp_find_link((struct tcp_net *)base, id);
  struct pwi_spared spared;
  if (!link || link->stage != STAGE_UP) return PAWL_NOT_FOUND;
  if (!pwi_tcp_has_room(link, send->lane, body_size)) return PAWL_QUEUE_FULL;
  bool is_parked = send->lane == PWI_LANE_DATA && pwi_tcp_must_park(link);
  if (is_parked || !may_write_at_once(link, send, body_size)) send = pwi_net_use_spare(send, &spared);
  pawl_status status = is_parked ? pwi_tcp_park(link, send, body_size) : pwi_tcp_send_now(link, send, body_size);
  if (status != PAWL_OK) return status;
  bool is_eager = send->spare || link->queued_bytes >= EAGER;
  if (is_eager && link->can_write && !link->is_failed) pwi_tcp_link_flush(link);
  if (send->spare) spare_rest(link, send);
  base->counts.messages_sent++;
  base->counts.bytes_sent += PWI_NET_HEAD_SIZE + body_size;
  return PAWL_OK;
}

/* Collects the front of the queue as parts for one write. */
static size_t gather(const struct tcp_link *link, struct iovec *parts) {
  size_t count = 0;
  size_t ring_at = link->ring_begin;
  for (size_t i = 0; i < pwi_fifo_count(&link->segments) && count + 2 <= WRITE_PARTS; i++) {
    const struct segment *segment = pwi_fifo_at(&link->segments, i);
    if (segment->base) {
      parts[count++] = (struct iovec){(void *)(uintptr_t)segment->base, segment->size};
      continue;
    }
    size_t straight = link->ring_capacity - ring_at;
    if (straight > segment->size) straight = segment->size;
    parts[count++] = (struct iovec){link->ring + ring_at, straight};
    if (segment->size > straight) parts[count++] = (struct iovec){link->ring, segment->size - straight};
    ring_at = (ring_at + segment->size) & (link->ring_capacity - 1);
  }
  return count;
}

static void finish_segment(struct tcp_link *link, const struct segment *segment, pawl_status status) {
  link->queued_operations -= segment->operations;
  if (segment->cookie) pwi_tcp_end_operation(link, segment->cookie, status);
}

/* Removes `size` written bytes from the front. */
static void advance(struct tcp_link *link, size_t size) {
  link->queued_bytes -= size;
  if (size > 0 && pwi_tcp_is_choked(link)) link->took = pwi_tcp_now();
  while (size > 0) {
    struct segment *segment = pwi_fifo_at(&link->segments, 0);
    size_t step = segment->size < size ? segment->size : size;
    size -= step;
    segment->size -= step;
    if (segment->base) {
      segment->base += step;
    } else {
      link->ring_begin = (link->ring_begin + step) & (link->ring_capacity - 1);
      link->ring_count -= step;
    }
    if (segment->size > 0) return;
    struct segment finished = *segment;
    pwi_fifo_pop(&link->segments);
    finish_segment(link, &finished, PAWL_OK);
  }
}

static bool write_plain(struct tcp_link *link) {
  struct iovec parts[WRITE_PARTS];
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = gather(link, parts)};
  size_t wanted = 0;
  for (size_t i = 0; i < message.msg_iovlen; i++) wanted += parts[i].iov_len;
  ssize_t moved;
  do moved = sendmsg(link->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (moved < 0 && errno == EINTR);
  if (moved < 0) {
    link->can_write = false;
    if (errno != EAGAIN) pwi_tcp_link_hung_up(link, PAWL_LINK_RESET, NULL);
    return false;
  }
  advance(link, (size_t)moved);
  if ((size_t)moved < wanted) link->can_write = false;
  return link->can_write;
}

static bool write_tls(struct tcp_link *link) {
  struct iovec parts[WRITE_PARTS];
  size_t count = gather(link, parts);
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < count; i++) {
    size_t moved;
    status = pwi_tls_write(link->tls, parts[i].iov_base, parts[i].iov_len, &moved);
    if (status != PAWL_OK) break;
    advance(link, moved);
    if (moved < parts[i].iov_len) break;
  }
  bool empty = true;
  if (status == PAWL_OK) status = pwi_tls_flush(link->tls, &empty);
  if (status != PAWL_OK) pwi_tcp_link_hung_up(link, status, pwi_tls_error(link->tls));
  if (status != PAWL_OK || !empty) link->can_write = false;
  return link->can_write;
}

void pwi_tcp_link_flush(struct tcp_link *link) {
  bool had = false;
  for (int round = 0; round < WRITE_ROUNDS && link->can_write; round++) {
    pwi_tcp_unpark(link);
    if (pwi_fifo_count(&link->segments) == 0) break;
    had = true;
    if (!(link->tls ? write_tls(link) : write_plain(link))) break;
  }
  if (had) link->spoke = pwi_tcp_now();
  if (link->tls && link->can_write) { /* records that a full socket did not accept */
    bool empty = true;
    if (pwi_tls_flush(link->tls, &empty) != PAWL_OK) pwi_tcp_link_hung_up(link, PAWL_LINK_RESET, NULL);
    if (!empty) link->can_write = false;
  }
  pwi_tcp_unpark(link);
  if (pwi_fifo_count(&link->segments) > 0 && link->can_write) pwi_tcp_mark_dirty(link);
  if (link->can_read && !pwi_tcp_is_choked(link) && !link->is_waiting) pwi_tcp_mark_ready(link);
  if (link->bye_queued && pwi_fifo_count(&link->segments) == 0) link->bye_written = true;
}

void pwi_tcp_drop_output(struct tcp_link *link, pawl_status why) {
  while (pwi_fifo_count(&link->segments) > 0) {
    struct segment segment = *(struct segment *)pwi_fifo_at(&link->segments, 0);
    pwi_fifo_pop(&link->segments);
    finish_segment(link, &segment, why);
  }
  link->ring_count = 0;
  pwi_tcp_drop_parked(link, why);
}

bool pwi_tcp_output_uses(const struct tcp_link *link, const char *begin, size_t size) {
  for (size_t i = 0; i < pwi_fifo_count(&link->segments); i++) {
    const struct segment *segment = pwi_fifo_at(&link->segments, i);
    if (segment->base && segment->base < begin + size && segment->base + segment->size > begin) return true;
  }
  return pwi_tcp_parked_uses(link, begin, size);
}
