/* From owned cells back to arcs, and a chain for each arc. */
#include <string.h>

#include "base/memory.h"
#include "ring/plan_inside.h"

/* Candidates are compared by these in turn. A host shared is a machine whose loss takes two members; a rack shared is
 * worth less than a node with twice the replicas of the others. */
struct merit {
  bool peaceful;
  bool new_host;
  bool has_room; /* for one more arc, within a tenth over its share of replicas */
  bool new_rack;
  bool is_member;
  uint64_t level; /* of replicas: the fewer, the better */
};

/* One arc while its chain is being chosen. */
struct choosing {
  struct pwi_planner *planner;
  const struct pwi_arc *present; /* or NULL */
  uint64_t bytes;
  uint32_t chain[PWI_CHAIN_MAX];
  size_t count;
};

static const struct pwi_view_node *node_at(const struct choosing *choosing, size_t place) {
  return choosing->planner->workers[choosing->chain[place]].node;
}

static bool shares_process(const struct choosing *choosing, const struct pwi_plan_worker *worker) {
  for (size_t i = 0; i < choosing->count; i++) {
    if (node_at(choosing, i)->process == worker->node->process) return true;
  }
  return false;
}

/* Without a label nothing is known, and a process counts as a host and a rack of its own. */
static bool is_same_label(const char *a, const char *b) { return *a && strcmp(a, b) == 0; }

static bool shares_host(const struct choosing *choosing, const struct pwi_plan_worker *worker) {
  for (size_t i = 0; i < choosing->count; i++) {
    if (is_same_label(node_at(choosing, i)->host, worker->node->host)) return true;
  }
  return false;
}

static bool shares_rack(const struct choosing *choosing, const struct pwi_plan_worker *worker) {
  for (size_t i = 0; i < choosing->count; i++) {
    if (is_same_label(node_at(choosing, i)->rack, worker->node->rack)) return true;
  }
  return false;
}

static bool is_one_of(const struct pwi_plan_quarrel *quarrel, uint64_t one, uint64_t other) {
  uint64_t a = quarrel->a.id, b = quarrel->b.id;
  return (a == one && (b == other || b == 0)) || (a == other && (b == one || b == 0));
}

static bool is_peaceful(const struct choosing *choosing, const struct pwi_plan_worker *worker) {
  const struct pwi_plan_options *options = choosing->planner->options;
  for (size_t i = 0; i < options->quarrel_count; i++) {
    for (size_t j = 0; j < choosing->count; j++) {
      if (is_one_of(&options->quarrels[i], worker->node->node.id, node_at(choosing, j)->node.id)) return false;
    }
  }
  return true;
}

static struct merit merit_of(const struct choosing *choosing, const struct pwi_plan_worker *worker) {
  uint64_t share = worker->bin.share * choosing->planner->options->replicas;
  struct merit merit = {
      .peaceful = is_peaceful(choosing, worker),
      .new_host = !shares_host(choosing, worker),
      .has_room = worker->replicas + choosing->bytes <= share + share / 10,
      .new_rack = !shares_rack(choosing, worker),
      .level = pwi_plan_level(&worker->bin, worker->replicas),
  };
  if (choosing->present) {
    size_t place = pwi_arc_find(choosing->present, worker->node->node);
    merit.is_member = place != PWI_CHAIN_MAX && !choosing->present->chain[place].filling;
  }
  return merit;
}

static bool is_better(const struct merit *a, const struct merit *b) {
  if (a->peaceful != b->peaceful) return a->peaceful;
  if (a->new_host != b->new_host) return a->new_host;
  if (a->has_room != b->has_room) return a->has_room;
  if (a->new_rack != b->new_rack) return a->new_rack;
  if (a->is_member != b->is_member) return a->is_member;
  return a->level < b->level;
}

/* Adds the best candidate; false if every process is in the chain. The search begins behind the head, so that equals
 * take turns. */
static bool add_member(struct choosing *choosing) {
  struct pwi_planner *planner = choosing->planner;
  struct merit best = {0};
  uint32_t found = PWI_PLAN_NOBODY;
  for (size_t i = 1; i < planner->worker_count; i++) {
    uint32_t index = (uint32_t)((choosing->chain[0] + i) % planner->worker_count);
    const struct pwi_plan_worker *worker = &planner->workers[index];
    if (worker->is_away || shares_process(choosing, worker)) continue;
    struct merit merit = merit_of(choosing, worker);
    if (found != PWI_PLAN_NOBODY && !is_better(&merit, &best)) continue;
    best = merit;
    found = index;
  }
  if (found == PWI_PLAN_NOBODY) return false;
  planner->workers[found].replicas += choosing->bytes;
  choosing->chain[choosing->count++] = found;
  return true;
}

static bool has_shared_host(const struct choosing *choosing) {
  struct choosing part = *choosing;
  for (part.count = 1; part.count < choosing->count; part.count++) {
    if (shares_host(&part, &choosing->planner->workers[choosing->chain[part.count]])) return true;
  }
  return false;
}

/* The chain of an arc that begins with cell `first` and weighs `bytes`. */
static void choose_chain(struct pwi_planner *planner, size_t first, uint64_t bytes, struct pwi_plan *plan,
                         struct pwi_arc *arc_out) {
  const struct pwi_plan_cell *cell = &planner->cells[first];
  struct choosing choosing = {planner, planner->bases[cell->base].arc, bytes, {cell->owner}, 1};
  while (choosing.count < (size_t)planner->options->replicas + 1 && add_member(&choosing)) continue;
  *arc_out = (struct pwi_arc){.begin = cell->begin, .since = 1, .count = (uint8_t)choosing.count};
  for (size_t i = 0; i < choosing.count; i++) arc_out->chain[i].node = node_at(&choosing, i)->node;
  if (choosing.count < (size_t)planner->options->replicas + 1) plan->figures.under_replicated++;
  if (has_shared_host(&choosing)) plan->figures.shared_host++;
}

/* Two neighbouring cells are one arc if they were, or where arcs have become too many for their nodes. */
static bool belong_together(const struct pwi_planner *planner, size_t index, bool join_all) {
  const struct pwi_plan_cell *cell = &planner->cells[index];
  return cell[0].owner == cell[-1].owner && (join_all || cell[0].base == cell[-1].base);
}

static size_t count_arcs(const struct pwi_planner *planner, bool join_all) {
  size_t count = 1;
  for (size_t i = 1; i < planner->cell_count; i++) count += !belong_together(planner, i, join_all);
  return count;
}

pawl_status pwi_plan_chains(struct pwi_planner *planner, struct pwi_plan *plan) {
  unsigned points = planner->options->points ? planner->options->points : PWI_PLAN_POINTS;
  bool join_all = count_arcs(planner, false) > planner->worker_count * points;
  size_t count = count_arcs(planner, join_all);
  if (count > PWI_VIEW_ARCS_MAX) return PAWL_TOO_LARGE;
  plan->arcs = pwi_resize_array(NULL, count, sizeof *plan->arcs);
  if (!plan->arcs) return PAWL_NO_MEMORY;
  size_t first = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < planner->cell_count; i++) {
    bytes += planner->cells[i].load[PWI_PLAN_BYTES];
    if (i + 1 < planner->cell_count && belong_together(planner, i + 1, join_all)) continue;
    choose_chain(planner, first, bytes, plan, &plan->arcs[plan->arc_count++]);
    first = i + 1;
    bytes = 0;
  }
  return PAWL_OK;
}
