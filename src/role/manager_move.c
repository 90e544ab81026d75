/* Steps under way.
 *
 * A move brings one arc to its goal by steps (manager_step.c). A step that needs an order goes through views: one that
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
#include <assert.h>

#include "base/memory.h"
#include "role/manager_inside.h"
#include "role/planted.h"

#define ATTEMPTS_MAX 5
#define PAUSE_NS INT64_C(250000000)    /* after a failure; doubles each time */
#define HANDOVER_NS INT64_C(300000000) /* that all others wait for one */

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

static void remove_move(struct pwi_manager *manager, size_t index) {
  manager->move_count--;
  for (size_t i = index; i < manager->move_count; i++) manager->moves[i] = manager->moves[i + 1];
}

/* --- what is to be done --------------------------------------------------------------------------------------------- */

enum work {
  WORK_WAIT,
  WORK_REMOVE,  /* it has reached its goal, or is not wanted any more */
  WORK_DESPAIR, /* it cannot reach it: another plan may */
  WORK_BEGIN,   /* the next step, which needs an order */
  WORK_CHANGE,  /* the next step, which needs none */
  WORK_ADMIT,   /* the target has been filled */
  WORK_SWITCH,  /* the head has handed over */
  WORK_PROCEED, /* the view shows that the step is done */
  WORK_VOID,    /* the view shows that it cannot be done any more */
  WORK_UNDO,    /* it has failed, and the view does not show it */
  WORK_RECOVER, /* now it does */
};

/* The arc of a move; NULL if its positions are not within one. */
static const struct pwi_arc *arc_of(const struct pwi_view *view, const struct move *move, bool *exact_out) {
  size_t index = pwi_view_arc_of(view, move->positions.begin);
  struct pawl_range range = pwi_view_arc_range(view, index);
  *exact_out = range.begin == move->positions.begin && range.end == move->positions.end;
  return range.end >= move->positions.end ? &view->arcs[index] : NULL;
}

static bool is_listed(const struct pwi_arc *arc, bool exact, const struct move *move) {
  size_t place = arc && exact ? pwi_arc_find(arc, (struct pwi_node){move->target}) : PWI_CHAIN_MAX;
  return place != PWI_CHAIN_MAX && arc->chain[place].filling;
}

static enum work work_on_fill(const struct pwi_manager *manager, const struct move *move) {
  bool exact;
  const struct pwi_arc *arc = arc_of(manager->ledger.view, move, &exact);
  bool listed = is_listed(arc, exact, move), filling = listed && arc->since == move->epoch;
  if (move->step == MOVE_FAILED) return listed ? WORK_UNDO : WORK_RECOVER;
  if (move->step == MOVE_LANDED && !filling) {
    size_t place = arc ? pwi_arc_find(arc, (struct pwi_node){move->target}) : PWI_CHAIN_MAX;
    return place != PWI_CHAIN_MAX && !arc->chain[place].filling ? WORK_PROCEED : WORK_VOID;
  }
  if (!filling) return WORK_VOID;
  if (move->step != MOVE_LANDED) return WORK_WAIT;
  /* The others still have everything: better to begin again than to take in a member that may be dead. */
  return pwi_manager_is_here(manager, move->target) ? WORK_ADMIT : WORK_VOID;
}

static enum work work_on_handover(const struct pwi_manager *manager, const struct move *move) {
  const struct pwi_view *view = manager->ledger.view;
  bool exact, stands = view->epoch == move->epoch;
  const struct pwi_arc *arc = arc_of(view, move, &exact);
  if (move->step == MOVE_FAILED) return stands ? WORK_UNDO : WORK_RECOVER;
  if (move->step == MOVE_LANDED && !stands)
    return arc && arc->chain[0].node.id == move->target ? WORK_PROCEED : WORK_VOID;
  if (!stands || !arc || !exact) return WORK_VOID;
  if (move->step == MOVE_LANDED) return WORK_SWITCH;
  return pwi_net_now(manager->config.net) >= move->deadline ? WORK_VOID : WORK_WAIT;
}

/* Another step is under way in the same place, or an older move is not done with it. */
static bool is_in_use(const struct pwi_manager *manager, const struct move *move) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *other = &manager->moves[i];
    bool rests = other->step == MOVE_WANTED && !other->chosen && (other > move || other->unwanted);
    if (other == move || rests) continue;
    if (!pawl_range_is_empty(pawl_range_common(other->positions, move->positions))) return true;
  }
  return false;
}

/* The source and the target have no other step, in that role, that is under way or about to be. */
static bool have_time(const struct pwi_manager *manager, const struct move *move, const struct step *step) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *other = &manager->moves[i];
    if (other == move || (other->step == MOVE_WANTED && !other->chosen)) continue;
    if (other->source == step->source || other->target == step->target) return false;
  }
  return true;
}

static enum work work_on_wanted(const struct pwi_manager *manager, const struct move *move, struct step *step_out) {
  bool exact;
  const struct pwi_arc *arc = arc_of(manager->ledger.view, move, &exact);
  if (move->unwanted) return WORK_REMOVE;
  if (!arc) return WORK_DESPAIR;
  if (is_in_use(manager, move)) return WORK_WAIT;
  *step_out = pwi_manager_next_step(manager, arc, move->goal, move->goal_count);
  switch (step_out->kind) {
  case STEP_NONE:
    return WORK_DESPAIR;
  case STEP_WAIT:
    return WORK_WAIT;
  case STEP_DONE:
    return WORK_REMOVE;
  case STEP_CHANGE:
    return WORK_CHANGE;
  default:
    break;
  }
  bool paused = pwi_net_now(manager->config.net) < move->not_before;
  return !paused && have_time(manager, move, step_out) ? WORK_BEGIN : WORK_WAIT;
}

/* What came before the record of the view that a step begins with has no say on it yet. */
static enum work work_on(const struct pwi_manager *manager, const struct move *move, struct step *step_out) {
  if (move->step == MOVE_WANTED) return work_on_wanted(manager, move, step_out);
  if (manager->ledger.view->epoch < move->epoch) return WORK_WAIT;
  return move->order == PWI_MOVE_FILL ? work_on_fill(manager, move) : work_on_handover(manager, move);
}

static bool needs_view_for(enum work work) {
  return work == WORK_BEGIN || work == WORK_CHANGE || work == WORK_ADMIT || work == WORK_SWITCH || work == WORK_UNDO;
}

/* A handover is under way and may still end well. */
static bool must_wait(const struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    struct step step;
    if (move->order != PWI_MOVE_HANDOVER || (move->step != MOVE_LISTED && move->step != MOVE_GOING)) continue;
    if (work_on(manager, move, &step) == WORK_WAIT) return true;
  }
  return false;
}

/* A member is missing, not only misplaced. */
static bool is_urgent(const struct pwi_manager *manager, const struct move *move) {
  bool exact;
  const struct pwi_arc *arc = arc_of(manager->ledger.view, move, &exact);
  return arc && pwi_arc_full(arc) < (size_t)manager->config.replicas + 1 && pwi_arc_full(arc) < move->goal_count;
}

/* Somebody whose chain is short is filled, or could be. */
static bool somebody_is_urgent(const struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    struct step step;
    if (!is_urgent(manager, move)) continue;
    if (pwi_move_is_active(move) || work_on(manager, move, &step) == WORK_BEGIN) return true;
  }
  return false;
}

/* --- doing it ------------------------------------------------------------------------------------------------------- */

static void give_order(struct pwi_manager *manager, const struct move *move, bool cancel) {
  const struct node *source = pwi_manager_node(manager, move->source);
  const struct pwi_view_node *target = view_node(manager, move->target);
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

static void fail(struct pwi_manager *manager, struct move *move, pawl_status why) {
  pwi_log(manager->config.log, PAWL_LOG_WARN, "move.failed", "move=%llu step=%s source=%llu target=%llu why=%s",
          (unsigned long long)move->id, move->order == PWI_MOVE_FILL ? "fill" : "handover",
          (unsigned long long)move->source, (unsigned long long)move->target, pawl_status_name(why));
  if (move->step == MOVE_GOING) give_order(manager, move, true);
  move->step = MOVE_FAILED;
}

/* Tries it again after a pause, or gives it up. Two who failed so often are better kept apart for a while. */
static void recover(struct pwi_manager *manager, size_t index) {
  struct move *move = &manager->moves[index];
  const struct pwi_view_node *target = view_node(manager, move->target);
  bool again = !move->unwanted && ++move->failures < ATTEMPTS_MAX && target && target->state == PWI_NODE_UP;
  if (again) {
    move->step = MOVE_WANTED;
    move->not_before = pwi_net_now(manager->config.net) + (PAUSE_NS << move->failures);
    return;
  }
  if (!move->unwanted) manager->unfinished = true;
  if (move->failures >= ATTEMPTS_MAX) pwi_manager_note_quarrel(manager, move->source, move->target);
  remove_move(manager, index);
}

static void proceed(struct pwi_manager *manager, size_t index) {
  struct move *move = &manager->moves[index];
  manager->moves_done++;
  pwi_log(manager->config.log, PAWL_LOG_INFO, "move.done", "move=%llu step=%s source=%llu target=%llu",
          (unsigned long long)move->id, move->order == PWI_MOVE_FILL ? "fill" : "handover",
          (unsigned long long)move->source, (unsigned long long)move->target);
  move->step = MOVE_WANTED;
  move->failures = 0;
  move->not_before = 0;
  if (move->unwanted) remove_move(manager, index);
}

static void begin(struct pwi_manager *manager, struct draft *draft, struct move *move, const struct step *step) {
  struct pwi_arc *arc = pwi_draft_arc(draft, move->positions);
  move->order = step->kind == STEP_FILL ? PWI_MOVE_FILL : PWI_MOVE_HANDOVER;
  move->source = step->source;
  move->target = step->target;
  move->deadline = pwi_net_now(manager->config.net) + HANDOVER_NS;
  move->chosen = true;
  if (step->kind == STEP_FILL) arc->chain[arc->count++] = (struct pwi_member){.node = {move->target}, .filling = true};
}

static void set_chain(struct draft *draft, const struct move *move, const struct pwi_arc *after) {
  struct pwi_arc *arc = pwi_draft_arc(draft, move->positions);
  arc->count = after->count;
  for (size_t i = 0; i < PWI_CHAIN_MAX; i++) arc->chain[i] = after->chain[i];
}

/* The chain is as it was when the head was told: nothing has come between. */
static void switch_heads(const struct pwi_manager *manager, struct draft *draft, struct move *move) {
  bool exact;
  const struct pwi_arc *arc = arc_of(manager->ledger.view, move, &exact);
  struct step step = pwi_manager_next_step(manager, arc, move->goal, move->goal_count);
  if (step.kind == STEP_HANDOVER)
    set_chain(draft, move, &step.after);
  else
    move->step = MOVE_FAILED; /* somebody is not here: the view that is made ends it */
}

static void set_filling(struct draft *draft, const struct move *move, bool admit) {
  struct pwi_arc *arc = pwi_draft_arc(draft, move->positions);
  size_t place = pwi_arc_find(arc, (struct pwi_node){move->target});
  assert(place != PWI_CHAIN_MAX && arc->chain[place].filling);
  if (admit || pwi_is_planted(PWI_PLANTED_PROMOTE_FILLING))
    arc->chain[place].filling = false;
  else
    pwi_arc_strike(arc, place);
}

static void carry_out(struct pwi_manager *manager, struct draft *draft, size_t index, enum work work,
                      const struct step *step) {
  struct move *move = &manager->moves[index];
  switch (work) {
  case WORK_BEGIN:
    begin(manager, draft, move, step);
    break;
  case WORK_CHANGE:
    set_chain(draft, move, &step->after);
    break;
  case WORK_ADMIT:
    set_filling(draft, move, true);
    break;
  case WORK_UNDO:
    if (move->order == PWI_MOVE_FILL) set_filling(draft, move, false);
    break;
  case WORK_SWITCH:
    switch_heads(manager, draft, move);
    break;
  case WORK_PROCEED:
    proceed(manager, index);
    break;
  case WORK_RECOVER:
    recover(manager, index);
    break;
  case WORK_VOID:
    fail(manager, move, PAWL_NODE_GONE);
    break;
  case WORK_DESPAIR:
    manager->unfinished = true;
    remove_move(manager, index);
    break;
  case WORK_REMOVE:
    remove_move(manager, index);
    break;
  case WORK_WAIT:
    break;
  }
}

/* All works that `includes` wants, and how many there were. A move that is removed makes room for the next. */
static size_t carry_out_all(struct pwi_manager *manager, struct draft *draft,
                            bool (*includes)(const struct pwi_manager *manager, const struct move *move,
                                             enum work work)) {
  size_t done = 0;
  for (size_t i = 0; i < manager->move_count;) {
    size_t count = manager->move_count;
    struct step step = {0};
    enum work work = work_on(manager, &manager->moves[i], &step);
    bool wanted = includes(manager, &manager->moves[i], work);
    if (wanted) carry_out(manager, draft, i, work, &step);
    done += wanted;
    i += manager->move_count == count;
  }
  return done;
}

static bool only_shows(const struct pwi_manager *manager, const struct move *move, enum work work) {
  (void)manager, (void)move;
  return work != WORK_WAIT && !needs_view_for(work);
}

static bool goes_on(const struct pwi_manager *manager, const struct move *move, enum work work) {
  (void)manager, (void)move;
  return needs_view_for(work) && work != WORK_BEGIN;
}

static bool begins_urgently(const struct pwi_manager *manager, const struct move *move, enum work work) {
  return work == WORK_BEGIN && is_urgent(manager, move);
}

static bool begins(const struct pwi_manager *manager, const struct move *move, enum work work) {
  (void)manager, (void)move;
  return work == WORK_BEGIN;
}

/* What is under way goes on; then who is short of members begins, and where nobody is, the others do. True if a view has to
 * be made of it, even where the draft has not changed. */
static bool step_all(struct pwi_manager *manager, struct draft *draft) {
  size_t done = carry_out_all(manager, draft, goes_on);
  bool urgent = somebody_is_urgent(manager);
  done += carry_out_all(manager, draft, begins_urgently);
  if (!urgent) done += carry_out_all(manager, draft, begins);
  return done > 0;
}

/* --- the decision --------------------------------------------------------------------------------------------------- */

/* True if somebody is still going to change a chain, as far as one can see. */
static bool is_busy(const struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    struct step step;
    bool exact;
    const struct pwi_arc *arc = arc_of(manager->ledger.view, move, &exact);
    if (move->step != MOVE_WANTED || !arc) return true;
    step = pwi_manager_next_step(manager, arc, move->goal, move->goal_count);
    if (step.kind != STEP_WAIT) return true;
  }
  return false;
}

/* Arcs whose members may still have changes on the way keep their bounds: each counts its changes by itself, and two of them
 * with one number could not be told apart in the log of an arc that is made of both. */
static bool may_merge(const struct pwi_manager *manager) { return manager->config.replicas == 0; }

/* True if a view would bring something forward. */
static bool needs_view(const struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  bool holds = must_wait(manager), urgent = somebody_is_urgent(manager);
  if (view->arc_count == 0) return false;
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct move *move = &manager->moves[i];
    struct step step;
    enum work work = work_on(manager, move, &step);
    if (work == WORK_WAIT || (holds && needs_view_for(work))) continue;
    if (work != WORK_BEGIN || !urgent || is_urgent(manager, move)) return true;
  }
  if (holds) return false;
  if (pwi_manager_has_dead(manager)) return true;
  return may_merge(manager) && !is_busy(manager) && pwi_view_has_splinters(view, manager->config.points);
}

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
  while (carry_out_all(manager, &draft, only_shows) > 0) continue;
  bool changed = false;
  if (!must_wait(manager)) {
    changed = pwi_draft_drop_dead(manager, &draft) || step_all(manager, &draft);
    if (!changed && may_merge(manager) && !is_busy(manager)) changed = pwi_draft_merge(&draft, manager->config.points);
  }
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

static bool has_heard(const struct pwi_manager *manager, uint64_t id, uint64_t epoch) {
  const struct node *node = pwi_manager_node(manager, id);
  return node && node->peer && node->peer->have.of[PWI_TOPIC_VIEW] >= epoch;
}

static void give_orders(struct pwi_manager *manager) {
  struct step step;
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    if (move->step != MOVE_LISTED || work_on(manager, move, &step) != WORK_WAIT) continue;
    if (!has_heard(manager, move->source, move->epoch) || !has_heard(manager, move->target, move->epoch)) continue;
    move->step = MOVE_GOING;
    give_order(manager, move, false);
  }
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

/* A handover that has landed is not worth more than the link to its source: the view that it waits for might come after
 * the source has been told that it is who it was. */
void pwi_manager_moves_lost(struct pwi_manager *manager, uint64_t id, bool as_source) {
  for (size_t i = 0; i < manager->move_count; i++) {
    struct move *move = &manager->moves[i];
    bool concerned = move->target == id || (as_source && move->source == id);
    bool open = move->step == MOVE_LISTED || move->step == MOVE_GOING ||
                (move->step == MOVE_LANDED && move->order == PWI_MOVE_HANDOVER && as_source);
    if (concerned && open) fail(manager, move, PAWL_NODE_GONE);
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

void pwi_manager_moves_poke(struct pwi_manager *manager) {
  if (!manager->ledger.view || manager->ledger.view->arc_count == 0) return;
  give_orders(manager);
  release_leavers(manager);
  wake_for_moves(manager);
  pwi_manager_watch_chains(manager);
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
