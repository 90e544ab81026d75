/* A power failure or a full disk between any two steps of a checkpoint: the checkpoint exists whole or not at
 * all, earlier checkpoints and files of the user stay, and the next save removes the remains. */
#include "base/testing.h"
#include "saving.h"
#include "server/saving.h"
#include "store/archive.h"

/* --- a disk that stops at a given step ------------------------------------------------------------------ */

static const struct pwi_files_ops *real_ops;
static struct pwi_files_ops counting_ops;
static struct pwi_sim_disk *disk;
static int64_t steps_left; /* negative: it never stops */
static bool fills_up;      /* rather than losing its power */
static uint64_t steps;

static void count_step(void) {
  steps++;
  if (steps_left < 0 || steps_left-- > 0) return;
  struct pwi_sim_disk_faults faults = {.full = true};
  if (fills_up)
    pwi_sim_disk_set_faults(disk, &faults);
  else
    pwi_sim_disk_power_off(disk);
}

static pawl_status count_open(struct pwi_files *files, const char *path, unsigned how, struct pwi_file **file_out) {
  if (how) count_step();
  return real_ops->open(files, path, how, file_out);
}

static pawl_status count_rename(struct pwi_files *files, const char *from, const char *to) {
  count_step();
  return real_ops->rename(files, from, to);
}

static pawl_status count_remove(struct pwi_files *files, const char *path) {
  count_step();
  return real_ops->remove(files, path);
}

static pawl_status count_make(struct pwi_files *files, const char *path) {
  count_step();
  return real_ops->make_directory(files, path);
}

static pawl_status count_sync(struct pwi_files *files, const char *path) {
  count_step();
  return real_ops->sync_directory(files, path);
}

static void begin_counting(struct saving_scene *scene, int64_t stop_after, bool full) {
  disk = scene->disk_queue.disk;
  struct pwi_files *files = pwi_sim_disk_files(disk);
  real_ops = files->ops;
  counting_ops = *real_ops;
  counting_ops.open = count_open;
  counting_ops.rename = count_rename;
  counting_ops.remove = count_remove;
  counting_ops.make_directory = count_make;
  counting_ops.sync_directory = count_sync;
  files->ops = &counting_ops;
  steps_left = stop_after;
  fills_up = full;
  steps = 0;
}

static void end_counting(void) { pwi_sim_disk_files(disk)->ops = real_ops; }

/* --- what must be there whatever happens ---------------------------------------------------------------- */

static const char *const users[] = {"thesis/chapter", "thesis/node-1-1.pawl", "auto-000009/notes", "notes",
                                    ".pawl-saving-0000000000000001/node-1-1.pawl"};

static void write_users(struct pwi_files *files) {
  static const char *const folders[] = {"thesis", "auto-000009", ".pawl-saving-0000000000000001"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
    assert_int_equal(pwi_files_make_directory(files, folders[i]), PAWL_OK);
  assert_int_equal(pwi_files_sync_directory(files, "."), PAWL_OK);
  for (size_t i = 0; i < sizeof users / sizeof *users; i++)
    assert_int_equal(pwi_files_replace(files, users[i], users[i], strlen(users[i])), PAWL_OK);
}

static void check_users(struct pwi_files *files) {
  for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
    struct pwi_file *file;
    char text[64];
    size_t size;
    if (pwi_files_open(files, users[i], PWI_OPEN_READ, &file)) fail_msg("%s is gone", users[i]);
    assert_int_equal(pwi_file_read(file, 0, text, sizeof text, &size), PAWL_OK);
    assert_true(size == strlen(users[i]) && memcmp(text, users[i], size) == 0);
    pwi_file_close(file);
  }
}

static size_t count_attempts(struct pwi_files *files) {
  struct pwi_saved_list list = {0};
  assert_int_equal(pwi_saved_list(files, &list), PAWL_OK);
  for (size_t i = 0; i < list.count; i++) assert_int_equal(list.items[i].status, PAWL_OK);
  size_t count = list.unfinished;
  pwi_saved_list_fini(&list);
  return count;
}

static bool is_there(struct pwi_files *files, const char *name) {
  bool there;
  assert_int_equal(pwi_files_exists(files, name, &there), PAWL_OK);
  return there;
}

/* Saves "new", on top of "first", while the disk stops after so many steps. True if it stopped. */
static bool save_until(uint64_t seed, int64_t step, bool full) {
  struct saving_scene scene;
  saving_open(&scene, seed, 2, 1);
  struct pwi_files *files = pwi_sim_disk_files(scene.disk_queue.disk);
  write_users(files);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "first", false);
  begin_counting(&scene, step, full);
  (void)saving_ask(&scene, "new", true, 0);
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 120 * PWI_SIM_SECOND);
  end_counting();
  bool stopped = steps_left < 0 && step >= 0 && steps > (uint64_t)step;
  pwi_cluster_close(&scene.cluster);
  if (full) {
    pwi_sim_disk_set_faults(disk, NULL);
  } else {
    if (!stopped) pwi_sim_disk_power_off(disk);
    pwi_sim_disk_crash(disk);
    pwi_sim_disk_power_on(disk);
  }
  check_users(files);
  saving_read(&scene, "first", NULL);
  if (is_there(files, "new")) saving_read(&scene, "new", NULL);
  saving_open_cluster(&scene, seed, 2, 1); /* the same cluster: it draws the same numbers */
  scene.flow = cluster_vector(&scene.client, "test/v", &saving_options);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, is_there(files, "new") ? "newer" : "new", false);
  saving_read(&scene, is_there(files, "newer") ? "newer" : "new", NULL);
  check_users(files);
  saving_read(&scene, "first", NULL);
  if (count_attempts(files) != 1) fail_msg("step %lld: an attempt is left over", (long long)step);
  saving_close(&scene);
  return stopped;
}

static void test_power_may_fail_between_any_two_steps(void **state) {
  (void)state;
  int64_t step = 0;
  while (save_until(71, step, false)) step++;
  print_message("%lld steps\n", (long long)step);
  assert_true(step > 12);
}

static void test_a_disk_may_be_full_at_any_step(void **state) {
  (void)state;
  int64_t step = 0;
  while (save_until(72, step, true)) step++;
  assert_true(step > 12);
}

/* --- what a server has reported ------------------------------------------------------------------------- */

static char files_of[PWI_CLUSTER_SERVERS][PWI_SAVE_FOLDER_SIZE + PWI_CHECKPOINT_NAME_MAX + 2];
static const char *reported;

/* No server has finished its file. */
static bool has_nobody_reported(void *context) {
  const struct saving_scene *scene = context;
  for (size_t i = 0; i < scene->cluster.server_count; i++) {
    const struct pwi_server *server = scene->cluster.servers[i].server;
    if (server && server->saving)
      snprintf(files_of[i], sizeof files_of[i], "%s/%s", server->saving->order.folder, server->saving->order.file);
    else if (files_of[i][0])
      reported = files_of[i];
  }
  return !reported;
}

static void assert_whole(struct pwi_files *files, const char *path) {
  struct pwi_archive_record record;
  struct pwi_archive_reader *reader;
  struct pwi_file *file;
  if (pwi_files_open(files, path, PWI_OPEN_READ, &file)) fail_msg("%s is gone", path);
  assert_int_equal(pwi_archive_open(file, &reader), PAWL_OK);
  do assert_int_equal(pwi_archive_next(reader, &record), PAWL_OK);
  while (record.kind != PWI_ARCHIVE_END);
  pwi_archive_close(reader);
  pwi_file_close(file);
}

/* The manager syncs the folder, too, before it gives the checkpoint its name. It may see the folder through
 * another machine, so a server does not leave this to the manager. */
static void test_a_file_that_a_server_has_reported_survives_a_power_failure(void **state) {
  (void)state;
  for (uint64_t seed = 81; seed <= 90; seed++) {
    struct saving_scene scene;
    saving_open(&scene, seed, 2, 1);
    assert_int_equal(saving_push_all(&scene), PAWL_OK);
    memset(files_of, 0, sizeof files_of);
    reported = NULL;
    assert_int_equal(saving_ask(&scene, "new", false, 0), PAWL_OK);
    cluster_run_while(&scene.cluster, has_nobody_reported, &scene, 60 * PWI_SIM_SECOND);
    pwi_sim_disk_power_off(scene.disk_queue.disk);
    pwi_cluster_close(&scene.cluster);
    pwi_sim_disk_crash(scene.disk_queue.disk);
    pwi_sim_disk_power_on(scene.disk_queue.disk);
    assert_whole(pwi_sim_disk_files(scene.disk_queue.disk), reported);
    pwi_sim_disk_destroy(scene.disk_queue.disk);
  }
}

/* A name that is in use is refused, and nothing is written. */
static void test_names_that_are_taken_are_refused(void **state) {
  (void)state;
  static const char *const names[] = {"thesis", "notes", "auto-000009", "first"};
  struct saving_scene scene;
  saving_open(&scene, 73, 2, 1);
  struct pwi_files *files = pwi_sim_disk_files(scene.disk_queue.disk);
  write_users(files);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  saving_save(&scene, "first", false);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    begin_counting(&scene, -1, false);
    assert_int_equal(saving_ask(&scene, names[i], false, 0), PAWL_EXISTS);
    cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
    end_counting();
    assert_int_equal(steps, 1); /* an empty folder would have gone */
  }
  check_users(files);
  saving_read(&scene, "first", NULL);
  static const char *const bad[] = {"..", ".", "../x", "a/b", "/x", ".hidden", "a b"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(saving_ask(&scene, bad[i], false, 0), PAWL_INVALID);
  saving_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_power_may_fail_between_any_two_steps),
      cmocka_unit_test(test_a_disk_may_be_full_at_any_step),
      cmocka_unit_test(test_a_file_that_a_server_has_reported_survives_a_power_failure),
      cmocka_unit_test(test_names_that_are_taken_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
