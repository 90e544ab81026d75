/* A data centre under the simulator's nodes: the fabric model (sim/fabric) as the fabric of a simulation.
 *
 *   pwi_datacenter_create(&config, &datacenter);
 *   sim_config.fabric = pwi_datacenter_fabric(datacenter);
 *
 * Roles run on it unchanged. Messages, puts and bytes of gets that are large become flows over the links between the
 * hosts of their nodes; what is small takes the latency of its route and the time that its bytes need on a free link.
 *
 * PLACES. The label of a node's host (struct pwi_sim_program) is a host of the data centre. The first label gets the
 * first host of an order that the seed draws, the next one the next. If there are more labels than hosts, they begin
 * again at the first: those hosts are shared.
 *
 * SIZES. A body may stand for more bytes than it has: with `magnify` 1,000, a message of 1 MB loads the links like one
 * of 1 GB. This holds for flows only, so that the messages that keep a cluster together stay small.
 *
 * Threads: belongs to one simulation, and must outlive it.
 */
#ifndef PWI_SIM_DATACENTER_DATACENTER_H
#define PWI_SIM_DATACENTER_DATACENTER_H

#include "sim/fabric/flows.h"
#include "sim/fabric/shape.h"
#include "sim/sim.h"

struct pwi_datacenter;

struct pwi_datacenter_config {
  struct pwi_fabric_shape shape;
  uint64_t seed;
  int64_t latency_ns; /* of one link; a route within a host takes one of it */
  size_t flow_bytes;  /* packets from this size on are flows; at least 1 */
  double magnify;     /* at least 1 */
  int64_t grain_ns;   /* sim/fabric/flows.h, as the next two */
  uint32_t incast_flows;
  double incast_loss;
};

/* A fat tree of 16-port switches and 10 Gbit/s, 1 us a link, flows from 16 KB on, exact. */
void pwi_datacenter_config_init(struct pwi_datacenter_config *config);

/* PAWL_INVALID, PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_datacenter_create(const struct pwi_datacenter_config *config,
                                                struct pwi_datacenter **datacenter_out);
void pwi_datacenter_destroy(struct pwi_datacenter *datacenter); /* NULL is fine */

const struct pwi_sim_fabric *pwi_datacenter_fabric(struct pwi_datacenter *datacenter);

/* The host and the class of a node; flows of a node that is not known have class 0. The class of a flow is the higher one
 * of its two nodes' classes. */
uint32_t pwi_datacenter_host(const struct pwi_datacenter *datacenter, struct pwi_sim_node node);
void pwi_datacenter_class(struct pwi_datacenter *datacenter, struct pwi_sim_node node, uint32_t class);

struct pwi_flows_figures pwi_datacenter_figures(const struct pwi_datacenter *datacenter);

#endif
