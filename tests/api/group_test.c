/* Groups and vectors of one's own: several sessions, in threads, at one embedded cluster. */
#define SERVERS 1
#define SHARDS 2
#include "session_scene.h"

#include <pthread.h>

#define WORKERS 4
#define ROUNDS 20

struct worker {
  pthread_t thread;
  int64_t wrong; /* a sum that was read too early */
  uint32_t rank, size;
  pawl_status status;
};

static pawl_status run_rounds(struct pawl_session *own, struct worker *worker) {
  struct pawl_vector *vector;
  struct pawl_group *group;
  pawl_status status = pawl_vector_open(own, "g/sums", PATIENCE, &vector);
  if (!status) status = pawl_group_join(own, "g/workers", WORKERS, PATIENCE, &group);
  for (uint64_t round = 0; round < ROUNDS && !status; round++) {
    int64_t one = 1, sum = 0;
    struct pawl_task *task;
    status = pawl_vector_push(vector, pawl_at_keys(&round, 1), &one, NULL);
    if (!status) status = pawl_group_barrier(group, PATIENCE);
    if (!status) status = pawl_vector_pull(vector, pawl_at_keys(&round, 1), &sum, &task);
    if (!status) status = pawl_task_finish(task, PATIENCE);
    if (!status && sum != WORKERS) worker->wrong = sum;
    worker->rank = pawl_group_rank(group);
    worker->size = pawl_group_size(group);
    if (!status) status = pawl_group_barrier(group, PATIENCE);
  }
  return status;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  struct pawl_session *own = open_beside(session, false);
  worker->status = run_rounds(own, worker);
  pawl_status status = pawl_session_close(own, PATIENCE);
  if (!worker->status) worker->status = status;
  return NULL;
}

static void test_a_barrier_holds_until_all_have_pushed(void **state) {
  struct worker workers[WORKERS];
  unsigned ranks = 0;
  (void)state;
  create(session, "g/sums", PAWL_I64, ROUNDS);
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  for (int i = 0; i < WORKERS; i++) {
    pthread_join(workers[i].thread, NULL);
    assert_int_equal(workers[i].status, PAWL_OK);
    assert_int_equal(workers[i].wrong, 0);
    assert_int_equal(workers[i].size, WORKERS);
    ranks |= 1u << workers[i].rank;
  }
  assert_int_equal(ranks, (1u << WORKERS) - 1);
}

/* Each worker pushes to the same keys but the last, which has one of its own in every third round. */
static pawl_status push_rounds(struct pawl_session *own, struct worker *worker) {
  struct pawl_vector *vector;
  struct pawl_group *group;
  int64_t values[5], sums[5];
  pawl_status status = pawl_vector_open(own, "g/together", PATIENCE, &vector);
  if (!status) status = pawl_group_join(own, "g/adders", WORKERS, PATIENCE, &group);
  uint32_t rank = status ? 0 : pawl_group_rank(group);
  for (uint64_t round = 0; round < ROUNDS && !status; round++) {
    uint64_t keys[] = {round, 100 + round, 200 + round, 300 + round, 400 + round};
    struct pawl_task *task;
    bool is_odd = rank == WORKERS - 1 && round % 3 == 0;
    for (size_t i = 0; i < 5; i++) values[i] = (int64_t)(rank + 1);
    if (is_odd) keys[4] = 900 + round;
    status = pawl_group_push(group, vector, pawl_at_keys(keys, 5), values, &task);
    if (!status) status = pawl_task_finish(task, PATIENCE);
    keys[4] = 400 + round;
    if (!status) status = pawl_vector_pull(vector, pawl_at_keys(keys, 5), sums, &task);
    if (!status) status = pawl_task_finish(task, PATIENCE);
    int64_t all = WORKERS * (WORKERS + 1) / 2;
    for (size_t i = 0; i < 4 && !status; i++)
      if (sums[i] != all) worker->wrong = sums[i] ? sums[i] : -1;
    if (!status && sums[4] != (round % 3 == 0 ? all - WORKERS : all)) worker->wrong = sums[4];
    if (!status) status = pawl_group_barrier(group, PATIENCE);
  }
  return status;
}

static void *add_aggregate(void *argument) {
  struct worker *worker = argument;
  struct pawl_session *own = open_beside(session, false);
  worker->status = push_rounds(own, worker);
  pawl_status status = pawl_session_close(own, PATIENCE);
  if (!worker->status) worker->status = status;
  return NULL;
}

static void test_pushes_of_a_group_are_applied_as_one_when_all_are_in(void **state) {
  struct worker workers[WORKERS];
  (void)state;
  pawl_vector_close(create(session, "g/together", PAWL_I64, 1000));
  memset(workers, 0, sizeof workers);
  for (size_t i = 0; i < WORKERS; i++)
    assert_int_equal(pthread_create(&workers[i].thread, NULL, add_aggregate, &workers[i]), 0);
  for (size_t i = 0; i < WORKERS; i++) pthread_join(workers[i].thread, NULL);
  for (size_t i = 0; i < WORKERS; i++) {
    must(workers[i].status);
    assert_int_equal(workers[i].wrong, 0);
  }
}

static struct pawl_vector *make_weights(const char *name) {
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = 1000;
  options.layout = PAWL_LAYOUT_SPARSE;
  strcpy(options.rule, "block_newton l1=1 eps=1e-30");
  must(pawl_vector_create(session, name, &options, PATIENCE, &vector));
  return vector;
}

/* One has keys of its own, the other none at all in the first two ticks. While one is ahead, whoever reads does not wait. */
static void test_members_may_have_different_keys_or_none(void **state) {
  struct pawl_session *other = open_beside(session, false);
  struct pawl_vector *ours = make_weights("g/weights"), *theirs;
  struct pawl_group *we, *they;
  struct pawl_task *tasks[5];
  uint64_t keys[] = {3, 500, 900}, more[] = {500, 700};
  double pairs[] = {-4, 2, -8, 1, -3, 1}, others[] = {-2, 1, 6, 1}, rows[8] = {-1};
  struct pawl_where where = pawl_at_keys(keys, 3), nothing = pawl_at_keys(keys, 0);
  (void)state;
  must(pawl_vector_open(other, "g/weights", PATIENCE, &theirs));
  must(pawl_group_join(session, "g/two", 2, PATIENCE, &we));
  must(pawl_group_join(other, "g/two", 2, PATIENCE, &they));
  where.range = nothing.range = pawl_range_of(0, 600);
  must(pawl_group_push(we, ours, where, pairs, &tasks[0]));
  must(pawl_group_clock(we, NULL));
  must(pawl_group_push(we, ours, pawl_at_keys(keys, 3), pairs, &tasks[1]));
  must(pawl_group_clock(we, NULL));
  must(pawl_group_push(we, ours, pawl_at_keys(keys, 3), pairs, &tasks[2]));
  pull(ours, pawl_at_keys(keys, 3), rows);
  assert_true(rows[0] == 0 && rows[4] == 0);
  must(pawl_group_push(they, theirs, nothing, NULL, &tasks[3]));
  must(pawl_task_finish(tasks[0], PATIENCE));
  must(pawl_task_finish(tasks[3], PATIENCE));
  pull(ours, pawl_at_keys(keys, 3), rows);
  assert_true(rows[0] == 1.5 && rows[1] == -4 && rows[2] == 7 && rows[3] == -8 && rows[4] == 0);
  must(pawl_group_clock(they, NULL));
  must(pawl_group_push(they, theirs, pawl_at_keys(NULL, 0), NULL, NULL));
  must(pawl_task_finish(tasks[1], PATIENCE));
  must(pawl_group_clock(they, NULL));
  must(pawl_group_pushpull(they, theirs, pawl_at_keys(more, 2), others, rows, &tasks[4]));
  must(pawl_task_finish(tasks[2], PATIENCE));
  must(pawl_task_finish(tasks[4], PATIENCE));
  assert_true(rows[0] == (2 * 14 + 10 - 1) / 2.0 && rows[1] == -10 && rows[2] == -5 && rows[3] == 6);
  must_fail(pawl_group_pushpull(they, theirs, pawl_at_keys(more, 2), others, NULL, NULL), PAWL_INVALID,
            "values_out is NULL");
  pull(theirs, pawl_at_keys(more, 2), rows);
  assert_true(rows[0] == (2 * 14 + 10 - 1) / 2.0 && rows[1] == -10 && rows[2] == -5 && rows[3] == 6);
  must(pawl_session_close(other, PATIENCE));
  pawl_group_leave(we);
}

static void test_an_empty_range_is_no_push_and_all_is_the_whole_span(void **state) {
  struct pawl_vector *vector = create(session, "g/span", PAWL_F64, 4);
  struct pawl_group *group;
  struct pawl_task *task;
  double ones[] = {1, 1, 1, 1}, got[4];
  (void)state;
  must(pawl_group_join(session, "g/one", 1, PATIENCE, &group));
  must(pawl_group_push(group, vector, pawl_at_range(0, 0), ones, &task));
  assert_true(pawl_task_is_done(task));
  must(pawl_task_finish(task, PATIENCE));
  must(pawl_group_pushpull(group, vector, pawl_at_range(0, 0), ones, NULL, NULL));
  pull(vector, pawl_at_range(0, 4), got);
  assert_true(got[0] == 0 && got[3] == 0);
  must(pawl_group_push(group, vector, pawl_at_range(0, PAWL_KEY_END), ones, &task));
  must(pawl_task_finish(task, PATIENCE));
  pull(vector, pawl_at_range(0, 4), got);
  for (int i = 0; i < 4; i++) assert_true(got[i] == 1);
  pawl_group_leave(group);
}

/* Without relays a pull of a group does what any pull does. */
static void test_a_pull_of_a_group_reads_what_all_have_pushed(void **state) {
  struct pawl_vector *vector = create(session, "g/old", PAWL_F64, 4);
  struct pawl_group *group;
  struct pawl_task *task;
  double ones[] = {1, 1, 1, 1}, got[4];
  (void)state;
  must(pawl_group_join(session, "g/old_group", 1, PATIENCE, &group));
  for (int tick = 1; tick <= 3; tick++) {
    must(pawl_vector_push(vector, pawl_at_range(0, 4), ones, NULL));
    must(pawl_group_barrier(group, PATIENCE));
    must(pawl_group_pull(group, vector, pawl_at_range(0, 4), (uint64_t)tick % 2, got, &task));
    must(pawl_task_finish(task, PATIENCE));
    for (int i = 0; i < 4; i++) assert_true(got[i] == tick);
  }
  must(pawl_group_pull(group, vector, pawl_at_range(0, 0), 0, NULL, NULL));
  must_fail(pawl_group_pull(group, vector, pawl_at_range(0, 4), 0, NULL, NULL), PAWL_INVALID, "values_out is NULL");
  struct pawl_where where = pawl_at_range(0, 4);
  where.node.id = 77;
  must_fail(pawl_group_pull(group, vector, where, 0, got, NULL), PAWL_UNSUPPORTED, "a node cannot be named");
  pawl_group_leave(group);
}

static void test_nobody_passes_before_the_group_is_complete(void **state) {
  struct pawl_session *other = open_beside(session, false);
  struct pawl_group *ours, *theirs;
  (void)state;
  must(pawl_group_join(session, "g/pair", 2, PATIENCE, &ours));
  must_fail(pawl_group_barrier(ours, PAWL_SECOND / 20), PAWL_TIMED_OUT, "tick 1 of g/pair");
  assert_int_equal(pawl_group_tick(ours), 1);
  must_fail(pawl_group_join(other, "g/pair", 3, PATIENCE, &theirs), PAWL_MISMATCH, "join g/pair");
  must(pawl_group_join(other, "g/pair", 2, PATIENCE, &theirs));
  must_fail(pawl_group_await(ours, 1, PAWL_SECOND / 20), PAWL_TIMED_OUT,
            "tick 1"); /* it has joined, and done nothing */
  assert_int_equal(pawl_group_tick(theirs), 0);
  must(pawl_group_clock(theirs, NULL));
  must(pawl_group_await(ours, 1, PATIENCE));
  must(pawl_session_close(other, PATIENCE));
  must(pawl_group_barrier(ours, PATIENCE));       /* who has left is waited for no more */
  while (pawl_group_size(ours) != 1) usleep(100); /* the servers may know it before we do */
  pawl_group_leave(ours);
  pawl_group_leave(NULL);
}

static void test_joining_twice_is_refused_and_leaving_lets_join_again(void **state) {
  struct pawl_group *group, *second = NULL;
  (void)state;
  must(pawl_group_join(session, "g/twice", 1, PATIENCE, &group));
  must_fail(pawl_group_join(session, "g/twice", 1, PATIENCE, &second), PAWL_EXISTS, "join g/twice");
  assert_null(second);
  must(pawl_group_barrier(group, PATIENCE));
  pawl_group_leave(group);
  must(pawl_group_join(session, "g/twice", 0, PATIENCE, &second));
  must(pawl_group_barrier(second, PATIENCE));
  must_fail(pawl_group_join(session, "g/.dot", 1, PATIENCE, &group), PAWL_INVALID, "g/.dot");
  must_fail(pawl_group_join(session, "word", 1, PATIENCE, &group), PAWL_INVALID, "word");
}

static void test_a_vector_opened_locally_is_apart_from_the_servers(void **state) {
  struct pawl_session_options options = {
      .struct_size = sizeof options, .address = pawl_session_address(session), .listen = "127.0.0.1:0"};
  struct pawl_session *handler;
  struct pawl_vector *held, *vector = create(session, "g/local", PAWL_I64, 10);
  struct pawl_where there = pawl_at_range(0, 2);
  int64_t values[2] = {1, 2}, got[2] = {0};
  (void)state;
  must(pawl_session_open(&options, &handler));
  must(pawl_vector_open_local(handler, "g/local", PATIENCE, &held));
  there.node = pawl_session_node(handler);
  push(vector, there, values);
  push(vector, there, values);
  pull(vector, there, got);
  assert_true(got[0] == 2 && got[1] == 4);
  pull(vector, pawl_at_range(0, 2), got);
  assert_true(got[0] == 0 && got[1] == 0);
  must(pawl_session_close(handler, PATIENCE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_barrier_holds_until_all_have_pushed),
      cmocka_unit_test(test_pushes_of_a_group_are_applied_as_one_when_all_are_in),
      cmocka_unit_test(test_members_may_have_different_keys_or_none),
      cmocka_unit_test(test_an_empty_range_is_no_push_and_all_is_the_whole_span),
      cmocka_unit_test(test_a_pull_of_a_group_reads_what_all_have_pushed),
      cmocka_unit_test(test_nobody_passes_before_the_group_is_complete),
      cmocka_unit_test(test_joining_twice_is_refused_and_leaving_lets_join_again),
      cmocka_unit_test(test_a_vector_opened_locally_is_apart_from_the_servers),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
