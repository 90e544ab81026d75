/* Choosing the chain of every part.
 *
 * Members stay, because this costs nothing. If there are too many members (a head has moved, and the old head
 * could stay too), those with the most replicas leave; if there are too few, candidates with the fewest
 * replicas join. The replicas of one head are spread over many candidates, so that after its loss each of
 * them has slightly more, instead of one having twice as much. Then a member that shares a host or rack with
 * another is replaced if there is a better candidate. Finally, replicas move from candidates over their share
 * to new candidates, which have none, and from candidates far over their share to any other.
 */
#include "ring/plan_inside.h"

#define FAR (PWI_PLAN_FAIR * 11 / 10)
#define VERY_FAR (PWI_PLAN_FAIR * 5 / 4)

static size_t wanted(const struct pwi_planner *planner) { return (size_t)planner->options->replicas + 1; }

/* --- members -------------------------------------------------------------------------------------------- */

static void add(struct pwi_planner *planner, struct pwi_plan_part *part, uint32_t candidate) {
  planner->candidates[candidate].replicas += part->bytes;
  planner->replicated += part->bytes;
  part->chain[part->count++] = candidate;
}

static void drop(struct pwi_planner *planner, struct pwi_plan_part *part, size_t place) {
  planner->candidates[part->chain[place]].replicas -= part->bytes;
  planner->replicated -= part->bytes;
  part->count--;
  for (size_t i = place; i < part->count; i++) part->chain[i] = part->chain[i + 1];
}

/* A new member is added at the end. */
static void replace(struct pwi_planner *planner, struct pwi_plan_part *part, size_t place, uint32_t candidate) {
  drop(planner, part, place);
  add(planner, part, candidate);
}

static uint32_t find_candidate(const struct pwi_planner *planner, struct pwi_node node) {
  for (uint32_t i = 0; i < planner->candidate_count; i++) {
    if (planner->candidates[i].node->node.id == node.id) return i;
  }
  return PWI_PLAN_NONE;
}

static void keep_members(struct pwi_planner *planner, struct pwi_plan_part *part) {
  const struct pwi_arc *present = part->present;
  for (size_t i = 0; present && i < present->count && !present->chain[i].filling; i++) {
    uint32_t candidate = find_candidate(planner, present->chain[i].node);
    if (candidate == PWI_PLAN_NONE || planner->candidates[candidate].is_away) continue;
    if (!pwi_plan_shares_process(planner, part, PWI_CHAIN_MAX, candidate)) add(planner, part, candidate);
  }
}

/* The member that the chain needs least. */
static void drop_worst(struct pwi_planner *planner, struct pwi_plan_part *part) {
  struct pwi_plan_merit worst = {0};
  size_t place = 0;
  for (size_t i = 1; i < part->count; i++) {
    struct pwi_plan_merit merit = pwi_plan_merit(planner, part, i, part->chain[i]);
    if (place != 0 && !pwi_plan_is_better(&worst, &merit)) continue;
    worst = merit;
    place = i;
  }
  drop(planner, part, place);
}

/* The best candidate whose process is not in the chain, ignoring the member `without`; PWI_PLAN_NONE if there
 * is none. The search begins after the head, so that equal candidates take turns. */
static uint32_t find_best(const struct pwi_planner *planner, const struct pwi_plan_part *part, size_t without,
                          struct pwi_plan_merit *merit_out) {
  uint32_t best = PWI_PLAN_NONE;
  for (size_t i = 1; i < planner->candidate_count; i++) {
    uint32_t index = (uint32_t)((part->chain[0] + i) % planner->candidate_count);
    if (planner->candidates[index].is_away || pwi_plan_shares_process(planner, part, PWI_CHAIN_MAX, index)) continue;
    struct pwi_plan_merit merit = pwi_plan_merit(planner, part, without, index);
    if (best != PWI_PLAN_NONE && !pwi_plan_is_better(&merit, merit_out)) continue;
    *merit_out = merit;
    best = index;
  }
  return best;
}

static void fill_up(struct pwi_planner *planner, struct pwi_plan_part *part) {
  struct pwi_plan_merit merit;
  while (part->count < wanted(planner)) {
    uint32_t best = find_best(planner, part, PWI_CHAIN_MAX, &merit);
    if (best == PWI_PLAN_NONE) return;
    add(planner, part, best);
    planner->candidates[best].paired += part->bytes;
  }
}

/* True if another candidate fits much better into the chain than the member at this place. */
static bool stands_better(const struct pwi_plan_merit *candidate, const struct pwi_plan_merit *member) {
  if (!candidate->is_peaceful && member->is_peaceful) return false;
  if (candidate->has_new_host != member->has_new_host) return candidate->has_new_host;
  return candidate->has_room && candidate->has_new_rack && !member->has_new_rack;
}

static void spread(struct pwi_planner *planner, struct pwi_plan_part *part) {
  for (size_t i = part->count; i-- > 1;) {
    struct pwi_plan_merit candidate, member = pwi_plan_merit(planner, part, i, part->chain[i]);
    if (member.has_new_host && member.has_new_rack) continue;
    uint32_t best = find_best(planner, part, i, &candidate);
    if (best != PWI_PLAN_NONE && stands_better(&candidate, &member)) replace(planner, part, i, best);
  }
}

/* --- one head after the other --------------------------------------------------------------------------- */

static void count_pairs(struct pwi_planner *planner, const struct pwi_plan_part *part) {
  for (size_t i = 1; i < part->count; i++) planner->candidates[part->chain[i]].paired += part->bytes;
}

/* Handles the parts of one head, which begin at `first` of the list; returns the first part of the next
 * head. */
static size_t choose_for_head(struct pwi_planner *planner, size_t first) {
  const uint32_t *list = planner->by_owner;
  uint32_t head = planner->parts[list[first]].chain[0];
  size_t end = first;
  for (size_t i = 0; i < planner->candidate_count; i++) planner->candidates[i].paired = 0;
  for (; end < planner->part_count && planner->parts[list[end]].chain[0] == head; end++)
    count_pairs(planner, &planner->parts[list[end]]);
  for (size_t i = first; i < end; i++) fill_up(planner, &planner->parts[list[i]]);
  if (planner->fresh) return end;
  for (size_t i = first; i < end; i++) spread(planner, &planner->parts[list[i]]);
  return end;
}

/* --- balance -------------------------------------------------------------------------------------------- */

/* The replicas of a candidate relative to its share of all replicas. */
static uint64_t level_of(const struct pwi_planner *planner, uint32_t index, uint64_t replicas) {
  const struct pwi_plan_candidate *candidate = &planner->candidates[index];
  uint64_t share = (uint64_t)((unsigned __int128)candidate->bin.share * planner->replicated / PWI_PLAN_ONE);
  return (uint64_t)((unsigned __int128)replicas * PWI_PLAN_FAIR / (share ? share : 1));
}

static bool is_as_good(const struct pwi_plan_merit *candidate, const struct pwi_plan_merit *member) {
  return candidate->is_peaceful && candidate->has_new_host >= member->has_new_host &&
         candidate->has_new_rack >= member->has_new_rack;
}

/* Finds a candidate that has room for the part and should replace the member at this place. */
static uint32_t find_receiver(const struct pwi_planner *planner, const struct pwi_plan_part *part, size_t place) {
  uint32_t member = part->chain[place], best = PWI_PLAN_NONE;
  uint64_t level = level_of(planner, member, planner->candidates[member].replicas), least = 0;
  struct pwi_plan_merit own = pwi_plan_merit(planner, part, place, member);
  for (uint32_t i = 0; i < planner->candidate_count; i++) {
    const struct pwi_plan_candidate *candidate = &planner->candidates[i];
    uint64_t after = level_of(planner, i, candidate->replicas + part->bytes);
    if (candidate->is_away || after > PWI_PLAN_FAIR + PWI_PLAN_FAIR / 32 || (level <= FAR && !candidate->is_new))
      continue;
    if (best != PWI_PLAN_NONE && after >= least) continue;
    if (pwi_plan_shares_process(planner, part, PWI_CHAIN_MAX, i)) continue;
    struct pwi_plan_merit merit = pwi_plan_merit(planner, part, place, i);
    if (!is_as_good(&merit, &own)) continue;
    best = i;
    least = after;
  }
  return best;
}

/* Limit for bytes of replicas that move for balance. */
static uint64_t balance_limit(const struct pwi_planner *planner, uint64_t missing) {
  uint64_t due = 0, highest = 0;
  for (uint32_t i = 0; i < planner->candidate_count; i++) {
    const struct pwi_plan_candidate *candidate = &planner->candidates[i];
    uint64_t level = level_of(planner, i, candidate->replicas);
    if (candidate->is_new)
      due += (uint64_t)((unsigned __int128)candidate->bin.share * planner->replicated / PWI_PLAN_ONE);
    if (level > highest) highest = level;
  }
  if (planner->options->move_limit)
    return PWI_PLAN_ONE / 1000000 * planner->options->move_limit * planner->options->replicas;
  if (due + missing > 0) return due + (due + missing) / 5;
  return planner->options->keep_heads && highest <= VERY_FAR ? 0 : UINT64_MAX;
}

static size_t common_divisor(size_t a, size_t b) {
  while (a != 0) {
    size_t rest = b % a;
    b = a;
    a = rest;
  }
  return b;
}

/* Visits parts in an order that is spread over the ring, so that a new node does not receive all its replicas
 * from one region. */
static void balance_replicas(struct pwi_planner *planner, uint64_t missing) {
  uint64_t limit = balance_limit(planner, missing);
  size_t count = planner->part_count, stride = count * 40503 >> 16;
  while (common_divisor(stride, count) > 1) stride++;
  for (size_t n = 0; n < count; n++) {
    struct pwi_plan_part *part = &planner->parts[n * stride % count];
    for (size_t i = part->count; i-- > 1 && part->bytes > 0 && part->bytes <= limit;) {
      uint32_t member = part->chain[i];
      if (level_of(planner, member, planner->candidates[member].replicas) <= PWI_PLAN_FAIR) continue;
      uint32_t receiver = find_receiver(planner, part, i);
      if (receiver == PWI_PLAN_NONE) continue;
      replace(planner, part, i, receiver);
      limit -= part->bytes;
    }
  }
}

void pwi_plan_chains(struct pwi_planner *planner) {
  if (planner->options->replicas == 0) return;
  for (size_t i = 0; i < planner->part_count; i++) keep_members(planner, &planner->parts[i]);
  for (size_t i = 0; i < planner->part_count; i++) {
    while (planner->parts[i].count > wanted(planner)) drop_worst(planner, &planner->parts[i]);
  }
  uint64_t kept = planner->replicated;
  for (size_t i = 0; i < planner->part_count;) i = choose_for_head(planner, i);
  if (!planner->fresh) balance_replicas(planner, planner->replicated - kept);
}
