/* The limit of deferred replies of one link: what exceeds it is not kept but answered NOT_HERE. The client
 * sends the push again, and it counts once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cluster.h"
#include "server/handler_inside.h"
#include "server/inside.h"

static struct pwi_cluster cluster;
static struct pwi_cluster_client client;
static struct pwi_flow *flow;
static struct pwi_task tasks[2];
static size_t over;
static const uint64_t key = 7;
static const int64_t one = 1;

static void open_scene(void) {
  struct pwi_cluster_config config = {.seed = 12, .processes = 2, .shards = 1, .replicas = 1, .points = 1};
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 100};
  client = (struct pwi_cluster_client){.name = "client", .job = "job"};
  over = 0;
  cluster_open(&cluster, &config);
  cluster_client_add(&cluster, &client);
  cluster_wait_joined(&client);
  flow = cluster_vector(&client, "space/v", &options);
}

static void finished(struct pwi_task *task) {
  assert_int_equal(task->status, PAWL_OK);
  over++;
}

static void push(size_t index) {
  struct pwi_where where = {.keys = &key, .count = 1};
  tasks[index] = (struct pwi_task){.finished = finished};
  assert_int_equal(pwi_client_start(client.client, &tasks[index], flow, PWI_REQUEST_PUSH, &where, &one, NULL), PAWL_OK);
}

/* Replies that the chains of all servers defer. */
static size_t count_deferred(void) {
  size_t count = 0;
  for (size_t i = 0; i < cluster.server_count; i++) {
    const struct pwi_chains *chains = &cluster.servers[i].server->chains;
    for (size_t j = 0; j < chains->count; j++) count += pwi_fifo_count(&chains->items[j]->deferred);
  }
  return count;
}

static void set_count(size_t deferred) {
  for (size_t i = 0; i < cluster.server_count; i++) {
    struct pwi_handler_link *link = cluster.servers[i].server->handler->links;
    for (; link; link = link->next) link->deferred_count = deferred;
  }
}

static void cut_chains(bool is_cut) {
  struct pwi_sim_node a = cluster.servers[0].node, b = cluster.servers[1].node;
  (is_cut ? pwi_sim_cut : pwi_sim_mend)(cluster.sim, a, b);
  (is_cut ? pwi_sim_cut : pwi_sim_mend)(cluster.sim, b, a);
}

static bool is_under_way(void *context) {
  (void)context;
  return over < 2;
}

static void test_a_reply_beyond_the_limit_is_not_deferred(void **state) {
  struct pwi_where where = {.keys = &key, .count = 1};
  int64_t value;
  (void)state;
  open_scene();
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &where, &one, NULL, NULL), PAWL_OK);
  cut_chains(true); /* nothing is confirmed */
  set_count(PWI_HANDLER_DEFERRED_MAX - 1);
  push(0);
  cluster_run_for(&cluster, 20 * MS);
  assert_int_equal(count_deferred(), 1);
  push(1);
  cluster_run_for(&cluster, 60 * MS);
  assert_int_equal(count_deferred(), 1);
  assert_int_equal(over, 0);
  set_count(1);
  cut_chains(false);
  cluster_run_while(&cluster, is_under_way, NULL, 30000 * MS);
  assert_int_equal(count_deferred(), 0);
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &where, NULL, &value, NULL), PAWL_OK);
  assert_int_equal(value, 3);
  pwi_cluster_close(&cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_reply_beyond_the_limit_is_not_deferred),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
