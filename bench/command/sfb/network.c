/* The machines of a simulated run: hosts of one rack, whose cards share their links fairly between all that they send and
 * receive at a time. The bytes of packets between workers are counted. */
#include "base/memory.h"
#include "sfb.h"
#include "sim/datacenter/datacenter.h"

#define LATENCY (10 * PWI_SIM_MICROSECOND) /* of one of two links */
#define FLOW_BYTES 512
#define GRAINS 200 /* of the time in which a card moves a commit's worth of 100 pieces */

struct pwi_sfb_network {
  struct pwi_datacenter *datacenter;
  const struct pwi_sim_fabric *inside;
  struct pwi_sim_fabric fabric;
  uint64_t bytes;
};

/* Node 0 is the manager. */
static void count(struct pwi_sfb_network *network, const struct pwi_sim_packet *packet) {
  if (packet->from.index > 0 && packet->to.index > 0 && packet->asked == 0) network->bytes += packet->size;
}

static int64_t delivery_time(void *context, const struct pwi_sim_packet *packet, int64_t now,
                             struct pwi_random *random) {
  struct pwi_sfb_network *network = context;
  count(network, packet);
  return network->inside->delivery_time(network->inside->context, packet, now, random);
}

static pawl_status node_added(void *context, struct pwi_sim_node node, const char *host) {
  const struct pwi_sim_fabric *inside = ((struct pwi_sfb_network *)context)->inside;
  return inside->node_added ? inside->node_added(inside->context, node, host) : PAWL_OK;
}

static pawl_status begin(void *context, const struct pwi_sim_packet *packet, int64_t now, uint64_t flow,
                         uint64_t *name_out) {
  struct pwi_sfb_network *network = context;
  count(network, packet);
  return network->inside->begin(network->inside->context, packet, now, flow, name_out);
}

static int64_t next(void *context) {
  const struct pwi_sim_fabric *inside = ((struct pwi_sfb_network *)context)->inside;
  return inside->next(inside->context);
}

static bool take(void *context, int64_t now, uint64_t *flow_out) {
  const struct pwi_sim_fabric *inside = ((struct pwi_sfb_network *)context)->inside;
  return inside->take(inside->context, now, flow_out);
}

static void end(void *context, int64_t now, uint64_t name) {
  const struct pwi_sim_fabric *inside = ((struct pwi_sfb_network *)context)->inside;
  inside->end(inside->context, now, name);
}

pawl_status pwi_sfb_network_create(const struct pwi_sfb_setup *setup, struct pwi_sfb_network **network_out) {
  struct pwi_datacenter_config config;
  struct pwi_sfb_network *network = pwi_alloc_zero(1, sizeof *network);
  if (!network) return PAWL_NO_MEMORY;
  pwi_datacenter_config_init(&config);
  config.shape.pods = config.shape.racks = 1;
  config.shape.hosts = setup->workers + 1;
  config.shape.rate = setup->gigabits * 1e9 / 8;
  config.seed = setup->seed;
  config.latency_ns = LATENCY;
  config.flow_bytes = FLOW_BYTES;
  config.magnify = setup->magnify;
  config.grain_ns = setup->magnify > 1 ? (int64_t)(setup->magnify / GRAINS * (double)PWI_SIM_MILLISECOND) : 0;
  pawl_status status = pwi_datacenter_create(&config, &network->datacenter);
  if (status) {
    pwi_free(network);
    return status;
  }
  network->inside = pwi_datacenter_fabric(network->datacenter);
  network->fabric = *network->inside;
  network->fabric.context = network;
  network->fabric.delivery_time = delivery_time;
  network->fabric.node_added = node_added;
  network->fabric.begin = begin;
  network->fabric.next = next;
  network->fabric.take = take;
  network->fabric.end = end;
  *network_out = network;
  return PAWL_OK;
}

void pwi_sfb_network_destroy(struct pwi_sfb_network *network) {
  if (network) pwi_datacenter_destroy(network->datacenter);
  pwi_free(network);
}

const struct pwi_sim_fabric *pwi_sfb_network_fabric(struct pwi_sfb_network *network) { return &network->fabric; }

uint64_t *pwi_sfb_network_bytes(struct pwi_sfb_network *network) { return &network->bytes; }

/* The share of its own server does not leave a machine. A step begins with the matrix of the one before, so that what goes
 * up and what comes back do not overlap. */
double pwi_sfb_exchange_s(uint32_t workers, double bytes, double gigabits) {
  double leaves = bytes * (workers - 1) / workers;
  return 2 * leaves / (gigabits * 1e9 / 8);
}
