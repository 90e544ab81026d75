/* The order of events as the caller chooses it: which events may happen next, and running one of them. */
#include "base/hash.h"
#include "sim/world.h"

static bool is_timer(const struct sim_event *event) {
  switch (event->kind) {
  case EVENT_CALL:
  case EVENT_TIMER:
  case EVENT_SILENCE:
  case EVENT_GREET_LIMIT:
  case EVENT_LINGER_LIMIT:
  case EVENT_RESUME:
    return true;
  default:
    return false;
  }
}

/* Events that no other event can overtake in a way that a node could tell. */
static bool is_internal(const struct sim_event *event) {
  switch (event->kind) {
  case EVENT_STEP:
  case EVENT_RELEASE:
  case EVENT_WOKEN:
  case EVENT_DONE:
  case EVENT_WRITABLE:
  case EVENT_KILL:
  case EVENT_RESTART:
    return true;
  default:
    return false;
  }
}

static bool is_over(const struct sim_end *end) { return end->state == END_NONE || end->state == END_GONE; }

/* Nothing would happen: the end is another one by now, or in another state. */
static bool is_void(const struct sim_event *event) {
  const struct sim_end *end = event->end;
  const struct sim_node *node = event->node;
  if (event->cancelled || (end && end->serial != event->end_serial)) return true;
  if (node && event->incarnation && (!node->net || node->incarnation != event->incarnation)) return true;
  switch (event->kind) {
  case EVENT_DELIVER:
    return is_over(end) || !end->peer->out[event->lane].head;
  case EVENT_CONNECT:
    return end->state != END_NONE;
  case EVENT_HELLO:
  case EVENT_GREET_LIMIT:
    return end->state != END_CONNECTING;
  case EVENT_FIN:
  case EVENT_DOWN:
    return is_over(end);
  case EVENT_LINGER_LIMIT:
    return end->state != END_CLOSING;
  case EVENT_SILENCE:
    return is_over(end) || event->value != end->silence_count;
  default:
    return false;
  }
}

/* The greeting comes first. Elsewhere the times of arrival see to it. */
static bool is_blocked(const struct sim_event *event) {
  bool follows = event->kind == EVENT_DELIVER || event->kind == EVENT_FIN;
  return follows && event->end->state == END_CONNECTING;
}

/* A name of the end of a link that does not depend on the order of events at other nodes: the node that
 * connected, its own number of the link, and the side. */
static uint64_t end_name(const struct sim_end *end) {
  const struct sim_end *first = &end->link->ends[0];
  uint64_t facts[] = {first->node->index, first->id, end != first};
  return pwi_hash(facts, sizeof facts, 0);
}

static uint64_t name_of(const struct sim_event *event) { return event->end ? end_name(event->end) : 0; }

static uint64_t node_of(const struct sim_event *event) { return event->node ? event->node->index : UINT32_MAX; }

static const struct sim_message *message_of(const struct sim_event *event) {
  return event->kind == EVENT_DELIVER ? event->end->peer->out[event->lane].head : NULL;
}

static struct pwi_sim_due describe(const struct pwi_sim *sim, const struct heap_entry *entry) {
  const struct sim_event *event = entry->event;
  const struct sim_message *message = message_of(event);
  uint64_t facts[] = {event->kind | (uint64_t)event->lane << 8 | (uint64_t)(uint32_t)event->status << 32,
                      name_of(event), event->kind == EVENT_TIMER ? event->cookie : 0,
                      message ? pwi_hash(message->head, PWI_NET_HEAD_SIZE, pwi_sim_message_hash(message)) : 0};
  return (struct pwi_sim_due){.number = entry->sequence,
                              .time = entry->time > sim->now ? entry->time : sim->now,
                              .kind = pwi_sim_kind_name(event->kind),
                              .is_timer = is_timer(event),
                              .node = (uint32_t)node_of(event),
                              .from = event->from ? event->from->index : UINT32_MAX,
                              .hash = pwi_hash(facts, sizeof facts, 0),
                              .head = message ? message->head : NULL,
                              .size = message ? message->size : 0};
}

static int compare(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

/* The order of creation decides last: it depends on the order of events at other nodes. */
static bool is_sooner(const struct heap_entry *a, const struct heap_entry *b) {
  if (a->time != b->time) return a->time < b->time;
  int order = compare(node_of(a->event), node_of(b->event));
  if (order == 0) order = compare(a->event->kind, b->event->kind);
  if (order == 0) order = compare(name_of(a->event), name_of(b->event));
  return order ? order < 0 : a->sequence < b->sequence;
}

size_t pwi_sim_due(const struct pwi_sim *sim, struct pwi_sim_due *due, size_t room) {
  const struct heap_entry *timer = NULL;
  size_t count = 0;
  for (size_t i = 0; i < sim->heap_count; i++) {
    const struct heap_entry *entry = &sim->heap[i];
    if (is_void(entry->event) || is_blocked(entry->event)) continue;
    if (is_timer(entry->event) || entry->time > sim->now) {
      if (!timer || is_sooner(entry, timer)) timer = entry;
      continue;
    }
    if (count == room) continue;
    size_t at = count++;
    for (; at > 0 && due[at - 1].number > entry->sequence; at--) due[at] = due[at - 1];
    due[at] = describe(sim, entry);
  }
  if (timer && count < room) {
    due[count] = describe(sim, timer);
    due[count++].is_timer = true;
  }
  return count;
}

pawl_status pwi_sim_settle(struct pwi_sim *sim) {
  while (!sim->failed) {
    size_t at = SIZE_MAX;
    for (size_t i = 0; i < sim->heap_count; i++) {
      const struct heap_entry *entry = &sim->heap[i];
      if (entry->time > sim->now || is_timer(entry->event)) continue;
      if (!is_internal(entry->event) && !is_void(entry->event)) continue;
      if (at == SIZE_MAX || entry->sequence < sim->heap[at].sequence) at = i;
    }
    if (at == SIZE_MAX) return PAWL_OK;
    if (pwi_sim_happen(sim, pwi_sim_take_at(sim, at))) break;
  }
  return sim->failed;
}

/* An event that has waited counts as one of the present: it is as if it had only now arrived. */
pawl_status pwi_sim_step_due(struct pwi_sim *sim, uint64_t number) {
  if (sim->failed) return sim->failed;
  for (size_t i = 0; i < sim->heap_count; i++) {
    if (sim->heap[i].sequence != number) continue;
    struct sim_event *event = pwi_sim_take_at(sim, i);
    if (event->time < sim->now) event->time = sim->now;
    pawl_status status = pwi_sim_happen(sim, event);
    return status ? status : pwi_sim_settle(sim);
  }
  return PAWL_NOT_FOUND;
}

bool pwi_sim_are_linked(const struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b) {
  const struct sim_node *nodes[] = {pwi_sim_node_of(sim, a), pwi_sim_node_of(sim, b)};
  for (int side = 0; side < 2; side++)
    for (const struct sim_end *end = nodes[side]->net ? nodes[side]->net->ends : NULL; end; end = end->after)
      if (end->peer->node == nodes[1 - side] && !is_over(end)) return true;
  return false;
}

/* --- prints --------------------------------------------------------------------------------------------- */

static uint64_t end_print(const struct sim_end *end) {
  uint64_t facts[2 + 3 * PWI_SIM_LANES] = {end_name(end), end->state | (uint64_t)end->fin_sent << 8};
  for (size_t lane = 0; lane < PWI_SIM_LANES; lane++) {
    const struct sim_lane *in = &end->peer->out[lane];
    uint64_t *of_lane = &facts[2 + 3 * lane];
    of_lane[0] = end->out[lane].sent;
    of_lane[1] = in->sent;
    of_lane[2] = in->taken;
  }
  return pwi_hash(facts, sizeof facts, 0);
}

/* Sums, because the order of links, timers and events is not part of the state. */
uint64_t pwi_sim_print(const struct pwi_sim *sim, struct pwi_sim_node handle) {
  const struct sim_node *node = pwi_sim_node_of(sim, handle);
  uint64_t sum = node->incarnation;
  for (const struct sim_end *end = node->net ? node->net->ends : NULL; end; end = end->after)
    if (!is_over(end)) sum += end_print(end);
  for (uint32_t i = 0; node->net && i < node->net->timer_count; i++) {
    const struct sim_timer *timer = &node->net->timers[i];
    uint64_t facts[] = {timer->id ? (uint64_t)timer->event->time : 0, timer->id ? timer->event->cookie : 0};
    if (timer->id) sum += pwi_hash(facts, sizeof facts, 1);
  }
  for (size_t i = 0; i < sim->heap_count; i++) {
    const struct heap_entry *entry = &sim->heap[i];
    if (entry->event->node == node && entry->event->kind != EVENT_TIMER && !is_void(entry->event))
      sum += pwi_hash(&(uint64_t){describe(sim, entry).hash}, sizeof(uint64_t), (uint64_t)entry->time);
  }
  return sum;
}
