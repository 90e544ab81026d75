#include "graph/graph.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/search.h"

pawl_status pwi_graph_refuse(struct pwi_graph_why *why, pawl_status status, const char *format, ...) {
  if (!why) return status;
  va_list list;
  va_start(list, format);
  vsnprintf(why->text, sizeof why->text, format, list);
  va_end(list);
  return status;
}

pawl_status pwi_graph_copy(const struct pwi_graph *graph, struct pwi_graph **graph_out) {
  struct pwi_graph_edge *edges = pwi_alloc_zero(graph->edges + (size_t)1, sizeof *edges);
  size_t at = 0;
  if (!edges) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < graph->nodes; i++)
    for (uint32_t k = graph->out_begin[i]; k < graph->out_begin[i + 1]; k++)
      edges[at++] = (struct pwi_graph_edge){i, graph->out[k]};
  pawl_status status = pwi_graph_create(graph->nodes, edges, graph->edges, NULL, graph_out);
  pwi_free(edges);
  return status;
}

void pwi_graph_destroy(struct pwi_graph *graph) {
  if (!graph) return;
  pwi_free(graph->out_begin);
  pwi_free(graph->out);
  pwi_free(graph->in_begin);
  pwi_free(graph->in);
  pwi_free(graph);
}

static struct pwi_graph *make_empty(uint32_t nodes, uint32_t edges) {
  struct pwi_graph *graph = pwi_alloc_zero(1, sizeof *graph);
  if (!graph) return NULL;
  graph->nodes = nodes;
  graph->edges = edges;
  graph->out_begin = pwi_alloc_zero((size_t)nodes + 1, sizeof *graph->out_begin);
  graph->in_begin = pwi_alloc_zero((size_t)nodes + 1, sizeof *graph->in_begin);
  graph->out = pwi_resize_array(NULL, edges, sizeof *graph->out);
  graph->in = pwi_resize_array(NULL, edges, sizeof *graph->in);
  if (graph->out_begin && graph->in_begin && graph->out && graph->in) return graph;
  pwi_graph_destroy(graph);
  return NULL;
}

/* Converts numbers of neighbours, begin[i + 1] that of node i, to the ends of the rows before them: after
 * appending every neighbour of node i at begin[i + 1]++, begin[i] is the first of its row. */
static void open_rows(uint32_t *begin, uint32_t nodes) {
  uint32_t sum = 0;
  for (uint32_t i = 1; i <= nodes; i++) {
    uint32_t here = begin[i];
    begin[i] = sum;
    sum += here;
  }
}

/* Sorts both rows of every node by three passes of a bucket sort. The first pass orders the edges by their
 * target. Each of the others writes rows in the order of the rows that the previous pass wrote, so that its own
 * rows ascend. */
static pawl_status fill(struct pwi_graph *graph, const struct pwi_graph_edge *edges, size_t count) {
  uint32_t nodes = graph->nodes, *out = graph->out_begin, *in = graph->in_begin;
  uint32_t *again = pwi_alloc_zero((size_t)nodes + 1, sizeof *again);
  if (!again) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    out[edges[i].from + 1]++;
    in[edges[i].to + 1]++;
    again[edges[i].to + 1]++;
  }
  open_rows(out, nodes);
  open_rows(in, nodes);
  open_rows(again, nodes);
  for (size_t i = 0; i < count; i++) graph->in[again[edges[i].to + 1]++] = edges[i].from;
  for (uint32_t to = 0; to < nodes; to++)
    for (uint32_t k = again[to]; k < again[to + 1]; k++) graph->out[out[graph->in[k] + 1]++] = to;
  for (uint32_t from = 0; from < nodes; from++)
    for (uint32_t k = out[from]; k < out[from + 1]; k++) graph->in[in[graph->out[k] + 1]++] = from;
  pwi_free(again);
  return PAWL_OK;
}

static pawl_status check_edges(size_t nodes, const struct pwi_graph_edge *edges, size_t count,
                               struct pwi_graph_why *why) {
  for (size_t i = 0; i < count; i++) {
    uint32_t from = edges[i].from, to = edges[i].to;
    if (from >= nodes || to >= nodes)
      return pwi_graph_refuse(
          why, PAWL_INVALID, "the edge from %" PRIu32 " to %" PRIu32 " names a node that does not exist: there are %zu",
          from, to, nodes);
    if (from == to) return pwi_graph_refuse(why, PAWL_INVALID, "node %" PRIu32 " sends to itself", from);
  }
  return PAWL_OK;
}

static pawl_status check_unique(const struct pwi_graph *graph, struct pwi_graph_why *why) {
  for (uint32_t from = 0; from < graph->nodes; from++) {
    struct pwi_graph_row row = pwi_graph_out(graph, from);
    for (size_t k = 1; k < row.count; k++)
      if (row.nodes[k] == row.nodes[k - 1])
        return pwi_graph_refuse(why, PAWL_EXISTS, "the edge from %" PRIu32 " to %" PRIu32 " occurs twice", from,
                                row.nodes[k]);
  }
  return PAWL_OK;
}

static pawl_status check_size(size_t nodes, size_t edges, struct pwi_graph_why *why) {
  if (nodes == 0) return pwi_graph_refuse(why, PAWL_INVALID, "a graph needs at least one node");
  if (nodes > PWI_GRAPH_NODES_MAX)
    return pwi_graph_refuse(why, PAWL_TOO_LARGE, "%zu nodes are more than %" PRIu32, nodes, PWI_GRAPH_NODES_MAX);
  if (edges > PWI_GRAPH_EDGES_MAX)
    return pwi_graph_refuse(why, PAWL_TOO_LARGE, "%zu edges are more than %" PRIu32, edges, PWI_GRAPH_EDGES_MAX);
  return PAWL_OK;
}

pawl_status pwi_graph_create(size_t nodes, const struct pwi_graph_edge *edges, size_t count, struct pwi_graph_why *why,
                             struct pwi_graph **graph_out) {
  pawl_status status = check_size(nodes, count, why);
  if (!status) status = check_edges(nodes, edges, count, why);
  if (status) return status;
  struct pwi_graph *graph = make_empty((uint32_t)nodes, (uint32_t)count);
  status = graph ? fill(graph, edges, count) : PAWL_NO_MEMORY;
  if (status) pwi_graph_refuse(why, status, "out of memory for a graph of %zu edges", count);
  if (!status) status = check_unique(graph, why);
  if (status)
    pwi_graph_destroy(graph);
  else
    *graph_out = graph;
  return status;
}

bool pwi_graph_has(const struct pwi_graph *graph, uint32_t from, uint32_t to) {
  struct pwi_graph_row row = pwi_graph_out(graph, from);
  struct pwi_search search = {.high = row.count};
  while (pwi_search_next(&search)) pwi_search_told(&search, row.nodes[search.middle] < to);
  return search.low < row.count && row.nodes[search.low] == to;
}

static void widen(uint32_t value, uint32_t *min, uint32_t *max) {
  if (value < *min) *min = value;
  if (value > *max) *max = value;
}

struct pwi_graph_degrees pwi_graph_degrees(const struct pwi_graph *graph) {
  struct pwi_graph_degrees degrees = {.out_min = UINT32_MAX, .in_min = UINT32_MAX};
  for (uint32_t i = 0; i < graph->nodes; i++) {
    widen((uint32_t)pwi_graph_out(graph, i).count, &degrees.out_min, &degrees.out_max);
    widen((uint32_t)pwi_graph_in(graph, i).count, &degrees.in_min, &degrees.in_max);
  }
  return degrees;
}
