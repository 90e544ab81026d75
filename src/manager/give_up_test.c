/* Servers that an operator gives up: data that only they had is lost, which is logged, and the arcs
 * continue. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/watching.h"

static struct world world;
static struct actor *admin;

static struct actor *add_one(uint32_t number) {
  char name[8];
  snprintf(name, sizeof name, "s%u", (unsigned)number);
  return add_server(&world, name, 10 + number, 0, 1);
}

static void open_scene(uint64_t seed, uint32_t replicas, uint32_t servers) {
  open_chains(&world, seed, replicas, servers);
  admin = add_operator(&world);
}

static pawl_status give_up(struct actor *actor, uint64_t node, uint8_t lose) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, node);
  pwi_write_u8(&payload, lose);
  return ask(actor, PWI_ASK_GIVE_UP, &payload);
}

static size_t count_lost(uint64_t epoch) {
  size_t lost = 0;
  for (size_t i = 0; i < now()->arc_count; i++) lost += now()->arcs[i].lost == epoch;
  return lost;
}

static bool is_listed(uint64_t node) { return pwi_view_find(now(), (struct pwi_node){node}) != NULL; }

static void test_the_only_copy_is_lost_only_by_order(void **state) {
  (void)state;
  open_scene(1, 0, 3);
  struct actor *victim = &world.actors[1];
  uint64_t id = victim->joined.id, up = world.actors[0].joined.id;
  assert_int_equal(give_up(admin, 77, 1), PAWL_NODE_GONE);
  assert_int_equal(give_up(admin, id, 1), PAWL_EXISTS); /* it is connected */
  assert_int_equal(figures_of(&world).unlinked, 0);
  kill_for_good(victim);
  run_for(&world, 3 * PWI_SIM_SECOND);
  size_t waiting = figures_of(&world).waiting;
  assert_true(waiting > 0);
  assert_int_equal(figures_of(&world).unlinked, waiting);
  assert_int_equal(give_up(admin, id, 0), PAWL_CLUSTER_LOST);
  assert_int_equal(give_up(admin, up, 1), PAWL_EXISTS);
  assert_true(is_listed(id));
  assert_int_equal(count_lost(now()->epoch), 0);
  uint64_t epoch = now()->epoch;
  struct pwi_arc arcs[64];
  size_t count = now()->arc_count;
  memcpy(arcs, now()->arcs, count * sizeof *arcs);
  assert_int_equal(give_up(admin, id, 1), PAWL_OK);
  assert_int_equal(admin->reply_id, waiting);
  assert_false(is_listed(id));
  assert_true(count_lost(epoch + 1) >= waiting);
  assert_true(figures_of(&world).ready);
  assert_int_equal(figures_of(&world).waiting, 0);
  for (size_t i = 0; i < count; i++) { /* no other arc has lost data */
    const struct pwi_arc *arc = &now()->arcs[pwi_view_arc_of(now(), arcs[i].begin)];
    assert_int_equal(arc->lost, arcs[i].chain[0].node.id == id ? epoch + 1 : 0);
  }
  assert_int_equal(give_up(admin, id, 1), PAWL_NODE_GONE);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  world_close(&world);
}

/* The server was not dead: it is told that it was retired, and joins again as a new, empty node. */
static void test_a_server_that_was_given_up_returns_as_a_new_node(void **state) {
  (void)state;
  open_scene(2, 0, 3);
  world.all_renew = true;
  struct actor *victim = &world.actors[1];
  uint64_t id = victim->joined.id;
  victim->keeps_away = true;
  pwi_sim_break(world.sim, victim->node, world.manager_node);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(give_up(admin, id, 1), PAWL_OK);
  victim->keeps_away = false;
  OK(pwi_net_connect(victim->net, MANAGER, &victim->link));
  run_until(victim, is_in);
  assert_int_not_equal(victim->joined.id, id);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  assert_true(share_of(now(), victim) >= 30);
  world_close(&world);
}

static void test_where_others_have_everything_nothing_is_lost(void **state) {
  (void)state;
  open_scene(3, 1, 4);
  uint64_t id = world.actors[1].joined.id;
  kill_for_good(&world.actors[1]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(give_up(admin, id, 0), PAWL_OK);
  assert_int_equal(admin->reply_id, 0);
  assert_false(is_listed(id));
  for (size_t i = 0; i < now()->arc_count; i++) assert_int_equal(now()->arcs[i].lost, 0);
  run_for(&world, PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  world_close(&world);
}

/* Both members of all chains are dead. They are given up one after the other, and only with the second data
 * is lost. */
static void test_the_data_is_lost_with_the_last_of_two_dead_members(void **state) {
  (void)state;
  open_scene(4, 1, 2);
  uint64_t ids[] = {world.actors[0].joined.id, world.actors[1].joined.id};
  kill_for_good(&world.actors[0]);
  kill_for_good(&world.actors[1]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  struct actor *third = add_one(7);
  run_until(third, is_in);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).waiting, figures_of(&world).arcs);
  size_t lost = 0;
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(count_lost(now()->epoch), 0);
    assert_int_equal(give_up(admin, ids[i], 1), PAWL_OK);
    lost += admin->reply_id > 0;
  }
  assert_true(lost > 0 && count_lost(now()->epoch) == now()->arc_count);
  assert_true(figures_of(&world).ready);
  assert_int_equal(figures_of(&world).under_replicated, now()->arc_count);
  add_one(8);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  assert_int_equal(figures_of(&world).under_replicated, 0);
  world_close(&world);
}

static void test_arcs_that_begin_anew_have_all_their_members(void **state) {
  (void)state;
  open_scene(5, 1, 2);
  add_one(7);
  add_one(8);
  for (size_t i = 0; i < 2; i++)
    world.actors[i].moving = MOVES_NEVER; /* so that the new servers get no
                                                                          arcs */
  run_for(&world, PWI_SIM_SECOND);
  for (size_t i = 0; i < 2; i++) kill_for_good(&world.actors[i]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).waiting, figures_of(&world).arcs);
  for (uint64_t id = 1; id <= 2; id++) assert_int_equal(give_up(admin, id, 1), PAWL_OK);
  assert_int_equal(figures_of(&world).under_replicated, 0); /* at once: nothing has to be filled */
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  world_close(&world);
}

static void test_without_any_server_no_arc_can_start_anew(void **state) {
  (void)state;
  open_scene(6, 0, 1);
  uint64_t id = world.actors[0].joined.id;
  kill_for_good(&world.actors[0]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(give_up(admin, id, 1), PAWL_NOT_FOUND);
  assert_true(is_listed(id));
  world_close(&world);
}

static void test_all_shards_of_a_server_are_given_up_together(void **state) {
  (void)state;
  world_init(&world, 7, 2);
  watch(&world);
  world.someone_returned = true;
  OK(pwi_sim_start(world.sim, world.manager_node));
  for (uint32_t i = 0; i < 4; i++) {
    char name[8];
    snprintf(name, sizeof name, "s%u", (unsigned)i);
    add_server(&world, name, 10 + i / 2, i % 2, 2);
  }
  run_until(&world.actors[3], has_arcs);
  admin = add_operator(&world);
  uint64_t one = world.actors[2].joined.id, other = world.actors[3].joined.id;
  kill_for_good(&world.actors[2]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(give_up(admin, one, 1), PAWL_EXISTS); /* another shard of the process is connected */
  kill_for_good(&world.actors[3]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(give_up(admin, one, 1), PAWL_OK);
  assert_false(is_listed(one) || is_listed(other));
  assert_true(figures_of(&world).ready);
  world_close(&world);
}

static void test_lost_positions_are_known_after_a_restart(void **state) {
  (void)state;
  open_scene(8, 0, 3);
  uint64_t id = world.actors[1].joined.id;
  kill_for_good(&world.actors[1]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(give_up(admin, id, 1), PAWL_OK);
  uint64_t epoch = now()->epoch;
  size_t lost = count_lost(epoch);
  OK(pwi_sim_restart(world.sim, world.manager_node));
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  assert_true(lost > 0 && count_lost(epoch) > 0);
  run_until(admin, is_in);
  assert_int_equal(ask(admin, PWI_ASK_STATUS, NULL), PAWL_OK);
  assert_non_null(strstr(admin->reply_text, "\"lost\":"));
  world_close(&world);
}

/* Most servers are silent, so the manager suspects its own network. An operator who knows better need not
 * wait. */
static void test_a_missing_server_can_be_given_up(void **state) {
  (void)state;
  open_scene(9, 1, 4);
  for (size_t i = 0; i < 3; i++) {
    world.actors[i].keeps_away = true;
    pwi_sim_break(world.sim, world.actors[i].node, world.manager_node);
  }
  for (size_t i = 0; i < 3; i++) run_until(&world.actors[i], has_no_link);
  assert_int_equal(give_up(admin, world.actors[0].joined.id, 1), PAWL_EXISTS); /* it may be back in a
                                                                                  moment */
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(give_up(admin, world.actors[i].joined.id, 1), PAWL_OK);
    assert_false(is_listed(world.actors[i].joined.id));
  }
  run_for(&world, PWI_SIM_SECOND);
  assert_true(figures_of(&world).ready);
  world_close(&world);
}

static void test_a_live_server_is_not_given_up(void **state) {
  (void)state;
  open_scene(10, 1, 4);
  struct actor *cut_off = &world.actors[2];
  pwi_sim_cut(world.sim, cut_off->node, world.manager_node);
  pwi_sim_cut(world.sim, world.manager_node, cut_off->node);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(give_up(admin, cut_off->joined.id, 1), PAWL_EXISTS); /* the others reach it */
  assert_true(is_listed(cut_off->joined.id));
  world_close(&world);
}

static void test_only_an_operator_gives_up(void **state) {
  (void)state;
  open_scene(9, 0, 2);
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, 1);
  assert_int_equal(ask(admin, PWI_ASK_GIVE_UP, &payload), PAWL_INVALID); /* one byte is missing */
  assert_int_equal(give_up(admin, 0, 1), PAWL_INVALID);
  assert_int_equal(give_up(admin, 1, 2), PAWL_INVALID);
  snprintf(world.rights.space, sizeof world.rights.space, "ads");
  struct actor *limited = add_client(&world, "limited", false);
  run_until(limited, is_in);
  assert_int_equal(give_up(limited, 1, 1), PAWL_FORBIDDEN);
  world.rights = (struct pwi_rights){.write = false};
  struct actor *reader = add_client(&world, "reader", true);
  run_until(reader, is_in);
  assert_int_equal(give_up(reader, 1, 1), PAWL_FORBIDDEN);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_only_copy_is_lost_only_by_order),
      cmocka_unit_test(test_a_server_that_was_given_up_returns_as_a_new_node),
      cmocka_unit_test(test_where_others_have_everything_nothing_is_lost),
      cmocka_unit_test(test_the_data_is_lost_with_the_last_of_two_dead_members),
      cmocka_unit_test(test_arcs_that_begin_anew_have_all_their_members),
      cmocka_unit_test(test_without_any_server_no_arc_can_start_anew),
      cmocka_unit_test(test_all_shards_of_a_server_are_given_up_together),
      cmocka_unit_test(test_lost_positions_are_known_after_a_restart),
      cmocka_unit_test(test_a_missing_server_can_be_given_up),
      cmocka_unit_test(test_a_live_server_is_not_given_up),
      cmocka_unit_test(test_only_an_operator_gives_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
