/* A client that stays dead. It is stopped or cut off while many of its pushes are in flight, and is declared
 * dead. As soon as the membership of another client says so, that client reads the values, as a worker does
 * that takes over. From then on no push of the first client changes anything, whenever it continues; all its
 * calls have failed, and all its later calls fail.
 *
 *   PAWL_SEEDS=n    number of seeds to run
 *   PAWL_SEED=n     run this seed only, and print its events
 */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 60
#else
#define SEEDS 500
#endif

#define KEYS 24
#define AHEAD 12 /* pushes in flight */
#define GROUP "dead/.crew"

struct push {
  uint64_t keys[3];
  int64_t ones[3];
  struct pwi_task task;
  bool is_under_way;
};

static struct {
  struct pwi_cluster cluster;
  struct pwi_cluster_client worker, heir;
  struct pwi_flow *worker_flow, *heir_flow, *group_flow;
  struct push pushes[AHEAD];
  int64_t pace;  /* time between two bursts of pushes */
  uint64_t only; /* the server to which they go; 0: any */
  size_t called, done, failed, under_way;
  struct pwi_task await; /* of a barrier to which no other member comes */
  bool is_await_over;
  struct pwi_asking asking;
  pawl_status said;
  bool is_answered;
} scene;

static void must(pawl_status status) { cluster_check(&scene.cluster, status, "calling"); }

/* --- the worker ----------------------------------------------------------------------------------------- */

static void work(void);

static void pushed(struct pwi_task *task) {
  ((struct push *)((char *)task - offsetof(struct push, task)))->is_under_way = false;
  scene.under_way--;
  scene.done += !task->status;
  scene.failed += task->status != PAWL_OK;
  if (task->status && task->status != PAWL_NODE_GONE)
    pwi_sim_fail(scene.cluster.sim, PAWL_CORRUPT, "a push: %s", pawl_status_name(task->status));
  if (task->status) work(); /* called from inside: it fails at once */
}

static uint64_t head_of(uint64_t key) {
  const struct pwi_view *view = pwi_client_view(scene.worker.client);
  struct pwi_place place = pwi_entry_place(pwi_flow_entry(scene.worker_flow));
  return pwi_view_head(view, pwi_view_arc_of(view, pwi_place_position(&place, key)))->node.id;
}

static bool start(struct push *push) {
  uint64_t first = pwi_random_below(scene.worker.random, KEYS - 2);
  for (int tries = 0; scene.only && head_of(first) != scene.only && tries < 1000; tries++)
    first = pwi_random_below(scene.worker.random, KEYS - 2);
  for (uint64_t i = 0; i < 3; i++) push->keys[i] = first + i, push->ones[i] = 1;
  struct pwi_where where = {.keys = push->keys, .count = scene.only ? 1 : 3};
  push->task = (struct pwi_task){.finished = pushed};
  pawl_status status =
      pwi_client_start(scene.worker.client, &push->task, scene.worker_flow, PWI_REQUEST_PUSH, &where, push->ones, NULL);
  if (status && status != PAWL_NODE_GONE)
    pwi_sim_fail(scene.cluster.sim, PAWL_CORRUPT, "a call: %s", pawl_status_name(status));
  push->is_under_way = !status;
  scene.called += !status;
  scene.under_way += !status;
  return !status;
}

static void work(void) {
  for (size_t i = 0; i < AHEAD; i++)
    if (!scene.pushes[i].is_under_way && !start(&scene.pushes[i])) return;
}

static void timer(void *context, uint64_t cookie) {
  (void)context, (void)cookie;
  work();
  pwi_cluster_timer(&scene.worker, scene.pace, 0);
}

static void awaited(struct pwi_task *task) {
  (void)task;
  scene.is_await_over = true;
}

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  (void)asking, (void)payload, (void)size;
  scene.said = status;
  scene.is_answered = true;
}

/* --- a run ---------------------------------------------------------------------------------------------- */

static bool is_entering(void *context) {
  (void)context;
  return !scene.is_await_over;
}

/* The worker enters a group of two and waits at a barrier for the other member, which never comes. */
static void wait_for_nobody(void) {
  struct pwi_writer writer = {0};
  struct pwi_task entering = {.finished = awaited};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, 2);
  must(cluster_ask(&scene.worker, PWI_ASK_GROUP, &writer));
  pwi_writer_fini(&writer);
  scene.group_flow = cluster_open_vector(&scene.worker, GROUP, 0);
  must(pwi_client_enter(scene.worker.client, &entering, scene.group_flow));
  cluster_run_while(&scene.cluster, is_entering, NULL, PWI_SIM_SECOND);
  scene.is_await_over = false;
  scene.await = (struct pwi_task){.finished = awaited};
  must(pwi_client_await(scene.worker.client, &scene.await, scene.group_flow, 1));
}

static void open_scene(uint64_t seed, uint32_t replicas, bool stays_dead) {
  struct pwi_cluster_config config = {.seed = seed,
                                      .processes = 2,
                                      .shards = 1,
                                      .replicas = replicas,
                                      .points = 3,
                                      .client_grace_ns = 100 * MS,
                                      .shared_hosts = seed % 2 == 0};
  static const struct pawl_vector_options options = {
      .type = PAWL_I64, .width = 1, .size = KEYS, .placement = PAWL_PLACE_ORDERED};
  memset(&scene, 0, sizeof scene);
  scene.worker = (struct pwi_cluster_client){.name = "w", .job = "dead", .stays_dead = stays_dead, .timer = timer};
  scene.heir = (struct pwi_cluster_client){.name = "h", .job = "dead"};
  cluster_open(&scene.cluster, &config);
  cluster_client_add(&scene.cluster, &scene.worker);
  cluster_client_add(&scene.cluster, &scene.heir);
  cluster_wait_joined(&scene.worker);
  cluster_wait_joined(&scene.heir);
  scene.worker_flow = cluster_vector(&scene.worker, "dead/v", &options);
  cluster_run_for(&scene.cluster, 10 * MS);
  scene.heir_flow = cluster_open_vector(&scene.heir, "dead/v", 0);
  wait_for_nobody();
}

static uint64_t sender_of(const struct pwi_cluster_client *client) {
  struct pwi_client_state state;
  pwi_client_state(client->client, &state);
  return state.sender;
}

static bool is_live(void *context) {
  return pwi_membership_is_live(pwi_client_membership(scene.heir.client), (struct pwi_sender){*(uint64_t *)context});
}

/* Reads by a push of zeros, as a worker does that takes over. */
static void read_all(int64_t values_out[KEYS]) {
  static const int64_t zeros[KEYS];
  uint64_t keys[KEYS];
  struct pwi_where where = {.keys = keys, .count = KEYS};
  for (uint64_t key = 0; key < KEYS; key++) keys[key] = key;
  assert_int_equal(cluster_call(&scene.heir, scene.heir_flow, PWI_REQUEST_PUSHPULL, &where, zeros, values_out, NULL),
                   PAWL_OK);
}

static void cut(struct pwi_sim_node node, struct pwi_sim_node other, bool is_cut) {
  void (*change)(struct pwi_sim *, struct pwi_sim_node, struct pwi_sim_node) = is_cut ? pwi_sim_cut : pwi_sim_mend;
  change(scene.cluster.sim, node, other);
  change(scene.cluster.sim, other, node);
}

/* The client is stopped, cut off from all nodes, or cut off from the manager only; then servers answer it
 * until they learn that it is retired. */
static void strike(uint64_t seed, int64_t duration) {
  if (seed % 3 == 0)
    pwi_sim_pause(scene.cluster.sim, scene.worker.node, duration);
  else
    cut(scene.worker.node, seed % 3 == 1 ? PWI_SIM_ALL : scene.cluster.manager_node, true);
}

static void heal(uint64_t seed) {
  if (seed % 3 > 0) cut(scene.worker.node, seed % 3 == 1 ? PWI_SIM_ALL : scene.cluster.manager_node, false);
}

static void begin(int64_t pace, uint64_t seed) {
  scene.pace = pace;
  pwi_cluster_timer(&scene.worker, 1, 0);
  cluster_run_for(&scene.cluster, 1 + (int64_t)(seed * 37 % 101) * MS / 100);
  scene.asking.replied = replied;
  must(pwi_client_ask(scene.worker.client, &scene.asking, PWI_ASK_SYNC, NULL, 0));
}

/* Returns true if the values read by the other client are unchanged after the worker has continued. */
static bool run_seed(uint64_t seed, bool stays_dead) {
  int64_t read[KEYS], later[KEYS], duration = (500 + (int64_t)(seed % 7) * 150) * MS;
  open_scene(seed, seed % 4 > 0, stays_dead);
  uint64_t sender = sender_of(&scene.worker);
  begin(3 * MS, seed);
  int64_t heals_at = pwi_sim_now(scene.cluster.sim) + duration;
  strike(seed, duration);
  cluster_run_while(&scene.cluster, is_live, &sender, 60 * PWI_SIM_SECOND);
  read_all(read);
  int64_t now = pwi_sim_now(scene.cluster.sim);
  if (heals_at > now) cluster_run_for(&scene.cluster, heals_at - now);
  heal(seed);
  cluster_run_for(&scene.cluster, PWI_SIM_SECOND);
  read_all(later);
  return memcmp(read, later, sizeof read) == 0;
}

static void check_dead(void) {
  struct pwi_client_state state;
  struct pwi_asking asking = {.replied = replied};
  pwi_client_state(scene.worker.client, &state);
  assert_true(state.is_dead);
  assert_int_equal(state.sender, 0);
  assert_int_equal(state.trouble, PAWL_NODE_GONE);
  assert_int_equal(state.outstanding, 0);
  assert_int_equal(scene.under_way, 0);
  assert_true(scene.is_await_over);
  assert_int_equal(scene.await.status, PAWL_NODE_GONE);
  assert_true(scene.is_answered && (scene.said == PAWL_OK || scene.said == PAWL_NODE_GONE));
  assert_int_equal(scene.done + scene.failed, scene.called);
  assert_int_equal(pwi_client_links(scene.worker.client), 0);
  assert_true(pwi_client_has_left(scene.worker.client));
  assert_int_equal(pwi_client_ask(scene.worker.client, &asking, PWI_ASK_SYNC, NULL, 0), PAWL_NODE_GONE);
  assert_int_equal(pwi_client_await(scene.worker.client, &scene.await, scene.group_flow, 2), PAWL_NODE_GONE);
  assert_int_equal(
      pwi_client_scan(scene.worker.client, &scene.await, scene.worker_flow, pawl_range_of(0, 3), 1, NULL, NULL),
      PAWL_NODE_GONE);
}

static void test_nothing_of_it_is_applied_once_another_has_seen_it_retired(void **state) {
  const char *many = getenv("PAWL_SEEDS"), *one = getenv("PAWL_SEED");
  uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS, first = one ? strtoull(one, NULL, 10) : 1, failed = 0;
  (void)state;
  if (one) cluster_print_log();
  for (uint64_t seed = first; seed <= (one ? first : seeds); seed++) {
    if (!run_seed(seed, true)) fail_msg("seed %llu: something was applied late", (unsigned long long)seed);
    check_dead();
    failed += scene.failed;
    pwi_cluster_close(&scene.cluster);
  }
  print_message("seeds %llu: pushes that failed %llu\n", (unsigned long long)seeds, (unsigned long long)failed);
  assert_true(one || failed > seeds);
}

static void mend_server(void *context) { cut(*(struct pwi_sim_node *)context, scene.cluster.manager_node, false); }

/* A server with the only copy is cut off from the manager, and so is the client; the client that takes over
 * is not. The manager no longer waits for the server, so the other client learns that the first is retired
 * before the server does. Its read at the server must wait until the server knows. */
static void test_a_server_that_has_not_heard_of_it_does_not_answer_the_heir(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    int64_t read[KEYS], later[KEYS];
    open_scene(seed, 0, true);
    uint64_t sender = sender_of(&scene.worker);
    struct pwi_sim_node server = scene.cluster.servers[seed % 2].node;
    struct pwi_server_state at_server;
    pwi_server_state(scene.cluster.servers[seed % 2].server, &at_server);
    scene.only = at_server.node;
    begin(20 * MS, seed);
    cut(scene.worker.node, scene.cluster.manager_node, true);
    cut(scene.worker.node, scene.cluster.servers[(seed + 1) % 2].node, true); /* it would pass on the news */
    cut(server, scene.cluster.manager_node, true);
    cluster_run_while(&scene.cluster, is_live, &sender, 60 * PWI_SIM_SECOND);
    must(pwi_sim_call_at(scene.cluster.sim, pwi_sim_now(scene.cluster.sim) + PWI_SIM_SECOND, mend_server, &server));
    read_all(read);
    cluster_run_for(&scene.cluster, PWI_SIM_SECOND);
    read_all(later);
    if (memcmp(read, later, sizeof read) != 0)
      fail_msg("seed %llu: something was applied late", (unsigned long long)seed);
    pwi_cluster_close(&scene.cluster);
  }
}

/* A client that joins again resends unanswered pushes: this shows that the test above can fail. */
static void test_a_client_that_joins_again_is_not_fenced(void **state) {
  uint64_t seed = 1;
  (void)state;
  for (bool is_same = true; is_same; seed++) {
    if (seed > 20) fail_msg("20 seeds do not show it");
    is_same = run_seed(seed, false);
    pwi_cluster_close(&scene.cluster);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_of_it_is_applied_once_another_has_seen_it_retired),
      cmocka_unit_test(test_a_server_that_has_not_heard_of_it_does_not_answer_the_heir),
      cmocka_unit_test(test_a_client_that_joins_again_is_not_fenced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
