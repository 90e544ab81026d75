/* Disk queues on real disks: jobs run in order, beside the sending thread, and directories are named by
 * paths. */
#include "host/disk_queue.h"

#include <sys/stat.h>
#include <time.h>
#include <pthread.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"

#define DISK_JOBS 200

/* --- disk jobs that record their order ------------------------------------------------------------------ */

struct noted {
  struct pwi_disk_job disk_job; /* must be first */
  size_t place;                 /* its position in the order of execution */
  pthread_t thread;
};

static const struct pwi_disk_queue_places anywhere;

static size_t done; /* read only after the disk job that wrote it is done */

static void note(struct pwi_disk_job *disk_job) {
  struct noted *noted = (struct noted *)disk_job;
  noted->thread = pthread_self();
  noted->place = done++;
}

static void note_slowly(struct pwi_disk_job *disk_job) {
  struct timespec time = {0, 1000000};
  nanosleep(&time, NULL);
  note(disk_job);
}

static struct pwi_disk_queue *open_disk_queue(void) {
  struct pwi_disk_queue *disk_queue = NULL;
  assert_int_equal(pwi_host_disk_queue_open(&anywhere, &disk_queue), PAWL_OK);
  done = 0;
  return disk_queue;
}

static void send_all(struct pwi_disk_queue *disk_queue, struct noted *noted, size_t count) {
  for (size_t i = 0; i < count; i++) {
    noted[i] = (struct noted){.disk_job.run = i % 20 ? note : note_slowly};
    disk_queue->ops->send(disk_queue, &noted[i].disk_job);
  }
}

static void check_order(const struct noted *noted, size_t count) {
  for (size_t i = 0; i < count; i++) {
    assert_true(pwi_disk_job_is_done(&noted[i].disk_job));
    assert_int_equal(noted[i].place, i);
  }
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_disk_jobs_are_done_in_their_order_by_another_thread(void **state) {
  (void)state;
  static struct noted noted[DISK_JOBS];
  struct pwi_disk_queue *disk_queue = open_disk_queue();
  send_all(disk_queue, noted, DISK_JOBS);
  disk_queue->ops->settle(disk_queue);
  check_order(noted, DISK_JOBS);
  for (size_t i = 0; i < DISK_JOBS; i++) assert_false(pthread_equal(noted[i].thread, pthread_self()));
  send_all(disk_queue, noted, 1); /* after it was idle */
  disk_queue->ops->settle(disk_queue);
  assert_true(pwi_disk_job_is_done(&noted[0].disk_job));
  pwi_host_disk_queue_close(disk_queue);
}

static atomic_bool has_begun;

static void begin_and_note(struct pwi_disk_job *disk_job) {
  atomic_store(&has_begun, true);
  for (int i = 0; i < 20; i++) note_slowly(disk_job);
}

/* The queue is empty, but its last job still runs. */
static void test_a_queue_is_settled_once_its_last_job_has_ended(void **state) {
  (void)state;
  struct noted noted = {.disk_job.run = begin_and_note};
  struct pwi_disk_queue *disk_queue = open_disk_queue();
  atomic_store(&has_begun, false);
  disk_queue->ops->send(disk_queue, &noted.disk_job);
  while (!atomic_load(&has_begun)) sched_yield();
  disk_queue->ops->settle(disk_queue);
  assert_true(pwi_disk_job_is_done(&noted.disk_job));
  pwi_host_disk_queue_close(disk_queue);
}

static void test_closing_waits_for_jobs_under_way(void **state) {
  (void)state;
  static struct noted noted[DISK_JOBS];
  struct pwi_disk_queue *disk_queue = open_disk_queue();
  send_all(disk_queue, noted, DISK_JOBS);
  pwi_host_disk_queue_close(disk_queue);
  check_order(noted, DISK_JOBS);
}

static void test_an_unused_queue_closes_at_once(void **state) {
  (void)state;
  struct pwi_disk_queue *disk_queue = open_disk_queue();
  disk_queue->ops->settle(disk_queue);
  pwi_host_disk_queue_close(disk_queue);
  pwi_host_disk_queue_close(NULL);
}

/* A stack larger than memory makes thread creation fail. */
static void set_stack(size_t size) {
  pthread_attr_t attributes;
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, size), 0);
  assert_int_equal(pthread_setattr_default_np(&attributes), 0);
  pthread_attr_destroy(&attributes);
}

static void test_without_a_thread_disk_jobs_are_done_at_once(void **state) {
  (void)state;
  static struct noted noted[2];
  pthread_attr_t before;
  size_t size;
  struct pwi_disk_queue *disk_queue = open_disk_queue();
  assert_int_equal(pthread_getattr_default_np(&before), 0);
  assert_int_equal(pthread_attr_getstacksize(&before, &size), 0);
  noted[0].disk_job.run = noted[1].disk_job.run = note;
  set_stack((size_t)1 << 50);
  disk_queue->ops->send(disk_queue, &noted[0].disk_job);
  assert_true(pwi_disk_job_is_done(&noted[0].disk_job));
  assert_true(pthread_equal(noted[0].thread, pthread_self()));
  disk_queue->ops->settle(disk_queue);
  set_stack(size);
  disk_queue->ops->send(disk_queue, &noted[1].disk_job); /* now a thread can be created */
  disk_queue->ops->settle(disk_queue);
  assert_int_equal(noted[1].place, 1);
  assert_false(pthread_equal(noted[1].thread, pthread_self()));
  pwi_host_disk_queue_close(disk_queue);
}

static char folder[] = "/tmp/pawl-disk-queue-XXXXXX";

static void test_one_level_of_a_directory_is_made(void **state) {
  (void)state;
  char path[sizeof folder + 32];
  struct pwi_files *files = NULL;
  struct pwi_disk_queue *disk_queue = open_disk_queue();
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/a/b", folder);
  assert_int_equal(disk_queue->ops->open(disk_queue, path, true, &files), PAWL_NOT_FOUND);
  snprintf(path, sizeof path, "%s/a", folder);
  for (int i = 0; i < 2; i++) { /* created the first time, found the second time */
    assert_int_equal(disk_queue->ops->open(disk_queue, path, true, &files), PAWL_OK);
    assert_int_equal(pwi_files_make_directory(files, i ? "two" : "one"), PAWL_OK);
    disk_queue->ops->close(disk_queue, files);
  }
  snprintf(path, sizeof path, "%s/a/one", folder);
  assert_int_equal(rmdir(path), 0);
  snprintf(path, sizeof path, "%s/a/two", folder);
  assert_int_equal(rmdir(path), 0);
  snprintf(path, sizeof path, "%s/a", folder);
  assert_int_equal(rmdir(path), 0);
  pwi_host_disk_queue_close(disk_queue);
}

static void test_a_path_that_is_no_directory_is_refused(void **state) {
  (void)state;
  char path[sizeof folder + 32];
  struct pwi_files *files = NULL;
  struct pwi_disk_queue *disk_queue = open_disk_queue();
  snprintf(path, sizeof path, "%s/file", folder);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  fclose(file);
  assert_int_not_equal(disk_queue->ops->open(disk_queue, path, true, &files), PAWL_OK);
  assert_int_not_equal(disk_queue->ops->open(disk_queue, "/proc/no-directory-can-be-made-here", true, &files), PAWL_OK);
  assert_null(files);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
  pwi_host_disk_queue_close(disk_queue);
}

/* Checks what may be opened if checkpoints may only go to "folder/in". */
static void check_place(struct pwi_disk_queue *disk_queue, const char *name, pawl_status wanted) {
  char path[sizeof folder + 64];
  struct pwi_files *files = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  pawl_status status = disk_queue->ops->open(disk_queue, path, true, &files);
  if (status != wanted) fail_msg("%s: %s", path, pawl_status_name(status));
  if (!status) disk_queue->ops->close(disk_queue, files);
}

static void test_checkpoints_go_where_they_may(void **state) {
  (void)state;
  static const char *const made[] = {"in/below", "in/new", "in", "inside", "out/link", "out"};
  char path[sizeof folder + 64], target[sizeof folder + 64];
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/in", folder);
  struct pwi_disk_queue_places places = {.items = {path}, .count = 1}, none = {.none = true};
  struct pwi_disk_queue *disk_queue, *closed;
  assert_int_equal(pwi_host_disk_queue_open(&places, &disk_queue), PAWL_OK);
  assert_int_equal(pwi_host_disk_queue_open(&none, &closed), PAWL_OK);
  check_place(disk_queue, "in", PAWL_OK); /* created */
  check_place(disk_queue, "in/below", PAWL_OK);
  check_place(disk_queue, "in/below/../new/", PAWL_OK);
  check_place(disk_queue, "inside", PAWL_FORBIDDEN);
  snprintf(target, sizeof target, "%s/inside", folder);
  assert_int_equal(access(target, F_OK), -1); /* and was not created */
  assert_int_equal(mkdir(target, 0700), 0);
  check_place(disk_queue, "inside", PAWL_FORBIDDEN);
  check_place(disk_queue, "in/../inside", PAWL_FORBIDDEN);
  check_place(disk_queue, ".", PAWL_FORBIDDEN);
  /* a symbolic link that leads out, and one that leads in */
  snprintf(path, sizeof path, "%s/in/out", folder);
  assert_int_equal(symlink(target, path), 0);
  check_place(disk_queue, "in/out", PAWL_FORBIDDEN);
  check_place(disk_queue, "in/out/new", PAWL_FORBIDDEN);
  assert_int_equal(unlink(path), 0);
  snprintf(path, sizeof path, "%s/out", folder);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/out/link", folder);
  snprintf(target, sizeof target, "%s/in/below", folder);
  assert_int_equal(symlink(target, path), 0);
  check_place(disk_queue, "out/link", PAWL_OK);
  check_place(closed, "in", PAWL_FORBIDDEN);
  pwi_host_disk_queue_close(disk_queue);
  pwi_host_disk_queue_close(closed);
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, made[i]);
    assert_int_equal(remove(path), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

static void test_without_memory_there_is_no_disk_queue(void **state) {
  (void)state;
  struct pwi_disk_queue *disk_queue = NULL;
  struct pwi_files *files = NULL;
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_host_disk_queue_open(&anywhere, &disk_queue), PAWL_NO_MEMORY);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_null(disk_queue);
  disk_queue = open_disk_queue();
  for (uint64_t n = 0, failed = 1; failed; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = disk_queue->ops->open(disk_queue, "/tmp", true, &files);
    failed = (uint64_t)pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
  }
  disk_queue->ops->close(disk_queue, files);
  assert_true(disk_queue->ops->wall_s(disk_queue) > 1500000000);
  pwi_host_disk_queue_close(disk_queue);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_disk_jobs_are_done_in_their_order_by_another_thread),
      cmocka_unit_test(test_a_queue_is_settled_once_its_last_job_has_ended),
      cmocka_unit_test(test_closing_waits_for_jobs_under_way),
      cmocka_unit_test(test_an_unused_queue_closes_at_once),
      cmocka_unit_test(test_without_a_thread_disk_jobs_are_done_at_once),
      cmocka_unit_test(test_one_level_of_a_directory_is_made),
      cmocka_unit_test(test_a_path_that_is_no_directory_is_refused),
      cmocka_unit_test(test_checkpoints_go_where_they_may),
      cmocka_unit_test(test_without_memory_there_is_no_disk_queue),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
