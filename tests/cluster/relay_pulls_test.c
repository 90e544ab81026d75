/* Pulls of a group through a relay, step by step: one read serves all members, and never with rows that are too old for
 * the caller, of another vector, or that the caller must not read. */
#include "relay_scene.h"

static struct pwi_task tasks[MEMBERS];

static void start_tick(size_t i) {
  tasks[i] = (struct pwi_task){.finished = finished};
  assert_int_equal(pwi_client_tick(scene.members[i].client, &tasks[i], scene.groups[i], scene.tick), PAWL_OK);
}

static void start_await(size_t i) {
  tasks[i] = (struct pwi_task){.finished = finished};
  assert_int_equal(pwi_client_await(scene.members[i].client, &tasks[i], scene.groups[i], scene.tick), PAWL_OK);
}

static void run_all(void (*start)(size_t i)) {
  scene.under_way = MEMBERS;
  for (size_t i = 0; i < MEMBERS; i++) start(i);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 60000 * MS);
  for (size_t i = 0; i < MEMBERS; i++) assert_int_equal(tasks[i].status, PAWL_OK);
}

static void start_push(size_t i) {
  struct pwi_where where = {.range = {0, KEYS}};
  tasks[i] = (struct pwi_task){.finished = finished};
  assert_int_equal(
      pwi_client_start(scene.members[i].client, &tasks[i], scene.flows[i], PWI_REQUEST_PUSH, &where, scene.in, NULL),
      PAWL_OK);
}

/* All members push, finish a tick, and wait for one another. */
static void meet(void) {
  scene.tick++;
  run_all(start_push);
  run_all(start_tick);
  run_all(start_await);
}

static uint64_t staleness;

static void start_pull(size_t i) {
  struct pwi_where where = {
      .range = {0, KEYS}, .group = pwi_flow_entry(scene.groups[i])->id.id, .tick = scene.tick, .staleness = staleness};
  tasks[i] = (struct pwi_task){.finished = finished};
  assert_int_equal(pwi_client_start(scene.members[i].client, &tasks[i], scene.flows[i], PWI_REQUEST_PULL, &where, NULL,
                                    scene.out[i]),
                   PAWL_OK);
}

static void pull_one(size_t i) {
  scene.under_way = 1;
  start_pull(i);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 60000 * MS);
}

static void expect(size_t i, int64_t value) {
  assert_int_equal(tasks[i].status, PAWL_OK);
  for (size_t k = 0; k < KEYS; k++) assert_int_equal(scene.out[i][k], value);
}

/* All members pull, and read what was pushed so far. */
static void pull_all(void) {
  run_all(start_pull);
  for (size_t i = 0; i < MEMBERS; i++) expect(i, (int64_t)scene.tick * MEMBERS);
}

/* Links and rights are there. */
static void open_warm(uint32_t servers) {
  open_scene(servers, true);
  staleness = 0;
  for (int i = 0; i < 5; i++) {
    meet();
    pull_all();
    cluster_run_for(&scene.cluster, 200 * MS);
  }
}

static void test_one_read_serves_all_members_of_a_tick(void **state) {
  (void)state;
  open_warm(1);
  struct pwi_relay_figures before = figures();
  for (int i = 0; i < 10; i++) {
    meet();
    pull_all();
  }
  struct pwi_relay_figures after = figures();
  assert_int_equal(after.pulls - before.pulls, 10 * MEMBERS);
  assert_int_equal(after.reads - before.reads, 10);
  assert_int_equal(after.refused, before.refused);
  pwi_cluster_close(&scene.cluster);
}

static void test_later_pulls_are_answered_from_rows_that_are_here(void **state) {
  (void)state;
  open_warm(1);
  meet();
  pull_all();
  struct pwi_relay_figures before = figures();
  for (int i = 0; i < 5; i++) pull_all();
  struct pwi_relay_figures after = figures();
  assert_int_equal(after.reads, before.reads);
  assert_int_equal(after.pulls_kept - before.pulls_kept, 5 * MEMBERS);
  pwi_cluster_close(&scene.cluster);
}

/* The others are content with the rows of the former tick, which the member's own push has outdated. */
static void test_a_member_always_reads_its_own_push(void **state) {
  (void)state;
  open_warm(1);
  meet();
  pull_all();
  staleness = 1;
  struct pwi_relay_figures before = figures();
  scene.under_way = 1;
  start_push(1);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 60000 * MS);
  pull_one(0);
  expect(0, (int64_t)scene.tick * MEMBERS);
  assert_int_equal(figures().reads, before.reads);
  pull_one(1);
  expect(1, (int64_t)scene.tick * MEMBERS + 1);
  assert_int_equal(figures().reads, before.reads + 1);
  pull_one(0); /* a newer read is here now */
  expect(0, (int64_t)scene.tick * MEMBERS + 1);
  pwi_cluster_close(&scene.cluster);
}

/* After a push whose answer told no version, and after pulls that went to the server, a member must not go back. */
static void test_a_member_never_goes_back_behind_what_a_server_has_shown_it(void **state) {
  (void)state;
  open_warm(1);
  meet();
  pull_all();
  scene.under_way = 1;
  start_push(1);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 60000 * MS);
  struct pwi_task task;
  struct pwi_where where = {.range = {0, KEYS}};
  int64_t rows[KEYS];
  assert_int_equal(pwi_cluster_call(&scene.members[2], scene.flows[2], PWI_REQUEST_PULL, &where, NULL, rows, &task),
                   PAWL_OK);
  assert_int_equal(rows[0], scene.tick * MEMBERS + 1);
  pull_one(2);
  expect(2, (int64_t)scene.tick * MEMBERS + 1);
  pwi_cluster_close(&scene.cluster);
}

/* It has no push of its own that the rows could lack: only the tick says that they are too old. */
static void test_a_member_reads_what_others_have_pushed_before_the_tick_that_it_needs(void **state) {
  (void)state;
  open_warm(1);
  meet();
  pull_all();
  int64_t before = (int64_t)scene.tick * MEMBERS;
  scene.tick++;
  scene.under_way = 1;
  start_push(1);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 60000 * MS);
  run_all(start_tick);
  run_all(start_await);
  uint64_t reads = figures().reads;
  staleness = 1;
  pull_one(2);
  expect(2, before);
  assert_int_equal(figures().reads, reads);
  staleness = 0;
  pull_one(2);
  expect(2, before + 1);
  assert_int_equal(figures().reads, reads + 1);
  pwi_cluster_close(&scene.cluster);
}

static void test_a_member_that_has_not_waited_reads_anew(void **state) {
  (void)state;
  open_warm(1);
  scene.tick++;
  run_all(start_push);
  run_all(start_tick);
  struct pwi_relay_figures before = figures();
  pull_one(0);
  pull_one(1);
  expect(1, (int64_t)scene.tick * MEMBERS);
  assert_int_equal(figures().reads, before.reads + 2);
  assert_int_equal(figures().pulls_kept, before.pulls_kept);
  pwi_cluster_close(&scene.cluster);
}

static void test_rows_are_never_of_another_vector(void **state) {
  struct pwi_writer writer = {0};
  (void)state;
  open_warm(1);
  pwi_write_text(&writer, VECTOR);
  assert_int_equal(cluster_ask(&scene.members[0], PWI_ASK_DELETE, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  scene.flows[0] = cluster_vector(&scene.members[0], VECTOR, &adding);
  pull_one(0);
  expect(0, 0);
  cluster_run_for(&scene.cluster, 500 * MS);
  for (size_t i = 1; i < MEMBERS; i++) scene.flows[i] = cluster_open_vector(&scene.members[i], VECTOR, 0);
  for (size_t i = 0; i < MEMBERS; i++) {
    pull_one(i);
    expect(i, 0);
  }
  cluster_run_for(&scene.cluster, 500 * MS);
  assert_true(figures().kept <= 1);
  pwi_cluster_close(&scene.cluster);
}

static void test_a_relay_without_memory_leaves_pulls_to_their_senders(void **state) {
  (void)state;
  open_warm(2);
  scene.relay.relay->config.memory_max = 10;
  struct pwi_relay_figures before = figures();
  for (int i = 0; i < 5; i++) {
    meet();
    pull_all();
  }
  assert_int_equal(figures().pulls, before.pulls);
  pwi_cluster_close(&scene.cluster);
}

static void test_rows_that_are_kept_give_way_to_pushes(void **state) {
  (void)state;
  open_warm(1);
  assert_true(figures().kept_bytes > 0);
  scene.relay.relay->config.memory_max = figures().kept_bytes;
  assert_true(pwi_relay_make_room(scene.relay.relay, 1));
  assert_int_equal(figures().kept_bytes, 0);
  assert_false(pwi_relay_make_room(scene.relay.relay, scene.relay.relay->config.memory_max + 1));
  meet();
  pull_all();
  pwi_cluster_close(&scene.cluster);
}

static void test_a_relay_that_dies_costs_no_pull(void **state) {
  (void)state;
  open_warm(2);
  pwi_sim_kill(scene.cluster.sim, scene.relay.node);
  meet();
  pull_all();
  cluster_run_for(&scene.cluster, 5000 * MS);
  assert_int_equal(pwi_sim_start(scene.cluster.sim, scene.relay.node), PAWL_OK);
  cluster_wait_joined(&scene.relay);
  cluster_run_for(&scene.cluster, 500 * MS);
  for (int i = 0; i < 5; i++) {
    meet();
    pull_all();
  }
  assert_true(figures().pulls > 0);
  pwi_relay_leave(scene.relay.relay);
  cluster_run_for(&scene.cluster, 1000 * MS);
  meet();
  pull_all();
  assert_int_equal(figures().kept, 0);
  pwi_cluster_close(&scene.cluster);
}

/* --- rights --------------------------------------------------------------------------------------------- */

/* What a server has said holds for some seconds. Then it is asked again, in the name of this member. */
static void test_rows_are_not_for_members_that_may_not_read_them(void **state) {
  (void)state;
  open_warm(1);
  restricted = "member2";
  pwi_sim_break(scene.cluster.sim, scene.members[2].node, scene.cluster.servers[0].node);
  cluster_run_for(&scene.cluster, 11000 * MS);
  for (int i = 0; i < 4; i++) {
    pull_one(0); /* makes sure that rows are here */
    expect(0, (int64_t)scene.tick * MEMBERS);
    pull_one(2);
    assert_int_not_equal(tasks[2].status, PAWL_OK);
  }
  assert_true(figures().kept > 0);
  restricted = NULL;
  pwi_cluster_close(&scene.cluster);
}

static void test_the_right_to_read_is_asked_for_again(void **state) {
  struct pwi_relay_figures before;
  (void)state;
  open_warm(1);
  struct pwi_client_state victim;
  pwi_client_state(scene.members[0].client, &victim);
  struct pwi_contributor taker = {.sender = {victim.sender}, .task = 1, .relay = 1};
  struct pwi_relay *relay = scene.relay.relay;
  assert_true(pwi_relay_may_read(relay, &taker, 1, pwi_flow_entry(scene.flows[0])->id.id));
  pwi_relay_forbid(relay, victim.sender);
  assert_false(pwi_relay_may_read(relay, &taker, 1, pwi_flow_entry(scene.flows[0])->id.id));
  before = figures();
  pull_one(0); /* rows are here, and a server is asked all the same */
  assert_int_equal(figures().reads, before.reads + 1);
  assert_true(pwi_relay_may_read(relay, &taker, 1, pwi_flow_entry(scene.flows[0])->id.id));
  pwi_cluster_close(&scene.cluster);
}

/* --- little memory -------------------------------------------------------------------------------------- */

static void test_pulls_survive_the_failure_of_any_allocation(void **state) {
  (void)state;
  open_warm(1);
  take = scene.relay.relay->relaying.request;
  scene.relay.relay->relaying.request = take_with_little_memory;
  fails_after = 0;
  do {
    uint64_t before = figures().pulls;
    meet();
    is_armed = true;
    pull_all();
    for (int left = 100; left > 0 && (is_armed || figures().pulls == before); left--) pull_all();
    assert_false(is_armed);
    assert_true(figures().pulls > before);
    fails_after++;
  } while (has_failed);
  assert_true(fails_after > 4);
  pwi_cluster_close(&scene.cluster);
}

static void test_nothing_leaks(void **state) {
  uint64_t before = pwi_memory_counts().live;
  (void)state;
  open_warm(2);
  meet();
  run_all(start_push);
  scene.under_way = MEMBERS;
  for (size_t i = 0; i < MEMBERS; i++) start_pull(i); /* under way at the end */
  pwi_cluster_close(&scene.cluster);
  assert_int_equal(pwi_memory_counts().live, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_read_serves_all_members_of_a_tick),
      cmocka_unit_test(test_later_pulls_are_answered_from_rows_that_are_here),
      cmocka_unit_test(test_a_member_always_reads_its_own_push),
      cmocka_unit_test(test_a_member_never_goes_back_behind_what_a_server_has_shown_it),
      cmocka_unit_test(test_a_member_reads_what_others_have_pushed_before_the_tick_that_it_needs),
      cmocka_unit_test(test_a_member_that_has_not_waited_reads_anew),
      cmocka_unit_test(test_rows_are_never_of_another_vector),
      cmocka_unit_test(test_a_relay_without_memory_leaves_pulls_to_their_senders),
      cmocka_unit_test(test_rows_that_are_kept_give_way_to_pushes),
      cmocka_unit_test(test_a_relay_that_dies_costs_no_pull),
      cmocka_unit_test(test_rows_are_not_for_members_that_may_not_read_them),
      cmocka_unit_test(test_the_right_to_read_is_asked_for_again),
      cmocka_unit_test(test_pulls_survive_the_failure_of_any_allocation),
      cmocka_unit_test(test_nothing_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
