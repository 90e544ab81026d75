#include "sim/datacenter/datacenter.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/memory.h"
#include "base/random.h"

struct host_place {
  uint32_t host, class;
};

struct pwi_datacenter {
  struct pwi_datacenter_config config;
  struct pwi_sim_fabric fabric;
  struct pwi_flows *flows;
  struct host_place *places; /* by node */
  size_t place_count, place_room;
  uint32_t *order; /* of the hosts */
  uint32_t host_count;
  struct pwi_idmap labels; /* the hash of a host's label: its number plus one */
  uint64_t *arrived;       /* flows that have arrived before the simulator asked, first to last */
  size_t arrived_count, arrived_room, arrived_taken;
};

void pwi_datacenter_config_init(struct pwi_datacenter_config *config) {
  *config = (struct pwi_datacenter_config){
      .seed = 1, .latency_ns = PWI_SIM_MICROSECOND, .flow_bytes = (size_t)16 << 10, .magnify = 1};
  pwi_fabric_fat_tree(16, 1.25e9, &config->shape);
}

/* --- places --------------------------------------------------------------------------------------------- */

static pawl_status node_added(void *context, struct pwi_sim_node node, const char *host) {
  struct pwi_datacenter *datacenter = context;
  uint64_t label = pwi_hash(host, strlen(host), 0) | 1;
  assert(node.index == datacenter->place_count);
  if (!PWI_GROW(datacenter->places, datacenter->place_room, datacenter->place_count + 1)) return PAWL_NO_MEMORY;
  uintptr_t number = (uintptr_t)pwi_idmap_get(&datacenter->labels, label);
  if (!number) {
    number = datacenter->labels.count + 1;
    pawl_status status = pwi_idmap_put(&datacenter->labels, label, (void *)number);
    if (status) return status;
  }
  uint32_t at = datacenter->order[(number - 1) % datacenter->host_count];
  datacenter->places[datacenter->place_count++] = (struct host_place){.host = at};
  return PAWL_OK;
}

uint32_t pwi_datacenter_host(const struct pwi_datacenter *datacenter, struct pwi_sim_node node) {
  assert(node.index < datacenter->place_count);
  return datacenter->places[node.index].host;
}

void pwi_datacenter_class(struct pwi_datacenter *datacenter, struct pwi_sim_node node, uint32_t class) {
  assert(node.index < datacenter->place_count && class < PWI_FLOW_CLASSES);
  datacenter->places[node.index].class = class;
}

/* --- packets -------------------------------------------------------------------------------------------- */

/* Links of one connection and direction are always the same. */
static size_t route_of(const struct pwi_datacenter *datacenter, const struct pwi_sim_packet *packet,
                       uint32_t links[PWI_FABRIC_ROUTE_MAX]) {
  return pwi_fabric_route(&datacenter->config.shape, datacenter->places[packet->from.index].host,
                          datacenter->places[packet->to.index].host,
                          packet->link << 1 | (packet->from.index < packet->to.index), links);
}

static int64_t latency_of(const struct pwi_datacenter *datacenter, size_t links) {
  return datacenter->config.latency_ns * (int64_t)(links ? links : 1);
}

static int64_t delivery_time(void *context, const struct pwi_sim_packet *packet, int64_t now,
                             struct pwi_random *random) {
  const struct pwi_datacenter *datacenter = context;
  uint32_t links[PWI_FABRIC_ROUTE_MAX];
  (void)random;
  int64_t takes = (int64_t)((double)packet->size / datacenter->config.shape.rate * 1e9);
  return now + latency_of(datacenter, route_of(datacenter, packet, links)) + takes;
}

/* Brings the flows to the present. */
static pawl_status catch_up(struct pwi_datacenter *datacenter, int64_t now) {
  uint64_t number;
  while (pwi_flows_take(datacenter->flows, now, &number)) {
    if (!PWI_GROW(datacenter->arrived, datacenter->arrived_room, datacenter->arrived_count + 1)) return PAWL_NO_MEMORY;
    datacenter->arrived[datacenter->arrived_count++] = number;
  }
  return PAWL_OK;
}

static pawl_status begin(void *context, const struct pwi_sim_packet *packet, int64_t now, uint64_t flow,
                         uint64_t *name_out) {
  struct pwi_datacenter *datacenter = context;
  uint32_t links[PWI_FABRIC_ROUTE_MAX];
  struct pwi_flow_hop hops[PWI_FABRIC_ROUTE_MAX];
  struct pwi_flow_id id;
  pawl_status status = catch_up(datacenter, now);
  if (status) return status;
  size_t count = route_of(datacenter, packet, links);
  const struct host_place *from = &datacenter->places[packet->from.index], *to = &datacenter->places[packet->to.index];
  for (size_t i = 0; i < count; i++) hops[i] = (struct pwi_flow_hop){links[i], 1};
  int64_t late = packet->given > now ? packet->given - now : 0; /* the sender is blocked until then */
  struct pwi_flow_spec spec = {.hops = hops,
                               .hop_count = count,
                               .bytes = (double)packet->size * datacenter->config.magnify,
                               .class = from->class > to->class ? from->class : to->class,
                               .latency_ns = latency_of(datacenter, count) + late,
                               .cookie = flow};
  status = pwi_flow_begin(datacenter->flows, &spec, &id);
  if (!status) *name_out = id.value;
  return status;
}

static int64_t next(void *context) {
  struct pwi_datacenter *datacenter = context;
  if (datacenter->arrived_taken < datacenter->arrived_count) return 0;
  int64_t time = pwi_flows_next(datacenter->flows);
  return time == PWI_FLOW_NEVER ? PWI_NET_NEVER : time;
}

static bool take(void *context, int64_t now, uint64_t *flow_out) {
  struct pwi_datacenter *datacenter = context;
  if (datacenter->arrived_taken == datacenter->arrived_count) return pwi_flows_take(datacenter->flows, now, flow_out);
  *flow_out = datacenter->arrived[datacenter->arrived_taken++];
  if (datacenter->arrived_taken == datacenter->arrived_count) datacenter->arrived_taken = datacenter->arrived_count = 0;
  return true;
}

/* If there is no memory to catch up, the flow goes on; the simulator does not know its number any more. */
static void end(void *context, int64_t now, uint64_t name) {
  struct pwi_datacenter *datacenter = context;
  if (catch_up(datacenter, now)) return;
  pwi_flow_end(datacenter->flows, (struct pwi_flow_id){name});
}

/* --- an object ------------------------------------------------------------------------------------------ */

static pawl_status open_flows(struct pwi_datacenter *datacenter) {
  const struct pwi_datacenter_config *config = &datacenter->config;
  uint32_t count = pwi_fabric_links(&config->shape);
  struct pwi_flow_link *links = pwi_alloc_zero(count, sizeof *links);
  if (!links) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < count; i++) {
    struct pwi_fabric_link link = pwi_fabric_link(&config->shape, i);
    links[i] = (struct pwi_flow_link){link.capacity, link.tier == PWI_FABRIC_HOSTS && link.is_down};
  }
  struct pwi_flows_config flows = {.links = links,
                                   .link_count = count,
                                   .grain_ns = config->grain_ns,
                                   .incast_flows = config->incast_flows,
                                   .incast_loss = config->incast_loss};
  pawl_status status = pwi_flows_create(&flows, &datacenter->flows);
  pwi_free(links);
  return status;
}

static pawl_status open_hosts(struct pwi_datacenter *datacenter) {
  struct pwi_random random;
  datacenter->host_count = pwi_fabric_hosts(&datacenter->config.shape);
  datacenter->order = pwi_alloc_zero(datacenter->host_count, sizeof *datacenter->order);
  if (!datacenter->order) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < datacenter->host_count; i++) datacenter->order[i] = i;
  pwi_random_init(&random, datacenter->config.seed, 0);
  if (datacenter->host_count > 1)
    pwi_random_shuffle(&random, datacenter->order, datacenter->host_count, sizeof *datacenter->order);
  return PAWL_OK;
}

pawl_status pwi_datacenter_create(const struct pwi_datacenter_config *config, struct pwi_datacenter **datacenter_out) {
  pawl_status status = pwi_fabric_shape_check(&config->shape);
  if (status) return status;
  if (!config->flow_bytes || config->latency_ns < 0 || !(config->magnify >= 1) || !isfinite(config->magnify))
    return PAWL_INVALID;
  struct pwi_datacenter *datacenter = pwi_alloc_zero(1, sizeof *datacenter);
  if (!datacenter) return PAWL_NO_MEMORY;
  datacenter->config = *config;
  datacenter->fabric = (struct pwi_sim_fabric){.delivery_time = delivery_time,
                                               .context = datacenter,
                                               .flow_bytes = config->flow_bytes,
                                               .node_added = node_added,
                                               .begin = begin,
                                               .next = next,
                                               .take = take,
                                               .end = end};
  status = open_flows(datacenter);
  if (!status) status = open_hosts(datacenter);
  if (status) {
    pwi_datacenter_destroy(datacenter);
    return status;
  }
  *datacenter_out = datacenter;
  return PAWL_OK;
}

void pwi_datacenter_destroy(struct pwi_datacenter *datacenter) {
  if (!datacenter) return;
  pwi_flows_destroy(datacenter->flows);
  pwi_idmap_fini(&datacenter->labels);
  pwi_free(datacenter->places);
  pwi_free(datacenter->order);
  pwi_free(datacenter->arrived);
  pwi_free(datacenter);
}

const struct pwi_sim_fabric *pwi_datacenter_fabric(struct pwi_datacenter *datacenter) { return &datacenter->fabric; }

struct pwi_flows_figures pwi_datacenter_figures(const struct pwi_datacenter *datacenter) {
  return pwi_flows_figures(datacenter->flows);
}
