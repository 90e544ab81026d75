/* Calls that come after others, tasks with parts, and clocks of what was read: at an embedded cluster. What is to wait is made to
 * wait for a task of the test's own. */
#define SERVERS 1
#define SHARDS 2
#include "session_scene.h"

#include <pthread.h>

static struct pawl_task *begin(const char *name) {
  struct pawl_task *task;
  must(pawl_task_begin(session, name, &task));
  return task;
}

static struct pawl_task *push_after(struct pawl_vector *vector, const int64_t *value, struct pawl_task *after) {
  struct pawl_task *task;
  must(pawl_vector_push(vector, pawl_after(pawl_at_range(0, 1), &after, 1), value, &task));
  return task;
}

static int64_t look(struct pawl_vector *vector) {
  int64_t value = -1;
  pull(vector, pawl_at_range(0, 1), &value);
  return value;
}

static void must_say(const struct pawl_task *task, const char *text) {
  char words[256];
  pawl_task_describe(task, words, sizeof words);
  if (!strstr(words, text)) fail_msg("'%s' is not in '%s'", text, words);
}

/* --- after ---------------------------------------------------------------------------------------------------------- */

static void test_a_call_starts_when_what_it_comes_after_has_finished(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/starts", PAWL_I64, 1000);
  struct pawl_task *gate = begin("gate");
  int64_t one = 1;
  char words[80];
  struct pawl_task *first = push_after(vector, &one, gate), *second = push_after(vector, &one, first);
  snprintf(words, sizeof words, "waits for call %llu, task gate", (unsigned long long)pawl_task_id(gate));
  must_say(first, words);
  snprintf(words, sizeof words, "waits for call %llu, push to o/starts", (unsigned long long)pawl_task_id(first));
  must_say(second, words);
  assert_int_equal(look(vector), 0);
  assert_int_equal(pawl_task_number(first), 0);
  must_fail(pawl_task_wait(second, 0), PAWL_TIMED_OUT, "waits for call");
  one = 5; /* it is read when the call starts */
  must(pawl_task_end(gate, PAWL_OK));
  must(pawl_task_wait(second, PATIENCE));
  assert_true(pawl_task_is_done(first));
  assert_true(pawl_task_number(second) > pawl_task_number(first));
  assert_int_equal(look(vector), 10);
  pawl_task_release(first);
  pawl_task_release(second);
  must(pawl_task_finish(gate, PATIENCE));
}

static void test_what_was_pulled_is_pushed_by_the_next_call(void **state) {
  (void)state;
  struct pawl_vector *from = create(session, "o/from", PAWL_I64, 100), *to = create(session, "o/to", PAWL_I64, 100);
  int64_t values[100], copy[100] = {0}, seen[100];
  for (int i = 0; i < 100; i++) values[i] = i * i;
  push(from, pawl_at_range(0, 100), values);
  struct pawl_task *pulled, *pushed, *read;
  must(pawl_vector_pull(from, pawl_at_range(0, 100), copy, &pulled));
  must(pawl_vector_push(to, pawl_after(pawl_at_range(0, 100), &pulled, 1), copy, &pushed));
  must(pawl_vector_pull(to, pawl_after(pawl_at_range(0, 100), &pushed, 1), seen, &read));
  pawl_task_release(pulled);
  pawl_task_release(pushed);
  must(pawl_task_finish(read, PATIENCE));
  assert_memory_equal(seen, values, sizeof seen);
}

static void test_what_comes_after_a_failure_fails_and_names_it(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/fails", PAWL_I64, 1000);
  struct pawl_task *gate = begin("doomed"), *late;
  int64_t one = 1;
  char words[120];
  struct pawl_task *first = push_after(vector, &one, gate), *second = push_after(vector, &one, first);
  must(pawl_task_end(gate, PAWL_IO));
  snprintf(words, sizeof words, "cancelled: call %llu, task doomed, failed: input or output error",
           (unsigned long long)pawl_task_id(gate));
  must_fail(pawl_task_wait(first, PATIENCE), PAWL_CANCELLED, words);
  must_fail(pawl_task_wait(second, PATIENCE), PAWL_CANCELLED, words);
  late = push_after(vector, &one, second); /* it has failed long ago */
  must_fail(pawl_task_wait(late, PATIENCE), PAWL_CANCELLED, words);
  must_fail(pawl_vector_push(vector, pawl_after(pawl_at_range(0, 1), &late, 1), &one, NULL)
                ? PAWL_INVALID
                : pawl_session_flush(session, PATIENCE),
            PAWL_CANCELLED, "without a handle");
  assert_int_equal(look(vector), 0);
  pawl_task_release(first);
  pawl_task_release(second);
  pawl_task_release(late);
  assert_int_equal(pawl_task_finish(gate, PATIENCE), PAWL_IO);
}

static void test_a_held_call_is_checked_when_it_is_made(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/checked", PAWL_I64, 10);
  struct pawl_session *other = open_beside(session, false);
  struct pawl_task *gate = begin("gate"), *foreign, *none = NULL, *task;
  int64_t values[3] = {0};
  uint64_t unsorted[] = {1, 7, 7};
  must(pawl_task_begin(other, "foreign", &foreign));
  must_fail(pawl_vector_push(vector, pawl_after(pawl_at_keys(unsorted, 3), &gate, 1), values, &task), PAWL_UNSORTED,
            "is not above the one before");
  must_fail(pawl_vector_push(vector, pawl_after(pawl_at_range(8, 11), &gate, 1), values, &task), PAWL_OUT_OF_SPAN,
            "reaches beyond");
  must_fail(pawl_vector_push(vector, pawl_after(pawl_at_range(0, 1), &foreign, 1), values, &task), PAWL_INVALID,
            "belongs to another session");
  must_fail(pawl_vector_push(vector, pawl_after(pawl_at_range(0, 1), &none, 1), values, &task), PAWL_INVALID,
            "belongs to another session");
  must_fail(pawl_vector_push(vector, pawl_after(pawl_at_range(0, 1), NULL, 1), values, &task), PAWL_INVALID,
            "after is NULL but after_count is 1");
  must(pawl_task_end(gate, PAWL_OK));
  must_fail(pawl_vector_push(vector, pawl_part_of(pawl_at_range(0, 1), gate), values, &task), PAWL_INVALID,
            "has ended");
  pawl_task_release(gate);
  must(pawl_session_close(other, PATIENCE));
  assert_int_equal(pawl_task_finish(foreign, 0), PAWL_NODE_STOPPED);
}

/* A list that is given up, and a vector that is closed, before the call starts. */
static void test_a_held_call_keeps_what_it_needs(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/keeps", PAWL_I64, 1000), *again;
  struct pawl_task *gate = begin("gate"), *task;
  struct pawl_keys *list;
  uint64_t keys[] = {0, 500, 999};
  int64_t values[] = {1, 2, 3}, seen[3] = {0};
  must(pawl_keys_create(vector, keys, 3, &list));
  must(pawl_vector_push(vector, pawl_after(pawl_at_list(list), &gate, 1), values, &task));
  pawl_keys_destroy(list);
  pawl_vector_close(vector);
  must(pawl_task_end(gate, PAWL_OK));
  must(pawl_task_finish(task, PATIENCE));
  must(pawl_vector_open(session, "o/keeps", PATIENCE, &again));
  pull(again, pawl_at_keys(keys, 3), seen);
  assert_memory_equal(seen, values, sizeof seen);
  pawl_task_release(gate);
}

/* --- several as one ------------------------------------------------------------------------------------------------- */

static void test_a_task_has_finished_when_it_was_ended_and_its_parts_have_finished(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/parts", PAWL_I64, 1000);
  struct pawl_task *whole = begin("whole"), *gate = begin("gate"), *part, *after;
  int64_t one = 1, seen = 0;
  must(pawl_vector_push(vector, pawl_part_of(pawl_after(pawl_at_range(0, 1), &gate, 1), whole), &one, &part));
  must(pawl_vector_pull(vector, pawl_after(pawl_at_range(0, 1), &whole, 1), &seen, &after));
  must(pawl_task_end(whole, PAWL_OK));
  must_fail(pawl_task_end(whole, PAWL_OK), PAWL_INVALID, "already ended");
  must_fail(pawl_task_wait(whole, 0), PAWL_TIMED_OUT, "some of its parts are under way");
  assert_false(pawl_task_is_done(after));
  must(pawl_task_end(gate, PAWL_OK));
  must(pawl_task_finish(whole, PATIENCE));
  must(pawl_task_finish(after, PATIENCE));
  assert_int_equal(seen, 1);
  assert_true(pawl_task_is_done(part));
  pawl_task_release(part);
  pawl_task_release(gate);
}

static void test_the_first_failure_of_a_part_is_the_whole_s(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/blame", PAWL_I64, 1000);
  for (int early = 0; early < 2; early++) {
    struct pawl_task *whole = begin("whole"), *gate = begin("gate");
    int64_t one = 1;
    if (early) must(pawl_task_end(gate, PAWL_IO));
    must(pawl_vector_push(vector, pawl_part_of(pawl_after(pawl_at_range(0, 1), &gate, 1), whole), &one, NULL));
    if (!early) must(pawl_task_end(gate, PAWL_IO));
    must(pawl_task_end(whole, PAWL_OK));
    must_fail(pawl_task_finish(whole, PATIENCE), PAWL_CANCELLED, "task gate, failed: input or output error");
    pawl_task_release(gate);
    assert_int_equal(pawl_session_flush(session, PATIENCE), PAWL_CANCELLED);
  }
}

/* --- ticks ---------------------------------------------------------------------------------------------------------- */

static void test_a_tick_waits_for_pushes_that_are_held_and_not_for_their_success(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/ticks", PAWL_I64, 1000);
  struct pawl_group *group;
  struct pawl_task *gate = begin("gate"), *doomed = begin("doomed"), *clock, *next, *never;
  int64_t one = 1;
  must(pawl_group_join(session, "o/alone", 1, PATIENCE, &group));
  struct pawl_task *pushed = push_after(vector, &one, gate), *lost = push_after(vector, &one, doomed);
  must(pawl_group_clock(group, &clock));
  must(pawl_group_clock(group, &next));
  must_fail(pawl_group_await(group, 1, PAWL_SECOND / 20), PAWL_TIMED_OUT, "tick 1");
  must(pawl_task_end(doomed, PAWL_IO));
  assert_false(pawl_task_is_done(clock));
  must(pawl_task_end(gate, PAWL_OK));
  must(pawl_task_finish(next, PATIENCE));
  must(pawl_task_finish(clock, PATIENCE));
  must(pawl_group_await(group, 2, PATIENCE));
  assert_int_equal(look(vector), 1);
  struct pawl_task *open = begin("open"), *read;
  must(pawl_vector_pull(vector, pawl_after(pawl_at_range(0, 1), &open, 1), &one, &read));
  must(pawl_group_barrier(group, PATIENCE)); /* a tick does not wait for what changes nothing */
  must(pawl_task_end(open, PAWL_OK));
  must(pawl_task_finish(read, PATIENCE));
  pawl_task_release(open);
  must(pawl_group_clock_after(group, &lost, 1, &never));
  must_fail(pawl_task_finish(never, PATIENCE), PAWL_CANCELLED, "task doomed");
  pawl_task_release(pushed);
  pawl_task_release(lost);
  pawl_task_release(gate);
  pawl_task_release(doomed);
  pawl_group_leave(group);
}

/* --- clocks --------------------------------------------------------------------------------------------------------- */

static void test_a_pull_tells_how_far_everybody_s_pushes_had_come(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/clocks", PAWL_I64, 1000), *theirs;
  struct pawl_session *other = open_beside(session, false);
  int64_t values[1000] = {0};
  struct pawl_task *mine, *yours, *read;
  struct pawl_clock clocks[64];
  size_t count = 0, found = 0;
  must(pawl_vector_open(other, "o/clocks", PATIENCE, &theirs));
  must(pawl_vector_push(vector, pawl_at_range(0, 1000), values, &mine));
  must(pawl_vector_push(theirs, pawl_at_range(0, 1000), values, &yours));
  must(pawl_task_wait(mine, PATIENCE));
  must(pawl_task_wait(yours, PATIENCE));
  for (int is_long = 0; is_long < 2; is_long++) {
    struct pawl_where where = pawl_at_range(0, is_long ? 1000 : 10);
    where.clocks = true;
    must(pawl_vector_pull(vector, where, values, &read));
    must(pawl_task_wait(read, PATIENCE));
    must(pawl_task_clocks(read, clocks, 64, &count));
    assert_true(count >= 2 && count <= 64);
    for (size_t i = 0; i < count; i++) {
      bool is_mine = clocks[i].node == pawl_session_node(session).id;
      assert_true(is_mine || clocks[i].node == pawl_session_node(other).id);
      assert_int_equal(clocks[i].number, pawl_task_number(is_mine ? mine : yours));
      found += is_mine;
    }
    pawl_task_release(read);
  }
  assert_true(found >= 2);
  must_fail(pawl_task_clocks(mine, clocks, 64, &count), PAWL_INVALID, "no clocks");
  pawl_task_release(mine);
  pawl_task_release(yours);
  must(pawl_session_close(other, PATIENCE));
}

/* --- many, and the end ---------------------------------------------------------------------------------------------- */

enum { ROUNDS = 200, THREADS = 3 };

/* Each push comes after the one before it, and after a pull: a chain of calls, of which only the last is waited for. */
static void *run_chain(void *argument) {
  struct pawl_vector *vector = argument;
  static const int64_t one = 1;
  struct pawl_task *last = NULL, *next;
  for (int i = 0; i < ROUNDS; i++) {
    struct pawl_where where = pawl_at_range(0, 1);
    if (pawl_vector_push(vector, last ? pawl_after(where, &last, 1) : where, &one, &next)) return argument;
    pawl_task_release(last);
    last = next;
  }
  return pawl_task_finish(last, PATIENCE) ? argument : NULL;
}

static void test_chains_of_calls_from_several_threads_are_all_done(void **state) {
  (void)state;
  struct pawl_vector *vector = create(session, "o/chains", PAWL_I64, 1000);
  pthread_t threads[THREADS];
  void *failed = NULL;
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_chain, vector), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    if (result) failed = result;
  }
  assert_null(failed);
  assert_int_equal(look(vector), THREADS * ROUNDS);
}

static void test_a_session_that_is_closed_ends_calls_that_never_started(void **state) {
  (void)state;
  struct pawl_session *own = open_beside(session, false);
  struct pawl_vector *vector = create(own, "o/closed", PAWL_I64, 1000);
  struct pawl_task *gate, *whole, *held, *part, *behind;
  int64_t one = 1;
  must(pawl_task_begin(own, "gate", &gate));
  must(pawl_task_begin(own, "whole", &whole));
  must(pawl_vector_push(vector, pawl_after(pawl_at_range(0, 1), &whole, 1), &one, &behind));
  must(pawl_vector_push(vector, pawl_after(pawl_at_range(0, 1), &gate, 1), &one, &held));
  must(pawl_vector_push(vector, pawl_part_of(pawl_after(pawl_at_range(0, 1), &held, 1), whole), &one, &part));
  assert_int_equal(pawl_session_close(own, 0), PAWL_TIMED_OUT);
  assert_int_equal(pawl_task_wait(gate, 0), PAWL_NODE_STOPPED);
  assert_int_equal(pawl_task_wait(whole, 0), PAWL_NODE_STOPPED);
  must_fail(pawl_task_wait(held, 0), PAWL_CANCELLED, "task gate, failed: this node was stopped");
  must_fail(pawl_task_wait(part, 0), PAWL_CANCELLED, "task gate, failed: this node was stopped");
  must_fail(pawl_task_wait(behind, 0), PAWL_CANCELLED, "failed: this node was stopped");
  struct pawl_task *all[] = {gate, whole, held, part, behind};
  for (int i = 0; i < 5; i++) pawl_task_release(all[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_call_starts_when_what_it_comes_after_has_finished),
      cmocka_unit_test(test_what_was_pulled_is_pushed_by_the_next_call),
      cmocka_unit_test(test_what_comes_after_a_failure_fails_and_names_it),
      cmocka_unit_test(test_a_held_call_is_checked_when_it_is_made),
      cmocka_unit_test(test_a_held_call_keeps_what_it_needs),
      cmocka_unit_test(test_a_task_has_finished_when_it_was_ended_and_its_parts_have_finished),
      cmocka_unit_test(test_the_first_failure_of_a_part_is_the_whole_s),
      cmocka_unit_test(test_a_tick_waits_for_pushes_that_are_held_and_not_for_their_success),
      cmocka_unit_test(test_a_pull_tells_how_far_everybody_s_pushes_had_come),
      cmocka_unit_test(test_chains_of_calls_from_several_threads_are_all_done),
      cmocka_unit_test(test_a_session_that_is_closed_ends_calls_that_never_started),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
