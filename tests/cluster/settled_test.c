/* Which clients are remembered after they are gone. A worker is cut off or killed before, during and after
 * one of its pushes is applied. Its id is kept only if a push may be unsettled. Whenever it returns, its push
 * counts exactly once. */
#include "base/testing.h"
#include "cluster.h"

static struct {
  struct pwi_cluster cluster;
  struct pwi_cluster_client worker, reader;
  struct pwi_flow *worker_flow, *reader_flow;
  struct pwi_task task;
  bool is_over;
} scene;

static const uint64_t key = 7;
static const int64_t one = 1;

static void open_scene(uint32_t replicas) {
  struct pwi_cluster_config config = {.seed = 11 + replicas, .processes = 3, .shards = 1, .replicas = replicas};
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 100};
  scene.is_over = false;
  scene.worker = (struct pwi_cluster_client){.name = "worker", .job = "job"};
  scene.reader = (struct pwi_cluster_client){.name = "reader", .job = "job"};
  cluster_open(&scene.cluster, &config);
  cluster_client_add(&scene.cluster, &scene.worker);
  cluster_client_add(&scene.cluster, &scene.reader);
  cluster_wait_joined(&scene.worker);
  cluster_wait_joined(&scene.reader);
  scene.worker_flow = cluster_vector(&scene.worker, "a/w", &options);
  cluster_run_for(&scene.cluster, 50 * MS);
  scene.reader_flow = cluster_open_vector(&scene.reader, "a/w", 0);
}

static int64_t value(void) {
  int64_t found = -1;
  struct pwi_where where = {.keys = &key, .count = 1};
  assert_int_equal(cluster_call(&scene.reader, scene.reader_flow, PWI_REQUEST_PULL, &where, NULL, &found, NULL),
                   PAWL_OK);
  return found;
}

static void pushed(struct pwi_task *task) {
  (void)task;
  scene.is_over = true;
}

static bool is_under_way(void *context) {
  (void)context;
  return !scene.is_over;
}

static void push(void) {
  struct pwi_where where = {.keys = &key, .count = 1};
  scene.is_over = false;
  scene.task = (struct pwi_task){.finished = pushed};
  assert_int_equal(
      pwi_client_start(scene.worker.client, &scene.task, scene.worker_flow, PWI_REQUEST_PUSH, &where, &one, NULL),
      PAWL_OK);
}

static void push_to_its_end(void) {
  push();
  cluster_run_while(&scene.cluster, is_under_way, NULL, 1000 * MS);
  assert_int_equal(scene.task.status, PAWL_OK);
}

/* Cuts, or restores, the worker's links in one direction or both. */
static void cut(bool to, bool from, void (*how)(struct pwi_sim *, struct pwi_sim_node, struct pwi_sim_node)) {
  struct pwi_cluster *cluster = &scene.cluster;
  struct pwi_sim_node worker = scene.worker.node;
  for (size_t i = 0; i <= cluster->server_count; i++) {
    struct pwi_sim_node other = i < cluster->server_count ? cluster->servers[i].node : cluster->manager_node;
    if (to) how(cluster->sim, worker, other);
    if (from) how(cluster->sim, other, worker);
  }
}

static uint64_t retired(void) {
  struct pwi_manager_figures figures;
  pwi_manager_figures(scene.cluster.manager, &figures);
  return figures.retired;
}

static uint64_t sender(void) {
  struct pwi_client_state state;
  pwi_client_state(scene.worker.client, &state);
  return state.sender;
}

/* Returns true if no server has anything of the sender. */
static bool is_forgotten(uint64_t id) {
  for (size_t i = 0; i < scene.cluster.server_count; i++)
    if (pwi_membership_find(pwi_server_membership(scene.cluster.servers[i].server), (struct pwi_sender){id}))
      return false;
  return true;
}

static void close_scene(void) { pwi_cluster_close(&scene.cluster); }

/* The worker has pushed once, and all servers know that it has the answer. */
static void open_settled(uint32_t replicas) {
  open_scene(replicas);
  push_to_its_end();
  cluster_run_for(&scene.cluster, 2000 * MS);
}

/* The worker is killed. The cluster runs for this long. */
static void kill_worker(int64_t time_ns) {
  pwi_sim_kill(scene.cluster.sim, scene.worker.node);
  cluster_run_for(&scene.cluster, time_ns);
}

static void check_forgotten(uint64_t id) {
  assert_int_equal(retired(), 0);
  assert_true(is_forgotten(id));
}

static void check_kept(uint64_t id) {
  assert_int_equal(retired(), 1);
  assert_false(is_forgotten(id));
}

/* A second push is applied and its answer is lost. Then the worker is cut off altogether. */
static void lose_an_answer(void) {
  cut(false, true, pwi_sim_cut);
  push();
  cluster_run_for(&scene.cluster, 100 * MS);
  cut(true, true, pwi_sim_cut);
}

/* The worker comes back. Its second push ends, and has been counted once. */
static void come_back(void) {
  cut(true, true, pwi_sim_mend);
  cluster_run_while(&scene.cluster, is_under_way, NULL, 20000 * MS);
  assert_int_equal(scene.task.status, PAWL_OK);
  assert_int_equal(value(), 2);
}

static void test_a_client_that_never_pushed_is_forgotten(void **state) {
  (void)state;
  open_scene(1);
  uint64_t id = sender();
  cluster_run_for(&scene.cluster, 2000 * MS); /* it has reported that it has the replies to its asks */
  kill_worker(4000 * MS);
  check_forgotten(id);
  close_scene();
}

static void test_one_that_may_not_have_the_reply_to_an_ask_is_kept(void **state) {
  (void)state;
  open_scene(1);
  uint64_t id = sender();
  kill_worker(10000 * MS);
  check_kept(id);
  close_scene();
}

static void test_one_that_was_killed_right_after_a_push_is_kept(void **state) {
  (void)state;
  open_scene(1);
  uint64_t id = sender();
  push_to_its_end();
  kill_worker(10000 * MS);
  check_kept(id);
  close_scene();
}

static void test_one_that_had_been_idle_is_forgotten(void **state) {
  (void)state;
  open_settled(1);
  uint64_t id = sender();
  kill_worker(4000 * MS);
  check_forgotten(id);
  assert_int_equal(value(), 1);
  close_scene();
}

/* The push was applied and its answer was lost: the clocks are kept and show it. */
static void test_a_push_whose_answer_was_lost_counts_once(void **state) {
  (void)state;
  for (uint32_t replicas = 0; replicas < 2; replicas++) {
    open_settled(replicas);
    uint64_t id = sender();
    lose_an_answer();
    cluster_run_for(&scene.cluster, 5000 * MS);
    assert_int_equal(value(), 2);
    assert_int_equal(retired(), 1);
    come_back();
    assert_true(sender() != id);
    close_scene();
  }
}

/* For an hour the servers remember that the push was applied. Later nobody knows, so it may not be sent again. */
static void test_a_push_whose_outcome_is_forgotten_is_not_sent_again(void **state) {
  (void)state;
  for (int is_late = 0; is_late < 2; is_late++) {
    open_settled(1);
    lose_an_answer();
    cluster_run_for(&scene.cluster, 3590000 * MS);
    check_kept(sender());
    if (is_late) cluster_run_for(&scene.cluster, 20000 * MS);
    if (is_late) check_forgotten(sender());
    cut(true, true, pwi_sim_mend);
    cluster_run_while(&scene.cluster, is_under_way, NULL, 20000 * MS);
    assert_int_equal(scene.task.status, is_late ? PAWL_OUTCOME_UNKNOWN : PAWL_OK);
    assert_int_equal(value(), 2);
    push_to_its_end(); /* and later pushes do not suffer */
    assert_int_equal(value(), 3);
    close_scene();
  }
}

/* Cuts, or restores, all links between servers and the manager. */
static void cut_manager(void (*how)(struct pwi_sim *, struct pwi_sim_node, struct pwi_sim_node)) {
  struct pwi_cluster *cluster = &scene.cluster;
  for (size_t i = 0; i < cluster->server_count; i++) {
    how(cluster->sim, cluster->servers[i].node, cluster->manager_node);
    how(cluster->sim, cluster->manager_node, cluster->servers[i].node);
  }
}

/* The worker is lost while the manager reaches no server: nobody can say what is unsettled. */
static void test_nothing_is_forgotten_while_servers_are_not_connected(void **state) {
  (void)state;
  open_settled(0);
  lose_an_answer();
  cut_manager(pwi_sim_cut);
  cluster_run_for(&scene.cluster, 6000 * MS);
  assert_int_equal(retired(), 1);
  cut_manager(pwi_sim_mend);
  cluster_run_for(&scene.cluster, 3000 * MS);
  assert_int_equal(value(), 2);
  come_back();
  close_scene();
}

/* The worker is connected to the manager, and waits for seconds for the answer to a push that was applied. */
static void test_a_client_that_waits_for_an_answer_is_not_idle(void **state) {
  (void)state;
  open_scene(0);
  push_to_its_end();
  for (size_t i = 0; i < scene.cluster.server_count; i++)
    pwi_sim_cut(scene.cluster.sim, scene.cluster.servers[i].node, scene.worker.node);
  push();
  cluster_run_for(&scene.cluster, 4000 * MS);
  cut(true, true, pwi_sim_cut);
  cluster_run_for(&scene.cluster, 5000 * MS);
  assert_int_equal(value(), 2);
  assert_int_equal(retired(), 1);
  come_back();
  close_scene();
}

/* The push did not arrive: the worker need not be remembered, and the push is sent again. */
static void test_a_push_that_never_arrived_is_sent_again(void **state) {
  (void)state;
  for (uint32_t replicas = 0; replicas < 2; replicas++) {
    open_settled(replicas);
    uint64_t id = sender();
    cut(true, true, pwi_sim_cut);
    push();
    cluster_run_for(&scene.cluster, 5000 * MS);
    assert_true(is_forgotten(id));
    assert_int_equal(value(), 1);
    come_back();
    close_scene();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_client_that_never_pushed_is_forgotten),
      cmocka_unit_test(test_one_that_may_not_have_the_reply_to_an_ask_is_kept),
      cmocka_unit_test(test_one_that_was_killed_right_after_a_push_is_kept),
      cmocka_unit_test(test_one_that_had_been_idle_is_forgotten),
      cmocka_unit_test(test_a_push_whose_answer_was_lost_counts_once),
      cmocka_unit_test(test_a_push_whose_outcome_is_forgotten_is_not_sent_again),
      cmocka_unit_test(test_nothing_is_forgotten_while_servers_are_not_connected),
      cmocka_unit_test(test_a_client_that_waits_for_an_answer_is_not_idle),
      cmocka_unit_test(test_a_push_that_never_arrived_is_sent_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
