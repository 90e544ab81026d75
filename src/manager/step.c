/* The next step from the present chain of an arc to its goal.
 *
 * A member of a chain has everything that the members behind it have. So members may be removed at any time
 * as long as the order of the others stays, and a new member may be added at the end once it has been filled.
 * A new head that stood behind members that stay may lack changes that these have. So the old head hands over
 * first. This makes all members equal, and then any order is right.
 *
 * First the new members are filled, then the head changes, then members outside of the goal are removed. So a
 * chain is never shorter than the present chain or the goal, whichever is shorter. Only members beyond
 * `replicas` + 1 are removed at once.
 */
#include "manager/inside.h"

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

bool pwi_manager_is_connected(const struct pwi_manager *manager, uint64_t id) {
  const struct manager_node *node = pwi_manager_node(manager, id);
  return node && node->peer && view_node(manager, id)->state != PWI_NODE_DOWN;
}

bool pwi_manager_is_welcome(const struct pwi_manager *manager, uint64_t id) {
  return pwi_manager_is_connected(manager, id) && view_node(manager, id)->state == PWI_NODE_UP &&
         !pwi_manager_node(manager, id)->leaving;
}

static bool is_among(const uint64_t *goal, size_t count, uint64_t id) {
  for (size_t i = 0; i < count; i++) {
    if (goal[i] == id) return true;
  }
  return false;
}

/* Another node of the same process is in the chain. */
static bool is_crowded_out(const struct pwi_manager *manager, const struct pwi_arc *arc, uint64_t id) {
  uint64_t process = view_node(manager, id)->process;
  for (size_t i = 0; i < arc->count; i++) {
    if (view_node(manager, arc->chain[i].node.id)->process == process) return true;
  }
  return false;
}

/* The node may become a member: it is up, so it will be connected again, or declared dead, before long. */
static bool may_be_had(const struct pwi_manager *manager, const struct pwi_arc *arc, uint64_t id) {
  const struct pwi_view_node *node = view_node(manager, id);
  return node && node->state == PWI_NODE_UP && !pwi_manager_node(manager, id)->leaving &&
         !is_crowded_out(manager, arc, id);
}

/* FILL for the first node of the goal that is not in the chain and is connected. DONE if all are in the
 * chain; WAIT if a node is not connected; NONE if a node cannot become a member. */
static struct chain_step fill_missing(const struct pwi_manager *manager, const struct pwi_arc *arc,
                                      const uint64_t *goal, size_t count) {
  struct chain_step step = {.kind = STEP_DONE, .source = arc->chain[arc->count - 1].node.id};
  for (size_t i = 0; i < count; i++) {
    if (pwi_arc_find(arc, (struct pwi_node){goal[i]}) != PWI_CHAIN_MAX) continue;
    if (!may_be_had(manager, arc, goal[i])) return (struct chain_step){.kind = STEP_NONE};
    step.kind = STEP_WAIT;
    if (!pwi_manager_is_connected(manager, goal[i]) || !pwi_manager_is_connected(manager, step.source)) continue;
    step.kind = STEP_FILL;
    step.target = goal[i];
    return step;
  }
  return step;
}

static bool all_are_connected(const struct pwi_manager *manager, const struct pwi_arc *arc) {
  for (size_t i = 0; i < arc->count; i++) {
    if (!pwi_manager_is_connected(manager, arc->chain[i].node.id)) return false;
  }
  return true;
}

/* The chain without the last members outside of the goal, as far as it is longer than `replicas` + 1. */
static struct pwi_arc trim(const struct pwi_manager *manager, const struct pwi_arc *arc, const uint64_t *goal,
                           size_t count) {
  struct pwi_arc after = *arc;
  for (size_t i = arc->count; i-- > 1 && after.count > (size_t)manager->config.replicas + 1;) {
    if (!is_among(goal, count, arc->chain[i].node.id)) pwi_arc_remove(&after, i);
  }
  return after;
}

/* The members that are in the goal: the new head, then the others in their order. */
static struct pwi_arc arrange(const struct pwi_arc *arc, const uint64_t *goal, size_t count) {
  struct pwi_arc after = {.begin = arc->begin, .chain = {{.node = {goal[0]}}}, .count = 1};
  for (size_t i = 0; i < arc->count; i++) {
    uint64_t id = arc->chain[i].node.id;
    if (id != goal[0] && is_among(goal, count, id)) after.chain[after.count++] = arc->chain[i];
  }
  return after;
}

/* True if no member that stays is nearer to the present head than the new head. */
static bool order_is_kept(const struct pwi_arc *arc, const uint64_t *goal, size_t count) {
  for (size_t i = 0; arc->chain[i].node.id != goal[0]; i++) {
    if (is_among(goal, count, arc->chain[i].node.id)) return false;
  }
  return true;
}

struct chain_step pwi_manager_next_step(const struct pwi_manager *manager, const struct pwi_arc *arc,
                                        const uint64_t *goal, size_t count) {
  if (pwi_arc_full(arc) < arc->count) return (struct chain_step){.kind = STEP_WAIT};
  struct chain_step step = fill_missing(manager, arc, goal, count);
  step.after = step.kind == STEP_FILL ? trim(manager, arc, goal, count) : arrange(arc, goal, count);
  if (step.kind == STEP_FILL && step.after.count == arc->count) return step;
  if (step.kind == STEP_FILL) step.kind = all_are_connected(manager, &step.after) ? STEP_CHANGE : STEP_WAIT;
  if (step.kind != STEP_DONE) return step;
  if (pwi_arc_same_chain(&step.after, arc)) return step;
  step.source = arc->chain[0].node.id;
  step.target = goal[0];
  step.kind = order_is_kept(arc, goal, count) ? STEP_CHANGE : STEP_HANDOVER;
  bool connected = all_are_connected(manager, step.kind == STEP_CHANGE ? &step.after : arc);
  if (!connected) step.kind = STEP_WAIT;
  return step;
}
