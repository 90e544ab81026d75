/* Combines owned cells to parts, whose chains are chosen one by one, and these to arcs. */
#include <string.h>

#include "base/memory.h"
#include "ring/plan_inside.h"

static size_t points_of(const struct pwi_plan_options *options) {
  return options->points ? options->points : PWI_PLAN_POINTS;
}

/* --- parts ---------------------------------------------------------------------------------------------- */

/* A part consists of neighbouring cells of one base and one owner. It is not much larger than an initial arc,
 * so that replicas can be spread. */
static bool belong_aggregate(const struct pwi_planner *planner, const struct pwi_plan_part *part, size_t index) {
  const struct pwi_plan_cell *cell = &planner->cells[index];
  uint64_t most = planner->grain * PWI_PLAN_CELLS / points_of(planner->options) * 3 / 2;
  bool is_small = part->bytes + cell->load[PWI_PLAN_BYTES] <= most;
  return cell->base == part->base && cell->owner == part->chain[0] && (is_small || planner->fresh);
}

/* Groups the parts by head with a counting sort. `ends` has one item per candidate, and one more. */
static void sort_by_owner(struct pwi_planner *planner, size_t *ends) {
  for (size_t i = 0; i < planner->part_count; i++) ends[planner->parts[i].chain[0] + 1]++;
  for (size_t i = 0; i < planner->candidate_count; i++) ends[i + 1] += ends[i];
  for (uint32_t i = 0; i < planner->part_count; i++) planner->by_owner[ends[planner->parts[i].chain[0]]++] = i;
}

pawl_status pwi_plan_make_parts(struct pwi_planner *planner) {
  planner->parts = pwi_resize_array(NULL, planner->cell_count, sizeof *planner->parts);
  planner->by_owner = pwi_resize_array(NULL, planner->cell_count, sizeof *planner->by_owner);
  size_t *ends = pwi_alloc_zero(planner->candidate_count + 1, sizeof *ends);
  if (!planner->parts || !planner->by_owner || !ends) {
    pwi_free(ends);
    return PAWL_NO_MEMORY;
  }
  struct pwi_plan_part *part = NULL;
  for (size_t i = 0; i < planner->cell_count; i++) {
    const struct pwi_plan_cell *cell = &planner->cells[i];
    if (!part || !belong_aggregate(planner, part, i)) {
      part = &planner->parts[planner->part_count++];
      *part = (struct pwi_plan_part){.begin = cell->begin,
                                     .present = planner->bases[cell->base].arc,
                                     .base = cell->base,
                                     .chain = {cell->owner},
                                     .count = 1};
    }
    part->bytes += cell->load[PWI_PLAN_BYTES];
  }
  sort_by_owner(planner, ends);
  pwi_free(ends);
  planner->is_crowded = !planner->fresh && planner->part_count > planner->candidate_count * points_of(planner->options);
  return PAWL_OK;
}

/* --- arcs ----------------------------------------------------------------------------------------------- */

static bool have_one_chain(const struct pwi_plan_part *a, const struct pwi_plan_part *b) {
  return a->count == b->count && memcmp(a->chain, b->chain, a->count * sizeof *a->chain) == 0;
}

/* Two neighbours with the same chain become one arc if they were one before, or if there are too many arcs
 * for the nodes. */
static bool begins_arc(const struct pwi_planner *planner, size_t index, bool join_all) {
  const struct pwi_plan_part *part = &planner->parts[index];
  if (index == 0 || !have_one_chain(part - 1, part)) return true;
  return part->base != part[-1].base && !join_all;
}

static size_t count_arcs(const struct pwi_planner *planner, bool join_all) {
  size_t count = 0;
  for (size_t i = 0; i < planner->part_count; i++) count += begins_arc(planner, i, join_all);
  return count;
}

static bool has_shared_host(const struct pwi_planner *planner, const struct pwi_plan_part *part) {
  for (size_t i = 1; i < part->count; i++) {
    if (!pwi_plan_merit(planner, part, i, part->chain[i]).has_new_host) return true;
  }
  return false;
}

static uint64_t bytes_to_copy(const struct pwi_planner *planner, const struct pwi_plan_part *part) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < part->count && part->present; i++) {
    size_t place = pwi_arc_find(part->present, planner->candidates[part->chain[i]].node->node);
    if (place == PWI_CHAIN_MAX || part->present->chain[place].filling) bytes += part->bytes;
  }
  return bytes;
}

static void add_arc(const struct pwi_planner *planner, const struct pwi_plan_part *part, struct pwi_plan *plan) {
  struct pwi_arc *arc = &plan->arcs[plan->arc_count++];
  *arc = (struct pwi_arc){.begin = part->begin, .since = 1, .count = (uint8_t)part->count};
  for (size_t i = 0; i < part->count; i++) arc->chain[i].node = planner->candidates[part->chain[i]].node->node;
  plan->figures.under_replicated += part->count < (size_t)planner->options->replicas + 1;
  plan->figures.shared_host += has_shared_host(planner, part);
}

pawl_status pwi_plan_make_arcs(const struct pwi_planner *planner, struct pwi_plan *plan) {
  bool join_all = count_arcs(planner, false) > planner->candidate_count * points_of(planner->options);
  size_t count = count_arcs(planner, join_all);
  if (count > PWI_VIEW_ARCS_MAX) return PAWL_TOO_LARGE;
  plan->arcs = pwi_resize_array(NULL, count, sizeof *plan->arcs);
  if (!plan->arcs) return PAWL_NO_MEMORY;
  uint64_t copied = 0;
  for (size_t i = 0; i < planner->part_count; i++) {
    if (begins_arc(planner, i, join_all)) add_arc(planner, &planner->parts[i], plan);
    copied += bytes_to_copy(planner, &planner->parts[i]);
  }
  plan->figures.copied = (double)copied / PWI_PLAN_ONE;
  return PAWL_OK;
}
