/* Puts, gets and fences. Puts of one link land in order, perhaps in parts, and some after the link is
 * gone; a get reads in one or two steps. */
#include <string.h>

#include "base/checked.h"
#include "sim/world.h"

static pawl_status begin(struct pwi_net *net, struct pwi_link link, struct pwi_remote handle, size_t size,
                         struct sim_end **end_out, const struct sim_remote **remote_out) {
  struct sim_end *end = pwi_sim_end_find((struct sim_net *)(void *)net, link);
  if (!end || end->state != END_UP) return PAWL_NOT_FOUND;
  const struct sim_remote *remote = pwi_sim_remote_find(end, handle);
  if (!remote) return PAWL_INVALID;
  if (pwi_sim_reserve(end->node->sim, 4)) return PAWL_NO_MEMORY;
  if (!pwi_sim_queue_has_room(end, PWI_LANE_DATA, size + PWI_NET_HEAD_SIZE)) return PAWL_QUEUE_FULL;
  *end_out = end;
  *remote_out = remote;
  return PAWL_OK;
}

static void aim(struct sim_message *message, enum sim_message_kind kind, const struct sim_remote *remote,
                uint64_t offset, uint64_t cookie) {
  message->kind = (uint8_t)kind;
  message->region_slot = remote->region_slot;
  message->region_serial = remote->region_serial;
  message->access = remote->access;
  message->region_offset = offset;
  message->cookie = cookie;
}

pawl_status pwi_sim_net_put(struct pwi_net *base, struct pwi_link link, struct pwi_remote handle, uint64_t offset,
                            const void *from, size_t size, uint64_t notify, uint64_t cookie) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct sim_end *end;
  const struct sim_remote *remote;
  pawl_status status = begin(base, link, handle, size, &end, &remote);
  if (status) return status;
  struct sim_message *message = pwi_sim_message_new(net->sim, size, size > PWI_NET_COPY_MAX);
  if (!message) return PAWL_NO_MEMORY;
  aim(message, MESSAGE_PUT, remote, offset, cookie);
  message->notify = notify;
  struct iovec part = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
  pwi_sim_message_fill(message, &part, 1);
  if (message->borrowed) {
    message->hash = pwi_sim_message_hash(message);
    message->body_region = pwi_sim_body_region(net, &part, 1);
  }
  net->net.counts.bytes_sent += size;
  pwi_sim_ship(end, PWI_SIM_LANE_PUTS, message);
  return PAWL_OK;
}

pawl_status pwi_sim_net_fence(struct pwi_net *base, struct pwi_link link, uint64_t cookie) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct sim_end *end = pwi_sim_end_find(net, link);
  if (!end || end->state != END_UP) return PAWL_NOT_FOUND;
  if (pwi_sim_reserve(net->sim, 4)) return PAWL_NO_MEMORY;
  if (!pwi_sim_queue_has_room(end, PWI_LANE_DATA, PWI_NET_HEAD_SIZE)) return PAWL_QUEUE_FULL;
  struct sim_message *message = pwi_sim_message_new(net->sim, 0, false);
  if (!message) return PAWL_NO_MEMORY;
  message->kind = MESSAGE_FENCE;
  message->cookie = cookie;
  pwi_sim_ship(end, PWI_SIM_LANE_PUTS, message);
  return PAWL_OK;
}

/* --- landing -------------------------------------------------------------------------------------------- */

/* The owner detects an access that was not permitted, and takes the link down as soon as it runs. */
static void punish(struct pwi_sim *sim, struct sim_end *owner) {
  if (owner->state != END_UP) return;
  owner->state = END_CLOSING;
  owner->fin_sent = true;
  pwi_sim_schedule_end(sim, sim->now, EVENT_DOWN, owner, false)->status = PAWL_LINK_PROTOCOL;
}

static bool may(const struct sim_message *message, const struct sim_region *region, unsigned access) {
  return (message->access & access) && pwi_span_fits(message->region_offset, message->size, region->region.size);
}

/* Access to a region that was closed in the meantime: some nets take the link down, some do not notice. */
static bool is_overlooked(struct pwi_sim *sim) { return pwi_random_chance(&sim->random, 0.5); }

static void copy_in(struct sim_message *message, struct sim_region *region, size_t size) {
  uint8_t *to = (uint8_t *)region->region.memory + message->region_offset + message->offset;
  pwi_sim_message_read(message, message->offset, size, to);
  message->offset += size;
}

/* False if a part of it is still to come. */
static bool land_put(struct pwi_sim *sim, struct sim_end *end, struct sim_message *message) {
  struct sim_region *region = pwi_sim_region_find(sim, message->region_slot, message->region_serial);
  if (!region && is_overlooked(sim)) return true;
  if (!region || !may(message, region, PWI_ACCESS_WRITE)) {
    punish(sim, end);
    return true;
  }
  size_t left = message->size - message->offset;
  pwi_sim_message_check(sim, message, end->peer->node);
  if (left > 1 && message->offset == 0 && pwi_random_chance(&sim->random, sim->config.split_chance)) {
    copy_in(message, region, (size_t)pwi_random_below(&sim->random, left - 1) + 1);
    return false;
  }
  copy_in(message, region, left);
  end->net->net.counts.bytes_received += message->size;
  if (message->notify) pwi_sim_schedule_end(sim, sim->now, EVENT_NOTIFY, end, false)->value = message->notify;
  return true;
}

void pwi_sim_land(struct pwi_sim *sim, struct sim_end *end) {
  struct sim_end *sender = end->peer;
  struct sim_lane *lane = &sender->out[PWI_SIM_LANE_PUTS];
  if (lane->head->kind == MESSAGE_PUT && !land_put(sim, end, lane->head)) {
    int64_t later = sim->now + pwi_sim_delay_draw(&sim->config.plane, &sim->random);
    pwi_sim_lane_schedule(sender, PWI_SIM_LANE_PUTS, later);
    return;
  }
  pwi_sim_shipped(sender, pwi_sim_lane_take(lane));
}

void pwi_sim_act_notify(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if (end->state != END_UP) return;
  pwi_sim_trace(sim, event, 0, 0);
  struct pwi_net *net = &end->net->net;
  if (net->actor->notified) net->actor->notified(net->self, (struct pwi_link){end->id}, event->value);
}

/* --- late writes ---------------------------------------------------------------------------------------- */

/* Of the puts that have not landed yet, some of the first still land later, in order. */
void pwi_sim_puts_detach(struct sim_end *sender) {
  struct pwi_sim *sim = sender->node->sim;
  struct sim_lane *lane = &sender->out[PWI_SIM_LANE_PUTS];
  int64_t time = sim->now;
  bool more = true;
  while (lane->head) {
    struct sim_message *message = pwi_sim_lane_take(lane);
    more = more && message->given <= sim->now && pwi_random_chance(&sim->random, sim->config.late_chance) &&
           pwi_sim_message_keep(sim, message, sender->node);
    if (more && message->kind == MESSAGE_PUT) {
      time += pwi_sim_delay_draw(&sim->config.late, &sim->random);
      pwi_sim_schedule(sim, time, EVENT_LATE_PUT, NULL)->with.message = message;
    } else {
      message->travelling = false;
      pwi_sim_message_release(sim, message);
    }
  }
}

void pwi_sim_act_late_put(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_message *message = event->with.message;
  struct sim_region *region = pwi_sim_region_find(sim, message->region_slot, message->region_serial);
  pwi_sim_trace(sim, event, message->size, region != NULL);
  if (region && may(message, region, PWI_ACCESS_WRITE)) copy_in(message, region, message->size - message->offset);
  message->travelling = false;
  pwi_sim_message_release(sim, message);
}

/* --- gets ----------------------------------------------------------------------------------------------- */

static void schedule_glance(struct pwi_sim *sim, struct sim_end *owner, struct sim_message *message, int64_t time) {
  struct sim_event *event = pwi_sim_schedule_end(sim, time, EVENT_GET, owner, true);
  event->with.message = message;
  if (!(owner->link->can & PWI_LINK_HAS_PLANE)) return;
  event->node = NULL;
  event->incarnation = 0;
}

pawl_status pwi_sim_net_get(struct pwi_net *base, struct pwi_link link, struct pwi_remote handle, uint64_t offset,
                            void *into, size_t size, uint64_t cookie) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct sim_end *end;
  const struct sim_remote *remote;
  pawl_status status = begin(base, link, handle, size, &end, &remote);
  if (status) return status;
  struct sim_message *message = pwi_sim_message_new(net->sim, 0, false);
  if (!message) return PAWL_NO_MEMORY;
  aim(message, MESSAGE_GET, remote, offset, cookie);
  message->size = size;
  message->into = into;
  message->travelling = true;
  pwi_sim_queue_enter(end, message);
  pwi_sim_owe_done(end, message);
  int64_t given = pwi_sim_node_time(end->node);
  schedule_glance(net->sim, end->peer, message,
                  pwi_sim_arrival(net->sim, end, PWI_SIM_LANE_PUTS, PWI_SIM_PACKET_GET, 0, 0, given));
  return PAWL_OK;
}

static void answer(struct pwi_sim *sim, struct sim_end *reader, struct sim_message *message, pawl_status status) {
  message->travelling = false;
  pwi_sim_queue_leave(reader, message);
  if (pwi_sim_is_flow(sim, message->size)) {
    pwi_sim_flow_answer(sim, reader, message, status);
    return;
  }
  int64_t back =
      pwi_sim_arrival(sim, reader->peer, PWI_SIM_LANE_PUTS, PWI_SIM_PACKET_ANSWER, message->size, 0, sim->now);
  struct sim_event *event = pwi_sim_schedule_end(sim, back, EVENT_DONE, reader, true);
  event->with.message = message;
  event->status = status;
}

/* `into` belongs to the net until `done`, so bytes are written there at once. */
void pwi_sim_act_get(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *owner = event->end, *reader = owner->peer;
  if (owner->state == END_GONE || (reader->state != END_UP && reader->state != END_CLOSING)) return;
  struct sim_message *message = event->with.message;
  if (message->cancelled) return;
  pwi_sim_trace(sim, event, message->size, 0);
  struct sim_region *region = pwi_sim_region_find(sim, message->region_slot, message->region_serial);
  if (!region && is_overlooked(sim)) {
    answer(sim, reader, message, PAWL_NOT_FOUND);
    return;
  }
  if (!region || !may(message, region, PWI_ACCESS_READ)) {
    punish(sim, owner);
    return;
  }
  size_t left = message->size - message->offset, size = left;
  if (left > 1 && message->offset == 0 && pwi_random_chance(&sim->random, sim->config.split_chance))
    size = (size_t)pwi_random_below(&sim->random, left - 1) + 1;
  const uint8_t *from = (const uint8_t *)region->region.memory + message->region_offset + message->offset;
  if (size) memcpy(message->into + message->offset, from, size);
  message->offset += size;
  if (message->offset < message->size)
    schedule_glance(sim, owner, message, sim->now + pwi_sim_delay_draw(&sim->config.plane, &sim->random));
  else
    answer(sim, reader, message, PAWL_OK);
}
