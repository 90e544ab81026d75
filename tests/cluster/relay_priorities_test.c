/* Priorities through relays: what an urgent member pushes or pulls through a relay does not wait for less urgent jobs,
 * and no relay is more urgent than the members for which it acts. */
#include "relay_scene.h"
#include "server/inside.h"

/* The first relay is at the top. */
static const struct pwi_relay_tree above = {.tree = PWI_TREE_RACK, .is_fixed = true};

/* A client of another job, which pushes without a pause. */
static struct {
  struct pwi_cluster_client client;
  struct pwi_flow *flow;
  struct pwi_task task;
  bool goes_on, is_busy;
} rival;

static void push_again(struct pwi_task *task) {
  static const int64_t one = 1;
  struct pwi_where where = {.range = {0, 1}};
  assert_int_equal(task->status, PAWL_OK);
  rival.is_busy = rival.goes_on;
  if (!rival.goes_on) return;
  *task = (struct pwi_task){.finished = push_again};
  assert_int_equal(pwi_client_start(rival.client.client, task, rival.flow, PWI_REQUEST_PUSH, &where, &one, NULL),
                   PAWL_OK);
}

static void start_rival(uint8_t priority) {
  memset(&rival, 0, sizeof rival);
  rival.client = (struct pwi_cluster_client){.name = "rival", .job = "other", .priority = priority};
  cluster_client_add(&scene.cluster, &rival.client);
  cluster_wait_joined(&rival.client);
  rival.flow = cluster_vector(&rival.client, "space/other", &adding);
  rival.goes_on = true;
  push_again(&rival.task);
  cluster_run_for(&scene.cluster, 500 * MS);
}

static bool is_busy(void *context) {
  (void)context;
  return rival.is_busy;
}

static void stop_rival(void) {
  rival.goes_on = false;
  cluster_run_while(&scene.cluster, is_busy, NULL, 10000 * MS);
}

static void urge(uint8_t first, uint8_t second, uint8_t third) {
  memcpy(urgency, (uint8_t[]){first, second, third}, sizeof urgency);
  highest = 0;
}

/* Runs until nothing is under way. Returns how long that took. */
static int64_t await_all(void) {
  int64_t begun = pwi_sim_now(scene.cluster.sim);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 60000 * MS);
  return pwi_sim_now(scene.cluster.sim) - begun;
}

static int64_t time_tick(void) {
  start_all();
  int64_t took = await_all();
  for (size_t i = 0; i < MEMBERS; i++) assert_int_equal(scene.out[i][0], scene.tick * MEMBERS);
  return took;
}

/* A member pulls rows that must be read now: nobody has finished the tick. */
static void start_pull(size_t i) {
  struct pwi_where where = {.range = {0, KEYS}, .group = pwi_flow_entry(scene.groups[i])->id.id, .tick = 1};
  scene.tasks[i] = (struct pwi_task){.finished = finished};
  scene.under_way++;
  assert_int_equal(pwi_client_start(scene.members[i].client, &scene.tasks[i], scene.flows[i], PWI_REQUEST_PULL, &where,
                                    NULL, scene.out[i]),
                   PAWL_OK);
}

/* Links and rights are there. */
static void warm_pulls(void) {
  for (int k = 0; k < 5; k++)
    for (size_t i = 0; i < MEMBERS; i++) {
      start_pull(i);
      await_all();
      cluster_run_for(&scene.cluster, 200 * MS);
    }
}

static const struct server_peer *peer_of(const struct pwi_cluster_client *client) {
  const struct server_peer *peer = scene.cluster.servers[0].server->peers;
  while (peer && (peer->kind != PEER_CLIENT || strcmp(peer->peering.hello.host, client->name) != 0)) peer = peer->next;
  assert_non_null(peer);
  return peer;
}

static void test_pushes_of_urgent_members_are_not_held_behind_a_less_urgent_job(void **state) {
  (void)state;
  urge(9, 9, 9);
  open_scene(1, true);
  time_tick(); /* makes links */
  time_tick();
  start_rival(6);
  struct pwi_relay_figures before = figures();
  int64_t took = 0;
  for (int i = 0; i < 20; i++) took += time_tick();
  struct pwi_relay_figures after = figures();
  assert_true(took < 1000 * MS); /* a level that is held waits 2 s for its turn */
  assert_int_equal(after.applied - before.applied, 20);
  assert_int_equal(after.refused, before.refused);
  assert_int_equal(after.priority, 9);
  assert_int_equal(after.children, MEMBERS);
  assert_int_equal(peer_of(&scene.relay)->priority, 9);
  assert_int_equal(peer_of(&scene.relay)->peering.hello.role, PWI_ROLE_RELAY);
  stop_rival();
  pwi_cluster_close(&scene.cluster);
}

static void test_members_that_have_time_are_held_through_a_relay_as_without_one(void **state) {
  (void)state;
  urge(2, 2, 2);
  open_scene(1, true);
  time_tick();
  time_tick();
  start_rival(4); /* below that of a relay whose members state none */
  assert_int_equal(peer_of(&scene.relay)->priority, 2);
  assert_true(peer_of(&scene.relay)->is_held);
  assert_true(time_tick() > 1000 * MS); /* until its turn */
  stop_rival();
  pwi_cluster_close(&scene.cluster);
}

static void test_the_level_follows_the_requests_that_are_under_way(void **state) {
  (void)state;
  urge(9, 5, 3);
  open_scene(1, true);
  warm_pulls();
  for (size_t i = 0; i < MEMBERS; i++) {
    uint64_t reads = figures().reads;
    start_pull(i);
    await_all();
    assert_int_equal(figures().reads, reads + 1);
    assert_int_equal(figures().priority, urgency[i]);
    cluster_run_for(&scene.cluster, 100 * MS);
    assert_int_equal(peer_of(&scene.relay)->priority, urgency[i]);
  }
  pwi_cluster_close(&scene.cluster);
}

static void test_an_urgent_request_takes_along_what_it_waits_for(void **state) {
  (void)state;
  urge(9, 5, 5);
  open_scene(1, true);
  warm_pulls();
  start_rival(7);
  start_pull(1);
  cluster_run_for(&scene.cluster, 300 * MS);
  assert_int_equal(scene.under_way, 1);
  assert_true(peer_of(&scene.relay)->is_held);
  start_pull(0); /* it is behind the read of the other member */
  assert_true(await_all() < 300 * MS);
  assert_int_equal(peer_of(&scene.relay)->priority, 9);
  stop_rival();
  pwi_cluster_close(&scene.cluster);
}

/* Its message has come after its request. */
static void test_a_child_that_becomes_urgent_takes_its_requests_along(void **state) {
  (void)state;
  urge(2, 2, 2);
  open_scene(1, true);
  time_tick();
  time_tick();
  start_rival(4);
  start_all();
  cluster_run_for(&scene.cluster, 300 * MS);
  assert_int_equal(scene.under_way, MEMBERS);
  struct pwi_relay *relay = scene.relay.relay;
  struct pwi_link child = relay->sums->crowd.waiters[0].link;
  assert_int_equal(relay->relaying.priority(relay, child, PWI_PRIORITY_HIGHEST + 1), PAWL_UNSUPPORTED);
  assert_int_equal(relay->relaying.priority(relay, child, 7), PAWL_OK);
  assert_true(await_all() < 300 * MS);
  assert_int_equal(peer_of(&scene.relay)->priority, 7);
  stop_rival();
  pwi_cluster_close(&scene.cluster);
}

static void test_the_limits_of_the_members_keys_bound_the_relay(void **state) {
  (void)state;
  urge(9, 9, 2);
  highest = 3;
  open_scene(1, true);
  time_tick();
  time_tick();
  assert_int_equal(figures().priority, 3);
  assert_int_equal(peer_of(&scene.relay)->priority, 3);
  assert_int_equal(peer_of(&scene.members[0])->priority, 3);
  pwi_cluster_close(&scene.cluster);
}

/* Only the second member, at the lower relay, is urgent. */
static void test_a_relay_tells_the_relay_above_it(void **state) {
  struct pwi_cluster_client lower;
  struct pwi_relay_figures is;
  (void)state;
  urge(1, 8, 1);
  open_scene(1, false);
  add_relay_of(&scene.relay, "relay", &above);
  cluster_wait_joined(&scene.relay);
  add_relay_of(&lower, "lower", &above);
  cluster_wait_joined(&lower);
  cluster_run_for(&scene.cluster, 500 * MS);
  for (int i = 0; i < 5; i++) time_tick();
  pwi_relay_figures(lower.relay, &is);
  assert_true(is.applied > 0);
  assert_int_equal(is.priority, 8);
  assert_int_equal(figures().priority, 8);
  assert_int_equal(peer_of(&scene.relay)->priority, 8);
  pwi_cluster_close(&scene.cluster);
}

static void test_a_relay_that_states_a_priority_has_at_least_that(void **state) {
  (void)state;
  urge(2, 2, 2);
  open_scene(1, false);
  scene.relay = (struct pwi_cluster_client){.name = "relay", .tree = &flat, .priority = 4};
  cluster_client_add(&scene.cluster, &scene.relay);
  cluster_wait_joined(&scene.relay);
  cluster_run_for(&scene.cluster, 500 * MS);
  time_tick();
  time_tick();
  assert_true(figures().applied > 0);
  assert_int_equal(peer_of(&scene.relay)->priority, 4);
  pwi_cluster_close(&scene.cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pushes_of_urgent_members_are_not_held_behind_a_less_urgent_job),
      cmocka_unit_test(test_members_that_have_time_are_held_through_a_relay_as_without_one),
      cmocka_unit_test(test_the_level_follows_the_requests_that_are_under_way),
      cmocka_unit_test(test_an_urgent_request_takes_along_what_it_waits_for),
      cmocka_unit_test(test_a_child_that_becomes_urgent_takes_its_requests_along),
      cmocka_unit_test(test_the_limits_of_the_members_keys_bound_the_relay),
      cmocka_unit_test(test_a_relay_tells_the_relay_above_it),
      cmocka_unit_test(test_a_relay_that_states_a_priority_has_at_least_that),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
