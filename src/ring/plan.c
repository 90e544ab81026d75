/* The steps of a plan: select the nodes, take the present arcs or assign initial ones, divide them into
 * cells, balance, choose chains, compute figures. */
#include "ring/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ring/place.h"
#include "ring/plan_inside.h"

/* Orders shards such that neighbours in the list, and so on the ring, are in different processes. */
static int dealing_order(const void *left, const void *right) {
  const struct pwi_view_node *a = ((const struct pwi_plan_candidate *)left)->node;
  const struct pwi_view_node *b = ((const struct pwi_plan_candidate *)right)->node;
  if (a->shard != b->shard) return a->shard < b->shard ? -1 : 1;
  return a->process < b->process ? -1 : a->process > b->process;
}

static uint32_t find_process(const struct pwi_planner *planner, size_t known, uint64_t process) {
  for (size_t i = 0; i < known; i++) {
    if (planner->candidates[i].node->process == process) return planner->candidates[i].process;
  }
  return PWI_PLAN_NONE;
}

static bool is_new(const struct pwi_view *present, const struct pwi_view_node *node) {
  return present && !pwi_view_find(present, node->node);
}

/* True if the node is the only full member of some arc. */
static bool is_waited_for(const struct pwi_view *present, const struct pwi_view_node *node) {
  for (size_t i = 0; present && node->state == PWI_NODE_DOWN && i < present->arc_count; i++) {
    const struct pwi_arc *arc = &present->arcs[i];
    if (arc->chain[0].node.id == node->node.id && pwi_arc_full(arc) == 1) return true;
  }
  return false;
}

/* Collects the nodes that are up or waited for, in the order of assignment, and their processes. */
static pawl_status hire(struct pwi_planner *planner, const struct pwi_view_node *nodes, size_t count,
                        const struct pwi_view *present) {
  planner->candidates = pwi_alloc_zero(count, sizeof *planner->candidates);
  planner->processes = pwi_alloc_zero(count, sizeof *planner->processes);
  if (!planner->candidates || !planner->processes) return PAWL_NO_MEMORY;
  size_t up = 0;
  for (size_t i = 0; i < count; i++) {
    bool is_up = nodes[i].state == PWI_NODE_UP;
    if (!is_up && !is_waited_for(present, &nodes[i])) continue;
    planner->candidates[planner->candidate_count++] = (struct pwi_plan_candidate){
        .node = &nodes[i], .first_cell = PWI_PLAN_NONE, .is_new = is_new(present, &nodes[i]), .is_away = !is_up};
    up += is_up;
  }
  if (up == 0) return PAWL_NOT_FOUND;
  qsort(planner->candidates, planner->candidate_count, sizeof *planner->candidates, dealing_order);
  for (size_t i = 0; i < planner->candidate_count; i++) {
    uint32_t process = find_process(planner, i, planner->candidates[i].node->process);
    planner->candidates[i].process = process != PWI_PLAN_NONE ? process : (uint32_t)planner->process_count++;
  }
  return PAWL_OK;
}

static void set_shares(struct pwi_planner *planner) {
  uint64_t weights = 0;
  for (size_t i = 0; i < planner->candidate_count; i++) weights += planner->candidates[i].node->weight;
  for (size_t i = 0; i < planner->candidate_count; i++) {
    struct pwi_plan_candidate *candidate = &planner->candidates[i];
    uint64_t share = (uint64_t)((unsigned __int128)PWI_PLAN_ONE * candidate->node->weight / weights);
    candidate->bin.share = share ? share : 1;
    candidate->bin.inverse = PWI_PLAN_ONE * PWI_PLAN_FAIR / candidate->bin.share;
    planner->processes[candidate->process].share += candidate->bin.share;
  }
  for (size_t i = 0; i < planner->process_count; i++) {
    planner->processes[i].inverse = PWI_PLAN_ONE * PWI_PLAN_FAIR / planner->processes[i].share;
  }
}

static uint32_t find_candidate(const struct pwi_planner *planner, struct pwi_node node) {
  for (uint32_t i = 0; i < planner->candidate_count; i++) {
    if (planner->candidates[i].node->node.id == node.id) return i;
  }
  return PWI_PLAN_NONE;
}

/* If the head of an arc is down and has a full successor, the successor becomes its owner at once. If the
 * head leaves gracefully, the arc is reassigned, preferably to its other members where they have room. */
static uint32_t owner_of(const struct pwi_planner *planner, const struct pwi_view_node *nodes, size_t count,
                         const struct pwi_arc *arc) {
  for (size_t i = 0; i < arc->count && !arc->chain[i].filling; i++) {
    uint32_t candidate = find_candidate(planner, arc->chain[i].node);
    if (candidate != PWI_PLAN_NONE) return candidate;
    for (size_t j = 0; j < count; j++) {
      if (nodes[j].node.id == arc->chain[i].node.id && nodes[j].state == PWI_NODE_DRAINING) return PWI_PLAN_NONE;
    }
  }
  return PWI_PLAN_NONE;
}

static pawl_status base_on_view(struct pwi_planner *planner, const struct pwi_view_node *nodes, size_t count,
                                const struct pwi_view *present) {
  planner->bases = pwi_resize_array(NULL, present->arc_count, sizeof *planner->bases);
  if (!planner->bases) return PAWL_NO_MEMORY;
  planner->base_count = present->arc_count;
  for (size_t i = 0; i < present->arc_count; i++) {
    const struct pwi_arc *arc = &present->arcs[i];
    planner->bases[i] = (struct pwi_plan_base){arc->begin, owner_of(planner, nodes, count, arc), arc};
  }
  return PAWL_OK;
}

/* Each round begins with another candidate, 0.618 of the list further on. If all rounds began with the same
 * candidate, the rounding of every arc would favour the same candidates, and a vector of few keys would be
 * unbalanced. */
static size_t round_start(const struct pwi_planner *planner, size_t round, size_t last) {
  size_t count = planner->candidate_count;
  size_t start = (round * count * 40503 >> 16) % count;
  for (size_t i = 0; i < count; i++, start = (start + 1) % count) {
    if (planner->candidates[start].process != planner->candidates[last].process) break;
  }
  return start;
}

static pawl_status deal(struct pwi_planner *planner, size_t points) {
  size_t count = planner->candidate_count, start = 0, last = 0;
  if (count * points > PWI_VIEW_ARCS_MAX) return PAWL_TOO_LARGE;
  planner->bases = pwi_resize_array(NULL, count * points, sizeof *planner->bases);
  if (!planner->bases) return PAWL_NO_MEMORY;
  uint64_t weights = 0, sum = 0;
  for (size_t i = 0; i < count; i++) weights += planner->candidates[i].node->weight;
  for (size_t round = 0; round < points; round++) {
    if (round) start = round_start(planner, round, last);
    for (size_t i = 0; i < count; i++) {
      last = (start + i) % count;
      uint64_t begin = (uint64_t)((unsigned __int128)PWI_RING_END * sum / (weights * points));
      planner->bases[planner->base_count++] = (struct pwi_plan_base){begin, (uint32_t)last, NULL};
      sum += planner->candidates[last].node->weight;
    }
  }
  return PAWL_OK;
}

static void sum_up(const struct pwi_planner *planner, struct pwi_plan_figures *figures) {
  double over[PWI_PLAN_KINDS] = {0}, least = 1;
  for (size_t i = 0; i < planner->process_count; i++) {
    const struct pwi_plan_bin *bin = &planner->processes[i];
    if ((double)bin->share / PWI_PLAN_ONE < least) least = (double)bin->share / PWI_PLAN_ONE;
    for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
      double level = (double)bin->load[kind] / (double)bin->share;
      if (level > over[kind]) over[kind] = level;
    }
  }
  figures->bytes_over_mean = over[PWI_PLAN_BYTES];
  figures->requests_over_mean = over[PWI_PLAN_REQUESTS];
  uint64_t heaviest = planner->heaviest[0] > planner->heaviest[1] ? planner->heaviest[0] : planner->heaviest[1];
  figures->indivisible = (double)heaviest / PWI_PLAN_ONE / least;
}

static void sum_up_moves(const struct pwi_planner *planner, struct pwi_plan_figures *figures) {
  uint64_t moved = 0;
  for (size_t i = 0; i < planner->cell_count && !planner->fresh; i++) {
    const struct pwi_plan_cell *cell = &planner->cells[i];
    if (cell->owner != cell->home) moved += cell->load[PWI_PLAN_BYTES];
  }
  figures->moved = (double)moved / PWI_PLAN_ONE;
  figures->ideal = (double)planner->ideal / PWI_PLAN_ONE;
}

/* True if the candidate is new or has only replicas so far, because it has just joined or had no room to
 * become a head. */
static bool heads_nothing(const struct pwi_planner *planner, uint32_t candidate) {
  for (size_t i = 0; i < planner->base_count; i++)
    if (planner->bases[i].owner == candidate) return false;
  return true;
}

/* Computes the bytes that must move, and the limit for further moves in addition to those of orphans. */
static void set_move_limit(struct pwi_planner *planner) {
  uint64_t orphaned = 0, due = 0;
  for (size_t i = 0; i < planner->cell_count; i++) {
    if (planner->cells[i].home == PWI_PLAN_NONE) orphaned += planner->cells[i].load[PWI_PLAN_BYTES];
  }
  for (uint32_t i = 0; i < planner->candidate_count; i++) {
    const struct pwi_plan_candidate *candidate = &planner->candidates[i];
    if (!candidate->is_away && heads_nothing(planner, i)) due += candidate->bin.share;
  }
  planner->ideal = orphaned + due;
  planner->move_limit = INT64_MAX;
  if (planner->options->move_limit) {
    planner->move_limit = (int64_t)(PWI_PLAN_ONE / 1000000 * planner->options->move_limit);
  } else if (planner->ideal) {
    planner->move_limit = (int64_t)(due + planner->ideal / 5);
  }
}

static pawl_status plan(struct pwi_planner *planner, const struct pwi_view_node *nodes, size_t node_count,
                        const struct pwi_view *present, struct pwi_plan *result) {
  size_t points = planner->options->points ? planner->options->points : PWI_PLAN_POINTS;
  pawl_status status = hire(planner, nodes, node_count, present);
  if (status) return status;
  set_shares(planner);
  status = planner->fresh ? deal(planner, points) : base_on_view(planner, nodes, node_count, present);
  if (!status) status = pwi_plan_cut_cells(planner);
  if (status) return status;
  set_move_limit(planner);
  status = pwi_plan_balance(planner);
  if (!status) status = pwi_plan_make_parts(planner);
  if (status) return status;
  pwi_plan_chains(planner);
  status = pwi_plan_make_arcs(planner, result);
  if (status) return status;
  sum_up(planner, &result->figures);
  sum_up_moves(planner, &result->figures);
  return PAWL_OK;
}

pawl_status pwi_plan_make(const struct pwi_view_node *nodes, size_t node_count, const struct pwi_view *present,
                          const struct pwi_plan_options *options, struct pwi_plan *plan_out) {
  if (options->replicas >= PWI_CHAIN_MAX || options->points > PWI_VIEW_ARCS_MAX) return PAWL_INVALID;
  if (node_count > PWI_VIEW_NODES_MAX || options->load_count > UINT32_MAX) return PAWL_TOO_LARGE;
  struct pwi_planner planner = {.options = options, .fresh = !present || present->arc_count == 0};
  struct pwi_plan result = {0};
  pawl_status status = plan(&planner, nodes, node_count, planner.fresh ? NULL : present, &result);
  pwi_free(planner.by_owner);
  pwi_free(planner.parts);
  pwi_free(planner.cells);
  pwi_free(planner.bases);
  pwi_free(planner.processes);
  pwi_free(planner.candidates);
  if (status) {
    pwi_plan_fini(&result);
    return status;
  }
  *plan_out = result;
  return PAWL_OK;
}

void pwi_plan_fini(struct pwi_plan *plan) {
  pwi_free(plan->arcs);
  *plan = (struct pwi_plan){0};
}
