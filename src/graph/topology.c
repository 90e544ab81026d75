/* Names of topologies, and the edges of all but random graphs and racks. */
#include "graph/topology.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "graph/topology_inside.h"

static const struct pwi_topology_info infos[PWI_TOPOLOGIES] = {
    [PWI_TOPOLOGY_COMPLETE] = {"complete", "any", "N-1", "every node sends to every other: all-reduce"},
    [PWI_TOPOLOGY_STAR] = {"star", "any", "1; node 0: N-1", "node 0 and every other node send to each other"},
    [PWI_TOPOLOGY_RING] = {"ring", "any", "1", "node i sends to i+1, the last node to node 0"},
    [PWI_TOPOLOGY_CHAIN] = {"chain", "any", "1; last: 0",
                            "node i sends to i+1, the last to none; not strongly connected"},
    [PWI_TOPOLOGY_ROOT] = {"root", "any", "2", "node i sends to i+1 and i+round(sqrt N)"},
    [PWI_TOPOLOGY_RANDOM] = {"random", "any", "--degree (2)", "a random regular graph, drawn with --seed"},
    [PWI_TOPOLOGY_HYPERCUBE] = {"hypercube", "2^k", "log2 N", "nodes whose numbers differ in one bit"},
    [PWI_TOPOLOGY_BUTTERFLY] = {"butterfly", "k * 2^k", "2", "k levels of 2^k nodes, each sends to the next level"},
    [PWI_TOPOLOGY_RACKS] = {"racks", "any", "rack's size", "complete in each of --racks, --degree links out of it"},
};

const struct pwi_topology_info *pwi_topology_info(enum pwi_topology topology) { return &infos[topology]; }

bool pwi_topology_find(const char *name, enum pwi_topology *topology_out) {
  for (int i = 0; i < PWI_TOPOLOGIES; i++)
    if (strcmp(infos[i].name, name) == 0) {
      *topology_out = (enum pwi_topology)i;
      return true;
    }
  return false;
}

pawl_status pwi_edge_list_open(struct pwi_edge_list *list, uint64_t edges, struct pwi_graph_why *why) {
  if (edges > PWI_GRAPH_EDGES_MAX)
    return pwi_graph_refuse(why, PAWL_TOO_LARGE,
                            "%" PRIu64 " edges are more than %" PRIu32 "; choose a sparser topology or fewer nodes",
                            edges, PWI_GRAPH_EDGES_MAX);
  list->edges = pwi_resize_array(NULL, (size_t)edges, sizeof *list->edges);
  if (!list->edges) return pwi_graph_refuse(why, PAWL_NO_MEMORY, "out of memory for %" PRIu64 " edges", edges);
  list->room = (size_t)edges;
  return PAWL_OK;
}

/* In integers: sqrt(N) >= r + 1/2 means N > r * r + r. */
uint32_t pwi_topology_root(uint32_t nodes) {
  uint32_t root = 0;
  while ((uint64_t)(root + 1) * (root + 1) <= nodes) root++;
  return (uint64_t)root * root + root < nodes ? root + 1 : root;
}

/* --- regular patterns ----------------------------------------------------------------------------------- */

static pawl_status make_complete(uint32_t nodes, struct pwi_edge_list *list, struct pwi_graph_why *why) {
  pawl_status status = pwi_edge_list_open(list, (uint64_t)nodes * (nodes - 1), why);
  if (status) return status;
  for (uint32_t i = 0; i < nodes; i++)
    for (uint32_t k = 0; k < nodes; k++)
      if (k != i) pwi_edge_list_add(list, i, k);
  return PAWL_OK;
}

static pawl_status make_star(uint32_t nodes, struct pwi_edge_list *list, struct pwi_graph_why *why) {
  pawl_status status = pwi_edge_list_open(list, 2 * (uint64_t)(nodes - 1), why);
  if (status) return status;
  for (uint32_t i = 1; i < nodes; i++) {
    pwi_edge_list_add(list, 0, i);
    pwi_edge_list_add(list, i, 0);
  }
  return PAWL_OK;
}

static pawl_status make_chain(uint32_t nodes, bool is_closed, struct pwi_edge_list *list, struct pwi_graph_why *why) {
  pawl_status status = pwi_edge_list_open(list, nodes, why);
  if (status) return status;
  for (uint32_t i = 0; i + 1 < nodes; i++) pwi_edge_list_add(list, i, i + 1);
  if (is_closed && nodes > 1) pwi_edge_list_add(list, nodes - 1, 0);
  return PAWL_OK;
}

static pawl_status make_root(uint32_t nodes, struct pwi_edge_list *list, struct pwi_graph_why *why) {
  uint32_t step = pwi_topology_root(nodes);
  pawl_status status = make_chain(nodes, true, list, why);
  if (status || nodes <= 2) return status;
  struct pwi_graph_edge *edges = pwi_resize_array(list->edges, 2 * (size_t)nodes, sizeof *edges);
  if (!edges) return pwi_graph_refuse(why, PAWL_NO_MEMORY, "out of memory for %" PRIu64 " edges", 2 * (uint64_t)nodes);
  list->edges = edges;
  list->room = 2 * (size_t)nodes;
  for (uint32_t i = 0; i < nodes; i++) pwi_edge_list_add(list, i, (i + step) % nodes);
  return PAWL_OK;
}

/* --- powers of two -------------------------------------------------------------------------------------- */

static pawl_status make_hypercube(uint32_t nodes, struct pwi_edge_list *list, struct pwi_graph_why *why) {
  uint32_t dimensions = 31 - (uint32_t)__builtin_clz(nodes);
  if (nodes != (uint32_t)1 << dimensions)
    return pwi_graph_refuse(why, PAWL_INVALID,
                            "a hypercube needs a power of two of nodes, such as %" PRIu32 " or %" PRIu32
                            ", not %" PRIu32,
                            (uint32_t)1 << dimensions, (uint32_t)2 << dimensions, nodes);
  pawl_status status = pwi_edge_list_open(list, (uint64_t)nodes * dimensions, why);
  if (status) return status;
  for (uint32_t i = 0; i < nodes; i++)
    for (uint32_t bit = 0; bit < dimensions; bit++) pwi_edge_list_add(list, i, i ^ (uint32_t)1 << bit);
  return PAWL_OK;
}

/* At k = 1 the straight edge of a node would lead to the node itself, and is left out. */
static pawl_status make_butterfly(uint32_t nodes, struct pwi_edge_list *list, struct pwi_graph_why *why) {
  uint32_t levels = 1;
  while (levels << levels < nodes) levels++;
  if (levels << levels != nodes)
    return pwi_graph_refuse(why, PAWL_INVALID,
                            "a butterfly needs k * 2^k nodes, such as %" PRIu32 " or %" PRIu32 ", not %" PRIu32,
                            levels > 1 ? (levels - 1) << (levels - 1) : 2, levels > 1 ? levels << levels : 8, nodes);
  pawl_status status = pwi_edge_list_open(list, 2 * (uint64_t)nodes, why);
  if (status) return status;
  uint32_t width = (uint32_t)1 << levels;
  for (uint32_t i = 0; i < nodes; i++) {
    uint32_t level = i / width, row = i % width, next = (level + 1) % levels * width;
    if (next + row != i) pwi_edge_list_add(list, i, next + row);
    pwi_edge_list_add(list, i, next + (row ^ (uint32_t)1 << level));
  }
  return PAWL_OK;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static pawl_status make_edges(const struct pwi_graph_spec *spec, struct pwi_edge_list *list,
                              struct pwi_graph_why *why) {
  switch (spec->topology) {
  case PWI_TOPOLOGY_COMPLETE:
    return make_complete(spec->nodes, list, why);
  case PWI_TOPOLOGY_STAR:
    return make_star(spec->nodes, list, why);
  case PWI_TOPOLOGY_RING:
    return make_chain(spec->nodes, true, list, why);
  case PWI_TOPOLOGY_CHAIN:
    return make_chain(spec->nodes, false, list, why);
  case PWI_TOPOLOGY_ROOT:
    return make_root(spec->nodes, list, why);
  case PWI_TOPOLOGY_RANDOM:
    return pwi_topology_random(spec, list, why);
  case PWI_TOPOLOGY_HYPERCUBE:
    return make_hypercube(spec->nodes, list, why);
  case PWI_TOPOLOGY_BUTTERFLY:
    return make_butterfly(spec->nodes, list, why);
  case PWI_TOPOLOGY_RACKS:
    return pwi_topology_racks(spec, list, why);
  case PWI_TOPOLOGIES:
    break;
  }
  return pwi_graph_refuse(why, PAWL_INVALID, "unknown topology");
}

pawl_status pwi_graph_make(const struct pwi_graph_spec *spec, struct pwi_graph_why *why, struct pwi_graph **graph_out) {
  struct pwi_edge_list list = {0};
  bool has_degree = spec->topology == PWI_TOPOLOGY_RANDOM || spec->topology == PWI_TOPOLOGY_RACKS;
  if (spec->nodes == 0) return pwi_graph_refuse(why, PAWL_INVALID, "a graph needs at least one node");
  if (spec->nodes > PWI_GRAPH_NODES_MAX)
    return pwi_graph_refuse(why, PAWL_TOO_LARGE, "%" PRIu32 " nodes are more than %" PRIu32, spec->nodes,
                            PWI_GRAPH_NODES_MAX);
  if (spec->degree && !has_degree && spec->topology < PWI_TOPOLOGIES)
    return pwi_graph_refuse(why, PAWL_INVALID, "the degree of topology %s cannot be chosen",
                            infos[spec->topology].name);
  pawl_status status = make_edges(spec, &list, why);
  if (!status) status = pwi_graph_create(spec->nodes, list.edges, list.count, why, graph_out);
  pwi_free(list.edges);
  return status;
}
