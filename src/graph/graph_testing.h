/* Graphs for the tests of this module. */
#ifndef PWI_GRAPH_GRAPH_TESTING_H
#define PWI_GRAPH_GRAPH_TESTING_H

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "graph/topology.h"
#include "graph/weights.h"

static inline struct pwi_graph *make_spec(const struct pwi_graph_spec *spec) {
  struct pwi_graph_why why = {""};
  struct pwi_graph *graph = NULL;
  if (pwi_graph_make(spec, &why, &graph)) fail_msg("%s", why.text);
  return graph;
}

static inline struct pwi_graph *make_named(enum pwi_topology topology, uint32_t nodes) {
  return make_spec(&(struct pwi_graph_spec){.topology = topology, .nodes = nodes});
}

static inline struct pwi_graph *make_edges(size_t nodes, const struct pwi_graph_edge *edges, size_t count) {
  struct pwi_graph *graph = NULL;
  assert_int_equal(pwi_graph_create(nodes, edges, count, NULL, &graph), PAWL_OK);
  return graph;
}

/* Each edge is there with a probability of `density`; with `both`, in both directions or in none. */
static inline struct pwi_graph *make_irregular(uint32_t nodes, double density, bool both, uint64_t seed) {
  struct pwi_random random;
  struct pwi_graph_edge *edges = pwi_resize_array(NULL, (size_t)nodes * nodes, sizeof *edges);
  size_t count = 0;
  assert_non_null(edges);
  pwi_random_init(&random, seed, 0);
  for (uint32_t i = 0; i < nodes; i++)
    for (uint32_t k = both ? i + 1 : 0; k < nodes; k++) {
      if (k == i || !pwi_random_chance(&random, density)) continue;
      edges[count++] = (struct pwi_graph_edge){i, k};
      if (both) edges[count++] = (struct pwi_graph_edge){k, i};
    }
  struct pwi_graph *graph = make_edges(nodes, edges, count);
  pwi_free(edges);
  return graph;
}

#endif
