/* Vectors that servers cannot create for lack of memory: their requests are refused, and all others are
 * served. The simulated servers run in this process, whose address space soon has no room for arrays of 2^44
 * bytes. Sanitizers need this address space themselves.
 *
 * labels: nosan
 */
#include "base/testing.h"
#include "cluster.h"

#define HUGE_VECTORS 20

static const struct pawl_vector_options plain = {
    .type = PAWL_I64, .width = 1, .size = 1000, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_DENSE};
static const struct pawl_vector_options huge = {.type = PAWL_F64,
                                                .width = 1 << 17,
                                                .size = (1 << 24) - 16,
                                                .placement = PAWL_PLACE_ORDERED,
                                                .layout = PAWL_LAYOUT_DENSE};

struct scene {
  struct pwi_cluster cluster;
  struct pwi_cluster_client client;
  struct pwi_flow *plain, *huge[HUGE_VECTORS];
};

static pawl_status push(struct scene *scene, struct pwi_flow *flow, uint64_t key) {
  static int64_t row[1 << 17];
  struct pwi_where where = {.keys = &key, .count = 1};
  return cluster_call(&scene->client, flow, PWI_REQUEST_PUSH, &where, row, NULL, NULL);
}

static pawl_status pull(struct scene *scene, struct pwi_flow *flow, uint64_t key) {
  static int64_t row[1 << 17];
  struct pwi_where where = {.keys = &key, .count = 1};
  return cluster_call(&scene->client, flow, PWI_REQUEST_PULL, &where, NULL, row, NULL);
}

static void open_scene(struct scene *scene, uint32_t replicas) {
  struct pwi_cluster_config config = {
      .seed = 11, .processes = 2, .shards = 1, .late = 1, .replicas = replicas, .shared_hosts = true};
  memset(scene, 0, sizeof *scene);
  cluster_open(&scene->cluster, &config);
  strcpy(scene->client.name, "c");
  cluster_client_add(&scene->cluster, &scene->client);
  cluster_wait_joined(&scene->client);
  scene->plain = cluster_vector(&scene->client, "test/plain", &plain);
  for (size_t i = 0; i < HUGE_VECTORS; i++) {
    char name[32];
    snprintf(name, sizeof name, "test/huge-%zu", i);
    scene->huge[i] = cluster_vector(&scene->client, name, &huge);
  }
}

static bool status_says(struct scene *scene, const char *text) {
  struct pwi_writer writer = {0};
  assert_int_equal(pwi_manager_status(scene->cluster.manager, &writer), PAWL_OK);
  pwi_write_u8(&writer, 0);
  bool says = strstr((const char *)writer.data, text) != NULL;
  pwi_writer_fini(&writer);
  return says;
}

static bool is_not_told(void *context) { return status_says(context, "\"not_made\":0"); }
static bool is_told(void *context) { return !is_not_told(context); }
static bool has_two(void *context) { return !status_says(context, "\"processes_up\":3"); }

static void ask_to_delete(struct scene *scene, const char *name) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, name);
  assert_int_equal(cluster_ask(&scene->client, PWI_ASK_DELETE, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
}

static void test_what_cannot_be_made_is_refused_and_nothing_else(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 1);
  size_t refused = 0;
  for (size_t i = 0; i < HUGE_VECTORS; i++) {
    pawl_status status = push(&scene, scene.huge[i], i);
    assert_true(status == PAWL_OK || status == PAWL_NODE_FULL);
    refused += status != PAWL_OK;
    assert_int_equal(pull(&scene, scene.huge[i], i), status);
    assert_int_equal(push(&scene, scene.plain, i), PAWL_OK);
  }
  assert_true(refused > 0);
  cluster_run_while(&scene.cluster, is_not_told, &scene, 30 * PWI_SIM_SECOND);
  assert_true(status_says(&scene, "\"not_made_by\":["));
  assert_true(status_says(&scene, "\"ready\":true"));
  cluster_start_late(&scene.cluster, 0); /* another comes, and gets its share */
  cluster_run_while(&scene.cluster, has_two, &scene, 60 * PWI_SIM_SECOND);
  for (uint64_t key = 0; key < 1000; key += 50) assert_int_equal(push(&scene, scene.plain, key), PAWL_OK);
  for (size_t i = 0; i < HUGE_VECTORS; i++) {
    char name[32];
    snprintf(name, sizeof name, "test/huge-%zu", i);
    ask_to_delete(&scene, name);
  }
  cluster_run_while(&scene.cluster, is_told, &scene, 30 * PWI_SIM_SECOND);
  assert_int_equal(pull(&scene, scene.plain, 50), PAWL_OK);
  pwi_cluster_close(&scene.cluster);
}

/* When memory is available again, the vector is created after all. */
static void test_what_could_not_be_made_is_made_when_there_is_room(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 0);
  size_t first = 0;
  while (first < HUGE_VECTORS && push(&scene, scene.huge[first], 1) == PAWL_OK) first++;
  assert_true(first < HUGE_VECTORS);
  if (first > 0) { /* else there is no room for even one of them */
    for (size_t i = 0; i < HUGE_VECTORS; i++) {
      char name[32];
      snprintf(name, sizeof name, "test/huge-%zu", i);
      if (i != first) ask_to_delete(&scene, name);
    }
    cluster_run_while(&scene.cluster, is_told, &scene, 30 * PWI_SIM_SECOND);
    assert_int_equal(push(&scene, scene.huge[first], 1), PAWL_OK);
    assert_int_equal(pull(&scene, scene.huge[first], 1), PAWL_OK);
  }
  pwi_cluster_close(&scene.cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_cannot_be_made_is_refused_and_nothing_else),
      cmocka_unit_test(test_what_could_not_be_made_is_made_when_there_is_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
