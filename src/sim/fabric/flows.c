/* Flows from their beginning to their arrival. */
#include "sim/fabric/flows.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "sim/fabric/inside.h"

#define NS 1e-9 /* seconds in a nanosecond */

/* --- the heap of times ---------------------------------------------------------------------------------- */

static bool comes_before(const struct pwi_flows *flows, uint32_t a, uint32_t b) {
  const struct flow *x = &flows->flows[a], *y = &flows->flows[b];
  return x->at < y->at || (x->at == y->at && a < b);
}

static void heap_set(struct pwi_flows *flows, size_t place, uint32_t index) {
  flows->heap[place] = index;
  flows->flows[index].place = (uint32_t)place;
}

static void heap_fix(struct pwi_flows *flows, size_t place, uint32_t index) {
  for (size_t above; place > 0 && comes_before(flows, index, flows->heap[above = (place - 1) / 2]); place = above)
    heap_set(flows, place, flows->heap[above]);
  for (size_t child; (child = 2 * place + 1) < flows->heap_count; place = child) {
    if (child + 1 < flows->heap_count && comes_before(flows, flows->heap[child + 1], flows->heap[child])) child++;
    if (!comes_before(flows, flows->heap[child], index)) break;
    heap_set(flows, place, flows->heap[child]);
  }
  heap_set(flows, place, index);
}

static void heap_remove(struct pwi_flows *flows, uint32_t index) {
  uint32_t place = flows->flows[index].place;
  if (place == NO_PLACE) return;
  flows->flows[index].place = NO_PLACE;
  uint32_t last = flows->heap[--flows->heap_count];
  if (last != index) heap_fix(flows, place, last);
}

/* Gives a flow a new time; PWI_FLOW_NEVER takes it out of the heap. */
static void set_time(struct pwi_flows *flows, uint32_t index, int64_t time) {
  struct flow *flow = &flows->flows[index];
  flow->at = time;
  if (time == PWI_FLOW_NEVER)
    heap_remove(flows, index);
  else
    heap_fix(flows, flow->place == NO_PLACE ? flows->heap_count++ : flow->place, index);
}

/* --- an object ------------------------------------------------------------------------------------------ */

static bool config_is_valid(const struct pwi_flows_config *config) {
  if (config->link_count >= NO_LINK || config->grain_ns < 0) return false;
  if (!(config->incast_loss >= 0 && config->incast_loss <= 1)) return false;
  for (size_t i = 0; i < config->link_count; i++)
    if (!(config->links[i].capacity >= 0) || !isfinite(config->links[i].capacity)) return false;
  return true;
}

pawl_status pwi_flows_create(const struct pwi_flows_config *config, struct pwi_flows **flows_out) {
  if (!config_is_valid(config)) return PAWL_INVALID;
  struct pwi_flows *flows = pwi_alloc_zero(1, sizeof *flows);
  if (!flows) return PAWL_NO_MEMORY;
  flows->config = *config;
  flows->config.links = NULL;
  flows->link_count = config->link_count;
  flows->first_free = NO_PLACE;
  flows->links = pwi_alloc_zero(config->link_count, sizeof *flows->links);
  flows->touched = pwi_alloc_zero(config->link_count, sizeof *flows->touched);
  flows->shares = pwi_alloc_zero(config->link_count, sizeof *flows->shares);
  if (!flows->links || !flows->touched || !flows->shares) {
    pwi_flows_destroy(flows);
    return PAWL_NO_MEMORY;
  }
  for (size_t i = 0; i < config->link_count; i++) {
    flows->links[i].capacity = config->links[i].capacity * NS;
    flows->links[i].has_incast = config->links[i].has_incast;
  }
  *flows_out = flows;
  return PAWL_OK;
}

void pwi_flows_destroy(struct pwi_flows *flows) {
  if (!flows) return;
  for (size_t i = 0; i < flows->flow_count; i++) pwi_free(flows->flows[i].many);
  for (size_t i = 0; flows->links && i < flows->link_count; i++) pwi_free(flows->links[i].members);
  pwi_free(flows->flows);
  pwi_free(flows->links);
  pwi_free(flows->heap);
  pwi_free(flows->touched);
  pwi_free(flows->chosen);
  pwi_free(flows->sorted);
  pwi_free(flows->shares);
  pwi_free(flows);
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static bool spec_is_valid(const struct pwi_flows *flows, const struct pwi_flow_spec *spec) {
  if (!(spec->bytes >= 0) || !isfinite(spec->bytes) || spec->latency_ns < 0 || spec->class >= PWI_FLOW_CLASSES)
    return false;
  for (size_t i = 0; i < spec->hop_count; i++)
    if (spec->hops[i].link >= flows->link_count || spec->hops[i].weight == 0) return false;
  return spec->hop_count < NO_PLACE;
}

/* A flow that is free, so that nothing can fail once the hops have found room. All arrays that later calls need grow
 * here as well. */
static bool take_slot(struct pwi_flows *flows, uint32_t *index_out) {
  if (flows->first_free != NO_PLACE) {
    *index_out = flows->first_free;
    return true;
  }
  size_t count = flows->flow_count + 1;
  if (count >= NO_PLACE || !PWI_GROW(flows->flows, flows->flow_room, count) ||
      !PWI_GROW(flows->heap, flows->heap_room, count) || !PWI_GROW(flows->chosen, flows->chosen_room, count) ||
      !PWI_GROW(flows->sorted, flows->sorted_room, count))
    return false;
  *index_out = (uint32_t)flows->flow_count++;
  flows->flows[*index_out] = (struct flow){.next_free = NO_PLACE, .generation = 1};
  flows->first_free = *index_out;
  return true;
}

static bool take_hops(struct pwi_flows *flows, struct flow *flow, const struct pwi_flow_spec *spec) {
  for (size_t i = 0; i < spec->hop_count; i++) {
    struct link *link = &flows->links[spec->hops[i].link];
    if (!PWI_GROW(link->members, link->room, link->count + 1)) return false;
  }
  if (spec->hop_count <= FLOW_HOPS) return true;
  flow->many = pwi_alloc_zero(spec->hop_count, sizeof *flow->many);
  return flow->many != NULL;
}

static void attach(struct pwi_flows *flows, uint32_t index, const struct pwi_flow_spec *spec) {
  struct flow *flow = &flows->flows[index];
  for (uint32_t i = 0; i < flow->hop_count; i++) {
    struct link *link = &flows->links[spec->hops[i].link];
    hops_of(flow)[i] = (struct flow_hop){spec->hops[i].link, spec->hops[i].weight, (uint32_t)link->count};
    link->members[link->count++] = (struct member){index, i};
    pwi_flows_touch(flows, spec->hops[i].link);
  }
  flows->figures.present++;
  if (flows->figures.present > flows->figures.most) flows->figures.most = flows->figures.present;
}

static int64_t later(int64_t time, int64_t delay) {
  return delay > PWI_FLOW_NEVER - 1 - time ? PWI_FLOW_NEVER - 1 : time + delay;
}

pawl_status pwi_flow_begin(struct pwi_flows *flows, const struct pwi_flow_spec *spec, struct pwi_flow_id *id_out) {
  uint32_t index;
  if (!spec_is_valid(flows, spec)) return PAWL_INVALID;
  if (!take_slot(flows, &index)) return PAWL_NO_MEMORY;
  struct flow *flow = &flows->flows[index];
  if (!take_hops(flows, flow, spec)) return PAWL_NO_MEMORY;
  flows->first_free = flow->next_free;
  flow->bytes = flow->left = spec->bytes;
  flow->rate = 0;
  flow->since = flows->now;
  flow->at = PWI_FLOW_NEVER;
  flow->latency = spec->latency_ns;
  flow->cookie = spec->cookie;
  flow->hop_count = (uint32_t)spec->hop_count;
  flow->place = NO_PLACE;
  flow->bottleneck = NO_LINK;
  flow->class = (uint8_t)spec->class;
  flow->is_chosen = false;
  flow->stage = FLOW_SENDING;
  flows->figures.begun++;
  if (!flow->hop_count || !(spec->bytes > 0)) {
    flow->hop_count = 0;
    flow->stage = FLOW_TRAVELLING;
    set_time(flows, index, later(flows->now, spec->latency_ns));
  } else {
    attach(flows, index, spec);
  }
  *id_out = (struct pwi_flow_id){(uint64_t)flow->generation << 32 | index};
  return PAWL_OK;
}

/* --- moving --------------------------------------------------------------------------------------------- */

static double moved_since(const struct pwi_flows *flows, const struct flow *flow, double rate) {
  double moved = rate * (double)(flows->now - flow->since);
  return moved < flow->left ? moved : flow->left;
}

/* When the flow has sent everything. */
static int64_t end_of(const struct pwi_flows *flows, const struct flow *flow) {
  double takes = flow->rate > 0 ? ceil(flow->left / flow->rate) : INFINITY;
  if (!(takes < (double)(INT64_MAX / 4) - (double)flows->now)) return PWI_FLOW_NEVER;
  int64_t end = flows->now + (int64_t)takes, grain = flows->config.grain_ns;
  return grain > 0 && end % grain ? end + grain - end % grain : end;
}

/* Brings the rates up to date, and with them the times at which flows end. */
static void settle(struct pwi_flows *flows) {
  if (!flows->touched_count) return;
  pwi_flows_rate(flows);
  for (size_t i = 0; i < flows->chosen_count; i++) {
    uint32_t index = flows->chosen[i];
    struct flow *flow = &flows->flows[index];
    flow->is_chosen = false;
    if (flow->rate == flow->before) continue;
    flow->left -= moved_since(flows, flow, flow->before);
    flow->since = flows->now;
    set_time(flows, index, end_of(flows, flow));
  }
}

static void detach(struct pwi_flows *flows, struct flow *flow, double moved) {
  const struct flow_hop *hops = hops_of(flow);
  for (uint32_t i = 0; i < flow->hop_count; i++) {
    struct link *link = &flows->links[hops[i].link];
    struct member last = link->members[--link->count];
    link->bytes += moved * hops[i].weight;
    link->members[hops[i].place] = last;
    hops_of(&flows->flows[last.flow])[last.hop].place = hops[i].place;
    pwi_flows_touch(flows, hops[i].link);
  }
  if (flow->hop_count) flows->figures.present--;
  pwi_free(flow->many);
  flow->many = NULL;
  flow->hop_count = 0;
}

static void forget(struct pwi_flows *flows, uint32_t index) {
  struct flow *flow = &flows->flows[index];
  heap_remove(flows, index);
  flow->stage = FLOW_FREE;
  flow->generation++;
  flow->next_free = flows->first_free;
  flows->first_free = index;
}

/* Moves the flow whose time has come to its next stage. True if it has arrived. */
static bool step(struct pwi_flows *flows, uint32_t index, uint64_t *cookie_out) {
  struct flow *flow = &flows->flows[index];
  if (flow->stage == FLOW_SENDING) {
    detach(flows, flow, flow->bytes);
    flow->left = 0;
    flow->stage = FLOW_TRAVELLING;
    set_time(flows, index, later(flows->now, flow->latency));
    if (flow->at > flows->now) return false;
  }
  *cookie_out = flow->cookie;
  forget(flows, index);
  flows->figures.arrived++;
  return true;
}

/* Flows that end at the same time are all taken before rates change. */
bool pwi_flows_take(struct pwi_flows *flows, int64_t limit, uint64_t *cookie_out) {
  for (;;) {
    if (!flows->heap_count || flows->flows[flows->heap[0]].at > flows->now) settle(flows);
    int64_t time = flows->heap_count ? flows->flows[flows->heap[0]].at : PWI_FLOW_NEVER;
    if (time > limit || time == PWI_FLOW_NEVER) break;
    if (time > flows->now) flows->now = time;
    if (step(flows, flows->heap[0], cookie_out)) return true;
  }
  if (limit != PWI_FLOW_NEVER && limit > flows->now) flows->now = limit;
  return false;
}

int64_t pwi_flows_next(struct pwi_flows *flows) {
  settle(flows);
  return flows->heap_count ? flows->flows[flows->heap[0]].at : PWI_FLOW_NEVER;
}

/* --- changing and looking ------------------------------------------------------------------------------- */

static struct flow *find(const struct pwi_flows *flows, struct pwi_flow_id id) {
  uint64_t index = id.value & UINT32_MAX;
  if (index >= flows->flow_count) return NULL;
  struct flow *flow = &flows->flows[index];
  return flow->stage != FLOW_FREE && flow->generation == id.value >> 32 ? flow : NULL;
}

bool pwi_flow_end(struct pwi_flows *flows, struct pwi_flow_id id) {
  struct flow *flow = find(flows, id);
  if (!flow) return false;
  double left = flow->left - moved_since(flows, flow, flow->rate);
  detach(flows, flow, flow->bytes - left);
  forget(flows, (uint32_t)(id.value & UINT32_MAX));
  flows->figures.ended++;
  return true;
}

bool pwi_flow_change(struct pwi_flows *flows, struct pwi_flow_id id, uint32_t class) {
  struct flow *flow = find(flows, id);
  if (!flow || class >= PWI_FLOW_CLASSES) return false;
  flow->class = (uint8_t) class;
  flow->bottleneck = NO_LINK;
  for (uint32_t i = 0; i < flow->hop_count; i++) pwi_flows_touch(flows, hops_of(flow)[i].link);
  return true;
}

void pwi_flow_link_change(struct pwi_flows *flows, uint32_t link, double capacity) {
  assert(link < flows->link_count && capacity >= 0);
  flows->links[link].capacity = capacity * NS;
  pwi_flows_touch(flows, link);
}

int64_t pwi_flows_now(const struct pwi_flows *flows) { return flows->now; }

bool pwi_flow_state(struct pwi_flows *flows, struct pwi_flow_id id, struct pwi_flow_state *state_out) {
  settle(flows);
  const struct flow *flow = find(flows, id);
  if (!flow) return false;
  double left = flow->left - moved_since(flows, flow, flow->rate);
  *state_out = (struct pwi_flow_state){flow->hop_count ? flow->rate / NS : 0, flow->bytes - left};
  return true;
}

double pwi_flow_link_bytes(const struct pwi_flows *flows, uint32_t link) { return flows->links[link].bytes; }

struct pwi_flows_figures pwi_flows_figures(const struct pwi_flows *flows) {
  return flows->figures;
}

bool pwi_flows_are_fair(struct pwi_flows *flows) {
  settle(flows);
  for (uint32_t i = 0; i < flows->link_count; i++)
    if (!pwi_flows_link_is_fair(flows, i)) return false;
  return true;
}
