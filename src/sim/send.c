/* Sending: the bounded queue of a link, its lanes, and the time of `done`. */
#include <string.h>

#include "base/hash.h"
#include "sim/world.h"

/* --- the queue ------------------------------------------------------------------------------------------ */

/* The queue of the link lane is its own; to that of the data lane everything belongs. */
static size_t count_of(const struct sim_end *end, enum pwi_lane lane) {
  return end->queued_count[PWI_LANE_LINK] + (lane == PWI_LANE_DATA ? end->queued_count[PWI_LANE_DATA] : 0);
}

static size_t bytes_of(const struct sim_end *end, enum pwi_lane lane) {
  return end->queued_bytes[PWI_LANE_LINK] + (lane == PWI_LANE_DATA ? end->queued_bytes[PWI_LANE_DATA] : 0);
}

bool pwi_sim_queue_has_room(struct sim_end *end, enum pwi_lane lane, size_t bytes) {
  const struct pwi_net_limits *limits = &end->node->limits;
  size_t count = count_of(end, lane), queued = bytes_of(end, lane);
  bool fits = count == 0 || (bytes <= limits->queue_bytes && queued <= limits->queue_bytes - bytes);
  if (fits && count < limits->queue_count) return true;
  end->wants_room[lane] = true;
  return false;
}

static size_t weight(const struct sim_message *message) { return message->size + PWI_NET_HEAD_SIZE; }

static enum pwi_lane queue_of(const struct sim_message *message) {
  return message->is_of_link ? PWI_LANE_LINK : PWI_LANE_DATA;
}

void pwi_sim_queue_enter(struct sim_end *end, struct sim_message *message) {
  message->queued = true;
  end->queued_bytes[queue_of(message)] += weight(message);
  end->queued_count[queue_of(message)]++;
}

static bool has_room_again(struct sim_end *end, enum pwi_lane lane) {
  const struct pwi_net_limits *limits = &end->node->limits;
  if (!end->wants_room[lane] || end->state != END_UP) return false;
  if (bytes_of(end, lane) > limits->queue_bytes / 2 || count_of(end, lane) > limits->queue_count / 2) return false;
  end->wants_room[lane] = false;
  return true;
}

void pwi_sim_queue_leave(struct sim_end *end, struct sim_message *message) {
  if (!message->queued) return;
  message->queued = false;
  end->queued_bytes[queue_of(message)] -= weight(message);
  end->queued_count[queue_of(message)]--;
  bool link = has_room_again(end, PWI_LANE_LINK), data = has_room_again(end, PWI_LANE_DATA);
  if (link || data) pwi_sim_schedule_end(end->node->sim, end->node->sim->now, EVENT_WRITABLE, end, false);
}

void pwi_sim_act_writable(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if (end->state != END_UP) return;
  pwi_sim_trace(sim, event, 0, 0);
  struct pwi_net *net = &end->net->net;
  if (net->actor->writable) net->actor->writable(net->self, (struct pwi_link){end->id});
}

/* --- done ----------------------------------------------------------------------------------------------- */

void pwi_sim_owe_done(struct sim_end *end, struct sim_message *message) {
  message->unfinished = true;
  message->before = end->unfinished_tail;
  if (end->unfinished_tail)
    end->unfinished_tail->after = message;
  else
    end->unfinished = message;
  end->unfinished_tail = message;
}

void pwi_sim_finish(struct sim_end *end, struct sim_message *message, pawl_status status) {
  if (message->before)
    message->before->after = message->after;
  else
    end->unfinished = message->after;
  if (message->after)
    message->after->before = message->before;
  else
    end->unfinished_tail = message->before;
  message->unfinished = false;
  uint64_t cookie = message->cookie;
  pwi_sim_message_release(end->node->sim, message);
  struct pwi_net *net = &end->net->net;
  if (cookie && net->actor->done) net->actor->done(net->self, (struct pwi_link){end->id}, cookie, status);
}

/* Either `done` comes before delivery, as when the system has taken the bytes; or pwi_sim_shipped
 * schedules it after the arrival. */
static void plan_done(struct sim_end *end, struct sim_message *message) {
  struct pwi_sim *sim = end->node->sim;
  pwi_sim_owe_done(end, message);
  message->early = message->kind != MESSAGE_FENCE && message->arrives != PWI_SIM_UNKNOWN &&
                   end->socket_bytes + weight(message) <= sim->config.socket_bytes &&
                   pwi_random_chance(&sim->random, sim->config.early_done_chance);
  if (!message->early) return;
  end->socket_bytes += weight(message);
  uint64_t wait = pwi_random_below(&sim->random, (uint64_t)(message->arrives - message->given) + 1);
  struct sim_event *event = pwi_sim_schedule_end(sim, message->given + (int64_t)wait, EVENT_DONE, end, false);
  event->with.message = message;
}

void pwi_sim_act_done(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if (end->state != END_UP && end->state != END_CLOSING) return;
  struct sim_message *message = event->with.message;
  event->cookie = message->cookie;
  pwi_sim_trace(sim, event, message->size, message->cookie);
  pwi_sim_message_check(sim, message, end->node);
  if (message->travelling && message->kind != MESSAGE_GET && !pwi_sim_message_keep(sim, message, end->node))
    pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for a body");
  pwi_sim_finish(end, message, event->status);
  pwi_sim_close_if_drained(end);
}

/* --- lanes ---------------------------------------------------------------------------------------------- */

/* Schedules one event for the head of a lane; the next one is scheduled when it has arrived. On a data
 * plane puts land without help of the receiving process. */
void pwi_sim_lane_schedule(struct sim_end *sender, unsigned index, int64_t time) {
  struct sim_lane *lane = &sender->out[index];
  struct sim_end *to = sender->peer;
  if (!lane->head || lane->scheduled || to->state == END_GONE) return;
  if (lane->head->arrives == PWI_SIM_UNKNOWN) {
    if (!lane->flows && !pwi_sim_lane_is_held(sender, index)) pwi_sim_flow_lane(sender->node->sim, sender, index);
    return;
  }
  if (time < lane->head->arrives) time = lane->head->arrives;
  struct sim_event *event = pwi_sim_schedule_end(sender->node->sim, time, EVENT_DELIVER, to, true);
  event->lane = (uint8_t)index;
  lane->scheduled = true;
  if (index == PWI_SIM_LANE_PUTS && (sender->link->can & PWI_LINK_HAS_PLANE)) {
    event->node = NULL;
    event->incarnation = 0;
  }
}

/* A large message becomes a flow once it is the head of its lane. */
static int64_t arrival_of(struct pwi_sim *sim, struct sim_end *end, unsigned index, const struct sim_message *message) {
  if (pwi_sim_is_flow(sim, weight(message))) return PWI_SIM_UNKNOWN;
  enum pwi_sim_packet_kind kind = index == PWI_SIM_LANE_PUTS ? PWI_SIM_PACKET_PUT : PWI_SIM_PACKET_MESSAGE;
  return pwi_sim_arrival(sim, end, index, kind, weight(message), 0, message->given);
}

void pwi_sim_ship(struct sim_end *end, unsigned index, struct sim_message *message) {
  struct pwi_sim *sim = end->node->sim;
  struct sim_lane *lane = &end->out[index];
  message->given = pwi_sim_node_time(end->node);
  message->arrives = arrival_of(sim, end, index, message);
  if (message->arrives < lane->floor) message->arrives = lane->floor;
  if (message->arrives != PWI_SIM_UNKNOWN) lane->floor = message->arrives;
  message->travelling = true;
  message->is_of_link = index == PWI_LANE_LINK;
  if (sim->config.prints)
    lane->sent = pwi_hash(message->head, PWI_NET_HEAD_SIZE, pwi_sim_message_hash(message) ^ pwi_mix64(lane->sent));
  pwi_sim_queue_enter(end, message);
  if (lane->tail)
    lane->tail->next = message;
  else
    lane->head = message;
  lane->tail = message;
  if (message->cookie) plan_done(end, message);
  pwi_sim_lane_schedule(end, index, sim->now);
}

struct sim_message *pwi_sim_lane_take(struct sim_lane *lane) {
  struct sim_message *message = lane->head;
  lane->head = message->next;
  lane->flows = false;
  if (!lane->head) lane->tail = NULL;
  message->next = NULL;
  return message;
}

void pwi_sim_shipped(struct sim_end *sender, struct sim_message *message) {
  struct pwi_sim *sim = sender->node->sim;
  message->travelling = false;
  if (sender->state != END_UP && sender->state != END_CLOSING) {
    pwi_sim_message_release(sim, message);
    return;
  }
  pwi_sim_queue_leave(sender, message);
  if (message->early) {
    sender->socket_bytes -= weight(message);
  } else if (message->unfinished) {
    int64_t back = pwi_sim_arrival(sim, sender->peer, PWI_LANE_LINK, PWI_SIM_PACKET_SIGNAL, 0, 0, sim->now);
    pwi_sim_schedule_end(sim, back, EVENT_DONE, sender, true)->with.message = message;
  }
  pwi_sim_message_release(sim, message);
  pwi_sim_close_if_drained(sender);
}

pawl_status pwi_sim_net_send(struct pwi_net *base, struct pwi_link link, const struct pwi_send *send,
                             size_t body_size) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct sim_end *end = pwi_sim_end_find(net, link);
  if (!end || end->state != END_UP) return PAWL_NOT_FOUND;
  if (send->lane != PWI_LANE_LINK && send->lane != PWI_LANE_DATA) return PAWL_INVALID;
  if (pwi_sim_reserve(net->sim, 4)) return PAWL_NO_MEMORY;
  if (!pwi_sim_queue_has_room(end, send->lane, body_size + PWI_NET_HEAD_SIZE)) return PAWL_QUEUE_FULL;
  struct sim_message *message = pwi_sim_message_new(net->sim, body_size, body_size > PWI_NET_COPY_MAX);
  if (!message) return PAWL_NO_MEMORY;
  memcpy(message->head, send->head, PWI_NET_HEAD_SIZE);
  pwi_sim_message_fill(message, send->body, send->body_count);
  message->cookie = send->cookie;
  if (message->borrowed) {
    message->hash = pwi_sim_message_hash(message);
    message->body_region = pwi_sim_body_region(net, send->body, send->body_count);
  }
  net->net.counts.messages_sent++;
  net->net.counts.bytes_sent += body_size + PWI_NET_HEAD_SIZE;
  pwi_sim_ship(end, send->lane, message);
  return PAWL_OK;
}

/* --- holds ---------------------------------------------------------------------------------------------- */

bool pwi_sim_lane_is_held(const struct sim_end *sender, unsigned index) {
  const struct sim_end *to = sender->peer;
  if (index != PWI_LANE_DATA || !to->holds || sender->out[index].begun) return false;
  return sender->state == END_UP && to->state == END_UP && to->node->sim->now >= to->hold_from;
}

/* Messages may begin until the hold has reached the peer. */
pawl_status pwi_sim_net_hold(struct pwi_net *base, struct pwi_link link, bool hold) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct sim_end *end = pwi_sim_end_find(net, link);
  if (!end || end->state != END_UP) return PAWL_NOT_FOUND;
  if (end->holds == hold) return PAWL_OK;
  struct pwi_sim *sim = net->sim;
  if (pwi_sim_reserve(sim, 2)) return PAWL_NO_MEMORY;
  struct sim_lane *lane = &end->out[PWI_LANE_LINK];
  int64_t now = pwi_sim_node_time(end->node);
  int64_t time = pwi_sim_arrival(sim, end, PWI_LANE_LINK, PWI_SIM_PACKET_SIGNAL, 0, 0, now);
  if (time < lane->floor) time = lane->floor;
  lane->floor = time;
  end->holds = hold;
  end->hold_from = sim->now + (int64_t)pwi_random_below(&sim->random, (uint64_t)(time - sim->now) + 1);
  pwi_sim_schedule_end(sim, time, EVENT_HOLD, end->peer, true)->value = hold;
  if (!hold) pwi_sim_lane_schedule(end->peer, PWI_LANE_DATA, time);
  return PAWL_OK;
}

void pwi_sim_act_hold(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if (end->state != END_UP) return;
  pwi_sim_trace(sim, event, 0, event->value);
  struct pwi_net *net = &end->net->net;
  if (net->actor->held) net->actor->held(net->self, (struct pwi_link){end->id}, event->value != 0);
}
