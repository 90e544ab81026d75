/* Giving up a server that will not come back, and the data that only this server had.
 *
 * The last full member of a chain is never removed: if it is down, its arcs wait for it. Only an operator can
 * end the wait. Then its arcs start empty, with members that the planner chooses as if the server were
 * draining. Each such arc has the epoch of this view in `lost`, so that members do not wait for data and
 * operators can see what happened. The same view removes the nodes of the server. If the server is alive
 * after all, it is told that it was retired, and joins again as an empty node.
 */
#include <assert.h>

#include "ring/place.h"
#include "manager/inside.h"

/* The node is a shard of the process that is given up. */
static bool is_given_up(const struct pwi_view *view, uint64_t process, struct pwi_node node) {
  return pwi_view_find(view, node)->process == process;
}

/* No other process has a full member of the arc. */
static bool is_only_there(const struct pwi_view *view, const struct pwi_arc *arc, uint64_t process) {
  return pwi_arc_full(arc) == 1 && is_given_up(view, process, arc->chain[0].node);
}

static size_t count_lost(const struct pwi_view *view, uint64_t process) {
  size_t count = 0;
  for (size_t i = 0; i < view->arc_count; i++) count += is_only_there(view, &view->arcs[i], process);
  return count;
}

/* --- new chains ----------------------------------------------------------------------------------------- */

/* Plans with the servers that are connected. PAWL_NOT_FOUND if there are none. */
static pawl_status plan_without(const struct pwi_manager *manager, struct pwi_plan *plan_out) {
  struct pwi_plan_options options = {
      .points = pwi_manager_points(manager), .replicas = manager->config.replicas, .keep_heads = true};
  struct view_draft draft;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  for (size_t i = 0; i < draft.node_count; i++) {
    if (!pwi_manager_is_welcome(manager, draft.nodes[i].node.id)) draft.nodes[i].state = PWI_NODE_DRAINING;
  }
  status = pwi_plan_make(draft.nodes, draft.node_count, manager->ledger.view, &options, plan_out);
  pwi_draft_close(&draft);
  return status;
}

/* Adds the planned arcs of a range as empty arcs. */
static void add_pieces(const struct pwi_plan *plan, struct pawl_range range, uint64_t epoch, struct view_draft *draft) {
  for (size_t i = 0; i < plan->arc_count && plan->arcs[i].begin < range.end; i++) {
    uint64_t end = i + 1 < plan->arc_count ? plan->arcs[i + 1].begin : PWI_RING_END;
    if (end <= range.begin) continue;
    assert(draft->arc_count < draft->arc_room);
    struct pwi_arc *arc = &draft->arcs[draft->arc_count++];
    *arc = plan->arcs[i];
    if (arc->begin < range.begin) arc->begin = range.begin;
    arc->lost = epoch;
  }
}

/* --- the view ------------------------------------------------------------------------------------------- */

static void remove_members(const struct pwi_view *view, uint64_t process, struct pwi_arc *arc) {
  for (size_t i = arc->count; i-- > 0;) {
    if (is_given_up(view, process, arc->chain[i].node)) pwi_arc_drop(arc, arc->chain[i].node.id);
  }
}

/* The draft has room for all arcs of the plan and of the view. */
static void rewrite(const struct pwi_view *view, uint64_t process, const struct pwi_plan *plan,
                    struct view_draft *draft) {
  draft->arc_count = 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    if (is_only_there(view, &view->arcs[i], process)) {
      add_pieces(plan, pwi_view_arc_range(view, i), view->epoch + 1, draft);
      continue;
    }
    struct pwi_arc *arc = &draft->arcs[draft->arc_count++];
    *arc = view->arcs[i];
    remove_members(view, process, arc);
  }
  for (size_t i = draft->node_count; i-- > 0;) {
    if (draft->nodes[i].process == process) pwi_draft_remove_node(draft, draft->nodes[i].node.id);
  }
}

static void tell(const struct pwi_manager *manager, uint64_t process, const struct view_draft *draft, uint64_t epoch) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->node_count; i++) {
    if (view->nodes[i].process == process)
      pwi_log(manager->config.log, PAWL_LOG_WARN, "server.given_up", "node=%llu epoch=%llu",
              (unsigned long long)view->nodes[i].node.id, (unsigned long long)epoch);
  }
  for (size_t i = 0; i < draft->arc_count; i++) {
    uint64_t end = i + 1 < draft->arc_count ? draft->arcs[i + 1].begin : PWI_RING_END;
    if (draft->arcs[i].lost == epoch)
      pwi_log(manager->config.log, PAWL_LOG_ERROR, "data.lost", "begin=%016llx end=%016llx epoch=%llu head=%llu",
              (unsigned long long)draft->arcs[i].begin, (unsigned long long)end, (unsigned long long)epoch,
              (unsigned long long)draft->arcs[i].chain[0].node.id);
  }
}

static pawl_status record(struct pwi_manager *manager, uint64_t process, const struct pwi_plan *plan) {
  const struct pwi_view *view = manager->ledger.view;
  struct view_draft draft;
  pawl_status status = pwi_draft_open(view, view->arc_count + plan->arc_count, &draft);
  if (status) return status;
  rewrite(view, process, plan, &draft);
  status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  if (!status) tell(manager, process, &draft, view->epoch + 1);
  pwi_draft_close(&draft);
  return status;
}

/* --- the decision --------------------------------------------------------------------------------------- */

static bool is_all_down(const struct pwi_view *view, uint64_t process) {
  for (size_t i = 0; i < view->node_count; i++) {
    if (view->nodes[i].process == process && view->nodes[i].state != PWI_NODE_DOWN) return false;
  }
  return true;
}

/* All shards of the process have been without a link for longer than their grace, and no witness has reached
 * one. */
static bool is_all_past_grace(const struct pwi_manager *manager, uint64_t process) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->node_count; i++) {
    const struct manager_node *node = pwi_manager_node(manager, view->nodes[i].node.id);
    if (view->nodes[i].process != process) continue;
    if (!pwi_manager_is_past_grace(manager, node) || node->verdict == PWI_VERDICT_ALIVE) return false;
  }
  return true;
}

/* The operator says that the server is dead: it is marked down first. */
static pawl_status record_down(struct pwi_manager *manager, uint64_t process) {
  struct view_draft draft;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  for (size_t i = 0; i < draft.node_count; i++) {
    if (draft.nodes[i].process == process) draft.nodes[i].state = PWI_NODE_DOWN;
  }
  pwi_draft_drop_dead(manager, &draft);
  status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  pwi_draft_close(&draft);
  return status;
}

pawl_status pwi_manager_decide_give_up(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_view *view = manager->ledger.view;
  const struct pwi_view_node *node = pwi_view_find(view, (struct pwi_node){decision->id});
  struct pwi_plan plan = {0};
  if (!node) return decision->secret == 1 ? PAWL_OK : PAWL_NODE_GONE;
  if (!is_all_down(view, node->process)) {
    decision->goes_on = true;
    return is_all_past_grace(manager, node->process) ? record_down(manager, node->process) : PAWL_EXISTS;
  }
  size_t lost = count_lost(view, node->process);
  if (lost > 0 && decision->size == 0) return PAWL_CLUSTER_LOST;
  pawl_status status = lost > 0 ? plan_without(manager, &plan) : PAWL_OK;
  if (!status) status = record(manager, node->process, &plan);
  pwi_plan_fini(&plan);
  if (status) return status;
  decision->secret = 1;
  decision->entry.id.id = lost;
  return PAWL_OK;
}

void pwi_manager_gave_up(struct pwi_manager *manager) {
  manager->unfinished = true; /* moves of those arcs have become impossible */
  pwi_manager_plan_later(manager);
  pwi_manager_moves_poke(manager);
}
