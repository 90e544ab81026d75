/* The next view while it is built: copies of nodes and arcs that can be changed and then written as a
 * record. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/search.h"
#include "ring/place.h"
#include "ring/plan.h"
#include "manager/inside.h"

pawl_status pwi_draft_open(const struct pwi_view *view, size_t more_arcs, struct view_draft *draft_out) {
  struct view_draft draft = {.node_room = view->node_count + 1};
  if (!pwi_add_size(view->arc_count, more_arcs, &draft.arc_room)) return PAWL_NO_MEMORY;
  draft.nodes = pwi_alloc_zero(draft.node_room, sizeof *draft.nodes);
  draft.arcs = pwi_alloc_zero(draft.arc_room, sizeof *draft.arcs);
  if (!draft.nodes || !draft.arcs) {
    pwi_draft_close(&draft);
    return PAWL_NO_MEMORY;
  }
  for (; draft.node_count < view->node_count; draft.node_count++) {
    draft.nodes[draft.node_count] = view->nodes[draft.node_count];
  }
  for (; draft.arc_count < view->arc_count; draft.arc_count++) {
    draft.arcs[draft.arc_count] = view->arcs[draft.arc_count];
  }
  *draft_out = draft;
  return PAWL_OK;
}

void pwi_draft_close(struct view_draft *draft) {
  pwi_free(draft->nodes);
  pwi_free(draft->arcs);
  *draft = (struct view_draft){0};
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

struct pwi_view_node *pwi_draft_node(struct view_draft *draft, uint64_t id) {
  for (size_t i = 0; i < draft->node_count; i++) {
    if (draft->nodes[i].node.id == id) return &draft->nodes[i];
  }
  return NULL;
}

void pwi_draft_add_node(struct view_draft *draft, const struct pwi_view_node *node) {
  draft->nodes[draft->node_count++] = *node;
}

void pwi_draft_remove_node(struct view_draft *draft, uint64_t id) {
  struct pwi_view_node *node = pwi_draft_node(draft, id);
  if (!node) return;
  size_t index = (size_t)(node - draft->nodes);
  draft->node_count--;
  memmove(node, node + 1, (draft->node_count - index) * sizeof *node);
}

bool pwi_draft_has_member(const struct view_draft *draft, uint64_t id) {
  for (size_t i = 0; i < draft->arc_count; i++) {
    if (pwi_arc_find(&draft->arcs[i], (struct pwi_node){id}) != PWI_CHAIN_MAX) return true;
  }
  return false;
}

/* --- arcs ----------------------------------------------------------------------------------------------- */

/* The index of the last arc that does not begin after `position`. The first arc begins at 0. */
static size_t arc_at(const struct view_draft *draft, uint64_t position) {
  struct pwi_search search = {.high = draft->arc_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, draft->arcs[search.middle].begin <= position);
  return search.low - 1;
}

static void cut(struct view_draft *draft, uint64_t position) {
  if (position == PWI_RING_END) return;
  size_t index = arc_at(draft, position);
  if (draft->arcs[index].begin == position) return;
  struct pwi_arc *arc = &draft->arcs[index];
  memmove(arc + 1, arc, (draft->arc_count - index) * sizeof *arc);
  arc[1].begin = position;
  draft->arc_count++;
}

struct pwi_arc *pwi_draft_arc(struct view_draft *draft, struct pawl_range positions) {
  cut(draft, positions.begin);
  cut(draft, positions.end);
  size_t first = arc_at(draft, positions.begin);
  size_t past = first + 1;
  while (past < draft->arc_count && draft->arcs[past].begin < positions.end) past++;
  memmove(draft->arcs + first + 1, draft->arcs + past, (draft->arc_count - past) * sizeof *draft->arcs);
  draft->arc_count -= past - first - 1;
  return &draft->arcs[first];
}

static bool remove_filling(struct pwi_arc *arc) {
  size_t full = pwi_arc_full(arc);
  bool any = full < arc->count;
  while (arc->count > full) pwi_arc_remove(arc, arc->count - 1u);
  return any;
}

bool pwi_arc_drop(struct pwi_arc *arc, uint64_t node) {
  size_t place = pwi_arc_find(arc, (struct pwi_node){node});
  if (place == PWI_CHAIN_MAX) return false;
  bool full = !arc->chain[place].filling;
  if (full && pwi_arc_full(arc) == 1) return false;
  pwi_arc_remove(arc, place);
  if (full) remove_filling(arc);
  return true;
}

/* The node is one of `nodes`. */
static bool is_down(const struct pwi_view_node *nodes, size_t count, struct pwi_node node) {
  struct pwi_search search = {.high = count};
  while (pwi_search_next(&search)) pwi_search_told(&search, nodes[search.middle].node.id < node.id);
  return nodes[search.low].state == PWI_NODE_DOWN;
}

/* The first member that is down and can be removed, or PWI_CHAIN_MAX. It can be removed if it is filling, or
 * if another full member is connected. A full member that is merely not marked down is not enough: its link
 * may be down. */
static size_t find_dead(const struct pwi_manager *manager, const struct pwi_view_node *nodes, size_t count,
                        const struct pwi_arc *arc) {
  size_t dead = PWI_CHAIN_MAX;
  bool lives = false;
  for (size_t i = arc->count; i-- > 0;) {
    const struct manager_node *node = pwi_manager_node(manager, arc->chain[i].node.id);
    bool down = is_down(nodes, count, arc->chain[i].node);
    if (down && arc->chain[i].filling) return i;
    if (down) dead = i;
    lives |= !down && !arc->chain[i].filling && node && node->peer;
  }
  return lives ? dead : PWI_CHAIN_MAX;
}

bool pwi_draft_drop_dead(const struct pwi_manager *manager, struct view_draft *draft) {
  bool changed = false;
  for (size_t i = 0; i < draft->arc_count; i++) {
    struct pwi_arc *arc = &draft->arcs[i];
    size_t place;
    while ((place = find_dead(manager, draft->nodes, draft->node_count, arc)) != PWI_CHAIN_MAX) {
      changed = true;
      pwi_arc_drop(arc, arc->chain[place].node.id);
    }
  }
  return changed;
}

bool pwi_manager_has_dead(const struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  bool down = false;
  for (size_t i = 0; i < view->node_count && !down; i++) down = view->nodes[i].state == PWI_NODE_DOWN;
  for (size_t i = 0; i < view->arc_count && down; i++) {
    if (find_dead(manager, view->nodes, view->node_count, &view->arcs[i]) != PWI_CHAIN_MAX) return true;
  }
  return false;
}

bool pwi_draft_end_fills(struct view_draft *draft) {
  bool changed = false;
  for (size_t i = 0; i < draft->arc_count; i++) changed |= remove_filling(&draft->arcs[i]);
  return changed;
}

/* The width of an arc if every node has `points` arcs. Arcs are not merged beyond it: clients cut requests by
 * arcs, and send one part while they prepare the next. */
static uint64_t fair_width(const struct pwi_view_node *nodes, size_t node_count, uint32_t points) {
  uint64_t up = 0;
  for (size_t i = 0; i < node_count; i++) up += nodes[i].state == PWI_NODE_UP;
  return PWI_RING_END / (up ? up : 1) / (points ? points : PWI_PLAN_POINTS);
}

static uint64_t arc_end(const struct pwi_arc *arcs, size_t count, size_t i) {
  return i + 1 < count ? arcs[i + 1].begin : PWI_RING_END;
}

static bool can_be_one(const struct pwi_arc *a, const struct pwi_arc *b) {
  return a->lost == b->lost && pwi_arc_same_chain(a, b);
}

bool pwi_view_has_splinters(const struct pwi_view *view, uint32_t points) {
  uint64_t width = fair_width(view->nodes, view->node_count, points);
  for (size_t i = 1; i < view->arc_count; i++)
    if (can_be_one(&view->arcs[i - 1], &view->arcs[i]) &&
        arc_end(view->arcs, view->arc_count, i) - view->arcs[i - 1].begin <= width)
      return true;
  return false;
}

bool pwi_draft_merge(struct view_draft *draft, uint32_t points) {
  if (draft->arc_count == 0) return false;
  uint64_t width = fair_width(draft->nodes, draft->node_count, points);
  size_t kept = 1;
  for (size_t i = 1; i < draft->arc_count; i++) {
    uint64_t end = arc_end(draft->arcs, draft->arc_count, i);
    struct pwi_arc *last = &draft->arcs[kept - 1];
    if (!can_be_one(last, &draft->arcs[i]) || end - last->begin > width) draft->arcs[kept++] = draft->arcs[i];
  }
  bool merged = kept < draft->arc_count;
  draft->arc_count = kept;
  return merged;
}

pawl_status pwi_draft_record(struct pwi_manager *manager, const struct view_draft *draft, uint64_t last_move,
                             const struct pwi_ledger_node *added) {
  struct pwi_view_fault fault;
  struct pwi_view *view;
  pawl_status status = pwi_view_create_next(manager->ledger.view, draft->nodes, draft->node_count, draft->arcs,
                                            draft->arc_count, &fault, &view);
  if (status == PAWL_INVALID) {
    pwi_log(manager->config.log, PAWL_LOG_WARN, "view.refused", "rule=\"%s\" index=%zu", pwi_view_rule_text(fault.rule),
            fault.index);
  }
  if (status) return status;
  if (added)
    pwi_record_node(&manager->record, added, view);
  else
    pwi_record_view(&manager->record, last_move, view);
  pwi_view_release(view);
  return manager->record.status;
}
