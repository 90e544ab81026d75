/* Who may return, and as what: clients, servers, the orders of clients under former ids; and how long servers are
 * waited for. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/testing.h"

static struct world world;

/* --- identities ----------------------------------------------------------------------------------------- */

/* Another program that joins as `join` says. */
static struct actor *add_thief(const struct pwi_join *join) {
  struct actor *thief = add_actor(&world, "thief", join);
  thief->keeps_away = true;
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(thief->joined.secret, 0);
  return thief;
}

static void test_a_client_returns_only_with_its_secret(void **state) {
  (void)state;
  world_open(&world, 1, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  struct pwi_join join = client->join;
  join.secret ^= 1;
  assert_int_equal(add_thief(&join)->joined.status, PAWL_NODE_RETIRED);
  assert_int_equal(client->downs, 0);
  world_close(&world);
}

static void test_a_server_returns_only_in_its_own_process(void **state) {
  (void)state;
  world_open(&world, 2, 1);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  struct pwi_join join = a->join;
  join.process++;
  assert_int_equal(add_thief(&join)->joined.status, PAWL_MISMATCH);
  assert_int_equal(a->downs, 0);
  world_close(&world);
}

/* The ask is for a vector of this name, and was made under a former id. */
static pawl_status ask_again(struct actor *actor, const char *name, const struct pwi_ask_terms *terms) {
  struct pwi_message_head head = {.kind = PWI_SAY_ASK,
                                  .sender = actor->joined.id,
                                  .task = ++actor->asked,
                                  .tick = PWI_ASK_CREATE,
                                  .view = actor->numbers[0],
                                  .catalogue = actor->numbers[1],
                                  .membership = actor->numbers[2]};
  struct pawl_vector_options options = {.type = PAWL_F32, .width = 2, .size = 1000};
  struct pwi_writer payload = {0};
  pwi_ask_terms_write(terms, &payload);
  pwi_write_text(&payload, name);
  pwi_options_write(&payload, &options);
  struct pwi_enclosure enclosure = {.type = PWI_SECTION_PAYLOAD, .data = payload.data, .size = payload.size};
  pwi_messenger_send(&actor->messenger, actor->link, &actor->peering.link, &head, &enclosure, true);
  pwi_writer_fini(&payload);
  run_until(actor, has_reply);
  return actor->reply;
}

static void test_a_client_asks_under_a_former_id_only_with_its_secret(void **state) {
  (void)state;
  world_open(&world, 3, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *victim = add_client(&world, "victim", false), *client = add_client(&world, "client", false);
  run_until(victim, is_in);
  run_until(client, is_in);
  struct pwi_ask_terms terms = {.former = victim->joined.id, .secret = victim->joined.secret ^ 1};
  assert_int_equal(ask_again(client, "a/b", &terms), PAWL_FORBIDDEN);
  terms.secret ^= 1;
  assert_int_equal(ask_again(client, "a/b", &terms), PAWL_OK);
  world_close(&world);
}

static void test_a_client_reports_no_moves(void **state) {
  (void)state;
  world_open(&world, 4, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  client->keeps_away = true;
  say_moved(client, &(struct pwi_move){.move = 1, .positions = {0, PWI_RING_END}, .step = PWI_MOVE_FILL}, PAWL_OK);
  run_for(&world, PWI_SIM_SECOND / 10);
  assert_int_equal(client->why_down, PAWL_LINK_PROTOCOL);
  world_close(&world);
}

/* --- presence of servers -------------------------------------------------------------------------------- */

static bool sees_one_leaving(struct actor *actor) {
  return actor->view && actor->view->nodes[0].state == PWI_NODE_DRAINING;
}

static bool sees_one_down(struct actor *actor) { return actor->view->nodes[0].state == PWI_NODE_DOWN; }

static void test_a_server_that_leaves_and_returns_leaves_still(void **state) {
  (void)state;
  world_open(&world, 5, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, is_in);
  struct actor *b = add_server(&world, "b", 20, 0, 1);
  run_until(b, has_arcs);
  a->moving = b->moving = MOVES_NEVER;
  a->keeps_away = true;
  say(a, PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(b, sees_one_leaving);
  pwi_sim_break(world.sim, a->node, world.manager_node);
  run_until(b, sees_one_down);
  a->keeps_away = false;
  OK(pwi_net_connect(a->net, MANAGER, &a->link));
  run_until(a, is_in);
  run_until(b, sees_one_leaving);
  world_close(&world);
}

/* The other servers reach it, the manager does not. */
static void test_a_server_that_lives_but_does_not_return_is_declared_dead_in_the_end(void **state) {
  (void)state;
  world_init(&world, 6, 3);
  world.config.absent_max_ns = 20 * PWI_SIM_SECOND;
  OK(pwi_sim_start(world.sim, world.manager_node));
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, is_in);
  run_until(add_server(&world, "b", 20, 0, 1), is_in);
  run_until(add_server(&world, "c", 30, 0, 1), has_arcs);
  pwi_sim_cut(world.sim, a->node, world.manager_node);
  pwi_sim_cut(world.sim, world.manager_node, a->node);
  run_for(&world, 19 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  world_close(&world);
}

/* No other server is there to ask. */
static void test_what_the_manager_finds_alone_counts_after_the_grace(void **state) {
  (void)state;
  world_init(&world, 7, 1);
  world.config.server_grace_ns = 10 * PWI_SIM_SECOND;
  OK(pwi_sim_start(world.sim, world.manager_node));
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  pwi_sim_kill(world.sim, a->node);
  run_for(&world, 9 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_client_returns_only_with_its_secret),
      cmocka_unit_test(test_a_server_returns_only_in_its_own_process),
      cmocka_unit_test(test_a_client_asks_under_a_former_id_only_with_its_secret),
      cmocka_unit_test(test_a_client_reports_no_moves),
      cmocka_unit_test(test_a_server_that_leaves_and_returns_leaves_still),
      cmocka_unit_test(test_a_server_that_lives_but_does_not_return_is_declared_dead_in_the_end),
      cmocka_unit_test(test_what_the_manager_finds_alone_counts_after_the_grace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
