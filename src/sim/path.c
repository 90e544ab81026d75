/* Operations on paths for tests and fault schedules: cutting, mending, breaking, muting. */
#include <assert.h>

#include "base/memory.h"
#include "sim/world.h"

static bool matches(struct pwi_sim_node handle, const struct sim_node *node) {
  return handle.index == UINT32_MAX || handle.index == node->index;
}

/* Handles a changed path at its receiving end. Held events are released a little later, in order. */
static void path_changed(struct pwi_sim *sim, struct sim_end *to) {
  pwi_sim_end_listen(to);
  if (!to->held.head || to->releasing || !pwi_sim_path_is_open(to)) return;
  to->releasing = true;
  int64_t time = sim->now + pwi_sim_delay_draw(&sim->config.link, &sim->random);
  struct sim_event *event = pwi_sim_schedule_end(sim, time, EVENT_RELEASE, to, false);
  event->node = NULL;
  event->incarnation = 0;
}

/* Calls `act` with the receiving end of each path from one node to the other, whichever of the two is up.
 * It may be called twice for an end. */
static void each_path(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to,
                      void (*act)(struct pwi_sim *sim, struct sim_end *to)) {
  for (uint32_t i = 0; i < sim->node_count; i++) {
    struct sim_node *node = sim->nodes[i];
    if (!node->net || (!matches(from, node) && !matches(to, node))) continue;
    for (struct sim_end *end = node->net->ends; end; end = end->after) {
      const struct sim_node *other = end->peer->node;
      if (matches(to, node) && matches(from, other)) act(sim, end);
      if (matches(from, node) && matches(to, other)) act(sim, end->peer);
    }
  }
}

/* A path is open at 0. Otherwise the high bit says that it is cut by hand, and the low bits count the faults
 * that cut it. */
#define BY_HAND 0x80u
#define FAULTS_MAX 0x7fu

static uint8_t cut_by_hand(uint8_t cuts) { return (uint8_t)(cuts | BY_HAND); }

static uint8_t mend(uint8_t cuts) {
  (void)cuts;
  return 0;
}

static uint8_t add_fault(uint8_t cuts) {
  assert((cuts & FAULTS_MAX) < FAULTS_MAX);
  return (uint8_t)(cuts + 1);
}

static uint8_t remove_fault(uint8_t cuts) { return cuts & FAULTS_MAX ? (uint8_t)(cuts - 1) : cuts; }

static void change_cuts(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to,
                        uint8_t (*change)(uint8_t cuts)) {
  if (!sim->cuts) sim->cuts = pwi_alloc_zero(sim->node_room, sim->node_room);
  if (!sim->cuts) {
    pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for cuts");
    return;
  }
  for (uint32_t i = 0; i < sim->node_count; i++) {
    if (!matches(from, sim->nodes[i])) continue;
    for (uint32_t j = 0; j < sim->node_count; j++) {
      uint8_t *cuts = &sim->cuts[(size_t)i * sim->node_room + j];
      if (i != j && matches(to, sim->nodes[j])) *cuts = change(*cuts);
    }
  }
  each_path(sim, from, to, path_changed);
}

void pwi_sim_cut(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to) {
  change_cuts(sim, from, to, cut_by_hand);
}

void pwi_sim_mend(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to) {
  change_cuts(sim, from, to, mend);
}

void pwi_sim_fault_cut(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to, bool begins) {
  change_cuts(sim, from, to, begins ? add_fault : remove_fault);
}

bool pwi_sim_is_cut(const struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to) {
  assert(from.index < sim->node_count && to.index < sim->node_count);
  return sim->cuts && sim->cuts[(size_t)from.index * sim->node_room + to.index];
}

/* Each side notices after a delay of its own. */
static void reset_end(struct pwi_sim *sim, struct sim_end *end) {
  if (end->state != END_CONNECTING && end->state != END_UP && end->state != END_CLOSING) return;
  int64_t time = sim->now + pwi_sim_delay_draw(&sim->config.hang_up, &sim->random);
  pwi_sim_schedule_end(sim, time, EVENT_DOWN, end, false)->status = PAWL_LINK_RESET;
}

static void mute_end(struct pwi_sim *sim, struct sim_end *end) {
  end->link->muted = true;
  path_changed(sim, end);
}

static void swallow_end(struct pwi_sim *sim, struct sim_end *end) {
  (void)sim;
  end->link->swallows = true;
}

void pwi_sim_break(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b) {
  each_path(sim, a, b, reset_end);
  each_path(sim, b, a, reset_end);
}

void pwi_sim_mute(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b) {
  each_path(sim, a, b, mute_end);
  each_path(sim, b, a, mute_end);
}

void pwi_sim_swallow(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b) {
  each_path(sim, a, b, swallow_end);
}
