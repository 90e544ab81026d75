/* Flows that share links, in virtual time.
 *
 * A flow moves bytes over a list of links. All flows share the links max-min fairly, as many TCP connections do
 * (MLNet 4): no flow can get more without taking from one that has no more than it. In other words, every flow has a
 * bottleneck, a link that is full and on which no other flow is faster. Rates change when a flow begins, ends or
 * changes, and only then; between two changes a flow moves at its rate.
 *
 * PRIORITY. Flows have classes. A higher class takes what it can, as if lower ones were not there, and lower ones share
 * the rest. A flow may get nothing for a while.
 *
 * WEIGHT. A flow may use a link with a weight: its rate counts so many times there. A tree along which bytes are
 * aggregated as they arrive is one flow, whose weight on a link is the number of branches that pass over it.
 *
 * LATENCY. A flow arrives so long after its last byte was sent; it no longer uses links then.
 *
 * INCAST. As an option, a link into a host has less to share the more flows end there at once: above `incast_flows`
 * flows, n of them share the part 1 - incast_loss * (1 - incast_flows / n) of the capacity.
 *
 * GRAIN. With a grain, flows arrive only at multiples of it. A flow keeps its share until then. Runs with hundreds of
 * thousands of flows of different length are then possible, since flows that end within one grain change the rates
 * once. Without a grain (0), rates are exact.
 *
 * A run is a loop: begin flows, then take arrivals in the order of time. Rates follow from the flows alone, so the same
 * calls give the same times. Threads: an object belongs to one thread.
 */
#ifndef PWI_SIM_FABRIC_FLOWS_H
#define PWI_SIM_FABRIC_FLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#define PWI_FLOW_CLASSES 64
#define PWI_FLOW_NEVER INT64_MAX

struct pwi_flows;

struct pwi_flow_link {
  double capacity; /* bytes per second; 0: nothing passes */
  bool has_incast;
};

struct pwi_flows_config {
  const struct pwi_flow_link *links; /* copied */
  size_t link_count;
  int64_t grain_ns;
  uint32_t incast_flows; /* 0: no incast */
  double incast_loss;    /* 0 to 1 */
};

/* PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_flows_create(const struct pwi_flows_config *config, struct pwi_flows **flows_out);
void pwi_flows_destroy(struct pwi_flows *flows); /* NULL is fine */

struct pwi_flow_hop {
  uint32_t link;
  uint32_t weight; /* at least 1 */
};

struct pwi_flow_spec {
  const struct pwi_flow_hop *hops; /* copied; no link occurs twice */
  size_t hop_count;                /* 0: the flow stays within a host, and takes its latency only */
  double bytes;
  uint32_t class; /* below PWI_FLOW_CLASSES; higher ones go first */
  int64_t latency_ns;
  uint64_t cookie;
};

/* Never reused. */
struct pwi_flow_id {
  uint64_t value;
};

/* Begins a flow now. PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_flow_begin(struct pwi_flows *flows, const struct pwi_flow_spec *spec,
                                         struct pwi_flow_id *id_out);

/* Removes a flow that has not arrived: it never will. False if there is no such flow. */
bool pwi_flow_end(struct pwi_flows *flows, struct pwi_flow_id id);

/* Changes the class of a flow. False if there is no such flow. */
bool pwi_flow_change(struct pwi_flows *flows, struct pwi_flow_id id, uint32_t class);

/* Changes the capacity of a link. */
void pwi_flow_link_change(struct pwi_flows *flows, uint32_t link, double capacity);

int64_t pwi_flows_now(const struct pwi_flows *flows);

/* When the next flow arrives or stops using links; PWI_FLOW_NEVER if none will. */
int64_t pwi_flows_next(struct pwi_flows *flows);

/* Moves time on to the next arrival that is not later than `limit`, and returns its cookie. False if there is none: time
 * is then `limit`, unless this is PWI_FLOW_NEVER. */
bool pwi_flows_take(struct pwi_flows *flows, int64_t limit, uint64_t *cookie_out);

/* The present rate of a flow, bytes per second, and the bytes that it has moved. */
struct pwi_flow_state {
  double rate, moved;
};

/* False if there is no such flow. */
bool pwi_flow_state(struct pwi_flows *flows, struct pwi_flow_id id, struct pwi_flow_state *state_out);

/* What a link has carried so far, by flows that have left it. */
double pwi_flow_link_bytes(const struct pwi_flows *flows, uint32_t link);

struct pwi_flows_figures {
  uint64_t begun, arrived, ended; /* flows; `ended` by pwi_flow_end */
  uint64_t changes;               /* times at which rates were computed */
  uint64_t rerated;               /* flows whose rates were computed, summed over the changes */
  uint64_t present, most;         /* flows that use links, now and at most */
};
struct pwi_flows_figures pwi_flows_figures(const struct pwi_flows *flows);

/* Whether the present rates are max-min fair: no link above its capacity, and a bottleneck for every flow. For tests;
 * takes as long as all flows have links. */
bool pwi_flows_are_fair(struct pwi_flows *flows);

#endif
