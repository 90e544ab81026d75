/* The manager with servers and clients in the simulator: announcements and asks. manager/move_test.c tests
 * moves of arcs, manager/access_test.c rights of keys, manager/clients_test.c clients that come back. */
#include <jansson.h>

#include "base/testing.h"
#include "sim/sim.h"

#include "base/bytes.h"
#include "ring/plan.h"
#include "manager/testing.h"

static struct world world;

static bool knows_a_vector(struct actor *actor) { return actor->catalogue.count > 0; }

static bool sees_it_retired(struct actor *actor) {
  return actor->membership.sender_count > 0 && actor->membership.senders[0].retired;
}

static bool sees_one_down(struct actor *actor) {
  for (size_t i = 0; actor->view && i < actor->view->node_count; i++) {
    if (actor->view->nodes[i].state == PWI_NODE_DOWN) return true;
  }
  return false;
}

static bool sees_none_down(struct actor *actor) { return actor->view && !sees_one_down(actor); }

/* --- servers -------------------------------------------------------------------------------------------- */

static void test_first_arcs_wait_for_all_shards_of_enough_processes(void **state) {
  (void)state;
  world_open(&world, 1, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 2);
  struct actor *b = add_server(&world, "b", 10, 1, 2);
  struct actor *c = add_server(&world, "c", 20, 0, 2);
  run_for(&world, PWI_SIM_SECOND);
  assert_true(a->joined_now && b->joined_now && c->joined_now);
  assert_int_equal(figures_of(&world).arcs, 0);
  assert_false(figures_of(&world).ready);
  struct actor *d = add_server(&world, "d", 20, 1, 2);
  run_until(d, has_arcs);
  assert_true(figures_of(&world).ready);
  assert_int_equal(figures_of(&world).processes, 2);
  assert_int_equal(share_of(d->view, a), 25);
  assert_int_equal(share_of(d->view, d), 25);
  for (size_t i = 1; i < d->view->arc_count; i++) {
    assert_false(pwi_arc_same_chain(&d->view->arcs[i - 1], &d->view->arcs[i]));
  }
  world_close(&world);
}

static void test_one_server_holds_all_arcs(void **state) {
  (void)state;
  world_open(&world, 2, 0);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  assert_int_equal(a->view->arc_count, PWI_PLAN_POINTS);
  world_close(&world);
}

static void test_a_server_that_is_silent_is_down_and_keeps_its_arcs_until_it_returns(void **state) {
  (void)state;
  world_open(&world, 3, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  struct actor *b = add_server(&world, "b", 20, 0, 1);
  run_until(a, has_arcs);
  uint64_t id = b->joined.id;
  pwi_sim_cut(world.sim, b->node, PWI_SIM_ALL);
  pwi_sim_cut(world.sim, PWI_SIM_ALL, b->node);
  run_until(a, sees_one_down);
  assert_false(figures_of(&world).ready);
  assert_int_equal(share_of(a->view, b), 50);
  pwi_sim_mend(world.sim, b->node, PWI_SIM_ALL);
  pwi_sim_mend(world.sim, PWI_SIM_ALL, b->node);
  run_until(a, sees_none_down);
  run_until(b, is_in);
  assert_int_equal(b->joined.id, id);
  assert_true(figures_of(&world).ready);
  world_close(&world);
}

static int64_t time_until_down(int64_t allowance) {
  world_open(&world, 3, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  struct actor *b = add_server(&world, "b", 20, 0, 1);
  run_until(a, has_arcs);
  pwi_sim_allow(world.sim, allowance);
  pwi_sim_cut(world.sim, b->node, PWI_SIM_ALL);
  pwi_sim_cut(world.sim, PWI_SIM_ALL, b->node);
  int64_t begun = pwi_sim_now(world.sim);
  run_until(a, sees_one_down);
  int64_t took = pwi_sim_now(world.sim) - begun;
  world_close(&world);
  return took;
}

/* Its witness waits longer for it, once for what the manager allows, and once for what the witness does itself. */
static void test_on_a_busy_machine_a_server_has_more_time(void **state) {
  (void)state;
  int64_t later = time_until_down(300 * PWI_SIM_MILLISECOND) - time_until_down(0);
  assert_true(later >= 590 * PWI_SIM_MILLISECOND);
}

static void test_a_server_that_returns_within_its_grace_was_never_down(void **state) {
  (void)state;
  world_open(&world, 4, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  struct actor *b = add_server(&world, "b", 20, 0, 1);
  run_until(a, has_arcs);
  uint64_t epoch = figures_of(&world).epoch;
  pwi_sim_break(world.sim, b->node, world.manager_node);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(b->joins, 2);
  assert_int_equal(figures_of(&world).epoch, epoch);
  world_close(&world);
}

static void test_a_server_process_that_starts_anew_is_a_new_node(void **state) {
  (void)state;
  world_open(&world, 5, 1);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  uint64_t id = a->joined.id;
  a->join.process = 11;
  pwi_sim_kill(world.sim, a->node);
  run_for(&world, PWI_SIM_SECOND / 10);
  OK(pwi_sim_start(world.sim, a->node));
  run_until(a, is_in);
  assert_int_not_equal(a->joined.id, id);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  assert_false(figures_of(&world).ready); /* its arcs wait for the one that had them */
  world_close(&world);
}

static void test_a_client_with_a_wrong_secret_is_refused(void **state) {
  (void)state;
  world_open(&world, 6, 1);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, is_in);
  struct pwi_join join = a->join;
  join.secret ^= 1;
  struct actor *thief = add_actor(&world, "thief", &join);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(thief->joined.status, PAWL_NODE_RETIRED);
  assert_int_equal(thief->joined.secret, 0);
  assert_int_equal(a->downs, 0);
  world_close(&world);
}

static void test_a_newer_link_of_the_same_node_replaces_the_older(void **state) {
  (void)state;
  world_open(&world, 7, 1);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  a->keeps_away = true;
  struct actor *again = add_actor(&world, "again", &a->join);
  run_until(again, is_in);
  run_for(&world, 3 * PWI_SIM_SECOND); /* the old link's end starts no grace */
  assert_int_equal(a->downs, 1);
  assert_int_equal(again->joined.id, a->joined.id);
  assert_int_equal(figures_of(&world).nodes_up, 1);
  world_close(&world);
}

/* --- vectors -------------------------------------------------------------------------------------------- */

static void test_a_vector_is_announced_and_its_id_never_used_again(void **state) {
  (void)state;
  world_open(&world, 12, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  run_until(s, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  assert_int_equal(ask_create(client, "a/b"), PAWL_OK);
  uint64_t id = client->reply_id;
  assert_int_not_equal(id, 0);
  assert_true(knows_a_vector(client)); /* before the reply */
  assert_true(knows_a_vector(s));
  assert_int_equal(ask_create(client, "a/b"), PAWL_EXISTS);
  assert_int_equal(ask_create(client, "a/.b"), PAWL_INVALID);
  struct pwi_writer name = {0};
  pwi_write_text(&name, "a/b");
  assert_int_equal(ask(client, PWI_ASK_DELETE, &name), PAWL_OK);
  assert_int_equal(client->catalogue.count, 0);
  pwi_write_text(&name, "a/b");
  assert_int_equal(ask(client, PWI_ASK_DELETE, &name), PAWL_NOT_FOUND);
  assert_int_equal(ask_create(client, "a/b"), PAWL_OK);
  assert_true(client->reply_id > id);
  world_close(&world);
}

static void test_clients_hear_of_a_change_after_all_servers_that_are_up(void **state) {
  (void)state;
  world_open(&world, 13, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  struct actor *b = add_server(&world, "b", 20, 0, 1);
  run_until(b, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  struct actor *reader = add_client(&world, "reader", true);
  run_until(client, is_in);
  run_until(reader, is_in);
  b->is_deaf = true;
  struct pwi_writer payload = {0};
  struct pawl_vector_options options = {.type = PAWL_F32, .width = 1, .size = 10};
  pwi_write_text(&payload, "a/b");
  pwi_options_write(&payload, &options);
  say(client, PWI_SAY_ASK, ++client->asked, PWI_ASK_CREATE, &payload);
  pwi_writer_fini(&payload);
  run_for(&world, PWI_SIM_SECOND);
  assert_true(knows_a_vector(a) && knows_a_vector(b));
  assert_false(knows_a_vector(client) || knows_a_vector(reader) || has_reply(client));
  pwi_sim_kill(world.sim, b->node); /* a dead server need not confirm it */
  run_until(client, has_reply);
  assert_int_equal(client->reply, PAWL_OK);
  assert_true(knows_a_vector(client));
  run_until(reader, knows_a_vector);
  world_close(&world);
}

static void test_a_peer_that_asks_for_news_is_sent_it(void **state) {
  (void)state;
  world_open(&world, 25, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  run_until(s, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  struct actor *reader = add_client(&world, "reader", true);
  run_until(client, is_in);
  run_until(reader, is_in);
  assert_int_equal(ask_create(client, "a/b"), PAWL_OK);
  assert_int_equal(ask(reader, PWI_ASK_SYNC, NULL), PAWL_OK);
  assert_true(knows_a_vector(reader));
  assert_int_equal(reader->control.head.catalogue, 1);
  world_close(&world);
}

static pawl_status ask_drain(struct actor *actor, uint64_t node, const char *address) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, node);
  pwi_write_text(&payload, address);
  return ask(actor, PWI_ASK_DRAIN, &payload);
}

/* As if each of its shards had said LEAVE. */
static void test_an_operator_has_a_server_leave(void **state) {
  (void)state;
  for (int by_address = 0; by_address < 2; by_address++) {
    world_open(&world, 16, 2);
    struct actor *a = add_server(&world, "a", 10, 0, 2), *a2 = add_server(&world, "a2", 10, 1, 2);
    struct actor *b = add_server(&world, "b", 20, 0, 1);
    run_until(b, has_arcs);
    struct actor *client = add_client(&world, "client", false);
    run_until(client, is_in);
    assert_int_equal(ask_drain(client, 99, ""), PAWL_NODE_GONE);
    assert_int_equal(ask_drain(client, 0, "nobody:7001"), PAWL_NODE_GONE);
    a->keeps_away = a2->keeps_away = true;
    assert_int_equal(ask_drain(client, by_address ? 0 : a2->joined.id, by_address ? "tcp://a2:7001" : ""), PAWL_OK);
    assert_int_equal(figures_of(&world).nodes_draining, 2);
    assert_int_equal(ask_drain(client, a->joined.id, ""), PAWL_OK); /* asking again is harmless */
    run_until(a, has_left);
    run_until(a2, has_left);
    run_for(&world, PWI_SIM_SECOND);
    assert_int_equal(share_of(b->view, b), 100);
    assert_int_equal(figures_of(&world).nodes_up, 1);
    assert_int_equal(figures_of(&world).nodes_draining, 0);
    assert_int_equal(ask_drain(client, a->joined.id, ""), PAWL_NODE_GONE);
    world_close(&world);
  }
}

static void test_only_a_key_without_limits_drains(void **state) {
  (void)state;
  world_open(&world, 17, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  run_until(s, has_arcs);
  world.rights = (struct pwi_rights){.write = true, .space = "ads"};
  struct actor *limited = add_client(&world, "limited", false);
  run_until(limited, is_in);
  assert_int_equal(ask_drain(limited, s->joined.id, ""), PAWL_FORBIDDEN);
  world.rights = (struct pwi_rights){.write = false};
  struct actor *reader = add_client(&world, "reader", false);
  run_until(reader, is_in);
  assert_int_equal(ask_drain(reader, s->joined.id, ""), PAWL_FORBIDDEN);
  assert_int_equal(figures_of(&world).nodes_draining, 0);
  world_close(&world);
}

static void test_nonsense_is_answered_as_such(void **state) {
  (void)state;
  world_open(&world, 14, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  assert_int_equal(ask(client, (enum pwi_ask)77, NULL), PAWL_UNSUPPORTED);
  for (int what = PWI_ASK_CREATE; what <= PWI_ASK_LISTEN; what++) {
    if (what == PWI_ASK_STATUS || what == PWI_ASK_BALANCE) continue;
    struct pwi_writer payload = {0};
    pwi_write_u8(&payload, 9);
    assert_int_equal(ask(client, (enum pwi_ask)what, &payload), PAWL_INVALID);
  }
  assert_int_equal(ask(client, PWI_ASK_BALANCE, NULL), PAWL_NOT_FOUND); /* there is no arc */
  assert_int_equal(ask_drain(client, 0, ""), PAWL_INVALID);
  assert_int_equal(ask_drain(client, 1, "both:1"), PAWL_INVALID);
  struct pwi_writer address = {0};
  pwi_write_text(&address, "not an address");
  assert_int_equal(ask(client, PWI_ASK_LISTEN, &address), PAWL_INVALID);
  pwi_write_text(&address, "here:9");
  assert_int_equal(ask(client, PWI_ASK_LISTEN, &address), PAWL_OK);
  assert_string_equal(client->membership.senders[0].address, "here:9");
  world_close(&world);
}

/* --- a manager that is started again -------------------------------------------------------------------- */

static void test_a_restarted_manager_has_its_earlier_state(void **state) {
  (void)state;
  world_open(&world, 21, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  run_until(s, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  assert_int_equal(ask_create(client, "a/b"), PAWL_OK);
  struct pwi_manager_figures before = figures_of(&world);
  uint64_t node = s->joined.id, sender = client->joined.id;
  pwi_sim_kill(world.sim, world.manager_node);
  run_for(&world, PWI_SIM_SECOND / 10);
  OK(pwi_sim_start(world.sim, world.manager_node));
  run_until(s, is_in);
  run_until(client, is_in);
  run_for(&world, 5 * PWI_SIM_SECOND);
  struct pwi_manager_figures after = figures_of(&world);
  assert_memory_equal(&before, &after, sizeof before);
  assert_int_equal(s->joined.id, node);
  assert_int_equal(client->joined.id, sender);
  world_close(&world);
}

static void test_after_a_restart_nodes_that_do_not_return_are_given_up(void **state) {
  (void)state;
  world_open(&world, 22, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  struct actor *b = add_server(&world, "b", 20, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  run_until(a, has_arcs);
  pwi_sim_kill(world.sim, world.manager_node);
  pwi_sim_kill(world.sim, b->node);
  pwi_sim_kill(world.sim, client->node);
  OK(pwi_sim_start(world.sim, world.manager_node));
  run_until(a, sees_one_down);
  run_until(a, sees_it_retired);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  world_close(&world);
}

static void test_a_manager_that_has_lost_views_refuses_all_nodes(void **state) {
  (void)state;
  world_open(&world, 26, 1);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  a->keeps_away = true;
  a->numbers[0] = 1000;
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(a->joined.status, PAWL_CLUSTER_HISTORY);
  assert_int_equal(figures_of(&world).nodes_up, 0);
  assert_int_equal(figures_of(&world).stopped, PAWL_OK); /* the server was never in this cluster */
  world_close(&world);
}

/* --- what it says of itself ----------------------------------------------------------------------------- */

static void say_report(struct actor *server, uint64_t pushes) {
  struct pwi_report report = {.rows = 5, .bytes = 40, .pushes = pushes};
  struct pwi_writer payload = {0};
  pwi_report_encode(&report, NULL, 0, &payload);
  say(server, PWI_SAY_REPORT, 0, 0, &payload);
  pwi_writer_fini(&payload);
}

/* A server of this version reports holds, too. */
static void say_holds(struct actor *server, uint64_t now, uint64_t all) {
  struct pwi_report report = {.rows = 5, .bytes = 40, .pushes = 600};
  struct pwi_writer payload = {0};
  uint8_t holds[2 * sizeof(uint64_t)];
  pwi_report_encode(&report, NULL, 0, &payload);
  pwi_put_u64(holds, now);
  pwi_put_u64(holds + sizeof(uint64_t), all);
  struct pwi_enclosure enclosures[] = {{PWI_SECTION_PAYLOAD, payload.data, payload.size},
                                       {PWI_SECTION_HOLDS, holds, sizeof holds}};
  struct pwi_message_head head = {.kind = PWI_SAY_REPORT, .sender = server->joined.id};
  OK(pwi_messenger_send(&server->messenger, server->link, &server->peering.link, &head, enclosures, 2));
  pwi_writer_fini(&payload);
}

static void add_relay(const char *name) {
  struct pwi_join join = {.role = PWI_ROLE_CLIENT, .job = "pawl-relay.near-4.fixed", .rack = "r1"};
  snprintf(join.address, sizeof join.address, "tcp://%s:1", name);
  run_until(add_actor(&world, name, &join), is_in);
}

static void test_relays_are_no_clients(void **state) {
  (void)state;
  world_open(&world, 25, 1);
  add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  add_relay("relay");
  assert_int_equal(figures_of(&world).clients, 1);
  assert_int_equal(figures_of(&world).relays, 1);
  assert_int_equal(ask(client, PWI_ASK_STATUS, NULL), PAWL_OK);
  json_t *root = json_loads(client->reply_text, 0, NULL);
  assert_int_equal(json_integer_value(json_object_get(root, "clients")), 1);
  assert_int_equal(json_array_size(json_object_get(root, "jobs")), 1);
  assert_int_equal(json_array_size(json_object_get(root, "client_hosts")), 1);
  assert_int_equal(json_array_size(json_object_get(root, "relays")), 1);
  assert_string_equal(json_string_value(json_object_get(root, "relay_tree")), "near-4.fixed");
  json_t *relay = json_array_get(json_object_get(root, "relays"), 0);
  assert_string_equal(json_string_value(json_object_get(relay, "tree")), "near-4.fixed");
  assert_string_equal(json_string_value(json_object_get(relay, "address")), "tcp://relay:1");
  assert_string_equal(json_string_value(json_object_get(relay, "host")), "relay");
  assert_string_equal(json_string_value(json_object_get(relay, "rack")), "r1");
  assert_true(json_integer_value(json_object_get(relay, "id")) > 0);
  json_decref(root);
  world_close(&world);
}

static void test_status_is_json_that_tells_all(void **state) {
  (void)state;
  world_open(&world, 23, 1);
  struct actor *s = add_server(&world, "s", 10, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  assert_int_equal(ask_create(client, "a/b"), PAWL_OK);
  assert_int_equal(ask_group(client, "job/.all", 1), PAWL_OK);
  say_report(s, 100);
  run_for(&world, PWI_SIM_SECOND);
  say_holds(s, 3, 70);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(ask(client, PWI_ASK_STATUS, NULL), PAWL_OK);
  json_t *root = json_loads(client->reply_text, 0, NULL);
  assert_non_null(root);
  assert_true(json_is_true(json_object_get(root, "ready")));
  json_t *node = json_array_get(json_object_get(root, "nodes"), 0);
  assert_string_equal(json_string_value(json_object_get(node, "state")), "up");
  assert_int_equal(json_integer_value(json_object_get(node, "rows")), 5);
  assert_int_equal(json_integer_value(json_object_get(node, "lanes_held")), 3);
  assert_int_equal(json_integer_value(json_object_get(node, "holds")), 70);
  double rate = json_real_value(json_object_get(node, "pushes_per_s"));
  assert_true(rate > 400 && rate < 600);
  json_t *arcs = json_object_get(root, "arcs");
  json_t *arc = json_array_get(arcs, json_array_size(arcs) - 1);
  assert_string_equal(json_string_value(json_object_get(arc, "end")), "18446744073709551615");
  json_t *vector = json_array_get(json_object_get(root, "vectors"), 0);
  assert_string_equal(json_string_value(json_object_get(vector, "name")), "a/b");
  assert_string_equal(json_string_value(json_object_get(vector, "layout")), "dense");
  json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
  assert_int_equal(json_integer_value(json_object_get(job, "clients")), 1);
  json_t *group = json_array_get(json_object_get(root, "groups"), 0);
  assert_string_equal(json_string_value(json_object_get(group, "kind")), "group");
  assert_true(json_integer_value(json_object_get(group, "number")) > 0);
  json_t *hosts = json_object_get(root, "client_hosts");
  assert_int_equal(json_array_size(hosts), 1);
  assert_int_equal(json_integer_value(json_object_get(json_array_get(hosts, 0), "clients")), 1);
  assert_non_null(json_object_get(json_array_get(hosts, 0), "rack"));
  assert_int_equal(json_array_size(json_object_get(root, "relays")), 0);
  assert_true(json_is_null(json_object_get(root, "relay_tree")));
  json_decref(root);
  world_close(&world);
}

static void test_a_run_is_replayed_by_its_seed(void **state) {
  uint64_t hashes[2];
  (void)state;
  for (int i = 0; i < 2; i++) {
    world_open(&world, 24, 2);
    struct actor *a = add_server(&world, "a", 10, 0, 1);
    add_server(&world, "b", 20, 0, 1);
    add_client(&world, "client", false);
    run_until(a, has_arcs);
    run_for(&world, PWI_SIM_SECOND);
    hashes[i] = pwi_sim_trace_hash(world.sim);
    world_close(&world);
  }
  assert_true(hashes[0] == hashes[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_arcs_wait_for_all_shards_of_enough_processes),
      cmocka_unit_test(test_one_server_holds_all_arcs),
      cmocka_unit_test(test_a_server_that_is_silent_is_down_and_keeps_its_arcs_until_it_returns),
      cmocka_unit_test(test_on_a_busy_machine_a_server_has_more_time),
      cmocka_unit_test(test_a_server_that_returns_within_its_grace_was_never_down),
      cmocka_unit_test(test_a_server_process_that_starts_anew_is_a_new_node),
      cmocka_unit_test(test_a_client_with_a_wrong_secret_is_refused),
      cmocka_unit_test(test_a_newer_link_of_the_same_node_replaces_the_older),
      cmocka_unit_test(test_a_vector_is_announced_and_its_id_never_used_again),
      cmocka_unit_test(test_clients_hear_of_a_change_after_all_servers_that_are_up),
      cmocka_unit_test(test_a_peer_that_asks_for_news_is_sent_it),
      cmocka_unit_test(test_an_operator_has_a_server_leave),
      cmocka_unit_test(test_only_a_key_without_limits_drains),
      cmocka_unit_test(test_nonsense_is_answered_as_such),
      cmocka_unit_test(test_a_restarted_manager_has_its_earlier_state),
      cmocka_unit_test(test_after_a_restart_nodes_that_do_not_return_are_given_up),
      cmocka_unit_test(test_a_manager_that_has_lost_views_refuses_all_nodes),
      cmocka_unit_test(test_status_is_json_that_tells_all),
      cmocka_unit_test(test_relays_are_no_clients),
      cmocka_unit_test(test_a_run_is_replayed_by_its_seed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
