/* Held calls without a client: they have nothing to start, or are never released. With failing
 * allocations. */
#include "base/testing.h"
#include "api/sequence.h"
#include "base/memory.h"
#include "base/random.h"
#include "net/net_ops.h"

static pawl_status poll_nothing(struct pwi_net *net, int64_t deadline) {
  (void)net, (void)deadline;
  return PAWL_TIMED_OUT;
}

static const struct pwi_net_ops nothing_ops = {.poll = poll_nothing};

static struct {
  struct pwi_net net;
  struct pwi_driver driver;
  struct pwi_sequence sequence;
  struct pwi_task_line line, owns;
  struct pwi_task_pool *pool;
} scene;

static pawl_status open_scene(void) {
  memset(&scene, 0, sizeof scene);
  scene.net.ops = &nothing_ops;
  assert_int_equal(pwi_driver_init(&scene.driver, &scene.net), PAWL_OK);
  pwi_sequence_init(&scene.sequence);
  scene.line = scene.owns = (struct pwi_task_line){.driver = &scene.driver, .sequence = &scene.sequence};
  return pwi_task_pool_create(&scene.pool);
}

static void close_scene(void) {
  assert_int_equal(pwi_task_order_open(&scene.sequence.order), 0);
  assert_int_equal(scene.sequence.held, 0);
  pwi_sequence_fini(&scene.sequence);
  pwi_task_pool_release(scene.pool);
  pwi_driver_fini(&scene.driver);
}

static struct pawl_task *take(struct pwi_task_line *line, const char *name) {
  struct pawl_task *task = pwi_task_take(scene.pool);
  if (!task) return NULL;
  task->what = "task";
  task->subject = name;
  task->has_handle = true;
  atomic_store(&task->references, 2);
  pwi_task_line_up(line, task);
  return task;
}

/* NULL if memory is short. */
static struct pawl_task *own(const char *name) {
  struct pawl_task *task = take(&scene.owns, name);
  if (!task || pwi_sequence_own(&scene.sequence, task) == PAWL_OK) return task;
  pwi_task_unref(task);
  pwi_task_line_undo(&scene.owns, task);
  return NULL;
}

static struct pawl_task *join(struct pawl_task *const *tasks, size_t count, struct pawl_task *parent) {
  struct pwi_held_call nothing = {0};
  struct pwi_after after = {tasks, count, parent, false};
  struct pawl_task *task = take(&scene.line, "join");
  if (!task || pwi_sequence_hold(&scene.sequence, task, &nothing, &after) == PAWL_OK) return task;
  pwi_task_unref(task);
  pwi_task_line_undo(&scene.line, task);
  return NULL;
}

static void end(struct pawl_task *task, pawl_status status) {
  pwi_driver_enter(&scene.driver);
  task->inner.status = status;
  task->inner.finished(&task->inner);
  pwi_driver_leave(&scene.driver);
}

static void test_a_failure_goes_through_a_long_row_and_is_named_at_its_end(void **state) {
  (void)state;
  enum { LENGTH = 2000 };
  static struct pawl_task *tasks[LENGTH];
  char text[200];
  assert_int_equal(open_scene(), PAWL_OK);
  tasks[0] = own("first");
  for (int i = 1; i < LENGTH; i++) tasks[i] = join(&tasks[i - 1], 1, NULL);
  end(tasks[0], PAWL_NODE_FULL);
  for (int i = 1; i < LENGTH; i++) assert_int_equal(tasks[i]->inner.status, PAWL_CANCELLED);
  pawl_task_describe(tasks[LENGTH - 1], text, sizeof text);
  assert_string_equal(text, "task join: cancelled: call 1, task first, failed: the server has no memory left: "
                            "see 'pawl status'");
  for (int i = 0; i < LENGTH; i++) pawl_task_release(tasks[i]);
  close_scene();
}

static void test_the_first_of_two_failures_is_named(void **state) {
  (void)state;
  char text[200];
  assert_int_equal(open_scene(), PAWL_OK);
  struct pawl_task *both[] = {own("a"), own("b")}, *after = join(both, 2, NULL);
  end(both[1], PAWL_IO);
  assert_false(pawl_task_is_done(after));
  end(both[0], PAWL_NODE_FULL);
  pawl_task_describe(after, text, sizeof text);
  assert_string_equal(text, "task join: cancelled: call 2, task b, failed: input or output error");
  pawl_task_release(after);
  pawl_task_release(both[0]);
  pawl_task_release(both[1]);
  close_scene();
}

/* Each task comes after some earlier ones. It succeeds if and only if all of them succeed. */
static void test_random_graphs_end_as_they_must(void **state) {
  (void)state;
  enum { TASKS = 60 };
  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct pwi_random random;
    struct pawl_task *tasks[TASKS];
    bool is_good[TASKS], is_own[TASKS];
    pwi_random_init(&random, seed, 0);
    assert_int_equal(open_scene(), PAWL_OK);
    for (size_t i = 0; i < TASKS; i++) {
      struct pawl_task *after[4];
      size_t count = 0;
      is_own[i] = i == 0 || pwi_random_chance(&random, 0.4);
      is_good[i] = pwi_random_chance(&random, 0.9);
      if (!is_own[i]) is_good[i] = true;
      for (; !is_own[i] && count < 4 && pwi_random_chance(&random, 0.7); count++) {
        size_t which = (size_t)pwi_random_below(&random, i);
        after[count] = tasks[which];
        is_good[i] = is_good[i] && is_good[which];
      }
      tasks[i] = is_own[i] ? own("own") : join(after, count, NULL);
    }
    for (int tries = 0; tries < TASKS; tries++) { /* in random order, then the rest */
      size_t at = (size_t)pwi_random_below(&random, TASKS);
      if (is_own[at] && !tasks[at]->has_ended) end(tasks[at], is_good[at] ? PAWL_OK : PAWL_IO);
    }
    for (size_t i = 0; i < TASKS; i++)
      if (is_own[i] && !tasks[i]->has_ended) end(tasks[i], is_good[i] ? PAWL_OK : PAWL_IO);
    for (size_t i = 0; i < TASKS; i++) {
      if (!pawl_task_is_done(tasks[i]) || (tasks[i]->inner.status == PAWL_OK) != is_good[i])
        fail_msg("seed %llu task %zu", (unsigned long long)seed, i);
      pawl_task_release(tasks[i]);
    }
    close_scene();
  }
}

static void test_without_memory_nothing_is_held_and_nothing_leaks(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = open_scene();
    struct pawl_task *gate = status ? NULL : own("gate"), *whole = gate ? own("whole") : NULL;
    struct pawl_task *part = whole ? join(&gate, 1, whole) : NULL, *after = part ? join(&whole, 1, NULL) : NULL;
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(has_failed, after == NULL);
    if (gate) end(gate, PAWL_OK);
    if (whole) end(whole, PAWL_OK);
    if (after) assert_true(pawl_task_is_done(after));
    pawl_task_release(gate);
    pawl_task_release(whole);
    pawl_task_release(part);
    pawl_task_release(after);
    close_scene();
    assert_int_equal(pwi_memory_counts().live, live);
    if (!has_failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_failure_goes_through_a_long_row_and_is_named_at_its_end),
      cmocka_unit_test(test_the_first_of_two_failures_is_named),
      cmocka_unit_test(test_random_graphs_end_as_they_must),
      cmocka_unit_test(test_without_memory_nothing_is_held_and_nothing_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
