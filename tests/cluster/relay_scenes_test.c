/* Relays, step by step: pushes become one, and nobody acts for others without the right to. */
#include "relay_scene.h"

static void test_pushes_of_a_tick_become_one_message_for_each_arc(void **state) {
  (void)state;
  open_scene(2, true);
  run_tick(); /* makes links */
  run_tick();
  struct pwi_relay_figures before = figures();
  for (int i = 0; i < 20; i++) run_tick();
  struct pwi_relay_figures after = figures();
  uint64_t aggregates = after.aggregates - before.aggregates;
  assert_int_equal(after.refused, before.refused);
  assert_int_equal(after.applied - before.applied, aggregates);
  assert_int_equal(after.pushes - before.pushes, MEMBERS * aggregates);
  assert_true(aggregates >= 20);
  assert_int_equal(after.waiting + after.waiting_bytes, 0);
  pwi_cluster_close(&scene.cluster);
}

static void test_members_go_on_without_a_relay_that_dies_and_use_it_again(void **state) {
  (void)state;
  open_scene(2, true);
  for (int i = 0; i < 3; i++) run_tick();
  pwi_sim_kill(scene.cluster.sim, scene.relay.node);
  for (int i = 0; i < 3; i++) run_tick();
  cluster_run_for(&scene.cluster, 5000 * MS);
  assert_int_equal(pwi_sim_start(scene.cluster.sim, scene.relay.node), PAWL_OK);
  cluster_wait_joined(&scene.relay);
  cluster_run_for(&scene.cluster, 500 * MS);
  for (int i = 0; i < 5; i++) run_tick();
  assert_true(figures().applied > 0);
  pwi_cluster_close(&scene.cluster);
}

static void test_a_relay_that_leaves_is_not_used_any_more(void **state) {
  (void)state;
  open_scene(2, true);
  for (int i = 0; i < 3; i++) run_tick();
  pwi_relay_leave(scene.relay.relay);
  cluster_run_for(&scene.cluster, 1000 * MS);
  assert_true(pwi_client_has_left(scene.relay.client));
  uint64_t before = figures().pushes;
  for (int i = 0; i < 3; i++) run_tick();
  assert_int_equal(figures().pushes, before);
  pwi_cluster_close(&scene.cluster);
}

static pawl_status swallow(void *context, struct pwi_link link, const struct pwi_peering *peering,
                           const struct pwi_control *control, const void *body) {
  (void)context, (void)link, (void)peering, (void)control, (void)body;
  return PAWL_OK;
}

static void test_a_relay_that_never_answers_delays_a_push_and_loses_none(void **state) {
  (void)state;
  open_scene(2, true);
  scene.relay.relay->relaying.request = swallow;
  for (int i = 0; i < 5; i++) run_tick();
  pwi_cluster_close(&scene.cluster);
}

static void test_a_relay_without_memory_leaves_pushes_to_their_senders(void **state) {
  (void)state;
  open_scene(2, true);
  scene.relay.relay->config.memory_max = 10;
  for (int i = 0; i < 5; i++) run_tick();
  assert_int_equal(figures().aggregates, 0);
  assert_true(figures().refused > 0);
  pwi_cluster_close(&scene.cluster);
}

/* --- little memory, and bad bytes ----------------------------------------------------------------------- */

/* Until the relay has applied pushes of all members, after a failure or without one. */
static void use_relay(void) {
  uint64_t before;
  int left = 100;
  do {
    before = figures().applied;
    run_tick();
    cluster_run_for(&scene.cluster, 100 * MS);
  } while ((is_armed || figures().applied == before) && --left > 0);
  assert_true(left > 0);
}

static void test_a_relay_survives_the_failure_of_any_allocation(void **state) {
  (void)state;
  open_scene(1, true);
  for (int i = 0; i < 3; i++) run_tick();
  take = scene.relay.relay->relaying.request;
  scene.relay.relay->relaying.request = take_with_little_memory;
  fails_after = 0;
  do {
    is_armed = true;
    use_relay();
    fails_after++;
  } while (has_failed);
  assert_true(fails_after > 4);
  scene.relay.relay->relaying.request = take;
  pwi_cluster_close(&scene.cluster);
}

static pawl_status spoil(void *context, struct pwi_link link, const struct pwi_peering *peering,
                         const struct pwi_control *control, const void *body) {
  static unsigned char spoilt[1 << 16];
  const struct pwi_section *terms = pwi_sections_find(&control->sections, PWI_SECTION_TERMS);
  assert_true(terms && control->head.body_size <= sizeof spoilt);
  memcpy(spoilt, body, control->head.body_size);
  spoilt[terms->offset] = 0xee; /* an unknown kind */
  return take(context, link, peering, control, spoilt);
}

static void test_a_malformed_request_costs_its_link_and_nothing_else(void **state) {
  (void)state;
  open_scene(1, true);
  for (int i = 0; i < 3; i++) run_tick();
  take = scene.relay.relay->relaying.request;
  scene.relay.relay->relaying.request = spoil;
  for (int i = 0; i < 3; i++) run_tick();
  scene.relay.relay->relaying.request = take;
  cluster_run_for(&scene.cluster, 5000 * MS);
  uint64_t before = figures().applied;
  for (int i = 0; i < 5; i++) run_tick();
  assert_true(figures().applied > before);
  pwi_cluster_close(&scene.cluster);
}

static void test_nothing_leaks(void **state) {
  uint64_t before = pwi_memory_counts().live;
  (void)state;
  open_scene(2, true);
  for (int i = 0; i < 5; i++) run_tick();
  pwi_sim_kill(scene.cluster.sim, scene.relay.node);
  run_tick();
  pwi_cluster_close(&scene.cluster);
  assert_int_equal(pwi_memory_counts().live, before);
}

static void test_a_limited_key_cannot_be_a_relay(void **state) {
  struct pwi_client_state client;
  (void)state;
  open_scene(2, false);
  add_relay(&scene.relay, "ads-relay");
  cluster_run_for(&scene.cluster, 2000 * MS);
  pwi_client_state(scene.relay.client, &client);
  assert_false(client.joined);
  assert_int_equal(client.trouble, PAWL_FORBIDDEN);
  pwi_cluster_close(&scene.cluster);
}

/* --- aggregates that a server must not take ------------------------------------------------------------- */

/* An aggregate in the name of the first member, with this proof. Returns the status of its task. */
static pawl_status act_after(struct pwi_cluster_client *actor, uint64_t relay, const uint8_t seal[PWI_SEAL_SIZE],
                             uint32_t hops) {
  struct pwi_flow *flow = cluster_open_vector(actor, VECTOR, 0);
  struct pwi_client_state victim;
  pwi_client_state(scene.members[0].client, &victim);
  struct pwi_contributor contributor = {.sender = {victim.sender}, .task = 1000, .relay = relay};
  memcpy(contributor.seal, seal, PWI_SEAL_SIZE);
  static struct pwi_task task;
  static struct pwi_relayed relayed;
  struct pwi_writer writer = {0};
  pwi_contributors_encode(&contributor, 1, hops, &writer);
  relayed = (struct pwi_relayed){.kind = PWI_REQUEST_PUSH,
                                 .group = pwi_flow_entry(scene.groups[0])->id,
                                 .tick = scene.tick + 1,
                                 .claim = {0, KEYS},
                                 .range = {0, KEYS},
                                 .rows = KEYS,
                                 .in = scene.in,
                                 .contributors = writer.data,
                                 .contributors_size = writer.size,
                                 .hops = 1};
  task = (struct pwi_task){.finished = finished};
  scene.under_way = 1;
  assert_int_equal(pwi_client_relay(actor->client, &task, flow, &relayed), PAWL_OK);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 5000 * MS);
  pwi_writer_fini(&writer);
  return task.status;
}

static pawl_status act(struct pwi_cluster_client *actor, uint64_t relay, const uint8_t seal[PWI_SEAL_SIZE]) {
  return act_after(actor, relay, seal, 1);
}

static uint64_t sender_of(const struct pwi_cluster_client *client) {
  struct pwi_client_state is;
  pwi_client_state(client->client, &is);
  return is.sender;
}

static void test_nobody_acts_for_a_sender_that_has_not_proved_itself_to_a_relay(void **state) {
  static const uint8_t nothing[PWI_SEAL_SIZE];
  struct pwi_cluster_client thief = {.name = "thief", .job = "work"}, other;
  uint8_t secret[PWI_SEAL_SECRET] = {1}, forged[PWI_SEAL_SIZE];
  struct pwi_client_state victim;
  (void)state;
  open_scene(1, true); /* one arc, so that the claim is not the reason */
  for (int i = 0; i < 3; i++) run_tick();
  pwi_client_state(scene.members[0].client, &victim);
  cluster_client_add(&scene.cluster, &thief);
  cluster_wait_joined(&thief);
  add_relay(&other, "other");
  cluster_wait_joined(&other);
  cluster_run_for(&scene.cluster, 500 * MS);
  uint64_t relay = sender_of(&other);
  assert_int_equal(pwi_proof_make(secret, victim.cluster, victim.sender, relay | PWI_VERIFIER_IS_SENDER, forged),
                   PAWL_OK);
  assert_int_not_equal(act(&thief, sender_of(&thief), nothing), PAWL_OK); /* no relay */
  assert_int_not_equal(act(&thief, relay, forged), PAWL_OK);
  assert_int_not_equal(act(&other, relay, nothing), PAWL_OK); /* a relay, and no proof */
  assert_int_not_equal(act(&other, relay, forged), PAWL_OK);
  assert_int_not_equal(act(&other, sender_of(&scene.members[1]), forged), PAWL_OK); /* proved to no relay */
  run_tick(); /* nothing was added, and no number was used up */
  pwi_cluster_close(&scene.cluster);
}

/* Two relays of one rack, of which one sends to the other. It sends what has passed as many relays as none may. */
static void test_a_relay_notices_that_relays_send_in_a_circle(void **state) {
  static const struct pwi_relay_tree rack = {.tree = PWI_TREE_RACK, .is_fixed = true};
  static const uint8_t nothing[PWI_SEAL_SIZE];
  struct pwi_cluster_client both[2];
  (void)state;
  open_scene(1, false);
  for (size_t i = 0; i < 2; i++) {
    add_relay_of(&both[i], i == 0 ? "first" : "second", &rack);
    cluster_wait_joined(&both[i]);
  }
  cluster_run_for(&scene.cluster, 500 * MS);
  const struct pwi_relays *relays = pwi_client_relays(both[0].client);
  size_t lower = pwi_relays_above(relays, sender_of(&both[0]), 0) == 0 ? 1 : 0;
  assert_int_equal(pwi_relays_above(relays, sender_of(&both[lower]), 0), sender_of(&both[1 - lower]));
  struct pwi_relay_figures before, after;
  assert_int_not_equal(act_after(&both[lower], 1, nothing, 1), PAWL_OK); /* makes the link */
  cluster_run_for(&scene.cluster, 500 * MS);
  pwi_relay_figures(both[1 - lower].relay, &before);
  assert_int_not_equal(act_after(&both[lower], 1, nothing, PWI_RELAY_HOPS_MAX), PAWL_OK);
  pwi_relay_figures(both[1 - lower].relay, &after);
  assert_int_equal(after.refused, before.refused + 1);
  assert_int_equal(after.pushes, before.pushes);
  pwi_cluster_close(&scene.cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pushes_of_a_tick_become_one_message_for_each_arc),
      cmocka_unit_test(test_members_go_on_without_a_relay_that_dies_and_use_it_again),
      cmocka_unit_test(test_a_relay_that_leaves_is_not_used_any_more),
      cmocka_unit_test(test_a_relay_that_never_answers_delays_a_push_and_loses_none),
      cmocka_unit_test(test_a_relay_without_memory_leaves_pushes_to_their_senders),
      cmocka_unit_test(test_a_relay_survives_the_failure_of_any_allocation),
      cmocka_unit_test(test_a_malformed_request_costs_its_link_and_nothing_else),
      cmocka_unit_test(test_nothing_leaks),
      cmocka_unit_test(test_a_limited_key_cannot_be_a_relay),
      cmocka_unit_test(test_a_relay_notices_that_relays_send_in_a_circle),
      cmocka_unit_test(test_nobody_acts_for_a_sender_that_has_not_proved_itself_to_a_relay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
