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

static pawl_status read_file(const char *path, struct pwi_graph **graph_out) {
  struct pwi_graph_why why = {""};
  struct pwi_graph *graph;
  pawl_status status = pwi_graph_read(path, &why, &graph);
  if (status) return why.text[0] ? pwi_error(status, "%s", why.text) : pwi_error_status(status, "%s", path);
  status = check_strong(path, graph);
  if (status)
    pwi_graph_destroy(graph);
  else
    *graph_out = graph;
  return status;
}

/* Racks are not known before all members are. */
static pawl_status try_topology(const struct pwi_reduce_graph *option, uint32_t members) {
  struct pwi_graph_spec spec = {
      .topology = option->topology, .nodes = members, .degree = option->degree, .seed = option->seed};
  struct pwi_graph_why why = {""};
  struct pwi_graph *graph;
  if (option->topology == PWI_TOPOLOGY_RACKS || members == 1) return PAWL_OK;
  pawl_status status = pwi_graph_make(&spec, &why, &graph);
  if (status) return pwi_error(status, "graph %s: %s", option->name, why.text[0] ? why.text : pawl_status_text(status));
  status = check_strong(option->name, graph);
  pwi_graph_destroy(graph);
  return status;
}

/* What the name says, for any number of members. */
static pawl_status read_name(const char *name, uint64_t seed, uint32_t degree, struct pwi_reduce_graph *graph_out,
                             struct pwi_graph **file_out) {
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
    status = read_file(name, file_out);
  else if (!pwi_topology_find(name, &graph.topology))
    status = pwi_error(PAWL_INVALID,
                       "graph %s: unknown; 'pawl graph list' lists the graphs, and a file has a slash or a dot in its "
                       "path",
                       name);
  graph.file = *file_out;
  *graph_out = graph;
  return status;
}

/* A group of one founding member has no number of members to begin with. */
static pawl_status check_founders(const struct pwi_reduce_graph *graph, uint32_t founders) {
  if (founders == 1 || graph->is_default) return PAWL_OK;
  if (!graph->file) return try_topology(graph, founders);
  if (graph->file->nodes == founders) return PAWL_OK;
  return pwi_error(PAWL_MISMATCH, "%s has %" PRIu32 " nodes, but the group has %" PRIu32 " founding members",
                   graph->name, graph->file->nodes, founders);
}

pawl_status pwi_reduce_graph_read(const char *name, uint64_t seed, uint32_t degree, uint32_t founders,
                                  struct pwi_reduce_graph *graph_out, struct pwi_graph **file_out) {
  struct pwi_reduce_graph graph;
  struct pwi_graph *file = NULL;
  pawl_status status = read_name(name, seed, degree, &graph, &file);
  if (!status) status = check_founders(&graph, founders);
  if (status) {
    pwi_graph_destroy(file);
    return status;
  }
  *graph_out = graph;
  *file_out = file;
  return PAWL_OK;
}

static pawl_status check_nodes(const char *path, const struct pwi_graph *file, uint32_t least, uint32_t most) {
  char wanted[32];
  if (file->nodes >= least && file->nodes <= most) return PAWL_OK;
  if (least == most)
    snprintf(wanted, sizeof wanted, "%" PRIu32, least);
  else
    snprintf(wanted, sizeof wanted, "%" PRIu32 " to %" PRIu32, least, most);
  return pwi_error(PAWL_MISMATCH, "%s has %" PRIu32 " nodes; expected %s, one for each member", path, file->nodes,
                   wanted);
}

pawl_status pawl_reduce_graph_check(const char *name, uint64_t seed, uint32_t degree, uint32_t least, uint32_t most) {
  struct pwi_reduce_graph graph;
  struct pwi_graph *file = NULL;
  if (least == 0 || least > most)
    return pwi_error(PAWL_INVALID, "graph: %" PRIu32 " to %" PRIu32 " members", least, most);
  pawl_status status = read_name(name, seed, degree, &graph, &file);
  if (!status && file)
    status = check_nodes(name, file, least, most);
  else if (!status && !graph.is_default && least == most)
    status = try_topology(&graph, least);
  pwi_graph_destroy(file);
  return status;
}
