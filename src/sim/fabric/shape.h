/* The links of a data-centre network, and the routes over them (MLNet 4; Al-Fares et al., SIGCOMM'08).
 *
 * Hosts stand in racks, racks in pods. A host has one link to the switch of its rack. That switch has a link to each
 * aggregation switch of its pod, and each of those to its own core switches, which are linked to the aggregation
 * switch of the same number in every pod. A fat tree of k-port switches has k pods of k/2 racks of k/2 hosts:
 * k = 16 gives 1,024 hosts, 128 rack switches, 128 aggregation switches and 64 core switches.
 *
 * Links are numbered, and each direction is a link of its own. A route has 0 links within a host, 2 within a rack, 4
 * within a pod, and 6 otherwise.
 *
 * ECMP. A flow keeps one of the equal paths: its hash chooses the aggregation switch and the core switch. With `even`
 * it is spread over all of them instead. Since all equal links then carry the same, they are one link here, whose
 * capacity is their sum.
 *
 * OVER-SUBSCRIPTION at a tier divides the capacity of every link of this tier. At 4 in the tier of racks, the hosts
 * of a rack together have four times the capacity of its uplinks; at 4 in the core, a pod has.
 */
#ifndef PWI_SIM_FABRIC_SHAPE_H
#define PWI_SIM_FABRIC_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

enum pwi_fabric_tier {
  PWI_FABRIC_HOSTS, /* between hosts and the switches of their racks */
  PWI_FABRIC_RACKS, /* between those and the aggregation switches */
  PWI_FABRIC_CORE,  /* between those and the core switches */
  PWI_FABRIC_TIERS
};

/* "hosts", "racks", "core". */
const char *pwi_fabric_tier_name(enum pwi_fabric_tier tier);
bool pwi_fabric_tier_find(const char *name, enum pwi_fabric_tier *tier_out);

#define PWI_FABRIC_HOSTS_MAX ((uint32_t)1 << 20)
#define PWI_FABRIC_ROUTE_MAX 6

struct pwi_fabric_shape {
  uint32_t pods, racks, hosts; /* racks of a pod, hosts of a rack */
  uint32_t aggregation, core;  /* aggregation switches of a pod, core switches of one of these */
  double rate;                 /* of a link: bytes per second */
  double over[PWI_FABRIC_TIERS];
  bool even;
};

/* A fat tree of switches with so many ports, even and at least 2, without over-subscription. */
void pwi_fabric_fat_tree(uint32_t ports, double rate, struct pwi_fabric_shape *shape_out);

/* PAWL_INVALID: something is 0, or an over-subscription below 1. PAWL_TOO_LARGE: more than PWI_FABRIC_HOSTS_MAX hosts
 * or switches. All functions below need a shape that was checked. */
PAWL_MUST_USE pawl_status pwi_fabric_shape_check(const struct pwi_fabric_shape *shape);

uint32_t pwi_fabric_hosts(const struct pwi_fabric_shape *shape);
uint32_t pwi_fabric_racks(const struct pwi_fabric_shape *shape);
uint32_t pwi_fabric_links(const struct pwi_fabric_shape *shape);
uint32_t pwi_fabric_switches(const struct pwi_fabric_shape *shape);

/* Of a host. */
uint32_t pwi_fabric_rack_of(const struct pwi_fabric_shape *shape, uint32_t host);

/* The capacity of a link, in bytes per second, its tier, and whether it leads towards hosts. */
struct pwi_fabric_link {
  double capacity;
  enum pwi_fabric_tier tier;
  bool is_down;
};

struct pwi_fabric_link pwi_fabric_link(const struct pwi_fabric_shape *shape, uint32_t link);

/* Writes the links between two hosts in their order, and returns how many they are. */
size_t pwi_fabric_route(const struct pwi_fabric_shape *shape, uint32_t from, uint32_t to, uint64_t hash,
                        uint32_t links_out[PWI_FABRIC_ROUTE_MAX]);

#endif
