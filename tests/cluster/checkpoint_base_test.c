/* Permitted bases of an incremental checkpoint: no checkpoint of arcs that were given up since, none that is
 * missing on disk, and no chain of bases that is too long to read. */
#include "base/hash.h"
#include "base/testing.h"
#include "saving.h"

static struct saving_scene scene;

static struct pwi_files *disk(void) { return pwi_sim_disk_files(scene.disk_queue.disk); }

/* --- losing data ---------------------------------------------------------------------------------------- */

static uint64_t node_of(const struct pwi_cluster_server *server) {
  struct pwi_server_state server_state;
  pwi_server_state(server->server, &server_state);
  return server_state.node;
}

static pawl_status give_up(uint64_t node) {
  struct pwi_writer writer = {0};
  pwi_write_u64(&writer, node);
  pwi_write_u8(&writer, 1);
  pawl_status status = cluster_ask(&scene.client, PWI_ASK_GIVE_UP, &writer);
  pwi_writer_fini(&writer);
  return status;
}

/* The first server dies with the only copy of its arcs; another comes, and the operator gives the first one
 * up. */
static void lose_the_first_server(void) {
  uint64_t dead = node_of(&scene.cluster.servers[0]);
  pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[0].node);
  cluster_start_late(&scene.cluster, 0);
  cluster_run_for(&scene.cluster, 4 * PWI_SIM_SECOND);
  assert_int_equal(give_up(dead), PAWL_OK);
  assert_int_equal(cluster_ask(&scene.other, PWI_ASK_SYNC, NULL), PAWL_OK);
}

/* A client without earlier pushes continues: it pushes one to every second key. */
static void push_to_some(struct pwi_flow *flow) {
  static uint64_t keys[SAVING_KEYS / 2];
  static int64_t values[SAVING_KEYS / 2 * SAVING_WIDTH];
  for (size_t i = 0; i < SAVING_KEYS / 2; i++) keys[i] = 2 * i;
  for (size_t i = 0; i < SAVING_KEYS / 2 * SAVING_WIDTH; i++) values[i] = 1;
  struct pwi_where where = {.keys = keys, .count = SAVING_KEYS / 2};
  assert_int_equal(cluster_call(&scene.other, flow, PWI_REQUEST_PUSH, &where, values, NULL, NULL), PAWL_OK);
}

/* The checkpoint and the cluster have the same contents. */
static void assert_saved_as_it_is(const char *name, struct pwi_flow *flow) {
  static int64_t values[SAVING_KEYS * SAVING_WIDTH];
  saving_pull_all(&scene.other, flow, values);
  saving_read(&scene, name, NULL);
  for (size_t i = 0; i < SAVING_KEYS; i++)
    if (saving_found[i * SAVING_WIDTH] != values[i * SAVING_WIDTH])
      fail_msg("key %zu is %lld in %s, and %lld in the cluster", i, (long long)saving_found[i * SAVING_WIDTH], name,
               (long long)values[i * SAVING_WIDTH]);
}

static void assert_base(const char *name, const char *base) {
  struct pwi_manifest manifest = {0};
  assert_int_equal(pwi_manifest_read(disk(), name, &manifest), PAWL_OK);
  assert_string_equal(manifest.base, base);
  pwi_manifest_fini(&manifest);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

/* The lost arcs begin again with low versions, lower than those of the base. By versions alone nothing would
 * seem to have changed. */
static void test_after_data_was_given_up_the_next_checkpoint_stands_alone(void **state) {
  (void)state;
  for (uint64_t seed = 600; seed < 606; seed++) {
    saving_open(&scene, seed, 2, 0);
    struct pwi_flow *flow = cluster_open_vector(&scene.other, "test/v", 0);
    for (int i = 0; i < 5; i++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
    saving_save(&scene, "before", false);
    lose_the_first_server();
    push_to_some(flow);
    saving_save(&scene, "after", true);
    assert_saved_as_it_is("after", flow);
    assert_base("after", "");
    push_to_some(flow);
    saving_save(&scene, "later", true);
    assert_saved_as_it_is("later", flow);
    assert_base("later", "after");
    saving_close(&scene);
  }
}

static void test_data_that_is_given_up_while_changes_are_saved_ends_the_checkpoint(void **state) {
  (void)state;
  saving_open(&scene, 620, 2, 0);
  struct pwi_flow *flow = cluster_open_vector(&scene.other, "test/v", 0);
  for (int i = 0; i < 5; i++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "before", false);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  assert_int_equal(saving_ask(&scene, "meanwhile", true, 1000), PAWL_OK);
  lose_the_first_server();
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
  assert_true(saving_status_says(&scene, "data of the base was given up: acknowledged data was lost"));
  push_to_some(flow);
  saving_save(&scene, "after", true);
  assert_base("after", "");
  assert_saved_as_it_is("after", flow);
  saving_close(&scene);
}

/* A full checkpoint need not fail when data is given up: each arc is saved as of its own moment. */
static void test_data_that_is_given_up_while_everything_is_saved_is_saved_as_it_is_now(void **state) {
  (void)state;
  saving_open(&scene, 630, 2, 0);
  struct pwi_flow *flow = cluster_open_vector(&scene.other, "test/v", 0);
  for (int i = 0; i < 3; i++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
  assert_int_equal(saving_ask(&scene, "whole", false, 1000), PAWL_OK);
  lose_the_first_server();
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 200 * PWI_SIM_SECOND);
  assert_true(saving_status_says(&scene, "\"state\":\"saved\""));
  assert_saved_as_it_is("whole", flow);
  push_to_some(flow);
  saving_save(&scene, "after", true);
  assert_saved_as_it_is("after", flow);
  saving_close(&scene);
}

/* The arcs of the first server cannot be saved. The checkpoint fails soon, and the next one need not wait for
 * it. */
static void test_a_checkpoint_ends_soon_if_keys_wait_for_a_server_that_is_down(void **state) {
  (void)state;
  saving_open(&scene, 640, 2, 0);
  struct pwi_flow *flow = cluster_open_vector(&scene.other, "test/v", 0);
  uint64_t dead = node_of(&scene.cluster.servers[0]);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[0].node);
  cluster_start_late(&scene.cluster, 0);
  cluster_run_for(&scene.cluster, 4 * PWI_SIM_SECOND);
  assert_int_equal(saving_ask(&scene, "in_vain", false, 0), PAWL_OK);
  int64_t began = pwi_sim_now(scene.cluster.sim);
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 15 * PWI_SIM_SECOND);
  assert_in_range(pwi_sim_now(scene.cluster.sim) - began, 9 * PWI_SIM_SECOND, 11 * PWI_SIM_SECOND);
  assert_true(saving_status_says(
      &scene, "keys have no server that could save them: the only copy of some keys is on servers that are"));
  assert_int_equal(give_up(dead), PAWL_OK);
  assert_int_equal(cluster_ask(&scene.other, PWI_ASK_SYNC, NULL), PAWL_OK);
  push_to_some(flow);
  saving_save(&scene, "after", false);
  assert_saved_as_it_is("after", flow);
  saving_close(&scene);
}

static void test_a_checkpoint_whose_base_is_gone_is_no_base(void **state) {
  (void)state;
  saving_open(&scene, 640, 2, 0);
  struct pwi_flow *flow = cluster_open_vector(&scene.other, "test/v", 0);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "one", false);
  saving_save(&scene, "two", true);
  assert_base("two", "one");
  assert_int_equal(pwi_saved_remove(disk(), "one", 7), PAWL_OK);
  saving_save(&scene, "three", true);
  assert_base("three", "");
  assert_saved_as_it_is("three", flow);
  saving_close(&scene);
}

/* Writes copies of one manifest, each based on the one before, up to the limit. */
static void write_row(const char *first, size_t count) {
  struct pwi_manifest manifest = {0};
  assert_int_equal(pwi_manifest_read(disk(), first, &manifest), PAWL_OK);
  for (size_t i = 1; i < count; i++) {
    memcpy(manifest.base, manifest.name, sizeof manifest.base);
    snprintf(manifest.name, sizeof manifest.name, "row-%zu", i);
    manifest.number++;
    assert_int_equal(pwi_files_make_directory(disk(), manifest.name), PAWL_OK);
    assert_int_equal(pwi_manifest_write(disk(), manifest.name, &manifest), PAWL_OK);
  }
  pwi_manifest_fini(&manifest);
}

static void test_a_row_of_bases_ends_before_it_is_too_long_to_be_read(void **state) {
  (void)state;
  struct pwi_saved saved;
  struct pwi_problem problem;
  saving_open(&scene, 650, 1, 0);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "first", false);
  write_row("first", PWI_SAVED_LAYERS_MAX - 1);
  saving_save(&scene, "last", true);
  assert_base("last", "row-1022");
  assert_int_equal(pwi_saved_open(disk(), "last", &saved, &problem), PAWL_OK);
  assert_int_equal(saved.layer_count, PWI_SAVED_LAYERS_MAX);
  pwi_saved_close(&saved);
  saving_save(&scene, "anew", true);
  assert_base("anew", "");
  saving_close(&scene);
}

static void push_key(uint64_t key) {
  const int64_t one[SAVING_WIDTH] = {1, 1, 1, 1};
  struct pwi_where where = {.keys = &key, .count = 1};
  assert_int_equal(cluster_call(&scene.client, scene.flow, PWI_REQUEST_PUSH, &where, one, NULL, NULL), PAWL_OK);
}

/* Arcs with many changes and arcs with few are merged after the base: when servers are lost, the others get their arcs.
 * Changes from before that have the numbers of their own arc. */
static void test_arcs_that_were_several_in_the_base_miss_no_change(void **state) {
  (void)state;
  for (uint64_t seed = 660; seed < 664; seed++) {
    saving_open(&scene, seed, 3, 2);
    struct pwi_flow *flow = cluster_open_vector(&scene.other, "test/v", 0);
    for (uint64_t i = 0; i < 300; i++) push_key(pwi_mix64(seed ^ i) % 20 * 150);
    saving_save(&scene, "before", false);
    for (uint64_t key = 0; key < SAVING_KEYS; key += 50) push_key(key);
    pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[0].node);
    cluster_run_for(&scene.cluster, 5 * PWI_SIM_SECOND);
    pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[1].node);
    cluster_run_for(&scene.cluster, 20 * PWI_SIM_SECOND);
    saving_save(&scene, "after", true);
    assert_base("after", "before");
    assert_saved_as_it_is("after", flow);
    saving_close(&scene);
  }
}

static bool has_two_nodes(void *context) {
  struct pwi_manager_figures figures;
  (void)context;
  pwi_manager_figures(scene.cluster.manager, &figures);
  return figures.nodes_up + figures.nodes_draining == 2;
}

/* A server that leaves hands on rows that were changed since the base, to a server that has a part of the base itself. */
static void test_changes_that_move_to_another_server_are_not_missed(void **state) {
  struct pwi_writer writer = {0};
  (void)state;
  saving_open(&scene, 670, 2, 0);
  struct pwi_flow *flow = cluster_open_vector(&scene.other, "test/v", 0);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "before", false);
  for (uint64_t key = 0; key < SAVING_KEYS; key += 50) push_key(key);
  pwi_write_u64(&writer, node_of(&scene.cluster.servers[0]));
  pwi_write_text(&writer, "");
  assert_int_equal(cluster_ask(&scene.client, PWI_ASK_DRAIN, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  cluster_run_while(&scene.cluster, has_two_nodes, NULL, 60 * PWI_SIM_SECOND);
  saving_save(&scene, "after", true);
  assert_base("after", "before");
  assert_saved_as_it_is("after", flow);
  saving_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_after_data_was_given_up_the_next_checkpoint_stands_alone),
      cmocka_unit_test(test_data_that_is_given_up_while_changes_are_saved_ends_the_checkpoint),
      cmocka_unit_test(test_data_that_is_given_up_while_everything_is_saved_is_saved_as_it_is_now),
      cmocka_unit_test(test_a_checkpoint_ends_soon_if_keys_wait_for_a_server_that_is_down),
      cmocka_unit_test(test_a_checkpoint_whose_base_is_gone_is_no_base),
      cmocka_unit_test(test_arcs_that_were_several_in_the_base_miss_no_change),
      cmocka_unit_test(test_changes_that_move_to_another_server_are_not_missed),
      cmocka_unit_test(test_a_row_of_bases_ends_before_it_is_too_long_to_be_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
