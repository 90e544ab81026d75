/* What flows.c and rates.c share. Rates are in bytes per nanosecond. */
#ifndef PWI_SIM_FABRIC_INSIDE_H
#define PWI_SIM_FABRIC_INSIDE_H

#include "sim/fabric/flows.h"
#include "sim/fabric/shape.h"

#define FLOW_HOPS PWI_FABRIC_ROUTE_MAX /* longer lists of links are allocated */
#define NO_LINK UINT32_MAX
#define NO_PLACE UINT32_MAX

struct flow_hop {
  uint32_t link, weight;
  uint32_t place; /* in the members of the link */
};

enum flow_stage { FLOW_FREE, FLOW_SENDING, FLOW_TRAVELLING };

struct flow {
  double bytes, left;  /* left: at `since` */
  double rate, before; /* before: of the flows in `chosen`, until their new rates are used */
  int64_t since, at;   /* at: when it stops sending, or arrives */
  int64_t latency;
  uint64_t cookie;
  struct flow_hop *many; /* NULL: the hops are `few` */
  struct flow_hop few[FLOW_HOPS];
  uint32_t hop_count;
  uint32_t generation;
  uint32_t place;      /* in the heap */
  uint32_t bottleneck; /* NO_LINK: not rated yet */
  uint32_t next_free;
  uint8_t class, stage;
  bool is_chosen, is_rated;
};

struct member {
  uint32_t flow, hop;
};

struct link {
  double capacity;
  double bytes;
  struct member *members;
  size_t count, room;
  double open;   /* while rating: capacity that is not taken yet */
  uint64_t load; /* while rating: weights of flows that are not rated yet */
  bool has_incast;
  bool is_touched;  /* in `touched` */
  bool is_absorbed; /* all its flows are chosen */
};

struct link_share {
  double rate;
  uint32_t link;
};

struct pwi_flows {
  struct pwi_flows_config config;
  struct link *links;
  size_t link_count;
  struct flow *flows;
  size_t flow_count, flow_room;
  uint32_t first_free;
  int64_t now;
  uint32_t *heap; /* flows, by `at` */
  size_t heap_count, heap_room;
  uint32_t *touched; /* links whose flows changed; room for all links */
  size_t touched_count;
  uint32_t *chosen, *sorted; /* flows that are rated again; both have room for all flows */
  size_t chosen_count, chosen_room, sorted_room;
  struct link_share *shares; /* a heap; room for all links */
  size_t share_count;
  struct pwi_flows_figures figures;
};

static inline struct flow_hop *hops_of(struct flow *flow) { return flow->many ? flow->many : flow->few; }

/* Computes the rates of the flows that the changes of the touched links can affect. Afterwards `chosen` are these
 * flows, with their rates of before, and no link is touched. */
void pwi_flows_rate(struct pwi_flows *flows);

void pwi_flows_touch(struct pwi_flows *flows, uint32_t link);

/* Whether the link carries no more than its capacity, and its flows whose bottleneck it is find it full and no flow of
 * theirs or a lower class faster. */
bool pwi_flows_link_is_fair(const struct pwi_flows *flows, uint32_t link);

#endif
