/* A memory quota of a space over all servers: the manager keeps it across restarts, and all servers enforce
 * it. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"
#include "manager/inside.h"

#define QUOTA ((uint64_t)4 << 20)
#define ROWS 4096 /* in a push */

static struct {
  struct pwi_cluster cluster;
  struct pwi_cluster_client client;
  struct pwi_flow *ads, *news;
  uint64_t next; /* key */
} scene;

static const struct pawl_vector_options sparse = {
    .type = PAWL_I64, .width = 1, .size = PAWL_KEY_END, .layout = PAWL_LAYOUT_SPARSE, .placement = PAWL_PLACE_MIXED};

static void open_scene(void) {
  struct pwi_cluster_config config = {.seed = 3, .processes = 3, .shards = 1, .replicas = 1, .durable = true};
  memset(&scene, 0, sizeof scene);
  scene.client = (struct pwi_cluster_client){.name = "client", .job = "job"};
  cluster_open(&scene.cluster, &config);
  cluster_client_add(&scene.cluster, &scene.client);
  cluster_wait_joined(&scene.client);
  scene.ads = cluster_vector(&scene.client, "ads/w", &sparse);
  scene.news = cluster_vector(&scene.client, "news/w", &sparse);
}

static pawl_status set_quota(const char *space, uint64_t bytes) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, space);
  pwi_write_u64(&writer, bytes);
  pawl_status status = cluster_ask(&scene.client, PWI_ASK_QUOTA, &writer);
  pwi_writer_fini(&writer);
  cluster_run_for(&scene.cluster, 100 * MS);
  return status;
}

static pawl_status push(struct pwi_flow *flow) {
  static uint64_t keys[ROWS];
  static int64_t values[ROWS];
  for (size_t i = 0; i < ROWS; i++) keys[i] = scene.next + i * 997;
  scene.next += ROWS * 997;
  struct pwi_where where = {.keys = keys, .count = ROWS};
  return cluster_call(&scene.client, flow, PWI_REQUEST_PUSH, &where, values, NULL, NULL);
}

/* Until it is refused. */
static void fill_up(void) {
  for (int i = 0; i < 1000; i++) {
    pawl_status status = push(scene.ads);
    cluster_run_for(&scene.cluster, 300 * MS);
    if (!status) continue;
    assert_int_equal(status, PAWL_QUOTA_MEMORY);
    return;
  }
  fail_msg("nothing was refused");
}

static uint64_t used(void) { return pwi_manager_space_used(scene.cluster.manager, "ads"); }

static void test_a_space_grows_to_its_quota_on_all_servers_together(void **state) {
  (void)state;
  open_scene();
  assert_int_equal(push(scene.ads), PAWL_OK); /* what is there when the quota comes counts */
  assert_int_equal(set_quota("ads", QUOTA), PAWL_OK);
  fill_up();
  cluster_run_for(&scene.cluster, 2000 * MS);
  assert_true(used() >= QUOTA / 2);
  assert_true(used() <= QUOTA + QUOTA / 4);
  assert_int_equal(push(scene.news), PAWL_OK); /* others go on */
  uint64_t before = used();
  for (int i = 0; i < 5; i++) assert_int_equal(push(scene.ads), PAWL_QUOTA_MEMORY);
  cluster_run_for(&scene.cluster, 2000 * MS);
  assert_true(used() <= before + QUOTA / 64);

  pwi_sim_kill(scene.cluster.sim, scene.cluster.manager_node); /* it is in the log, */
  cluster_run_for(&scene.cluster, 1000 * MS);
  assert_int_equal(pwi_sim_start(scene.cluster.sim, scene.cluster.manager_node), PAWL_OK);
  cluster_run_for(&scene.cluster, 5000 * MS);
  assert_int_equal(push(scene.ads), PAWL_QUOTA_MEMORY);
  assert_true(used() >= QUOTA / 2);

  assert_int_equal(set_quota("ads", 4 * QUOTA), PAWL_OK); /* more, */
  cluster_run_for(&scene.cluster, 2000 * MS);
  assert_int_equal(push(scene.ads), PAWL_OK);
  assert_int_equal(set_quota("ads", QUOTA / 2), PAWL_OK); /* less: what is there stays */
  cluster_run_for(&scene.cluster, 2000 * MS);
  assert_int_equal(push(scene.ads), PAWL_QUOTA_MEMORY);
  assert_int_equal(set_quota("ads", 0), PAWL_OK); /* and none */
  assert_int_equal(push(scene.ads), PAWL_OK);
  assert_int_equal(scene.cluster.manager->ledger.space_count, 0);
  pwi_cluster_close(&scene.cluster);
}

static bool is_not_whole(void *context) {
  struct pwi_manager_figures figures;
  (void)context;
  pwi_manager_figures(scene.cluster.manager, &figures);
  return figures.under_replicated > 0 || figures.waiting > 0;
}

/* A server dies. Its replicas are the heads of its arcs now, and refuse growth beyond the quota as it did.
 * Pushes use what its death has left of the quota before its arcs are copied anew; the chains become whole
 * nevertheless. */
static void test_replicas_that_take_over_enforce_the_quota(void **state) {
  (void)state;
  open_scene();
  assert_int_equal(set_quota("ads", QUOTA), PAWL_OK);
  fill_up();
  cluster_run_for(&scene.cluster, 2000 * MS);
  uint64_t full = used();
  pwi_cluster_kill(&scene.cluster, 0);
  fill_up();
  cluster_run_while(&scene.cluster, is_not_whole, NULL, 60000 * MS);
  cluster_run_for(&scene.cluster, 3000 * MS);
  for (int i = 0; i < 5; i++) assert_int_equal(push(scene.ads), PAWL_QUOTA_MEMORY);
  cluster_run_for(&scene.cluster, 2000 * MS);
  assert_true(used() <= full + full / 2);
  assert_int_equal(push(scene.news), PAWL_OK);
  pwi_cluster_close(&scene.cluster);
}

static pawl_status create(const char *name, uint64_t size) {
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = size, .layout = PAWL_LAYOUT_DENSE};
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, name);
  pwi_options_write(&writer, &options);
  pawl_status status = cluster_ask(&scene.client, PWI_ASK_CREATE, &writer);
  pwi_writer_fini(&writer);
  return status;
}

static void test_a_dense_vector_that_does_not_fit_beside_the_others_is_not_made(void **state) {
  (void)state;
  open_scene();
  assert_int_equal(set_quota("ads", QUOTA), PAWL_OK);
  assert_int_equal(create("ads/large", QUOTA / 8 + 1), PAWL_QUOTA_MEMORY);
  assert_int_equal(create("news/large", QUOTA / 8 + 1), PAWL_OK);
  assert_int_equal(create("ads/half", QUOTA / 16), PAWL_OK);
  assert_int_equal(create("ads/more", QUOTA / 16 + 1), PAWL_QUOTA_MEMORY);
  assert_int_equal(create("adsmore/w", QUOTA), PAWL_OK); /* another space */
  pwi_cluster_close(&scene.cluster);
}

static void test_a_quota_needs_a_space(void **state) {
  (void)state;
  open_scene();
  assert_int_equal(set_quota("", QUOTA), PAWL_INVALID);
  assert_int_equal(set_quota("a/b", QUOTA), PAWL_INVALID);
  assert_int_equal(set_quota("none", 0), PAWL_OK); /* there is none, as was asked */
  for (int i = 0; i < PWI_LEDGER_SPACES_MAX; i++) {
    char name[32];
    snprintf(name, sizeof name, "space%d", i);
    assert_int_equal(set_quota(name, QUOTA), PAWL_OK);
  }
  assert_int_equal(set_quota("another", QUOTA), PAWL_TOO_LARGE);
  assert_int_equal(set_quota("space7", 1), PAWL_OK);
  assert_int_equal(pwi_ledger_space(&scene.cluster.manager->ledger, "space7")->memory, 1);
  pwi_cluster_close(&scene.cluster);
}

static struct pwi_rights limited(void *context, const char *identity) {
  (void)context;
  struct pwi_rights rights = {.write = true};
  if (strcmp(identity, "client") == 0) strcpy(rights.space, "ads");
  return rights;
}

static void tell_names(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->has_identities = true;
}

static void test_a_key_of_the_space_cannot_change_its_quota(void **state) {
  struct pwi_cluster_config config = {.seed = 3, .processes = 1, .shards = 1, .rights = limited, .tune = tell_names};
  (void)state;
  memset(&scene, 0, sizeof scene);
  scene.client = (struct pwi_cluster_client){.name = "client", .job = "job"};
  cluster_open(&scene.cluster, &config);
  cluster_client_add(&scene.cluster, &scene.client);
  cluster_wait_joined(&scene.client);
  assert_int_equal(set_quota("ads", QUOTA), PAWL_FORBIDDEN);
  pwi_cluster_close(&scene.cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_space_grows_to_its_quota_on_all_servers_together),
      cmocka_unit_test(test_replicas_that_take_over_enforce_the_quota),
      cmocka_unit_test(test_a_dense_vector_that_does_not_fit_beside_the_others_is_not_made),
      cmocka_unit_test(test_a_quota_needs_a_space),
      cmocka_unit_test(test_a_key_of_the_space_cannot_change_its_quota),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
