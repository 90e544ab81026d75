/* What is sent when clients come and go: the changes, not everybody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/sim.h"

#include "manager/inside.h"
#include "manager/testing.h"

static struct world world;
static struct actor *server, *watcher, *guest;

static void open_world(void) {
  world_open(&world, 1, 1);
  server = add_server(&world, "server", 10, 0, 1);
  add_server(&world, "other", 11, 0, 1);
  watcher = add_client(&world, "watcher", false);
  run_until(watcher, is_in);
  guest = add_client(&world, "guest", false);
  run_until(guest, is_in);
}

/* The guest crashes and comes as somebody new, again and again. Returns the bytes that the manager has sent. */
static uint64_t come_and_go(unsigned times) {
  struct pwi_net_counts before, after;
  const struct pwi_net *net = pwi_sim_node_net(world.sim, world.manager_node);
  pwi_net_counts(net, &before);
  for (unsigned i = 0; i < times; i++) {
    OK(pwi_sim_restart(world.sim, guest->node));
    run_until(guest, is_in);
  }
  run_for(&world, 3 * PWI_SIM_SECOND); /* all but the last are retired */
  pwi_net_counts(net, &after);
  return after.bytes_sent - before.bytes_sent;
}

static void assert_same_membership(const struct pwi_membership *a, const struct pwi_membership *b) {
  struct pwi_writer first = {0}, second = {0};
  pwi_membership_encode_live(a, &first);
  pwi_membership_encode_live(b, &second);
  assert_int_equal(first.size, second.size);
  assert_memory_equal(first.data, second.data, first.size);
  pwi_writer_fini(&first);
  pwi_writer_fini(&second);
}

static void test_bytes_grow_with_joins_and_not_with_their_square(void **state) {
  (void)state;
  open_world();
  come_and_go(20);
  uint64_t first = come_and_go(100), second = come_and_go(100), third = come_and_go(100);
  print_message("bytes for 100 joins and crashes each: %llu, %llu, %llu\n", (unsigned long long)first,
                (unsigned long long)second, (unsigned long long)third);
  assert_true(second < first + first / 20);
  assert_true(third < first + first / 20);
  assert_int_equal(server->membership.sender_count, 2 + 320); /* whose clocks are kept for an hour */
  assert_int_equal(figures_of(&world).retired, 320);
  assert_same_membership(&server->membership, &watcher->membership);
  assert_same_membership(&server->membership, &guest->membership);
  assert_true(guest->membership.sender_count < 2 + 110); /* who went before it came is no business of a newcomer */
  world_close(&world);
}

/* A server that comes back is told what it has missed, if it knows how far it is; and everything if not. */
static void test_whoever_comes_back_is_told_what_it_has_missed(void **state) {
  (void)state;
  for (int remembers = 0; remembers < 2; remembers++) {
    open_world();
    come_and_go(100);
    server->remembers = remembers;
    world.may_miss_views = true;
    pwi_sim_cut(world.sim, server->node, world.manager_node);
    pwi_sim_cut(world.sim, world.manager_node, server->node);
    come_and_go(10);
    pwi_sim_mend(world.sim, server->node, world.manager_node);
    pwi_sim_mend(world.sim, world.manager_node, server->node);
    unsigned wholes = server->wholes;
    run_until(server, is_in);
    run_for(&world, PWI_SIM_SECOND);
    assert_int_equal(server->wholes - wholes, remembers ? 0 : 1);
    assert_same_membership(&server->membership, &watcher->membership);
    assert_int_equal(server->membership.sender_count, 2 + 110);
    world_close(&world);
  }
}

/* A manager that was started again has no history of changes, but whoever is up to date needs none. */
static void test_after_a_restart_of_the_manager_deltas_go_on(void **state) {
  (void)state;
  open_world();
  come_and_go(10);
  server->remembers = world.may_miss_views = true;
  pwi_sim_kill(world.sim, world.manager_node);
  run_for(&world, PWI_SIM_SECOND / 10);
  unsigned wholes = server->wholes;
  OK(pwi_sim_start(world.sim, world.manager_node));
  run_until(server, is_in);
  come_and_go(10);
  assert_int_equal(server->wholes, wholes);
  assert_same_membership(&server->membership, &watcher->membership);
  world_close(&world);
}

/* More changes than are kept: the whole again. */
static void test_whoever_has_missed_too_much_is_told_everything(void **state) {
  (void)state;
  open_world();
  world.manager->membership_history_max = 1000;
  server->remembers = true;
  world.may_miss_views = true;
  come_and_go(5);
  pwi_sim_cut(world.sim, server->node, world.manager_node);
  pwi_sim_cut(world.sim, world.manager_node, server->node);
  come_and_go(100);
  pwi_sim_mend(world.sim, server->node, world.manager_node);
  pwi_sim_mend(world.sim, world.manager_node, server->node);
  unsigned wholes = server->wholes;
  run_until(server, is_in);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(server->wholes, wholes + 1);
  assert_same_membership(&server->membership, &watcher->membership);
  assert_int_equal(server->membership.sender_count, 2 + 105);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes_grow_with_joins_and_not_with_their_square),
      cmocka_unit_test(test_whoever_comes_back_is_told_what_it_has_missed),
      cmocka_unit_test(test_after_a_restart_of_the_manager_deltas_go_on),
      cmocka_unit_test(test_whoever_has_missed_too_much_is_told_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
