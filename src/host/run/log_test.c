/* The directory of a manager's log, and the messages if there can be none. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "host/run/log.h"

#define TCP "127.0.0.1:7295", "tcp://127.0.0.1:7295"

static const struct pwi_log quiet = {.node = "test"};
static char root[200];

static int begin(void **state) {
  const char *where = getenv("TMPDIR");
  (void)state;
  snprintf(root, sizeof root, "%s/pawl-run-log-XXXXXX", where ? where : "/tmp");
  return mkdtemp(root) ? 0 : -1;
}

static int end(void **state) {
  char command[300];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return system(command);
}

static void expect_directory(const char *asked, const char *listen, const char *address, const char *wanted) {
  char directory[PWI_RUN_LOG_PATH_MAX] = "";
  bool in_memory;
  assert_int_equal(pwi_run_log_directory(asked, listen, address, directory, &in_memory), PAWL_OK);
  assert_int_equal(in_memory, wanted == NULL);
  if (wanted) assert_string_equal(directory, wanted);
}

static void test_the_directory_is_chosen_by_the_environment_and_the_address(void **state) {
  (void)state;
  setenv("XDG_STATE_HOME", "/state", 1);
  setenv("HOME", "/home/me", 1);
  expect_directory(NULL, TCP, "/state/pawl/7295");
  expect_directory("", TCP, "/state/pawl/7295");
  setenv("XDG_STATE_HOME", "", 1);
  expect_directory(NULL, TCP, "/home/me/.local/state/pawl/7295");
  expect_directory(NULL, "0.0.0.0:7000-7010", "tcp://node1:7003", "/home/me/.local/state/pawl/7003");
  expect_directory(NULL, "unix:/run/pawl/m.sock", "unix:/run/pawl/m.sock",
                   "/home/me/.local/state/pawl/run_pawl_m.sock");
  unsetenv("HOME");
  expect_directory(NULL, TCP, "pawl-data/7295");
  setenv("HOME", "/home/me", 1);
}

static void test_the_requested_directory_is_used(void **state) {
  (void)state;
  expect_directory("/srv/pawl", TCP, "/srv/pawl");
  expect_directory("/srv/pawl", "127.0.0.1:0", "tcp://127.0.0.1:45555", "/srv/pawl");
  expect_directory("none", TCP, NULL);
}

static void test_a_manager_at_any_port_keeps_nothing(void **state) {
  (void)state;
  expect_directory(NULL, "127.0.0.1:0", "tcp://127.0.0.1:45555", NULL);
}

static void test_a_path_that_is_too_long_is_refused(void **state) {
  char path[2 * PWI_RUN_LOG_PATH_MAX];
  struct pwi_run_log run_log;
  struct pwi_run_problem problem;
  (void)state;
  memset(path, 'x', sizeof path);
  path[sizeof path - 1] = '\0';
  assert_int_equal(pwi_run_log_open(path, TCP, false, &quiet, &run_log, &problem), PAWL_TOO_LARGE);
  path[PWI_RUN_LOG_PATH_MAX - 4] = '\0';
  assert_int_equal(pwi_run_log_open(path, TCP, false, &quiet, &run_log, &problem), PAWL_TOO_LARGE);
}

static void nobody_cares(void *context, pawl_status status) {
  (void)context;
  assert_int_equal(status, PAWL_OK);
}

static void test_directories_are_made_and_the_log_is_found_again(void **state) {
  char directory[300];
  struct pwi_run_log run_log, second;
  struct pwi_run_problem problem;
  struct stat about;
  (void)state;
  snprintf(directory, sizeof directory, "%s/a/b//c/", root);
  for (int round = 0; round < 2; round++) {
    assert_int_equal(pwi_run_log_open(directory, TCP, false, &quiet, &run_log, &problem), PAWL_OK);
    assert_true(run_log.files && strstr(run_log.path, "manager.log"));
    run_log.journal->safe = nobody_cares;
    run_log.journal->ops->append(run_log.journal, "x", 1);
    assert_int_equal(stat(run_log.path, &about), 0);
    assert_int_equal(about.st_mode & 077, 0);
    assert_int_equal(about.st_size, 40 + 33 * (round + 1));
    assert_int_equal(pwi_run_log_open(directory, TCP, false, &quiet, &second, &problem), PAWL_EXISTS);
    assert_non_null(strstr(problem.text, "another manager uses the log"));
    pwi_run_log_close(&run_log);
  }
}

static void test_a_new_cluster_sets_the_old_log_aside(void **state) {
  char directory[300], old[400];
  struct pwi_run_log run_log, second;
  struct pwi_run_problem problem;
  struct stat about;
  (void)state;
  snprintf(directory, sizeof directory, "%s/anew", root);
  for (int round = 0; round < 3; round++) {
    assert_int_equal(pwi_run_log_open(directory, TCP, true, &quiet, &run_log, &problem), PAWL_OK);
    assert_int_equal(stat(run_log.path, &about), 0);
    assert_int_equal(about.st_size, 40);
    run_log.journal->safe = nobody_cares;
    run_log.journal->ops->append(run_log.journal, "x", 1);
    assert_int_equal(pwi_run_log_open(directory, TCP, true, &quiet, &second, &problem), PAWL_EXISTS);
    pwi_run_log_close(&run_log);
  }
  snprintf(old, sizeof old, "%s/manager.log.old", directory);
  assert_int_equal(stat(old, &about), 0);
  assert_int_equal(about.st_size, 73);
  snprintf(old, sizeof old, "%s/manager.log.old.1", directory);
  assert_int_equal(stat(old, &about), 0);
  snprintf(old, sizeof old, "%s/manager.log.old.2", directory);
  assert_int_equal(stat(old, &about), -1);
}

static void test_in_memory_there_is_no_path(void **state) {
  struct pwi_run_log run_log;
  struct pwi_run_problem problem;
  (void)state;
  assert_int_equal(pwi_run_log_open("none", TCP, false, &quiet, &run_log, &problem), PAWL_OK);
  assert_string_equal(run_log.path, "");
  assert_null(run_log.files);
  assert_non_null(run_log.journal);
  pwi_run_log_close(&run_log);
  pwi_run_log_close(&run_log);
}

static void expect_problem(const char *asked, pawl_status wanted, const char *words) {
  struct pwi_run_log run_log = {0};
  struct pwi_run_problem problem;
  assert_int_equal(pwi_run_log_open(asked, TCP, false, &quiet, &run_log, &problem), wanted);
  if (!strstr(problem.text, words)) fail_msg("'%s' is not in '%s'", words, problem.text);
  assert_null(run_log.journal);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void test_a_mistake_is_reported_with_a_remedy(void **state) {
  char path[300], log[400];
  (void)state;
  snprintf(path, sizeof path, "%s/file", root);
  write_file(path, "a file");
  expect_problem(path, PAWL_INVALID, "is not a regular file");
  snprintf(path, sizeof path, "%s/foreign", root);
  mkdir(path, 0700);
  snprintf(log, sizeof log, "%s/manager.log", path);
  write_file(log, "this is not what a manager writes, and long enough\n");
  expect_problem(path, PAWL_CORRUPT, "Put a good copy there");
  snprintf(path, sizeof path, "%s/directory", root);
  mkdir(path, 0700);
  snprintf(log, sizeof log, "%s/manager.log", path);
  mkdir(log, 0700);
  expect_problem(path, PAWL_INVALID, "is not a regular file");
  expect_problem("/proc/1/nothing/here", PAWL_IO, "--data");
  if (geteuid() == 0) return; /* root may do everything */
  snprintf(path, sizeof path, "%s/closed", root);
  mkdir(path, 0500);
  expect_problem(path, PAWL_FORBIDDEN, "name a writable directory");
}

static void test_without_memory_nothing_stays_open(void **state) {
  char directory[300];
  int failed = 1;
  (void)state;
  snprintf(directory, sizeof directory, "%s/memory", root);
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0; failed; n++) {
    struct pwi_run_log run_log = {0};
    struct pwi_run_problem problem;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_run_log_open(directory, TCP, false, &quiet, &run_log, &problem);
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_run_log_close(&run_log);
    assert_int_equal(pwi_memory_counts().live, live);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(test_the_directory_is_chosen_by_the_environment_and_the_address),
      TEST(test_the_requested_directory_is_used),
      TEST(test_a_manager_at_any_port_keeps_nothing),
      TEST(test_a_path_that_is_too_long_is_refused),
      TEST(test_directories_are_made_and_the_log_is_found_again),
      TEST(test_a_new_cluster_sets_the_old_log_aside),
      TEST(test_in_memory_there_is_no_path),
      TEST(test_a_mistake_is_reported_with_a_remedy),
      TEST(test_without_memory_nothing_stays_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
