/* Steps under way.
 *
 * A move brings one arc to its goal by steps (manager/step.c). A step that needs an order takes two views:
 * the first lists the target as filling, the second makes it full or, after a failure, removes it. All moves
 * that are ready for their next view share it. The view itself shows how far a step has come, so the decision
 * that makes these views can be repeated.
 *
 * A FILL is valid for one configuration (`since`) of the arc. If the chain changes for another reason, that
 * change removes the target, and later reports of the source are ignored.
 *
 * A HANDOVER is valid until the next view, whatever that view changes. The old head then continues to serve,
 * unless the view names another head. So no other step asks for a view while handovers are under way. If a
 * view is needed for another reason, the handover starts again.
 */
#include "manager/inside.h"

#define HANDOVER_NS INT64_C(300000000) /* how long other moves wait for a handover, at first */
#define DOUBLINGS_MAX 2

/* --- orders --------------------------------------------------------------------------------------------- */

static void give_order(struct pwi_manager *manager, const struct chain_move *move, bool cancel) {
  const struct manager_node *source = pwi_manager_node(manager, move->source);
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

void pwi_move_fail(struct pwi_manager *manager, struct chain_move *move, pawl_status why) {
  pwi_log(manager->config.log, PAWL_LOG_WARN, "move.failed", "move=%llu step=%s source=%llu target=%llu why=%s",
          (unsigned long long)move->id, move->order == PWI_MOVE_FILL ? "fill" : "handover",
          (unsigned long long)move->source, (unsigned long long)move->target, pawl_status_name(why));
  if (move->step == MOVE_GOING) give_order(manager, move, true);
  move->step = MOVE_FAILED;
}

/* A handover has this time twice: from the view that lists it until both servers have that view, and from the
 * order until the report. The head takes no requests in the second part, so the time is short at first. It
 * is doubled after a failure, because a busy machine may need more. */
static void give_time(const struct pwi_manager *manager, struct chain_move *move) {
  unsigned doublings = move->failures < DOUBLINGS_MAX ? move->failures : DOUBLINGS_MAX;
  int64_t time = (HANDOVER_NS << doublings) + pwi_net_allowance(manager->config.net);
  move->deadline = pwi_net_now(manager->config.net) + time;
}

static bool has_heard(const struct pwi_manager *manager, uint64_t id, uint64_t epoch) {
  const struct manager_node *node = pwi_manager_node(manager, id);
  return node && node->peer && node->peer->have.of[PWI_TOPIC_VIEW] >= epoch;
}

static void give_orders(struct pwi_manager *manager) {
  struct chain_step step;
  for (size_t i = 0; i < manager->move_count; i++) {
    struct chain_move *move = &manager->moves[i];
    bool is_listed = move->step == MOVE_LISTED && manager->ledger.view->epoch >= move->epoch;
    if (is_listed && move->deadline == PWI_NET_NEVER) give_time(manager, move);
    if (!is_listed || pwi_manager_work_on(manager, move, &step) != WORK_WAIT) continue;
    if (!has_heard(manager, move->source, move->epoch) || !has_heard(manager, move->target, move->epoch)) continue;
    move->step = MOVE_GOING;
    give_time(manager, move);
    give_order(manager, move, false);
  }
}

/* A server has handed over on the order of an earlier leader that stopped before it wrote the view, so the
 * server waits for a view that will never come. The ledger has every view that was written, and the server
 * has the newest of them or receives it first. So the server may continue as that view lists it. */
static void take_back(struct pwi_manager *manager, struct manager_peer *peer, const struct pwi_move *moved) {
  struct pwi_move order = *moved;
  struct pwi_writer payload = {0};
  if (moved->step != PWI_MOVE_HANDOVER || moved->status || manager->ledger.view->epoch != moved->epoch) return;
  order.cancel = true;
  pwi_move_encode(&order, &payload);
  pwi_manager_say(manager, peer, PWI_SAY_MOVE, 0, &payload);
  pwi_writer_fini(&payload);
}

void pwi_manager_moved(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size) {
  struct pwi_move moved;
  size_t used;
  if (pwi_move_decode(payload, size, &moved, &used) || used != size) {
    pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
    return;
  }
  bool is_known = false;
  for (size_t i = 0; i < manager->move_count; i++) {
    struct chain_move *move = &manager->moves[i];
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

/* A handover that has been carried out stands even if the link of its source goes down: a head that has
 * reported it takes no requests until the next view, or until the manager cancels the order. */
void pwi_manager_moves_lost(struct pwi_manager *manager, uint64_t id, bool as_source) {
  for (size_t i = 0; i < manager->move_count; i++) {
    struct chain_move *move = &manager->moves[i];
    bool concerned = move->target == id || (as_source && move->source == id);
    bool open = move->step == MOVE_LISTED || move->step == MOVE_GOING;
    if (concerned && open) pwi_move_fail(manager, move, PAWL_NODE_GONE);
  }
  pwi_manager_moves_poke(manager);
}

void pwi_manager_moves_unwanted(struct pwi_manager *manager, uint64_t node) {
  for (size_t i = manager->move_count; i-- > 0;) {
    const struct chain_move *move = &manager->moves[i];
    bool names_it = false;
    for (size_t j = 0; j < move->goal_count; j++) names_it |= move->goal[j] == node;
    if (!names_it) continue;
    manager->moves[i].unwanted = true;
    manager->unfinished = true;
  }
}

/* --- proceeding ----------------------------------------------------------------------------------------- */

static bool is_in_a_chain(const struct pwi_view *view, uint64_t id) {
  for (size_t i = 0; i < view->arc_count; i++) {
    if (pwi_arc_find(&view->arcs[i], (struct pwi_node){id}) != PWI_CHAIN_MAX) return true;
  }
  return false;
}

/* Removes a node from the view that is leaving and is in no chain. */
static void release_leavers(struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->node_count; i++) {
    struct manager_node *node = pwi_manager_node(manager, view->nodes[i].node.id);
    if (view->nodes[i].state != PWI_NODE_DRAINING || node->removing || is_in_a_chain(view, node->id)) continue;
    pwi_manager_remove_node(manager, node);
    return; /* the view may have changed; this function is called again after the announcement */
  }
}

static int64_t wakes_at(const struct chain_move *move, int64_t now) {
  bool hands_over = move->order == PWI_MOVE_HANDOVER && (move->step == MOVE_LISTED || move->step == MOVE_GOING);
  if (hands_over) return move->deadline > now ? move->deadline : PWI_NET_NEVER;
  return move->step == MOVE_WANTED && move->not_before > now ? move->not_before : PWI_NET_NEVER;
}

/* Sets the timer for the next end of a pause or deadline of a handover. */
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

/* --- after a restart ------------------------------------------------------------------------------------ */

static pawl_status decide_tidying(struct pwi_manager *manager, struct decision *decision) {
  struct view_draft draft;
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
