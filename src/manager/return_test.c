/* Who may return, and as what: clients, servers, the orders of clients under former ids; and how long servers are
 * waited for. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/inside.h"
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

static pawl_status ask_delete(struct actor *actor, const char *name) {
  struct pwi_writer payload = {0};
  pwi_write_text(&payload, name);
  return ask(actor, PWI_ASK_DELETE, &payload);
}

/* Whether it was carried out is not known any more. */
static void test_an_ask_under_a_forgotten_id_is_not_carried_out(void **state) {
  (void)state;
  world_init(&world, 8, 1);
  world.config.keep_retired_ns = 5 * PWI_SIM_SECOND;
  OK(pwi_sim_start(world.sim, world.manager_node));
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *former = add_client(&world, "former", false), *client = add_client(&world, "client", false);
  run_until(former, is_in);
  run_until(client, is_in);
  struct pwi_ask_terms terms = {.former = former->joined.id, .secret = former->joined.secret};
  assert_int_equal(ask_create(former, "a/b"), PAWL_OK);
  assert_int_equal(ask_delete(client, "a/b"), PAWL_OK);
  former->keeps_away = true;
  pwi_sim_kill(world.sim, former->node);
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).clients, 1);
  assert_int_equal(figures_of(&world).retired, 0);
  assert_int_equal(ask_again(client, "a/b", &terms), PAWL_OUTCOME_UNKNOWN);
  assert_int_equal(figures_of(&world).vectors, 0);
  world_close(&world);
}

/* The reply is lost, and the vector that the client did not find exists when it asks again. */
static void test_an_ask_that_was_refused_is_refused_again(void **state) {
  (void)state;
  world_open(&world, 9, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *client = add_client(&world, "client", false), *other = add_client(&world, "other", false);
  run_until(client, is_in);
  run_until(other, is_in);
  assert_int_equal(ask_delete(client, "a/b"), PAWL_NOT_FOUND);
  assert_int_equal(ask_create(other, "a/b"), PAWL_OK);
  client->asked = client->replied = 0;
  assert_int_equal(ask_delete(client, "a/b"), PAWL_NOT_FOUND);
  assert_int_equal(figures_of(&world).vectors, 1);
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

static void say_verdict(struct actor *witness, uint64_t node, uint64_t number) {
  struct pwi_probe probe = {.node = node, .number = number, .patience_ms = 100, .verdict = PWI_VERDICT_GONE};
  say_probed(witness, &probe);
  run_for(&world, 2 * PWI_SIM_SECOND);
}

static uint64_t inquiry_about(const struct actor *server) {
  return pwi_manager_node(world.manager, server->joined.id)->inquiry.number;
}

static void cut_off(struct actor *actor) {
  pwi_sim_cut(world.sim, actor->node, world.manager_node);
  pwi_sim_cut(world.sim, world.manager_node, actor->node);
}

/* A witness may lack the memory for a probe. */
static void test_a_silent_server_is_declared_dead_though_a_witness_does_not_answer(void **state) {
  (void)state;
  world_open(&world, 12, 3);
  struct actor *a = add_server(&world, "a", 10, 0, 1), *b = add_server(&world, "b", 20, 0, 1);
  run_until(add_server(&world, "c", 30, 0, 1), has_arcs);
  b->is_mute = true;
  pwi_sim_cut(world.sim, a->node, PWI_SIM_ALL);
  pwi_sim_cut(world.sim, PWI_SIM_ALL, a->node);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(b->probes > 0);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  world_close(&world);
}

/* The server may have come back since. */
static void test_a_verdict_of_an_earlier_inquiry_does_not_count(void **state) {
  (void)state;
  world_open(&world, 10, 3);
  struct actor *a = add_server(&world, "a", 10, 0, 1), *b = add_server(&world, "b", 20, 0, 1);
  run_until(add_server(&world, "c", 30, 0, 1), has_arcs);
  cut_off(a);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_true(inquiry_about(a) > 1);
  say_verdict(b, a->joined.id, inquiry_about(a) - 1);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  say_verdict(b, a->joined.id, inquiry_about(a));
  assert_int_equal(figures_of(&world).nodes_down, 1);
  world_close(&world);
}

/* Its process lives, and so does the other shard of it. */
static void test_a_verdict_about_a_server_that_is_back_does_not_count(void **state) {
  (void)state;
  world_open(&world, 11, 3);
  struct actor *a = add_server(&world, "a", 10, 0, 2), *shard = add_server(&world, "shard", 10, 1, 2);
  struct actor *b = add_server(&world, "b", 20, 0, 1);
  run_until(add_server(&world, "c", 30, 0, 1), has_arcs);
  cut_off(a);
  cut_off(shard);
  run_for(&world, 3 * PWI_SIM_SECOND);
  pwi_sim_mend(world.sim, a->node, world.manager_node);
  pwi_sim_mend(world.sim, world.manager_node, a->node);
  run_until(a, is_in);
  say_verdict(b, a->joined.id, inquiry_about(a));
  assert_int_equal(figures_of(&world).nodes_down, 0);
  world_close(&world);
}

/* Its chains have no other connected member when its time is over. */
static void test_a_server_that_is_down_is_removed_once_no_chain_waits_for_it(void **state) {
  (void)state;
  world_init(&world, 13, 2);
  world.config.replicas = 1;
  world.config.keep_retired_ns = 5 * PWI_SIM_SECOND;
  OK(pwi_sim_start(world.sim, world.manager_node));
  struct actor *a = add_server(&world, "a", 10, 0, 1), *b = add_server(&world, "b", 20, 0, 1);
  run_until(b, has_arcs);
  a->keeps_away = b->keeps_away = true;
  pwi_sim_kill(world.sim, a->node);
  pwi_sim_break(world.sim, b->node, world.manager_node);
  run_for(&world, 20 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  b->keeps_away = false;
  OK(pwi_net_connect(b->net, MANAGER, &b->link));
  run_until(b, is_in);
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).ready);
  assert_int_equal(figures_of(&world).nodes_down, 0);
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
      cmocka_unit_test(test_an_ask_under_a_forgotten_id_is_not_carried_out),
      cmocka_unit_test(test_an_ask_that_was_refused_is_refused_again),
      cmocka_unit_test(test_a_client_reports_no_moves),
      cmocka_unit_test(test_a_server_that_leaves_and_returns_leaves_still),
      cmocka_unit_test(test_a_server_that_lives_but_does_not_return_is_declared_dead_in_the_end),
      cmocka_unit_test(test_a_silent_server_is_declared_dead_though_a_witness_does_not_answer),
      cmocka_unit_test(test_a_verdict_of_an_earlier_inquiry_does_not_count),
      cmocka_unit_test(test_a_verdict_about_a_server_that_is_back_does_not_count),
      cmocka_unit_test(test_a_server_that_is_down_is_removed_once_no_chain_waits_for_it),
      cmocka_unit_test(test_what_the_manager_finds_alone_counts_after_the_grace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
