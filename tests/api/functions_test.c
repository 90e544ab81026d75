/* Server functions through a whole cluster: built in, and from shared objects in a directory that its operator names. */
#include "scene.h"

#include <math.h>

#include "api/session.h"

#define KEYS 300

static char directory[] = "/tmp/pawl-functions-XXXXXX";

static void link_object(const char *folder, const char *name) {
  char from[4096], to[4096];
  snprintf(from, sizeof from, "%s/%s/%s.so", getenv("PAWL_BUILD"), folder, name);
  snprintf(to, sizeof to, "%s/%s.so", directory, name);
  assert_int_equal(symlink(from, to), 0);
}

static int make_directory(void **state) {
  (void)state;
  assert_non_null(mkdtemp(directory));
  link_object("examples/functions", "block_proximal");
  link_object("examples/functions", "countmin");
  link_object("examples/functions", "winsorise");
  link_object("tests/functions", "slow");
  return setenv("PAWL_FUNCTIONS", directory, 1);
}

static int remove_directory(void **state) {
  const char *names[] = {"block_proximal", "countmin", "winsorise", "slow"};
  char path[4096];
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s.so", directory, names[i]);
    unlink(path);
  }
  return rmdir(directory);
}

static struct pawl_vector *ruled(struct pawl_session *session, const char *name, const char *rule,
                                 enum pawl_type type) {
  struct pawl_vector_options options;
  struct pawl_vector *vector = NULL;
  pawl_vector_options_init(&options);
  options.type = type;
  options.size = KEYS;
  snprintf(options.rule, sizeof options.rule, "%s", rule);
  must(pawl_vector_ensure(session, name, &options, PATIENCE, &vector));
  return vector;
}

static pawl_status try_push(struct pawl_vector *vector, struct pawl_where where, const void *values) {
  struct pawl_task *task;
  must(pawl_vector_push(vector, where, values, &task));
  return pawl_task_finish(task, PATIENCE);
}

/* Twice with other words: the same rule. */
static void test_algorithm_3_from_outside_does_what_the_built_in_one_does(void **state) {
  static double pairs[2 * KEYS], ours[KEYS], theirs[KEYS];
  static uint64_t keys[KEYS / 3];
  struct pawl_session *session = open_pair();
  (void)state;
  struct pawl_vector *built_in = ruled(session, "a/in", "block_proximal rate=0.5 l1=0.25 eps=0.01", PAWL_F64);
  struct pawl_vector *outside = ruled(session, "a/out", "example_proximal rate=0.5 l1=0.25 eps=0.01", PAWL_F64);
  struct pawl_vector *again = ruled(session, "a/out", " example_proximal  rate=0.5 l1=0.25  eps=0.01", PAWL_F64);
  struct pawl_vector_info info;
  pawl_vector_info(again, &info);
  assert_true(info.pushed_width == 2 && info.pulled_width == 1);
  for (size_t i = 0; i < KEYS / 3; i++) keys[i] = 3 * i;
  for (int round = 0; round < 4; round++) {
    for (size_t i = 0; i < KEYS; i++) {
      pairs[2 * i] = (double)((i * 7 + (size_t)round * 3) % 11) - 5;
      pairs[2 * i + 1] = 1 + (double)(i % 4);
    }
    struct pawl_where where = round % 2 ? pawl_at_keys(keys, KEYS / 3) : pawl_at_range(0, KEYS);
    push(built_in, where, pairs);
    push(outside, where, pairs);
  }
  pull(built_in, pawl_at_range(0, KEYS), ours);
  pull(outside, pawl_at_range(0, KEYS), theirs);
  size_t moved = 0;
  for (size_t i = 0; i < KEYS; i++) {
    assert_true(ours[i] == theirs[i]);
    moved += ours[i] != 0;
  }
  assert_true(moved > KEYS / 2);
  pairs[7] = 0.0 / 0.0;
  must_fail(try_push(outside, pawl_at_range(0, 10), pairs), PAWL_REFUSED, "a/out"); /* on one arc */
  pull(outside, pawl_at_range(0, KEYS), ours);
  assert_memory_equal(ours, theirs, sizeof ours);
  must(pawl_session_close(session, PATIENCE));
}

static void test_a_count_that_would_overflow_is_refused_with_all_that_came_with_it(void **state) {
  uint64_t keys[] = {1, 2, 3}, more[] = {5, UINT64_MAX, 7}, cells[3];
  struct pawl_session *session = open_embedded(1, 1);
  (void)state;
  struct pawl_vector *counts = ruled(session, "a/counts", "countmin", PAWL_U64);
  push(counts, pawl_at_keys(keys, 3), more);
  must_fail(try_push(counts, pawl_at_keys(keys, 3), more), PAWL_OVERFLOW, "a/counts");
  pull(counts, pawl_at_keys(keys, 3), cells);
  assert_memory_equal(cells, more, sizeof cells);
  push(counts, pawl_at_keys(keys, 1), more);
  pull(counts, pawl_at_keys(keys, 1), cells);
  assert_int_equal(cells[0], 10);
  must(pawl_session_close(session, PATIENCE));
}

static void test_what_is_kept_beside_the_rows_outlives_its_server(void **state) {
  float gradients[] = {1, 2, 3}, before[3], after[3], wanted[3];
  uint64_t keys[] = {10, 100, 200};
  struct pawl_session *session = open_pair();
  pid_t servers[4];
  (void)state;
  struct pawl_vector *weights = ruled(session, "a/w", "adagrad rate=0.1", PAWL_F32);
  struct pawl_vector *other = ruled(session, "a/x", "adagrad rate=0.1", PAWL_F32);
  for (int i = 0; i < 3; i++) push(weights, pawl_at_keys(keys, 3), gradients);
  pull(weights, pawl_at_keys(keys, 3), before);
  assert_int_equal(find_children(getpid(), "--join", servers, 4), 2);
  await_copies(session);
  assert_int_equal(kill(servers[0], SIGKILL), 0);
  push(weights, pawl_at_keys(keys, 3), gradients); /* the step depends on the sum of all squares before */
  pull(weights, pawl_at_keys(keys, 3), after);
  for (int i = 0; i < 4; i++) push(other, pawl_at_keys(keys, 3), gradients);
  pull(other, pawl_at_keys(keys, 3), wanted);
  assert_memory_equal(after, wanted, sizeof after);
  assert_true(memcmp(after, before, sizeof after) != 0);
  pawl_session_close(session, PATIENCE);
}

static uint64_t epoch_of(struct pawl_session *session) {
  pwi_driver_enter(&session->driver);
  uint64_t epoch = pwi_client_view(session->client)->epoch;
  pwi_driver_leave(&session->driver);
  return epoch;
}

/* Peers take whoever says nothing for 250 ms for dead. Of two servers one is kept busy: the manager would believe it of one,
 * and not at once of both. On a busy machine a healthy server may be taken for dead, too, but not every time. */
static void test_a_function_that_takes_long_costs_no_heartbeat(void **state) {
  uint64_t key = 1;
  int64_t milliseconds = 700, negative = -1, row = 0;
  struct pawl_session *session = open_pair();
  (void)state;
  struct pawl_vector *vector = ruled(session, "a/slow", "slow", PAWL_I64);
  uint64_t before, after = 0;
  int64_t pushes = 0;
  do {
    await_copies(session);
    before = epoch_of(session);
    push(vector, pawl_at_keys(&key, 1), &milliseconds);
    after = epoch_of(session);
  } while (++pushes < 8 && after != before);
  assert_int_equal(after, before); /* nobody was taken for dead */
  must_fail(try_push(vector, pawl_at_keys(&key, 1), &negative), PAWL_REFUSED, "a/slow");
  pull(vector, pawl_at_keys(&key, 1), &row);
  assert_int_equal(row, 700 * pushes);
  must(pawl_session_close(session, PATIENCE));
}

/* It may take an operand for what it likes. */
static void test_a_function_may_expand_pushes_itself(void **state) {
  const int64_t operand[] = {2};
  int64_t values[] = {1, 3}, rows[2];
  uint64_t keys[] = {1, 2}; /* on one arc */
  struct pawl_session *session = open_embedded(1, 1);
  (void)state;
  struct pawl_vector *vector = ruled(session, "a/own", "slow", PAWL_I64);
  struct pawl_where where = pawl_at_keys(keys, 2);
  where.operand = operand;
  where.operand_rows = 1;
  push(vector, where, values);
  values[1] = -3;
  must_fail(try_push(vector, where, values), PAWL_REFUSED, "a/own"); /* it looks at the rows */
  pull(vector, pawl_at_keys(keys, 2), rows);
  assert_true(rows[0] == 3 && rows[1] == 5);
  must(pawl_session_close(session, PATIENCE));
}

static void test_a_function_that_nobody_has_is_named(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector_options options;
  struct pawl_vector *vector = NULL;
  (void)state;
  pawl_vector_options_init(&options);
  snprintf(options.rule, sizeof options.rule, "nowhere_to_be_found x=1");
  must_fail(pawl_vector_create(session, "a/b", &options, PATIENCE, &vector), PAWL_NOT_FOUND, "'nowhere_to_be_found'");
  snprintf(options.rule, sizeof options.rule, "adagrad rate=-1");
  must_fail(pawl_vector_create(session, "a/b", &options, PATIENCE, &vector), PAWL_INVALID, "rate");
  snprintf(options.rule, sizeof options.rule, "adagrad");
  options.type = PAWL_I32;
  must_fail(pawl_vector_create(session, "a/b", &options, PATIENCE, &vector), PAWL_INVALID, "a/b");
  must(pawl_session_close(session, PATIENCE));
}

/* --- row functions -------------------------------------------------------------------------------------- */

#define LONG 1200000 /* values: several slices on each server */

static struct pawl_vector *plain(struct pawl_session *session, const char *name, uint64_t size) {
  struct pawl_vector_options options;
  struct pawl_vector *vector = NULL;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = size;
  must(pawl_vector_create(session, name, &options, PATIENCE, &vector));
  return vector;
}

static pawl_status try_run(struct pawl_vector *vector, struct pawl_vector *other, struct pawl_range range,
                           const char *function, double results[3]) {
  struct pawl_task *task;
  must(pawl_vector_run(vector, other, range, function, &task));
  pawl_status status = pawl_task_wait(task, PATIENCE);
  assert_int_equal(pawl_task_results(task, results, 3), status ? 0 : 3);
  pawl_task_release(task);
  return status;
}

static void test_a_users_row_function_changes_rows_and_returns_results(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *x = plain(session, "a/x", KEYS), *spread = plain(session, "a/spread", KEYS);
  double values[KEYS], found[KEYS], results[3], pulled = 0, norm = 0;
  (void)state;
  for (size_t i = 0; i < KEYS; i++) values[i] = (double)(i % 11) - 5;
  push(x, pawl_at_range(0, KEYS), values);
  must(pawl_vector_fill(spread, PAWL_ALL, 1.5, NULL));
  must(try_run(x, spread, pawl_range_of(0, 200), "example_winsorise reach=2 p=2", results));
  for (size_t i = 0; i < 200; i++) {
    pulled += fabs(values[i]) > 3;
    if (fabs(values[i]) > 3) values[i] = values[i] < 0 ? -3 : 3;
    norm += values[i] * values[i];
  }
  assert_true(results[0] == pulled && results[1] == norm && results[2] == 3);
  pull(x, pawl_at_range(0, KEYS), found);
  assert_memory_equal(found, values, sizeof values);
  must_fail(try_run(x, NULL, PAWL_ALL, "example_winsorise", results), PAWL_UNSUPPORTED, "a/x");
  must_fail(try_run(x, NULL, PAWL_ALL, "example_unknown", results), PAWL_NOT_FOUND, "a/x");
  must_fail(try_run(x, spread, PAWL_ALL, "example_winsorise p=99", results), PAWL_INVALID, "a/x");
  must_fail(pawl_vector_run(x, NULL, PAWL_ALL, "clip low=3 high=2", NULL), PAWL_INVALID, "low is greater than high");
  must_fail(pawl_vector_run(x, NULL, PAWL_ALL, " ", NULL), PAWL_INVALID, "name of a row function");
  must_fail(pawl_vector_run(x, NULL, PAWL_ALL, NULL, NULL), PAWL_INVALID, "function is NULL");
  must_fail(pawl_vector_run(NULL, NULL, PAWL_ALL, "clip", NULL), PAWL_INVALID, "vector");
  must_fail(pawl_vector_run(x, NULL, pawl_range_of(0, KEYS + 1), "clip", NULL), PAWL_OUT_OF_SPAN, "a/x");
  pull(x, pawl_at_range(0, KEYS), found);
  assert_memory_equal(found, values, sizeof values);
  must(pawl_session_close(session, PATIENCE));
}

/* Keys of mixed placement are those of the program; an empty range has no results. */
static void test_keys_and_ranges_are_those_of_the_program(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector_options options;
  struct pawl_vector *mixed = NULL, *ordered = plain(session, "a/ordered", 1000);
  uint64_t keys[] = {3, 77, 900};
  double zeros[3] = {0}, first[3], second[1000], results[3];
  struct pawl_task *task;
  (void)state;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.placement = PAWL_PLACE_MIXED;
  must(pawl_vector_create(session, "a/mixed", &options, PATIENCE, &mixed));
  push(mixed, pawl_at_keys(keys, 3), zeros);
  must(pawl_vector_run(mixed, NULL, PAWL_ALL, "noise seed=4", NULL));
  must(pawl_vector_run(ordered, NULL, PAWL_ALL, "noise seed=4", NULL));
  pull(mixed, pawl_at_keys(keys, 3), first);
  pull(ordered, pawl_at_range(0, 1000), second);
  for (size_t i = 0; i < 3; i++) assert_true(first[i] != 0 && first[i] == second[keys[i]]);
  must(pawl_vector_run(ordered, NULL, pawl_range_of(9, 9), "clip", &task));
  must(pawl_task_wait(task, PATIENCE));
  assert_int_equal(pawl_task_results(task, results, 3), 0);
  pawl_task_release(task);
  must(pawl_session_close(session, PATIENCE));
}

/* Each run shrinks every value by one: a run too many, or a result that is counted twice, would show. */
static void test_a_server_that_dies_in_between_runs_nothing_twice(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *x = plain(session, "a/x", LONG);
  struct pawl_task *tasks[20];
  double results[4], most = 0;
  pid_t servers[4];
  (void)state;
  must(pawl_vector_fill(x, PAWL_ALL, 100, NULL));
  must(pawl_session_flush(session, PATIENCE));
  assert_int_equal(find_children(getpid(), "--join", servers, 4), 2);
  for (size_t round = 0; round < 20; round++) {
    must(pawl_vector_run(x, NULL, PAWL_ALL, "proximal l1=1", &tasks[round]));
    if (round == 7) {
      await_copies(session);
      assert_int_equal(kill(servers[0], SIGKILL), 0);
    }
  }
  for (size_t round = 0; round < 20; round++) {
    double left = 99 - (double)round;
    must(pawl_task_wait(tasks[round], PATIENCE));
    assert_int_equal(pawl_task_results(tasks[round], results, 4), 4);
    assert_true(results[0] == LONG && results[1] == left * LONG && results[2] == LONG);
    assert_true(results[3] == left * left * LONG);
    pawl_task_release(tasks[round]);
  }
  must(pawl_vector_norm(x, PAWL_ALL, PAWL_NORM_MAX, PATIENCE, &most));
  assert_true(most == 80);
  must(pawl_session_close(session, PATIENCE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_algorithm_3_from_outside_does_what_the_built_in_one_does),
      cmocka_unit_test(test_a_count_that_would_overflow_is_refused_with_all_that_came_with_it),
      cmocka_unit_test(test_what_is_kept_beside_the_rows_outlives_its_server),
      cmocka_unit_test(test_a_function_that_takes_long_costs_no_heartbeat),
      cmocka_unit_test(test_a_function_may_expand_pushes_itself),
      cmocka_unit_test(test_a_function_that_nobody_has_is_named),
      cmocka_unit_test(test_a_users_row_function_changes_rows_and_returns_results),
      cmocka_unit_test(test_keys_and_ranges_are_those_of_the_program),
      cmocka_unit_test(test_a_server_that_dies_in_between_runs_nothing_twice),
  };
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
