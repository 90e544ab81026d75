/* When to plan, and from which state: the first arcs, short chains, new servers, draining servers, and
 * balance by measured load.
 *
 * A plan is made from the outlook: the view as it will be when all steps under way have succeeded. Nodes that
 * are in no chain are left out of it. To the planner these are new nodes, and it takes no more from the
 * others than the new ones need.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "ring/place.h"
#include "manager/inside.h"

#define QUIET_NS INT64_C(50000000) /* delay of a plan, so that all shards of a process have joined */
#define RETRY_NS INT64_C(1000000000)
#define PAUSE_MIN_NS INT64_C(1000000000) /* pause after a plan that has failed */
#define PAUSE_MAX_NS INT64_C(30000000000)

/* --- the first arcs ------------------------------------------------------------------------------------- */

/* All shards of the node's process are up and connected. */
static bool is_complete(const struct pwi_manager *manager, const struct pwi_view_node *node) {
  const struct pwi_view *view = manager->ledger.view;
  const struct pwi_ledger_node *known = pwi_ledger_node(&manager->ledger, node->node.id);
  uint32_t shards = 0;
  for (size_t i = 0; i < view->node_count; i++) {
    bool connected = pwi_manager_node(manager, view->nodes[i].node.id)->peer != NULL;
    shards += view->nodes[i].process == node->process && view->nodes[i].state == PWI_NODE_UP && connected;
  }
  return shards == known->shard_count;
}

/* Removes nodes of incomplete processes from the draft. Returns the number of complete processes. */
static size_t keep_complete(const struct pwi_manager *manager, struct view_draft *draft) {
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
  struct view_draft draft;
  pawl_status status = pwi_draft_open(manager->ledger.view, plan->arc_count, &draft);
  if (status) return status;
  memcpy(draft.arcs, plan->arcs, plan->arc_count * sizeof *plan->arcs);
  draft.arc_count = plan->arc_count;
  status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  pwi_draft_close(&draft);
  return status;
}

static pawl_status decide_first_arcs(struct pwi_manager *manager, struct decision *decision) {
  struct pwi_plan_options options = {.points = pwi_manager_points(manager), .replicas = manager->config.replicas};
  struct pwi_plan plan = {0};
  struct view_draft draft;
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

/* --- the present view ----------------------------------------------------------------------------------- */

static bool holds_something(const struct view_draft *draft, uint64_t id) { return pwi_draft_has_member(draft, id); }

/* The outlook as a view, with only those nodes that are in a chain. */
static pawl_status make_present(const struct pwi_manager *manager, const struct view_draft *outlook,
                                struct pwi_view **present_out) {
  struct pwi_view_node *handlers = pwi_alloc_zero(outlook->node_count + 1, sizeof *handlers);
  if (!handlers) return PAWL_NO_MEMORY;
  size_t count = 0;
  for (size_t i = 0; i < outlook->node_count; i++) {
    if (holds_something(outlook, outlook->nodes[i].node.id)) handlers[count++] = outlook->nodes[i];
  }
  pawl_status status = pwi_view_create(manager->ledger.view->epoch, handlers, count, outlook->arcs, outlook->arc_count,
                                       NULL, present_out);
  pwi_free(handlers);
  return status;
}

/* --- loads ---------------------------------------------------------------------------------------------- */

static int by_position(const void *a, const void *b) {
  const struct pwi_load *first = a, *second = b;
  if (first->positions.begin != second->positions.begin)
    return first->positions.begin < second->positions.begin ? -1 : 1;
  return first->positions.end < second->positions.end ? -1 : first->positions.end > second->positions.end;
}

/* Reports are made at different times. Positions that two of them contain are counted once. */
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

/* Copies the loads of arcs of which the node is the head now. */
static size_t collect_from(const struct pwi_view *view, const struct manager_node *node, struct pwi_load *loads) {
  size_t count = 0;
  for (size_t i = 0; i < node->load_count; i++) {
    uint64_t begin = node->loads[i].positions.begin;
    if (begin == PWI_RING_END) continue;
    if (pwi_view_head(view, pwi_view_arc_of(view, begin))->node.id == node->id) loads[count++] = node->loads[i];
  }
  return count;
}

/* Returns NULL and 0 if there are no loads, or if a head has not reported: then all positions have equal
 * weight. */
static pawl_status collect_loads(const struct pwi_manager *manager, struct pwi_load **loads_out, size_t *count_out) {
  const struct pwi_view *view = manager->ledger.view;
  size_t room = 0, count = 0;
  *loads_out = NULL;
  *count_out = 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    const struct manager_node *head = pwi_manager_node(manager, pwi_view_head(view, i)->node.id);
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

/* --- planning ------------------------------------------------------------------------------------------- */

/* The pairs that are still kept apart. */
static size_t collect_conflicts(const struct pwi_manager *manager, struct pwi_plan_conflict *conflicts) {
  int64_t now = pwi_net_now(manager->config.net);
  size_t count = 0;
  for (size_t i = 0; i < PWI_CONFLICTS; i++) {
    if (manager->conflicts[i].until > now) conflicts[count++] = manager->conflicts[i].between;
  }
  return count;
}

bool pwi_manager_is_starved(const struct pwi_manager *manager) {
  struct pwi_plan_conflict conflicts[PWI_CONFLICTS];
  size_t count = collect_conflicts(manager, conflicts);
  for (size_t i = 0; i < count; i++) {
    if (conflicts[i].b.id == 0) return true;
  }
  return false;
}

/* While a server lacks memory, all positions have equal weight. Otherwise balance could give it arcs that it
 * has no memory for. */
static pawl_status plan_from(struct pwi_manager *manager, const struct view_draft *outlook,
                             const struct pwi_view *present, bool for_balance) {
  struct pwi_plan_conflict conflicts[PWI_CONFLICTS];
  struct pwi_plan_options options = {.points = pwi_manager_points(manager),
                                     .replicas = manager->config.replicas,
                                     .keep_heads = !for_balance,
                                     .conflicts = conflicts,
                                     .conflict_count = collect_conflicts(manager, conflicts)};
  struct pwi_load *loads = NULL;
  struct pwi_plan plan = {0};
  pawl_status status = pwi_manager_is_starved(manager) ? PAWL_OK : collect_loads(manager, &loads, &options.load_count);
  if (status) return status;
  options.loads = loads;
  status = pwi_plan_make(outlook->nodes, outlook->node_count, present, &options, &plan);
  if (!status) status = pwi_manager_want_plan(manager, outlook, &plan);
  pwi_plan_fini(&plan);
  pwi_free(loads);
  return status;
}

pawl_status pwi_manager_plan(struct pwi_manager *manager, bool for_balance) {
  struct view_draft outlook;
  struct pwi_view *present;
  if (!manager->ledger.view || manager->ledger.view->arc_count == 0) return PAWL_NOT_FOUND;
  pawl_status status = pwi_manager_open_outlook(manager, &outlook);
  if (status) return status;
  status = make_present(manager, &outlook, &present);
  if (!status) {
    status = plan_from(manager, &outlook, present, for_balance);
    pwi_view_release(present);
  }
  pwi_draft_close(&outlook);
  pwi_log(manager->config.log, status ? PAWL_LOG_WARN : PAWL_LOG_INFO, "plan.made", "moves=%zu why=%s",
          manager->move_count, pawl_status_name(status));
  pwi_manager_moves_poke(manager);
  return status;
}

/* --- when to plan --------------------------------------------------------------------------------------- */

size_t pwi_manager_processes(const struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  size_t count = 0;
  for (size_t i = 0; i < view->node_count; i++) {
    bool seen = !pwi_manager_is_welcome(manager, view->nodes[i].node.id);
    for (size_t j = 0; j < i && !seen; j++) {
      seen =
          view->nodes[j].process == view->nodes[i].process && pwi_manager_is_welcome(manager, view->nodes[j].node.id);
    }
    count += !seen;
  }
  return count;
}

uint32_t pwi_manager_points(const struct pwi_manager *manager) {
  if (manager->config.points || manager->config.replicas == 0) return manager->config.points;
  size_t processes = pwi_manager_processes(manager), others = processes > 1 ? processes - 1 : 1;
  return others < PWI_PLAN_POINTS ? (uint32_t)others : PWI_PLAN_POINTS;
}

/* True if an arc has too few members, too many, or one that is draining, and a full member is connected. */
static bool needs_repair(const struct pwi_manager *manager, const struct pwi_arc *arcs, size_t count) {
  size_t processes = pwi_manager_processes(manager), most = (size_t)manager->config.replicas + 1;
  size_t least = processes < most ? processes : most;
  for (size_t i = 0; i < count; i++) {
    bool connected = false, leaves = false;
    for (size_t j = 0; j < arcs[i].count; j++) {
      connected |= !arcs[i].chain[j].filling && pwi_manager_is_connected(manager, arcs[i].chain[j].node.id);
      leaves |= pwi_view_find(manager->ledger.view, arcs[i].chain[j].node)->state == PWI_NODE_DRAINING;
    }
    if (connected && (leaves || pwi_arc_full(&arcs[i]) < least || pwi_arc_full(&arcs[i]) > most)) return true;
  }
  return false;
}

/* True if a node that is up is in no chain, or if chains need repair. manager/planning/balance.c decides
 * about balance. */
static bool needs_plan(const struct pwi_manager *manager) {
  struct view_draft draft;
  bool needed = manager->unfinished;
  if (pwi_manager_open_outlook(manager, &draft)) return true;
  for (size_t i = 0; i < draft.node_count && !needed; i++) {
    needed = draft.nodes[i].state == PWI_NODE_UP && !holds_something(&draft, draft.nodes[i].node.id);
  }
  needed = needed || needs_repair(manager, draft.arcs, draft.arc_count);
  pwi_draft_close(&draft);
  return needed;
}

static void plan_after(struct pwi_manager *manager, int64_t delay) {
  int64_t patience = manager->patient_until - pwi_net_now(manager->config.net);
  pwi_manager_timer_cancel(manager, &manager->plan_timer);
  pwi_manager_timer_set(manager, patience > delay ? patience : delay, TIMER_PLAN, 0, &manager->plan_timer);
}

void pwi_manager_plan_later(struct pwi_manager *manager) {
  manager->plan_pause = PAUSE_MIN_NS;
  plan_after(manager, QUIET_NS);
}

/* If a plan did not repair all chains, another is made, at growing intervals. */
void pwi_manager_watch_chains(struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  if (manager->move_count > 0 || manager->plan_timer.id != 0 || !needs_repair(manager, view->arcs, view->arc_count))
    return;
  if (manager->plan_pause < PAUSE_MIN_NS) manager->plan_pause = PAUSE_MIN_NS;
  plan_after(manager, manager->plan_pause);
  if (manager->plan_pause < PAUSE_MAX_NS) manager->plan_pause *= 2;
}

void pwi_manager_plan_timer(struct pwi_manager *manager) {
  manager->plan_timer.id = 0;
  if (manager->ledger.view->arc_count == 0) {
    pwi_manager_node_came(manager);
    return;
  }
  if (!needs_plan(manager)) return;
  pawl_status status = pwi_manager_plan(manager, false);
  if (status == PAWL_NO_MEMORY) plan_after(manager, RETRY_NS);
}

void pwi_manager_node_came(struct pwi_manager *manager) {
  if (manager->ledger.view->arc_count == 0)
    pwi_manager_queue(manager, &(struct decision){.decide = decide_first_arcs, .conclude = conclude_first_arcs});
  else
    pwi_manager_plan_later(manager);
}

/* --- reports -------------------------------------------------------------------------------------------- */

void pwi_manager_report(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size,
                        const uint8_t *holds) {
  struct manager_node *node = pwi_manager_node(manager, peer->id);
  struct node_report now = {.time = pwi_net_now(manager->config.net)};
  struct pwi_load *loads;
  size_t count;
  pawl_status status = pwi_report_decode(payload, size, &now.report, &loads, &count);
  if (status) {
    pwi_manager_close(manager, peer, status == PAWL_NO_MEMORY ? status : PAWL_LINK_PROTOCOL);
    return;
  }
  if (holds) now.lanes_held = pwi_get_u64(holds);
  if (holds) now.holds = pwi_get_u64(holds + sizeof(uint64_t));
  pwi_free(node->loads);
  node->loads = loads;
  node->load_count = count;
  node->before = node->last;
  node->last = now;
  if (node->reports < 2) node->reports++;
  pwi_manager_watch_balance(manager);
}
