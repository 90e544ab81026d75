/* Reading the stream of a link and dividing it into frames.
 *
 * All links read into one scratch buffer of the net, so that ten thousand idle connections take no memory.
 * Bytes that cannot be used yet, at most part of a head or of the last 64 bytes of a piece, are saved in the
 * link. The scratch buffer begins at a multiple of 16 in the stream, which keeps every piece aligned. Bodies
 * with their own destination are read directly into it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/tcp/world.h"

#define READ_BUDGET ((size_t)1 << 20) /* bytes to read before other links have their turn */
/* A read costs at least as much as this many bytes: over TLS it may be 16 small records, each with an expensive
 * request for new keys. */
#define READ_LEAST ((size_t)64 << 10)
#define AFTER_BODY 4096 /* bytes read with the end of a body: the next head, and small frames */
#define LARGE_BODY ((size_t)64 << 10)
#define HEARD_BYTES 1024 /* bytes that count as a sign of life, as does a whole frame */

static bool is_reading(const struct tcp_link *link) { return !link->is_failed && link->socket >= 0; }

/* True if messages are still delivered to the actor. */
static bool is_listening(const struct tcp_link *link) { return link->stage == STAGE_UP && !link->bye_came; }

/* Notes how late the peer was, if it was. */
static void note_gap(struct tcp_link *link, int64_t now) {
  int64_t late = now - link->heard - link->net->base.limits.beat_ns;
  if (late <= 0 || link->stage != STAGE_UP || link->is_waiting || pwi_tcp_is_choked(link)) return;
  pwi_delay_note(&link->delay, late, now);
  pwi_delay_note(&link->net->delay, late, now);
}

static void heard_frame(struct tcp_link *link) {
  int64_t now = pwi_tcp_now();
  note_gap(link, now);
  link->heard = now;
  link->heard_bytes = 0;
}

/* Reads available bytes. False if there are no more now, or if the link failed. */
static bool read_some(struct tcp_link *link, struct iovec *parts, size_t part_count, size_t *moved_out) {
  *moved_out = 0;
  if (link->tls) {
    pawl_status status = pwi_tls_read(link->tls, parts[0].iov_base, parts[0].iov_len, moved_out);
    if (status != PAWL_OK)
      pwi_tcp_link_hung_up(link, status == PAWL_LINK_CLOSED ? PAWL_LINK_RESET : status, pwi_tls_error(link->tls));
    if (*moved_out < parts[0].iov_len && !pwi_tls_has_pending(link->tls) && !link->has_ended) link->can_read = false;
    return *moved_out > 0;
  }
  size_t wanted = 0;
  for (size_t i = 0; i < part_count; i++) wanted += parts[i].iov_len;
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = part_count};
  ssize_t moved;
  do moved = recvmsg(link->socket, &message, MSG_DONTWAIT);
  while (moved < 0 && errno == EINTR);
  if (moved <= 0) {
    link->can_read = false;
    if (moved == 0)
      pwi_tcp_link_hung_up(link, PAWL_LINK_RESET, "hang-up"); /* a peer that closes sends BYE first */
    else if (errno != EAGAIN)
      pwi_tcp_link_hung_up(link, PAWL_LINK_RESET, NULL);
    return false;
  }
  /* Fewer bytes than requested: the socket is empty. epoll will report further bytes, but not an end that it
   * has already reported. */
  if ((size_t)moved < wanted && !link->has_ended) link->can_read = false;
  *moved_out = (size_t)moved;
  return true;
}

/* The destination of the rest of the current body; NULL if it is delivered in pieces. */
static struct pwi_places *places_of_body(struct tcp_link *link) {
  if (link->frame.kind != PWI_FRAME_MESSAGE) return link->has_places ? &link->places : NULL;
  return link->is_wanted ? pwi_incoming_places(&link->incoming) : NULL;
}

/* While this side closes, only the BYE of the peer and answers to own requests matter. */
static bool is_dropped(const struct tcp_link *link) {
  enum pwi_frame_kind kind = link->frame.kind;
  bool is_leaving = link->stage == STAGE_CLOSING || link->stage == STAGE_LEAVING;
  return is_leaving && kind != PWI_FRAME_BYE && kind != PWI_FRAME_GOT && kind != PWI_FRAME_FENCED;
}

static void end_body(struct tcp_link *link) {
  if (is_dropped(link)) return;
  switch (link->frame.kind) {
  case PWI_FRAME_HELLO:
    pwi_tcp_link_greeted(link);
    break;
  case PWI_FRAME_PLANE:
    pwi_tcp_link_offered(link);
    break;
  case PWI_FRAME_MESSAGE:
    if (link->is_wanted && is_listening(link)) pwi_incoming_end(&link->incoming, &link->net->base, link->id, PAWL_OK);
    break;
  case PWI_FRAME_PING:
    break;
  case PWI_FRAME_BYE:
    pwi_tcp_link_bye(link);
    break;
  case PWI_FRAME_HOLD:
    pwi_tcp_link_held(link);
    break;
  case PWI_FRAME_PUT:
    pwi_tcp_put_ended(link);
    break;
  case PWI_FRAME_GET:
    if (!pwi_tcp_get_asked(link)) pwi_tcp_link_refuse(link, PAWL_LINK_PROTOCOL, "get outside of the shared regions");
    break;
  case PWI_FRAME_GOT:
    pwi_tcp_got_ended(link);
    break;
  case PWI_FRAME_FENCE:
    pwi_tcp_fence_asked(link);
    break;
  case PWI_FRAME_FENCED:
    if (!pwi_tcp_fence_answered(link))
      pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, "answer to a fence that was not sent");
    break;
  }
}

static void body_is_complete(struct tcp_link *link) {
  size_t padding = pwi_frame_padding(link->frame.body_size);
  link->input = padding ? INPUT_PADDING : INPUT_HEAD;
  link->body_left = padding;
  heard_frame(link);
  end_body(link);
  pwi_tcp_body_memory_release(link);
}

/* True if a frame of this kind is permitted at this stage. */
static bool is_expected(const struct tcp_link *link, enum pwi_frame_kind kind) {
  switch (link->stage) {
  case STAGE_HELLO:
    return kind == PWI_FRAME_HELLO || kind == PWI_FRAME_BYE;
  case STAGE_OFFER:
  case STAGE_PLANE:
    return kind == PWI_FRAME_PLANE || kind == PWI_FRAME_BYE || kind == PWI_FRAME_PING;
  case STAGE_UP:
    return kind != PWI_FRAME_HELLO && !link->bye_came && (kind != PWI_FRAME_HOLD || link->version >= PWI_FRAME_HOLDS);
  case STAGE_CLOSING:
  case STAGE_LEAVING:
    return !link->bye_came;
  case STAGE_RESOLVING:
  case STAGE_CONNECTING:
  case STAGE_SHAKING:
  case STAGE_OPENING:
  case STAGE_DEAD:
    break;
  }
  return false;
}

/* Returns false if there is no destination. */
static bool set_place(struct tcp_link *link, char *place) {
  link->places = pwi_places_one(place, (size_t)link->frame.body_size);
  link->has_places = place != NULL;
  return link->has_places;
}

static void begin_message(struct tcp_link *link, bool is_here) {
  struct pwi_message message = {
      .head = link->fields, .body_size = (size_t)link->frame.body_size, .lane = PWI_LANE_LINK, .ready = is_here};
  pawl_status why;
  link->is_wanted = is_listening(link);
  if (link->is_wanted && !pwi_incoming_begin(&link->incoming, &link->net->base, link->id, &message, &why)) {
    link->is_wanted = false;
    pwi_tcp_link_refuse(link, why, "message refused");
  }
}

/* `is_here`: the whole body is in the scratch buffer. */
static bool begin_body(struct tcp_link *link, bool is_here) {
  link->has_places = link->is_wanted = false;
  if (is_dropped(link)) return is_reading(link);
  switch (link->frame.kind) {
  case PWI_FRAME_HELLO:
  case PWI_FRAME_PLANE:
    pwi_free(link->small);
    link->small = pwi_alloc((size_t)link->frame.body_size);
    if (!set_place(link, link->small)) pwi_tcp_link_fail(link, PAWL_NO_MEMORY, NULL);
    break;
  case PWI_FRAME_MESSAGE:
    begin_message(link, is_here);
    break;
  case PWI_FRAME_PUT:
    if (!set_place(link, pwi_tcp_put_place(link)))
      pwi_tcp_link_refuse(link, PAWL_LINK_PROTOCOL, "put outside of the shared regions");
    break;
  case PWI_FRAME_GOT:
    if (!set_place(link, pwi_tcp_got_place(link)))
      pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, "answer to a get that was not sent");
    break;
  case PWI_FRAME_PING:
  case PWI_FRAME_BYE:
  case PWI_FRAME_GET:
  case PWI_FRAME_FENCE:
  case PWI_FRAME_FENCED:
  case PWI_FRAME_HOLD:
    break;
  }
  return is_reading(link);
}

static size_t take_body(struct tcp_link *link, const char *data, size_t size) {
  size_t step = link->body_left < size ? (size_t)link->body_left : size;
  struct pwi_places *places = places_of_body(link);
  if (!places && step < link->body_left) step -= step % PWI_NET_PIECE_STEP;
  if (places) {
    pwi_places_write(places, data, step);
    if (link->frame.kind == PWI_FRAME_MESSAGE) pwi_tcp_body_memory_received(link, step);
  } else if (link->is_wanted && is_listening(link))
    pwi_incoming_piece(&link->incoming, &link->net->base, link->id, data, step);
  link->body_left -= step;
  if (link->body_left == 0) body_is_complete(link);
  return step;
}

/* Parses the prefix and fields of a frame if they are complete. Returns the bytes consumed, 0 to wait for
 * more. */
static size_t take_head(struct tcp_link *link, const char *data, size_t size) {
  if (size < PWI_FRAME_PREFIX) return 0;
  pawl_status status = pwi_frame_read((const uint8_t *)data, link->net->base.limits.message_max, &link->frame);
  if (status != PAWL_OK) {
    pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, status == PAWL_TOO_LARGE ? "frame too large" : "not a frame");
    return 0;
  }
  size_t used = PWI_FRAME_PREFIX + pwi_frame_fields(link->frame.kind);
  if (size < used) return 0;
  if (!is_expected(link, link->frame.kind)) {
    pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, "unexpected kind of frame");
    return 0;
  }
  memcpy(link->fields, data + PWI_FRAME_PREFIX, used - PWI_FRAME_PREFIX);
  link->input = INPUT_BODY;
  link->body_left = link->frame.body_size;
  bool is_here = link->body_left <= size - used;
  bool goes_on = begin_body(link, is_here);
  if (link->body_left >= LARGE_BODY) link->expects_place = places_of_body(link) != NULL;
  /* A ready message is processed at once, even if the link has failed because of an action of the actor. */
  if (link->is_wanted && is_here) return used + take_body(link, data + used, size - used);
  if (goes_on && link->body_left == 0) body_is_complete(link);
  return used;
}

static size_t take_padding(struct tcp_link *link, size_t size) {
  size_t step = link->body_left < size ? (size_t)link->body_left : size;
  link->body_left -= step;
  if (link->body_left == 0) link->input = INPUT_HEAD;
  return step;
}

static size_t take_opening(struct tcp_link *link, const char *data, size_t size) {
  if (size < PWI_OPENING_SIZE) {
    /* The first byte already shows whether the peer speaks this protocol; do not wait for the rest. */
    if (size > 0 && data[0] != 'p') pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, "not the opening of a link");
    return 0;
  }
  link->input = INPUT_HEAD;
  pwi_tcp_link_opened(link, (const uint8_t *)data);
  return PWI_OPENING_SIZE;
}

static size_t take(struct tcp_link *link, const char *data, size_t size) {
  switch (link->input) {
  case INPUT_OPENING:
    return take_opening(link, data, size);
  case INPUT_HEAD:
    return take_head(link, data, size);
  case INPUT_BODY:
    return take_body(link, data, size);
  case INPUT_PADDING:
    return take_padding(link, size);
  }
  return 0;
}

static void take_all(struct tcp_link *link, const char *data, size_t size) {
  while (size > 0 && is_reading(link)) {
    size_t used = take(link, data, size);
    if (used == 0) break;
    link->position += used;
    data += used;
    size -= used;
  }
  if (!is_reading(link)) return;
  memcpy(link->carry, data, size);
  link->carry_size = size;
}

static void count_heard(struct tcp_link *link, size_t size) {
  link->heard_bytes += size;
  if (link->heard_bytes >= HEARD_BYTES) heard_frame(link);
}

/* Bytes in the scratch buffer have the same offset from a multiple of 16 as in the stream. */
static size_t phase(uint64_t position) { return (size_t)(position % PWI_FRAME_ALIGN); }

/* A body with its own destination is read directly, as far as the memory limit permits; the bytes after its
 * end go to the scratch buffer in the same call. */
static size_t read_into_places(struct tcp_link *link, struct pwi_places *places) {
  bool is_counted = link->frame.kind == PWI_FRAME_MESSAGE;
  size_t allowed = (size_t)link->body_left;
  if (is_counted) allowed = pwi_tcp_body_memory_allow(link, allowed);
  if (allowed == 0) return 0;
  char *scratch = link->net->scratch + phase(link->position + link->body_left);
  struct iovec parts[3];
  size_t count = pwi_places_next(places, allowed, parts);
  if (allowed == link->body_left) parts[count++] = (struct iovec){scratch, AFTER_BODY};
  size_t moved;
  if (!read_some(link, parts, count, &moved)) return 0;
  count_heard(link, moved);
  size_t direct = moved < link->body_left ? moved : (size_t)link->body_left;
  pwi_places_advance(places, direct);
  if (is_counted) pwi_tcp_body_memory_received(link, direct);
  link->body_left -= direct;
  link->position += direct;
  if (link->body_left == 0) {
    body_is_complete(link);
    if (is_reading(link)) take_all(link, scratch, moved - direct);
  }
  return moved;
}

static size_t read_into_scratch(struct tcp_link *link) {
  char *scratch = link->net->scratch + phase(link->position);
  memcpy(scratch, link->carry, link->carry_size);
  /* Little of a large body with a destination should be read into the scratch buffer, because it would have
   * to be copied. The same holds if the memory of bodies is short, or the link has no account of it yet. */
  bool is_little = link->expects_place || link->stage < STAGE_UP || pwi_tcp_body_memory_is_full(link);
  size_t most = is_little && link->input != INPUT_BODY ? AFTER_BODY : SCRATCH_SIZE;
  struct iovec part = {scratch + link->carry_size, most - link->carry_size};
  size_t moved;
  if (!read_some(link, &part, 1, &moved)) return 0;
  count_heard(link, moved);
  size_t size = link->carry_size + moved;
  link->carry_size = 0;
  take_all(link, scratch, size);
  return moved;
}

void pwi_tcp_link_read(struct tcp_link *link) {
  size_t budget = READ_BUDGET;
  while (link->can_read && is_reading(link) && !pwi_tcp_is_choked(link) && !link->is_waiting) {
    struct pwi_places *places = link->input == INPUT_BODY && link->carry_size == 0 ? places_of_body(link) : NULL;
    size_t moved = places ? read_into_places(link, places) : read_into_scratch(link);
    if (moved == 0) break;
    link->net->moved = true;
    size_t cost = moved > READ_LEAST ? moved : READ_LEAST;
    if (cost >= budget) break;
    budget -= cost;
  }
  if (link->can_read && is_reading(link) && !pwi_tcp_is_choked(link) && !link->is_waiting) pwi_tcp_mark_ready(link);
}
