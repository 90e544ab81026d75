/* Closing links: close, break, silence; and the effects of cuts. */
#include "base/memory.h"
#include "sim/world.h"

static bool is_live(const struct sim_end *end) {
  return end->state == END_CONNECTING || end->state == END_UP || end->state == END_CLOSING;
}

static bool is_over(const struct sim_end *end) { return end->state == END_NONE || end->state == END_GONE; }

/* --- leaving -------------------------------------------------------------------------------------------- */

static void lane_empty(struct pwi_sim *sim, struct sim_lane *lane) {
  while (lane->head) {
    struct sim_message *message = lane->head;
    lane->head = message->next;
    message->travelling = false;
    pwi_sim_message_release(sim, message);
  }
  lane->tail = NULL;
}

static void end_clear(struct pwi_sim *sim, struct sim_end *end) {
  for (int lane = 0; lane < PWI_SIM_LANES; lane++) lane_empty(sim, &end->out[lane]);
  struct sim_event *event;
  while ((event = pwi_sim_queue_take(&end->held)) != NULL) pwi_sim_event_free(sim, event);
  if (end->net) {
    if (end->before)
      end->before->after = end->after;
    else
      end->net->ends = end->after;
    if (end->after) end->after->before = end->before;
  }
  pwi_free(end->remotes);
  pwi_free(end->hello);
  end->serial = 0;
  end->net = NULL;
}

void pwi_sim_end_leave(struct sim_end *end) {
  if (!is_over(end->peer)) return;
  struct sim_link *link = end->link;
  struct pwi_sim *sim = end->node->sim;
  if (link->flows) pwi_sim_flows_end(sim, link);
  for (int side = 0; side < 2; side++) end_clear(sim, &link->ends[side]);
  link->next = sim->link_pool;
  sim->link_pool = link;
}

void pwi_sim_end_tell(struct sim_end *from, pawl_status why) {
  if (!is_live(from->peer)) return;
  struct pwi_sim *sim = from->node->sim;
  int64_t now = pwi_sim_node_time(from->node), time;
  if (why == PAWL_LINK_RESET)
    time = now + pwi_sim_delay_draw(&sim->config.hang_up, &sim->random);
  else
    time = pwi_sim_arrival(sim, from, PWI_LANE_LINK, PWI_SIM_PACKET_SIGNAL, 0, 0, now);
  if (why != PAWL_LINK_RESET && time < from->out[PWI_LANE_LINK].floor) time = from->out[PWI_LANE_LINK].floor;
  pwi_sim_schedule_end(sim, time, EVENT_DOWN, from->peer, true)->status = why;
}

/* The memory of these bodies belongs to the sender again, or is gone with it. A body that has not been
 * read is lost from here on, or is read just now. A receiver that has begun to read in a region may
 * continue. */
static void detach_lane(struct sim_end *end, unsigned index, bool gone) {
  struct pwi_sim *sim = end->node->sim;
  struct sim_lane *lane = &end->out[index];
  bool plane = index == PWI_LANE_DATA && (end->link->can & PWI_LINK_HAS_PLANE);
  struct sim_message **place = &lane->head;
  struct sim_message *before = NULL;
  for (; *place; before = *place, place = &(*place)->next) {
    struct sim_message *message = *place;
    if (gone && message->given > sim->now) break; /* killed before it was sent */
    if (!message->borrowed) continue;
    if (plane && !gone && message->body_region && message == lane->head && lane->begun) {
      pwi_sim_message_check(sim, message, end->node);
      message->after_failure = true;
      continue;
    }
    bool is_of_region = message->body_region != 0;
    if (!pwi_random_chance(&sim->random, 0.5) || !pwi_sim_message_keep(sim, message, end->node)) break;
    if (plane) pwi_sim_message_garble(sim, message, is_of_region);
  }
  struct sim_lane rest = {.head = *place};
  if (!rest.head) return;
  *place = NULL;
  lane->tail = before;
  lane_empty(sim, &rest);
}

static void detach_all(struct sim_end *end, bool gone) {
  detach_lane(end, PWI_LANE_LINK, gone);
  detach_lane(end, PWI_LANE_DATA, gone);
  pwi_sim_puts_detach(end);
}

static void finish_all(struct sim_end *end, pawl_status status) {
  while (end->unfinished) {
    struct sim_message *message = end->unfinished;
    if (message->kind == MESSAGE_GET) message->travelling = false;
    pwi_sim_finish(end, message, message->cancelled ? PAWL_CANCELLED : status);
  }
}

void pwi_sim_end_down(struct sim_end *end, pawl_status why, pawl_status tell) {
  if (!is_live(end)) return;
  struct sim_net *net = end->net;
  bool announced = !end->accepted || end->state != END_CONNECTING;
  pawl_status broken = why ? why : PAWL_LINK_CLOSED;
  pwi_log(&end->node->log, PAWL_LOG_DEBUG, "link.down", "peer=%s why=%s", end->peer->node->name, pawl_status_name(why));
  end->state = END_GONE;
  pwi_sim_receive_abort(end, PWI_LANE_LINK, broken);
  pwi_sim_receive_abort(end, PWI_LANE_DATA, broken);
  detach_all(end, false);
  finish_all(end, broken);
  pwi_sim_slot_give(net, end);
  if (announced && net->net.actor->link_down) net->net.actor->link_down(net->net.self, (struct pwi_link){end->id}, why);
  if (tell) pwi_sim_end_tell(end, tell);
  pwi_sim_end_listen(end->peer);
  pwi_sim_end_leave(end);
}

/* Unlike pwi_sim_end_down it calls no callback: the process is gone. */
void pwi_sim_end_vanish(struct sim_end *end) {
  bool was_live = is_live(end);
  end->state = END_GONE;
  detach_all(end, true);
  while (end->unfinished) {
    struct sim_message *message = end->unfinished;
    end->unfinished = message->after;
    message->unfinished = false;
    if (message->kind == MESSAGE_GET) message->travelling = false;
    pwi_sim_message_release(end->node->sim, message);
  }
  end->net = NULL;
  if (was_live) pwi_sim_end_tell(end, PAWL_LINK_RESET);
  pwi_sim_end_listen(end->peer);
  pwi_sim_end_leave(end);
}

/* --- closing -------------------------------------------------------------------------------------------- */

void pwi_sim_net_close(struct pwi_net *base, struct pwi_link link, pawl_status why) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct sim_end *end = pwi_sim_end_find(net, link);
  if (!end || (end->state != END_UP && end->state != END_CONNECTING)) return;
  int64_t now = pwi_sim_node_time(net->node);
  end->why = why;
  if (end->state == END_CONNECTING) {
    if (!end->accepted) pwi_sim_schedule_end(net->sim, now, EVENT_DOWN, end, false)->status = PAWL_OK;
    return;
  }
  end->state = END_CLOSING;
  pwi_sim_schedule_end(net->sim, now + net->net.limits.linger_ns, EVENT_LINGER_LIMIT, end, false);
  pwi_sim_lane_schedule(end, PWI_LANE_DATA, now); /* holds of both sides end */
  pwi_sim_lane_schedule(end->peer, PWI_LANE_DATA, now);
  pwi_sim_close_if_drained(end);
}

/* The FIN waits until everything has arrived and been confirmed, so every `done` comes before it. */
void pwi_sim_close_if_drained(struct sim_end *end) {
  if (end->state != END_CLOSING || end->fin_sent || end->unfinished || !is_live(end->peer)) return;
  for (int lane = 0; lane < PWI_SIM_LANES; lane++)
    if (end->out[lane].head) return;
  struct pwi_sim *sim = end->node->sim;
  int64_t time = pwi_sim_arrival(sim, end, PWI_LANE_LINK, PWI_SIM_PACKET_SIGNAL, 0, 0, pwi_sim_node_time(end->node));
  if (time < end->out[PWI_LANE_LINK].floor) time = end->out[PWI_LANE_LINK].floor;
  end->fin_sent = true;
  pwi_sim_schedule_end(sim, time, EVENT_FIN, end->peer, true);
}

void pwi_sim_act_fin(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end, *closer = end->peer;
  if (end->state != END_UP && end->state != END_CLOSING) return;
  pwi_sim_trace(sim, event, 0, 0);
  pawl_status why = closer->why ? closer->why : PAWL_LINK_CLOSED;
  if (end->state == END_CLOSING) why = PAWL_OK;
  int64_t now = pwi_sim_node_time(end->node);
  if (is_live(closer)) {
    int64_t time = pwi_sim_arrival(sim, end, PWI_LANE_LINK, PWI_SIM_PACKET_SIGNAL, 0, 0, now);
    pwi_sim_schedule_end(sim, time, EVENT_DOWN, closer, true)->status = PAWL_OK;
  }
  pwi_sim_end_down(end, why, PAWL_OK);
}

void pwi_sim_act_down(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if (!is_live(end)) return;
  pwi_sim_trace(sim, event, 0, 0);
  bool waited = event->time < sim->now;
  if (waited && end->state == END_UP && pwi_random_chance(&sim->random, 0.5)) pwi_sim_receive_rest(end, event->time);
  if (end->serial != event->end_serial) return;
  pawl_status tell = event->status == PAWL_OK              ? PAWL_LINK_CLOSED
                     : event->status == PAWL_LINK_PROTOCOL ? PAWL_LINK_PROTOCOL
                                                           : PAWL_LINK_RESET;
  pwi_sim_end_down(end, event->status, tell);
}

void pwi_sim_act_limit(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if (end->state != (event->kind == EVENT_GREET_LIMIT ? END_CONNECTING : END_CLOSING)) return;
  pwi_sim_trace(sim, event, 0, 0);
  pwi_sim_end_down(end, event->kind == EVENT_GREET_LIMIT ? PAWL_TIMED_OUT : PAWL_LINK_SILENT, PAWL_LINK_RESET);
}

/* --- silence -------------------------------------------------------------------------------------------- */

bool pwi_sim_path_is_open(const struct sim_end *to) {
  const struct pwi_sim *sim = to->node->sim;
  return !to->link->muted &&
         !(sim->cuts && sim->cuts[(size_t)to->peer->node->index * sim->node_room + to->node->index]);
}

static bool can_hear(const struct sim_end *end) {
  const struct sim_end *peer = end->peer;
  return is_live(peer) && !peer->node->paused && !peer->node->stalled && pwi_sim_path_is_open(end);
}

static void await_silence(struct sim_end *end, int64_t time) {
  struct sim_event *event = pwi_sim_schedule_end(end->node->sim, time, EVENT_SILENCE, end, false);
  event->value = end->silence_count;
}

/* The last heartbeat was heard at some time within the last interval. */
void pwi_sim_end_listen(struct sim_end *end) {
  if (end->state != END_UP && end->state != END_CLOSING) return;
  bool heard = can_hear(end);
  if (heard == end->heard) return;
  struct pwi_sim *sim = end->node->sim;
  const struct pwi_net_limits *limits = &end->node->limits;
  end->heard = heard;
  end->silence_count++;
  if (heard) return;
  int64_t ago = (int64_t)pwi_random_below(&sim->random, (uint64_t)limits->beat_ns + 1);
  if (end->last_heard < sim->now - ago) end->last_heard = sim->now - ago;
  await_silence(end, end->last_heard + limits->silence_ns);
}

/* A node that was stopped itself gives its peers the full limit again before it judges them. */
void pwi_sim_act_silence(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if ((end->state != END_UP && end->state != END_CLOSING) || event->value != end->silence_count) return;
  int64_t since = end->last_heard > end->node->resumed_at ? end->last_heard : end->node->resumed_at;
  if (since + end->node->limits.silence_ns > sim->now) {
    await_silence(end, since + end->node->limits.silence_ns);
    return;
  }
  pwi_sim_trace(sim, event, 0, 0);
  pwi_sim_end_down(end, PAWL_LINK_SILENT, PAWL_LINK_RESET);
}

void pwi_sim_act_release(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  end->releasing = false;
  if (!pwi_sim_path_is_open(end)) return;
  struct sim_queue held = end->held;
  end->held = (struct sim_queue){0};
  struct sim_event *freed;
  while ((freed = pwi_sim_queue_take(&held)) != NULL) pwi_sim_dispatch(sim, freed);
}
