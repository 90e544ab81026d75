/* Checkpoints of a simulated cluster: saved under traffic and faults, loaded into a cluster of another size,
 * and the answers to clients that use a vector while it is loaded. */
#include "base/testing.h"
#include "wire/filters.h"
#include "saving.h"

static pawl_status begin_restore(struct pwi_cluster_client *client) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, "test/v");
  pwi_write_u8(&writer, (uint8_t)saving_options.type);
  pwi_write_u32(&writer, saving_options.width);
  pwi_write_u64(&writer, saving_options.size);
  pwi_write_u8(&writer, (uint8_t)saving_options.function);
  pwi_write_u8(&writer, (uint8_t)saving_options.placement);
  pwi_write_u8(&writer, (uint8_t)saving_options.layout);
  pawl_status status = cluster_ask(client, PWI_ASK_RESTORE_BEGIN, &writer);
  pwi_writer_fini(&writer);
  return status;
}

static bool are_operators; /* of links that come up from now on */

static struct pwi_rights rights(void *context, const char *identity) {
  (void)context, (void)identity;
  return (struct pwi_rights){.write = !are_operators, .is_operator = are_operators};
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_what_is_saved_in_a_quiet_moment_is_loaded_into_another_size(void **state) {
  (void)state;
  struct saving_scene scene;
  int64_t values[SAVING_KEYS * SAVING_WIDTH];
  struct pwi_where where = {0};
  saving_open(&scene, 11, 3, 1);
  for (int i = 0; i < 5; i++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "one", false);
  saving_read(&scene, "one", NULL);
  for (size_t i = 0; i < (size_t)SAVING_KEYS * SAVING_WIDTH; i++) assert_int_equal(saving_found[i], 5);
  pwi_cluster_close(&scene.cluster);
  saving_open_cluster(&scene, 12, 1, 0);
  assert_int_equal(begin_restore(&scene.client), PAWL_OK);
  scene.flow = cluster_open_vector(&scene.client, "test/v", 0);
  assert_int_equal(cluster_call(&scene.client, scene.flow, PWI_REQUEST_RESTORE, &where, saving_found, NULL, NULL),
                   PAWL_OK);
  assert_int_equal(cluster_ask(&scene.other, PWI_ASK_SYNC, NULL), PAWL_OK);
  saving_pull_all(&scene.other, cluster_open_vector(&scene.other, "test/v", 0), values);
  assert_memory_equal(values, saving_found, sizeof values);
  saving_close(&scene);
}

/* The owner of such a key has no sender id, and the first ask of each session has the same number. */
static void test_each_session_of_an_operator_gets_a_checkpoint_of_its_own(void **state) {
  (void)state;
  static const char *const names[] = {"first", "second"};
  struct pwi_cluster_client sessions[] = {{.name = "first"}, {.name = "second"}};
  struct saving_scene scene;
  saving_open_disk(&scene, 61);
  scene.rights = rights;
  are_operators = false;
  saving_open_cluster(&scene, 61, 1, 0);
  are_operators = true;
  for (size_t i = 0; i < 2; i++) {
    cluster_client_add(&scene.cluster, &sessions[i]);
    cluster_wait_joined(&sessions[i]);
    assert_int_equal(saving_ask_as(&sessions[i], names[i], false, 0), PAWL_OK);
    cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
    saving_read(&scene, names[i], NULL);
  }
  saving_close(&scene);
}

/* Each row is pushed as a whole, so all values of a row are equal, and not lower than the values acknowledged
 * when saving began. */
static void test_a_cut_under_traffic_holds_a_push_wholly_or_not_at_all(void **state) {
  (void)state;
  for (uint64_t seed = 100; seed < 110; seed++) {
    struct saving_scene scene;
    saving_open(&scene, seed, 3, 1);
    int64_t before = 3, pushes = 3;
    for (int i = 0; i < 3; i++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
    assert_int_equal(saving_ask(&scene, "busy", false, 100000), PAWL_OK);
    for (; saving_is_going(&scene); pushes++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
    assert_true(saving_status_says(&scene, "\"state\":\"saved\""));
    assert_true(pushes > before);
    saving_read(&scene, "busy", NULL);
    for (size_t i = 0; i < SAVING_KEYS; i++)
      for (size_t j = 0; j < SAVING_WIDTH; j++) {
        if (saving_found[i * SAVING_WIDTH + j] != saving_found[i * SAVING_WIDTH])
          fail_msg("seed %llu: key %zu is torn", (unsigned long long)seed, i);
        assert_in_range(saving_found[i * SAVING_WIDTH + j], before, pushes);
      }
    saving_close(&scene);
  }
}

static void test_a_server_that_dies_meanwhile_is_replaced_by_the_next_head(void **state) {
  (void)state;
  for (uint64_t seed = 200; seed < 206; seed++) {
    struct saving_scene scene;
    saving_open(&scene, seed, 3, 1);
    for (int i = 0; i < 2; i++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
    assert_int_equal(saving_ask(&scene, "killed", false, 60000), PAWL_OK);
    cluster_run_for(&scene.cluster, (int64_t)(seed % 5 + 1) * 40 * MS);
    pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[seed % 3].node);
    cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
    assert_true(saving_status_says(&scene, "\"state\":\"saved\""));
    saving_read(&scene, "killed", NULL);
    for (size_t i = 0; i < (size_t)SAVING_KEYS * SAVING_WIDTH; i++) assert_int_equal(saving_found[i], 2);
    saving_close(&scene);
  }
}

static void test_what_has_changed_is_enough_on_top_of_a_base_also_after_a_failover(void **state) {
  (void)state;
  struct saving_scene scene;
  struct pwi_saved_totals first, second, third;
  int64_t one[SAVING_WIDTH] = {10, 10, 10, 10};
  uint64_t key = 77;
  struct pwi_where where = {.keys = &key, .count = 1};
  saving_open(&scene, 31, 3, 1);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "first", false);
  assert_int_equal(cluster_call(&scene.client, scene.flow, PWI_REQUEST_PUSH, &where, one, NULL, NULL), PAWL_OK);
  saving_save(&scene, "second", true);
  saving_read(&scene, "first", &first);
  saving_read(&scene, "second", &second);
  assert_int_equal(saving_found[77 * SAVING_WIDTH], 11);
  assert_int_equal(saving_found[78 * SAVING_WIDTH], 1);
  assert_true(second.rows - first.rows < SAVING_KEYS / 2);
  pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[0].node);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  assert_int_equal(cluster_call(&scene.client, scene.flow, PWI_REQUEST_PUSH, &where, one, NULL, NULL), PAWL_OK);
  saving_save(&scene, "third", true);
  saving_read(&scene, "third", &third);
  assert_int_equal(saving_found[77 * SAVING_WIDTH], 22);
  for (size_t i = 0; i < SAVING_KEYS; i++)
    if (i != 77) assert_int_equal(saving_found[i * SAVING_WIDTH], 2);
  saving_close(&scene);
}

static void test_a_full_disk_ends_the_checkpoint_and_nothing_else(void **state) {
  (void)state;
  struct saving_scene scene;
  struct pwi_saved_list list = {0};
  struct pwi_sim_disk_faults faults = {.full = true};
  saving_open(&scene, 41, 3, 1);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "good", false);
  pwi_sim_disk_set_capacity(scene.disk_queue.disk, 200000); /* room for some of it */
  assert_int_equal(saving_ask(&scene, "full", false, 0), PAWL_OK);
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
  pwi_sim_disk_set_faults(scene.disk_queue.disk, &faults);
  (void)saving_ask(&scene, "full2", false, 0);
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
  assert_true(saving_status_says(&scene, "\"state\":\"failed\""));
  assert_true(saving_status_says(&scene, "no space left"));
  pwi_sim_disk_set_faults(scene.disk_queue.disk, NULL);
  pwi_sim_disk_set_capacity(scene.disk_queue.disk, PWI_SIM_DISK_CAPACITY);
  assert_int_equal(pwi_saved_list(pwi_sim_disk_files(scene.disk_queue.disk), &list), PAWL_OK);
  for (size_t i = 0; i < list.count; i++) assert_string_not_equal(list.items[i].name, "full2");
  pwi_saved_list_fini(&list);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "after", false);
  saving_read(&scene, "after", NULL);
  assert_int_equal(saving_found[5], 2);
  saving_close(&scene);
}

static void test_a_disk_that_fails_now_and_then_leaves_whole_checkpoints_or_none(void **state) {
  (void)state;
  for (uint64_t seed = 300; seed < 320; seed++) {
    struct saving_scene scene;
    struct pwi_saved_list list = {0};
    struct pwi_sim_disk_faults faults = {.write_chance = 0.05, .sync_chance = 0.05};
    saving_open(&scene, seed, 2, 1);
    assert_int_equal(saving_push_all(&scene), PAWL_OK);
    pwi_sim_disk_set_faults(scene.disk_queue.disk, &faults);
    (void)saving_ask(&scene, "maybe", false, 0);
    cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
    pwi_sim_disk_set_faults(scene.disk_queue.disk, NULL);
    assert_int_equal(pwi_saved_list(pwi_sim_disk_files(scene.disk_queue.disk), &list), PAWL_OK);
    if (list.count > 0) saving_read(&scene, "maybe", NULL);
    pwi_saved_list_fini(&list);
    assert_int_equal(saving_push_all(&scene), PAWL_OK);
    saving_close(&scene);
  }
}

/* Earlier pushes are gone. The client that pushed them is told once, and continues. */
static void test_who_uses_a_vector_that_is_loaded_is_told_and_goes_on(void **state) {
  (void)state;
  for (uint64_t seed = 400; seed < 420; seed++) {
    struct saving_scene scene;
    int64_t values[SAVING_KEYS * SAVING_WIDTH];
    struct pwi_where where = {0};
    saving_open(&scene, seed, 3, 1);
    struct pwi_flow *others = cluster_open_vector(&scene.other, "test/v", 0);
    for (int i = 0; i < 4; i++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
    assert_int_equal(begin_restore(&scene.other), PAWL_OK);
    saving_fill(values, 100);
    assert_int_equal(cluster_call(&scene.other, others, PWI_REQUEST_RESTORE, &where, values, NULL, NULL), PAWL_OK);
    pawl_status status = saving_push_all(&scene);
    int64_t pushes = status == PAWL_OK;
    assert_true(status == PAWL_OK || status == PAWL_RESTORED);
    for (int i = 0; i < 3; i++, pushes++) assert_int_equal(saving_push_all(&scene), PAWL_OK);
    saving_pull_all(&scene.other, others, values);
    for (size_t i = 0; i < (size_t)SAVING_KEYS * SAVING_WIDTH; i++)
      if (values[i] != 100 + pushes) fail_msg("seed %llu: %lld", (unsigned long long)seed, (long long)values[i]);
    saving_close(&scene);
  }
}

/* Filters hold small changes back. Those from before are gone with the rows that they were for. */
static void test_what_filters_hold_back_is_not_pushed_to_what_is_loaded(void **state) {
  (void)state;
  struct saving_scene scene;
  char problem[PWI_FILTERS_PROBLEM_MAX];
  int64_t values[SAVING_KEYS * SAVING_WIDTH];
  struct pwi_where where = {0}, rests = {.flush = true};
  saving_open(&scene, 440, 3, 1);
  struct pwi_flow *others = cluster_open_vector(&scene.other, "test/v", 0);
  assert_int_equal(
      pwi_client_filter(scene.client.client, scene.flow, "significant(threshold=10)", NULL, problem, sizeof problem),
      PAWL_OK);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  assert_true(pawl_filters_held(pwi_flow_filters(scene.flow, PAWL_ON_PUSH)) > 0);
  assert_int_equal(begin_restore(&scene.other), PAWL_OK);
  saving_fill(values, 100);
  assert_int_equal(cluster_call(&scene.other, others, PWI_REQUEST_RESTORE, &where, values, NULL, NULL), PAWL_OK);
  cluster_run_for(&scene.cluster, PWI_SIM_SECOND);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  assert_int_equal(cluster_call(&scene.client, scene.flow, PWI_REQUEST_PUSH, &rests, NULL, NULL, NULL), PAWL_OK);
  saving_pull_all(&scene.other, others, values);
  for (size_t i = 0; i < (size_t)SAVING_KEYS * SAVING_WIDTH; i++) assert_int_equal(values[i], 101);
  saving_close(&scene);
}

/* The manager does not reach the client, so only the servers can tell it. */
static void test_a_client_that_has_not_heard_of_the_loading_is_told_by_the_servers(void **state) {
  (void)state;
  struct saving_scene scene;
  int64_t values[SAVING_KEYS * SAVING_WIDTH];
  saving_open(&scene, 430, 3, 1);
  struct pwi_flow *others = cluster_open_vector(&scene.other, "test/v", 0);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  pwi_sim_cut(scene.cluster.sim, scene.cluster.manager_node, scene.client.node);
  assert_int_equal(begin_restore(&scene.other), PAWL_OK);
  saving_fill(values, 100);
  assert_int_equal(cluster_call(&scene.other, others, PWI_REQUEST_RESTORE, &(struct pwi_where){0}, values, NULL, NULL),
                   PAWL_OK);
  assert_int_equal(saving_push_all(&scene), PAWL_RESTORED);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_pull_all(&scene.other, others, values);
  for (size_t i = 0; i < (size_t)SAVING_KEYS * SAVING_WIDTH; i++) assert_int_equal(values[i], 101);
  saving_close(&scene);
}

static void test_a_vector_that_is_another_one_is_not_loaded(void **state) {
  (void)state;
  struct saving_scene scene;
  struct pwi_writer writer = {0};
  saving_open(&scene, 51, 1, 0);
  pwi_write_text(&writer, "test/v");
  pwi_write_u8(&writer, PAWL_F32);
  pwi_write_u32(&writer, 1);
  pwi_write_u64(&writer, SAVING_KEYS);
  pwi_write_u8(&writer, 0);
  pwi_write_u8(&writer, PAWL_PLACE_ORDERED);
  pwi_write_u8(&writer, PAWL_LAYOUT_DENSE);
  assert_int_equal(cluster_ask(&scene.client, PWI_ASK_RESTORE_BEGIN, &writer), PAWL_MISMATCH);
  pwi_writer_fini(&writer);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_saved_in_a_quiet_moment_is_loaded_into_another_size),
      cmocka_unit_test(test_each_session_of_an_operator_gets_a_checkpoint_of_its_own),
      cmocka_unit_test(test_a_cut_under_traffic_holds_a_push_wholly_or_not_at_all),
      cmocka_unit_test(test_a_server_that_dies_meanwhile_is_replaced_by_the_next_head),
      cmocka_unit_test(test_what_has_changed_is_enough_on_top_of_a_base_also_after_a_failover),
      cmocka_unit_test(test_a_full_disk_ends_the_checkpoint_and_nothing_else),
      cmocka_unit_test(test_a_disk_that_fails_now_and_then_leaves_whole_checkpoints_or_none),
      cmocka_unit_test(test_who_uses_a_vector_that_is_loaded_is_told_and_goes_on),
      cmocka_unit_test(test_what_filters_hold_back_is_not_pushed_to_what_is_loaded),
      cmocka_unit_test(test_a_client_that_has_not_heard_of_the_loading_is_told_by_the_servers),
      cmocka_unit_test(test_a_vector_that_is_another_one_is_not_loaded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
