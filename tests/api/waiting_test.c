/* The only server of a cluster dies, and with it the only copy of everything. No call of the library changes its deadline for that;
 * but each one that waits in vain says whom it waits for, and which commands end the waiting. */
#include "scene.h"

#include "host/clock.h"

#define MOMENT (PAWL_SECOND / 10)
#define WAITS "have the only copy: node 1"
#define WAY_OUT "pawl server forget --all-lost"

static struct {
  struct pawl_session *session;
  struct pawl_vector *vector;
  struct pawl_group *group;
  struct pawl_sketch *sketch;
  struct pawl_sketch_writer *writer;
} is;

static void kill_server(void) {
  pid_t server = 0;
  int64_t deadline = pwi_host_now() + PATIENCE;
  assert_int_equal(find_children(getpid(), "--join", &server, 1), 1);
  assert_int_equal(kill(server, SIGKILL), 0);
  while (pawl_session_check(is.session) == PAWL_OK && pwi_host_now() < deadline) usleep(10000);
  must_fail(pawl_session_check(is.session), PAWL_CLUSTER_WAITING, WAY_OUT);
}

/* Everything is made while the server lives; then it dies. */
static int begin(void **state) {
  struct pawl_sketch_writer_options options = {.struct_size = sizeof options, .timeout_ns = PATIENCE};
  (void)state;
  is.session = open_embedded(1, 1);
  is.vector = create(is.session, "a/v", PAWL_F32, 100);
  must(pawl_group_join(is.session, "a/g", 1, PATIENCE, &is.group));
  must(pawl_sketch_create(is.session, "a/s", NULL, PATIENCE, &is.sketch));
  must(pawl_sketch_writer_open(is.sketch, &options, &is.writer));
  kill_server();
  return 0;
}

static int end(void **state) {
  (void)state;
  pawl_sketch_writer_close(is.writer);
  pawl_sketch_close(is.sketch);
  pawl_group_leave(is.group);
  pawl_vector_close(is.vector);
  pawl_session_close(is.session, 0);
  return 0;
}

static void says_why(pawl_status status) {
  must_fail(status, PAWL_TIMED_OUT, WAITS);
  must_fail(status, PAWL_TIMED_OUT, WAY_OUT);
}

static void test_tasks_say_it(void **state) {
  static float values[1] = {1}, found[1];
  static double sum;
  struct pawl_task *task;
  (void)state;
  must(pawl_vector_push(is.vector, pawl_at_range(0, 1), values, &task));
  says_why(pawl_task_finish(task, MOMENT));
  must(pawl_vector_pull(is.vector, pawl_at_range(0, 1), found, &task));
  says_why(pawl_task_wait(task, MOMENT));
  says_why(pawl_task_finish(task, MOMENT));
  says_why(pawl_vector_norm(is.vector, pawl_range_of(0, 100), PAWL_NORM_1, MOMENT, &sum));
}

static void test_scans_say_it(void **state) {
  static uint64_t keys[8];
  static float values[8];
  size_t count;
  uint64_t next;
  (void)state;
  says_why(pawl_vector_scan(is.vector, pawl_range_of(0, 100), 8, keys, values, MOMENT, &count, &next));
}

static void test_a_flush_says_it(void **state) {
  static float values[1] = {1}; /* a push that has not ended reads it */
  (void)state;
  must(pawl_vector_push(is.vector, pawl_at_range(0, 1), values, NULL));
  says_why(pawl_session_flush(is.session, MOMENT));
}

static void test_groups_say_it(void **state) {
  static float values[1] = {1};
  struct pawl_group *other = NULL;
  struct pawl_task *task;
  struct pawl_iterations *iterations;
  (void)state;
  says_why(pawl_group_barrier(is.group, MOMENT));
  says_why(pawl_group_await(is.group, 1, MOMENT));
  says_why(pawl_group_join(is.session, "a/other", 1, MOMENT, &other));
  must(pawl_iterations_create(is.session, NULL, "sequential", &iterations));
  must(pawl_iteration_begin(iterations, PATIENCE, NULL));
  must(pawl_vector_push(is.vector, pawl_at_range(0, 1), values, &task));
  must(pawl_iteration_add(iterations, task));
  must(pawl_iteration_end(iterations, 0));
  says_why(pawl_iteration_begin(iterations, MOMENT, NULL));
  pawl_task_release(task);
  pawl_iterations_destroy(iterations);
}

static void test_reading_a_sketch_says_it(void **state) {
  struct pawl_sketch_key key = {.bytes = "a", .size = 1};
  struct pawl_sketch_count count;
  struct pawl_sketch_entry top;
  size_t found;
  double distinct, error;
  (void)state;
  says_why(pawl_sketch_query(is.sketch, &key, 1, NULL, MOMENT, &count));
  says_why(pawl_sketch_top(is.sketch, 1, NULL, MOMENT, &top, &found));
  says_why(pawl_sketch_distinct(is.sketch, NULL, MOMENT, &distinct, &error));
}

/* And a writer that has been waited for is not waited for again. */
static void test_counting_says_it_once(void **state) {
  (void)state;
  must(pawl_sketch_add(is.writer, "a", 1, 1));
  says_why(pawl_sketch_flush(is.writer, MOMENT));
  int64_t began = pwi_host_now();
  assert_int_not_equal(pawl_sketch_writer_close(is.writer), PAWL_OK);
  assert_true(pwi_host_now() - began < PATIENCE); /* its own patience, which is not asked for */
  is.writer = NULL;
}

static void test_a_checkpoint_says_it(void **state) {
  struct pawl_checkpoint_options options;
  struct pawl_checkpoint_info info;
  char folder[] = "/tmp/pawl-waiting-XXXXXX";
  (void)state;
  assert_non_null(mkdtemp(folder));
  pawl_checkpoint_options_init(&options);
  options.directory = folder;
  options.timeout_ns = 5 * MOMENT;
  says_why(pawl_checkpoint_save(is.session, &options, &info));
  rmdir(folder);
}

static void test_closing_says_it(void **state) {
  static float values[1] = {1}; /* a push that has not ended reads it */
  (void)state;
  struct pawl_session *session = open_beside(is.session, false);
  struct pawl_vector *vector;
  must(pawl_vector_open(session, "a/v", PATIENCE, &vector));
  must(pawl_vector_push(vector, pawl_at_range(0, 1), values, NULL));
  pawl_vector_close(vector);
  says_why(pawl_session_close(session, MOMENT));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tasks_say_it),
      cmocka_unit_test(test_scans_say_it),
      cmocka_unit_test(test_a_flush_says_it),
      cmocka_unit_test(test_groups_say_it),
      cmocka_unit_test(test_reading_a_sketch_says_it),
      cmocka_unit_test(test_counting_says_it_once),
      cmocka_unit_test(test_a_checkpoint_says_it),
      cmocka_unit_test(test_closing_says_it),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
