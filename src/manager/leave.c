/* Leaving. A server that leaves hands its arcs over first. Servers that are lost are handled by
 * manager/loss.c.
 *
 * A client that leaves is retired and forgotten. A client whose link is down may come back with its id and
 * secret. After its grace its sender is retired; it is forgotten when its clocks need not be kept any more.
 */
#include "manager/inside.h"

#define RETRY_NS INT64_C(100000000) /* after memory ran out */

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

/* --- leaving -------------------------------------------------------------------------------------------- */

/* Retires and forgets a sender whose client has all its answers, or was never told its id. */
static pawl_status decide_sender_removal(struct pwi_manager *manager, struct decision *decision) {
  struct pwi_sender sender = {decision->id};
  if (pwi_membership_is_live(&manager->ledger.membership, sender))
    pwi_record_retire(&manager->record, sender.id);
  else if (pwi_membership_is_retired(&manager->ledger.membership, sender))
    pwi_record_forget(&manager->record, true, &sender.id, 1);
  return PAWL_OK;
}

void pwi_manager_remove_sender(struct pwi_manager *manager, uint64_t sender) {
  pwi_manager_queue(manager, &(struct decision){.decide = decide_sender_removal, .id = sender});
}

static void conclude_sender_removal(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  if (!peer) return;
  if (status)
    pwi_manager_close(manager, peer, status);
  else
    pwi_manager_say(manager, peer, PWI_SAY_LEFT, 0, NULL);
}

static pawl_status decide_draining(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_view_node *node = view_node(manager, decision->id);
  struct view_draft draft;
  if (!node || node->state != PWI_NODE_UP) return PAWL_OK;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  pwi_draft_node(&draft, decision->id)->state = PWI_NODE_DRAINING;
  status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  pwi_draft_close(&draft);
  return status;
}

/* Without memory the link is closed, and the server says LEAVE again. */
static void conclude_draining(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  if (status && peer) pwi_manager_close(manager, peer, status);
  if (status) return;
  pwi_manager_moves_unwanted(manager, decision->id);
  pwi_manager_moves_lost(manager, decision->id, false);
  pwi_manager_plan_later(manager);
  pwi_manager_moves_poke(manager);
}

void pwi_manager_note_leaving(const struct pwi_manager *manager, struct manager_node *node) {
  if (!node->leaving) node->leaving_since = pwi_net_now(manager->config.net);
  node->leaving = true;
}

void pwi_manager_leave(struct pwi_manager *manager, struct manager_peer *peer) {
  struct decision decision = {.link = peer->link, .id = peer->id};
  struct manager_node *node = peer->is_server ? pwi_manager_node(manager, peer->id) : NULL;
  struct manager_sender *sender = peer->is_server ? NULL : pwi_manager_sender(manager, peer->id);
  if (node) {
    pwi_manager_note_leaving(manager, node);
    decision.decide = decide_draining;
    decision.conclude = conclude_draining;
  } else {
    if (sender) sender->peer = NULL;
    peer->state = PEER_OUT;
    peer->id = 0;
    decision.decide = decide_sender_removal;
    decision.conclude = conclude_sender_removal;
  }
  pwi_manager_queue(manager, &decision);
}

/* Removes a node from the view that is leaving, or was down for long, and is in no chain. */
static pawl_status decide_removal(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_view_node *node = view_node(manager, decision->id);
  struct view_draft draft;
  if (!node || node->state == PWI_NODE_UP) return PAWL_OK;
  if (node->state == PWI_NODE_DOWN && pwi_manager_node(manager, decision->id)->peer) return PAWL_OK;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  if (!pwi_draft_has_member(&draft, decision->id)) {
    pwi_draft_remove_node(&draft, decision->id);
    status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  }
  pwi_draft_close(&draft);
  return status;
}

/* The present link of a server. It may have joined over a new link while the record was being written. */
static struct manager_peer *peer_of_server(const struct pwi_manager *manager, uint64_t id) {
  struct manager_peer *peer = manager->first_peer;
  while (peer && !(peer->is_server && peer->id == id)) peer = peer->next;
  return peer;
}

static void conclude_removal(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  struct manager_node *node = pwi_manager_node(manager, decision->id);
  struct manager_peer *peer = peer_of_server(manager, decision->id);
  if (node) {
    node->removing = false;
    if (!node->peer && view_node(manager, node->id)->state == PWI_NODE_DOWN) /* a chain waits for it: look again */
      pwi_manager_look_after(manager, node, manager->config.keep_retired_ns);
    return;
  }
  pwi_log(manager->config.log, PAWL_LOG_INFO, "server.left", "node=%llu why=%s", (unsigned long long)decision->id,
          pawl_status_name(status));
  if (peer) {
    peer->state = PEER_OUT;
    peer->id = 0;
    pwi_manager_wait(manager, &(struct waiting_reply){.link = peer->link, .kind = PWI_SAY_LEFT});
  }
  pwi_manager_moves_poke(manager); /* other nodes may be waiting to leave */
}

void pwi_manager_remove_node(struct pwi_manager *manager, struct manager_node *node) {
  if (node->removing) return;
  node->removing = true;
  pwi_manager_queue(manager,
                    &(struct decision){.decide = decide_removal, .conclude = conclude_removal, .id = node->id});
}

/* --- clients that are lost ------------------------------------------------------------------------------ */

void pwi_manager_check_sender(struct pwi_manager *manager, struct manager_sender *sender, int64_t delay) {
  sender->check_at = pwi_net_now(manager->config.net) + delay;
  pwi_manager_timer_set(manager, delay, TIMER_SENDER, sender->id, &sender->timer);
}

void pwi_manager_sender_lost(struct pwi_manager *manager, struct manager_sender *sender, int64_t delay) {
  sender->lost_at = pwi_net_now(manager->config.net) + delay;
  pwi_manager_check_sender(manager, sender, delay + manager->config.client_grace_ns);
}

/* What is left of its grace, which is longer while nodes get little time. After a standstill of the manager it begins
 * anew: nobody could return meanwhile. */
static int64_t grace_left(const struct pwi_manager *manager, struct manager_sender *sender) {
  int64_t now = pwi_net_now(manager->config.net);
  if (pwi_manager_lateness(manager, sender->check_at) > 0) sender->lost_at = now;
  return sender->lost_at + manager->config.client_grace_ns + pwi_net_allowance(manager->config.net) - now;
}

static pawl_status decide_retirement(struct pwi_manager *manager, struct decision *decision) {
  const struct manager_sender *sender = pwi_manager_sender(manager, decision->id);
  if (!sender || sender->peer) return PAWL_OK;
  if (pwi_membership_is_live(&manager->ledger.membership, (struct pwi_sender){decision->id}))
    pwi_record_retire(&manager->record, decision->id);
  return PAWL_OK;
}

pawl_status pwi_manager_decide_miss(struct pwi_manager *manager, struct decision *decision) {
  const struct manager_sender *sender = pwi_manager_sender(manager, decision->id);
  return sender && sender->peer ? PAWL_EXISTS : decide_retirement(manager, decision);
}

pawl_status pwi_manager_decide_retire(struct pwi_manager *manager, struct decision *decision) {
  if (pwi_membership_is_live(&manager->ledger.membership, (struct pwi_sender){decision->id}))
    pwi_record_retire(&manager->record, decision->id);
  return PAWL_OK;
}

/* Closes the link of a sender that was retired. Its client learns of the retirement when it joins again. */
void pwi_manager_disconnect(struct pwi_manager *manager, uint64_t id) {
  struct manager_sender *sender = pwi_manager_sender(manager, id);
  if (!sender || !sender->peer) return;
  sender->peer->state = PEER_OUT;
  sender->peer->id = 0;
  pwi_manager_close(manager, sender->peer, PAWL_OK);
  sender->peer = NULL;
}

void pwi_manager_was_retired(struct pwi_manager *manager, uint64_t id, pawl_status status) {
  struct manager_sender *sender = pwi_manager_sender(manager, id);
  if (!sender || sender->peer) return;
  int64_t delay = status ? RETRY_NS : manager->config.keep_retired_ns;
  pwi_manager_timer_cancel(manager, &sender->timer);
  pwi_manager_check_sender(manager, sender, delay);
  if (status) return;
  sender->forget_at = pwi_net_now(manager->config.net) + delay;
  pwi_manager_settle_later(manager, id);
  pwi_log(manager->config.log, PAWL_LOG_INFO, "client.retired", "sender=%llu", (unsigned long long)sender->id);
}

static void conclude_retirement(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  pwi_manager_was_retired(manager, decision->id, status);
}

void pwi_manager_sender_timer(struct pwi_manager *manager, uint64_t id) {
  struct manager_sender *sender = pwi_manager_sender(manager, id);
  if (!sender) return;
  sender->timer.id = 0;
  if (sender->peer) return;
  struct decision decision = {.decide = decide_retirement, .conclude = conclude_retirement, .id = id};
  if (pwi_membership_is_retired(&manager->ledger.membership, (struct pwi_sender){id})) {
    pwi_manager_expire(manager);
    return;
  }
  int64_t left = grace_left(manager, sender);
  if (left > 0)
    pwi_manager_check_sender(manager, sender, left);
  else
    pwi_manager_queue(manager, &decision);
}

void pwi_manager_await_all(struct pwi_manager *manager) {
  int64_t now = pwi_net_now(manager->config.net);
  manager->patient_until = now + manager->config.server_grace_ns;
  for (size_t i = 0; i < manager->node_count; i++) {
    struct manager_node *node = &manager->nodes[i];
    bool down = view_node(manager, node->id)->state == PWI_NODE_DOWN;
    node->leaving = view_node(manager, node->id)->state == PWI_NODE_DRAINING;
    node->declared_at = node->leaving_since = INT64_MIN;
    int64_t delay = down ? manager->config.keep_retired_ns : PWI_MANAGER_RETURN_NS;
    node->declared = down;
    node->lost_at = now;
    pwi_manager_look_after(manager, node, delay);
  }
  for (size_t i = 0; i < manager->sender_count; i++) {
    struct manager_sender *sender = &manager->senders[i];
    bool retired = pwi_membership_is_retired(&manager->ledger.membership, (struct pwi_sender){sender->id});
    if (!retired) {
      pwi_manager_sender_lost(manager, sender, PWI_MANAGER_RETURN_NS);
      continue;
    }
    pwi_manager_check_sender(manager, sender, manager->config.keep_retired_ns);
    sender->forget_at = now + manager->config.keep_retired_ns;
  }
}
