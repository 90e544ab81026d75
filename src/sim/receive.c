/* Receiving: a message begins, its body comes in pieces, it ends. Time may pass in between, and the link
 * may break, unless the message is ready. */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "net/places.h"
#include "sim/world.h"

#define READY_MAX ((size_t)64 << 10) /* bodies up to this size may arrive with their head on any lane */
#define READY_GAP 31                 /* most bytes between two pieces */
#define POISON 0xdd                  /* a ready body is overwritten with this once it has ended */

static struct pwi_link handle_of(const struct sim_end *end) { return (struct pwi_link){end->id}; }

static void end_message(struct sim_end *end, struct sim_lane *lane, pawl_status status) {
  if (!lane->owed) return;
  lane->owed = false;
  struct pwi_net *net = &end->net->net;
  if (net->actor->message_end) net->actor->message_end(net->self, handle_of(end), lane->receive.context, status);
}

void pwi_sim_receive_abort(struct sim_end *end, unsigned lane, pawl_status status) {
  end_message(end, &end->peer->out[lane], status);
}

/* The actor closed the link, in this call or before: the rest of the message is dropped. */
static void stop_if_closing(struct sim_end *end, struct sim_lane *lane) {
  if (end->state == END_UP) return;
  end_message(end, lane, PAWL_LINK_CLOSED);
  lane->receive.how = PWI_RECEIVE_DROP;
}

static bool draw_ready(struct pwi_sim *sim, const struct sim_end *end, unsigned index, size_t size) {
  bool in_place = index == PWI_LANE_DATA && (end->link->can & PWI_LINK_IN_PLACE);
  return (in_place || size <= READY_MAX) && pwi_random_chance(&sim->random, sim->config.ready_chance);
}

/* False if the link went down in the callback. */
static bool begin(struct pwi_sim *sim, struct sim_end *end, unsigned index, struct sim_message *message) {
  struct sim_lane *lane = &end->peer->out[index];
  struct pwi_net *net = &end->net->net;
  lane->begun = true;
  lane->ready = false;
  lane->receive = (struct pwi_receive){.how = PWI_RECEIVE_DROP};
  pwi_sim_message_check(sim, message, end->peer->node);
  if (end->state != END_UP || (end->link->swallows && index == PWI_LANE_DATA)) return true;
  if (message->size > net->limits.message_max) {
    pwi_sim_end_down(end, PAWL_LINK_PROTOCOL, PAWL_LINK_PROTOCOL);
    return false;
  }
  struct pwi_message shown = {.head = message->head,
                              .body_size = message->size,
                              .lane = (enum pwi_lane)index,
                              .ready = draw_ready(sim, end, index, message->size)};
  lane->receive = net->actor->message ? net->actor->message(net->self, handle_of(end), &shown)
                                      : (struct pwi_receive){.how = PWI_RECEIVE_DROP};
  lane->owed = true;
  if (lane->receive.how == PWI_RECEIVE_REFUSE) {
    pwi_sim_end_down(end, PAWL_LINK_PROTOCOL, PAWL_LINK_PROTOCOL);
    return false;
  }
  stop_if_closing(end, lane);
  lane->ready = shown.ready && lane->receive.how == PWI_RECEIVE_PIECES;
  return true;
}

/* How much of the rest arrives next. Small bodies mostly arrive whole. */
static size_t draw_piece(struct pwi_sim *sim, size_t left) {
  if (left <= PWI_NET_PIECE_STEP) return left;
  if (left <= PWI_NET_COPY_MAX && !pwi_random_chance(&sim->random, sim->config.split_chance)) return left;
  size_t steps = (size_t)pwi_random_below(&sim->random, left / PWI_NET_PIECE_STEP) + 1;
  return steps * PWI_NET_PIECE_STEP;
}

static void show_piece(struct pwi_sim *sim, struct sim_end *end, struct sim_lane *lane, size_t offset, size_t size) {
  struct pwi_net *net = &end->net->net;
  const uint8_t *data = pwi_sim_message_view(sim, lane->head, offset, size);
  if (!data)
    pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for a piece");
  else if (net->actor->piece)
    net->actor->piece(net->self, handle_of(end), lane->receive.context, offset, data, size);
}

static void write_part(const struct sim_lane *lane, size_t offset, size_t size) {
  const struct pwi_receive *receive = &lane->receive;
  size_t prefix = receive->how == PWI_RECEIVE_SPLIT ? receive->prefix : lane->head->size;
  struct pwi_places places = pwi_places_two(receive->into, prefix, receive->rest, lane->head->size);
  struct iovec parts[2];
  pwi_places_advance(&places, offset);
  size_t count = pwi_places_next(&places, size, parts);
  for (size_t i = 0; i < count; i++) {
    pwi_sim_message_read(lane->head, offset, parts[i].iov_len, parts[i].iov_base);
    offset += parts[i].iov_len;
  }
}

static void take_piece(struct pwi_sim *sim, struct sim_end *end, struct sim_lane *lane, size_t size) {
  struct sim_message *message = lane->head;
  size_t offset = message->offset;
  message->offset += size;
  switch (lane->receive.how) {
  case PWI_RECEIVE_PIECES:
    show_piece(sim, end, lane, offset, size);
    break;
  case PWI_RECEIVE_WHOLE:
    if (message->offset == message->size) show_piece(sim, end, lane, 0, message->size);
    break;
  case PWI_RECEIVE_INTO:
  case PWI_RECEIVE_SPLIT:
    write_part(lane, offset, size);
    break;
  case PWI_RECEIVE_DROP:
  case PWI_RECEIVE_REFUSE:
    break;
  }
  stop_if_closing(end, lane);
}

static void complete(struct pwi_sim *sim, struct sim_end *end, struct sim_lane *lane) {
  struct sim_end *sender = end->peer;
  pwi_sim_message_check(sim, lane->head, sender->node);
  struct sim_message *message = pwi_sim_lane_take(lane);
  lane->begun = false;
  lane->taken++;
  end->net->net.counts.messages_received++;
  end->net->net.counts.bytes_received += message->size + PWI_NET_HEAD_SIZE;
  end_message(end, lane, PAWL_OK);
  pwi_sim_shipped(sender, message);
}

/* The number of pieces of a ready body: one in half of the cases. None is empty. */
static size_t draw_count(struct pwi_sim *sim, size_t size) {
  if (size < 2 || pwi_random_chance(&sim->random, 0.5)) return size > 0;
  size_t most = size < PWI_NET_READY_PIECES ? size : PWI_NET_READY_PIECES;
  return 2 + (size_t)pwi_random_below(&sim->random, most - 1);
}

/* Lays the pieces out in `block`, at odd offsets with a gap before each, and delivers them. */
static void show_all(struct pwi_sim *sim, struct sim_end *end, struct sim_lane *lane, size_t count, uint8_t *block) {
  struct pwi_net *net = &end->net->net;
  struct sim_message *message = lane->head;
  for (size_t at = 0; count > 0 && lane->receive.how == PWI_RECEIVE_PIECES; count--) {
    size_t offset = message->offset, left = message->size - offset;
    size_t size = count == 1 ? left : 1 + (size_t)pwi_random_below(&sim->random, left - (count - 1));
    at += 1 + (size_t)pwi_random_below(&sim->random, READY_GAP);
    pwi_sim_message_read(message, offset, size, block + at);
    message->offset += size;
    if (net->actor->piece)
      net->actor->piece(net->self, handle_of(end), lane->receive.context, offset, block + at, size);
    at += size;
    stop_if_closing(end, lane);
  }
}

/* Delivers everything at once. The pieces stay in place until message_end has returned, and no longer. */
static void deliver_ready(struct pwi_sim *sim, struct sim_end *end, struct sim_lane *lane) {
  size_t count = draw_count(sim, lane->head->size), room = lane->head->size + count * READY_GAP;
  uint8_t *block = pwi_alloc(room);
  if (!block) {
    pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for a ready body");
    return;
  }
  memset(block, POISON, room);
  show_all(sim, end, lane, count, block);
  complete(sim, end, lane);
  memset(block, POISON, room);
  pwi_free(block);
}

static uint64_t body_hash(const struct pwi_sim *sim, const struct sim_message *message) {
  if (!sim->config.trace) return 0;
  uint64_t hash = message->hash ? message->hash : pwi_hash(message->body, message->size, 0);
  return pwi_hash(message->head, PWI_NET_HEAD_SIZE, hash);
}

/* Delivers the head of the lane, or a part of it. True if it has arrived completely and the link is still
 * up. */
static bool deliver(struct pwi_sim *sim, struct sim_end *end, unsigned index, bool gaps) {
  struct sim_lane *lane = &end->peer->out[index];
  struct sim_message *message = lane->head;
  if (!lane->begun && !begin(sim, end, index, message)) return false;
  if (lane->ready) {
    deliver_ready(sim, end, lane);
    return !sim->failed;
  }
  if (message->size == 0 && lane->receive.how == PWI_RECEIVE_WHOLE) take_piece(sim, end, lane, 0);
  while (message->offset < message->size) {
    take_piece(sim, end, lane, draw_piece(sim, message->size - message->offset));
    if (sim->failed) return false;
    if (!gaps || message->offset == message->size || !pwi_random_chance(&sim->random, sim->config.gap_chance)) continue;
    pwi_sim_lane_schedule(end->peer, index, sim->now + pwi_sim_delay_draw(&sim->config.plane, &sim->random));
    return false;
  }
  complete(sim, end, lane);
  return true;
}

/* Asks the fabric again, which may delay the packet further. */
static bool is_late(struct pwi_sim *sim, struct sim_end *sender, unsigned index) {
  struct sim_lane *lane = &sender->out[index];
  struct sim_message *message = lane->head;
  if (!sim->fabric.asks_again || lane->begun || message->offset) return false;
  int64_t time =
      pwi_sim_arrival(sim, sender, index, index == PWI_SIM_LANE_PUTS ? PWI_SIM_PACKET_PUT : PWI_SIM_PACKET_MESSAGE,
                      message->size + PWI_NET_HEAD_SIZE, ++message->asked, message->given);
  if (time <= sim->now) return false;
  message->arrives = time;
  if (lane->floor < time) lane->floor = time;
  pwi_sim_lane_schedule(sender, index, time);
  return true;
}

void pwi_sim_act_deliver(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end, *sender = end->peer;
  struct sim_lane *lane = &sender->out[event->lane];
  lane->scheduled = false;
  if ((end->state != END_UP && end->state != END_CLOSING) || !lane->head) return;
  if (pwi_sim_lane_is_held(sender, event->lane)) return; /* the end of the hold schedules it again */
  if (is_late(sim, sender, event->lane)) return;
  end->last_heard = sim->now;
  pwi_sim_trace(sim, event, lane->head->size, body_hash(sim, lane->head));
  uint64_t serial = end->serial;
  if (event->lane == PWI_SIM_LANE_PUTS)
    pwi_sim_land(sim, end);
  else
    deliver(sim, end, event->lane, true);
  if (end->serial == serial) pwi_sim_lane_schedule(sender, event->lane, sim->now);
}

void pwi_sim_receive_rest(struct sim_end *end, int64_t time) {
  struct pwi_sim *sim = end->node->sim;
  for (unsigned lane = PWI_LANE_LINK; lane <= PWI_LANE_DATA; lane++) {
    const struct sim_lane *from = &end->peer->out[lane];
    while (end->state == END_UP && from->head && from->head->arrives <= time)
      if (!deliver(sim, end, lane, false)) return;
  }
}
