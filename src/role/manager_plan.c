/* Which moves there should be: the first arcs, the share of those who come, the arcs of those who go, balance by measured
 * load, and what an operator orders.
 *
 * A plan is made from the view as it will be when the moves under way have ended well, and without the nodes that hold
 * nothing: to the planner those are new, and it takes from the others no more than they need. A node that is down and
 * holds something counts as if it were up, for its arcs wait for it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ring/place.h"
#include "role/manager_inside.h"

#define QUIET_NS INT64_C(50000000) /* so that all shards of a process come together */
#define RETRY_NS INT64_C(1000000000)

/* --- the first arcs ------------------------------------------------------------------------------------------------- */

/* All shards of its process are up and here. */
static bool is_complete(const struct pwi_manager *manager, const struct pwi_view_node *node) {
  const struct pwi_view *view = manager->ledger.view;
  const struct pwi_ledger_node *known = pwi_ledger_node(&manager->ledger, node->node.id);
  uint32_t shards = 0;
  for (size_t i = 0; i < view->node_count; i++) {
    bool here = pwi_manager_node(manager, view->nodes[i].node.id)->peer != NULL;
    shards += view->nodes[i].process == node->process && view->nodes[i].state == PWI_NODE_UP && here;
  }
  return shards == known->shard_count;
}

/* Strikes off who is not there with all of his process; returns how many processes are left. */
static size_t keep_complete(const struct pwi_manager *manager, struct draft *draft) {
  size_t kept = 0, processes = 0;
  for (size_t i = 0; i < draft->node_count; i++) {
    struct pwi_view_node node = draft->nodes[i];
    if (node.state != PWI_NODE_UP || !is_complete(manager, &node)) continue;
    bool seen = false;
    for (size_t j = 0; j < kept; j++) seen |= draft->nodes[j].process == node.process;
    processes += !seen;
    draft->nodes[kept++] = node;
  }
  draft->node_count = kept;
  return processes;
}

static pawl_status record_first_arcs(struct pwi_manager *manager, const struct pwi_plan *plan) {
  struct draft draft;
  pawl_status status = pwi_draft_open(manager->ledger.view, plan->arc_count, &draft);
  if (status) return status;
  memcpy(draft.arcs, plan->arcs, plan->arc_count * sizeof *plan->arcs);
  draft.arc_count = plan->arc_count;
  status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  pwi_draft_close(&draft);
  return status;
}

static pawl_status decide_first_arcs(struct pwi_manager *manager, struct decision *decision) {
  struct pwi_plan_options options = {.points = manager->config.points};
  struct pwi_plan plan = {0};
  struct draft draft;
  (void)decision;
  if (manager->ledger.view->arc_count > 0) return PAWL_OK;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  bool enough = keep_complete(manager, &draft) >= manager->config.first_processes;
  if (enough) status = pwi_plan_make(draft.nodes, draft.node_count, NULL, &options, &plan);
  if (enough && !status) status = record_first_arcs(manager, &plan);
  pwi_plan_fini(&plan);
  pwi_draft_close(&draft);
  return status;
}

static void conclude_first_arcs(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  (void)decision;
  if (status) pwi_manager_plan_later(manager);
}

/* --- where everything will be --------------------------------------------------------------------------------------- */

static bool holds_something(const struct draft *draft, uint64_t id) { return pwi_draft_has_member(draft, id); }

/* The draft as it will be when all moves under way have landed. */
static pawl_status open_outlook(const struct pwi_manager *manager, struct draft *draft_out) {
  pawl_status status = pwi_draft_open(manager->ledger.view, 2 * manager->move_count, draft_out);
  if (status) return status;
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    if (!pwi_move_is_active(move)) continue;
    struct pwi_arc *arc = pwi_draft_arc(draft_out, move->positions);
    arc->count = 1;
    arc->chain[0] = (struct pwi_member){.node = {move->target}};
  }
  pwi_draft_end_moves(draft_out); /* what has failed, and is not struck off yet */
  return PAWL_OK;
}

/* The same as a view, of those only who hold something. */
static pawl_status make_present(const struct pwi_manager *manager, const struct draft *outlook,
                                struct pwi_view **present_out) {
  struct pwi_view_node *holders = pwi_alloc_zero(outlook->node_count + 1, sizeof *holders);
  if (!holders) return PAWL_NO_MEMORY;
  size_t count = 0;
  for (size_t i = 0; i < outlook->node_count; i++) {
    if (holds_something(outlook, outlook->nodes[i].node.id)) holders[count++] = outlook->nodes[i];
  }
  pawl_status status = pwi_view_create(manager->ledger.view->epoch, holders, count, outlook->arcs, outlook->arc_count,
                                       NULL, present_out);
  pwi_free(holders);
  return status;
}

/* --- loads ---------------------------------------------------------------------------------------------------------- */

static int by_position(const void *a, const void *b) {
  const struct pwi_load *first = a, *second = b;
  if (first->positions.begin != second->positions.begin)
    return first->positions.begin < second->positions.begin ? -1 : 1;
  return first->positions.end < second->positions.end ? -1 : first->positions.end > second->positions.end;
}

/* Reports are of different moments: what two of them claim is counted once. */
static size_t without_overlaps(struct pwi_load *loads, size_t count) {
  size_t kept = 0;
  uint64_t end = 0;
  for (size_t i = 0; i < count; i++) {
    if (pawl_range_is_empty(loads[i].positions) || loads[i].positions.begin < end) continue;
    end = loads[i].positions.end;
    loads[kept++] = loads[i];
  }
  return kept;
}

/* Only what a node says of arcs that it heads now. */
static size_t collect_from(const struct pwi_view *view, const struct node *node, struct pwi_load *loads) {
  size_t count = 0;
  for (size_t i = 0; i < node->load_count; i++) {
    uint64_t begin = node->loads[i].positions.begin;
    if (begin == PWI_RING_END) continue;
    if (pwi_view_head(view, pwi_view_arc_of(view, begin))->node.id == node->id) loads[count++] = node->loads[i];
  }
  return count;
}

/* NULL and 0 if there are none, or if some node that holds something has not reported: then all positions count alike. */
static pawl_status collect_loads(const struct pwi_manager *manager, struct pwi_load **loads_out, size_t *count_out) {
  const struct pwi_view *view = manager->ledger.view;
  size_t room = 0, count = 0;
  *loads_out = NULL;
  *count_out = 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    const struct node *head = pwi_manager_node(manager, pwi_view_head(view, i)->node.id);
    if (head->reports == 0) return PAWL_OK;
  }
  for (size_t i = 0; i < manager->node_count; i++) room += manager->nodes[i].load_count;
  if (room == 0) return PAWL_OK;
  struct pwi_load *loads = pwi_alloc_zero(room, sizeof *loads);
  if (!loads) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < manager->node_count; i++) count += collect_from(view, &manager->nodes[i], loads + count);
  qsort(loads, count, sizeof *loads, by_position);
  *count_out = without_overlaps(loads, count);
  uint64_t total = 0;
  for (size_t i = 0; i < *count_out; i++) total |= loads[i].bytes | loads[i].requests;
  if (total == 0) *count_out = 0;
  if (*count_out > 0)
    *loads_out = loads;
  else
    pwi_free(loads);
  return PAWL_OK;
}

/* --- from a plan to moves ------------------------------------------------------------------------------------------- */

static const struct pwi_view_node *find_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

/* Another process's node that is up: the rules of views do not let two members of a chain be of one process. The choice
 * goes round with the position, so that not all goes to one. 0 if there is none. */
static uint64_t elsewhere(const struct pwi_manager *manager, uint64_t process, uint64_t position) {
  const struct pwi_view *view = manager->ledger.view;
  size_t start = (size_t)(((unsigned __int128)position * view->node_count) >> 64);
  for (size_t i = 0; i < view->node_count; i++) {
    const struct pwi_view_node *node = &view->nodes[(start + i) % view->node_count];
    if (node->state == PWI_NODE_UP && node->process != process) return node->node.id;
  }
  return 0;
}

/* Adds a move, or makes the last one longer. */
static pawl_status want(struct pwi_manager *manager, struct pawl_range positions, uint64_t source, uint64_t target) {
  const struct pwi_view_node *from = find_node(manager, source), *to = find_node(manager, target);
  if (from->state == PWI_NODE_DOWN || to->state == PWI_NODE_DOWN) {
    manager->unfinished = true;
    return PAWL_OK;
  }
  if (from->process == to->process) {
    target = from->state == PWI_NODE_DRAINING ? elsewhere(manager, from->process, positions.begin) : 0;
    if (target == 0) return PAWL_OK;
  }
  struct move *last = manager->move_count > 0 ? &manager->moves[manager->move_count - 1] : NULL;
  bool longer = last && last->step == MOVE_WANTED && last->positions.end == positions.begin && last->source == source &&
                last->target == target;
  if (!longer) return pwi_manager_move_add(manager, positions, source, target);
  last->positions.end = positions.end;
  return PAWL_OK;
}

static uint64_t arc_end(const struct pwi_arc *arcs, size_t count, size_t index) {
  return index + 1 < count ? arcs[index + 1].begin : PWI_RING_END;
}

/* Walks over both, piece by piece. */
static pawl_status want_differences(struct pwi_manager *manager, const struct pwi_view *present,
                                    const struct pwi_plan *plan) {
  size_t i = 0, j = 0;
  for (uint64_t at = 0; at < PWI_RING_END;) {
    uint64_t here = arc_end(present->arcs, present->arc_count, i), there = arc_end(plan->arcs, plan->arc_count, j);
    uint64_t end = here < there ? here : there;
    uint64_t source = present->arcs[i].chain[0].node.id, target = plan->arcs[j].chain[0].node.id;
    if (source != target) {
      pawl_status status = want(manager, pawl_range_of(at, end), source, target);
      if (status) return status;
    }
    at = end;
    i += here == end;
    j += there == end;
  }
  return PAWL_OK;
}

static void drop_wanted(struct pwi_manager *manager) {
  size_t kept = 0;
  for (size_t i = 0; i < manager->move_count; i++) {
    if (manager->moves[i].step == MOVE_WANTED) continue;
    if (manager->moves[i].step == MOVE_FAILED) manager->moves[i].unwanted = true;
    manager->moves[kept++] = manager->moves[i];
  }
  manager->move_count = kept;
}

static pawl_status plan_from(struct pwi_manager *manager, struct draft *outlook, const struct pwi_view *present) {
  struct pwi_plan_options options = {.points = manager->config.points};
  struct pwi_load *loads;
  struct pwi_plan plan = {0};
  for (size_t i = 0; i < outlook->node_count; i++) {
    struct pwi_view_node *node = &outlook->nodes[i];
    if (node->state == PWI_NODE_DOWN && holds_something(outlook, node->node.id)) node->state = PWI_NODE_UP;
  }
  pawl_status status = collect_loads(manager, &loads, &options.load_count);
  if (status) return status;
  options.loads = loads;
  status = pwi_plan_make(outlook->nodes, outlook->node_count, present, &options, &plan);
  if (!status) {
    drop_wanted(manager);
    manager->unfinished = false;
    status = want_differences(manager, present, &plan);
  }
  pwi_plan_fini(&plan);
  pwi_free(loads);
  return status;
}

pawl_status pwi_manager_plan(struct pwi_manager *manager) {
  struct draft outlook;
  struct pwi_view *present;
  if (!manager->ledger.view || manager->ledger.view->arc_count == 0) return PAWL_NOT_FOUND;
  pawl_status status = open_outlook(manager, &outlook);
  if (status) return status;
  status = make_present(manager, &outlook, &present);
  if (!status) {
    status = plan_from(manager, &outlook, present);
    pwi_view_release(present);
  }
  pwi_draft_close(&outlook);
  pwi_log(manager->config.log, status ? PAWL_LOG_WARN : PAWL_LOG_INFO, "plan.made", "moves=%zu why=%s",
          manager->move_count, pawl_status_name(status));
  pwi_manager_moves_poke(manager);
  return status;
}

/* --- when to plan --------------------------------------------------------------------------------------------------- */

/* True if somebody has nothing, or should have nothing. Balance alone is manager_balance.c's business. */
static bool needs_plan(const struct pwi_manager *manager) {
  struct draft draft;
  bool needed = manager->unfinished;
  if (open_outlook(manager, &draft)) return true;
  for (size_t i = 0; i < draft.node_count && !needed; i++) {
    bool holds = holds_something(&draft, draft.nodes[i].node.id);
    needed = (draft.nodes[i].state == PWI_NODE_UP && !holds) || (draft.nodes[i].state == PWI_NODE_DRAINING && holds);
  }
  pwi_draft_close(&draft);
  return needed;
}

void pwi_manager_plan_later(struct pwi_manager *manager) {
  pwi_manager_timer_cancel(manager, &manager->plan_timer);
  pwi_manager_timer_set(manager, QUIET_NS, TIMER_PLAN, 0, &manager->plan_timer);
}

void pwi_manager_plan_timer(struct pwi_manager *manager) {
  manager->plan_timer.id = 0;
  if (manager->ledger.view->arc_count == 0) {
    pwi_manager_node_came(manager);
    return;
  }
  if (!needs_plan(manager)) return;
  pawl_status status = pwi_manager_plan(manager);
  if (status == PAWL_NO_MEMORY) pwi_manager_timer_set(manager, RETRY_NS, TIMER_PLAN, 0, &manager->plan_timer);
}

void pwi_manager_node_came(struct pwi_manager *manager) {
  if (manager->ledger.view->arc_count == 0)
    pwi_manager_queue(manager, &(struct decision){.decide = decide_first_arcs, .conclude = conclude_first_arcs});
  else
    pwi_manager_plan_later(manager);
}

/* --- orders of operators -------------------------------------------------------------------------------------------- */

/* They may reach beyond `positions`: whoever wants to leave needs another plan for the rest. */
static void drop_wanted_in(struct pwi_manager *manager, struct pawl_range positions) {
  size_t kept = 0;
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    bool overlaps = !pawl_range_is_empty(pawl_range_common(move->positions, positions));
    const struct pwi_view_node *source = find_node(manager, move->source);
    if (overlaps && source && source->state == PWI_NODE_DRAINING) pwi_manager_plan_later(manager);
    if (move->step == MOVE_WANTED && overlaps) continue;
    if (move->step == MOVE_FAILED && overlaps) manager->moves[i].unwanted = true;
    manager->moves[kept++] = manager->moves[i];
  }
  manager->move_count = kept;
}

/* The pieces of arcs that others hold. PAWL_UNSUPPORTED if one of them is of the target's own process. */
static pawl_status want_all(struct pwi_manager *manager, const struct draft *outlook, struct pawl_range positions,
                            const struct pwi_view_node *target, bool only_check) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < outlook->arc_count && !status; i++) {
    struct pawl_range arc = {outlook->arcs[i].begin, arc_end(outlook->arcs, outlook->arc_count, i)};
    struct pawl_range piece = pawl_range_common(arc, positions);
    uint64_t source = outlook->arcs[i].chain[0].node.id;
    if (pawl_range_is_empty(piece) || source == target->node.id) continue;
    if (!only_check)
      status = want(manager, piece, source, target->node.id);
    else if (find_node(manager, source)->process == target->process)
      status = PAWL_UNSUPPORTED;
  }
  return status;
}

pawl_status pwi_manager_order_move(struct pwi_manager *manager, struct pawl_range positions, uint64_t target) {
  const struct pwi_view_node *node = find_node(manager, target);
  struct draft outlook;
  if (pawl_range_is_empty(positions)) return PAWL_INVALID;
  if (!node || node->state != PWI_NODE_UP || manager->ledger.view->arc_count == 0) return PAWL_NOT_FOUND;
  pawl_status status = open_outlook(manager, &outlook);
  if (status) return status;
  status = want_all(manager, &outlook, positions, node, true);
  if (!status) {
    drop_wanted_in(manager, positions);
    status = want_all(manager, &outlook, positions, node, false);
  }
  pwi_draft_close(&outlook);
  pwi_manager_moves_poke(manager);
  return status;
}

/* --- reports -------------------------------------------------------------------------------------------------------- */

void pwi_manager_report(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size) {
  struct node *node = pwi_manager_node(manager, peer->id);
  struct reported now = {.time = pwi_net_now(manager->config.net)};
  struct pwi_load *loads;
  size_t count;
  pawl_status status = pwi_report_decode(payload, size, &now.report, &loads, &count);
  if (status) {
    pwi_manager_close(manager, peer, status == PAWL_NO_MEMORY ? status : PAWL_LINK_PROTOCOL);
    return;
  }
  pwi_free(node->loads);
  node->loads = loads;
  node->load_count = count;
  node->before = node->last;
  node->last = now;
  if (node->reports < 2) node->reports++;
  pwi_manager_watch_balance(manager);
}
