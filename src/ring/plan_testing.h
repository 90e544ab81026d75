/* Clusters and loads for the tests and the benchmark of the planner, and a measurement of balance that is
 * independent of the planner's figures: it places keys on the ring one by one. Not part of the library. */
#ifndef PWI_RING_PLAN_TESTING_H
#define PWI_RING_PLAN_TESTING_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "ring/place.h"
#include "ring/plan.h"

#define TESTING_NODES 256

struct testing_cluster {
  struct pwi_view_node nodes[TESTING_NODES];
  size_t count;
  char hosts[TESTING_NODES][16], racks[TESTING_NODES][16];
};

/* `processes` processes of `shards` shards each; two processes to a host, four hosts to a rack. */
static inline void testing_cluster_init(struct testing_cluster *cluster, size_t processes, size_t shards) {
  memset(cluster, 0, sizeof *cluster);
  for (size_t i = 0; i < processes * shards; i++) {
    size_t process = i / shards;
    snprintf(cluster->hosts[i], sizeof cluster->hosts[i], "host%u", (unsigned)(process / 2 % 1000));
    snprintf(cluster->racks[i], sizeof cluster->racks[i], "rack%u", (unsigned)(process / 8 % 1000));
    cluster->nodes[i] = (struct pwi_view_node){.node = {i + 1},
                                               .process = process + 1,
                                               .shard = (uint32_t)(i % shards),
                                               .weight = 1,
                                               .state = PWI_NODE_UP,
                                               .address = "10.0.0.1:7000",
                                               .host = cluster->hosts[i],
                                               .rack = cluster->racks[i]};
  }
  cluster->count = processes * shards;
}

static inline size_t testing_arc_of(const struct pwi_plan *plan, uint64_t position) {
  struct pwi_search search = {.low = 1, .high = plan->arc_count}; /* the first arc begins at 0 */
  while (pwi_search_next(&search)) pwi_search_told(&search, plan->arcs[search.middle].begin <= position);
  return search.low - 1;
}

/* The load of each process, and the highest load relative to the mean of all processes that are up. */
struct testing_balance {
  const struct testing_cluster *cluster;
  const struct pwi_plan *plan;
  double loads[TESTING_NODES + 1]; /* by process */
  double total;
};

static inline void testing_add(struct testing_balance *balance, uint64_t position, double load) {
  const struct pwi_arc *arc = &balance->plan->arcs[testing_arc_of(balance->plan, position)];
  balance->loads[balance->cluster->nodes[arc->chain[0].node.id - 1].process] += load;
  balance->total += load;
}

static inline double testing_over_mean(const struct testing_balance *balance) {
  bool counted[TESTING_NODES + 1] = {0};
  double most = 0, processes = 0;
  for (size_t i = 0; i < balance->cluster->count; i++) {
    size_t process = (size_t)balance->cluster->nodes[i].process;
    if (balance->loads[process] > most) most = balance->loads[process];
    if (balance->cluster->nodes[i].state != PWI_NODE_UP || counted[process]) continue;
    counted[process] = true;
    processes++;
  }
  return balance->total > 0 ? most * processes / balance->total : 0;
}

/* The request rate of key k under Zipf(1.1): rank = key, so the hot keys are neighbours. */
static inline double testing_zipf(uint64_t key) { return pow((double)(key + 1), -1.1); }

/* The load of a dense span under Zipf(1.1) as servers would measure it: single keys at the front, then ranges
 * of doubling size. Returns the number of loads. */
static inline size_t testing_zipf_loads(uint64_t size, struct pwi_load *loads, size_t room) {
  const struct pwi_place place = {size, false};
  size_t count = 0;
  uint64_t begin = 0;
  while (begin < size && count < room) {
    uint64_t width = begin < 256 ? 1 : begin / 128;
    uint64_t end = size - begin > width ? begin + width : size;
    double requests = 0;
    for (uint64_t key = begin; key < end; key++) requests += testing_zipf(key);
    uint64_t from = pwi_place_position(&place, begin);
    uint64_t to = end < size ? pwi_place_position(&place, end) : PWI_RING_END;
    loads[count++] = (struct pwi_load){{from, to}, 4 * (end - begin), (uint64_t)(requests * 1e9), end == begin + 1};
    begin = end;
  }
  return count;
}

#endif
