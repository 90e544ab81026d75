/* Servers that are lost (failover), and chain neighbours that cannot reach one another.
 *
 * The link of a process that dies goes down within about a millisecond, the link of a process that hangs
 * after the silence limit of the net. The manager asks witnesses whether the server is dead or only its link
 * is down (manager/probe.c). One view removes all nodes that are declared dead at about the same time, mostly
 * the shards of one process, from the chains that have another connected full member. Their arcs get another
 * head. Where there is no such member, the node stays in the chain, and the arc waits for it.
 */
#include "manager/inside.h"

#define RETRY_NS INT64_C(100000000)      /* after memory ran out, or when a loss became doubtful */
#define LACK_NS INT64_C(600000000)       /* to answer; longer than the silence limit of an idle machine */
#define CONFLICT_NS INT64_C(60000000000) /* how long a pair is not made neighbours again */

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

/* --- lost servers --------------------------------------------------------------------------------------- */

/* The chain has another full member that is connected. */
static bool has_another(const struct pwi_manager *manager, const struct pwi_arc *arc, uint64_t id) {
  for (size_t i = 0; i < pwi_arc_full(arc); i++) {
    uint64_t other = arc->chain[i].node.id;
    if (other != id && pwi_manager_is_connected(manager, other)) return true;
  }
  return false;
}

void pwi_manager_look_after(struct pwi_manager *manager, struct manager_node *node, int64_t delay) {
  pwi_manager_timer_cancel(manager, &node->timer);
  node->check_at = pwi_net_now(manager->config.net) + delay;
  pwi_manager_timer_set(manager, delay, TIMER_NODE, node->id, &node->timer);
}

void pwi_manager_server_lost(struct pwi_manager *manager, struct manager_node *node, pawl_status why) {
  node->peer = NULL;
  pwi_manager_link_lost(manager, node, why == PAWL_LINK_SILENT);
  pwi_manager_moves_lost(manager, node->id, true);
}

void pwi_manager_peer_lost(struct pwi_manager *manager, struct manager_peer *peer, pawl_status why) {
  struct manager_node *node = peer->is_server ? pwi_manager_node(manager, peer->id) : NULL;
  struct manager_sender *sender = peer->is_server ? NULL : pwi_manager_sender(manager, peer->id);
  if (node && node->peer == peer) {
    pwi_manager_server_lost(manager, node, why);
  } else if (sender && sender->peer == peer) {
    sender->peer = NULL;
    if (peer->state == PEER_JOINING)
      pwi_manager_remove_sender(manager, sender->id);
    else
      pwi_manager_sender_lost(manager, sender, 0);
  }
}

static pawl_status decide_losses(struct pwi_manager *manager, struct decision *decision) {
  struct view_draft draft;
  bool changed = false;
  (void)decision;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  for (size_t i = 0; i < draft.node_count; i++) {
    if (draft.nodes[i].state == PWI_NODE_DOWN) continue;
    const struct manager_node *node = pwi_manager_node(manager, draft.nodes[i].node.id);
    if (!node || !pwi_manager_is_lost(manager, node)) continue;
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

static void declare(struct pwi_manager *manager, struct manager_node *node) {
  node->declared = true;
  node->declared_at = pwi_net_now(manager->config.net);
  pwi_manager_look_after(manager, node, manager->config.keep_retired_ns);
  pwi_log(manager->config.log, PAWL_LOG_WARN, "server.down", "node=%llu", (unsigned long long)node->id);
  pwi_manager_moves_unwanted(manager, node->id);
}

/* The lost nodes are marked down. Or they have come back, or the manager suspects itself meanwhile, or there was no
 * memory for the view: a node whose timer has fired is then looked at again. */
static void conclude_losses(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  bool any = false;
  (void)decision, (void)status;
  manager->losses_queued = false;
  for (size_t i = 0; i < manager->node_count; i++) {
    struct manager_node *node = &manager->nodes[i];
    if (node->peer || node->declared) continue;
    bool down = view_node(manager, node->id)->state == PWI_NODE_DOWN;
    if (down) declare(manager, node);
    if (!down && node->timer.id == 0) pwi_manager_look_after(manager, node, RETRY_NS);
    any |= down;
  }
  if (!any) return;
  pwi_manager_plan_later(manager);
  pwi_manager_moves_poke(manager);
}

void pwi_manager_node_timer(struct pwi_manager *manager, uint64_t id) {
  struct manager_node *node = pwi_manager_node(manager, id);
  if (!node) return;
  node->timer.id = 0;
  if (node->peer) return;
  if (view_node(manager, id)->state == PWI_NODE_DOWN) {
    pwi_manager_remove_node(manager, node);
    return;
  }
  if (!pwi_manager_check_unlinked(manager, node)) {
    pwi_manager_settle(manager); /* once its grace is over, clients no longer wait for its confirmation */
    return;
  }
  if (manager->losses_queued) return;
  manager->losses_queued = true;
  pwi_manager_queue(manager, &(struct decision){.decide = decide_losses, .conclude = conclude_losses});
}

/* --- complaints ----------------------------------------------------------------------------------------- */

void pwi_manager_note_conflict(struct pwi_manager *manager, uint64_t a, uint64_t b) {
  manager->conflicts[manager->next_conflict++ % PWI_CONFLICTS] =
      (struct neighbour_conflict){{{a}, {b}}, pwi_net_now(manager->config.net) + CONFLICT_NS};
}

/* Which member is removed after a complaint: the one further from the head, unless the other has no link to
 * the manager either. A member that cannot follow is removed itself. Returns 0 if the complaint is about an
 * earlier chain. */
static uint64_t find_member_to_remove(const struct pwi_manager *manager, const struct pwi_arc *arc, uint64_t complainer,
                                      uint64_t other_node) {
  size_t place = pwi_arc_find(arc, (struct pwi_node){complainer}),
         other = pwi_arc_find(arc, (struct pwi_node){other_node});
  if (place == PWI_CHAIN_MAX || other == PWI_CHAIN_MAX) return 0;
  if (place == other) return complainer;
  if (place + 1 == other) return other_node;
  if (other + 1 != place) return 0;
  return pwi_manager_is_connected(manager, other_node) ? complainer : other_node;
}

/* The node has no link and may be back before long. If most servers are unreachable, the complaining server
 * may be cut off as the manager is. If the node merely lacks the view, it receives it as soon as it is
 * back. */
static bool is_doubtful(struct pwi_manager *manager, uint64_t id) {
  const struct manager_node *node = pwi_manager_node(manager, id);
  return node && pwi_manager_may_return(manager, node);
}

/* The member came back a moment ago, perhaps before its old link went down, and its neighbours may not have reached it again yet. Or it was sent the view
 * with this chain a moment ago and has not confirmed it: its link may be broken, because its neighbours complain
 * before the manager notices the silence. A neighbour that still does not reach it complains again. */
static bool is_about_to_answer(const struct pwi_manager *manager, uint64_t id, uint64_t since) {
  const struct manager_node *node = pwi_manager_node(manager, id);
  const struct manager_peer *peer = node ? node->peer : NULL;
  int64_t now = pwi_net_now(manager->config.net), patience = LACK_NS + pwi_net_allowance(manager->config.net);
  if (!peer) return false;
  bool lacks_view = peer->have.of[PWI_TOPIC_VIEW] < since && now - peer->view_sent_at < patience;
  return lacks_view || (node->returned_at != 0 && now - node->returned_at < patience);
}

static pawl_status decide_complaint(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_complaint *complaint = &decision->complaint;
  const struct pwi_view *view = manager->ledger.view;
  struct view_draft draft;
  bool changed = false;
  if (view->arc_count == 0) return PAWL_OK;
  pawl_status status = pwi_draft_open(view, 0, &draft);
  if (status) return status;
  for (size_t i = 0; i < draft.arc_count; i++) {
    struct pwi_arc *arc = &draft.arcs[i];
    bool meant = !pawl_range_is_empty(pawl_range_common(pwi_view_arc_range(view, i), complaint->positions));
    if (!meant || arc->since > decision->secret) continue; /* the complaint is older than this chain */
    uint64_t member = find_member_to_remove(manager, arc, decision->id, complaint->node);
    if (member && is_doubtful(manager, member)) continue;
    if (member && complaint->status == PAWL_LINK_SILENT && is_about_to_answer(manager, member, arc->since)) continue;
    if (member && has_another(manager, arc, member)) changed |= pwi_arc_drop(arc, member);
  }
  if (changed) status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  if (changed && !status) decision->size = 1;
  pwi_draft_close(&draft);
  return status;
}

static void conclude_complaint(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  const struct pwi_complaint *complaint = &decision->complaint;
  struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  if (peer) peer->asks--;
  if (status || decision->size == 0) return;
  pwi_log(manager->config.log, PAWL_LOG_WARN, "chain.conflict", "node=%llu about=%llu begin=%llu end=%llu why=%s",
          (unsigned long long)decision->id, (unsigned long long)complaint->node,
          (unsigned long long)complaint->positions.begin, (unsigned long long)complaint->positions.end,
          pawl_status_name(complaint->status));
  pwi_manager_note_conflict(manager, decision->id, complaint->node == decision->id ? 0 : complaint->node);
  pwi_manager_plan_later(manager);
  pwi_manager_moves_poke(manager);
}

void pwi_manager_complain(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size) {
  struct decision decision = {.decide = decide_complaint,
                              .conclude = conclude_complaint,
                              .link = peer->link,
                              .id = peer->id,
                              .secret = peer->control.head.view};
  if (pwi_complaint_decode(payload, size, &decision.complaint)) {
    pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
    return;
  }
  if (decision.complaint.status == PAWL_OK) { /* a warning: the server wants to know whether it is heard */
    pwi_manager_say(manager, peer, PWI_SAY_COMPLAIN, 0, NULL);
    return;
  }
  if (++peer->asks > PWI_MANAGER_ASKS_MAX) {
    pwi_manager_close(manager, peer, PAWL_LINK_BUSY);
    return;
  }
  pwi_manager_queue(manager, &decision);
}
