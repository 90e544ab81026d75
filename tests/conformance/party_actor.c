/* The harness actor: records what happens, and checks that it may happen now. */
#include <stdlib.h>
#include <string.h>

#include "parcel.h"
#include "party.h"
#include "pattern.h"

static struct party *enter(void *self, const char *what) {
  struct party *party = self;
  if (party->inside_call) party_fault(party, "%s was called inside a call", what);
  if (party->inside_callback) party_fault(party, "%s was called inside another callback", what);
  if (party->ready_link && strcmp(what, "piece") != 0 && strcmp(what, "message_end") != 0)
    party_fault(party, "%s was called before a ready message had ended", what);
  if (!party->net) {
    party_fault(party, "%s was called before the net was there or after it was gone", what);
    return party;
  }
  int64_t now = pwi_net_now(party->net);
  if (now < party->last_now) party_fault(party, "time ran back");
  party->last_now = now;
  party->inside_callback = true;
  return party;
}

static void leave(struct party *party) { party->inside_callback = false; }

static void hook(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  if (party->hook && !party->fault[0]) party->hook(party, event, link, value);
}

static struct party_link *find(struct party *party, struct pwi_link link) {
  for (size_t i = party->link_count; i > 0; i--)
    if (party->links[i - 1]->link.id == link.id) return party->links[i - 1];
  return NULL;
}

struct party_link *party_link_add(struct party *party, struct pwi_link link, bool accepted) {
  if (link.id == 0) party_fault(party, "a link has the number 0");
  if (find(party, link)) party_fault(party, "link number %llu was used twice", (unsigned long long)link.id);
  if (party->link_count == PARTY_LINKS) abort();
  struct party_link *entry = calloc(1, sizeof *entry);
  if (!entry) abort();
  entry->link = link;
  entry->accepted = accepted;
  party->links[party->link_count++] = entry;
  return entry;
}

/* A callback of a link that must be up, or NULL and a fault. */
static struct party_link *find_up(struct party *party, struct pwi_link link, const char *what) {
  struct party_link *entry = find(party, link);
  if (entry && entry->state == PARTY_UP) return entry;
  party_fault(party, "%s for a link that is %s", what, !entry ? "unknown" : entry->was_up ? "down" : "not yet up");
  return NULL;
}

static void check_info(struct party *party, struct party_link *link, const struct pwi_link_info *info) {
  if (info->accepted != link->accepted) party_fault(party, "a link says wrongly who connected");
  if (!info->peer || !info->peer[0]) party_fault(party, "a link has no name for its peer");
  if (info->hello_size > PWI_NET_HELLO_MAX) {
    party_fault(party, "a hello of %zu bytes", info->hello_size);
    return;
  }
  if (link->state == PARTY_GREETED &&
      (info->hello_size != link->hello_size ||
       (info->hello_size > 0 && memcmp(info->hello, link->hello, info->hello_size) != 0)))
    party_fault(party, "link_up shows another hello than greet");
  link->hello_size = info->hello_size;
  if (info->hello_size > 0) memcpy(link->hello, info->hello, info->hello_size);
}

static pawl_status on_greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct party *party = enter(self, "greet");
  struct party_link *entry = find(party, link);
  if (!entry) entry = party_link_add(party, link, true);
  if (entry->state != PARTY_BEGUN) party_fault(party, "greet was called twice, or too late");
  check_info(party, entry, info);
  entry->state = PARTY_GREETED;
  if (party->greet_answer != PAWL_OK && entry->accepted) entry->state = PARTY_REFUSED;
  leave(party);
  return party->greet_answer;
}

static void on_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct party *party = enter(self, "link_up");
  struct party_link *entry = find(party, link);
  if (!entry) entry = party_link_add(party, link, true); /* an actor without greet */
  if (entry->was_up || entry->state > PARTY_GREETED) party_fault(party, "link_up came twice, or too late");
  if (entry->closing) party_fault(party, "link_up after the link was closed");
  check_info(party, entry, info);
  entry->state = PARTY_UP;
  entry->was_up = true;
  entry->can = info->can;
  hook(party, PARTY_ON_UP, entry, 0);
  leave(party);
}

static void on_greeted_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct party *party = self;
  struct party_link *entry = find(party, link);
  if (!entry || entry->state != PARTY_GREETED) party_fault(party, "link_up before greet");
  on_link_up(self, link, info);
}

static void on_link_down(void *self, struct pwi_link link, pawl_status why) {
  struct party *party = enter(self, "link_down");
  struct party_link *entry = find(party, link);
  if (!entry) {
    party_fault(party, "link_down of an unknown link");
    leave(party);
    return;
  }
  if (entry->state == PARTY_DOWN) party_fault(party, "link_down came twice");
  if (entry->state == PARTY_REFUSED) party_fault(party, "link_down of a link that was refused");
  if (entry->in[0].open || entry->in[1].open) party_fault(party, "link_down before message_end");
  if (entry->outstanding > 0) party_fault(party, "link_down before %zu operations were done", entry->outstanding);
  if (entry->wrong[0] && (why == PAWL_OK || why == PAWL_LINK_CLOSED)) party_fault(party, "%s", entry->wrong);
  entry->state = PARTY_DOWN;
  entry->why = why;
  hook(party, PARTY_ON_DOWN, entry, 0);
  leave(party);
}

static void make_place(struct party_place *place, size_t offset, size_t size) {
  *place = (struct party_place){malloc(size + 2 * PARTY_GUARD), offset, size};
  if (!place->block) abort();
  memset(place->block, 0xa5, PARTY_GUARD);
  memset(place->block + PARTY_GUARD + size, 0xa5, PARTY_GUARD);
}

static void drop_places(struct party_stream *stream) {
  for (int i = 0; i < 2; i++) {
    free(stream->places[i].block);
    stream->places[i].block = NULL;
  }
}

/* A place that gets nothing is sometimes none. */
static void *memory_of(const struct party_stream *stream, int which) {
  const struct party_place *place = &stream->places[which];
  return place->size == 0 && stream->seed % 2 == 0 ? NULL : place->block + PARTY_GUARD;
}

static struct pwi_receive begin_stream(struct party_stream *stream, const struct packet_head *head, size_t size) {
  struct pwi_receive receive = {.how = head->how, .context = stream, .prefix = (size_t)head->prefix};
  stream->open = true;
  stream->how = head->how;
  stream->seed = head->seed;
  stream->value = head->value;
  stream->size = size;
  stream->offset = 0;
  stream->pieces = 0;
  drop_places(stream);
  if (head->how != PWI_RECEIVE_INTO && head->how != PWI_RECEIVE_SPLIT) return receive;
  size_t first = head->how == PWI_RECEIVE_INTO || head->prefix > size ? size : (size_t)head->prefix;
  make_place(&stream->places[0], 0, first);
  make_place(&stream->places[1], first, size - first);
  receive.into = head->how == PWI_RECEIVE_INTO ? stream->places[0].block + PARTY_GUARD : memory_of(stream, 0);
  receive.rest = memory_of(stream, 1);
  return receive;
}

static struct pwi_receive on_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct party *party = enter(self, "message");
  struct pwi_receive receive = {.how = PWI_RECEIVE_DROP};
  struct party_link *entry = find_up(party, link, "message");
  struct packet_head head;
  if (entry && !packet_read_head(message->head, &head)) {
    party_fault(party, "the head of a message was changed on its way");
    entry = NULL;
  }
  if (entry) {
    struct party_stream *stream = &entry->in[head.lane];
    /* Without a plane both lanes are the connection, and a message may be said to have come over that. */
    if (head.lane != message->lane && (entry->can & PWI_LINK_HAS_PLANE || message->lane != PWI_LANE_LINK))
      party_fault(party, "a message came on the wrong lane");
    if (entry->closing) party_fault(party, "a message began after the link was closed");
    for (int lane = 0; lane < 2; lane++)
      if (entry->in[lane].open && entry->in[lane].carrier == message->lane)
        party_fault(party, "a message began before the one before it had ended");
    if (head.number != stream->next)
      party_fault(party, "message %llu came instead of %llu on lane %d", (unsigned long long)head.number,
                  (unsigned long long)stream->next, (int)head.lane);
    if (head.size != message->body_size) party_fault(party, "a body of the wrong size was announced");
    stream->next = head.number + 1;
    stream->carrier = message->lane;
    receive = begin_stream(stream, &head, message->body_size);
    stream->readies += message->ready;
    stream->ready = message->ready && head.how == PWI_RECEIVE_PIECES;
    if (stream->ready) party->ready_link = entry;
    hook(party, PARTY_ON_MESSAGE, entry, head.value);
  }
  leave(party);
  return receive;
}

/* The lane of an open message, from its context. */
static struct party_stream *find_stream(struct party *party, struct party_link *link, void *context, const char *what) {
  for (int lane = 0; link && lane < 2; lane++)
    if (context == &link->in[lane] && link->in[lane].open) return &link->in[lane];
  party_fault(party, "%s without a message, or with another's context", what);
  return NULL;
}

static void check_piece(struct party *party, struct party_link *link, struct party_stream *stream, size_t offset,
                        const void *data, size_t size) {
  if (stream->how != PWI_RECEIVE_PIECES && stream->how != PWI_RECEIVE_WHOLE)
    party_fault(party, "a piece of a body that was to be received otherwise");
  if (offset != stream->offset || size > stream->size - stream->offset) {
    party_fault(party, "piece [%zu, +%zu) of %zu where %zu was expected", offset, size, stream->size, stream->offset);
    return;
  }
  if (stream->how == PWI_RECEIVE_WHOLE && size != stream->size) party_fault(party, "a whole body came in parts");
  if (size == 0 && stream->size != 0) party_fault(party, "an empty piece");
  if (stream->ready) {
    if (stream->pieces == PWI_NET_READY_PIECES)
      party_fault(party, "a ready message has too many pieces");
    else
      stream->seen[stream->pieces] = (struct iovec){(void *)(uintptr_t)data, size};
  } else {
    if (size > 0 && (uintptr_t)data % PWI_NET_PIECE_ALIGN != 0)
      party_fault(party, "piece [%zu, +%zu) of %zu begins at an odd address", offset, size, stream->size);
    if (offset + size != stream->size && size % PWI_NET_PIECE_STEP != 0)
      party_fault(party, "an inner piece of %zu bytes", size);
  }
  size_t good = pattern_check(stream->seed, offset, data, size);
  if (good != size) party_wrong(party, link, "byte %zu of a body of %zu is wrong", offset + good, stream->size);
}

static void on_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct party *party = enter(self, "piece");
  struct party_link *entry = find_up(party, link, "piece");
  struct party_stream *stream = find_stream(party, entry, context, "piece");
  if (stream) {
    if (party->ready_link && (party->ready_link != entry || !stream->ready))
      party_fault(party, "a piece of another message came before a ready message had ended");
    check_piece(party, entry, stream, offset, data, size);
    stream->offset += size;
    stream->pieces++;
    hook(party, PARTY_ON_PIECE, entry, stream->value);
  }
  leave(party);
}

static void check_place(struct party *party, struct party_link *link, const struct party_stream *stream,
                        const struct party_place *place) {
  const uint8_t *body = place->block + PARTY_GUARD;
  size_t good = pattern_check(stream->seed, place->offset, body, place->size);
  if (good != place->size)
    party_wrong(party, link, "byte %zu of a body of %zu is wrong in place", place->offset + good, stream->size);
  for (size_t i = 0; i < PARTY_GUARD; i++)
    if (place->block[i] != 0xa5 || body[place->size + i] != 0xa5) party_fault(party, "written beside the body");
}

/* The promises about a ready message are kept to its end, unless we closed the link. */
static void end_ready(struct party *party, struct party_link *link, struct party_stream *stream, pawl_status status) {
  if (party->ready_link && party->ready_link != link)
    party_fault(party, "another message ended before a ready one had ended");
  if (!stream->ready || link->closing) return;
  party->ready_link = NULL;
  if (status != PAWL_OK) party_fault(party, "a ready message failed with %s", pawl_status_name(status));
  size_t offset = 0;
  for (unsigned i = 0; i < stream->pieces && i < PWI_NET_READY_PIECES; offset += stream->seen[i++].iov_len)
    if (pattern_check(stream->seed, offset, stream->seen[i].iov_base, stream->seen[i].iov_len) !=
        stream->seen[i].iov_len)
      party_wrong(party, link, "a piece of a ready body of %zu was gone before its end", stream->size);
}

static void check_whole(struct party *party, struct party_link *link, struct party_stream *stream) {
  bool in_pieces = stream->how == PWI_RECEIVE_PIECES || stream->how == PWI_RECEIVE_WHOLE;
  if (in_pieces && stream->offset != stream->size)
    party_fault(party, "a body of %zu bytes ended well after %zu", stream->size, stream->offset);
  if (stream->how == PWI_RECEIVE_WHOLE && stream->pieces > 1) party_fault(party, "a whole body came twice");
  for (int i = 0; i < 2; i++)
    if (stream->places[i].block) check_place(party, link, stream, &stream->places[i]);
}

static void on_message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct party *party = enter(self, "message_end");
  struct party_link *entry = find_up(party, link, "message_end");
  struct party_stream *stream = find_stream(party, entry, context, "message_end");
  if (stream) {
    end_ready(party, entry, stream, status);
    if (status == PAWL_OK) check_whole(party, entry, stream);
    stream->open = false;
    drop_places(stream);
    if (status == PAWL_OK) {
      stream->whole++;
      stream->bytes += stream->size;
    } else {
      stream->broken++;
    }
    hook(party, PARTY_ON_END, entry, stream->value);
  }
  leave(party);
}

static void on_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct party *party = enter(self, "done");
  struct party_link *entry = find(party, link);
  if (cookie == 0 || cookie > party->op_count || !entry) {
    party_fault(party, "done of an operation that was never begun");
  } else {
    struct party_op *op = &party->ops[cookie - 1];
    if (op->ended) party_fault(party, "an operation was done twice, or was refused and done");
    if (op->link != entry) party_fault(party, "done on another link than its operation's");
    if (entry->state == PARTY_DOWN) party_fault(party, "done after link_down");
    op->ended = true;
    op->status = status;
    free(op->memory);
    op->memory = NULL;
    entry->outstanding--;
    entry->done += status == PAWL_OK;
    entry->failed += status != PAWL_OK;
    hook(party, PARTY_ON_DONE, entry, cookie);
  }
  leave(party);
}

static void on_notified(void *self, struct pwi_link link, uint64_t value) {
  struct party *party = enter(self, "notified");
  struct party_link *entry = find_up(party, link, "notified");
  if (entry) {
    if (value == 0) party_fault(party, "notified of 0");
    entry->notifications++;
    entry->last_notified = value;
    hook(party, PARTY_ON_NOTIFIED, entry, value);
  }
  leave(party);
}

static void on_writable(void *self, struct pwi_link link) {
  struct party *party = enter(self, "writable");
  struct party_link *entry = find_up(party, link, "writable");
  if (entry) {
    if (!entry->full) party_fault(party, "writable, but the queue was not full");
    entry->full = false;
    entry->writables++;
    hook(party, PARTY_ON_WRITABLE, entry, 0);
  }
  leave(party);
}

static void on_held(void *self, struct pwi_link link, bool is_held) {
  struct party *party = enter(self, "held");
  struct party_link *entry = find_up(party, link, "held");
  if (entry) {
    if (entry->is_held == is_held) party_fault(party, "held said nothing new");
    entry->is_held = is_held;
    entry->holds += is_held;
    hook(party, PARTY_ON_HELD, entry, is_held);
  }
  leave(party);
}

static void on_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct party *party = enter(self, "timer");
  if (timer.id == 0) party_fault(party, "a timer has the number 0");
  party->fired = realloc(party->fired, (party->fired_count + 1) * sizeof *party->fired);
  if (!party->fired) abort();
  party->fired[party->fired_count++] = cookie;
  hook(party, PARTY_ON_TIMER, NULL, cookie);
  leave(party);
}

static void on_woken(void *self) {
  struct party *party = enter(self, "woken");
  party->woken++;
  hook(party, PARTY_ON_WOKEN, NULL, 0);
  leave(party);
}

const struct pwi_actor party_actor = {
    .greet = on_greet,
    .link_up = on_greeted_link_up,
    .link_down = on_link_down,
    .message = on_message,
    .piece = on_piece,
    .message_end = on_message_end,
    .done = on_done,
    .notified = on_notified,
    .writable = on_writable,
    .held = on_held,
    .timer = on_timer,
    .woken = on_woken,
};

const struct pwi_actor party_bare_actor = {
    .link_up = on_link_up,
    .link_down = on_link_down,
    .message = on_message,
    .piece = on_piece,
    .message_end = on_message_end,
};
