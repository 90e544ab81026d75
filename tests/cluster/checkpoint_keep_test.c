/* Periodic checkpoints: older ones are deleted, and nothing else. Checkpoints that a user has named, those of another
 * cluster in the same folder, and bases stay. */
#include "base/testing.h"
#include "manager/inside.h"
#include "saving.h"

#define KEPT 2

static struct saving_scene scene;

static struct pwi_files *disk(void) { return pwi_sim_disk_files(scene.disk_queue.disk); }

static bool exists(const char *name) {
  bool is_there;
  assert_int_equal(pwi_files_exists(disk(), name, &is_there), PAWL_OK);
  return is_there;
}

static void open_scene(uint64_t seed) {
  saving_open(&scene, seed, 1, 0);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
}

static void save_periodically(bool incremental) {
  struct pwi_manager *manager = scene.cluster.manager;
  manager->config.checkpoint_directory = "/saved";
  manager->config.checkpoint_every_ns = PWI_SIM_SECOND;
  manager->config.checkpoint_keep = KEPT;
  manager->config.checkpoint_incremental = incremental;
  pwi_manager_checkpoints_begin(manager);
}

/* The number of periodic checkpoints with numbers up to 50. */
static size_t count_periodic(void) {
  size_t count = 0;
  for (int number = 1; number <= 50; number++) {
    char name[32];
    snprintf(name, sizeof name, "auto-%06d", number);
    count += exists(name);
  }
  return count;
}

static void test_checkpoints_that_a_user_has_named_stay(void **state) {
  (void)state;
  open_scene(680);
  static const char *const names[] = {"mine", "auto", "autumn-1"};
  for (size_t i = 0; i < 3; i++) saving_save(&scene, names[i], false);
  save_periodically(false);
  cluster_run_for(&scene.cluster, 8 * PWI_SIM_SECOND);
  assert_int_equal(count_periodic(), KEPT);
  assert_false(exists("auto-000004")); /* the first of them */
  for (size_t i = 0; i < 3; i++) saving_read(&scene, names[i], NULL);
  saving_close(&scene);
}

static void test_checkpoints_of_another_cluster_stay(void **state) {
  struct pwi_manifest manifest = {0};
  (void)state;
  open_scene(681);
  saving_save(&scene, "mine", false);
  assert_int_equal(pwi_manifest_read(disk(), "mine", &manifest), PAWL_OK);
  strcpy(manifest.name, "auto-000002");
  manifest.cluster++;
  manifest.number = 2;
  assert_int_equal(pwi_files_make_directory(disk(), manifest.name), PAWL_OK);
  assert_int_equal(pwi_manifest_write(disk(), manifest.name, &manifest), PAWL_OK);
  pwi_manifest_fini(&manifest);
  saving_save(&scene, "next", true);
  assert_int_equal(pwi_manifest_read(disk(), "next", &manifest), PAWL_OK);
  assert_string_equal(manifest.base, "mine"); /* nor is it a base */
  pwi_manifest_fini(&manifest);
  save_periodically(false);
  cluster_run_for(&scene.cluster, 8 * PWI_SIM_SECOND);
  assert_true(exists("auto-000002"));
  assert_int_equal(count_periodic(), 1 + KEPT);
  saving_close(&scene);
}

/* The base of a checkpoint that stays. */
static void test_a_checkpoint_that_is_a_base_stays(void **state) {
  struct pwi_manifest manifest = {0};
  (void)state;
  open_scene(682);
  save_periodically(true);
  cluster_run_for(&scene.cluster, 3500 * MS);
  saving_save(&scene, "mine", true);
  assert_int_equal(pwi_manifest_read(disk(), "mine", &manifest), PAWL_OK);
  assert_memory_equal(manifest.base, "auto-", 5);
  cluster_run_for(&scene.cluster, 12 * PWI_SIM_SECOND);
  assert_true(exists(manifest.base));
  saving_read(&scene, "mine", NULL);
  assert_true(count_periodic() < 8);
  pwi_manifest_fini(&manifest);
  saving_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_checkpoints_that_a_user_has_named_stay),
      cmocka_unit_test(test_checkpoints_of_another_cluster_stay),
      cmocka_unit_test(test_a_checkpoint_that_is_a_base_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
