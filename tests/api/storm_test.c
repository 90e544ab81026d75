/* Exactly once between real processes: while a worker pushes ones, it is stopped until the cluster gives it up, a server is
 * stopped until the manager misses it, a server joins, and another is drained. In the end every key holds the number of
 * pushes. What is drawn from seeds in tests/cluster is here seen once on real clocks, sockets and shared memory. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "base/testing.h"
#include "host/children.h"
#include "host/clock.h"

#define LIMIT_NS (200 * PWI_HOST_SECOND) /* for a test that hangs: nothing takes that long on a busy machine */
#define TRIES 20
#define KEYS 3

/* --- the worker: this program once more ------------------------------------------------------------------------------- */

/* Memory that the worker shares with the test. */
struct board {
  _Atomic uint64_t pushes; /* that were flushed */
  _Atomic uint64_t node;   /* the worker's id at its last flush */
  atomic_bool is_over;     /* the worker is to check its pushes, and end */
};

static struct board *map_board(const char *path) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  struct board *board = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  return board == MAP_FAILED ? NULL : board;
}

static int complain(const char *what, pawl_status status) {
  fprintf(stderr, "%s: %s: %s\n", what, pawl_status_text(status), pawl_error_text());
  return 1;
}

static int work(const char *path) {
  static const uint64_t keys[KEYS] = {1, 500, 999};
  const int64_t ones[KEYS] = {1, 1, 1};
  int64_t stored[KEYS] = {0}, pushes = 0;
  struct pawl_session *session;
  struct pawl_vector *vector;
  struct pawl_task *task;
  struct pawl_vector_options options;
  struct board *board = map_board(path);
  if (!board) return complain("map", PAWL_IO);
  pawl_vector_options_init(&options);
  options.type = PAWL_I64;
  options.size = 1000;
  pawl_status status = pawl_session_open(NULL, &session);
  if (status) return complain("open", status);
  status = pawl_vector_ensure(session, "storm/counts", &options, LIMIT_NS, &vector);
  if (status) return complain("ensure", status);
  while (!board->is_over) {
    for (int i = 0; i < 20; i++, pushes++) {
      status = pawl_vector_push(vector, pawl_at_keys(keys, KEYS), ones, NULL);
      if (status) return complain("push", status);
    }
    status = pawl_session_flush(session, LIMIT_NS);
    if (status) return complain("flush", status);
    board->node = pawl_session_node(session).id;
    board->pushes = (uint64_t)pushes;
  }
  status = pawl_vector_pull(vector, pawl_at_keys(keys, KEYS), stored, &task);
  if (!status) status = pawl_task_finish(task, LIMIT_NS);
  if (status) return complain("pull", status);
  printf("%" PRId64 " pushes, as node %" PRIu64 "\n", pushes, pawl_session_node(session).id);
  for (size_t i = 0; i < KEYS; i++)
    if (stored[i] != pushes) return complain("a key holds another number than was pushed", PAWL_CORRUPT);
  return pawl_session_close(session, LIMIT_NS) != PAWL_OK;
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
  assert_int_equal(pwi_child_ready(child, pwi_host_now() + LIMIT_NS, &line), PAWL_OK);
  if (!address[0]) assert_int_equal(pwi_child_value(line, "address", address, sizeof address), PAWL_OK);
  return child;
}

static struct pwi_child *start_server(void) {
  const char *words[] = {"pawl", "server",      "--join", address,          "--http", "none", "--ready-fd",
                         "3",    "--log-level", "error",  "--join-timeout", "200",    NULL};
  return start(command, words, true);
}

static void send_signal(struct pwi_child *child, int number) {
  assert_int_equal(kill(pwi_child_pid(child), number), 0);
}

/* Until the worker has flushed more pushes than it has now. Those that were under way do not count. */
static void await_pushes(const struct board *board) {
  int64_t deadline = pwi_host_after(LIMIT_NS);
  uint64_t least = board->pushes + 41;
  while (board->pushes < least) {
    assert_true(pwi_host_now() < deadline);
    usleep(1000);
  }
}

/* Until the status of the cluster has these words in it, or until it lacks them. */
static void await_status(struct pawl_session *session, const char *words, bool is_there) {
  int64_t deadline = pwi_host_after(LIMIT_NS);
  for (;;) {
    char *json;
    assert_int_equal(pawl_session_status(session, LIMIT_NS, &json), PAWL_OK);
    bool is_met = (strstr(json, words) != NULL) == is_there;
    if (!is_met && pwi_host_now() >= deadline) fail_msg("%s: %s", words, json);
    pawl_text_free(json);
    if (is_met) return;
    usleep(10000);
  }
}

/* The text that tells how many clients are retired. */
static void find_retired(struct pawl_session *session, char text[32]) {
  char *json;
  assert_int_equal(pawl_session_status(session, LIMIT_NS, &json), PAWL_OK);
  const char *found = strstr(json, "\"retired\":");
  assert_non_null(found);
  snprintf(text, 32, "%.*s", (int)strcspn(found, ",}") + 1, found);
  pawl_text_free(json);
}

/* Stops the worker until it is retired. On a busy machine it may have been another client that was; then once more. */
static void retire(struct pawl_session *session, const struct board *board, struct pwi_child *worker) {
  uint64_t node = board->node;
  for (int tries = 0; board->node == node && tries < TRIES; tries++) {
    char retired[32];
    find_retired(session, retired);
    send_signal(worker, SIGSTOP);
    await_status(session, retired, false);
    send_signal(worker, SIGCONT);
    await_pushes(board);
  }
  assert_int_not_equal(board->node, node); /* it comes back as somebody else */
}

static void raise_a_storm(const struct board *board, struct pwi_child *worker, struct pwi_child *server) {
  struct pawl_session *session;
  assert_int_equal(pawl_session_open(NULL, &session), PAWL_OK);
  await_pushes(board);
  retire(session, board, worker);
  send_signal(server, SIGSTOP);
  await_status(session, "\"linked\":false", true);
  send_signal(server, SIGCONT);
  await_status(session, "\"linked\":false", false);
  assert_int_equal(pawl_session_close(session, LIMIT_NS), PAWL_OK);
}

static void test_every_push_counts_once_in_a_storm_of_real_processes(void **state) {
  (void)state;
  char self[PATH_MAX], path[] = "/tmp/pawl-storm-XXXXXX";
  struct pwi_child_end end;
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  int file = mkstemp(path);
  assert_true(length > 0 && file >= 0 && ftruncate(file, sizeof(struct board)) == 0);
  close(file);
  self[length] = '\0';
  struct board *board = map_board(path);
  assert_non_null(board);
  assert_int_equal(pwi_child_command(command, sizeof command), PAWL_OK);
  const char *words[] = {"pawl",           "manager", "--listen",    "127.0.0.1:0", "--http", "none", "--ready-fd", "3",
                         "--client-grace", "0.5",     "--log-level", "error",       "--data", "none", NULL};
  struct pwi_child *manager = start(command, words, true);
  struct pwi_child *first = start_server(), *second = start_server();
  setenv("PAWL_ADDRESS", address, 1);
  const char *worker_words[] = {"storm", "work", path, NULL};
  struct pwi_child *worker = start(self, worker_words, false);
  raise_a_storm(board, worker, first);
  struct pwi_child *third = start_server();
  pwi_child_ask(second); /* it hands its keys over */
  assert_int_equal(pwi_child_wait(second, pwi_host_after(LIMIT_NS), &end), PAWL_OK);
  await_pushes(board);
  board->is_over = true;
  assert_int_equal(pwi_child_wait(worker, pwi_host_after(LIMIT_NS), &end), PAWL_OK);
  assert_int_equal(end.how, PWI_CHILD_EXITED);
  assert_int_equal(end.number, 0);
  struct pwi_child *all[] = {worker, first, second, third, manager};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) pwi_child_stop(all[i], PWI_HOST_SECOND / 2);
  munmap(board, sizeof *board);
  unlink(path);
}

int main(int count, char **words) {
  if (count > 2 && strcmp(words[1], "work") == 0) return work(words[2]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_push_counts_once_in_a_storm_of_real_processes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
