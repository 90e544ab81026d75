/* Sessions whose key is revoked or loses the right to write, while calls are in flight that would otherwise
 * not end: a push that waits for a group, a barrier to which no other member comes, an ask to a manager. Each
 * call ends at once with the reason. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"

#define GROUP "a/.crew"
#define CALLS 3

static struct {
  struct pwi_cluster cluster;
  struct pwi_cluster_client worker, other;
  struct pwi_flow *flow, *group, *other_flow;
  struct pwi_task tasks[CALLS];
  size_t over;
  pawl_status statuses[CALLS];
  struct pwi_asking asking;
  bool is_answered;
  pawl_status answer;
  int64_t values[4];
} scene;

static struct pwi_rights worker_rights;

static struct pwi_rights rights(void *context, const char *identity) {
  (void)context;
  struct pwi_rights all = {.write = true};
  return strcmp(identity, "worker") == 0 ? worker_rights : all;
}

static void finished(struct pwi_task *task) {
  size_t index = (size_t)(task - scene.tasks);
  scene.statuses[index] = task->status;
  scene.over++;
}

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  (void)asking, (void)payload, (void)size;
  scene.answer = status;
  scene.is_answered = true;
}

static void must(pawl_status status) { cluster_check(&scene.cluster, status, "calling"); }

static void tell_names(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->has_identities = true;
}

static void open_scene(void) {
  struct pwi_cluster_config config = {
      .seed = 5, .processes = 2, .shards = 1, .replicas = 1, .rights = rights, .tune = tell_names};
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 100};
  memset(&scene, 0, sizeof scene);
  worker_rights = (struct pwi_rights){.write = true};
  scene.worker = (struct pwi_cluster_client){.name = "worker", .job = "job"};
  scene.other = (struct pwi_cluster_client){.name = "other", .job = "job"};
  cluster_open(&scene.cluster, &config);
  cluster_client_add(&scene.cluster, &scene.worker);
  cluster_client_add(&scene.cluster, &scene.other);
  cluster_wait_joined(&scene.worker);
  cluster_wait_joined(&scene.other);
  scene.flow = cluster_vector(&scene.worker, "a/w", &options);
  cluster_run_for(&scene.cluster, 50 * MS);
  scene.other_flow = cluster_open_vector(&scene.other, "a/w", 0);
}

static void join_group(void) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, 2);
  must(cluster_ask(&scene.worker, PWI_ASK_GROUP, &writer));
  pwi_writer_fini(&writer);
  scene.group = cluster_open_vector(&scene.worker, GROUP, 0);
  scene.tasks[0] = (struct pwi_task){.finished = finished};
  must(pwi_client_enter(scene.worker.client, &scene.tasks[0], scene.group));
  cluster_run_for(&scene.cluster, 100 * MS);
  assert_int_equal(scene.over, 1);
  scene.over = 0;
}

/* The group has size two and no other member, so these calls wait for ever. */
static void begin_calls(void) {
  static const int64_t ones[4] = {1, 1, 1, 1};
  static const uint64_t keys[4] = {1, 2, 60, 70};
  join_group();
  struct pwi_where aggregate = {.keys = keys, .count = 4, .aggregate = pwi_flow_entry(scene.group)->id.id, .tick = 1};
  struct pwi_where where = {.keys = keys, .count = 4};
  for (size_t i = 0; i < CALLS; i++) scene.tasks[i] = (struct pwi_task){.finished = finished};
  must(pwi_client_await(scene.worker.client, &scene.tasks[0], scene.group, 1));
  must(pwi_client_start(scene.worker.client, &scene.tasks[1], scene.flow, PWI_REQUEST_PUSH, &aggregate, ones, NULL));
  must(pwi_client_start(scene.worker.client, &scene.tasks[2], scene.flow, PWI_REQUEST_PUSH, &where, ones, NULL));
  cluster_run_for(&scene.cluster, 500 * MS);
  assert_int_equal(scene.over, 0);
}

static void review(bool manager, bool servers) {
  if (manager) pwi_manager_review(scene.cluster.manager);
  for (size_t i = 0; i < scene.cluster.server_count && servers; i++) pwi_server_review(scene.cluster.servers[i].server);
}

static void assert_others_go_on(void) {
  static const int64_t ones[1] = {1};
  static const uint64_t keys[1] = {5};
  struct pwi_where where = {.keys = keys, .count = 1};
  assert_int_equal(cluster_call(&scene.other, scene.other_flow, PWI_REQUEST_PUSH, &where, ones, NULL, NULL), PAWL_OK);
}

static void assert_all_ended(void) {
  assert_int_equal(scene.over, CALLS);
  for (size_t i = 0; i < CALLS; i++) assert_int_equal(scene.statuses[i], PAWL_LINK_REVOKED);
}

static void assert_is_over(void) {
  static const uint64_t keys[1] = {5};
  struct pwi_client_state state;
  struct pwi_where where = {.keys = keys, .count = 1};
  struct pwi_task task = {.finished = finished};
  pwi_client_state(scene.worker.client, &state);
  assert_true(state.is_dead);
  assert_int_equal(state.trouble, PAWL_LINK_REVOKED);
  assert_int_equal(
      pwi_client_start(scene.worker.client, &task, scene.flow, PWI_REQUEST_PULL, &where, NULL, scene.values),
      PAWL_LINK_REVOKED);
}

/* The manager, the servers, or both reload their keys first. */
static void test_calls_of_a_revoked_key_end_at_once(void **state) {
  (void)state;
  for (int who = 1; who <= 3; who++) {
    open_scene();
    begin_calls();
    scene.asking.replied = replied;
    worker_rights.is_nobody = true;
    review(who & 1, who & 2);
    if (who & 1) must(pwi_client_ask(scene.worker.client, &scene.asking, PWI_ASK_SYNC, NULL, 0));
    cluster_run_for(&scene.cluster, 10 * MS);
    assert_all_ended();
    if (who & 1) assert_true(scene.is_answered && scene.answer == PAWL_LINK_REVOKED);
    assert_is_over();
    assert_others_go_on();
    cluster_run_for(&scene.cluster, 5000 * MS);
    pwi_cluster_close(&scene.cluster);
  }
}

/* The session was cut off at that time, and is told on its return. */
static void test_who_was_away_hears_of_it_on_its_return(void **state) {
  (void)state;
  open_scene();
  begin_calls();
  for (size_t i = 0; i <= scene.cluster.server_count; i++) {
    struct pwi_sim_node node =
        i < scene.cluster.server_count ? scene.cluster.servers[i].node : scene.cluster.manager_node;
    pwi_sim_cut(scene.cluster.sim, scene.worker.node, node);
    pwi_sim_cut(scene.cluster.sim, node, scene.worker.node);
  }
  cluster_run_for(&scene.cluster, 1000 * MS);
  worker_rights.is_nobody = true;
  review(true, true);
  cluster_run_for(&scene.cluster, 1000 * MS);
  assert_int_equal(scene.over, 0);
  for (size_t i = 0; i <= scene.cluster.server_count; i++) {
    struct pwi_sim_node node =
        i < scene.cluster.server_count ? scene.cluster.servers[i].node : scene.cluster.manager_node;
    pwi_sim_mend(scene.cluster.sim, scene.worker.node, node);
    pwi_sim_mend(scene.cluster.sim, node, scene.worker.node);
  }
  cluster_run_for(&scene.cluster, 2500 * MS);
  assert_all_ended();
  assert_is_over();
  assert_others_go_on();
  pwi_cluster_close(&scene.cluster);
}

/* The key may now only read: writing calls end, and reading continues. */
static void test_pushes_of_a_key_that_may_write_no_more_end_too(void **state) {
  (void)state;
  static const uint64_t keys[1] = {5};
  struct pwi_where where = {.keys = keys, .count = 1};
  open_scene();
  begin_calls();
  worker_rights.write = false;
  review(true, true);
  cluster_run_for(&scene.cluster, 2000 * MS);
  assert_int_equal(scene.over, CALLS);
  for (size_t i = 0; i < CALLS; i++) assert_int_equal(scene.statuses[i], PAWL_FORBIDDEN);
  assert_others_go_on();
  assert_int_equal(cluster_call(&scene.worker, scene.flow, PWI_REQUEST_PULL, &where, NULL, scene.values, NULL),
                   PAWL_OK);
  assert_int_equal(scene.values[0], 1);
  assert_int_equal(cluster_call(&scene.worker, scene.flow, PWI_REQUEST_PUSH, &where, scene.values, NULL, NULL),
                   PAWL_FORBIDDEN);
  pwi_cluster_close(&scene.cluster);
}

/* --- refusals that anybody could have sent -------------------------------------------------------------- */

/* A process at the address of a manager or server that is down. It refuses every link because of its key,
 * before the link is up. */
static struct {
  const char *address;
  struct pwi_sim_node node;
  unsigned refusals;
} refuser;

static pawl_status refuse(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self, (void)link;
  refuser.refusals += strcmp(info->identity, "worker") == 0;
  return PAWL_LINK_KEY;
}

static pawl_status boot_refuser(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                                void **self_out) {
  static const struct pwi_actor actor = {.greet = refuse};
  *actor_out = &actor;
  *self_out = context;
  return pwi_net_listen(boot->net, refuser.address);
}

static void add_refuser(const char *address) {
  static const struct pwi_sim_program program = {.name = "refuser", .boot = boot_refuser};
  refuser.address = address;
  refuser.refusals = 0;
  must(pwi_sim_node_add(scene.cluster.sim, &program, &refuser.node));
  must(pwi_sim_start(scene.cluster.sim, refuser.node));
}

static bool is_not_refused_yet(void *context) {
  (void)context;
  return refuser.refusals == 0;
}

static void assert_goes_on(void) {
  struct pwi_client_state state;
  pwi_client_state(scene.worker.client, &state);
  assert_false(state.is_dead);
  assert_int_equal(scene.over, 0);
}

/* The session has no link to the manager, and is refused for 5 s at every attempt. Then it is over. */
static void test_a_session_that_is_refused_for_five_seconds_is_over(void **state) {
  (void)state;
  open_scene();
  begin_calls();
  pwi_sim_kill(scene.cluster.sim, scene.cluster.manager_node);
  add_refuser(PWI_CLUSTER_MANAGER);
  cluster_run_while(&scene.cluster, is_not_refused_yet, NULL, 5000 * MS);
  cluster_run_for(&scene.cluster, 4990 * MS);
  assert_true(refuser.refusals > 2);
  assert_goes_on();
  cluster_run_for(&scene.cluster, 1500 * MS); /* the next attempt follows within a second */
  assert_all_ended();
  assert_is_over();
  pwi_cluster_close(&scene.cluster);
}

/* Something else than a refusal in between: the 5 s begin anew, and the manager that comes back is believed. */
static void test_any_other_end_of_a_link_begins_the_five_seconds_anew(void **state) {
  (void)state;
  open_scene();
  begin_calls();
  pwi_sim_kill(scene.cluster.sim, scene.cluster.manager_node);
  add_refuser(PWI_CLUSTER_MANAGER);
  for (int i = 0; i < 3; i++) {
    refuser.refusals = 0;
    cluster_run_while(&scene.cluster, is_not_refused_yet, NULL, 5000 * MS);
    cluster_run_for(&scene.cluster, 4000 * MS);
    pwi_sim_kill(scene.cluster.sim, refuser.node); /* nobody listens there now */
    cluster_run_for(&scene.cluster, 1500 * MS);
    assert_goes_on();
    if (i < 2) must(pwi_sim_start(scene.cluster.sim, refuser.node));
  }
  must(pwi_sim_start(scene.cluster.sim, scene.cluster.manager_node));
  cluster_run_for(&scene.cluster, 10000 * MS);
  assert_goes_on();
  assert_others_go_on();
  pwi_cluster_close(&scene.cluster);
}

/* Only refusals at the addresses of managers count: others may have the address of a server that is gone. */
static void test_refusals_at_the_address_of_a_server_end_nothing(void **state) {
  (void)state;
  open_scene();
  begin_calls();
  pwi_cluster_kill(&scene.cluster, 0);
  add_refuser(scene.cluster.servers[0].address);
  cluster_run_for(&scene.cluster, 8000 * MS);
  assert_goes_on();
  assert_others_go_on();
  pwi_cluster_close(&scene.cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls_of_a_revoked_key_end_at_once),
      cmocka_unit_test(test_who_was_away_hears_of_it_on_its_return),
      cmocka_unit_test(test_pushes_of_a_key_that_may_write_no_more_end_too),
      cmocka_unit_test(test_a_session_that_is_refused_for_five_seconds_is_over),
      cmocka_unit_test(test_any_other_end_of_a_link_begins_the_five_seconds_anew),
      cmocka_unit_test(test_refusals_at_the_address_of_a_server_end_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
