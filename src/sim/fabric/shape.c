#include "sim/fabric/shape.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

static const char *const tier_names[PWI_FABRIC_TIERS] = {"hosts", "racks", "core"};

const char *pwi_fabric_tier_name(enum pwi_fabric_tier tier) { return tier_names[tier]; }

bool pwi_fabric_tier_find(const char *name, enum pwi_fabric_tier *tier_out) {
  for (int i = 0; i < PWI_FABRIC_TIERS; i++)
    if (strcmp(name, tier_names[i]) == 0) {
      *tier_out = (enum pwi_fabric_tier)i;
      return true;
    }
  return false;
}

void pwi_fabric_fat_tree(uint32_t ports, double rate, struct pwi_fabric_shape *shape_out) {
  uint32_t half = ports / 2;
  *shape_out = (struct pwi_fabric_shape){
      .pods = ports, .racks = half, .hosts = half, .aggregation = half, .core = half, .rate = rate, .over = {1, 1, 1}};
}

/* The product, or more than the limit. */
static uint64_t times(uint64_t a, uint64_t b) { return a > PWI_FABRIC_HOSTS_MAX ? a : a * b; }

pawl_status pwi_fabric_shape_check(const struct pwi_fabric_shape *shape) {
  if (!shape->pods || !shape->racks || !shape->hosts || !shape->aggregation || !shape->core) return PAWL_INVALID;
  if (!(shape->rate > 0) || !isfinite(shape->rate)) return PAWL_INVALID;
  for (int i = 0; i < PWI_FABRIC_TIERS; i++)
    if (!(shape->over[i] >= 1) || !isfinite(shape->over[i])) return PAWL_INVALID;
  uint64_t racks = times(shape->pods, shape->racks), upper = times(shape->pods, shape->aggregation);
  bool fits = times(racks, shape->hosts) <= PWI_FABRIC_HOSTS_MAX &&
              times(racks, shape->aggregation) <= PWI_FABRIC_HOSTS_MAX &&
              times(upper, shape->core) <= PWI_FABRIC_HOSTS_MAX;
  return fits ? PAWL_OK : PAWL_TOO_LARGE;
}

uint32_t pwi_fabric_racks(const struct pwi_fabric_shape *shape) { return shape->pods * shape->racks; }
uint32_t pwi_fabric_hosts(const struct pwi_fabric_shape *shape) { return pwi_fabric_racks(shape) * shape->hosts; }

/* Equal links of a rack, and of a pod. */
static uint32_t rack_links(const struct pwi_fabric_shape *shape) { return shape->even ? 1 : shape->aggregation; }

static uint32_t pod_links(const struct pwi_fabric_shape *shape) {
  return shape->even ? 1 : shape->aggregation * shape->core;
}

/* The numbers of links: hosts up and down, racks up and down, pods up and down. */
static uint32_t links_of(const struct pwi_fabric_shape *shape, enum pwi_fabric_tier tier) {
  if (tier == PWI_FABRIC_HOSTS) return pwi_fabric_hosts(shape);
  return tier == PWI_FABRIC_RACKS ? pwi_fabric_racks(shape) * rack_links(shape) : shape->pods * pod_links(shape);
}

static uint32_t first_of(const struct pwi_fabric_shape *shape, enum pwi_fabric_tier tier, bool is_down) {
  uint32_t first = is_down ? links_of(shape, tier) : 0;
  for (int below = 0; below < (int)tier; below++) first += 2 * links_of(shape, (enum pwi_fabric_tier)below);
  return first;
}

uint32_t pwi_fabric_links(const struct pwi_fabric_shape *shape) {
  return first_of(shape, PWI_FABRIC_CORE, true) + links_of(shape, PWI_FABRIC_CORE);
}

uint32_t pwi_fabric_switches(const struct pwi_fabric_shape *shape) {
  return pwi_fabric_racks(shape) + shape->pods * shape->aggregation + shape->aggregation * shape->core;
}

uint32_t pwi_fabric_rack_of(const struct pwi_fabric_shape *shape, uint32_t host) { return host / shape->hosts; }

struct pwi_fabric_link pwi_fabric_link(const struct pwi_fabric_shape *shape, uint32_t link) {
  int tier = PWI_FABRIC_HOSTS;
  while (tier < PWI_FABRIC_CORE && link >= first_of(shape, (enum pwi_fabric_tier)(tier + 1), false)) tier++;
  double together = 1;
  if (shape->even && tier == PWI_FABRIC_RACKS) together = shape->aggregation;
  if (shape->even && tier == PWI_FABRIC_CORE) together = (double)shape->aggregation * shape->core;
  return (struct pwi_fabric_link){.capacity = shape->rate * together / shape->over[tier],
                                  .tier = (enum pwi_fabric_tier)tier,
                                  .is_down = link >= first_of(shape, (enum pwi_fabric_tier)tier, true)};
}

size_t pwi_fabric_route(const struct pwi_fabric_shape *shape, uint32_t from, uint32_t to, uint64_t hash,
                        uint32_t links_out[PWI_FABRIC_ROUTE_MAX]) {
  uint32_t from_rack = from / shape->hosts, to_rack = to / shape->hosts;
  uint32_t from_pod = from_rack / shape->racks, to_pod = to_rack / shape->racks;
  uint64_t mixed = pwi_mix64(hash);
  uint32_t rack_link = (uint32_t)(mixed >> 32) % rack_links(shape);
  uint32_t pod_link = shape->even ? 0 : rack_link * shape->core + (uint32_t)mixed % shape->core;
  size_t count = 0;
  if (from == to) return 0;
  links_out[count++] = from;
  if (from_rack != to_rack)
    links_out[count++] = first_of(shape, PWI_FABRIC_RACKS, false) + from_rack * rack_links(shape) + rack_link;
  if (from_pod != to_pod) {
    links_out[count++] = first_of(shape, PWI_FABRIC_CORE, false) + from_pod * pod_links(shape) + pod_link;
    links_out[count++] = first_of(shape, PWI_FABRIC_CORE, true) + to_pod * pod_links(shape) + pod_link;
  }
  if (from_rack != to_rack)
    links_out[count++] = first_of(shape, PWI_FABRIC_RACKS, true) + to_rack * rack_links(shape) + rack_link;
  links_out[count++] = first_of(shape, PWI_FABRIC_HOSTS, true) + to;
  return count;
}
