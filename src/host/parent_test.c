/* Three generations: this test, a middle process that it ends in various ways, and a grandchild that must
 * notice. The grandchild reports on its inherited standard error, a pipe of the test, and ends. The pipe
 * then closes, so the test also sees that no process is left. Timeouts are generous, and no time is
 * measured. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "host/children.h"
#include "host/clock.h"
#include "host/parent.h"

#define PATIENCE_MS 200000

static int64_t patiently(void) { return pwi_host_after(PATIENCE_MS * INT64_C(1000000)); }

/* --- the other two generations -------------------------------------------------------------------------- */

static sem_t parent_gone;

static void on_gone(void *context) {
  (void)context;
  sem_post(&parent_gone);
}

/* `what` is what to watch: "both", "process" or "pipe". */
static int grandchild(const char *parent, const char *what) {
  pid_t pid = strcmp(what, "pipe") == 0 ? 0 : (pid_t)strtol(parent, NULL, 10);
  int fd = strcmp(what, "process") == 0 ? -1 : PWI_CHILD_READY_FD;
  struct pwi_parent_watch *watch;
  sem_init(&parent_gone, 0, 0);
  if (pwi_parent_watch(pid, fd, on_gone, NULL, &watch) != PAWL_OK) return 10;
  if (pwi_parent_say_ready(PWI_CHILD_READY_FD, "ready") != PAWL_OK) return 11;
  while (sem_wait(&parent_gone) != 0) continue;
  pwi_parent_watch_close(watch);
  return write(STDERR_FILENO, "gone", 4) == 4 ? 0 : 12;
}

static void *start_it(void *argument) {
  struct pwi_child *child = NULL;
  if (pwi_child_start(argument, &child) != PAWL_OK) return NULL;
  return child;
}

/* Starts the grandchild from a thread that then ends, which must not be mistaken for the end of the
 * process. */
static int middle(char *self, const char *what, const char *then) {
  char pid[16];
  snprintf(pid, sizeof pid, "%d", (int)getpid());
  char *argv[] = {self, (char *)"grandchild", pid, (char *)what, NULL};
  struct pwi_child_config config = {.path = "/proc/self/exe", .argv = argv, .output_fd = PWI_CHILD_OUTPUT_INHERIT};
  pthread_t thread;
  void *started = NULL;
  if (pthread_create(&thread, NULL, start_it, &config) != 0) return 20;
  pthread_join(thread, &started);
  const char *line;
  if (!started || pwi_child_ready(started, patiently(), &line) != PAWL_OK) return 21;
  if (pwi_parent_say_ready(PWI_CHILD_READY_FD, "ready") != PAWL_OK) return 22;
  if (strcmp(then, "stop") == 0) {
    pwi_child_stop(started, PATIENCE_MS * INT64_C(1000000));
    return 0;
  }
  if (strcmp(then, "exit") == 0) _exit(0);
  if (strcmp(then, "abort") == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    signal(SIGABRT, SIG_DFL);
    abort();
  }
  if (strcmp(then, "exec") == 0) {
    close(STDOUT_FILENO); /* both are the pipe, which must close with the grandchild */
    close(STDERR_FILENO);
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    return 23;
  }
  for (;;) pause();
}

/* --- the test's side ------------------------------------------------------------------------------------ */

/* Reads everything that is written to the pipe until all writers have closed it. */
static void hear_all(int fd, char *heard, size_t size) {
  size_t length = 0;
  for (;;) {
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    if (poll(&wanted, 1, PATIENCE_MS) != 1) fail_msg("a process still holds the pipe after minutes");
    ssize_t got = read(fd, heard + length, size - 1 - length);
    if (got <= 0) break;
    length += (size_t)got;
  }
  heard[length] = '\0';
}

static bool is_silent(int fd) {
  struct pollfd wanted = {.fd = fd, .events = POLLIN};
  return poll(&wanted, 1, 0) == 0;
}

static void expect_notice(const char *what, const char *then, bool kill_it, const char *expected) {
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  char *argv[] = {(char *)"parent_test", (char *)"middle", (char *)what, (char *)then, NULL};
  struct pwi_child_config config = {.path = "/proc/self/exe", .argv = argv, .output_fd = ends[1]};
  struct pwi_child *child;
  assert_int_equal(pwi_child_start(&config, &child), PAWL_OK);
  close(ends[1]);
  const char *line;
  assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_OK);
  char heard[256];
  if (kill_it) {
    assert_true(is_silent(ends[0]));
    kill(pwi_child_pid(child), SIGKILL); /* and not reaped: a zombie counts as gone */
  }
  hear_all(ends[0], heard, sizeof heard);
  close(ends[0]);
  pwi_child_stop(child, 0);
  assert_string_equal(heard, expected);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_a_killed_parent_is_noticed(void **state) {
  (void)state;
  expect_notice("both", "wait", true, "gone");
  expect_notice("process", "wait", true, "gone");
  expect_notice("pipe", "wait", true, "gone");
}

static void test_a_parent_that_exits_or_crashes_is_noticed(void **state) {
  (void)state;
  expect_notice("process", "exit", false, "gone");
  expect_notice("pipe", "exit", false, "gone");
  expect_notice("both", "abort", false, "gone");
}

static void test_a_parent_that_becomes_another_program_is_noticed(void **state) {
  (void)state;
  expect_notice("both", "exec", false, "gone");
  expect_notice("pipe", "exec", false, "gone");
}

/* It ends by SIGTERM, and reports nothing. */
static void test_a_parent_that_stops_its_child_is_not_gone(void **state) {
  (void)state;
  expect_notice("both", "stop", false, "");
}

/* --- in one process ------------------------------------------------------------------------------------- */

static atomic_int calls;

static void count_call(void *context) {
  atomic_fetch_add((atomic_int *)context, 1);
  sem_post(&parent_gone);
}

static void wait_for_call(void) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += PATIENCE_MS / 1000;
  int result;
  do result = sem_timedwait(&parent_gone, &limit);
  while (result != 0 && errno == EINTR);
  assert_int_equal(result, 0);
}

static int reset_calls(void **state) {
  (void)state;
  atomic_store(&calls, 0);
  return sem_init(&parent_gone, 0, 0);
}

static void test_a_parent_that_was_gone_before_is_reported(void **state) {
  (void)state;
  struct pwi_parent_watch *watch;
  pid_t never_ours = getpid(); /* no process is its own parent */
  assert_int_equal(pwi_parent_watch(never_ours, -1, count_call, &calls, &watch), PAWL_OK);
  wait_for_call();
  pwi_parent_watch_close(watch);
  assert_int_equal(atomic_load(&calls), 1);
}

static void test_a_closed_watch_calls_nothing(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  for (int i = 0; i < 50; i++) {
    struct pwi_parent_watch *watch;
    assert_int_equal(pwi_parent_watch(getppid(), i % 2 ? ends[1] : -1, count_call, &calls, &watch), PAWL_OK);
    pwi_parent_watch_close(watch);
  }
  assert_int_equal(atomic_load(&calls), 0);
  close(ends[0]);
  close(ends[1]);
  pwi_parent_watch_close(NULL);
}

static void test_the_pipe_alone_tells_once(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  struct pwi_parent_watch *watch;
  assert_int_equal(pwi_parent_watch(0, ends[1], count_call, &calls, &watch), PAWL_OK);
  assert_int_equal(fcntl(ends[1], F_GETFD), FD_CLOEXEC);
  /* Bytes that were written and not read are not a sign of anything. */
  assert_int_equal(pwi_parent_say_ready(ends[1], "ready"), PAWL_OK);
  assert_int_equal(atomic_load(&calls), 0);
  close(ends[0]);
  wait_for_call();
  pwi_parent_watch_close(watch);
  assert_int_equal(atomic_load(&calls), 1);
  close(ends[1]);
}

static void test_a_process_that_cannot_be_watched_is_refused(void **state) {
  (void)state;
  struct pwi_parent_watch *watch = NULL;
  assert_int_equal(pwi_parent_watch(0, -1, count_call, &calls, &watch), PAWL_INVALID);
  assert_int_equal(pwi_parent_watch(-1, 2, count_call, &calls, &watch), PAWL_INVALID);
  assert_int_equal(pwi_parent_watch(getppid(), 999, count_call, &calls, &watch), PAWL_INVALID);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_parent_watch(getppid(), -1, count_call, &calls, &watch), PAWL_NO_MEMORY);
  assert_true(pwi_memory_fail_cancel());
  struct rlimit before, none;
  getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_NOFILE, &none);
  pawl_status status = pwi_parent_watch(getppid(), -1, count_call, &calls, &watch);
  setrlimit(RLIMIT_NOFILE, &before);
  assert_int_equal(status, PAWL_NODE_LIMIT);
  assert_null(watch);
  assert_int_equal(pwi_memory_counts().live, 0);
}

static void test_ready_is_one_line(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  char line[PWI_READY_LINE_MAX + 2], got[2 * PWI_READY_LINE_MAX];
  assert_int_equal(pwi_parent_say_ready(ends[1], "ready a=1"), PAWL_OK);
  assert_int_equal(read(ends[0], got, sizeof got), 10);
  assert_memory_equal(got, "ready a=1\n", 10);
  assert_int_equal(pwi_parent_say_ready(ends[1], "ready\nmore"), PAWL_INVALID);
  memset(line, 'x', sizeof line);
  line[PWI_READY_LINE_MAX + 1] = '\0';
  assert_int_equal(pwi_parent_say_ready(ends[1], line), PAWL_INVALID);
  line[PWI_READY_LINE_MAX] = '\0';
  assert_int_equal(pwi_parent_say_ready(ends[1], line), PAWL_OK);
  assert_int_equal(read(ends[0], got, sizeof got), PWI_READY_LINE_MAX + 1);
  assert_int_equal(pwi_parent_say_ready(ends[0], "ready"), PAWL_IO);
  close(ends[0]);
  close(ends[1]);
}

/* With its default action the signal would end this test. */
static void test_a_parent_that_does_not_listen_kills_no_child(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_DFL);
  assert_int_equal(pwi_parent_say_ready(ends[1], "ready"), PAWL_LINK_CLOSED);
  sigset_t pending;
  sigpending(&pending);
  assert_int_equal(sigismember(&pending, SIGPIPE), 0);
  close(ends[1]);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "grandchild") == 0) return grandchild(argv[2], argv[3]);
  if (argc == 4 && strcmp(argv[1], "middle") == 0) return middle(argv[0], argv[2], argv[3]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_killed_parent_is_noticed),
      cmocka_unit_test(test_a_parent_that_exits_or_crashes_is_noticed),
      cmocka_unit_test(test_a_parent_that_becomes_another_program_is_noticed),
      cmocka_unit_test(test_a_parent_that_stops_its_child_is_not_gone),
      cmocka_unit_test_setup(test_a_parent_that_was_gone_before_is_reported, reset_calls),
      cmocka_unit_test_setup(test_a_closed_watch_calls_nothing, reset_calls),
      cmocka_unit_test_setup(test_the_pipe_alone_tells_once, reset_calls),
      cmocka_unit_test_setup(test_a_process_that_cannot_be_watched_is_refused, reset_calls),
      cmocka_unit_test(test_ready_is_one_line),
      cmocka_unit_test(test_a_parent_that_does_not_listen_kills_no_child),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
