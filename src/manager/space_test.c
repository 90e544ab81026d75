/* Quotas of spaces: the limits that servers are told. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/testing.h"

#define QUOTA 1000

static struct world world;
static struct actor *a, *b;

/* Two servers, and a quota of 1,000 bytes. */
static void open_scene(uint64_t seed) {
  struct pwi_writer payload = {0};
  world_open(&world, seed, 2);
  a = add_server(&world, "a", 10, 0, 1);
  b = add_server(&world, "b", 20, 0, 1);
  run_until(b, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  pwi_write_text(&payload, "ads");
  pwi_write_u64(&payload, QUOTA);
  assert_int_equal(ask(client, PWI_ASK_QUOTA, &payload), PAWL_OK);
  run_for(&world, PWI_SIM_SECOND / 10);
}

static void say_bytes(struct actor *server, uint64_t bytes) {
  struct pwi_space_bytes space = {.space = "ads", .bytes = bytes};
  struct pwi_writer payload = {0};
  pwi_spaces_encode(&space, 1, &payload);
  say(server, PWI_SAY_SPACES, 0, 0, &payload);
  pwi_writer_fini(&payload);
  run_for(&world, PWI_SIM_SECOND / 10);
}

static void test_a_server_may_use_what_is_left(void **state) {
  (void)state;
  open_scene(1);
  assert_string_equal(a->granted.space, "ads");
  assert_true(a->granted.bytes == UINT64_MAX && b->granted.bytes == UINT64_MAX); /* they have not reported yet */
  say_bytes(a, 600);
  assert_int_equal(a->granted.bytes, QUOTA);
  say_bytes(b, 300);
  assert_int_equal(b->granted.bytes, 300 + 100);
  say_bytes(a, 700);
  assert_int_equal(a->granted.bytes, 700);
  world_close(&world);
}

/* It counts the spaces that it is told of, and no others. */
static void test_a_server_that_joins_or_returns_is_told_the_quotas(void **state) {
  (void)state;
  open_scene(2);
  struct actor *c = add_server(&world, "c", 30, 0, 1);
  run_until(c, is_in);
  unsigned grants = a->grants;
  pwi_sim_break(world.sim, a->node, world.manager_node);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(a->joins, 2);
  assert_int_equal(a->grants, grants + 1);
  assert_int_equal(c->grants, 1);
  assert_string_equal(c->granted.space, "ads");
  world_close(&world);
}

/* Others have its rows, or copy them. */
static void test_bytes_of_a_server_that_is_down_do_not_count(void **state) {
  (void)state;
  open_scene(3);
  say_bytes(b, 300);
  pwi_sim_kill(world.sim, b->node);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  say_bytes(a, 600);
  assert_int_equal(a->granted.bytes, QUOTA);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_server_may_use_what_is_left),
      cmocka_unit_test(test_a_server_that_joins_or_returns_is_told_the_quotas),
      cmocka_unit_test(test_bytes_of_a_server_that_is_down_do_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
