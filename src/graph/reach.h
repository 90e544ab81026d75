/* Which nodes reach which: strong connection, the diameter, and the lengths of all shortest paths.
 *
 * A graph is strongly connected if there is a path from every node to every other. Only then do the values of all
 * nodes influence one another. The diameter is the largest number of edges on a shortest path between two nodes:
 * after so many rounds the value of every node has reached all others.
 */
#ifndef PWI_GRAPH_REACH_H
#define PWI_GRAPH_REACH_H

#include "graph/graph.h"

struct pwi_reach {
  bool is_strong;    /* the graph is strongly connected */
  uint32_t from, to; /* if it is not: there is no path from `from` to `to` */
};

/* PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_reach_check(const struct pwi_graph *graph, struct pwi_reach *reach_out);

struct pwi_diameter {
  uint32_t length;
  bool is_exact; /* false: the limit was reached before all nodes were tried; the diameter is at least `length` */
};

/* Edges that pwi_diameter_find visits by default: about a second. It is exact for the root graph up to 12,000
 * nodes. */
#define PWI_DIAMETER_LIMIT ((uint64_t)500000000)

/* Searches from one node after the other, breadth first, until all were tried or `limit` edges were visited; the
 * search from one node is always finished. The nodes are tried in an order that spreads over all numbers. The
 * graph must be strongly connected. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_diameter_find(const struct pwi_graph *graph, uint64_t limit,
                                            struct pwi_diameter *diameter_out);

/* The lengths of the shortest paths from every node to every other. */
struct pwi_path_lengths {
  uint64_t sum;
  uint32_t longest; /* the diameter */
};

/* Searches from every node. The graph must be strongly connected. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_path_lengths_find(const struct pwi_graph *graph, struct pwi_path_lengths *lengths_out);

#endif
