/* Tasks without a client: the test plays the client and calls `finished` itself. */
#include "base/testing.h"
#include "api/task_pool.h"
#include "base/memory.h"
#include "net/net_ops.h"

static pawl_status poll_nothing(struct pwi_net *net, int64_t deadline) {
  (void)net;
  (void)deadline;
  return PAWL_TIMED_OUT;
}

static const struct pwi_net_ops nothing_ops = {.poll = poll_nothing};

struct scene {
  struct pwi_net net;
  struct pwi_driver driver;
  struct pwi_task_line line;
  struct pwi_task_pool *pool;
};

static void open_scene(struct scene *scene) {
  memset(scene, 0, sizeof *scene);
  scene->net.ops = &nothing_ops;
  assert_int_equal(pwi_driver_init(&scene->driver, &scene->net), PAWL_OK);
  scene->line.driver = &scene->driver;
  assert_int_equal(pwi_task_pool_create(&scene->pool), PAWL_OK);
}

static void close_scene(struct scene *scene) {
  pwi_task_pool_release(scene->pool);
  pwi_driver_fini(&scene->driver);
}

static struct pawl_task *begin(struct scene *scene, bool has_handle) {
  pwi_driver_enter(&scene->driver);
  struct pawl_task *task = pwi_task_take(scene->pool);
  assert_non_null(task);
  task->what = "push to";
  task->subject = pwi_task_pool_name(scene->pool, "ads/w");
  task->has_handle = has_handle;
  atomic_store(&task->references, has_handle ? 2 : 1);
  pwi_task_line_up(&scene->line, task);
  pwi_driver_leave(&scene->driver);
  return task;
}

static void finish(struct scene *scene, struct pawl_task *task, pawl_status status) {
  pwi_driver_enter(&scene->driver);
  task->inner.status = status;
  if (status) task->inner.failures[task->inner.failure_count++] = (struct pwi_task_failure){{3, 9}, status};
  task->inner.finished(&task->inner);
  pwi_driver_leave(&scene->driver);
}

static void test_steady_use_of_the_pool_allocates_nothing(void **state) {
  struct scene scene;
  (void)state;
  open_scene(&scene);
  finish(&scene, begin(&scene, false), PAWL_OK);
  uint64_t before = pwi_memory_counts().allocations;
  for (int round = 0; round < 1000; round++) {
    struct pawl_task *tasks[40];
    for (int i = 0; i < 40; i++) tasks[i] = begin(&scene, true);
    for (int i = 0; i < 40; i++) finish(&scene, tasks[i], PAWL_OK);
    for (int i = 0; i < 40; i++) assert_int_equal(pawl_task_finish(tasks[i], 0), PAWL_OK);
  }
  assert_int_equal(pwi_memory_counts().allocations, before);
  close_scene(&scene);
}

static void test_a_task_can_be_asked_after_its_pool_was_let_go(void **state) {
  struct scene scene;
  char text[64];
  uint64_t live = pwi_memory_counts().live;
  (void)state;
  open_scene(&scene);
  struct pawl_task *task = begin(&scene, true);
  assert_false(pawl_task_is_done(task));
  assert_int_equal(pawl_task_wait(task, 0), PAWL_TIMED_OUT);
  pwi_task_line_end(&scene.line, PAWL_NODE_STOPPED);
  close_scene(&scene);
  assert_int_equal(pawl_task_wait(task, PAWL_FOREVER), PAWL_NODE_STOPPED);
  pawl_task_describe(task, text, sizeof text);
  assert_string_equal(text, "push to ads/w: this node was stopped");
  assert_int_not_equal(pwi_memory_counts().live, live);
  pawl_task_release(task);
  assert_int_equal(pwi_memory_counts().live, live);
}

static void test_failures_are_told_with_their_ranges(void **state) {
  struct scene scene;
  struct pawl_range range;
  pawl_status why;
  char text[96];
  (void)state;
  open_scene(&scene);
  struct pawl_task *task = begin(&scene, true);
  assert_int_equal(pawl_task_failure_count(task), 0);
  finish(&scene, task, PAWL_NODE_FULL);
  assert_int_equal(pawl_task_wait(task, 0), PAWL_NODE_FULL);
  assert_int_equal(pawl_task_failure_count(task), 1);
  assert_int_equal(pawl_task_failure(task, 0, &range, &why), PAWL_OK);
  assert_int_equal(range.begin, 3);
  assert_int_equal(range.end, 9);
  assert_int_equal(why, PAWL_NODE_FULL);
  assert_int_equal(pawl_task_failure(task, 1, &range, &why), PAWL_NOT_FOUND);
  pawl_task_describe(task, text, sizeof text);
  assert_string_equal(text, "push to ads/w: [3, 9) the server has no memory left: see 'pawl status'");
  pawl_task_describe(task, text, 10);
  assert_string_equal(text, "push to a");
  pawl_task_release(task);
  close_scene(&scene);
}

struct called {
  struct pawl_task *task;
  int count;
};

static void note_call(void *context, struct pawl_task *task) {
  struct called *called = context;
  called->task = task;
  called->count++;
  assert_true(pawl_task_is_done(task));
}

static void test_a_callback_comes_once_whether_set_before_or_after(void **state) {
  struct scene scene;
  struct called early = {0}, late = {0};
  (void)state;
  open_scene(&scene);
  struct pawl_task *task = begin(&scene, true);
  assert_int_equal(pawl_task_on_done(task, note_call, &early), PAWL_OK);
  assert_int_equal(pawl_task_on_done(task, note_call, &late), PAWL_EXISTS);
  assert_int_equal(early.count, 0);
  pawl_task_release(task); /* releasing the handle does not cancel the callback */
  finish(&scene, task, PAWL_OK);
  assert_int_equal(early.count, 1);
  assert_ptr_equal(early.task, task);
  task = begin(&scene, true);
  finish(&scene, task, PAWL_OK);
  assert_int_equal(pawl_task_on_done(task, note_call, &late), PAWL_OK);
  assert_int_equal(late.count, 1);
  assert_int_equal(pawl_task_on_done(task, note_call, &late), PAWL_EXISTS);
  pawl_task_release(task);
  close_scene(&scene);
}

static void test_a_flush_waits_only_for_tasks_started_before_it(void **state) {
  struct scene scene;
  struct pwi_flush flush = {0}, empty = {0};
  (void)state;
  open_scene(&scene);
  pwi_flush_begin(&scene.line, &empty, scene.line.serial);
  assert_true(pwi_event_is_set(&empty.done));
  struct pawl_task *first = begin(&scene, false), *second = begin(&scene, false);
  pwi_flush_begin(&scene.line, &flush, scene.line.serial);
  struct pawl_task *third = begin(&scene, false);
  finish(&scene, second, PAWL_OK);
  assert_false(pwi_event_is_set(&flush.done));
  finish(&scene, first, PAWL_OK);
  assert_true(pwi_event_is_set(&flush.done));
  finish(&scene, third, PAWL_OK);
  close_scene(&scene);
}

static void test_the_first_failure_without_a_handle_is_remembered(void **state) {
  struct scene scene;
  (void)state;
  open_scene(&scene);
  struct pawl_task *seen = begin(&scene, true);
  finish(&scene, seen, PAWL_REFUSED);
  assert_int_equal(scene.line.failure, PAWL_OK);
  pawl_task_release(seen);
  finish(&scene, begin(&scene, false), PAWL_NODE_FULL);
  finish(&scene, begin(&scene, false), PAWL_NOT_FOUND);
  assert_int_equal(scene.line.failure, PAWL_NODE_FULL);
  close_scene(&scene);
}

static void test_a_task_that_did_not_start_leaves_no_trace(void **state) {
  struct scene scene;
  struct pwi_flush flush = {0};
  (void)state;
  open_scene(&scene);
  struct pawl_task *first = begin(&scene, false), *task = begin(&scene, false), *last = begin(&scene, false);
  pwi_flush_begin(&scene.line, &flush, scene.line.serial);
  pwi_task_line_undo(&scene.line, task);
  finish(&scene, first, PAWL_OK);
  assert_false(pwi_event_is_set(&flush.done));
  pwi_flush_cancel(&scene.line, &flush);
  assert_null(scene.line.flushes);
  finish(&scene, last, PAWL_OK);
  assert_int_equal(scene.line.count, 0);
  assert_null(scene.line.first);
  assert_null(scene.line.last);
  close_scene(&scene);
}

static void test_names_are_kept_once(void **state) {
  struct scene scene;
  (void)state;
  open_scene(&scene);
  const char *name = pwi_task_pool_name(scene.pool, "a/b");
  assert_string_equal(name, "a/b");
  assert_ptr_equal(pwi_task_pool_name(scene.pool, "a/b"), name);
  assert_ptr_not_equal(pwi_task_pool_name(scene.pool, "a/c"), name);
  close_scene(&scene);
}

static void test_without_memory_there_is_no_task_and_nothing_leaks(void **state) {
  uint64_t live = pwi_memory_counts().live;
  (void)state;
  for (uint64_t n = 0;; n++) {
    struct pwi_task_pool *pool = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_task_pool_create(&pool);
    struct pawl_task *task = status ? NULL : pwi_task_take(pool);
    const char *name = task ? pwi_task_pool_name(pool, "a/b") : NULL;
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(has_failed, name == NULL);
    if (task) pwi_task_unref(task);
    pwi_task_pool_release(pool);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!has_failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steady_use_of_the_pool_allocates_nothing),
      cmocka_unit_test(test_a_task_can_be_asked_after_its_pool_was_let_go),
      cmocka_unit_test(test_failures_are_told_with_their_ranges),
      cmocka_unit_test(test_a_callback_comes_once_whether_set_before_or_after),
      cmocka_unit_test(test_a_flush_waits_only_for_tasks_started_before_it),
      cmocka_unit_test(test_the_first_failure_without_a_handle_is_remembered),
      cmocka_unit_test(test_a_task_that_did_not_start_leaves_no_trace),
      cmocka_unit_test(test_names_are_kept_once),
      cmocka_unit_test(test_without_memory_there_is_no_task_and_nothing_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
