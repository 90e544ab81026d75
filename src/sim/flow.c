/* Packets that are flows of the fabric: large messages, puts, and the bytes of gets.
 *
 * A flow has a number, which is its place in a table and a count of the uses of this place. The fabric is asked for its
 * next arrival once all calls of an event have been made, because each beginning and end of a flow changes it. */
#include "base/memory.h"
#include "sim/world.h"

struct sim_flow {
  struct sim_end *end; /* the sender of a message, the reader of a get; NULL: the place is free */
  struct sim_message *message;
  uint64_t name; /* of the fabric */
  uint32_t generation, next_free;
  pawl_status status; /* of a get */
  uint8_t lane;
  bool is_answer;
};

static struct sim_flow *flow_new(struct pwi_sim *sim, uint64_t *number_out) {
  if (sim->flow_free == UINT32_MAX) {
    if (!PWI_GROW(sim->flows, sim->flow_room, sim->flow_count + 1)) return NULL;
    sim->flows[sim->flow_count] = (struct sim_flow){.next_free = UINT32_MAX};
    sim->flow_free = (uint32_t)sim->flow_count++;
  }
  uint32_t place = sim->flow_free;
  struct sim_flow *flow = &sim->flows[place];
  sim->flow_free = flow->next_free;
  flow->generation++;
  *number_out = (uint64_t)flow->generation << 32 | place;
  return flow;
}

static void flow_free(struct pwi_sim *sim, struct sim_flow *flow) {
  flow->end->link->flows--;
  flow->end = NULL;
  flow->next_free = sim->flow_free;
  sim->flow_free = (uint32_t)(flow - sim->flows);
}

static void begin(struct pwi_sim *sim, const struct sim_flow *is, const struct sim_end *from, size_t size,
                  int64_t given) {
  enum pwi_sim_packet_kind kind = is->is_answer                   ? PWI_SIM_PACKET_ANSWER
                                  : is->lane == PWI_SIM_LANE_PUTS ? PWI_SIM_PACKET_PUT
                                                                  : PWI_SIM_PACKET_MESSAGE;
  struct pwi_sim_packet packet = pwi_sim_packet_of(from, is->lane, kind, size, given);
  uint64_t number = 0;
  struct sim_flow *flow = flow_new(sim, &number);
  pawl_status status = PAWL_NO_MEMORY;
  if (flow) {
    uint32_t generation = flow->generation;
    *flow = *is;
    flow->generation = generation;
    flow->end->link->flows++;
    status = sim->fabric.begin(sim->fabric.context, &packet, sim->now, number, &flow->name);
  }
  if (status) pwi_sim_fail(sim, status, "not enough memory for a flow");
  sim->flows_changed = true;
}

void pwi_sim_flow_lane(struct pwi_sim *sim, struct sim_end *sender, unsigned index) {
  struct sim_lane *lane = &sender->out[index];
  struct sim_flow flow = {.end = sender, .message = lane->head, .lane = (uint8_t)index};
  lane->flows = true;
  begin(sim, &flow, sender, lane->head->size + PWI_NET_HEAD_SIZE, lane->head->given);
}

void pwi_sim_flow_answer(struct pwi_sim *sim, struct sim_end *reader, struct sim_message *message, pawl_status status) {
  struct sim_flow flow = {
      .end = reader, .message = message, .lane = PWI_SIM_LANE_PUTS, .status = status, .is_answer = true};
  begin(sim, &flow, reader->peer, message->size, sim->now);
}

void pwi_sim_flows_end(struct pwi_sim *sim, const struct sim_link *link) {
  for (size_t i = 0; link->flows && i < sim->flow_count; i++) {
    if (!sim->flows[i].end || sim->flows[i].end->link != link) continue;
    sim->fabric.end(sim->fabric.context, sim->now, sim->flows[i].name);
    flow_free(sim, &sim->flows[i]);
  }
  sim->flows_changed = true;
}

void pwi_sim_flows_settle(struct pwi_sim *sim) {
  int64_t next = sim->fabric.next(sim->fabric.context);
  sim->flows_changed = false;
  if (sim->flow_event && sim->flow_event->time == (next > sim->now ? next : sim->now)) return;
  if (sim->flow_event) pwi_sim_cancel(sim, sim->flow_event);
  sim->flow_event = NULL;
  if (next == PWI_NET_NEVER) return;
  struct sim_event *event = pwi_sim_schedule(sim, next, EVENT_FLOW, NULL);
  if (event != &sim->dummy) sim->flow_event = event;
}

/* The sender may be gone by now, and its lane cut short: what is left of it arrives. */
static void arrive(struct pwi_sim *sim, const struct sim_flow *flow) {
  if (flow->is_answer) {
    struct sim_event *event = pwi_sim_schedule_end(sim, sim->now, EVENT_DONE, flow->end, true);
    event->with.message = flow->message;
    event->status = flow->status;
    return;
  }
  struct sim_lane *lane = &flow->end->out[flow->lane];
  if (!lane->flows || lane->head != flow->message) return;
  if (lane->floor < sim->now) lane->floor = sim->now;
  lane->head->arrives = lane->floor; /* not before the greeting of its sender */
  pwi_sim_lane_schedule(flow->end, flow->lane, sim->now);
}

void pwi_sim_act_flow(struct pwi_sim *sim, struct sim_event *event) {
  uint64_t number;
  (void)event;
  sim->flow_event = NULL;
  sim->flows_changed = true;
  while (sim->fabric.take(sim->fabric.context, sim->now, &number)) {
    uint32_t place = (uint32_t)number;
    if (place >= sim->flow_count || sim->flows[place].generation != number >> 32 || !sim->flows[place].end) continue;
    struct sim_flow flow = sim->flows[place];
    flow_free(sim, &sim->flows[place]);
    arrive(sim, &flow);
  }
}
