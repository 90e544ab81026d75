/* The next action for each move.
 *
 * The view itself shows how far a step has come. So these functions can be called at any time, and a move
 * remembers only the reports of the servers.
 */
#include <assert.h>

#include "manager/inside.h"

/* --- the survey ----------------------------------------------------------------------------------------- */

static void note_busy(struct pwi_manager *manager, const struct chain_move *move) {
  struct manager_node *source = pwi_manager_node(manager, move->source),
                      *target = pwi_manager_node(manager, move->target);
  if (source) source->gives++;
  if (target) target->takes++;
}

/* Moves that have never begun do not overlap, so they are not listed. */
void pwi_manager_survey(struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->node_count; i++) manager->nodes[i].gives = manager->nodes[i].takes = 0;
  manager->begun_count = 0;
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct chain_move *move = &manager->moves[i];
    bool is_busy = move->step != MOVE_WANTED || move->chosen;
    if (is_busy) note_busy(manager, move);
    if (is_busy || move->id != 0) manager->begun[manager->begun_count++] = (uint32_t)i;
  }
}

void pwi_manager_note_chosen(struct pwi_manager *manager, const struct chain_move *move) {
  note_busy(manager, move);
  assert(manager->begun_count < manager->move_room || move->id != 0);
  if (move->id == 0) manager->begun[manager->begun_count++] = (uint32_t)(move - manager->moves);
}

/* --- one move ------------------------------------------------------------------------------------------- */

const struct pwi_arc *pwi_move_arc(const struct pwi_view *view, const struct chain_move *move, bool *exact_out) {
  size_t index = pwi_view_arc_of(view, move->positions.begin);
  struct pawl_range range = pwi_view_arc_range(view, index);
  *exact_out = range.begin == move->positions.begin && range.end == move->positions.end;
  return range.end >= move->positions.end ? &view->arcs[index] : NULL;
}

static bool is_listed(const struct pwi_arc *arc, bool exact, const struct chain_move *move) {
  size_t place = arc && exact ? pwi_arc_find(arc, (struct pwi_node){move->target}) : PWI_CHAIN_MAX;
  return place != PWI_CHAIN_MAX && arc->chain[place].filling;
}

static enum move_work work_on_fill(const struct pwi_manager *manager, const struct chain_move *move) {
  bool exact;
  const struct pwi_arc *arc = pwi_move_arc(manager->ledger.view, move, &exact);
  bool listed = is_listed(arc, exact, move), filling = listed && arc->since == move->epoch;
  if (move->step == MOVE_FAILED) return listed ? WORK_UNDO : WORK_RECOVER;
  if (move->step == MOVE_LANDED && !filling) {
    size_t place = arc ? pwi_arc_find(arc, (struct pwi_node){move->target}) : PWI_CHAIN_MAX;
    return place != PWI_CHAIN_MAX && !arc->chain[place].filling ? WORK_PROCEED : WORK_VOID;
  }
  if (!filling) return WORK_VOID;
  if (move->step != MOVE_LANDED) return WORK_WAIT;
  /* The other members still have everything: better to start again than to admit a member that may be
   * dead. */
  return pwi_manager_is_connected(manager, move->target) ? WORK_ADMIT : WORK_VOID;
}

static enum move_work work_on_handover(const struct pwi_manager *manager, const struct chain_move *move) {
  const struct pwi_view *view = manager->ledger.view;
  bool exact, stands = view->epoch == move->epoch;
  const struct pwi_arc *arc = pwi_move_arc(view, move, &exact);
  if (move->step == MOVE_FAILED) return stands ? WORK_UNDO : WORK_RECOVER;
  if (move->step == MOVE_LANDED && !stands)
    return arc && arc->chain[0].node.id == move->target ? WORK_PROCEED : WORK_VOID;
  if (!stands || !arc || !exact) return WORK_VOID;
  if (move->step == MOVE_LANDED) return WORK_SWITCH;
  return pwi_net_now(manager->config.net) >= move->deadline ? WORK_VOID : WORK_WAIT;
}

/* Another step is under way at the same positions, or an older move of them has not ended. */
static bool is_in_use(const struct pwi_manager *manager, const struct chain_move *move) {
  for (size_t i = 0; i < manager->begun_count; i++) {
    const struct chain_move *other = &manager->moves[manager->begun[i]];
    bool rests = other->step == MOVE_WANTED && !other->chosen && (other > move || other->unwanted);
    if (other == move || other->is_over || rests) continue;
    if (!pawl_range_is_empty(pawl_range_common(other->positions, move->positions))) return true;
  }
  return false;
}

/* The source is not the source of another step, and the target not the target of another, under way or about
 * to begin. */
static bool have_time(const struct pwi_manager *manager, const struct chain_step *step) {
  const struct manager_node *source = pwi_manager_node(manager, step->source);
  const struct manager_node *target = pwi_manager_node(manager, step->target);
  return source && target && source->gives == 0 && target->takes == 0;
}

static enum move_work work_on_wanted(const struct pwi_manager *manager, const struct chain_move *move,
                                     struct chain_step *step_out) {
  bool exact;
  const struct pwi_arc *arc = pwi_move_arc(manager->ledger.view, move, &exact);
  if (move->unwanted) return WORK_REMOVE;
  if (!arc) return WORK_ABANDON;
  if (is_in_use(manager, move)) return WORK_WAIT;
  *step_out = pwi_manager_next_step(manager, arc, move->goal, move->goal_count);
  switch (step_out->kind) {
  case STEP_NONE:
    return WORK_ABANDON;
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
  return !paused && have_time(manager, step_out) ? WORK_BEGIN : WORK_WAIT;
}

/* A step waits until the view that it begins with has been applied. */
enum move_work pwi_manager_work_on(const struct pwi_manager *manager, const struct chain_move *move,
                                   struct chain_step *step_out) {
  if (move->is_over) return WORK_WAIT;
  if (move->step == MOVE_WANTED) return work_on_wanted(manager, move, step_out);
  if (manager->ledger.view->epoch < move->epoch) return WORK_WAIT;
  return move->order == PWI_MOVE_FILL ? work_on_fill(manager, move) : work_on_handover(manager, move);
}

bool pwi_work_needs_view(enum move_work work) {
  return work == WORK_BEGIN || work == WORK_CHANGE || work == WORK_ADMIT || work == WORK_SWITCH || work == WORK_UNDO;
}

/* --- all moves ------------------------------------------------------------------------------------------ */

bool pwi_manager_must_wait(const struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct chain_move *move = &manager->moves[i];
    struct chain_step step;
    if (move->order != PWI_MOVE_HANDOVER || (move->step != MOVE_LISTED && move->step != MOVE_GOING)) continue;
    if (pwi_manager_work_on(manager, move, &step) == WORK_WAIT) return true;
  }
  return false;
}

bool pwi_move_is_urgent(const struct pwi_manager *manager, const struct chain_move *move) {
  bool exact;
  const struct pwi_arc *arc = pwi_move_arc(manager->ledger.view, move, &exact);
  return arc && pwi_arc_full(arc) < (size_t)manager->config.replicas + 1 && pwi_arc_full(arc) < move->goal_count;
}

bool pwi_manager_is_urgent(const struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct chain_move *move = &manager->moves[i];
    struct chain_step step;
    if (!pwi_move_is_urgent(manager, move)) continue;
    if (pwi_move_is_active(move) || pwi_manager_work_on(manager, move, &step) == WORK_BEGIN) return true;
  }
  return false;
}

bool pwi_manager_is_busy(const struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct chain_move *move = &manager->moves[i];
    struct chain_step step;
    bool exact;
    const struct pwi_arc *arc = pwi_move_arc(manager->ledger.view, move, &exact);
    if (move->step != MOVE_WANTED || !arc) return true;
    step = pwi_manager_next_step(manager, arc, move->goal, move->goal_count);
    if (step.kind != STEP_WAIT) return true;
  }
  return false;
}

bool pwi_manager_may_merge(const struct pwi_manager *manager) { return !pwi_manager_is_busy(manager); }

bool pwi_manager_needs_view(struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  if (view->arc_count == 0) return false;
  pwi_manager_survey(manager);
  bool holds = pwi_manager_must_wait(manager), urgent = pwi_manager_is_urgent(manager);
  for (size_t i = 0; i < manager->move_count; i++) {
    const struct chain_move *move = &manager->moves[i];
    struct chain_step step;
    enum move_work work = pwi_manager_work_on(manager, move, &step);
    if (work == WORK_WAIT || (holds && pwi_work_needs_view(work))) continue;
    if (work != WORK_BEGIN || !urgent || pwi_move_is_urgent(manager, move)) return true;
  }
  if (holds) return false;
  if (pwi_manager_has_dead(manager)) return true;
  return pwi_manager_may_merge(manager) && pwi_view_has_splinters(view, pwi_manager_points(manager));
}
