/* No answer depends on changes that only the head has: pulls, refusals, and pushes that are sent again wait
 * until every full member of the chain has the changes. */
#include "base/testing.h"
#include "cluster.h"
#include "ring/place.h"

#define MANY 20000

static struct pwi_cluster cluster;
static struct pwi_cluster_client writer, reader;
static struct pwi_flow *written, *read;
static struct pwi_task push, pull;
static bool is_pushed, is_pulled;
static int64_t seen[4];
static const uint64_t key = 7;
static const int64_t one[4] = {1, 1, 1, 1};
static const struct pwi_where where = {.keys = &key, .count = 1};

static void pushed(struct pwi_task *task) {
  assert_int_equal(task->status, PAWL_OK);
  is_pushed = true;
}

static void pulled(struct pwi_task *task) {
  assert_int_equal(task->status, PAWL_OK);
  is_pulled = true;
}

static void begin_pull(void) {
  is_pulled = false;
  seen[0] = 0;
  pull = (struct pwi_task){.finished = pulled};
  assert_int_equal(pwi_client_start(reader.client, &pull, read, PWI_REQUEST_PULL, &where, NULL, seen), PAWL_OK);
}

static void begin_push(void) {
  is_pushed = false;
  push = (struct pwi_task){.finished = pushed};
  assert_int_equal(pwi_client_start(writer.client, &push, written, PWI_REQUEST_PUSH, &where, one, NULL), PAWL_OK);
}

static bool is_false(void *flag) { return !*(bool *)flag; }

static void begin(uint64_t seed, uint64_t memory_max) {
  struct pwi_cluster_config config = {
      .seed = seed, .processes = 3, .shards = 1, .replicas = 1, .points = 1, .memory_max = memory_max};
  static const struct pawl_vector_options options = {
      .type = PAWL_I64, .width = 4, .size = PAWL_KEY_END, .placement = PAWL_PLACE_ORDERED};
  writer = (struct pwi_cluster_client){.name = "writer", .job = "job"};
  reader = (struct pwi_cluster_client){.name = "reader", .job = "job"};
  cluster_open(&cluster, &config);
  cluster_client_add(&cluster, &writer);
  cluster_client_add(&cluster, &reader);
  cluster_wait_joined(&writer);
  cluster_wait_joined(&reader);
  written = cluster_vector(&writer, "job/v", &options);
  assert_int_equal(cluster_ask(&reader, PWI_ASK_SYNC, NULL), PAWL_OK);
  read = cluster_open_vector(&reader, "job/v", 0);
  cluster_run_for(&cluster, 500 * MS); /* until chains are made */
  assert_int_equal(cluster_call(&writer, written, PWI_REQUEST_PUSH, &where, one, NULL, NULL), PAWL_OK);
  assert_int_equal(cluster_call(&reader, read, PWI_REQUEST_PULL, &where, NULL, seen, NULL), PAWL_OK);
  assert_int_equal(seen[0], 1);
}

static size_t server_of(struct pwi_node node) {
  for (size_t i = 0; i < cluster.server_count; i++) {
    struct pwi_server_state state;
    pwi_server_state(cluster.servers[i].server, &state);
    if (state.node == node.id) return i;
  }
  fail();
  return 0;
}

/* Cuts the head of the key's chain off from the next member. Returns the head. */
static size_t cut_chain(void) {
  const struct pwi_view *view = pwi_client_view(writer.client);
  struct pwi_place place = pwi_entry_place(pwi_flow_entry(written));
  const struct pwi_arc *arc = &view->arcs[pwi_view_arc_of(view, pwi_place_position(&place, key))];
  assert_int_equal(pwi_arc_full(arc), 2);
  size_t head = server_of(arc->chain[0].node), next = server_of(arc->chain[1].node);
  pwi_sim_cut(cluster.sim, cluster.servers[head].node, cluster.servers[next].node);
  pwi_sim_cut(cluster.sim, cluster.servers[next].node, cluster.servers[head].node);
  return head;
}

static void test_no_pull_shows_a_push_that_only_the_head_has(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin(seed, 0);
    size_t head = cut_chain();
    begin_push();
    cluster_run_for(&cluster, 10 * MS); /* the push is there, and the cut is not yet noticed */
    begin_pull();
    cluster_run_for(&cluster, 20 * MS);
    assert_false(is_pushed);
    assert_false(is_pulled);
    pwi_cluster_kill(&cluster, cluster.servers[head].process);
    cluster_run_while(&cluster, is_false, &is_pulled, 60 * PWI_SIM_SECOND);
    int64_t first = seen[0];
    cluster_run_while(&cluster, is_false, &is_pushed, 60 * PWI_SIM_SECOND);
    begin_pull();
    cluster_run_while(&cluster, is_false, &is_pulled, 60 * PWI_SIM_SECOND);
    assert_true(first <= seen[0]);
    assert_int_equal(seen[0], 2);
    pwi_cluster_close(&cluster);
  }
}

static void refused(struct pwi_task *task) {
  assert_int_equal(task->status, PAWL_NODE_FULL);
  is_pushed = true;
}

/* A refusal uses up the number of the push, which the next push names as its predecessor. */
static void test_a_refusal_waits_for_the_chain_too(void **state) {
  (void)state;
  static uint64_t keys[MANY];
  static int64_t rows[4 * MANY];
  for (uint64_t i = 0; i < MANY; i++) keys[i] = i;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct pwi_where many = {.keys = keys, .count = MANY};
    begin(seed, 64 << 10);
    size_t head = cut_chain();
    is_pushed = false;
    push = (struct pwi_task){.finished = refused};
    assert_int_equal(pwi_client_start(writer.client, &push, written, PWI_REQUEST_PUSH, &many, rows, NULL), PAWL_OK);
    cluster_run_for(&cluster, 30 * MS);
    assert_false(is_pushed);
    pwi_cluster_kill(&cluster, cluster.servers[head].process);
    cluster_run_while(&cluster, is_false, &is_pushed, 60 * PWI_SIM_SECOND);
    assert_int_equal(cluster_call(&writer, written, PWI_REQUEST_PUSH, &where, one, NULL, NULL), PAWL_OK);
    begin_pull();
    cluster_run_while(&cluster, is_false, &is_pulled, 60 * PWI_SIM_SECOND);
    assert_int_equal(seen[0], 2);
    pwi_cluster_close(&cluster);
  }
}

static void test_a_push_that_is_sent_again_waits_for_the_chain_too(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin(seed, 0);
    size_t head = cut_chain();
    begin_push();
    cluster_run_for(&cluster, 10 * MS);
    pwi_sim_break(cluster.sim, writer.node, cluster.servers[head].node);
    cluster_run_for(&cluster, 50 * MS); /* the head has it twice */
    assert_true(pwi_cluster_client_figures(&writer).parts_resent > 0);
    assert_false(is_pushed);
    pwi_cluster_kill(&cluster, cluster.servers[head].process);
    cluster_run_while(&cluster, is_false, &is_pushed, 60 * PWI_SIM_SECOND);
    begin_pull();
    cluster_run_while(&cluster, is_false, &is_pulled, 60 * PWI_SIM_SECOND);
    assert_int_equal(seen[0], 2);
    pwi_cluster_close(&cluster);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_pull_shows_a_push_that_only_the_head_has),
      cmocka_unit_test(test_a_refusal_waits_for_the_chain_too),
      cmocka_unit_test(test_a_push_that_is_sent_again_waits_for_the_chain_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
