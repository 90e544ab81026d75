/* Carries moves out. All moves that are ready for their next view share it. */
#include <assert.h>

#include "manager/inside.h"
#include "protocol/planted.h"

#define ATTEMPTS_MAX 5

/* --- one move ------------------------------------------------------------------------------------------- */

/* Tries the step again after a pause, or abandons the move. After too many failures source and target are not
 * made neighbours for a while. */
static void recover(struct pwi_manager *manager, struct chain_move *move) {
  const struct pwi_view_node *target = pwi_view_find(manager->ledger.view, (struct pwi_node){move->target});
  bool again = !move->unwanted && ++move->failures < ATTEMPTS_MAX && target && target->state == PWI_NODE_UP;
  if (again) {
    move->step = MOVE_WANTED;
    move->not_before = pwi_net_now(manager->config.net) + (PWI_MOVE_PAUSE_NS << move->failures);
    return;
  }
  if (!move->unwanted) manager->unfinished = true;
  if (move->failures >= ATTEMPTS_MAX) pwi_manager_note_conflict(manager, move->source, move->target);
  move->is_over = true;
}

static void proceed(struct pwi_manager *manager, struct chain_move *move) {
  manager->moves_done++;
  pwi_log(manager->config.log, PAWL_LOG_INFO, "move.done", "move=%llu step=%s source=%llu target=%llu",
          (unsigned long long)move->id, move->order == PWI_MOVE_FILL ? "fill" : "handover",
          (unsigned long long)move->source, (unsigned long long)move->target);
  move->step = MOVE_WANTED;
  move->failures = 0;
  move->not_before = 0;
  move->is_over = move->unwanted;
}

static void begin(struct pwi_manager *manager, struct view_draft *draft, struct chain_move *move,
                  const struct chain_step *step) {
  struct pwi_arc *arc = pwi_draft_arc(draft, move->positions);
  move->order = step->kind == STEP_FILL ? PWI_MOVE_FILL : PWI_MOVE_HANDOVER;
  move->source = step->source;
  move->target = step->target;
  move->chosen = true;
  pwi_manager_note_chosen(manager, move);
  if (step->kind == STEP_FILL) arc->chain[arc->count++] = (struct pwi_member){.node = {move->target}, .filling = true};
}

static void set_chain(struct view_draft *draft, const struct chain_move *move, const struct pwi_arc *after) {
  struct pwi_arc *arc = pwi_draft_arc(draft, move->positions);
  arc->count = after->count;
  for (size_t i = 0; i < PWI_CHAIN_MAX; i++) arc->chain[i] = after->chain[i];
}

/* The chain is as it was when the head got its order: no view was made since. */
static void switch_heads(const struct pwi_manager *manager, struct view_draft *draft, struct chain_move *move) {
  bool exact;
  const struct pwi_arc *arc = pwi_move_arc(manager->ledger.view, move, &exact);
  struct chain_step step = pwi_manager_next_step(manager, arc, move->goal, move->goal_count);
  if (step.kind == STEP_HANDOVER)
    set_chain(draft, move, &step.after);
  else
    move->step = MOVE_FAILED; /* a member is not connected: the next view ends the handover */
}

static void set_filling(struct view_draft *draft, const struct chain_move *move, bool admit) {
  struct pwi_arc *arc = pwi_draft_arc(draft, move->positions);
  size_t place = pwi_arc_find(arc, (struct pwi_node){move->target});
  assert(place != PWI_CHAIN_MAX && arc->chain[place].filling);
  if (admit || pwi_is_planted(PWI_PLANTED_PROMOTE_FILLING))
    arc->chain[place].filling = false;
  else
    pwi_arc_remove(arc, place);
}

static void carry_out(struct pwi_manager *manager, struct view_draft *draft, struct chain_move *move,
                      enum move_work work, const struct chain_step *step) {
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
    proceed(manager, move);
    break;
  case WORK_RECOVER:
    recover(manager, move);
    break;
  case WORK_VOID:
    pwi_move_fail(manager, move, PAWL_NODE_GONE);
    break;
  case WORK_ABANDON:
    manager->unfinished = true;
    move->is_over = true;
    break;
  case WORK_REMOVE:
    move->is_over = true;
    break;
  case WORK_WAIT:
    break;
  }
}

/* --- all moves ------------------------------------------------------------------------------------------ */

static void remove_those_that_are_over(struct pwi_manager *manager) {
  size_t kept = 0;
  for (size_t i = 0; i < manager->move_count; i++) {
    if (!manager->moves[i].is_over) manager->moves[kept++] = manager->moves[i];
  }
  manager->move_count = kept;
}

/* Carries out all work that `includes` selects, and returns how much there was. */
static size_t carry_out_all(struct pwi_manager *manager, struct view_draft *draft,
                            bool (*includes)(const struct pwi_manager *manager, const struct chain_move *move,
                                             enum move_work work)) {
  size_t done = 0;
  pwi_manager_survey(manager);
  for (size_t i = 0; i < manager->move_count; i++) {
    struct chain_move *move = &manager->moves[i];
    struct chain_step step = {0};
    enum move_work work = pwi_manager_work_on(manager, move, &step);
    bool wanted = includes(manager, move, work);
    if (wanted) carry_out(manager, draft, move, work, &step);
    done += wanted;
  }
  remove_those_that_are_over(manager);
  return done;
}

static bool only_shows(const struct pwi_manager *manager, const struct chain_move *move, enum move_work work) {
  (void)manager, (void)move;
  return work != WORK_WAIT && !pwi_work_needs_view(work);
}

static bool goes_on(const struct pwi_manager *manager, const struct chain_move *move, enum move_work work) {
  (void)manager, (void)move;
  return pwi_work_needs_view(work) && work != WORK_BEGIN;
}

static bool begins_urgently(const struct pwi_manager *manager, const struct chain_move *move, enum move_work work) {
  return work == WORK_BEGIN && pwi_move_is_urgent(manager, move);
}

static bool begins(const struct pwi_manager *manager, const struct chain_move *move, enum move_work work) {
  (void)manager, (void)move;
  return work == WORK_BEGIN;
}

/* Continues the steps under way. Then steps of short chains begin; if there are none, the other steps begin.
 * Returns true if a view must be made, even if the draft has not changed. */
static bool step_all(struct pwi_manager *manager, struct view_draft *draft) {
  size_t done = carry_out_all(manager, draft, goes_on);
  pwi_manager_survey(manager);
  bool urgent = pwi_manager_is_urgent(manager);
  done += carry_out_all(manager, draft, begins_urgently);
  if (!urgent) done += carry_out_all(manager, draft, begins);
  return done > 0;
}

/* --- the decision --------------------------------------------------------------------------------------- */

/* The chosen steps are under way if there is a record that lists them. */
static void settle_chosen(struct pwi_manager *manager, bool listed) {
  uint64_t id = manager->ledger.last_move;
  for (size_t i = 0; i < manager->move_count; i++) {
    struct chain_move *move = &manager->moves[i];
    if (!move->chosen) continue;
    move->chosen = false;
    if (!listed) continue;
    move->id = ++id;
    move->epoch = manager->ledger.view->epoch + 1;
    move->step = MOVE_LISTED;
    move->deadline = PWI_NET_NEVER; /* until the view is in the journal */
  }
}

static uint64_t count_chosen(const struct pwi_manager *manager) {
  uint64_t chosen = 0;
  for (size_t i = 0; i < manager->move_count; i++) chosen += manager->moves[i].chosen;
  return chosen;
}

pawl_status pwi_manager_decide_moves(struct pwi_manager *manager, struct decision *decision) {
  struct view_draft draft;
  (void)decision;
  if (manager->ledger.view->arc_count == 0) return PAWL_OK;
  pawl_status status = pwi_draft_open(manager->ledger.view, 2 * manager->move_count, &draft);
  if (status) return status;
  while (carry_out_all(manager, &draft, only_shows) > 0) continue;
  bool changed = false;
  if (!pwi_manager_must_wait(manager)) {
    changed = pwi_draft_drop_dead(manager, &draft) || step_all(manager, &draft);
    if (!changed && pwi_manager_may_merge(manager)) changed = pwi_draft_merge(&draft, pwi_manager_points(manager));
  }
  if (changed) {
    status = pwi_draft_record(manager, &draft, manager->ledger.last_move + count_chosen(manager), NULL);
    settle_chosen(manager, !status);
  }
  pwi_draft_close(&draft);
  return status;
}
