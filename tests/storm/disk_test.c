/* Checkpoints on disks that are full or fail, while servers work: the save ends with a message that names
 * the cause, leaves nothing that could be mistaken for a checkpoint, and does not affect pushes; with a
 * good disk the next save succeeds.
 *
 * The full disk is a small tmpfs. The failing disk is a file system on a loop device over memory that is
 * sealed during the save: from then on every write to the device fails, and fsync reports EIO. Both are
 * mounted in a namespace of this test, so that they vanish with it; without permission the tests are
 * skipped. */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <pawl/pawl.h>

#include "base/files.h"
#include "checkpoint/checkpoint.h"

#define KEYS ((uint64_t)1 << 20) /* 4 MB */
#define CALL_NS (200 * PAWL_SECOND)

struct place {
  char path[64];
  int memory; /* behind a disk that can be made to fail; -1: none */
};

/* --- disks ---------------------------------------------------------------------------------------------- */

static void give_way(const char *why) {
  printf("skipped: %s: %s\n", why, strerror(errno));
  skip();
}

/* Once for all tests: later mounts are visible to this process and its children only. */
static void leave_for_mounting(void) {
  static bool has_left;
  if (has_left) return;
  if (unshare(CLONE_NEWNS) != 0) give_way("cannot create a mount namespace");
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) give_way("cannot make mounts private");
  has_left = true;
}

static struct place new_place(void) {
  struct place place = {.path = "/tmp/pawl-disk-XXXXXX", .memory = -1};
  leave_for_mounting();
  assert_non_null(mkdtemp(place.path));
  return place;
}

static void end_place(struct place *place) {
  umount2(place->path, MNT_DETACH);
  rmdir(place->path);
  if (place->memory >= 0) close(place->memory);
}

static struct place small_disk(void) {
  struct place place = new_place();
  if (mount("none", place.path, "tmpfs", 0, "size=1m") != 0) {
    rmdir(place.path);
    give_way("no tmpfs");
  }
  return place;
}

static void make_room(const struct place *place) {
  assert_int_equal(mount("none", place->path, "tmpfs", MS_REMOUNT, "size=64m"), 0);
}

static struct place failing_disk(void) {
  char line[400], memory[64];
  struct place place = new_place();
  place.memory = memfd_create("disk", MFD_ALLOW_SEALING);
  assert_true(place.memory >= 0);
  assert_int_equal(ftruncate(place.memory, 64 << 20), 0);
  snprintf(memory, sizeof memory, "/proc/%d/fd/%d", (int)getpid(), place.memory);
  snprintf(line, sizeof line,
           "PATH=$PATH:/sbin:/usr/sbin; mkfs.ext4 -q -F -O ^has_journal -E nodiscard,lazy_itable_init=1 %s && "
           "mount -t ext4 -o loop %s %s",
           memory, memory, place.path);
  if (system(line) != 0) {
    end_place(&place);
    give_way("cannot mount a file system on a loop device");
  }
  return place;
}

static void break_disk(const struct place *place) {
  int directory = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(directory >= 0);
  assert_int_equal(syncfs(directory), 0); /* existing data is durable */
  close(directory);
  assert_int_equal(fcntl(place->memory, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

/* --- checkpoints ---------------------------------------------------------------------------------------- */

static struct pwi_storm *begin(void) {
  struct pwi_storm_config config = {.servers = 2, .replicas = kit_replicas(1)};
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  struct pawl_task *task;
  struct pwi_storm *storm = kit_begin(&config, 2);
  float *values = calloc(KEYS, sizeof *values);
  assert_non_null(values);
  pawl_vector_options_init(&options);
  options.size = KEYS;
  assert_int_equal(pawl_vector_create(pwi_storm_session(storm), "disk/w", &options, CALL_NS, &vector), PAWL_OK);
  assert_int_equal(pawl_vector_push(vector, pawl_at_range(0, KEYS), values, &task), PAWL_OK);
  assert_int_equal(pawl_task_finish(task, CALL_NS), PAWL_OK);
  free(values);
  return storm;
}

static pawl_status save(struct pwi_storm *storm, const char *directory, const char *name) {
  struct pawl_checkpoint_options options;
  pawl_checkpoint_options_init(&options);
  options.directory = directory;
  options.name = name;
  options.timeout_ns = CALL_NS;
  return pawl_checkpoint_save(pwi_storm_session(storm), &options, NULL);
}

static void save_must_fail(struct pwi_storm *storm, const char *directory, const char *name, pawl_status wanted) {
  pawl_status status = save(storm, directory, name);
  printf("%s: %s\n", name, status ? pawl_error_text() : "saved");
  assert_int_equal(status, wanted);
  assert_non_null(strstr(pawl_error_text(), pawl_status_text(wanted)));
}

/* Checks that there are `count` checkpoints, and that all are intact. */
static void assert_saved(const char *directory, size_t count) {
  struct pwi_files *files;
  struct pwi_saved_list list = {0};
  assert_int_equal(pwi_files_posix_open(directory, &files), PAWL_OK);
  assert_int_equal(pwi_saved_list(files, &list), PAWL_OK);
  assert_int_equal(list.count, count);
  for (size_t i = 0; i < list.count; i++) {
    struct pwi_saved saved;
    struct pwi_saved_totals totals;
    struct pwi_problem problem;
    if (pwi_saved_open(files, list.items[i].name, &saved, &problem)) fail_msg("%s", problem.text);
    if (pwi_saved_verify(&saved, &totals, &problem)) fail_msg("%s", problem.text);
    assert_true(totals.rows >= KEYS);
    pwi_saved_close(&saved);
  }
  pwi_saved_list_fini(&list);
  pwi_files_posix_close(files);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_a_full_disk_ends_a_checkpoint_and_pushes_go_on(void **state) {
  (void)state;
  char name[32];
  struct place place = small_disk();
  struct pwi_storm *storm = begin();
  for (int i = 0; i < 5; i++) {
    snprintf(name, sizeof name, "full-%d", i);
    save_must_fail(storm, place.path, name, PAWL_NO_SPACE);
    assert_saved(place.path, 0);
    kit_await_pushes(storm, 100);
  }
  make_room(&place);
  /* leftovers of the failed save do not matter */
  assert_int_equal(save(storm, place.path, "full-0"), PAWL_OK);
  assert_saved(place.path, 1);
  kit_end(storm);
  end_place(&place);
}

/* A save that is slow enough to be disturbed. */
struct slow_save {
  struct pwi_storm *storm;
  const char *directory;
  pawl_status status;
  char text[256];
};

static void *save_slowly(void *argument) {
  struct slow_save *slow = argument;
  struct pawl_checkpoint_options options;
  pawl_checkpoint_options_init(&options);
  options.directory = slow->directory;
  options.name = "meanwhile";
  options.rate = 500000; /* so that it lasts, also on a machine that stands still for seconds */
  slow->status = pawl_checkpoint_save(pwi_storm_session(slow->storm), &options, NULL);
  snprintf(slow->text, sizeof slow->text, "%s", pawl_error_text());
  return NULL;
}

static bool is_begun(const char *directory) {
  char pattern[200];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/.pawl-saving-*/*.pawl", directory);
  bool begun = glob(pattern, 0, NULL, &found) == 0;
  globfree(&found);
  return begun;
}

/* Waits until the servers have begun to write. */
static void break_while_saving(struct pwi_storm *storm, const struct place *place) {
  struct slow_save slow = {.storm = storm, .directory = place->path};
  pthread_t thread;
  int64_t deadline = pwi_host_after(CALL_NS);
  assert_int_equal(pthread_create(&thread, NULL, save_slowly, &slow), 0);
  while (!is_begun(place->path) && pwi_host_now() < deadline) kit_sleep_ms(10);
  break_disk(place);
  assert_int_equal(pthread_join(thread, NULL), 0);
  printf("meanwhile: %s\n", slow.status ? slow.text : "saved");
  assert_int_equal(slow.status, PAWL_IO);
  /* the message names the process that could not write: the manager, if all servers were done by then */
  assert_true(strstr(slow.text, "node ") || strstr(slow.text, "the manager"));
}

static void test_a_disk_that_fails_ends_a_checkpoint_and_pushes_go_on(void **state) {
  (void)state;
  char name[32];
  struct place place = failing_disk(), good = small_disk();
  struct pwi_storm *storm = begin();
  make_room(&good);
  assert_int_equal(save(storm, place.path, "before"), PAWL_OK);
  break_while_saving(storm, &place);
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "failed-%d", i);
    save_must_fail(storm, place.path, name, PAWL_IO);
    assert_saved(place.path, 1); /* the checkpoint from before */
    kit_await_pushes(storm, 100);
  }
  assert_int_equal(save(storm, good.path, "elsewhere"), PAWL_OK);
  assert_saved(good.path, 1);
  kit_end(storm);
  end_place(&place);
  end_place(&good);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_full_disk_ends_a_checkpoint_and_pushes_go_on),
                                     cmocka_unit_test(test_a_disk_that_fails_ends_a_checkpoint_and_pushes_go_on)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
