/* From a plan, or from an operator's order, to moves. */
#include <assert.h>

#include "base/memory.h"
#include "ring/place.h"
#include "manager/inside.h"

static const struct pwi_view_node *find_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

/* --- the outlook ---------------------------------------------------------------------------------------- */

/* A move under way will reach its goal. A move that is no longer wanted ends with its present step. */
static void end_move(struct view_draft *draft, const struct chain_move *move) {
  struct pwi_arc *arc = pwi_draft_arc(draft, move->positions);
  size_t place = pwi_arc_find(arc, (struct pwi_node){move->target});
  if (!move->unwanted) {
    arc->count = (uint8_t)move->goal_count;
    for (size_t i = 0; i < PWI_CHAIN_MAX; i++) arc->chain[i] = (struct pwi_member){.node = {move->goal[i]}};
  } else if (place != PWI_CHAIN_MAX) {
    arc->chain[place].filling = false;
  }
}

pawl_status pwi_manager_open_outlook(const struct pwi_manager *manager, struct view_draft *draft_out) {
  pawl_status status = pwi_draft_open(manager->ledger.view, 2 * manager->move_count, draft_out);
  if (status) return status;
  for (size_t i = 0; i < manager->move_count; i++) {
    if (pwi_move_is_active(&manager->moves[i])) end_move(draft_out, &manager->moves[i]);
  }
  pwi_draft_end_fills(draft_out); /* members whose filling failed and that are not removed yet */
  pwi_draft_drop_dead(manager, draft_out);
  return PAWL_OK;
}

/* --- goals ---------------------------------------------------------------------------------------------- */

struct chain_goal {
  uint64_t nodes[PWI_CHAIN_MAX];
  size_t count;
};

static bool names(const struct chain_goal *goal, uint64_t id) {
  for (size_t i = 0; i < goal->count; i++) {
    if (goal->nodes[i] == id) return true;
  }
  return false;
}

static bool names_process(const struct pwi_manager *manager, const struct chain_goal *goal, uint64_t process) {
  for (size_t i = 0; i < goal->count; i++) {
    if (find_node(manager, goal->nodes[i])->process == process) return true;
  }
  return false;
}

/* The member of a chain that is in this process; NULL if there is none. */
static const struct pwi_view_node *of_process(const struct pwi_manager *manager, const struct pwi_arc *arc,
                                              uint64_t process) {
  for (size_t i = 0; i < arc->count; i++) {
    const struct pwi_view_node *node = find_node(manager, arc->chain[i].node.id);
    if (node->process == process) return node;
  }
  return NULL;
}

/* A node that is up, of a process that is in neither the chain, the plan nor the goal; 0 if there is none. The
 * choice depends on the position, so that not all arcs go to one node. */
static uint64_t elsewhere(const struct pwi_manager *manager, const struct pwi_arc *arc, const struct pwi_arc *planned,
                          const struct chain_goal *goal, uint64_t position) {
  const struct pwi_view *view = manager->ledger.view;
  size_t start = (size_t)(((unsigned __int128)position * view->node_count) >> 64);
  for (size_t i = 0; i < view->node_count; i++) {
    const struct pwi_view_node *node = &view->nodes[(start + i) % view->node_count];
    if (node->state != PWI_NODE_UP || of_process(manager, arc, node->process)) continue;
    if (of_process(manager, planned, node->process) || names_process(manager, goal, node->process)) continue;
    return node->node.id;
  }
  return 0;
}

/* The number of processes with a node for which `is_meant` is true. */
static size_t count_processes(const struct pwi_manager *manager,
                              bool (*is_meant)(const struct pwi_manager *manager, const struct pwi_view_node *node,
                                               int64_t since),
                              int64_t since) {
  const struct pwi_view *view = manager->ledger.view;
  size_t count = 0;
  for (size_t i = 0; i < view->node_count; i++) {
    bool is_new = is_meant(manager, &view->nodes[i], since);
    for (size_t k = 0; is_new && k < i; k++)
      is_new = view->nodes[k].process != view->nodes[i].process || !is_meant(manager, &view->nodes[k], since);
    count += is_new;
  }
  return count;
}

static bool may_hold_arcs(const struct pwi_manager *manager, const struct pwi_view_node *node, int64_t since) {
  (void)since;
  return node->state == PWI_NODE_UP && !pwi_manager_node(manager, node->node.id)->leaving;
}

static bool has_died(const struct pwi_manager *manager, const struct pwi_view_node *node, int64_t since) {
  return node->state == PWI_NODE_DOWN && pwi_manager_node(manager, node->node.id)->declared_at >= since;
}

/* The others were enough for whole chains when the server began to leave, and are not since some of them were
 * declared dead. Then it stays until new servers have joined: it has copies that the dead servers had, too. If
 * there were too few others from the beginning, the operator wants shorter chains. A manager that starts while
 * a server leaves does not know which of the dead servers died before. It counts all of them. */
static bool is_needed(const struct pwi_manager *manager, uint64_t id) {
  if (find_node(manager, id)->state != PWI_NODE_DRAINING) return false;
  size_t whole = (size_t)manager->config.replicas + 1, up = count_processes(manager, may_hold_arcs, 0);
  if (up >= whole || up == 0) return false; /* 0: all servers leave, because the cluster is being stopped */
  return up + count_processes(manager, has_died, pwi_manager_node(manager, id)->leaving_since) >= whole;
}

/* Keeps full members that are leaving in a goal that is too short without them. */
static void keep_needed(const struct pwi_manager *manager, const struct pwi_arc *arc, struct chain_goal *goal) {
  for (size_t i = 0; i < arc->count && goal->count <= manager->config.replicas; i++) {
    uint64_t id = arc->chain[i].node.id;
    if (!arc->chain[i].filling && !names(goal, id) && is_needed(manager, id)) goal->nodes[goal->count++] = id;
  }
}

/* Keeps members of the chain in a goal that is shorter than the plan: first those that are up, then those that
 * are leaving. The goal is shorter if the plan names processes whose shard in the chain is leaving, and all
 * other processes have a member, too. At least one member goes. Then its process is free, and the next plan
 * can name it. */
static void keep_for_now(const struct pwi_manager *manager, const struct pwi_arc *arc, size_t length,
                         struct chain_goal *goal) {
  static const enum pwi_node_state states[] = {PWI_NODE_UP, PWI_NODE_DRAINING};
  size_t going = 0;
  for (size_t i = 0; i < arc->count; i++) going += !names(goal, arc->chain[i].node.id);
  for (size_t k = 0; k < 2; k++) {
    for (size_t i = 0; i < arc->count && goal->count < length && going > 1; i++) {
      uint64_t id = arc->chain[i].node.id;
      if (find_node(manager, id)->state != states[k] || names(goal, id)) continue;
      goal->nodes[goal->count++] = id;
      going--;
    }
  }
}

/* The goal of a part of an arc. No two members of a chain are ever in one process, not even during a move. So
 * where the plan moves a member to another shard of the same process, the member stays where it is or, if it
 * is leaving, moves to another process. */
static struct chain_goal make_goal(const struct pwi_manager *manager, const struct pwi_arc *arc,
                                   const struct pwi_arc *planned, uint64_t position) {
  struct chain_goal goal = {.count = 0};
  for (size_t i = 0; i < planned->count; i++) {
    uint64_t id = planned->chain[i].node.id;
    const struct pwi_view_node *node = find_node(manager, id);
    const struct pwi_view_node *instead = of_process(manager, arc, node->process);
    bool leaves = instead && instead->node.id != id && instead->state == PWI_NODE_DRAINING;
    if (leaves)
      id = elsewhere(manager, arc, planned, &goal, position);
    else if (instead)
      id = instead->node.id;
    if (id != 0 && !names(&goal, id)) goal.nodes[goal.count++] = id;
  }
  keep_for_now(manager, arc, planned->count, &goal);
  keep_needed(manager, arc, &goal);
  return goal;
}

/* --- wanted moves --------------------------------------------------------------------------------------- */

static pawl_status make_room(struct pwi_manager *manager, size_t more) {
  size_t count = manager->move_count + more, room = manager->move_room; /* both arrays have the same room */
  if (!PWI_GROW(manager->begun, room, count)) return PAWL_NO_MEMORY;
  return PWI_GROW(manager->moves, manager->move_room, count) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* make_room has reserved memory for the move. */
static void add_move(struct pwi_manager *manager, struct pawl_range positions, const uint64_t *goal, size_t count) {
  if (pawl_range_is_empty(positions)) return;
  assert(manager->move_count < manager->move_room);
  struct chain_move *move = &manager->moves[manager->move_count++];
  *move = (struct chain_move){.positions = positions, .goal_count = count, .step = MOVE_WANTED};
  for (size_t i = 0; i < count; i++) move->goal[i] = goal[i];
}

/* True if the last move ends here and has the same goal. */
static bool is_longer(const struct pwi_manager *manager, struct pawl_range positions, const struct chain_goal *goal) {
  const struct chain_move *last = manager->move_count > 0 ? &manager->moves[manager->move_count - 1] : NULL;
  if (!last || last->step != MOVE_WANTED || last->positions.end != positions.begin || last->goal_count != goal->count)
    return false;
  for (size_t i = 0; i < goal->count; i++) {
    if (last->goal[i] != goal->nodes[i]) return false;
  }
  return true;
}

static bool is_alive(const struct pwi_manager *manager, const struct pwi_arc *arc) {
  for (size_t i = 0; i < arc->count; i++) {
    if (find_node(manager, arc->chain[i].node.id)->state != PWI_NODE_DOWN) return true;
  }
  return false;
}

/* Adds a move of a part of an arc to a goal, or extends the last move. */
static pawl_status want(struct pwi_manager *manager, const struct pwi_arc *arc, struct pawl_range positions,
                        const struct chain_goal *goal) {
  if (goal->count == 0 || !is_alive(manager, arc)) {
    manager->unfinished = true;
    return PAWL_OK;
  }
  if (pwi_manager_next_step(manager, arc, goal->nodes, goal->count).kind == STEP_DONE) return PAWL_OK;
  if (positions.begin != arc->begin && is_longer(manager, positions, goal)) {
    manager->moves[manager->move_count - 1].positions.end = positions.end;
    return PAWL_OK;
  }
  pawl_status status = make_room(manager, 1);
  if (!status) add_move(manager, positions, goal->nodes, goal->count);
  return status;
}

static uint64_t arc_end(const struct pwi_arc *arcs, size_t count, size_t index) {
  return index + 1 < count ? arcs[index + 1].begin : PWI_RING_END;
}

/* Removes moves without a step under way. Failed moves are undone and not tried again. */
static void drop_all_wanted(struct pwi_manager *manager) {
  size_t kept = 0;
  for (size_t i = 0; i < manager->move_count; i++) {
    if (manager->moves[i].step == MOVE_WANTED) continue;
    if (manager->moves[i].step == MOVE_FAILED) manager->moves[i].unwanted = true;
    manager->moves[kept++] = manager->moves[i];
  }
  manager->move_count = kept;
}

pawl_status pwi_manager_want_plan(struct pwi_manager *manager, const struct view_draft *outlook,
                                  const struct pwi_plan *plan) {
  drop_all_wanted(manager);
  manager->unfinished = false;
  size_t i = 0, j = 0;
  for (uint64_t at = 0; at < PWI_RING_END;) {
    uint64_t here = arc_end(outlook->arcs, outlook->arc_count, i), there = arc_end(plan->arcs, plan->arc_count, j);
    uint64_t end = here < there ? here : there;
    struct chain_goal goal = make_goal(manager, &outlook->arcs[i], &plan->arcs[j], at);
    pawl_status status = want(manager, &outlook->arcs[i], pawl_range_of(at, end), &goal);
    if (status) return status;
    at = end;
    i += here == end;
    j += there == end;
  }
  return PAWL_OK;
}

/* --- orders of operators -------------------------------------------------------------------------------- */

/* A later move has another goal for a part of the positions, so this move ends with its present step. */
static bool is_superseded(const struct pwi_manager *manager, size_t index) {
  for (size_t i = index + 1; i < manager->move_count; i++) {
    const struct chain_move *later = &manager->moves[i];
    if (later->unwanted) continue;
    if (!pawl_range_is_empty(pawl_range_common(later->positions, manager->moves[index].positions))) return true;
  }
  return false;
}

/* Removes the wanted moves of these positions. Parts of these moves outside of the positions keep their
 * goals. Moves that are not superseded do not overlap, so at most two of them are cut. */
static pawl_status drop_wanted_in(struct pwi_manager *manager, struct pawl_range positions) {
  pawl_status status = make_room(manager, 2);
  if (status) return status;
  for (size_t i = 0, count = manager->move_count; i < count; i++) {
    struct chain_move *move = &manager->moves[i];
    struct pawl_range all = move->positions;
    if (pwi_move_is_active(move) || move->unwanted || pawl_range_is_empty(pawl_range_common(all, positions))) continue;
    bool goes_on = !is_superseded(manager, i);
    move->unwanted = true;
    if (goes_on && all.begin < positions.begin)
      add_move(manager, pawl_range_of(all.begin, positions.begin), move->goal, move->goal_count);
    if (goes_on && positions.end < all.end)
      add_move(manager, pawl_range_of(positions.end, all.end), move->goal, move->goal_count);
  }
  return PAWL_OK;
}

/* The new head, then the present members up to the configured length. The old head comes last, so that
 * replicas stay where they are. */
static struct chain_goal goal_with_head(const struct pwi_manager *manager, const struct pwi_arc *arc, uint64_t head) {
  struct chain_goal goal = {.nodes = {head}, .count = 1};
  for (size_t i = 1; i <= arc->count && goal.count < (size_t)manager->config.replicas + 1; i++) {
    uint64_t id = arc->chain[i % arc->count].node.id;
    if (id != head) goal.nodes[goal.count++] = id;
  }
  return goal;
}

/* Wants moves for all arcs in the positions. PAWL_UNSUPPORTED if another shard of the target's process is a
 * member. */
static pawl_status want_all(struct pwi_manager *manager, const struct view_draft *outlook, struct pawl_range positions,
                            const struct pwi_view_node *target, bool only_check) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < outlook->arc_count && !status; i++) {
    const struct pwi_arc *arc = &outlook->arcs[i];
    struct pawl_range range = {arc->begin, arc_end(outlook->arcs, outlook->arc_count, i)};
    struct pawl_range piece = pawl_range_common(range, positions);
    if (pawl_range_is_empty(piece)) continue;
    const struct pwi_view_node *member = of_process(manager, arc, target->process);
    struct chain_goal goal = goal_with_head(manager, arc, target->node.id);
    if (!only_check)
      status = want(manager, arc, piece, &goal);
    else if (member && member->node.id != target->node.id)
      status = PAWL_UNSUPPORTED;
  }
  return status;
}

pawl_status pwi_manager_order_move(struct pwi_manager *manager, struct pawl_range positions, uint64_t target) {
  const struct pwi_view_node *node = find_node(manager, target);
  struct view_draft outlook;
  if (pawl_range_is_empty(positions)) return PAWL_INVALID;
  if (!node || node->state != PWI_NODE_UP || manager->ledger.view->arc_count == 0) return PAWL_NOT_FOUND;
  pawl_status status = pwi_manager_open_outlook(manager, &outlook);
  if (status) return status;
  status = want_all(manager, &outlook, positions, node, true);
  if (!status) status = drop_wanted_in(manager, positions);
  if (!status) status = want_all(manager, &outlook, positions, node, false);
  pwi_draft_close(&outlook);
  pwi_manager_moves_poke(manager);
  return status;
}
