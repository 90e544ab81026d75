/* What servers permit a key, and limits of a key that change while its links are up: each link has the new ones at
 * once (docs/security.md, "Reading keys anew"). The manager has not read the keys again in these tests. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"

#define ROWS 100

static struct {
  struct pwi_cluster cluster;
  struct pwi_cluster_client worker, other;
  struct pwi_flow *flow, *sparse;
  struct pwi_rights of_worker, of_servers;
} scene;

static struct pwi_rights rights(void *context, const char *identity) {
  struct pwi_rights all = {.write = true};
  (void)context;
  if (strcmp(identity, "worker") == 0) return scene.of_worker;
  return strcmp(identity, "other") == 0 ? all : scene.of_servers;
}

static void tell_names(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->has_identities = true;
}

static void open_scene(uint32_t processes) {
  struct pwi_cluster_config config = {
      .seed = 5, .processes = processes, .shards = 1, .replicas = processes - 1, .rights = rights, .tune = tell_names};
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = ROWS};
  memset(&scene, 0, sizeof scene);
  scene.of_worker.write = scene.of_servers.write = true;
  scene.worker = (struct pwi_cluster_client){.name = "worker", .job = "job"};
  scene.other = (struct pwi_cluster_client){.name = "other", .job = "job"};
  cluster_open(&scene.cluster, &config);
  cluster_client_add(&scene.cluster, &scene.worker);
  cluster_client_add(&scene.cluster, &scene.other);
  cluster_wait_joined(&scene.worker);
  cluster_wait_joined(&scene.other);
  scene.flow = cluster_vector(&scene.worker, "a/w", &options);
  options.size = PAWL_KEY_END;
  options.layout = PAWL_LAYOUT_SPARSE;
  scene.sparse = cluster_vector(&scene.worker, "a/s", &options);
}

static void review_servers(void) {
  for (size_t i = 0; i < scene.cluster.server_count; i++) pwi_server_review(scene.cluster.servers[i].server);
  cluster_run_for(&scene.cluster, MS);
}

static pawl_status push(struct pwi_flow *flow, uint64_t first) {
  static uint64_t keys[ROWS];
  static int64_t values[ROWS];
  for (size_t i = 0; i < ROWS; i++) {
    keys[i] = first + i;
    values[i] = (int64_t)(i * UINT64_C(0x9E3779B97F4A7C15)); /* nothing that a codec makes short */
  }
  struct pwi_where where = {.keys = keys, .count = ROWS};
  return cluster_call(&scene.worker, flow, PWI_REQUEST_PUSH, &where, values, NULL, NULL);
}

static pawl_status pull(void) {
  static int64_t values[ROWS];
  struct pwi_where all = {.range = {0, ROWS}};
  return cluster_call(&scene.worker, scene.flow, PWI_REQUEST_PULL, &all, NULL, values, NULL);
}

static void test_a_key_that_may_read_changes_nothing(void **state) {
  (void)state;
  open_scene(1);
  assert_int_equal(push(scene.flow, 0), PAWL_OK);
  scene.of_worker.write = false;
  review_servers();
  assert_int_equal(push(scene.flow, 0), PAWL_FORBIDDEN);
  assert_int_equal(pull(), PAWL_OK);
  pwi_cluster_close(&scene.cluster);
}

static void test_a_key_of_an_operator_reads_nothing(void **state) {
  (void)state;
  open_scene(1);
  assert_int_equal(pull(), PAWL_OK);
  scene.of_worker = (struct pwi_rights){.is_operator = true};
  review_servers();
  assert_int_equal(pull(), PAWL_FORBIDDEN);
  assert_int_equal(push(scene.flow, 0), PAWL_FORBIDDEN);
  pwi_cluster_close(&scene.cluster);
}

/* --- quotas --------------------------------------------------------------------------------------------- */

static void test_a_link_that_is_up_is_given_the_rate_of_its_key(void **state) {
  (void)state;
  open_scene(1);
  assert_int_equal(push(scene.flow, 0), PAWL_OK);
  scene.of_worker.rate = 10;
  review_servers();
  assert_int_equal(push(scene.flow, 0), PAWL_OK); /* one request may exceed the rate */
  assert_int_equal(push(scene.flow, 0), PAWL_QUOTA_RATE);
  scene.of_worker.rate = 0;
  review_servers();
  assert_int_equal(push(scene.flow, 0), PAWL_OK);
  pwi_cluster_close(&scene.cluster);
}

static void test_values_of_answers_count_against_the_rate(void **state) {
  (void)state;
  open_scene(1);
  assert_int_equal(push(scene.flow, 0), PAWL_OK);
  scene.of_worker.rate = ROWS * sizeof(int64_t) / 2; /* more than some requests without values */
  review_servers();
  assert_int_equal(pull(), PAWL_OK);
  assert_int_equal(pull(), PAWL_QUOTA_RATE);
  pwi_cluster_close(&scene.cluster);
}

static void let_go(struct pwi_task *task) { (void)task; }

/* The group waits for the push. */
static void test_a_push_of_a_group_is_served_beyond_the_rate(void **state) {
  static const uint64_t keys[1] = {5};
  static const int64_t ones[1] = {1};
  struct pwi_writer writer = {0};
  struct pwi_task task = {.finished = let_go};
  (void)state;
  open_scene(1);
  pwi_write_text(&writer, "a/.alone");
  pwi_write_u32(&writer, 1);
  assert_int_equal(cluster_ask(&scene.worker, PWI_ASK_GROUP, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  struct pwi_flow *group = cluster_open_vector(&scene.worker, "a/.alone", 0);
  assert_int_equal(pwi_client_enter(scene.worker.client, &task, group), PAWL_OK);
  cluster_run_for(&scene.cluster, 100 * MS);
  scene.of_worker.rate = 10;
  review_servers();
  assert_int_equal(push(scene.flow, 0), PAWL_OK);
  assert_int_equal(push(scene.flow, 0), PAWL_QUOTA_RATE);
  struct pwi_where where = {.keys = keys, .count = 1, .aggregate = pwi_flow_entry(group)->id.id, .tick = 1};
  assert_int_equal(cluster_call(&scene.worker, scene.flow, PWI_REQUEST_PUSH, &where, ones, NULL, NULL), PAWL_OK);
  pwi_cluster_close(&scene.cluster);
}

static void test_a_space_grows_again_when_its_limit_is_gone(void **state) {
  uint64_t first = 0;
  (void)state;
  open_scene(1);
  strcpy(scene.of_worker.space, "a");
  scene.of_worker.memory = 1 << 20;
  review_servers();
  while (first < (1 << 20) && push(scene.sparse, first) == PAWL_OK) first += ROWS;
  assert_in_range(first, ROWS, (1 << 20) - 1);
  assert_int_equal(push(scene.sparse, first), PAWL_QUOTA_MEMORY);
  scene.of_worker.memory = 0;
  review_servers();
  assert_int_equal(push(scene.sparse, first), PAWL_OK);
  pwi_cluster_close(&scene.cluster);
}

/* --- servers -------------------------------------------------------------------------------------------- */

static bool is_whole(void *context) {
  struct pwi_manager_figures figures;
  (void)context;
  pwi_manager_figures(scene.cluster.manager, &figures);
  return figures.under_replicated == 0;
}

/* The manager still trusts both. Neither takes changes from the other, so one has to leave its chains. */
static void test_servers_with_limited_keys_take_no_changes(void **state) {
  (void)state;
  open_scene(2);
  assert_int_equal(push(scene.flow, 0), PAWL_OK);
  assert_true(is_whole(NULL));
  strcpy(scene.of_servers.space, "a");
  review_servers();
  cluster_run_while(&scene.cluster, is_whole, NULL, 20000 * MS);
  pwi_cluster_close(&scene.cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_key_that_may_read_changes_nothing),
      cmocka_unit_test(test_a_key_of_an_operator_reads_nothing),
      cmocka_unit_test(test_a_link_that_is_up_is_given_the_rate_of_its_key),
      cmocka_unit_test(test_values_of_answers_count_against_the_rate),
      cmocka_unit_test(test_a_push_of_a_group_is_served_beyond_the_rate),
      cmocka_unit_test(test_a_space_grows_again_when_its_limit_is_gone),
      cmocka_unit_test(test_servers_with_limited_keys_take_no_changes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
