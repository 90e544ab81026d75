/* Rating candidates as members of chains. */
#include <string.h>

#include "ring/plan_inside.h"

static const struct pwi_view_node *node_at(const struct pwi_planner *planner, const struct pwi_plan_part *part,
                                           size_t place) {
  return planner->candidates[part->chain[place]].node;
}

bool pwi_plan_shares_process(const struct pwi_planner *planner, const struct pwi_plan_part *part, size_t without,
                             uint32_t candidate) {
  uint64_t process = planner->candidates[candidate].node->process;
  for (size_t i = 0; i < part->count; i++) {
    if (i != without && node_at(planner, part, i)->process == process) return true;
  }
  return false;
}

/* A process without a label counts as a host and a rack of its own. */
static bool is_same_label(const char *a, const char *b) { return *a && strcmp(a, b) == 0; }

static bool is_one_of(const struct pwi_plan_conflict *conflict, uint64_t one, uint64_t other) {
  uint64_t a = conflict->a.id, b = conflict->b.id;
  return (a == one && (b == other || b == 0)) || (a == other && (b == one || b == 0));
}

static bool are_in_conflict(const struct pwi_plan_options *options, uint64_t one, uint64_t other) {
  for (size_t i = 0; i < options->conflict_count; i++) {
    if (is_one_of(&options->conflicts[i], one, other)) return true;
  }
  return false;
}

/* True if a neighbouring part of the same head has this member and could be merged with the part: they were
 * one arc before, or there are too many arcs. */
static bool is_beside(const struct pwi_planner *planner, const struct pwi_plan_part *part,
                      const struct pwi_plan_part *other, uint32_t candidate) {
  bool may_join = other->chain[0] == part->chain[0] && (other->base == part->base || planner->is_crowded);
  for (size_t i = 1; may_join && i < other->count; i++) {
    if (other->chain[i] == candidate) return true;
  }
  return false;
}

static bool is_near(const struct pwi_planner *planner, const struct pwi_plan_part *part, uint32_t candidate) {
  size_t index = (size_t)(part - planner->parts);
  return (index > 0 && is_beside(planner, part, part - 1, candidate)) ||
         (index + 1 < planner->part_count && is_beside(planner, part, part + 1, candidate));
}

struct pwi_plan_merit pwi_plan_merit(const struct pwi_planner *planner, const struct pwi_plan_part *part,
                                     size_t without, uint32_t index) {
  const struct pwi_plan_candidate *candidate = &planner->candidates[index];
  bool is_in = without < part->count && part->chain[without] == index;
  uint64_t others = candidate->replicas - (is_in ? part->bytes : 0),
           share = candidate->bin.share * planner->options->replicas;
  struct pwi_plan_merit merit = {.is_peaceful = true,
                                 .has_new_host = true,
                                 .has_room = others + part->bytes <= share + share / 10,
                                 .has_new_rack = true,
                                 .is_near = is_near(planner, part, index),
                                 .paired = candidate->paired,
                                 .level = pwi_plan_level(&candidate->bin, others)};
  for (size_t i = 0; i < part->count; i++) {
    const struct pwi_view_node *member = node_at(planner, part, i);
    if (i == without) continue;
    merit.is_peaceful &= !are_in_conflict(planner->options, candidate->node->node.id, member->node.id);
    merit.has_new_host &= !is_same_label(member->host, candidate->node->host);
    merit.has_new_rack &= !is_same_label(member->rack, candidate->node->rack);
  }
  return merit;
}

bool pwi_plan_is_better(const struct pwi_plan_merit *a, const struct pwi_plan_merit *b) {
  if (a->is_peaceful != b->is_peaceful) return a->is_peaceful;
  if (a->has_new_host != b->has_new_host) return a->has_new_host;
  if (a->has_room != b->has_room) return a->has_room;
  if (a->has_new_rack != b->has_new_rack) return a->has_new_rack;
  if (a->is_near != b->is_near) return a->is_near;
  if (a->paired != b->paired) return a->paired < b->paired;
  return a->level < b->level;
}
