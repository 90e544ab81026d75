/* The manager and its clients: groups, reconnecting, retirement. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/testing.h"

static struct world world;

static bool sees_it_retired(struct actor *actor) {
  return actor->membership.sender_count > 0 && actor->membership.senders[0].retired;
}

static bool has_no_senders(struct actor *actor) {
  return actor->membership.number > 1 && actor->membership.sender_count == 0;
}

/* --- groups --------------------------------------------------------------------------------------------- */

static void test_clients_meet_in_a_group(void **state) {
  size_t count;
  (void)state;
  world_open(&world, 15, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *a = add_client(&world, "a", false);
  struct actor *b = add_client(&world, "b", false);
  struct actor *reader = add_client(&world, "reader", true);
  run_until(a, is_in);
  run_until(b, is_in);
  run_until(reader, is_in);
  assert_int_equal(ask_group(reader, "job/.all", 2), PAWL_FORBIDDEN);
  assert_int_equal(ask_group(a, "job/all", 2), PAWL_INVALID);
  assert_int_equal(ask_group(a, "job/.all", 2), PAWL_OK);
  struct pwi_vector_id group = {a->reply_id};
  assert_false(pwi_membership_group(&a->membership, group)->complete);
  assert_int_equal(ask_group(a, "job/.all", 2), PAWL_OK); /* asking again is harmless */
  assert_int_equal(ask_group(b, "job/.all", 3), PAWL_MISMATCH);
  assert_int_equal(ask_group(b, "job/.all", 0), PAWL_OK);
  assert_int_equal(b->reply_id, group.id);
  assert_true(pwi_membership_group(&b->membership, group)->complete);
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, group.id);
  assert_int_equal(ask(a, PWI_ASK_UNGROUP, &payload), PAWL_OK);
  pwi_membership_members(&a->membership, group, &count);
  assert_int_equal(count, 1);
  pwi_write_u64(&payload, group.id);
  assert_int_equal(ask(a, PWI_ASK_UNGROUP, &payload), PAWL_OK);
  world_close(&world);
}

static void test_a_group_and_a_peer_group_have_different_names(void **state) {
  (void)state;
  world_open(&world, 21, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  for (int i = 0; i < 2; i++) {
    const enum pwi_ask kinds[] = {PWI_ASK_GROUP, PWI_ASK_PEERS};
    struct pwi_writer payload = {0};
    pwi_write_text(&payload, i ? "job/.peers" : "job/.group");
    pwi_write_u32(&payload, 2);
    struct pwi_writer again = {0};
    pwi_write_bytes(&again, payload.data, payload.size);
    assert_int_equal(ask(client, kinds[i], &payload), PAWL_OK);
    assert_int_equal(ask(client, kinds[!i], &again), PAWL_MISMATCH);
  }
  assert_int_equal(s->membership.member_count, 2);
  world_close(&world);
}

static void test_a_client_has_a_host_and_a_rack_of_one_word(void **state) {
  (void)state;
  world_open(&world, 17, 1);
  struct actor *bad = add_client(&world, "bad", false);
  snprintf(bad->join.rack, sizeof bad->join.rack, "two words");
  bad->keeps_away = true;
  struct actor *longer = add_client(&world, "longer", false);
  memset(longer->join.rack, 'r', PWI_SITE_MAX + 1);
  longer->keeps_away = true;
  struct actor *good = add_client(&world, "good", false);
  memset(good->join.rack, 'r', PWI_SITE_MAX);
  run_until(good, is_in);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(bad->joined.status, PAWL_INVALID);
  assert_int_equal(longer->joined.status, PAWL_INVALID);
  assert_int_equal(good->membership.sender_count, 1);
  assert_string_equal(good->membership.senders[0].rack, good->join.rack);
  world_close(&world);
}

/* --- coming back, and retiring -------------------------------------------------------------------------- */

static void test_a_client_that_returns_in_time_keeps_its_sender_id(void **state) {
  (void)state;
  world_open(&world, 16, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  run_until(s, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  uint64_t id = client->joined.id;
  assert_true(pwi_membership_is_live(&s->membership, (struct pwi_sender){id})); /* servers first */
  pwi_sim_break(world.sim, client->node, world.manager_node);
  run_for(&world, 4 * PWI_SIM_SECOND);
  assert_int_equal(client->joins, 2);
  assert_int_equal(client->joined.id, id);
  assert_int_equal(figures_of(&world).clients, 1);
  world_close(&world);
}

static pawl_status ask_forget(struct actor *actor, uint64_t sender, uint64_t secret) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, sender);
  pwi_write_u64(&payload, secret);
  return ask(actor, PWI_ASK_FORGET, &payload);
}

static void test_a_client_is_retired_after_its_grace_and_comes_back_as_another(void **state) {
  (void)state;
  world_open(&world, 17, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  assert_int_equal(ask_group(client, "job/.all", 1), PAWL_OK);
  uint64_t old = client->joined.id, secret = client->joined.secret;
  struct actor *other = add_client(&world, "other", false);
  run_until(other, is_in);
  client->keeps_away = true;
  pwi_sim_break(world.sim, client->node, world.manager_node);
  run_for(&world, 1900 * PWI_SIM_MILLISECOND);
  assert_int_equal(s->membership.member_count, 1);
  run_for(&world, 200 * PWI_SIM_MILLISECOND);
  assert_true(sees_it_retired(s));
  assert_int_equal(s->membership.member_count, 0);
  OK(pwi_net_connect(client->net, MANAGER, &client->link));
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(client->joined.status, PAWL_NODE_RETIRED);
  client->join.id = client->join.secret = 0; /* once more, on the same link */
  client->join.retired = old;
  say_join(client);
  run_until(client, is_in);
  run_until(client, sees_it_retired);
  assert_true(client->joined.id > old);
  assert_true(pwi_membership_is_retired(&client->membership, (struct pwi_sender){old}));
  assert_int_equal(ask_forget(client, client->joined.id, client->joined.secret), PAWL_FORBIDDEN); /* live */
  assert_int_equal(ask_forget(other, old, 0), PAWL_FORBIDDEN); /* the old id belongs to another client */
  assert_int_equal(ask_forget(other, old, secret + 1), PAWL_FORBIDDEN);
  assert_true(pwi_membership_is_retired(&s->membership, (struct pwi_sender){old}));
  for (int i = 0; i < 2; i++) assert_int_equal(ask_forget(client, old, secret), PAWL_OK);
  assert_null(pwi_membership_find(&client->membership, (struct pwi_sender){old}));
  world_close(&world);
}

static void test_on_a_busy_machine_a_client_has_more_grace(void **state) {
  (void)state;
  world_open(&world, 20, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  client->keeps_away = true;
  pwi_sim_allow(world.sim, 2 * PWI_SIM_SECOND);
  pwi_sim_break(world.sim, client->node, world.manager_node);
  run_for(&world, (2000 + 1900) * PWI_SIM_MILLISECOND);
  assert_false(sees_it_retired(s));
  run_for(&world, 200 * PWI_SIM_MILLISECOND);
  assert_true(sees_it_retired(s));
  world_close(&world);
}

/* The time in which the manager itself stood still does not count. */
static void test_a_client_keeps_its_grace_when_the_manager_stands_still(void **state) {
  (void)state;
  for (int64_t after = 0; after < 1900; after += 100) {
    world_open(&world, 18, 1);
    run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
    struct actor *client = add_client(&world, "client", false);
    run_until(client, is_in);
    uint64_t id = client->joined.id;
    client->keeps_away = true;
    pwi_sim_break(world.sim, client->node, world.manager_node);
    run_for(&world, after * PWI_SIM_MILLISECOND);
    client->keeps_away = false;
    pwi_sim_pause(world.sim, world.manager_node, 5 * PWI_SIM_SECOND);
    OK(pwi_net_connect(client->net, MANAGER, &client->link));
    run_for(&world, 10 * PWI_SIM_SECOND);
    assert_int_equal(client->joined.status, PAWL_OK);
    assert_int_equal(client->joined.id, id);
    assert_int_equal(figures_of(&world).clients, 1);
    world_close(&world);
  }
}

/* Calls to the client are refused, and its link to the manager is down: it is dead and retired without its
 * grace. */
static void test_a_client_that_others_miss_is_retired_without_its_grace(void **state) {
  (void)state;
  world_open(&world, 19, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false), *other = add_client(&world, "other", false);
  run_until(client, is_in);
  run_until(other, is_in);
  uint64_t id = client->joined.id;
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, id);
  assert_int_equal(ask(other, PWI_ASK_MISS, &payload), PAWL_EXISTS); /* it has a link to the manager */
  client->keeps_away = true;
  pwi_sim_break(world.sim, client->node, world.manager_node);
  run_for(&world, PWI_SIM_SECOND / 10);
  assert_true(pwi_membership_is_live(&s->membership, (struct pwi_sender){id}));
  for (int i = 0; i < 2; i++) { /* it may be said twice */
    pwi_write_u64(&payload, id);
    assert_int_equal(ask(other, PWI_ASK_MISS, &payload), PAWL_OK);
    assert_true(pwi_membership_is_retired(&other->membership, (struct pwi_sender){id}));
  }
  pwi_write_u64(&payload, 4711);
  assert_int_equal(ask(other, PWI_ASK_MISS, &payload), PAWL_OK); /* there is no such sender */
  assert_true(pwi_membership_is_live(&other->membership, (struct pwi_sender){other->joined.id}));
  world_close(&world);
}

static pawl_status ask_retire(struct actor *actor, uint64_t id) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, id);
  return ask(actor, PWI_ASK_RETIRE, &payload);
}

/* A client retires another whose work it gives away. When it has the reply, all servers have the
 * membership. */
static void test_a_client_is_retired_though_it_is_here(void **state) {
  (void)state;
  world_open(&world, 27, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false), *other = add_client(&world, "other", false);
  run_until(client, is_in);
  run_until(other, is_in);
  assert_int_equal(ask_group(client, "job/.all", 1), PAWL_OK);
  uint64_t id = client->joined.id;
  assert_int_equal(ask_retire(other, other->joined.id), PAWL_INVALID);
  assert_int_equal(ask_retire(other, 4711), PAWL_OK); /* there is no such sender */
  for (int i = 0; i < 2; i++) {                       /* it may be said twice */
    assert_int_equal(ask_retire(other, id), PAWL_OK);
    assert_true(pwi_membership_is_retired(&s->membership, (struct pwi_sender){id}));
    assert_true(pwi_membership_is_retired(&other->membership, (struct pwi_sender){id}));
  }
  assert_int_equal(s->membership.member_count, 0);
  run_for(&world, PWI_SIM_SECOND); /* it comes back, and is told that it was retired */
  assert_int_equal(client->joined.status, PAWL_NODE_RETIRED);
  assert_true(pwi_membership_is_retired(&s->membership, (struct pwi_sender){id})); /* its clocks are kept */
  client->join.id = client->join.secret = 0;
  client->join.retired = id;
  say_join(client);
  run_until(client, is_in);
  assert_true(client->joined.id > id);
  world_close(&world);
}

static pawl_status ask_miss(struct actor *actor, uint64_t sender) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, sender);
  return ask(actor, PWI_ASK_MISS, &payload);
}

static void test_only_clients_of_ones_own_space_can_be_retired(void **state) {
  (void)state;
  world_open(&world, 28, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *free = add_client(&world, "free", false), *reader = add_client(&world, "reader", true);
  run_until(free, is_in);
  run_until(reader, is_in);
  world.rights = (struct pwi_rights){.write = true, .space = "ads"};
  struct actor *ours = add_client(&world, "ours", false), *mate = add_client(&world, "mate", false);
  run_until(ours, is_in);
  run_until(mate, is_in);
  world.rights = (struct pwi_rights){.write = true, .space = "news"};
  struct actor *others = add_client(&world, "others", false);
  run_until(others, is_in);
  assert_int_equal(ask_retire(ours, others->joined.id), PAWL_FORBIDDEN);
  assert_int_equal(ask_retire(ours, free->joined.id), PAWL_FORBIDDEN);
  assert_int_equal(ask_retire(reader, ours->joined.id), PAWL_FORBIDDEN);
  others->keeps_away = free->keeps_away = true; /* nor while they have no link */
  pwi_sim_break(world.sim, others->node, world.manager_node);
  pwi_sim_break(world.sim, free->node, world.manager_node);
  run_for(&world, 100 * PWI_SIM_MILLISECOND);
  assert_int_equal(ask_retire(ours, others->joined.id), PAWL_FORBIDDEN);
  assert_int_equal(ask_retire(ours, free->joined.id), PAWL_FORBIDDEN);
  assert_int_equal(ask_miss(ours, others->joined.id), PAWL_FORBIDDEN);
  free->keeps_away = false;
  world.rights = (struct pwi_rights){.write = true};
  OK(pwi_net_connect(free->net, MANAGER, &free->link));
  run_until(free, is_in);
  assert_int_equal(ask_retire(ours, mate->joined.id), PAWL_OK);
  assert_int_equal(ask_retire(free, others->joined.id), PAWL_OK);
  assert_true(pwi_membership_is_live(&s->membership, (struct pwi_sender){ours->joined.id}));
  assert_true(pwi_membership_is_live(&s->membership, (struct pwi_sender){free->joined.id}));
  world_close(&world);
}

static void test_a_retired_sender_is_forgotten_in_the_end(void **state) {
  (void)state;
  world_open(&world, 18, 1);
  pwi_sim_kill(world.sim, world.manager_node);
  world.config.keep_retired_ns = 5 * PWI_SIM_SECOND;
  OK(pwi_sim_start(world.sim, world.manager_node));
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  pwi_sim_kill(world.sim, client->node);
  run_until(s, sees_it_retired);
  run_until(s, has_no_senders);
  world_close(&world);
}

static void test_a_client_that_leaves_is_forgotten_at_once(void **state) {
  (void)state;
  world_open(&world, 19, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  struct actor *reader = add_client(&world, "reader", true);
  run_until(client, is_in);
  run_until(reader, is_in);
  say(client, PWI_SAY_LEAVE, 0, 0, NULL);
  say(reader, PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(client, has_left);
  run_until(reader, has_left);
  run_for(&world, PWI_SIM_SECOND / 10);
  assert_int_equal(s->membership.sender_count, 0);
  assert_int_equal(figures_of(&world).clients + figures_of(&world).retired, 0);
  world_close(&world);
}

static void test_a_client_that_is_lost_before_it_knew_its_id_is_forgotten(void **state) {
  (void)state;
  world_open(&world, 20, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  run_until(s, has_arcs);
  s->is_deaf = true;
  struct actor *client = add_client(&world, "client", false);
  run_for(&world, PWI_SIM_SECOND / 2);
  assert_int_equal(figures_of(&world).clients, 1);
  assert_int_equal(client->joins, 0);
  pwi_sim_kill(world.sim, client->node);
  run_for(&world, PWI_SIM_SECOND / 2);
  assert_int_equal(figures_of(&world).clients + figures_of(&world).retired, 0);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_clients_meet_in_a_group),
      cmocka_unit_test(test_a_group_and_a_peer_group_have_different_names),
      cmocka_unit_test(test_a_client_has_a_host_and_a_rack_of_one_word),
      cmocka_unit_test(test_a_client_that_returns_in_time_keeps_its_sender_id),
      cmocka_unit_test(test_a_client_is_retired_after_its_grace_and_comes_back_as_another),
      cmocka_unit_test(test_on_a_busy_machine_a_client_has_more_grace),
      cmocka_unit_test(test_a_client_keeps_its_grace_when_the_manager_stands_still),
      cmocka_unit_test(test_a_client_that_others_miss_is_retired_without_its_grace),
      cmocka_unit_test(test_a_client_is_retired_though_it_is_here),
      cmocka_unit_test(test_only_clients_of_ones_own_space_can_be_retired),
      cmocka_unit_test(test_a_retired_sender_is_forgotten_in_the_end),
      cmocka_unit_test(test_a_client_that_leaves_is_forgotten_at_once),
      cmocka_unit_test(test_a_client_that_is_lost_before_it_knew_its_id_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
