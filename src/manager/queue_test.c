/* Decisions wait in a queue while a record is written. What holds when their turn comes counts, not what held when they
 * were queued. Every view that the manager writes is checked (manager/watching.h). */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/inside.h"
#include "manager/watching.h"

static struct world world;

/* Until go_on, no decision is carried out: the client creates a vector, and the record does not become safe. */
static void hold(struct actor *client) {
  struct pwi_writer payload = {0};
  struct pawl_vector_options options = {.type = PAWL_F32, .width = 2, .size = 1000};
  watched.is_held = true;
  pwi_write_text(&payload, "a/b");
  pwi_options_write(&payload, &options);
  say(client, PWI_SAY_ASK, ++client->asked, PWI_ASK_CREATE, &payload);
  pwi_writer_fini(&payload);
  run_until(client, has_record);
}

static void go_on(void) {
  watched.is_held = false;
  release_record();
}

static void come_back(struct actor *actor) {
  actor->keeps_away = false;
  OK(pwi_net_connect(actor->net, MANAGER, &actor->link));
}

static void stay_away(struct actor *actor) {
  actor->keeps_away = true;
  pwi_sim_break(world.sim, actor->node, world.manager_node);
}

static bool is_live(uint64_t sender) {
  return pwi_membership_is_live(&watched.ledger.membership, (struct pwi_sender){sender});
}

/* --- servers and clients that come and go --------------------------------------------------------------- */

/* It asks to join a moment before it has been down for too long. */
static void test_a_server_that_is_back_is_not_removed(void **state) {
  (void)state;
  open_chains(&world, 1, 1, 4);
  world.manager->config.keep_retired_ns = 5 * PWI_SIM_SECOND;
  struct actor *client = add_operator(&world), *server = &world.actors[1];
  stay_away(server);
  run_until(server, is_in_no_chain);
  run_for(&world, 4500 * PWI_SIM_MILLISECOND);
  hold(client);
  come_back(server);
  run_for(&world, PWI_SIM_SECOND);
  go_on();
  run_for(&world, PWI_SIM_SECOND);
  assert_non_null(pwi_view_find(now(), (struct pwi_node){server->joined.id}));
  assert_true(is_in(server));
  assert_int_equal(server->lefts, 0);
  world_close(&world);
}

/* It asks to join a moment before its grace is over. */
static void test_a_client_that_is_back_is_not_retired(void **state) {
  (void)state;
  open_chains(&world, 2, 0, 1);
  struct actor *other = add_operator(&world), *client = add_client(&world, "client", false);
  run_until(client, is_in);
  uint64_t id = client->joined.id;
  stay_away(client);
  run_for(&world, 1500 * PWI_SIM_MILLISECOND);
  hold(other);
  come_back(client);
  run_for(&world, PWI_SIM_SECOND);
  go_on();
  run_for(&world, PWI_SIM_SECOND);
  assert_true(is_in(client));
  assert_int_equal(client->joined.id, id);
  assert_true(is_live(id));
  world_close(&world);
}

/* Nobody would ever retire it, and a group would wait for it. */
static void test_a_client_that_is_gone_before_it_has_an_id_is_forgotten(void **state) {
  (void)state;
  open_chains(&world, 3, 0, 1);
  watched.is_held = true;
  struct actor *client = add_client(&world, "client", false);
  run_until(client, has_record);
  kill_for_good(client);
  run_for(&world, PWI_SIM_SECOND);
  go_on();
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).clients + figures_of(&world).retired, 0);
  world_close(&world);
}

/* Another client retires it before its own ask is carried out. */
static void test_a_retired_sender_founds_no_group(void **state) {
  (void)state;
  open_chains(&world, 4, 0, 1);
  struct actor *other = add_operator(&world), *client = add_client(&world, "client", false);
  run_until(client, is_in);
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, client->joined.id);
  watched.is_held = true;
  say(other, PWI_SAY_ASK, ++other->asked, PWI_ASK_RETIRE, &payload);
  run_until(other, has_record);
  pwi_writer_reset(&payload);
  pwi_write_text(&payload, "job/.all");
  pwi_write_u32(&payload, 1);
  say(client, PWI_SAY_ASK, ++client->asked, PWI_ASK_GROUP, &payload);
  pwi_writer_fini(&payload);
  run_for(&world, 100 * PWI_SIM_MILLISECOND);
  go_on();
  run_until(other, has_reply);
  assert_int_equal(other->reply, PAWL_OK);
  assert_false(is_live(client->joined.id));
  assert_int_equal(figures_of(&world).groups, 0);
  world_close(&world);
}

/* --- chains --------------------------------------------------------------------------------------------- */

/* Orders a handover of the first arc to the second member of its chain. The head does not report it by itself. */
static struct actor *begin_handover(struct actor *client) {
  const struct pwi_arc *arc = &now()->arcs[0];
  struct actor *head = actor_of(arc->chain[0].node.id);
  head->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), 0), arc->chain[1].node.id), PAWL_OK);
  run_until(head, has_order);
  assert_int_equal(head->order.step, PWI_MOVE_HANDOVER);
  return head;
}

static void report(struct actor *source) {
  source->moving = MOVES_WELL;
  say_moved(source, &source->order, PAWL_OK);
  run_for(&world, 10 * PWI_SIM_MILLISECOND);
}

/* The head has handed over. The third member, which is to stay, may be dead. */
static void test_the_head_changes_only_while_all_members_are_connected(void **state) {
  (void)state;
  open_chains(&world, 5, 2, 4);
  struct actor *client = add_operator(&world);
  struct pwi_arc before = now()->arcs[0];
  struct actor *head = begin_handover(client), *tail = actor_of(before.chain[2].node.id);
  hold(client);
  report(head);
  pwi_sim_break(world.sim, tail->node, world.manager_node);
  run_until(tail, has_no_link);
  go_on();
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[0].node.id);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[1].node.id);
  assert_true(has_chains_of(3));
  world_close(&world);
}

/* The new server has been filled, and dies before the old one has left the chain. */
static void test_a_copy_is_given_up_only_while_the_members_that_stay_are_connected(void **state) {
  (void)state;
  open_chains(&world, 6, 0, 2);
  struct actor *client = add_operator(&world);
  uint64_t id = now()->arcs[0].chain[0].node.id;
  struct actor *source = actor_of(id), *target = &world.actors[source == &world.actors[0]];
  source->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, pwi_view_arc_range(now(), 0), target->joined.id), PAWL_OK);
  run_until(source, has_order);
  watched.is_held = true;
  report(source);
  run_until(source, has_record); /* the target is a full member */
  kill_for_good(target);
  run_until(target, has_no_link);
  go_on();
  assert_int_equal(now()->arcs[0].chain[0].node.id, id);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(now()->arcs[0].chain[0].node.id, id);
  assert_int_equal(now()->arcs[0].count, 1);
  world_close(&world);
}

/* A server comes back in another rack. That makes a view between the report of the handover and the view of the next
 * head, and the old head serves again. */
static void test_a_handover_counts_only_if_the_view_names_the_next_head(void **state) {
  (void)state;
  open_chains(&world, 7, 1, 3);
  struct actor *client = add_operator(&world), *other = NULL;
  struct pwi_arc before = now()->arcs[0];
  for (size_t i = 0; i < 3; i++)
    if (pwi_arc_find(&before, (struct pwi_node){world.actors[i].joined.id}) == PWI_CHAIN_MAX) other = &world.actors[i];
  struct actor *head = begin_handover(client);
  snprintf(other->join.rack, sizeof other->join.rack, "elsewhere");
  watched.is_held = true;
  pwi_sim_break(world.sim, other->node, world.manager_node);
  run_until(other, has_record);
  report(head);
  go_on();
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[0].node.id);
  assert_int_equal(figures_of(&world).moves_done, 0);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[1].node.id);
  assert_int_equal(figures_of(&world).moves_done, 1);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_server_that_is_back_is_not_removed),
      cmocka_unit_test(test_a_client_that_is_back_is_not_retired),
      cmocka_unit_test(test_a_client_that_is_gone_before_it_has_an_id_is_forgotten),
      cmocka_unit_test(test_a_retired_sender_founds_no_group),
      cmocka_unit_test(test_the_head_changes_only_while_all_members_are_connected),
      cmocka_unit_test(test_a_copy_is_given_up_only_while_the_members_that_stay_are_connected),
      cmocka_unit_test(test_a_handover_counts_only_if_the_view_names_the_next_head),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
