/* Handovers: the old head reports that all members are equal, and the next view names another head. Every
 * view that the manager writes is checked (manager/watching.h). */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/inside.h"
#include "manager/watching.h"

static struct world world;

static void test_a_member_becomes_head_by_a_handover(void **state) {
  (void)state;
  open_chains(&world, 70, 2, 4);
  struct actor *client = add_operator(&world);
  struct pwi_arc before = now()->arcs[0];
  struct actor *head = actor_of(before.chain[0].node.id);
  uint64_t tail = before.chain[2].node.id;
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), 0), tail), PAWL_OK);
  run_until(head, has_order);
  run_until(head, is_at_rest);
  assert_int_equal(head->order.step, PWI_MOVE_HANDOVER);
  assert_int_equal(head->order.target, tail);
  const struct pwi_arc *arc = &now()->arcs[0];
  assert_int_equal(arc->count, 3);
  assert_int_equal(arc->chain[0].node.id, tail);
  assert_int_equal(arc->chain[1].node.id, before.chain[0].node.id);
  assert_int_equal(watched.handovers, 1);
  world_close(&world);
}

static void test_a_handover_that_is_not_answered_is_taken_back(void **state) {
  (void)state;
  open_chains(&world, 71, 1, 3);
  struct actor *client = add_operator(&world);
  struct pwi_arc before = now()->arcs[0];
  struct actor *head = actor_of(before.chain[0].node.id);
  head->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), 0), before.chain[1].node.id), PAWL_OK);
  run_until(head, has_order);
  uint64_t epoch = head->order.epoch;
  run_for(&world, PWI_SIM_SECOND / 2);
  assert_true(head->cancels > 0);
  assert_true(now()->epoch > epoch);
  assert_true(pwi_arc_same_chain(&before, &now()->arcs[0]));
  head->moving = MOVES_WELL;
  run_until(head, is_at_rest);
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[1].node.id);
  world_close(&world);
}

static void finish(struct actor *source) {
  source->moving = MOVES_WELL;
  say_moved(source, &source->order, PAWL_OK);
}

static void test_a_handover_does_not_outlive_another_view(void **state) {
  (void)state;
  open_chains(&world, 72, 1, 4);
  struct actor *client = add_operator(&world);
  struct pwi_arc before = now()->arcs[0];
  struct actor *head = actor_of(before.chain[0].node.id), *other = NULL;
  for (size_t i = 0; i < 4; i++)
    if (pwi_arc_find(&before, (struct pwi_node){world.actors[i].joined.id}) == PWI_CHAIN_MAX) other = &world.actors[i];
  head->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), 0), before.chain[1].node.id), PAWL_OK);
  run_until(head, has_order);
  struct pwi_move order = head->order;
  kill_for_good(other);
  run_until(other, is_in_no_chain);
  say_moved(head, &order, PAWL_OK); /* too late: it may be serving again */
  run_for(&world, 10 * PWI_SIM_MILLISECOND);
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[0].node.id);
  head->moving = MOVES_WELL;
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(has_chains_of(2));
  world_close(&world);
}

static void test_on_a_busy_machine_a_handover_has_more_time(void **state) {
  (void)state;
  open_chains(&world, 76, 1, 3);
  struct actor *client = add_operator(&world);
  struct pwi_arc before = now()->arcs[0];
  struct actor *head = actor_of(before.chain[0].node.id);
  head->moving = MOVES_NEVER;
  pwi_sim_allow(world.sim, PWI_SIM_SECOND);
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), 0), before.chain[1].node.id), PAWL_OK);
  run_until(head, has_order);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(head->cancels, 0);
  finish(head);
  run_until(head, is_at_rest);
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[1].node.id);
  world_close(&world);
}

/* On a busy machine a follower may need longer than the first attempts permit. */
static void test_a_handover_is_given_more_time_after_each_failure(void **state) {
  (void)state;
  open_chains(&world, 76, 1, 3);
  struct actor *client = add_operator(&world);
  struct pwi_arc before = now()->arcs[0];
  struct actor *head = actor_of(before.chain[0].node.id);
  head->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), 0), before.chain[1].node.id), PAWL_OK);
  run_until(head, has_order);
  while (head->cancels < 2) run_for(&world, PWI_SIM_MILLISECOND);
  unsigned orders = head->orders;
  while (head->orders == orders) run_for(&world, PWI_SIM_MILLISECOND);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(head->cancels, 2);
  finish(head);
  run_until(head, is_at_rest);
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[1].node.id);
  world_close(&world);
}

/* A record takes longer than a handover may: the time begins when the view is in the journal. */
static void test_a_slow_journal_takes_no_time_from_a_handover(void **state) {
  (void)state;
  open_chains(&world, 77, 1, 3);
  struct actor *client = add_operator(&world);
  struct pwi_arc before = now()->arcs[0];
  struct actor *head = actor_of(before.chain[0].node.id);
  uint64_t epoch = now()->epoch;
  watched.is_held = true;
  say_move(client, pwi_view_arc_range(now(), 0), before.chain[1].node.id);
  while (!has_order(head)) {
    run_until(head, has_record);
    run_for(&world, PWI_SIM_SECOND / 2);
    release_record();
    run_for(&world, PWI_SIM_SECOND / 10);
  }
  watched.is_held = false;
  if (watched.has_record) release_record();
  run_until(head, is_at_rest);
  assert_int_equal(now()->epoch, epoch + 2); /* one view lists it, and the next one names the new head */
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[1].node.id);
  world_close(&world);
}

/* --- beside other steps --------------------------------------------------------------------------------- */

/* Orders a handover of the arc to the second member of its chain. The head does not report it by itself. */
static struct actor *begin_handover(struct actor *client, size_t arc) {
  const struct pwi_arc *chain = &now()->arcs[arc];
  struct actor *head = actor_of(chain->chain[0].node.id);
  unsigned orders = head->orders;
  head->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), arc), chain->chain[1].node.id), PAWL_OK);
  run_for(&world, 10 * PWI_SIM_MILLISECOND);
  assert_int_equal(head->orders, orders + 1);
  assert_int_equal(head->order.step, PWI_MOVE_HANDOVER);
  return head;
}

/* The first arc with a head that is not `other` and without the members that are given; 0 means none. */
static size_t find_arc(uint64_t other, uint64_t without, uint64_t without_too) {
  for (size_t i = 0; i < now()->arc_count; i++) {
    const struct pwi_arc *arc = &now()->arcs[i];
    bool is_without = pwi_arc_find(arc, (struct pwi_node){without}) == PWI_CHAIN_MAX &&
                      pwi_arc_find(arc, (struct pwi_node){without_too}) == PWI_CHAIN_MAX;
    if (arc->chain[0].node.id != other && is_without) return i;
  }
  fail();
  return 0;
}

static bool has_link(struct actor *actor) { return !has_no_link(actor) && is_in(actor); }

static uint64_t head_of(uint64_t position) { return pwi_view_head(now(), pwi_view_arc_of(now(), position))->node.id; }

static void test_no_other_move_makes_a_view_while_a_handover_is_under_way(void **state) {
  (void)state;
  open_chains(&world, 73, 1, 5);
  struct actor *client = add_operator(&world);
  struct pwi_arc first = now()->arcs[0];
  struct actor *head = begin_handover(client, 0);
  uint64_t epoch = now()->epoch;
  assert_int_equal(head->order.epoch, epoch);
  size_t other = find_arc(0, first.chain[0].node.id, first.chain[1].node.id);
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), other), first.chain[0].node.id), PAWL_OK);
  run_for(&world, 100 * PWI_SIM_MILLISECOND);
  assert_int_equal(now()->epoch, epoch);
  finish(head);
  run_for(&world, 2 * PWI_SIM_MILLISECOND);
  assert_int_equal(now()->epoch, epoch + 1);
  assert_int_equal(head_of(first.begin), first.chain[1].node.id);
  run_until(head, is_at_rest);
  assert_int_equal(head->cancels, 0);
  world_close(&world);
}

/* The fill is over, and the view that admits its target waits for a handover. */
static void test_a_filled_member_without_a_link_is_not_admitted(void **state) {
  (void)state;
  open_chains(&world, 74, 1, 4);
  struct actor *client = add_operator(&world), *target = NULL;
  struct pwi_arc first = now()->arcs[0];
  struct actor *source = actor_of(first.chain[1].node.id);
  for (size_t i = 0; i < 4; i++)
    if (pwi_arc_find(&first, (struct pwi_node){world.actors[i].joined.id}) == PWI_CHAIN_MAX) target = &world.actors[i];
  source->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), 0), target->joined.id), PAWL_OK);
  run_until(source, has_order);
  assert_int_equal(source->order.step, PWI_MOVE_FILL);
  struct actor *head = begin_handover(client, find_arc(source->joined.id, target->joined.id, 0));
  uint64_t epoch = now()->epoch;
  finish(source);
  run_for(&world, 2 * PWI_SIM_MILLISECOND);
  assert_int_equal(now()->epoch, epoch);
  pwi_sim_break(world.sim, target->node, world.manager_node);
  run_until(target, has_no_link);
  finish(head);
  run_for(&world, 2 * PWI_SIM_MILLISECOND);
  assert_true(has_no_link(target));
  assert_true(now()->epoch > epoch);
  assert_int_equal(watched.handovers, 1);
  assert_int_equal(pwi_arc_full(&now()->arcs[0]), 2);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(head_of(first.begin), target->joined.id);
  assert_true(has_chains_of(2));
  world_close(&world);
}

/* Two handovers begin with one view. One is reported, and its head loses its link and is back before the
 * other is reported. Meanwhile the head takes no requests (server.chain_fill), so the next view may name
 * another head. */
static void test_a_handover_that_was_reported_outlives_the_link_of_the_head(void **state) {
  (void)state;
  open_chains(&world, 75, 1, 6);
  struct actor *client = add_operator(&world), *heads[2];
  struct pwi_arc arcs[2];
  size_t places[2] = {1, 0};
  arcs[0] = now()->arcs[1];
  places[1] = find_arc(0, arcs[0].chain[0].node.id, arcs[0].chain[1].node.id);
  arcs[1] = now()->arcs[places[1]];
  struct actor *blocker = begin_handover(client, 0); /* so that the two begin together */
  for (size_t i = 0; i < 2; i++) {
    heads[i] = actor_of(arcs[i].chain[0].node.id);
    heads[i]->orders = 0;
    heads[i]->moving = MOVES_NEVER;
    assert_int_equal(ask_move(client, pwi_view_arc_range(now(), places[i]), arcs[i].chain[1].node.id), PAWL_OK);
  }
  say_moved(blocker, &blocker->order, PAWL_OK);
  for (size_t i = 0; i < 2; i++) run_until(heads[i], has_order);
  uint64_t epoch = now()->epoch;
  struct pwi_move order = heads[0]->order;
  assert_int_equal(order.epoch, epoch);
  say_moved(heads[0], &order, PAWL_OK);
  run_for(&world, 2 * PWI_SIM_MILLISECOND);
  pwi_sim_break(world.sim, heads[0]->node, world.manager_node);
  run_until(heads[0], has_no_link);
  run_until(heads[0], has_link);
  say_moved(heads[0], &order, PAWL_OK); /* as servers do when they join again */
  run_for(&world, 10 * PWI_SIM_MILLISECOND);
  assert_int_equal(now()->epoch, epoch);
  finish(heads[1]);
  run_for(&world, 2 * PWI_SIM_MILLISECOND);
  for (size_t i = 0; i < 2; i++) assert_int_equal(head_of(arcs[i].begin), arcs[i].chain[1].node.id);
  assert_int_equal(now()->epoch, epoch + 1);
  for (size_t i = 0; i < 2; i++) assert_int_equal(heads[i]->cancels, 0);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_member_becomes_head_by_a_handover),
      cmocka_unit_test(test_a_handover_that_is_not_answered_is_taken_back),
      cmocka_unit_test(test_a_handover_does_not_outlive_another_view),
      cmocka_unit_test(test_on_a_busy_machine_a_handover_has_more_time),
      cmocka_unit_test(test_a_handover_is_given_more_time_after_each_failure),
      cmocka_unit_test(test_a_slow_journal_takes_no_time_from_a_handover),
      cmocka_unit_test(test_no_other_move_makes_a_view_while_a_handover_is_under_way),
      cmocka_unit_test(test_a_filled_member_without_a_link_is_not_admitted),
      cmocka_unit_test(test_a_handover_that_was_reported_outlives_the_link_of_the_head),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
