/* Exactly once between real processes: while a worker pushes ones, it is stopped until the cluster gives it up, a server is
 * stopped for longer than the silence limit, a server joins, and another is drained. In the end every key holds the number
 * of pushes. What is drawn from seeds in tests/cluster is here seen once on real clocks, sockets and shared memory. */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "base/testing.h"
#include "host/children.h"
#include "host/clock.h"

#define READY_NS (20 * PWI_HOST_SECOND)
#define KEYS 3

/* --- the worker: this program once more ------------------------------------------------------------------------------- */

static int64_t seconds_from(const struct timespec *begin) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)(now.tv_sec - begin->tv_sec);
}

static int complain(const char *what, pawl_status status) {
  fprintf(stderr, "%s: %s: %s\n", what, pawl_status_text(status), pawl_error_text());
  return 1;
}

static int work(void) {
  static const uint64_t keys[KEYS] = {1, 500, 999};
  const int64_t ones[KEYS] = {1, 1, 1};
  int64_t stored[KEYS] = {0}, pushes = 0;
  struct pawl_session *session;
  struct pawl_vector *vector;
  struct pawl_task *task;
  struct pawl_vector_options options;
  struct timespec begin;
  pawl_vector_options_init(&options);
  options.type = PAWL_I64;
  options.size = 1000;
  pawl_status status = pawl_session_open(NULL, &session);
  if (status) return complain("open", status);
  status = pawl_vector_ensure(session, "storm/counts", &options, 10 * PAWL_SECOND, &vector);
  if (status) return complain("ensure", status);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  while (seconds_from(&begin) < 7) {
    for (int i = 0; i < 20; i++, pushes++) {
      status = pawl_vector_push(vector, pawl_at_keys(keys, KEYS), ones, NULL);
      if (status) return complain("push", status);
    }
    status = pawl_session_flush(session, 60 * PAWL_SECOND);
    if (status) return complain("flush", status);
  }
  status = pawl_vector_pull(vector, pawl_at_keys(keys, KEYS), stored, &task);
  if (!status) status = pawl_task_finish(task, 60 * PAWL_SECOND);
  if (status) return complain("pull", status);
  printf("%" PRId64 " pushes, as node %" PRIu64 "\n", pushes, pawl_session_node(session).id);
  for (size_t i = 0; i < KEYS; i++)
    if (stored[i] != pushes) return complain("a key holds another number than was pushed", PAWL_CORRUPT);
  return pawl_session_close(session, 10 * PAWL_SECOND) != PAWL_OK;
}

/* --- the storm --------------------------------------------------------------------------------------------------------- */

static char command[PATH_MAX], address[128];

static struct pwi_child *start(const char *path, const char *const *words, bool is_ready_told) {
  struct pwi_child_config config = {
      .path = path, .argv = (char *const *)(uintptr_t)words, .output_fd = PWI_CHILD_OUTPUT_INHERIT};
  struct pwi_child *child;
  const char *line;
  assert_int_equal(pwi_child_start(&config, &child), PAWL_OK);
  if (!is_ready_told) return child;
  assert_int_equal(pwi_child_ready(child, pwi_host_now() + READY_NS, &line), PAWL_OK);
  if (!address[0]) assert_int_equal(pwi_child_value(line, "address", address, sizeof address), PAWL_OK);
  return child;
}

static struct pwi_child *start_server(void) {
  const char *words[] = {"pawl",       "server", "--join",      address, "--http", "none",
                         "--ready-fd", "3",      "--log-level", "error", NULL};
  return start(command, words, true);
}

static void stop_for(struct pwi_child *child, useconds_t microseconds) {
  assert_int_equal(kill(pwi_child_pid(child), SIGSTOP), 0);
  usleep(microseconds);
  assert_int_equal(kill(pwi_child_pid(child), SIGCONT), 0);
}

static void test_every_push_counts_once_in_a_storm_of_real_processes(void **state) {
  (void)state;
  char self[PATH_MAX];
  struct pwi_child_end end;
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  assert_int_equal(pwi_child_command(command, sizeof command), PAWL_OK);
  const char *words[] = {"pawl",           "manager", "--listen",    "127.0.0.1:0", "--http", "none", "--ready-fd", "3",
                         "--client-grace", "0.5",     "--log-level", "error",       "--data", "none", NULL};
  struct pwi_child *manager = start(command, words, true);
  struct pwi_child *first = start_server(), *second = start_server();
  setenv("PAWL_ADDRESS", address, 1);
  const char *worker_words[] = {"storm", "work", NULL};
  struct pwi_child *worker = start(self, worker_words, false);
  usleep(1000000);
  stop_for(worker, 1500000); /* longer than the grace: it comes back as somebody else */
  usleep(500000);
  stop_for(first, 500000); /* longer than the silence limit */
  struct pwi_child *third = start_server();
  pwi_child_ask(second); /* it hands its keys over */
  assert_int_equal(pwi_child_wait(worker, pwi_host_now() + 60 * PWI_HOST_SECOND, &end), PAWL_OK);
  assert_int_equal(end.how, PWI_CHILD_EXITED);
  assert_int_equal(end.number, 0);
  struct pwi_child *all[] = {worker, first, second, third, manager};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) pwi_child_stop(all[i], PWI_HOST_SECOND / 2);
}

int main(int count, char **words) {
  if (count > 1 && strcmp(words[1], "work") == 0) return work();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_push_counts_once_in_a_storm_of_real_processes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
