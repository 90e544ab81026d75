/* Priorities in a simulated cluster: requests of an urgent client go first, those of others wait and are not
 * lost, and nobody waits without end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/relaying.h"
#include "cluster.h"
#include "server/inside.h"

#define CLIENTS 3
#define KEYS 4

struct hand {
  struct pwi_cluster_client client;
  struct pwi_flow *flow;
  struct pwi_task task;
  uint64_t pushes;
  bool is_busy; /* a push is under way */
  bool goes_on; /* begins the next push when one has ended */
};

static struct pwi_cluster cluster;
static struct hand hands[CLIENTS];
static const int64_t one = 1;

static void push(struct hand *hand) {
  static const uint64_t key = KEYS / 2;
  hand->is_busy = true;
  struct pwi_where where = {.keys = &key, .count = 1};
  assert_int_equal(pwi_client_start(hand->client.client, &hand->task, hand->flow, PWI_REQUEST_PUSH, &where, &one, NULL),
                   PAWL_OK);
}

static void finished(struct pwi_task *task) {
  struct hand *hand = (struct hand *)(void *)((char *)task - offsetof(struct hand, task));
  assert_int_equal(task->status, PAWL_OK);
  hand->pushes++;
  hand->is_busy = false;
  if (hand->goes_on) push(hand);
}

static void begin(struct hand *hand) {
  hand->goes_on = true;
  hand->task = (struct pwi_task){.finished = finished};
  push(hand);
}

/* Clients with these priorities; 0: none stated. */
static void open_scene(const uint8_t priorities[CLIENTS]) {
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = KEYS};
  struct pwi_cluster_config config = {.seed = 5, .processes = 1, .shards = 1, .points = 1};
  cluster_open(&cluster, &config);
  for (size_t i = 0; i < CLIENTS; i++) {
    struct hand *hand = &hands[i];
    *hand = (struct hand){.client = {.job = "job", .priority = priorities[i]}};
    snprintf(hand->client.name, sizeof hand->client.name, "client%zu", i);
    cluster_client_add(&cluster, &hand->client);
    cluster_wait_joined(&hand->client);
    hand->flow =
        i == 0 ? cluster_vector(&hand->client, "space/v", &options) : cluster_open_vector(&hand->client, "space/v", 0);
    int64_t row;
    struct pwi_where where = {.range = {0, 1}};
    assert_int_equal(cluster_call(&hand->client, hand->flow, PWI_REQUEST_PULL, &where, NULL, &row, NULL), PAWL_OK);
  }
}

static struct pwi_server *server(void) { return cluster.servers[0].server; }

static uint64_t holds_of(const struct hand *hand) { return pwi_cluster_client_figures(&hand->client).holds; }

static void stop_all(void) {
  for (size_t i = 0; i < CLIENTS; i++) hands[i].goes_on = false;
}

static bool is_under_way(void *context) {
  (void)context;
  for (size_t i = 0; i < CLIENTS; i++)
    if (hands[i].is_busy) return true;
  return false;
}

static int64_t total(void) {
  int64_t row = 0;
  struct pwi_where where = {.range = {KEYS / 2, KEYS / 2 + 1}};
  assert_int_equal(cluster_call(&hands[0].client, hands[0].flow, PWI_REQUEST_PULL, &where, NULL, &row, NULL), PAWL_OK);
  return row;
}

/* The manager's JSON has the counts of the server, which reports every second. */
static void expect_status(unsigned held) {
  char wanted[64];
  struct pwi_writer writer = {0};
  assert_int_equal(server()->held_links, held);
  assert_true(server()->holds >= 2);
  snprintf(wanted, sizeof wanted, "\"lanes_held\":%u,\"holds\":%llu,", held, (unsigned long long)server()->holds);
  assert_int_equal(pwi_manager_status(cluster.manager, &writer), PAWL_OK);
  pwi_write_bytes(&writer, "", 1);
  assert_int_equal(writer.status, PAWL_OK);
  if (!strstr((const char *)writer.data, wanted)) fail_msg("'%s' is not in %s", wanted, (const char *)writer.data);
  pwi_writer_fini(&writer);
}

static void test_urgent_requests_go_first_and_the_others_are_not_lost(void **state) {
  (void)state;
  open_scene((const uint8_t[]){9, 5, 1});
  for (size_t i = 0; i < CLIENTS; i++) begin(&hands[i]);
  cluster_run_for(&cluster, 500 * MS);
  uint64_t low = hands[1].pushes, lowest = hands[2].pushes;
  assert_int_equal(server()->held_links, 2);
  cluster_run_for(&cluster, 1000 * MS);
  assert_int_equal(hands[1].pushes, low);
  assert_int_equal(hands[2].pushes, lowest);
  expect_status(2);
  assert_true(hands[0].pushes > 100);
  assert_int_equal(holds_of(&hands[0]), 0);
  assert_int_equal(holds_of(&hands[1]), 1);
  assert_int_equal(pwi_cluster_client_figures(&hands[1].client).reconnects, 0); /* nobody was taken for silent */
  stop_all();
  cluster_run_while(&cluster, is_under_way, NULL, 10000 * MS);
  assert_int_equal(total(), (int64_t)(hands[0].pushes + hands[1].pushes + hands[2].pushes));
  cluster_run_for(&cluster, 1100 * MS);
  expect_status(0);
  pwi_cluster_close(&cluster);
}

static void test_a_held_client_has_its_turn(void **state) {
  (void)state;
  open_scene((const uint8_t[]){9, 5, 5});
  for (size_t i = 0; i < CLIENTS; i++) begin(&hands[i]);
  cluster_run_for(&cluster, 500 * MS);
  uint64_t before = hands[1].pushes, other = hands[2].pushes;
  cluster_run_for(&cluster, 10500 * MS); /* five turns */
  assert_true(hands[1].pushes > before + 5 && hands[2].pushes > other + 5);
  assert_true(hands[0].pushes > 10 * hands[1].pushes);
  assert_in_range(holds_of(&hands[1]), 5, 7);
  assert_int_equal(pwi_cluster_client_figures(&hands[1].client).reconnects, 0);
  stop_all();
  cluster_run_while(&cluster, is_under_way, NULL, 10000 * MS);
  pwi_cluster_close(&cluster);
}

static void test_clients_without_a_priority_are_equal(void **state) {
  (void)state;
  open_scene((const uint8_t[]){0, 5, 0});
  for (size_t i = 0; i < CLIENTS; i++) begin(&hands[i]);
  cluster_run_for(&cluster, 2000 * MS);
  for (size_t i = 0; i < CLIENTS; i++) {
    assert_int_equal(holds_of(&hands[i]), 0);
    assert_true(2 * hands[i].pushes > hands[0].pushes);
  }
  stop_all();
  cluster_run_while(&cluster, is_under_way, NULL, 10000 * MS);
  pwi_cluster_close(&cluster);
}

static void test_the_end_of_the_urgent_client_frees_the_others(void **state) {
  (void)state;
  open_scene((const uint8_t[]){9, 2, 2});
  for (size_t i = 0; i < CLIENTS; i++) begin(&hands[i]);
  cluster_run_for(&cluster, 300 * MS);
  assert_int_equal(server()->held_links, 2);
  uint64_t before = hands[1].pushes;
  hands[0].is_busy = false;
  pwi_sim_kill(cluster.sim, hands[0].client.node);
  cluster_run_for(&cluster, 1000 * MS);
  assert_int_equal(server()->held_links, 0);
  assert_true(hands[1].pushes > before + 10);
  stop_all();
  cluster_run_while(&cluster, is_under_way, NULL, 10000 * MS);
  pwi_cluster_close(&cluster);
}

static void test_a_client_may_state_another_priority(void **state) {
  (void)state;
  open_scene((const uint8_t[]){5, 1, 1});
  for (size_t i = 0; i < CLIENTS; i++) begin(&hands[i]);
  cluster_run_for(&cluster, 300 * MS);
  assert_int_equal(server()->held_links, 2);
  pwi_client_set_priority(hands[1].client.client, 6);
  cluster_run_for(&cluster, 300 * MS);
  assert_int_equal(server()->held_links, 2); /* the first and the third */
  uint64_t first = hands[0].pushes, second = hands[1].pushes;
  cluster_run_for(&cluster, 500 * MS);
  assert_int_equal(hands[0].pushes, first);
  assert_true(hands[1].pushes > second + 100);
  pwi_client_set_priority(hands[1].client.client, 1);
  cluster_run_for(&cluster, 300 * MS);
  assert_true(hands[0].pushes > first + 10);
  stop_all();
  cluster_run_while(&cluster, is_under_way, NULL, 10000 * MS);
  assert_int_equal(total(), (int64_t)(hands[0].pushes + hands[1].pushes + hands[2].pushes));
  pwi_cluster_close(&cluster);
}

static void test_a_priority_that_there_is_not_costs_the_link(void **state) {
  (void)state;
  open_scene((const uint8_t[]){5, 5, 5});
  pwi_client_set_priority(hands[1].client.client, PWI_PRIORITY_HIGHEST + 1);
  cluster_run_for(&cluster, 300 * MS);
  assert_true(pwi_cluster_client_figures(&hands[1].client).reconnects > 0);
  pwi_client_set_priority(hands[1].client.client, PWI_PRIORITY_HIGHEST);
  begin(&hands[1]);
  stop_all();
  cluster_run_while(&cluster, is_under_way, NULL, 10000 * MS);
  assert_int_equal(total(), 1);
  pwi_cluster_close(&cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_urgent_requests_go_first_and_the_others_are_not_lost),
      cmocka_unit_test(test_a_held_client_has_its_turn),
      cmocka_unit_test(test_clients_without_a_priority_are_equal),
      cmocka_unit_test(test_the_end_of_the_urgent_client_frees_the_others),
      cmocka_unit_test(test_a_client_may_state_another_priority),
      cmocka_unit_test(test_a_priority_that_there_is_not_costs_the_link),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
