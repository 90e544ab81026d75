/* The graph of an epoch, made by the caller, outside of its actor. */
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

static pawl_status make_named(const struct pwi_reduce_graph *graph, const struct reduce_plan *plan,
                              struct pwi_graph **graph_out) {
  struct pwi_graph_spec spec = {.topology = graph->topology,
                                .nodes = plan->count,
                                .degree = graph->degree,
                                .seed = graph->seed,
                                .racks = plan->racks};
  return pwi_graph_make(&spec, NULL, graph_out);
}

void pwi_reduce_forget_plan(struct pwi_reduce *engine) {
  pwi_free(engine->plan.racks);
  pwi_graph_destroy(engine->plan.graph);
  engine->plan = (struct reduce_plan){0};
}

/* The membership, which has the racks, cannot be read outside. */
pawl_status pwi_reduce_begin_plan(struct pwi_reduce *engine, const uint64_t *ids, size_t count) {
  const struct pwi_reduce_graph *graph = &engine->config.graph;
  struct reduce_plan *plan = &engine->plan;
  pwi_reduce_forget_plan(engine);
  plan->epoch = engine->called;
  plan->count = (uint32_t)count;
  snprintf(plan->name, sizeof plan->name, "%s", count == 1 ? "none" : graph->name);
  if (graph->topology != PWI_TOPOLOGY_RACKS || graph->is_default || graph->file) return PAWL_OK;
  plan->racks = pwi_alloc_zero(count, sizeof *plan->racks);
  if (!plan->racks) return PAWL_NO_MEMORY;
  find_racks(engine, ids, count, plan->racks);
  return PAWL_OK;
}

pawl_status pwi_reduce_make_plan(struct pwi_reduce *engine) {
  const struct pwi_reduce_graph *graph = &engine->config.graph;
  struct reduce_plan *plan = &engine->plan;
  struct pwi_graph_spec spec;
  pawl_status status = PAWL_INVALID;
  if (plan->count == 1) return PAWL_OK;
  if (graph->file)
    status = graph->file->nodes == plan->count ? pwi_graph_copy(graph->file, &plan->graph) : PAWL_MISMATCH;
  else if (!graph->is_default)
    status = make_named(graph, plan, &plan->graph);
  if (!status || status == PAWL_NO_MEMORY) return status;
  status = pwi_choose_default(plan->count, graph->seed, NULL, &spec);
  if (!status) status = pwi_graph_make(&spec, NULL, &plan->graph);
  if (!status) snprintf(plan->name, sizeof plan->name, "%s", pwi_topology_info(spec.topology)->name);
  return status;
}
