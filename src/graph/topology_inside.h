/* What the files of the topologies share: a list of edges whose number is known before the first is added. */
#ifndef PWI_GRAPH_TOPOLOGY_INSIDE_H
#define PWI_GRAPH_TOPOLOGY_INSIDE_H

#include <assert.h>

#include "graph/topology.h"

struct pwi_edge_list {
  struct pwi_graph_edge *edges;
  size_t count, room;
};

/* Makes room for exactly `edges` edges. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_edge_list_open(struct pwi_edge_list *list, uint64_t edges, struct pwi_graph_why *why);

static inline void pwi_edge_list_add(struct pwi_edge_list *list, uint32_t from, uint32_t to) {
  assert(list->count < list->room);
  list->edges[list->count++] = (struct pwi_graph_edge){from, to};
}

/* Fill an empty list. The caller frees list->edges, also after a failure. */
PAWL_MUST_USE pawl_status pwi_topology_random(const struct pwi_graph_spec *spec, struct pwi_edge_list *list,
                                              struct pwi_graph_why *why);
PAWL_MUST_USE pawl_status pwi_topology_racks(const struct pwi_graph_spec *spec, struct pwi_edge_list *list,
                                             struct pwi_graph_why *why);

#endif
