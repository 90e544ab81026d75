/* Rights of links: strangers, limited keys, revoked keys. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/testing.h"

static struct world world;

/* --- strangers and rights ------------------------------------------------------------------------------- */

static void test_a_link_without_join_is_closed(void **state) {
  (void)state;
  world_open(&world, 8, 1);
  struct pwi_join nothing = {0};
  struct actor *silent = add_actor(&world, "silent", &nothing);
  struct actor *rude = add_actor(&world, "rude", &nothing);
  silent->keeps_away = rude->keeps_away = true;
  run_for(&world, PWI_SIM_SECOND);
  assert_true(silent->up && rude->up);
  say(rude, PWI_SAY_LEAVE, 0, 0, NULL);
  run_for(&world, PWI_SIM_SECOND);
  assert_true(silent->up && !rude->up);
  assert_int_equal(rude->why_down, PAWL_LINK_PROTOCOL);
  run_for(&world, 4 * PWI_SIM_SECOND);
  assert_false(silent->up);
  assert_int_equal(silent->why_down, PAWL_TIMED_OUT);
  world_close(&world);
}

static void test_bytes_that_are_no_join_close_the_link(void **state) {
  (void)state;
  world_open(&world, 9, 1);
  struct actor *a = add_actor(&world, "a", &(struct pwi_join){0});
  a->keeps_away = true;
  run_for(&world, PWI_SIM_SECOND);
  struct pwi_writer junk = {0};
  pwi_write_text(&junk, "let me in");
  say(a, PWI_SAY_JOIN, 0, 0, &junk);
  pwi_writer_fini(&junk);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(a->why_down, PAWL_LINK_PROTOCOL);
  world_close(&world);
}

static void test_servers_need_a_key_without_limits(void **state) {
  (void)state;
  world_open(&world, 10, 1);
  world.rights = (struct pwi_rights){.write = true, .space = "mine"};
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  a->keeps_away = true;
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(a->joined.status, PAWL_FORBIDDEN);
  world.rights = (struct pwi_rights){.write = false};
  struct actor *b = add_server(&world, "b", 11, 0, 1);
  b->keeps_away = true;
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(b->joined.status, PAWL_FORBIDDEN);
  assert_int_equal(b->why_down, PAWL_FORBIDDEN);
  assert_int_equal(figures_of(&world).nodes_up, 0);
  world_close(&world);
}

static void test_keys_limit_the_changes_that_clients_may_make(void **state) {
  (void)state;
  world_open(&world, 11, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  world.rights = (struct pwi_rights){.write = true, .space = "mine"};
  struct actor *limited = add_client(&world, "limited", false);
  run_until(limited, is_in);
  assert_true(limited->joined.may_write);
  assert_string_equal(limited->joined.space, "mine");
  assert_int_equal(ask_create(limited, "yours/w"), PAWL_FORBIDDEN);
  assert_int_equal(ask_create(limited, "mine/w"), PAWL_OK);
  assert_int_equal(ask(limited, PWI_ASK_BALANCE, NULL), PAWL_FORBIDDEN);
  world.rights = (struct pwi_rights){.write = false};
  struct actor *reader = add_client(&world, "reader", false);
  run_until(reader, is_in);
  assert_int_equal(reader->joined.id, 0);
  assert_false(reader->joined.may_write);
  assert_int_equal(ask_create(reader, "mine/v"), PAWL_FORBIDDEN);
  struct pwi_writer name = {0};
  pwi_write_text(&name, "mine/w");
  assert_int_equal(ask(reader, PWI_ASK_DELETE, &name), PAWL_FORBIDDEN);
  world_close(&world);
}

static pawl_status ask_delete(struct actor *actor, const char *vector) {
  struct pwi_writer name = {0};
  pwi_write_text(&name, vector);
  return ask(actor, PWI_ASK_DELETE, &name);
}

/* An operator's key may give orders, but not touch values. */
static void test_an_operator_gives_orders_and_makes_nothing(void **state) {
  (void)state;
  world_open(&world, 12, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *owner = add_client(&world, "owner", false);
  run_until(owner, is_in);
  assert_int_equal(ask_create(owner, "mine/w"), PAWL_OK);
  assert_int_equal(ask_create(owner, "yours/w"), PAWL_OK);
  world.rights = (struct pwi_rights){.is_operator = true};
  struct actor *ops = add_client(&world, "operator", false);
  run_until(ops, is_in);
  assert_int_equal(ops->joined.id, 0);
  assert_false(ops->joined.may_write);
  assert_int_equal(ask_create(ops, "mine/v"), PAWL_FORBIDDEN);
  assert_int_equal(ask(ops, PWI_ASK_BALANCE, NULL), PAWL_OK);
  assert_int_equal(ask_delete(ops, "mine/w"), PAWL_OK);
  world.rights = (struct pwi_rights){.is_operator = true, .space = "mine"};
  struct actor *limited = add_client(&world, "limited", false);
  run_until(limited, is_in);
  assert_int_equal(ask(limited, PWI_ASK_BALANCE, NULL), PAWL_FORBIDDEN);
  assert_int_equal(ask_delete(limited, "yours/w"), PAWL_FORBIDDEN);
  world_close(&world);
}

/* The links in this world have one identity. */
static void test_one_connection_too_many_is_refused(void **state) {
  (void)state;
  world_open(&world, 13, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  world.rights = (struct pwi_rights){.write = true, .connections = 3};
  run_until(add_client(&world, "first", false), is_in);
  struct actor *second = add_client(&world, "second", false);
  run_until(second, is_in);
  struct actor *third = add_client(&world, "third", false);
  third->keeps_away = true;
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(third->why_down, PAWL_QUOTA_LINKS);
  assert_int_equal(ask_create(second, "mine/w"), PAWL_OK);
  world_close(&world);
}

/* A key is revoked: its links are closed, of servers and of clients, and it is not admitted again. */
static void test_links_of_a_key_that_is_gone_are_ended(void **state) {
  (void)state;
  world_open(&world, 14, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  pwi_manager_review(world.manager);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(ask_create(client, "mine/w"), PAWL_OK); /* nothing has changed */
  client->keeps_away = true;
  world.rights = (struct pwi_rights){.is_nobody = true};
  pwi_manager_review(world.manager);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(client->why_down, PAWL_LINK_KEY);
  struct actor *again = add_client(&world, "again", false);
  again->keeps_away = true;
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(again->why_down, PAWL_LINK_KEY);
  world_close(&world);
}

/* A key is limited to a space: a server may no longer have it, a client may. */
static void test_a_server_whose_key_is_limited_is_sent_away(void **state) {
  (void)state;
  world_open(&world, 16, 1);
  struct actor *server = add_server(&world, "s", 10, 0, 1), *client = add_client(&world, "client", false);
  run_until(server, has_arcs);
  run_until(client, is_in);
  server->keeps_away = true;
  world.rights = (struct pwi_rights){.write = true, .space = "mine"};
  pwi_manager_review(world.manager);
  run_for(&world, PWI_SIM_SECOND / 10);
  assert_int_equal(server->why_down, PAWL_FORBIDDEN);
  assert_true(client->up && client->joined_now);
  world_close(&world);
}

static const char *job_of(const struct actor *actor, uint64_t sender) {
  const struct pwi_membership_sender *found = pwi_membership_find(&actor->membership, (struct pwi_sender){sender});
  return found ? found->job : "";
}

static const char *rack_of(const struct actor *actor, uint64_t sender) {
  return pwi_membership_find(&actor->membership, (struct pwi_sender){sender})->rack;
}

static bool knows(struct actor *actor, uint64_t sender) { return job_of(actor, sender)[0] != '\0'; }

/* A client with a key for one space is told neither the vectors nor the jobs and racks of other spaces. It is
 * told those of its own space and of keys without limits. */
static void test_a_key_of_one_space_is_told_of_that_space(void **state) {
  (void)state;
  world_open(&world, 15, 1);
  run_until(add_server(&world, "s", 10, 0, 1), has_arcs);
  struct actor *clients[4];
  static const char *const spaces[] = {"", "mine", "yours", "mine"}, *const names[] = {"a", "b", "c", "d"};
  for (size_t i = 0; i < 4; i++) {
    char vector[32];
    world.rights = (struct pwi_rights){.write = true};
    snprintf(world.rights.space, sizeof world.rights.space, "%s", spaces[i]);
    clients[i] = add_client(&world, names[i], false);
    snprintf(clients[i]->join.job, sizeof clients[i]->join.job, "job%zu", i);
    snprintf(clients[i]->join.rack, sizeof clients[i]->join.rack, "rack%zu", i);
    run_until(clients[i], is_in);
    snprintf(vector, sizeof vector, "%s/w%zu", *spaces[i] ? spaces[i] : "all", i);
    assert_int_equal(ask_create(clients[i], vector), PAWL_OK);
  }
  run_for(&world, PWI_SIM_SECOND);
  static const size_t seen[] = {4, 2, 1, 2};
  static const char *const jobs[4][4] = {{"job0", "job1", "job2", "job3"},
                                         {"job0", "job1", "hidden", "job3"},
                                         {"job0", "hidden", "job2", "hidden"},
                                         {"job0", "job1", "hidden", "job3"}};
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(clients[i]->catalogue.count, seen[i]);
    for (size_t k = 0; k < seen[i] && *spaces[i]; k++)
      assert_true(pwi_name_is_in(clients[i]->catalogue.entries[k].name, spaces[i]));
    for (size_t k = 0; k < 4; k++) {
      uint64_t sender = clients[k]->joined.id;
      assert_true(knows(clients[i], sender));
      assert_string_equal(job_of(clients[i], sender), jobs[i][k]);
      bool is_hidden = strcmp(jobs[i][k], "hidden") == 0;
      assert_string_equal(rack_of(clients[i], sender), is_hidden ? "" : clients[k]->join.rack);
    }
    assert_int_equal(clients[i]->catalogue.number, clients[0]->catalogue.number);
    assert_int_equal(clients[i]->membership.number, clients[0]->membership.number);
  }
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_link_without_join_is_closed),
      cmocka_unit_test(test_bytes_that_are_no_join_close_the_link),
      cmocka_unit_test(test_servers_need_a_key_without_limits),
      cmocka_unit_test(test_keys_limit_the_changes_that_clients_may_make),
      cmocka_unit_test(test_an_operator_gives_orders_and_makes_nothing),
      cmocka_unit_test(test_one_connection_too_many_is_refused),
      cmocka_unit_test(test_links_of_a_key_that_is_gone_are_ended),
      cmocka_unit_test(test_a_server_whose_key_is_limited_is_sent_away),
      cmocka_unit_test(test_a_key_of_one_space_is_told_of_that_space),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
