#include "graph/choose.h"

#include "graph/gap.h"

/* Nodes of all graphs that are tried together: with the degree 2, up to three seconds of work. */
#define NODES_TRIED 100000

static pawl_status find_gap(const struct pwi_graph_spec *spec, struct pwi_graph_why *why, double *gap_out) {
  struct pwi_graph *graph = NULL;
  struct pwi_weights weights = {0};
  struct pwi_gap gap = {0};
  pawl_status status = pwi_graph_make(spec, why, &graph);
  if (!status) status = pwi_weights_init(&weights, graph, PWI_WEIGHTING_EQUAL, why);
  if (!status) {
    status = pwi_gap_find(&weights, &gap);
    if (status) pwi_graph_refuse(why, status, "cannot compute the spectral gap: %s", pawl_status_text(status));
  }
  pwi_weights_fini(&weights);
  pwi_graph_destroy(graph);
  *gap_out = gap.gap;
  return status;
}

pawl_status pwi_choose_seed(struct pwi_graph_spec *spec, uint32_t tries, struct pwi_graph_why *why) {
  uint64_t best = spec->seed;
  double best_gap = -1, gap;
  for (uint32_t i = 0; i < tries; i++) {
    struct pwi_graph_spec tried = *spec;
    tried.seed += i;
    pawl_status status = find_gap(&tried, why, &gap);
    if (status) return status;
    if (gap <= best_gap) continue;
    best_gap = gap;
    best = tried.seed;
  }
  spec->seed = best;
  return PAWL_OK;
}

pawl_status pwi_choose_default(uint32_t nodes, uint64_t seed, struct pwi_graph_why *why,
                               struct pwi_graph_spec *spec_out) {
  struct pwi_graph_spec spec = {.topology = PWI_TOPOLOGY_ROOT, .nodes = nodes};
  if (nodes > PWI_CHOOSE_ROOT_MAX) {
    spec = (struct pwi_graph_spec){PWI_TOPOLOGY_RANDOM, nodes, PWI_TOPOLOGY_DEGREE, seed, NULL};
    uint32_t tries = NODES_TRIED / nodes;
    tries = tries < 1 ? 1 : tries > PWI_CHOOSE_TRIES ? PWI_CHOOSE_TRIES : tries;
    pawl_status status = pwi_choose_seed(&spec, tries, why);
    if (status) return status;
  }
  *spec_out = spec;
  return PAWL_OK;
}
