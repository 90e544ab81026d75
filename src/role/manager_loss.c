/* Servers that are lost, and neighbours that cannot reach one another.
 *
 * The link of a process that dies is down within a millisecond or so, that of one that hangs after the silence limit of
 * the net. All nodes that are lost within a moment, shards of one process mostly, are dealt with in one view: wherever
 * somebody else has everything they are struck off, and what they were head of has another head. Where nobody else has,
 * they stay, and the arc waits for them; for that there is no hurry, and they have a grace to come back in.
 *
 * A manager that loses most of its servers at once has probably lost its own network. Then all have this grace. If that is so
 * they fall silent one after the other, as their last heartbeats came: so whoever falls silent is not struck off before the
 * others have had time to.
 */
#include "role/manager_inside.h"

#define GATHER_NS INT64_C(1000000) /* that the links of one process need to break */
#define SILENCE_NS                                                                                                     \
  INT64_C(60000000) /* and the silence of one to be followed by that of others: a heartbeat, and some */
#define AT_ONCE_NS INT64_C(300000000)   /* lost within this is lost at once */
#define RETRY_NS INT64_C(100000000)     /* after memory ran out */
#define QUARREL_NS INT64_C(60000000000) /* that a pair is kept apart */
#define SUSPECT_MIN 3                   /* processes: with fewer, most of them is one */

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

/* --- suspicion ------------------------------------------------------------------------------------------------------ */

/* Its link is down, and has been for a short time only. */
static bool is_recent_loss(const struct node *node, int64_t now) {
  return node && !node->peer && node->lost_at != 0 && now - node->lost_at <= AT_ONCE_NS;
}

/* Of the process of a node: whether it counts, and whether it was lost just now. Asked of the first node of each. */
static void look_at_process(const struct pwi_manager *manager, size_t first, int64_t now, bool *counts, bool *lost) {
  const struct pwi_view *view = manager->ledger.view;
  *counts = *lost = false;
  for (size_t i = 0; i < view->node_count; i++) {
    if (view->nodes[i].process != view->nodes[first].process) continue;
    if (i < first) {
      *counts = *lost = false;
      return;
    }
    bool recent = is_recent_loss(pwi_manager_node(manager, view->nodes[i].node.id), now);
    *lost |= recent;
    *counts |= recent || view->nodes[i].state != PWI_NODE_DOWN;
  }
}

static bool suspects_itself(const struct pwi_manager *manager) {
  int64_t now = pwi_net_now(manager->config.net);
  size_t processes = 0, gone = 0;
  for (size_t i = 0; i < manager->ledger.view->node_count; i++) {
    bool counts, lost;
    look_at_process(manager, i, now, &counts, &lost);
    processes += counts;
    gone += lost;
  }
  return processes >= SUSPECT_MIN && 2 * gone > processes;
}

/* --- losing --------------------------------------------------------------------------------------------------------- */

/* Another full member is there. */
static bool has_another(const struct pwi_manager *manager, const struct pwi_arc *arc, uint64_t id) {
  for (size_t i = 0; i < pwi_arc_full(arc); i++) {
    uint64_t other = arc->chain[i].node.id;
    if (other != id && pwi_manager_is_here(manager, other)) return true;
  }
  return false;
}

/* Somebody else could serve in its stead. */
static bool is_replaceable(const struct pwi_manager *manager, uint64_t id) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->arc_count; i++) {
    bool is_member = pwi_arc_find(&view->arcs[i], (struct pwi_node){id}) != PWI_CHAIN_MAX;
    if (is_member && has_another(manager, &view->arcs[i], id)) return true;
  }
  return false;
}

static void wait_for(struct pwi_manager *manager, struct node *node, int64_t delay) {
  pwi_manager_timer_cancel(manager, &node->timer);
  pwi_manager_timer_set(manager, delay, TIMER_NODE, node->id, &node->timer);
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

void pwi_manager_server_lost(struct pwi_manager *manager, struct node *node, pawl_status why) {
  int64_t now = pwi_net_now(manager->config.net), soon = why == PAWL_LINK_SILENT ? SILENCE_NS : GATHER_NS;
  bool is_soon = is_replaceable(manager, node->id);
  node->peer = NULL;
  node->lost_at = now;
  node->due = later(now + (is_soon ? soon : manager->config.server_grace_ns), manager->patient_until);
  wait_for(manager, node, node->due - now);
  pwi_manager_moves_lost(manager, node->id, true);
}

void pwi_manager_peer_lost(struct pwi_manager *manager, struct peer *peer, pawl_status why) {
  struct node *node = peer->is_server ? pwi_manager_node(manager, peer->id) : NULL;
  struct sender *sender = peer->is_server ? NULL : pwi_manager_sender(manager, peer->id);
  if (node && node->peer == peer) {
    pwi_manager_server_lost(manager, node, why);
  } else if (sender && sender->peer == peer) {
    sender->peer = NULL;
    if (peer->state == PEER_JOINING)
      pwi_manager_part_with(manager, sender->id);
    else
      pwi_manager_timer_set(manager, manager->config.client_grace_ns, TIMER_SENDER, sender->id, &sender->timer);
  }
}

/* Its link is down, and it has had its time, or all but a moment of it. */
static bool is_overdue(const struct pwi_manager *manager, const struct node *node) {
  return node && !node->peer && pwi_net_now(manager->config.net) >= node->due - GATHER_NS;
}

static pawl_status decide_losses(struct pwi_manager *manager, struct decision *decision) {
  struct draft draft;
  bool changed = false;
  (void)decision;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  for (size_t i = 0; i < draft.node_count; i++) {
    if (draft.nodes[i].state == PWI_NODE_DOWN) continue;
    if (!is_overdue(manager, pwi_manager_node(manager, draft.nodes[i].node.id))) continue;
    draft.nodes[i].state = PWI_NODE_DOWN;
    changed = true;
  }
  if (changed) {
    pwi_draft_drop_dead(manager, &draft);
    status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  }
  pwi_draft_close(&draft);
  return status;
}

static void declare(struct pwi_manager *manager, struct node *node) {
  node->declared = true;
  wait_for(manager, node, manager->config.keep_retired_ns);
  pwi_log(manager->config.log, PAWL_LOG_WARN, "server.down", "node=%llu", (unsigned long long)node->id);
  pwi_manager_moves_unwanted(manager, node->id);
}

/* They are down, or have come back meanwhile, or there was no memory to say so. */
static void conclude_losses(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  bool any = false;
  (void)decision;
  manager->losses_queued = false;
  for (size_t i = 0; i < manager->node_count; i++) {
    struct node *node = &manager->nodes[i];
    if (node->peer || node->declared) continue;
    bool down = view_node(manager, node->id)->state == PWI_NODE_DOWN;
    if (down) declare(manager, node);
    if (!down && status && is_overdue(manager, node)) wait_for(manager, node, RETRY_NS);
    any |= down;
  }
  if (!any) return;
  pwi_manager_plan_later(manager);
  pwi_manager_moves_poke(manager);
}

void pwi_manager_node_timer(struct pwi_manager *manager, uint64_t id) {
  struct node *node = pwi_manager_node(manager, id);
  if (!node) return;
  node->timer.id = 0;
  if (node->peer) return;
  if (view_node(manager, id)->state == PWI_NODE_DOWN) {
    pwi_manager_strike(manager, node);
    return;
  }
  int64_t now = pwi_net_now(manager->config.net);
  if (suspects_itself(manager)) node->due = later(node->due, node->lost_at + manager->config.server_grace_ns);
  if (now < node->due) {
    pwi_log(manager->config.log, PAWL_LOG_WARN, "server.awaited", "node=%llu why=\"most are lost at once\"",
            (unsigned long long)id);
    wait_for(manager, node, node->due - now);
    return;
  }
  if (manager->losses_queued) return;
  manager->losses_queued = true;
  pwi_manager_queue(manager, &(struct decision){.decide = decide_losses, .conclude = conclude_losses});
}

/* --- complaints ----------------------------------------------------------------------------------------------------- */

void pwi_manager_note_quarrel(struct pwi_manager *manager, uint64_t a, uint64_t b) {
  manager->quarrels[manager->next_quarrel++ % PWI_QUARRELS] =
      (struct quarrel){{{a}, {b}}, pwi_net_now(manager->config.net) + QUARREL_NS};
}

/* Who has to go: the one behind, unless the one ahead is in trouble with us too. Whoever cannot follow goes himself. 0 if
 * the complaint is about a chain that is not any more. */
static uint64_t find_culprit(const struct pwi_manager *manager, const struct pwi_arc *arc, uint64_t plaintiff,
                             uint64_t accused) {
  size_t place = pwi_arc_find(arc, (struct pwi_node){plaintiff}), other = pwi_arc_find(arc, (struct pwi_node){accused});
  if (place == PWI_CHAIN_MAX || other == PWI_CHAIN_MAX) return 0;
  if (place == other) return plaintiff;
  if (place + 1 == other) return accused;
  if (other + 1 != place) return 0;
  return pwi_manager_is_here(manager, accused) ? plaintiff : accused;
}

static pawl_status decide_complaint(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_complaint *complaint = &decision->complaint;
  const struct pwi_view *view = manager->ledger.view;
  struct draft draft;
  bool changed = false;
  if (view->arc_count == 0) return PAWL_OK;
  pawl_status status = pwi_draft_open(view, 0, &draft);
  if (status) return status;
  for (size_t i = 0; i < draft.arc_count; i++) {
    struct pwi_arc *arc = &draft.arcs[i];
    bool meant = !pawl_range_is_empty(pawl_range_common(pwi_view_arc_range(view, i), complaint->positions));
    if (!meant || arc->since > decision->secret) continue; /* he does not know this chain yet */
    uint64_t culprit = find_culprit(manager, arc, decision->id, complaint->node);
    if (culprit && has_another(manager, arc, culprit)) changed |= pwi_arc_drop(arc, culprit);
  }
  if (changed) status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  if (changed && !status) decision->size = 1;
  pwi_draft_close(&draft);
  return status;
}

static void conclude_complaint(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  const struct pwi_complaint *complaint = &decision->complaint;
  struct peer *peer = pwi_manager_peer(manager, decision->link);
  if (peer) peer->asks--;
  if (status || decision->size == 0) return;
  pwi_log(manager->config.log, PAWL_LOG_WARN, "chain.quarrel", "node=%llu about=%llu begin=%llu end=%llu why=%s",
          (unsigned long long)decision->id, (unsigned long long)complaint->node,
          (unsigned long long)complaint->positions.begin, (unsigned long long)complaint->positions.end,
          pawl_status_name(complaint->status));
  pwi_manager_note_quarrel(manager, decision->id, complaint->node == decision->id ? 0 : complaint->node);
  pwi_manager_plan_later(manager);
  pwi_manager_moves_poke(manager);
}

void pwi_manager_complain(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size) {
  struct decision decision = {.decide = decide_complaint,
                              .conclude = conclude_complaint,
                              .link = peer->link,
                              .id = peer->id,
                              .secret = peer->letter.head.view};
  if (pwi_complaint_decode(payload, size, &decision.complaint)) {
    pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
    return;
  }
  if (++peer->asks > PWI_MANAGER_ASKS_MAX) {
    pwi_manager_close(manager, peer, PAWL_LINK_BUSY);
    return;
  }
  pwi_manager_queue(manager, &decision);
}
