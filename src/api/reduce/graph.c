/* The graph that the options of a reduce name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/reduce/reduce.h"
#include "graph/reach.h"
#include "graph/text.h"

/* In a graph that is not strongly connected some members never hear of others. */
static pawl_status check_strong(const char *name, const struct pwi_graph *graph) {
  struct pwi_reach reach;
  pawl_status status = pwi_reach_check(graph, &reach);
  if (status) return pwi_error_status(status, "graph %s", name);
  if (reach.is_strong) return PAWL_OK;
  return pwi_error(PAWL_INVALID,
                   "graph %s is not strongly connected: there is no path from node %" PRIu32 " to node %" PRIu32, name,
                   reach.from, reach.to);
}

static pawl_status read_file(const char *path, uint32_t founders, struct pwi_graph **graph_out) {
  struct pwi_graph_why why = {""};
  struct pwi_graph *graph;
  pawl_status status = pwi_graph_read(path, &why, &graph);
  if (status) return why.text[0] ? pwi_error(status, "%s", why.text) : pwi_error_status(status, "%s", path);
  if (graph->nodes != founders)
    status = pwi_error(PAWL_MISMATCH, "%s has %" PRIu32 " nodes, but the group has %" PRIu32 " founding members", path,
                       graph->nodes, founders);
  else
    status = check_strong(path, graph);
  if (status)
    pwi_graph_destroy(graph);
  else
    *graph_out = graph;
  return status;
}

/* Racks are not known before all members are. */
static pawl_status try_topology(const struct pwi_reduce_graph *option, uint32_t founders) {
  struct pwi_graph_spec spec = {
      .topology = option->topology, .nodes = founders, .degree = option->degree, .seed = option->seed};
  struct pwi_graph_why why = {""};
  struct pwi_graph *graph;
  if (option->topology == PWI_TOPOLOGY_RACKS || founders == 1) return PAWL_OK;
  pawl_status status = pwi_graph_make(&spec, &why, &graph);
  if (status) return pwi_error(status, "graph %s: %s", option->name, why.text[0] ? why.text : pawl_status_text(status));
  status = check_strong(option->name, graph);
  pwi_graph_destroy(graph);
  return status;
}

pawl_status pwi_reduce_graph_read(const char *name, uint64_t seed, uint32_t degree, uint32_t founders,
                                  struct pwi_reduce_graph *graph_out, struct pwi_graph **file_out) {
  struct pwi_reduce_graph graph = {.seed = seed, .degree = degree};
  if (!name) name = "default";
  if (strlen(name) > PAWL_REDUCE_GRAPH_MAX)
    return pwi_error(PAWL_TOO_LARGE, "the name of the graph has more than %d characters", PAWL_REDUCE_GRAPH_MAX);
  snprintf(graph.name, sizeof graph.name, "%s", name);
  *file_out = NULL;
  pawl_status status = PAWL_OK;
  if (strcmp(name, "default") == 0)
    graph.is_default = true;
  else if (strpbrk(name, "/."))
    status = read_file(name, founders, file_out);
  else if (pwi_topology_find(name, &graph.topology))
    status = try_topology(&graph, founders);
  else
    status = pwi_error(PAWL_INVALID,
                       "graph %s: unknown; 'pawl graph list' lists the graphs, and a file has a slash or a dot in its "
                       "path",
                       name);
  graph.file = *file_out;
  *graph_out = graph;
  return status;
}
