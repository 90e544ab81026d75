#include "graph/optimise.h"

#include <inttypes.h>

#include "graph/optimise_inside.h"
#include "graph/reach.h"

uint64_t pwi_optimise_bound(uint32_t nodes, uint32_t degree) {
  uint64_t left = nodes - 1, room = degree, sum = 0;
  for (uint32_t distance = 1; left > 0; distance++) {
    uint64_t here = room < left ? room : left;
    sum += here * distance;
    left -= here;
    if (room < nodes) room *= degree;
  }
  return sum * nodes;
}

uint64_t pwi_optimise_staleness(uint32_t staleness, uint32_t length) {
  return length == 0 ? 0 : (uint64_t)staleness * length + length - 1;
}

bool pwi_optimise_tell(const struct pwi_optimise_options *options, struct pwi_optimised *optimised, bool is_exact) {
  const struct pwi_optimise_progress progress = {optimised->sum, optimised->steps, optimised->branches, is_exact};
  if (!options->watch || options->watch(options->watcher, &progress)) return true;
  optimised->is_stopped = true;
  return false;
}

static pawl_status check(const struct pwi_optimise_options *options, struct pwi_graph_why *why) {
  uint32_t nodes = options->nodes, degree = options->degree;
  if (nodes < 2) return pwi_graph_refuse(why, PAWL_INVALID, "paths need at least 2 nodes, not %" PRIu32, nodes);
  if (nodes > PWI_OPTIMISE_NODES_MAX)
    return pwi_graph_refuse(why, PAWL_TOO_LARGE, "the search is for at most %d nodes, not %" PRIu32,
                            PWI_OPTIMISE_NODES_MAX, nodes);
  if (degree == 0 || degree >= nodes)
    return pwi_graph_refuse(why, PAWL_INVALID,
                            "a node of %" PRIu32 " sends to at least 1 and at most %" PRIu32 " others, not to %" PRIu32,
                            nodes, nodes - 1, degree);
  return PAWL_OK;
}

/* Takes a start if it is strongly connected and better than the best so far. */
static pawl_status try_start(enum pwi_optimise_start start, const struct pwi_optimise_options *options,
                             struct pwi_graph_why *why, struct pwi_optimised *best) {
  struct pwi_graph *graph = NULL;
  struct pwi_reach reach = {0};
  struct pwi_path_lengths lengths = {0};
  pawl_status status = pwi_optimise_make_start(start, options, why, &graph);
  if (status == PAWL_INVALID || status == PAWL_EXISTS) return PAWL_OK; /* no such graph of these numbers */
  if (!status) status = pwi_reach_check(graph, &reach);
  if (!status && reach.is_strong) status = pwi_path_lengths_find(graph, &lengths);
  if (!status && reach.is_strong && (!best->graph || lengths.sum < best->sum)) {
    pwi_graph_destroy(best->graph);
    best->graph = graph;
    best->sum = lengths.sum;
    best->start = start;
    return PAWL_OK;
  }
  pwi_graph_destroy(graph);
  return status;
}

/* The ring always is a start, so there is one. */
static pawl_status begin(const struct pwi_optimise_options *options, struct pwi_graph_why *why,
                         struct pwi_optimised *best) {
  pawl_status status = PAWL_OK;
  for (int i = 0; !status && i < PWI_OPTIMISE_STARTS; i++)
    status = try_start((enum pwi_optimise_start)i, options, why, best);
  return status;
}

pawl_status pwi_optimise(const struct pwi_optimise_options *options, struct pwi_graph_why *why,
                         struct pwi_optimised *optimised_out) {
  struct pwi_optimised found = {0};
  pawl_status status = check(options, why);
  if (status) return status;
  found.bound = pwi_optimise_bound(options->nodes, options->degree);
  status = begin(options, why, &found);
  if (!status && found.sum > found.bound) status = pwi_optimise_search(options, &found);
  found.is_proven = found.sum == found.bound;
  if (!status && !found.is_proven && !found.is_stopped && options->nodes <= PWI_OPTIMISE_EXACT_NODES)
    status = pwi_optimise_exact(options, &found);
  if (status) {
    pwi_graph_destroy(found.graph);
    return pwi_graph_refuse(why, status, "cannot search for a graph: %s", pawl_status_text(status));
  }
  if (found.is_proven) found.bound = found.sum;
  *optimised_out = found;
  return PAWL_OK;
}
