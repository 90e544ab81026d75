/* Steps under way.
 *
 * A move brings one arc to its goal by steps (manager/step.c). A step that needs an order goes through views: one that
 * lists the target as filling, one that makes it full or, after a failure, one that strikes it off again. All moves that
 * are ready for their next view share it. Where a step has got to is seen in the view itself, so the one decision that
 * makes these views can be asked again and again.
 *
 * FILLING holds good within one `since` of the arc: if its chain changes for another reason the target is struck off with
 * that change, and whatever the source may say later is not listened to.
 *
 * A HANDOVER holds good until the next view, whatever that is about: then the old head serves on, unless the view says
 * otherwise. So, while handovers are under way, no other step asks for a view; and if somebody else needs one the
 * handover is begun again.
 */
#include "manager/inside.h"

/* --- orders --------------------------------------------------------------------------------------------------------- */

static void give_order(struct pwi_manager *manager, const struct move *move, bool cancel) {
  const struct node *source = pwi_manager_node(manager, move->source);
  const struct pwi_view_node *target = pwi_view_find(manager->ledger.view, (struct pwi_node){move->target});
  if (!source || !source->peer) return;
  struct pwi_move order = {.move = move->id,
                           .epoch = move->epoch,
                           .positions = move->positions,
                           .target = move->target,
                           .step = (uint8_t)move->order,
                           .cancel = cancel};
  for (size_t i = 0; target && i + 1 < sizeof order.address && target->address[i]; i++) {
    order.address[i] = target->address[i];
  }
  struct pwi_writer payload = {0};
  pwi_move_encode(&order, &payload);
  pwi_manager_say(manager, source->peer, PWI_SAY_MOVE, 0, &payload);
  pwi_writer_fini(&payload);
}

void pwi_move_fail(struct pwi_manager *manager, struct move *move, pawl_status why) {
  pwi_log(manager->config.log, PAWL_LOG_WARN, "move.failed", "move=%llu step=%s source=%llu target=%llu why=%s",
          (unsigned long long)move->id, move->order == PWI_MOVE_FILL ? "fill" : "handover",
          (unsigned long long)move->source, (unsigned long long)move->target, pawl_status_name(why));
  if (move->step == MOVE_GOING) give_order(manager, move, true);
  move->step = MOVE_FAILED;
}

static bool has_heard(const struct pwi_manager *manager, uint64_t id, uint64_t epoch) {
  const struct node *node = pwi_manager_node(manager, id);
  return node && node->peer && node->peer->have.of[PWI_TOPIC_VIEW] >= epoch;
}

static void give_orders(struct pwi_manager *manager) {
  struct step step;
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    if (move->step != MOVE_LISTED || pwi_manager_work_on(manager, move, &step) != WORK_WAIT) continue;
    if (!has_heard(manager, move->source, move->epoch) || !has_heard(manager, move->target, move->epoch)) continue;
    move->step = MOVE_GOING;
    give_order(manager, move, false);
  }
}

/* A server that has handed over for a manager before us, which did not live to write the view, waits for one that nobody will
 * write. What was written is in our ledger, and it has that, or will have it first: so it may go on as it is listed there. */
static void take_back(struct pwi_manager *manager, struct peer *peer, const struct pwi_move *moved) {
  struct pwi_move order = *moved;
  struct pwi_writer payload = {0};
  if (moved->step != PWI_MOVE_HANDOVER || moved->status || manager->ledger.view->epoch != moved->epoch) return;
  order.cancel = true;
  pwi_move_encode(&order, &payload);
  pwi_manager_say(manager, peer, PWI_SAY_MOVE, 0, &payload);
  pwi_writer_fini(&payload);
}

void pwi_manager_moved(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size) {
  struct pwi_move moved;
  size_t used;
  if (pwi_move_decode(payload, size, &moved, &used) || used != size) {
    pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
    return;
  }
  bool is_known = false;
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    is_known |= move->id == moved.move;
    if (move->step != MOVE_GOING || move->id != moved.move || move->source != peer->id) continue;
    if (moved.status)
      pwi_move_fail(manager, move, moved.status);
    else
      move->step = MOVE_LANDED;
    break;
  }
  if (!is_known && peer->state == PEER_IN) take_back(manager, peer, &moved);
  pwi_manager_moves_poke(manager);
}

/* A handover that has landed is not worth more than the link to its source: the view that it waits for might come after
 * the source has been told that it is who it was. */
void pwi_manager_moves_lost(struct pwi_manager *manager, uint64_t id, bool as_source) {
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    bool concerned = move->target == id || (as_source && move->source == id);
    bool open = move->step == MOVE_LISTED || move->step == MOVE_GOING ||
                (move->step == MOVE_LANDED && move->order == PWI_MOVE_HANDOVER && as_source);
    if (concerned && open) pwi_move_fail(manager, move, PAWL_NODE_GONE);
  }
  pwi_manager_moves_poke(manager);
}

void pwi_manager_moves_unwanted(struct pwi_manager *manager, uint64_t node) {
  for (size_t i = manager->move_count; i-- > 0;) {
    const struct move *move = &manager->moves[i];
    bool names_it = false;
    for (size_t j = 0; j < move->goal_count; j++) names_it |= move->goal[j] == node;
    if (!names_it) continue;
    manager->moves[i].unwanted = true;
    manager->unfinished = true;
  }
}

/* --- going on ------------------------------------------------------------------------------------------------------- */

static bool is_in_a_chain(const struct pwi_view *view, uint64_t id) {
  for (size_t i = 0; i < view->arc_count; i++) {
    if (pwi_arc_find(&view->arcs[i], (struct pwi_node){id}) != PWI_CHAIN_MAX) return true;
  }
  return false;
}

/* A node that is leaving and holds nothing may go. */
static void release_leavers(struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->node_count; i++) {
    struct node *node = pwi_manager_node(manager, view->nodes[i].node.id);
    if (view->nodes[i].state != PWI_NODE_DRAINING || node->striking || is_in_a_chain(view, node->id)) continue;
    pwi_manager_strike(manager, node);
    return; /* the view may be another one now; that one's announcement brings us here again */
  }
}

static int64_t wakes_at(const struct move *move, int64_t now) {
  bool hands_over = move->order == PWI_MOVE_HANDOVER && (move->step == MOVE_LISTED || move->step == MOVE_GOING);
  if (hands_over) return move->deadline > now ? move->deadline : PWI_NET_NEVER;
  return move->step == MOVE_WANTED && move->not_before > now ? move->not_before : PWI_NET_NEVER;
}

/* Somebody has a pause to wait for, or a deadline. */
static void wake_for_moves(struct pwi_manager *manager) {
  int64_t now = pwi_net_now(manager->config.net), soonest = PWI_NET_NEVER;
  for (size_t i = 0; i < manager->move_count; i++) {
    int64_t at = wakes_at(&manager->moves[i], now);
    if (at < soonest) soonest = at;
  }
  if (soonest == PWI_NET_NEVER) return;
  pwi_manager_timer_cancel(manager, &manager->moves_timer);
  pwi_manager_timer_set(manager, soonest > now ? soonest - now : 0, TIMER_MOVES, 0, &manager->moves_timer);
}

void pwi_manager_moves_heard(struct pwi_manager *manager) {
  if (manager->move_count > 0) give_orders(manager);
}

static void conclude_moves(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  (void)decision;
  manager->moves_queued = false;
  if (status && manager->moves_timer.id == 0)
    pwi_manager_timer_set(manager, PWI_MOVE_PAUSE_NS, TIMER_MOVES, 0, &manager->moves_timer);
  if (!status) pwi_manager_moves_poke(manager);
}

void pwi_manager_moves_poke(struct pwi_manager *manager) {
  if (!manager->ledger.view || manager->ledger.view->arc_count == 0) return;
  give_orders(manager);
  release_leavers(manager);
  wake_for_moves(manager);
  pwi_manager_watch_chains(manager);
  if (manager->moves_queued || !pwi_manager_needs_view(manager)) return;
  manager->moves_queued = true;
  pwi_manager_queue(manager, &(struct decision){.decide = pwi_manager_decide_moves, .conclude = conclude_moves});
}

/* --- after a start -------------------------------------------------------------------------------------------------- */

static pawl_status decide_tidying(struct pwi_manager *manager, struct decision *decision) {
  struct draft draft;
  (void)decision;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  if (pwi_draft_end_fills(&draft)) {
    manager->unfinished = true;
    status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  }
  pwi_draft_close(&draft);
  return status;
}

void pwi_manager_tidy(struct pwi_manager *manager) {
  pwi_manager_queue(manager, &(struct decision){.decide = decide_tidying});
}
