/* Programs that end with sessions open: by exit, from main, from another thread, in the middle of things. They end as they say, and
 * never by a signal. Each is this program, started again.
 *
 * many: 100
 *
 *   PAWL_SEEDS=n    how often each way to end is tried
 */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include <openssl/crypto.h>

#include "scene.h"

#define CODE 42
#define ROWS 4096

static struct pawl_session *session;
static float ones[ROWS];

/* --- as the program that ends ---------------------------------------------------------------------------------------------- */

static struct pawl_vector *open_vector(struct pawl_session *own) {
  struct pawl_vector *vector = NULL;
  must(pawl_vector_open(own, "exit/w", PATIENCE, &vector));
  return vector;
}

static struct pawl_session *open_at(const char *address) {
  struct pawl_session_options options;
  struct pawl_session *own = NULL;
  pawl_session_options_init(&options);
  options.address = address;
  must(pawl_session_open(&options, &own));
  return own;
}

static void begin_pushes(struct pawl_vector *vector) {
  for (int i = 0; i < 32; i++) must(pawl_vector_push(vector, pawl_at_range(0, ROWS), ones, NULL));
}

/* One call after the other, until the process is gone. */
static void *keep_waiting(void *argument) {
  struct pawl_vector *vector = argument;
  float out[ROWS];
  for (;;) {
    struct pawl_task *task = NULL;
    if (pawl_vector_pull(vector, pawl_at_range(0, ROWS), out, &task) || pawl_task_finish(task, PATIENCE)) break;
  }
  return NULL;
}

static void *leave(void *argument) {
  (void)argument;
  exit(CODE);
}

/* What another library does at exit: it takes OpenSSL away. */
static void clean_up(void) { OPENSSL_cleanup(); }

static struct pawl_session *to_close;

/* A program that closes its session at exit, and registered that before there was one. */
static void close_late(void) {
  if (pawl_session_close(to_close, PATIENCE) != PAWL_OK) _exit(1);
}

static int end_as(const char *how, const char *address) {
  pthread_t threads[3];
  if (strcmp(how, "cleaner") == 0) atexit(clean_up); /* before any session: so it runs after those of sessions */
  if (strcmp(how, "closer") == 0) atexit(close_late);
  if (strcmp(how, "embedded") == 0) {
    struct pawl_vector *vector = create(open_embedded(1, 1), "exit/own", PAWL_F32, ROWS);
    begin_pushes(vector);
    return CODE;
  }
  struct pawl_session *own = to_close = open_at(address);
  struct pawl_vector *vector = open_vector(own);
  begin_pushes(vector);
  if (strcmp(how, "threads") == 0 || strcmp(how, "cleaner") == 0)
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, keep_waiting, vector);
  if (strcmp(how, "elsewhere") == 0) {
    pthread_create(&threads[2], NULL, leave, NULL);
    for (;;) keep_waiting(vector);
  }
  if (strcmp(how, "return") == 0) return CODE;
  if (strcmp(how, "threads") == 0) usleep(2000);
  exit(CODE);
}

/* --- as the test -------------------------------------------------------------------------------------------------------------- */

static int how_often(void) {
  const char *many = getenv("PAWL_SEEDS");
  return many ? atoi(many) : 8;
}

static void check_ends(const char *how, int most) {
  for (int i = 0; i < most; i++) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
      setenv("LSAN_OPTIONS", "detect_leaks=0", 1); /* a session that stays open keeps its memory */
      execl("/proc/self/exe", "exit_test", how, pawl_session_address(session), (char *)NULL);
      _exit(127);
    }
    int state = 0;
    while (waitpid(pid, &state, 0) < 0) assert_int_equal(errno, EINTR);
    if (WIFSIGNALED(state)) fail_msg("%s, time %d: ended by signal %d", how, i, WTERMSIG(state));
    assert_int_equal(WEXITSTATUS(state), CODE);
  }
}

static void test_main_may_return_with_a_session_open(void **state) {
  (void)state;
  check_ends("return", how_often());
}

static void test_exit_may_be_called_with_a_session_open(void **state) {
  (void)state;
  check_ends("exit", how_often());
}

static void test_exit_may_be_called_while_threads_wait(void **state) {
  (void)state;
  check_ends("threads", how_often());
}

static void test_exit_may_be_called_from_another_thread(void **state) {
  (void)state;
  check_ends("elsewhere", how_often());
}

static void test_handlers_of_others_find_no_session_at_work(void **state) {
  (void)state;
  check_ends("cleaner", how_often());
}

static void test_a_session_may_be_closed_by_a_handler_of_the_program(void **state) {
  (void)state;
  check_ends("closer", how_often());
}

static void test_main_may_return_with_an_embedded_cluster_open(void **state) {
  (void)state;
  check_ends("embedded", 5);
}

static int open_cluster(void **state) {
  (void)state;
  setenv("PAWL_KEY", "pawl1-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1); /* theirs too */
  session = open_embedded(1, 1);
  (void)create(session, "exit/w", PAWL_F32, ROWS);
  return 0;
}

static int close_cluster(void **state) {
  (void)state;
  return pawl_session_close(session, PATIENCE) == PAWL_OK ? 0 : -1;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_main_may_return_with_a_session_open),
      cmocka_unit_test(test_exit_may_be_called_with_a_session_open),
      cmocka_unit_test(test_exit_may_be_called_while_threads_wait),
      cmocka_unit_test(test_exit_may_be_called_from_another_thread),
      cmocka_unit_test(test_handlers_of_others_find_no_session_at_work),
      cmocka_unit_test(test_a_session_may_be_closed_by_a_handler_of_the_program),
      cmocka_unit_test(test_main_may_return_with_an_embedded_cluster_open),
  };
  if (argc == 3) return end_as(argv[1], argv[2]);
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
