/* Moves under way.
 *
 * Each goes through views: one that lists the target as filling, one that makes it full, one in which it is alone; or,
 * after a failure, one that strikes it off again. All moves that are ready for their next view share it. Where a move has
 * got to is seen in the view itself, so the one decision that makes these views can be asked again and again.
 */
#include <assert.h>

#include "base/memory.h"
#include "role/manager_inside.h"

#define ATTEMPTS_MAX 5
#define PAUSE_NS INT64_C(250000000) /* after a failure; doubles each time */

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

static bool is_here(const struct pwi_manager *manager, uint64_t id) {
  const struct node *node = pwi_manager_node(manager, id);
  return node && node->peer && view_node(manager, id)->state != PWI_NODE_DOWN;
}

/* True if the node could be given something. */
static bool is_welcome(const struct pwi_manager *manager, uint64_t id) {
  return is_here(manager, id) && view_node(manager, id)->state == PWI_NODE_UP &&
         !pwi_manager_node(manager, id)->leaving;
}

/* --- the list ------------------------------------------------------------------------------------------------------- */

pawl_status pwi_manager_move_add(struct pwi_manager *manager, struct pawl_range positions, uint64_t source,
                                 uint64_t target) {
  if (manager->move_count == manager->move_room) {
    size_t room = manager->move_room ? 2 * manager->move_room : 16;
    struct move *moves = pwi_resize_array(manager->moves, room, sizeof *moves);
    if (!moves) return PAWL_NO_MEMORY;
    manager->moves = moves;
    manager->move_room = room;
  }
  manager->moves[manager->move_count++] =
      (struct move){.positions = positions, .source = source, .target = target, .step = MOVE_WANTED};
  return PAWL_OK;
}

static void remove_move(struct pwi_manager *manager, size_t index) {
  manager->move_count--;
  for (size_t i = index; i < manager->move_count; i++) manager->moves[i] = manager->moves[i + 1];
}

/* --- which may begin ------------------------------------------------------------------------------------------------ */

enum readiness { READY, NOT_NOW, NEVER };

/* What the arcs say: each must be held by the source alone. One with a second member is on the move already. */
static enum readiness arcs_are_ready(const struct pwi_view *view, const struct move *move) {
  size_t arc = pwi_view_arc_of(view, move->positions.begin);
  for (; arc < view->arc_count && view->arcs[arc].begin < move->positions.end; arc++) {
    if (view->arcs[arc].count > 1) return NOT_NOW;
    if (view->arcs[arc].chain[0].node.id != move->source) return NEVER;
  }
  return READY;
}

/* The source and the target have no other move, in that role, that is under way or about to be. */
static bool have_time(const struct pwi_manager *manager, const struct move *move) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *other = &manager->moves[i];
    if (other == move || (other->step == MOVE_WANTED && !other->chosen)) continue;
    if (other->source == move->source || other->target == move->target) return false;
  }
  return true;
}

static enum readiness readiness(const struct pwi_manager *manager, const struct move *move) {
  if (move->step != MOVE_WANTED) return NOT_NOW;
  if (!view_node(manager, move->source) || !view_node(manager, move->target)) return NEVER;
  if (!is_here(manager, move->source) || !is_welcome(manager, move->target)) return NOT_NOW;
  enum readiness arcs = arcs_are_ready(manager->ledger.view, move);
  if (arcs != READY) return arcs;
  return pwi_net_now(manager->config.net) >= move->not_before && have_time(manager, move) ? READY : NOT_NOW;
}

/* True if somebody is still going to move something, as far as one can see. */
static bool is_busy(const struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    if (move->step != MOVE_WANTED) return true;
    if (is_here(manager, move->source) && is_welcome(manager, move->target)) return true;
  }
  return false;
}

/* --- steps that a view takes ---------------------------------------------------------------------------------------- */

/* The arc of a move that has been listed; NULL if the target is in no chain there any more. */
static struct pwi_arc *listed_arc(struct draft *draft, const struct move *move, size_t *place_out) {
  for (size_t i = 0; i < draft->arc_count; i++) {
    struct pwi_arc *arc = &draft->arcs[i];
    if (arc->begin != move->positions.begin) continue;
    *place_out = pwi_arc_find(arc, (struct pwi_node){move->target});
    return *place_out == PWI_CHAIN_MAX ? NULL : arc;
  }
  return NULL;
}

/* Tries it again after a pause, or gives it up. */
static void settle_failed(struct pwi_manager *manager, size_t index) {
  struct move *move = &manager->moves[index];
  bool again = !move->unwanted && ++move->failures < ATTEMPTS_MAX && view_node(manager, move->target) &&
               view_node(manager, move->target)->state == PWI_NODE_UP;
  if (!again) {
    const struct pwi_view_node *source = view_node(manager, move->source);
    if (!move->unwanted) manager->unfinished = true;
    if (source && source->state == PWI_NODE_DRAINING) pwi_manager_plan_later(manager); /* it has to get rid of it */
    remove_move(manager, index);
    return;
  }
  move->step = MOVE_WANTED;
  move->not_before = pwi_net_now(manager->config.net) + (PAUSE_NS << move->failures);
}

/* True if the draft has changed. A move that needs no further view is removed, or wanted again. */
static bool step_failed(struct pwi_manager *manager, struct draft *draft, size_t index) {
  size_t place;
  struct pwi_arc *arc = listed_arc(draft, &manager->moves[index], &place);
  if (!arc) {
    settle_failed(manager, index);
    return false;
  }
  assert(arc->chain[place].filling);
  pwi_arc_strike(arc, place);
  return true;
}

static bool step_landed(struct pwi_manager *manager, struct draft *draft, size_t index) {
  struct move *move = &manager->moves[index];
  size_t place;
  struct pwi_arc *arc = listed_arc(draft, move, &place);
  if (arc && arc->count > 1 && arc->chain[place].filling && !is_here(manager, move->target)) {
    /* The source still has everything: better to begin again than to name a holder that may be dead. */
    move->step = MOVE_FAILED;
    return step_failed(manager, draft, index);
  }
  if (arc && arc->count > 1) {
    if (arc->chain[place].filling)
      arc->chain[place].filling = false;
    else
      pwi_arc_strike(arc, 0);
    return true;
  }
  manager->moves_done += arc != NULL;
  pwi_log(manager->config.log, PAWL_LOG_INFO, "move.done", "move=%llu source=%llu target=%llu",
          (unsigned long long)move->id, (unsigned long long)move->source, (unsigned long long)move->target);
  remove_move(manager, index);
  return false;
}

static bool step_wanted(struct pwi_manager *manager, struct draft *draft, size_t index) {
  struct move *move = &manager->moves[index];
  enum readiness ready = readiness(manager, move);
  if (ready == NEVER) remove_move(manager, index);
  if (ready != READY) return false;
  struct pwi_arc *arc = pwi_draft_arc(draft, move->positions);
  arc->chain[arc->count++] = (struct pwi_member){.node = {move->target}, .filling = true};
  move->chosen = true;
  return true;
}

/* Backwards, for moves that are over are removed; but those that wait begin in the order in which they were wanted. */
static bool step_all(struct pwi_manager *manager, struct draft *draft) {
  bool changed = false;
  for (size_t i = manager->move_count; i-- > 0;) {
    if (manager->moves[i].step == MOVE_FAILED)
      changed |= step_failed(manager, draft, i);
    else if (manager->moves[i].step == MOVE_LANDED)
      changed |= step_landed(manager, draft, i);
  }
  for (size_t i = 0, count = manager->move_count; i < manager->move_count;) {
    if (manager->moves[i].step == MOVE_WANTED) changed |= step_wanted(manager, draft, i);
    if (manager->move_count == count)
      i++;
    else
      count = manager->move_count;
  }
  return changed;
}

/* --- the decision --------------------------------------------------------------------------------------------------- */

/* Those that were chosen are under way once there is a record that lists them; else they are not. */
static void settle_chosen(struct pwi_manager *manager, bool listed) {
  uint64_t id = manager->ledger.last_move;
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    if (!move->chosen) continue;
    move->chosen = false;
    if (!listed) continue;
    move->id = ++id;
    move->epoch = manager->ledger.view->epoch + 1;
    move->step = MOVE_LISTED;
  }
}

static uint64_t count_chosen(const struct pwi_manager *manager) {
  uint64_t chosen = 0;
  for (size_t i = 0; i < manager->move_count; i++) chosen += manager->moves[i].chosen;
  return chosen;
}

static pawl_status decide_moves(struct pwi_manager *manager, struct decision *decision) {
  struct draft draft;
  (void)decision;
  if (manager->ledger.view->arc_count == 0) return PAWL_OK;
  pawl_status status = pwi_draft_open(manager->ledger.view, 2 * manager->move_count, &draft);
  if (status) return status;
  bool changed = step_all(manager, &draft);
  if (!changed && !is_busy(manager)) changed = pwi_draft_merge(&draft, manager->config.points);
  if (changed) {
    status = pwi_draft_record(manager, &draft, manager->ledger.last_move + count_chosen(manager), NULL);
    settle_chosen(manager, !status);
  }
  pwi_draft_close(&draft);
  return status;
}

static void conclude_moves(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  (void)decision;
  manager->moves_queued = false;
  if (status && manager->moves_timer.id == 0)
    pwi_manager_timer_set(manager, PAUSE_NS, TIMER_MOVES, 0, &manager->moves_timer);
  if (!status) pwi_manager_moves_poke(manager);
}

/* --- orders --------------------------------------------------------------------------------------------------------- */

static void give_order(struct pwi_manager *manager, const struct move *move, bool cancel) {
  const struct node *source = pwi_manager_node(manager, move->source);
  const struct pwi_view_node *target = view_node(manager, move->target);
  if (!source || !source->peer) return;
  struct pwi_move order = {
      .move = move->id, .epoch = move->epoch, .positions = move->positions, .target = move->target, .cancel = cancel};
  for (size_t i = 0; target && i + 1 < sizeof order.address && target->address[i]; i++) {
    order.address[i] = target->address[i];
  }
  struct pwi_writer payload = {0};
  pwi_move_encode(&order, &payload);
  pwi_manager_say(manager, source->peer, PWI_SAY_MOVE, 0, &payload);
  pwi_writer_fini(&payload);
}

static bool has_heard(const struct pwi_manager *manager, uint64_t id, uint64_t epoch) {
  const struct node *node = pwi_manager_node(manager, id);
  return node && node->peer && node->peer->have.of[PWI_TOPIC_VIEW] >= epoch;
}

static void fail(struct pwi_manager *manager, struct move *move, pawl_status why) {
  pwi_log(manager->config.log, PAWL_LOG_WARN, "move.failed", "move=%llu source=%llu target=%llu why=%s",
          (unsigned long long)move->id, (unsigned long long)move->source, (unsigned long long)move->target,
          pawl_status_name(why));
  if (move->step == MOVE_GOING) give_order(manager, move, true);
  move->step = MOVE_FAILED;
}

void pwi_manager_moved(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size) {
  struct pwi_move moved;
  size_t used;
  if (pwi_move_decode(payload, size, &moved, &used) || used != size) {
    pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
    return;
  }
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    if (move->step != MOVE_GOING || move->id != moved.move || move->source != peer->id) continue;
    if (moved.status)
      fail(manager, move, moved.status);
    else
      move->step = MOVE_LANDED;
    break;
  }
  pwi_manager_moves_poke(manager);
}

void pwi_manager_moves_lost(struct pwi_manager *manager, uint64_t id, bool as_source) {
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    bool concerned = move->target == id || (as_source && move->source == id);
    if (concerned && (move->step == MOVE_LISTED || move->step == MOVE_GOING)) fail(manager, move, PAWL_NODE_GONE);
  }
  pwi_manager_moves_poke(manager);
}

void pwi_manager_moves_unwanted(struct pwi_manager *manager, uint64_t target) {
  for (size_t i = manager->move_count; i-- > 0;) {
    if (manager->moves[i].target != target || manager->moves[i].step != MOVE_WANTED) continue;
    remove_move(manager, i);
    manager->unfinished = true;
  }
}

/* --- going on ------------------------------------------------------------------------------------------------------- */

/* True if a view would bring something forward. */
static bool needs_view(const struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    if (move->step == MOVE_LANDED || move->step == MOVE_FAILED) return true;
    if (move->step == MOVE_WANTED && readiness(manager, move) != NOT_NOW) return true;
  }
  return !is_busy(manager) && pwi_view_has_splinters(view, manager->config.points);
}

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

/* Somebody has a pause to wait for. */
static void wake_for_moves(struct pwi_manager *manager) {
  int64_t now = pwi_net_now(manager->config.net), soonest = PWI_NET_NEVER;
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    bool waits = move->step == MOVE_WANTED && move->not_before > now;
    if (waits && move->not_before < soonest) soonest = move->not_before;
  }
  if (soonest == PWI_NET_NEVER || manager->moves_timer.id != 0) return;
  pwi_manager_timer_set(manager, soonest - now, TIMER_MOVES, 0, &manager->moves_timer);
}

void pwi_manager_moves_poke(struct pwi_manager *manager) {
  if (!manager->ledger.view) return;
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    if (move->step != MOVE_LISTED || !has_heard(manager, move->source, move->epoch) ||
        !has_heard(manager, move->target, move->epoch))
      continue;
    move->step = MOVE_GOING;
    give_order(manager, move, false);
  }
  release_leavers(manager);
  wake_for_moves(manager);
  if (manager->moves_queued || !needs_view(manager)) return;
  manager->moves_queued = true;
  pwi_manager_queue(manager, &(struct decision){.decide = decide_moves, .conclude = conclude_moves});
}

/* --- after a start -------------------------------------------------------------------------------------------------- */

static pawl_status decide_tidying(struct pwi_manager *manager, struct decision *decision) {
  struct draft draft;
  (void)decision;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  if (pwi_draft_end_moves(&draft)) status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  pwi_draft_close(&draft);
  return status;
}

void pwi_manager_tidy(struct pwi_manager *manager) {
  pwi_manager_queue(manager, &(struct decision){.decide = decide_tidying});
}
