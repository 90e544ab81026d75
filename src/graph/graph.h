/* Directed graphs over which peers share values (ASAP, section 3): an edge from j to i means that node j sends
 * its value to node i in every round.
 *
 * Nodes are numbered 0 .. nodes-1. A graph has no loops, because a node always has its own value, and no edge
 * twice. It is stored as compressed rows in both directions, so that a node finds its out-neighbours and its
 * in-neighbours at once. A row ascends. A graph takes 8 bytes for each edge and 8 for each node.
 *
 * Threads: a graph does not change after it was created; any number of threads may read it.
 */
#ifndef PWI_GRAPH_GRAPH_H
#define PWI_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#define PWI_GRAPH_NODES_MAX ((uint32_t)1 << 20)
#define PWI_GRAPH_EDGES_MAX ((uint32_t)1 << 26)

struct pwi_graph_edge {
  uint32_t from, to;
};

struct pwi_graph {
  uint32_t nodes;
  uint32_t edges;
  uint32_t *out_begin; /* nodes + 1 values: node i sends to out[out_begin[i] .. out_begin[i + 1]) */
  uint32_t *out;
  uint32_t *in_begin; /* nodes + 1 values: node i receives from in[in_begin[i] .. in_begin[i + 1]) */
  uint32_t *in;
};

/* The neighbours of one node, in ascending order; valid as long as the graph. */
struct pwi_graph_row {
  const uint32_t *nodes;
  size_t count;
};

static inline struct pwi_graph_row pwi_graph_out(const struct pwi_graph *graph, uint32_t node) {
  uint32_t begin = graph->out_begin[node];
  return (struct pwi_graph_row){graph->out + begin, graph->out_begin[node + 1] - begin};
}

static inline struct pwi_graph_row pwi_graph_in(const struct pwi_graph *graph, uint32_t node) {
  uint32_t begin = graph->in_begin[node];
  return (struct pwi_graph_row){graph->in + begin, graph->in_begin[node + 1] - begin};
}

/* Explains why a graph cannot be made, read or weighted. The function that detects the error writes the text;
 * its callers pass it on. Every function that takes one accepts NULL. */
struct pwi_graph_why {
  char text[512];
};

/* Writes the text and returns `status`. */
pawl_status pwi_graph_refuse(struct pwi_graph_why *why, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);

/* Makes a graph of edges in any order. Destroy it with pwi_graph_destroy.
 *
 * PAWL_INVALID     `nodes` is 0, a node of an edge does not exist, or an edge is a loop
 * PAWL_EXISTS      an edge occurs twice
 * PAWL_TOO_LARGE   more than PWI_GRAPH_NODES_MAX nodes or PWI_GRAPH_EDGES_MAX edges
 * PAWL_NO_MEMORY */
PAWL_MUST_USE pawl_status pwi_graph_create(size_t nodes, const struct pwi_graph_edge *edges, size_t count,
                                           struct pwi_graph_why *why, struct pwi_graph **graph_out);

/* PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_graph_copy(const struct pwi_graph *graph, struct pwi_graph **graph_out);

/* NULL is fine. */
void pwi_graph_destroy(struct pwi_graph *graph);

/* Tells whether `from` sends to `to`. */
bool pwi_graph_has(const struct pwi_graph *graph, uint32_t from, uint32_t to);

/* The smallest and largest out-degree and in-degree. */
struct pwi_graph_degrees {
  uint32_t out_min, out_max, in_min, in_max;
};

struct pwi_graph_degrees pwi_graph_degrees(const struct pwi_graph *graph);

#endif
