/* The graph of an epoch, made by the caller. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/choose.h"
#include "peer/inside.h"
#include "peer/reduce/inside.h"

/* The label by which members are together: the rack, or the host where no rack is known. */
static const char *site_of(const struct pwi_reduce *engine, uint64_t id) {
  const struct pwi_membership_sender *sender =
      pwi_membership_find(engine->channel->peers->membership, (struct pwi_sender){id});
  if (!sender) return "";
  return sender->rack[0] ? sender->rack : sender->host;
}

static void find_racks(const struct pwi_reduce *engine, const uint64_t *ids, size_t count, uint32_t *racks) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t first = 0;
    while (strcmp(site_of(engine, ids[first]), site_of(engine, ids[i])) != 0) first++;
    racks[i] = first;
  }
}

static pawl_status make_named(const struct pwi_reduce *engine, const uint64_t *ids, size_t count,
                              struct pwi_graph **graph_out) {
  const struct pwi_reduce_graph *graph = &engine->config.graph;
  struct pwi_graph_spec spec = {
      .topology = graph->topology, .nodes = (uint32_t)count, .degree = graph->degree, .seed = graph->seed};
  uint32_t *racks = NULL;
  if (graph->topology == PWI_TOPOLOGY_RACKS) {
    racks = pwi_alloc_zero(count, sizeof *racks);
    if (!racks) return PAWL_NO_MEMORY;
    find_racks(engine, ids, count, racks);
    spec.racks = racks;
  }
  pawl_status status = pwi_graph_make(&spec, NULL, graph_out);
  pwi_free(racks);
  return status;
}

static pawl_status make_file(const struct pwi_graph *file, size_t count, struct pwi_graph **graph_out) {
  if (file->nodes != count) return PAWL_MISMATCH;
  struct pwi_graph_edge *edges = pwi_alloc_zero(file->edges + (size_t)1, sizeof *edges);
  size_t at = 0;
  if (!edges) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < file->nodes; i++)
    for (uint32_t k = file->out_begin[i]; k < file->out_begin[i + 1]; k++)
      edges[at++] = (struct pwi_graph_edge){i, file->out[k]};
  pawl_status status = pwi_graph_create(count, edges, at, NULL, graph_out);
  pwi_free(edges);
  return status;
}

pawl_status pwi_reduce_plan(const struct pwi_reduce *engine, const uint64_t *ids, size_t count,
                            char name[PAWL_REDUCE_GRAPH_MAX + 1], struct pwi_graph **graph_out) {
  const struct pwi_reduce_graph *graph = &engine->config.graph;
  struct pwi_graph_spec spec;
  pawl_status status = PAWL_INVALID;
  snprintf(name, PAWL_REDUCE_GRAPH_MAX + 1, "%s", count == 1 ? "none" : graph->name);
  *graph_out = NULL;
  if (count == 1) return PAWL_OK;
  if (graph->file)
    status = make_file(graph->file, count, graph_out);
  else if (!graph->is_default)
    status = make_named(engine, ids, count, graph_out);
  if (!status || status == PAWL_NO_MEMORY) return status;
  status = pwi_choose_default((uint32_t)count, graph->seed, NULL, &spec);
  if (!status) status = pwi_graph_make(&spec, NULL, graph_out);
  if (!status) snprintf(name, PAWL_REDUCE_GRAPH_MAX + 1, "%s", pwi_topology_info(spec.topology)->name);
  return status;
}
