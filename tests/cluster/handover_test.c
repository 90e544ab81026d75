/* A head that has handed over, before it has the view that names the next head. It answers nothing. If the manager is
 * lost meanwhile, the head would wait for that view for ever, so the next manager tells it to go on. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"
#include "ring/place.h"
#include "server/inside.h"

static struct pwi_cluster cluster;
static struct pwi_cluster_client client;
static struct pwi_flow *flow;
static const struct pwi_where all = {.range = {0, 100}};
static int64_t ones[100], seen[100];
static struct pwi_asking asking;

static void replied(struct pwi_asking *asked, pawl_status status, const void *payload, size_t size) {
  (void)asked, (void)status, (void)payload, (void)size;
}

/* No head has reported that it has handed over. */
static bool has_nobody_handed_over(void *context) {
  (void)context;
  for (size_t i = 0; i < cluster.server_count; i++)
    for (const struct moving *moving = cluster.servers[i].server->movings; moving; moving = moving->next)
      if (moving->order.step == PWI_MOVE_HANDOVER && moving->is_over && !moving->order.status) return false;
  return true;
}

/* Orders the first arc to the second member of its chain. */
static void order_handover(void) {
  struct pwi_writer writer = {0};
  const struct pwi_view *view = pwi_client_view(client.client);
  struct pawl_range positions = pwi_view_arc_range(view, 0);
  assert_int_equal(pwi_arc_full(&view->arcs[0]), 2);
  pwi_write_u64(&writer, positions.begin);
  pwi_write_u64(&writer, positions.end);
  pwi_write_u64(&writer, view->arcs[0].chain[1].node.id);
  asking = (struct pwi_asking){.replied = replied};
  assert_int_equal(pwi_client_ask(client.client, &asking, PWI_ASK_MOVE, writer.data, writer.size), PAWL_OK);
  pwi_writer_fini(&writer);
}

static struct push {
  struct pwi_task task;
  struct pwi_where where;
  bool is_over;
} pushes[16], pull;
static size_t arcs;

static void pushed(struct pwi_task *task) {
  assert_int_equal(task->status, PAWL_OK);
  ((struct push *)((char *)task - offsetof(struct push, task)))->is_over = true;
}

static bool is_under_way(void *context) { return (void)context, !pushes[0].is_over || !pull.is_over; }

static void push_to_each_arc(void) {
  const struct pwi_view *view = pwi_client_view(client.client);
  struct pwi_place place = pwi_entry_place(pwi_flow_entry(flow));
  arcs = view->arc_count;
  assert_in_range(arcs, 2, 16);
  for (size_t i = 0; i < arcs; i++) {
    pushes[i] =
        (struct push){.task.finished = pushed, .where.range = pwi_place_keys(&place, pwi_view_arc_range(view, i))};
    assert_false(pawl_range_is_empty(pushes[i].where.range));
    assert_int_equal(
        pwi_client_start(client.client, &pushes[i].task, flow, PWI_REQUEST_PUSH, &pushes[i].where, ones, NULL),
        PAWL_OK);
  }
}

/* A head that has handed over answers no reads: another server may be the head by now, and have later pushes. */
static void pull_from_the_first_arc(void) {
  struct pwi_place place = pwi_entry_place(pwi_flow_entry(flow));
  struct pawl_range keys = pwi_place_keys(&place, pwi_view_arc_range(pwi_client_view(client.client), 0));
  pull = (struct push){.task.finished = pushed, .where.range = keys};
  assert_int_equal(pwi_client_start(client.client, &pull.task, flow, PWI_REQUEST_PULL, &pull.where, NULL, seen),
                   PAWL_OK);
}

static void test_a_head_goes_on_if_the_manager_is_lost_before_the_view(void **state) {
  (void)state;
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 100};
  for (size_t i = 0; i < 100; i++) ones[i] = 1;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    struct pwi_cluster_config config = {.seed = seed, .processes = 2, .shards = 1, .replicas = 1, .points = 1};
    client = (struct pwi_cluster_client){.name = "client", .job = "job"};
    cluster_open(&cluster, &config);
    cluster_client_add(&cluster, &client);
    cluster_wait_joined(&client);
    flow = cluster_vector(&client, "job/v", &options);
    cluster_run_for(&cluster, 2 * PWI_SIM_SECOND); /* until chains are made */
    assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &all, ones, NULL, NULL), PAWL_OK);
    order_handover();
    cluster_run_while(&cluster, has_nobody_handed_over, NULL, 30 * PWI_SIM_SECOND);
    pwi_sim_kill(cluster.sim, cluster.manager_node);
    pull_from_the_first_arc();
    push_to_each_arc();
    cluster_run_for(&cluster, seed % 2 ? 50 * MS : 20 * PWI_SIM_SECOND);
    assert_false(pull.is_over);
    for (size_t i = 0; i < arcs; i++) assert_int_equal(pushes[i].is_over, i > 0); /* that arc alone waits */
    assert_int_equal(pwi_sim_start(cluster.sim, cluster.manager_node), PAWL_OK);
    cluster_run_while(&cluster, is_under_way, NULL, 30 * PWI_SIM_SECOND);
    assert_in_range(seen[0], 1, 2); /* the pull began before the second push */
    assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &all, NULL, seen, NULL), PAWL_OK);
    for (size_t i = 0; i < 100; i++) assert_int_equal(seen[i], 2);
    pwi_cluster_close(&cluster);
  }
}

static bool pull_is_over;

static void pulled(struct pwi_task *task) {
  assert_int_equal(task->status, PAWL_OK);
  pull_is_over = true;
}

static struct pwi_sim_node first_head(void) {
  uint64_t id = pwi_client_view(client.client)->arcs[0].chain[0].node.id;
  size_t i = 0;
  while (cluster.servers[i].server->node != id) i++;
  return cluster.servers[i].node;
}

/* The head and a reader do not hear of the view, and another client pushes to the next head. */
static void read_at(struct pwi_sim_node head, struct pwi_cluster_client *writer, struct pwi_flow *writers) {
  struct pwi_place place = pwi_entry_place(pwi_flow_entry(flow));
  struct pwi_where where = {.range = pwi_place_keys(&place, pwi_view_arc_range(pwi_client_view(client.client), 0))};
  struct pwi_task task = {.finished = pulled};
  pwi_sim_cut(cluster.sim, cluster.manager_node, head);
  pwi_sim_cut(cluster.sim, cluster.manager_node, client.node);
  assert_int_equal(cluster_call(writer, writers, PWI_REQUEST_PUSH, &where, ones, NULL, NULL), PAWL_OK);
  pull_is_over = false;
  assert_int_equal(pwi_client_start(client.client, &task, flow, PWI_REQUEST_PULL, &where, NULL, seen), PAWL_OK);
  cluster_run_for(&cluster, 50 * MS);
  assert_false(pull_is_over);
  pwi_sim_mend(cluster.sim, cluster.manager_node, head);
  pwi_sim_mend(cluster.sim, cluster.manager_node, client.node);
  cluster_run_for(&cluster, 5 * PWI_SIM_SECOND);
  assert_true(pull_is_over);
  assert_int_equal(seen[0], 1);
}

static void test_a_head_that_has_handed_over_answers_no_pull(void **state) {
  (void)state;
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 100};
  for (size_t i = 0; i < 100; i++) ones[i] = 1;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    struct pwi_cluster_config config = {.seed = seed, .processes = 2, .shards = 1, .replicas = 1, .points = 1};
    struct pwi_cluster_client writer = {.name = "writer", .job = "job"};
    client = (struct pwi_cluster_client){.name = "client", .job = "job"};
    cluster_open(&cluster, &config);
    cluster_client_add(&cluster, &client);
    cluster_client_add(&cluster, &writer);
    cluster_wait_joined(&client);
    cluster_wait_joined(&writer);
    flow = cluster_vector(&client, "job/v", &options);
    cluster_run_for(&cluster, 2 * PWI_SIM_SECOND); /* until chains are made */
    struct pwi_flow *writers = cluster_open_vector(&writer, "job/v", 0);
    assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &all, NULL, seen, NULL), PAWL_OK);
    struct pwi_sim_node head = first_head();
    order_handover();
    cluster_run_while(&cluster, has_nobody_handed_over, NULL, 30 * PWI_SIM_SECOND);
    read_at(head, &writer, writers);
    pwi_cluster_close(&cluster);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_head_goes_on_if_the_manager_is_lost_before_the_view),
      cmocka_unit_test(test_a_head_that_has_handed_over_answers_no_pull),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
