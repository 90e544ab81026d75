/* Checkpoints of a simulated cluster: saved under traffic and faults, loaded into another size, and what those are told who
 * use a vector that is loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "cluster.h"
#include "role/saved.h"
#include "sim/disk.h"

#define KEYS 3000
#define WIDTH 4
#define SECONDS PWI_SIM_SECOND

/* --- a depot that is a disk of the simulator, the same for all ------------------------------------------------------------ */

struct sim_depot {
  struct pwi_depot depot;
  struct pwi_sim_disk *disk;
};

static pawl_status depot_open(struct pwi_depot *depot, const char *directory, struct pwi_files **files_out) {
  (void)directory;
  *files_out = pwi_sim_disk_files(((struct sim_depot *)depot)->disk);
  return PAWL_OK;
}

static void depot_close(struct pwi_depot *depot, struct pwi_files *files) { (void)depot, (void)files; }

static void depot_send(struct pwi_depot *depot, struct pwi_errand *errand) {
  (void)depot;
  pwi_errand_do(errand);
}

static void depot_settle(struct pwi_depot *depot) { (void)depot; }
static int64_t depot_wall(struct pwi_depot *depot) { return (void)depot, 1700000000; }

static const struct pwi_depot_ops depot_ops = {depot_open, depot_close, depot_send, depot_settle, depot_wall};

/* --- a scene: a cluster, a client, a vector --------------------------------------------------------------------------------- */

struct scene {
  struct sim_depot depot;
  struct pwi_cluster cluster;
  struct pwi_cluster_client client, other;
  struct pwi_flow *flow;
};

static const struct pawl_vector_options options = {
    .type = PAWL_I64, .width = WIDTH, .size = KEYS, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_DENSE};

static void open_cluster(struct scene *scene, uint64_t seed, uint32_t processes, uint32_t replicas) {
  struct pwi_cluster_config config = {
      .seed = seed, .processes = processes, .shards = 1, .late = 1, .replicas = replicas, .depot = &scene->depot.depot};
  cluster_open(&scene->cluster, &config);
  memset(&scene->client, 0, sizeof scene->client);
  memset(&scene->other, 0, sizeof scene->other);
  strcpy(scene->client.name, "c");
  strcpy(scene->other.name, "o");
  cluster_client_add(&scene->cluster, &scene->client);
  cluster_client_add(&scene->cluster, &scene->other);
  cluster_wait_joined(&scene->client);
  cluster_wait_joined(&scene->other);
}

static void open_scene(struct scene *scene, uint64_t seed, uint32_t processes, uint32_t replicas) {
  struct pwi_sim_disk_host host = {.seed = seed, .stream = 5};
  memset(scene, 0, sizeof *scene);
  scene->depot.depot.ops = &depot_ops;
  assert_int_equal(pwi_sim_disk_create(&host, &scene->depot.disk), PAWL_OK);
  open_cluster(scene, seed, processes, replicas);
  scene->flow = cluster_vector(&scene->client, "test/v", &options);
  assert_int_equal(cluster_ask(&scene->other, PWI_ASK_SYNC, NULL), PAWL_OK);
}

static void close_scene(struct scene *scene) {
  pwi_cluster_close(&scene->cluster);
  pwi_sim_disk_destroy(scene->depot.disk);
}

static void fill(int64_t *values, int64_t value) {
  for (size_t i = 0; i < (size_t)KEYS * WIDTH; i++) values[i] = value;
}

/* One of each key. */
static pawl_status push_all(struct scene *scene) {
  static int64_t values[KEYS * WIDTH];
  struct pwi_where where = {0};
  fill(values, 1);
  return cluster_call(&scene->client, scene->flow, PWI_REQUEST_PUSH, &where, values, NULL, NULL);
}

static void pull_all(struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t *values) {
  struct pwi_where where = {0};
  assert_int_equal(cluster_call(client, flow, PWI_REQUEST_PULL, &where, NULL, values, NULL), PAWL_OK);
}

static pawl_status ask_to_save(struct scene *scene, const char *name, bool incremental, uint64_t rate) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, "/saved");
  pwi_write_text(&writer, name);
  pwi_write_u8(&writer, incremental);
  pwi_write_u64(&writer, rate);
  pawl_status status = cluster_ask(&scene->other, PWI_ASK_CHECKPOINT, &writer);
  pwi_writer_fini(&writer);
  return status;
}

static bool status_says(struct scene *scene, const char *text) {
  struct pwi_writer writer = {0};
  if (!scene->cluster.manager) return false;
  assert_int_equal(pwi_manager_status(scene->cluster.manager, &writer), PAWL_OK);
  pwi_write_u8(&writer, 0);
  bool says = strstr((const char *)writer.data, text) != NULL;
  pwi_writer_fini(&writer);
  return says;
}

static bool is_saving(void *context) { return status_says(context, "\"checkpoint\":"); }

static void save(struct scene *scene, const char *name, bool incremental) {
  assert_int_equal(ask_to_save(scene, name, incremental, 0), PAWL_OK);
  cluster_run_while(&scene->cluster, is_saving, scene, 60 * SECONDS);
  assert_true(status_says(scene, "\"state\":\"saved\""));
}

/* --- reading a checkpoint ------------------------------------------------------------------------------------------------- */

static int64_t found[KEYS * WIDTH];

static pawl_status collect(void *context, const struct pwi_chunk *chunk) {
  (void)context;
  for (size_t i = 0; i < chunk->count; i++)
    memcpy(found + pwi_chunk_key(chunk, i) * WIDTH, chunk->values + i * chunk->row_bytes, chunk->row_bytes);
  return PAWL_OK;
}

/* Its rows, in `found`; all checksums are looked at. */
static void read_saved(struct scene *scene, const char *name, struct pwi_saved_totals *totals_out) {
  struct pwi_saved saved;
  struct pwi_saved_totals totals;
  struct pwi_problem problem;
  fill(found, 0);
  assert_int_equal(pwi_saved_open(pwi_sim_disk_files(scene->depot.disk), name, &saved, &problem), PAWL_OK);
  if (pwi_saved_verify(&saved, &totals, &problem)) fail_msg("%s", problem.text);
  assert_int_equal(pwi_saved_walk_all(&saved, collect, NULL, &problem), PAWL_OK);
  pwi_saved_close(&saved);
  if (totals_out) *totals_out = totals;
}

static pawl_status begin_restore(struct pwi_cluster_client *client) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, "test/v");
  pwi_write_u8(&writer, (uint8_t)options.type);
  pwi_write_u32(&writer, options.width);
  pwi_write_u64(&writer, options.size);
  pwi_write_u8(&writer, (uint8_t)options.function);
  pwi_write_u8(&writer, (uint8_t)options.placement);
  pwi_write_u8(&writer, (uint8_t)options.layout);
  pawl_status status = cluster_ask(client, PWI_ASK_RESTORE_BEGIN, &writer);
  pwi_writer_fini(&writer);
  return status;
}

/* --- tests ---------------------------------------------------------------------------------------------------------------- */

static void test_what_is_saved_in_a_quiet_moment_is_loaded_into_another_size(void **state) {
  (void)state;
  struct scene scene;
  int64_t values[KEYS * WIDTH];
  struct pwi_where where = {0};
  open_scene(&scene, 11, 3, 1);
  for (int i = 0; i < 5; i++) assert_int_equal(push_all(&scene), PAWL_OK);
  save(&scene, "one", false);
  read_saved(&scene, "one", NULL);
  for (size_t i = 0; i < (size_t)KEYS * WIDTH; i++) assert_int_equal(found[i], 5);
  pwi_cluster_close(&scene.cluster);
  open_cluster(&scene, 12, 1, 0);
  assert_int_equal(begin_restore(&scene.client), PAWL_OK);
  scene.flow = cluster_open_vector(&scene.client, "test/v", 0);
  assert_int_equal(cluster_call(&scene.client, scene.flow, PWI_REQUEST_RESTORE, &where, found, NULL, NULL), PAWL_OK);
  assert_int_equal(cluster_ask(&scene.other, PWI_ASK_SYNC, NULL), PAWL_OK);
  pull_all(&scene.other, cluster_open_vector(&scene.other, "test/v", 0), values);
  assert_memory_equal(values, found, sizeof values);
  close_scene(&scene);
}

/* Each row is pushed to as a whole, so all numbers of a row are the same, and no less than what was acknowledged when saving
 * began. */
static void test_a_cut_under_traffic_holds_a_push_wholly_or_not_at_all(void **state) {
  (void)state;
  for (uint64_t seed = 100; seed < 110; seed++) {
    struct scene scene;
    open_scene(&scene, seed, 3, 1);
    int64_t before = 3, pushes = 3;
    for (int i = 0; i < 3; i++) assert_int_equal(push_all(&scene), PAWL_OK);
    assert_int_equal(ask_to_save(&scene, "busy", false, 100000), PAWL_OK);
    for (; is_saving(&scene); pushes++) assert_int_equal(push_all(&scene), PAWL_OK);
    assert_true(status_says(&scene, "\"state\":\"saved\""));
    assert_true(pushes > before);
    read_saved(&scene, "busy", NULL);
    for (size_t i = 0; i < KEYS; i++)
      for (size_t j = 0; j < WIDTH; j++) {
        if (found[i * WIDTH + j] != found[i * WIDTH])
          fail_msg("seed %llu: key %zu is torn", (unsigned long long)seed, i);
        assert_in_range(found[i * WIDTH + j], before, pushes);
      }
    close_scene(&scene);
  }
}

static void test_a_server_that_dies_meanwhile_is_replaced_by_the_next_head(void **state) {
  (void)state;
  for (uint64_t seed = 200; seed < 206; seed++) {
    struct scene scene;
    open_scene(&scene, seed, 3, 1);
    for (int i = 0; i < 2; i++) assert_int_equal(push_all(&scene), PAWL_OK);
    assert_int_equal(ask_to_save(&scene, "killed", false, 60000), PAWL_OK);
    cluster_run_for(&scene.cluster, (int64_t)(seed % 5 + 1) * 40 * MS);
    pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[seed % 3].node);
    cluster_run_while(&scene.cluster, is_saving, &scene, 60 * SECONDS);
    assert_true(status_says(&scene, "\"state\":\"saved\""));
    read_saved(&scene, "killed", NULL);
    for (size_t i = 0; i < (size_t)KEYS * WIDTH; i++) assert_int_equal(found[i], 2);
    close_scene(&scene);
  }
}

static void test_what_has_changed_is_enough_on_top_of_a_base_also_after_a_failover(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_saved_totals first, second, third;
  int64_t one[WIDTH] = {10, 10, 10, 10};
  uint64_t key = 77;
  struct pwi_where where = {.keys = &key, .count = 1};
  open_scene(&scene, 31, 3, 1);
  assert_int_equal(push_all(&scene), PAWL_OK);
  save(&scene, "first", false);
  assert_int_equal(cluster_call(&scene.client, scene.flow, PWI_REQUEST_PUSH, &where, one, NULL, NULL), PAWL_OK);
  save(&scene, "second", true);
  read_saved(&scene, "first", &first);
  read_saved(&scene, "second", &second);
  assert_int_equal(found[77 * WIDTH], 11);
  assert_int_equal(found[78 * WIDTH], 1);
  assert_true(second.rows - first.rows < KEYS / 2);
  pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[0].node);
  assert_int_equal(push_all(&scene), PAWL_OK);
  assert_int_equal(cluster_call(&scene.client, scene.flow, PWI_REQUEST_PUSH, &where, one, NULL, NULL), PAWL_OK);
  save(&scene, "third", true);
  read_saved(&scene, "third", &third);
  assert_int_equal(found[77 * WIDTH], 22);
  for (size_t i = 0; i < KEYS; i++)
    if (i != 77) assert_int_equal(found[i * WIDTH], 2);
  close_scene(&scene);
}

static void test_a_full_disk_ends_the_checkpoint_and_nothing_else(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_saved_list list = {0};
  struct pwi_sim_disk_faults faults = {.full = true};
  open_scene(&scene, 41, 3, 1);
  assert_int_equal(push_all(&scene), PAWL_OK);
  save(&scene, "good", false);
  pwi_sim_disk_set_capacity(scene.depot.disk, 200000); /* room for some of it */
  assert_int_equal(ask_to_save(&scene, "full", false, 0), PAWL_OK);
  cluster_run_while(&scene.cluster, is_saving, &scene, 60 * SECONDS);
  pwi_sim_disk_set_faults(scene.depot.disk, &faults);
  (void)ask_to_save(&scene, "full2", false, 0);
  cluster_run_while(&scene.cluster, is_saving, &scene, 60 * SECONDS);
  assert_true(status_says(&scene, "\"state\":\"failed\""));
  assert_true(status_says(&scene, "no space left"));
  pwi_sim_disk_set_faults(scene.depot.disk, NULL);
  pwi_sim_disk_set_capacity(scene.depot.disk, PWI_SIM_DISK_CAPACITY);
  assert_int_equal(pwi_saved_list(pwi_sim_disk_files(scene.depot.disk), &list), PAWL_OK);
  for (size_t i = 0; i < list.count; i++) assert_string_not_equal(list.items[i].name, "full2");
  pwi_saved_list_fini(&list);
  assert_int_equal(push_all(&scene), PAWL_OK);
  save(&scene, "after", false);
  read_saved(&scene, "after", NULL);
  assert_int_equal(found[5], 2);
  close_scene(&scene);
}

static void test_a_disk_that_fails_now_and_then_leaves_whole_checkpoints_or_none(void **state) {
  (void)state;
  for (uint64_t seed = 300; seed < 320; seed++) {
    struct scene scene;
    struct pwi_saved_list list = {0};
    struct pwi_sim_disk_faults faults = {.write_chance = 0.05, .sync_chance = 0.05};
    open_scene(&scene, seed, 2, 1);
    assert_int_equal(push_all(&scene), PAWL_OK);
    pwi_sim_disk_set_faults(scene.depot.disk, &faults);
    (void)ask_to_save(&scene, "maybe", false, 0);
    cluster_run_while(&scene.cluster, is_saving, &scene, 60 * SECONDS);
    pwi_sim_disk_set_faults(scene.depot.disk, NULL);
    assert_int_equal(pwi_saved_list(pwi_sim_disk_files(scene.depot.disk), &list), PAWL_OK);
    if (list.count > 0) read_saved(&scene, "maybe", NULL);
    pwi_saved_list_fini(&list);
    assert_int_equal(push_all(&scene), PAWL_OK);
    close_scene(&scene);
  }
}

/* What was pushed before is gone, the one who pushed is told once, and goes on. */
static void test_who_uses_a_vector_that_is_loaded_is_told_and_goes_on(void **state) {
  (void)state;
  for (uint64_t seed = 400; seed < 420; seed++) {
    struct scene scene;
    int64_t values[KEYS * WIDTH];
    struct pwi_where where = {0};
    open_scene(&scene, seed, 3, 1);
    struct pwi_flow *others = cluster_open_vector(&scene.other, "test/v", 0);
    for (int i = 0; i < 4; i++) assert_int_equal(push_all(&scene), PAWL_OK);
    assert_int_equal(begin_restore(&scene.other), PAWL_OK);
    fill(values, 100);
    assert_int_equal(cluster_call(&scene.other, others, PWI_REQUEST_RESTORE, &where, values, NULL, NULL), PAWL_OK);
    pawl_status status = push_all(&scene);
    int64_t pushes = status == PAWL_OK;
    assert_true(status == PAWL_OK || status == PAWL_RESTORED);
    for (int i = 0; i < 3; i++, pushes++) assert_int_equal(push_all(&scene), PAWL_OK);
    pull_all(&scene.other, others, values);
    for (size_t i = 0; i < (size_t)KEYS * WIDTH; i++)
      if (values[i] != 100 + pushes) fail_msg("seed %llu: %lld", (unsigned long long)seed, (long long)values[i]);
    close_scene(&scene);
  }
}

static void test_a_vector_that_is_another_one_is_not_loaded(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_writer writer = {0};
  open_scene(&scene, 51, 1, 0);
  pwi_write_text(&writer, "test/v");
  pwi_write_u8(&writer, PAWL_F32);
  pwi_write_u32(&writer, 1);
  pwi_write_u64(&writer, KEYS);
  pwi_write_u8(&writer, 0);
  pwi_write_u8(&writer, PAWL_PLACE_ORDERED);
  pwi_write_u8(&writer, PAWL_LAYOUT_DENSE);
  assert_int_equal(cluster_ask(&scene.client, PWI_ASK_RESTORE_BEGIN, &writer), PAWL_MISMATCH);
  pwi_writer_fini(&writer);
  assert_int_equal(push_all(&scene), PAWL_OK);
  close_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_saved_in_a_quiet_moment_is_loaded_into_another_size),
      cmocka_unit_test(test_a_cut_under_traffic_holds_a_push_wholly_or_not_at_all),
      cmocka_unit_test(test_a_server_that_dies_meanwhile_is_replaced_by_the_next_head),
      cmocka_unit_test(test_what_has_changed_is_enough_on_top_of_a_base_also_after_a_failover),
      cmocka_unit_test(test_a_full_disk_ends_the_checkpoint_and_nothing_else),
      cmocka_unit_test(test_a_disk_that_fails_now_and_then_leaves_whole_checkpoints_or_none),
      cmocka_unit_test(test_who_uses_a_vector_that_is_loaded_is_told_and_goes_on),
      cmocka_unit_test(test_a_vector_that_is_another_one_is_not_loaded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
