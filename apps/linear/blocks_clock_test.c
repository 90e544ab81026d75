/* A step whose tick cannot be sent: the arrays belong to the task until it has finished, however the sweep
 * ends.
 *
 * The method is compiled into this test with iterations whose end, which clocks the group, fails on demand.
 * Tasks here do what real ones may: they write to the answer's array at the last moment, when somebody
 * finishes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pawl/pawl.h>

enum { TASKS = 64 };

struct fake_task {
  double *answer;
  size_t count;
  bool is_finished;
};

static struct fake_task tasks[TASKS];
static size_t task_count, clocks_left, bound;

static struct pawl_group *group_of_test(struct pawl_worker *worker) { return (struct pawl_group *)worker; }

static pawl_status pushpull_of_test(struct pawl_group *group, struct pawl_vector *vector, struct pawl_where where,
                                    const void *values, void *values_out, struct pawl_task **task_out) {
  (void)group;
  (void)vector;
  (void)values;
  assert_in_range(task_count, 0, TASKS - 1);
  tasks[task_count] = (struct fake_task){.answer = values_out, .count = where.count};
  *task_out = (struct pawl_task *)&tasks[task_count++];
  return PAWL_OK;
}

static pawl_status create_of_test(struct pawl_session *session, struct pawl_group *group, const char *policy,
                                  struct pawl_iterations **iterations_out) {
  (void)session;
  (void)group;
  assert_int_equal(sscanf(policy, "bounded %zu", &bound), 1);
  *iterations_out = NULL;
  return PAWL_OK;
}

static pawl_status begin_of_test(struct pawl_iterations *iterations, int64_t timeout_ns, uint64_t *number_out) {
  (void)iterations;
  (void)timeout_ns;
  (void)number_out;
  return PAWL_OK;
}

static pawl_status add_of_test(struct pawl_iterations *iterations, struct pawl_task *task) {
  (void)iterations;
  (void)task;
  return PAWL_OK;
}

static pawl_status end_of_test(struct pawl_iterations *iterations, double objective) {
  (void)iterations;
  (void)objective;
  if (clocks_left == 0) return PAWL_NO_MEMORY;
  clocks_left--;
  return PAWL_OK;
}

/* The last `bound` tasks are done only when the method finishes them. */
static bool is_done_of_test(const struct pawl_task *task) {
  return (size_t)((const struct fake_task *)task - tasks) + bound < task_count;
}

static pawl_status finish_of_test(struct pawl_task *task, int64_t timeout_ns) {
  struct fake_task *fake = (struct fake_task *)task;
  (void)timeout_ns;
  if (!task) return PAWL_OK;
  assert_false(fake->is_finished);
  fake->is_finished = true;
  memset(fake->answer, 0, 2 * fake->count * sizeof *fake->answer);
  return PAWL_OK;
}

static pawl_status pull_of_test(struct pawl_vector *vector, struct pawl_where where, void *values_out,
                                struct pawl_task **task_out) {
  (void)vector;
  memset(values_out, 0, 2 * (where.count ? where.count : 1) * sizeof(double));
  *task_out = NULL;
  return PAWL_OK;
}

#define pawl_worker_group group_of_test
#define pawl_group_pushpull pushpull_of_test
#define pawl_iterations_create create_of_test
#define pawl_iteration_begin begin_of_test
#define pawl_iteration_add add_of_test
#define pawl_iteration_end end_of_test
#define pawl_task_is_done is_done_of_test
#define pawl_task_finish finish_of_test
#define pawl_vector_pull pull_of_test
#define linear_blocks linear_blocks_of_test
#include "apps/linear/blocks.c"

/* Four rows, and four features that each have one of them. */
static float ones[4] = {1, 1, 1, 1};
static float labels[4] = {1, -1, 1, -1};
static uint64_t keys[4] = {0, 1, 2, 3};
static uint64_t starts[5] = {0, 1, 2, 3, 4};
static uint32_t row_of[4] = {0, 1, 2, 3};

static void fail_after(size_t ticks, uint32_t tau) {
  static char bias; /* only its address matters */
  struct linear_order order = {
      .l1 = 0, .l2 = 1, .features = 4, .rows = 4, .labels = {-1, 1}, .blocks = 4, .damping = 1};
  struct linear_worker worker = {
      .spec = {.loss = PAWL_LINEAR_LOGISTIC, .bias = true, .class_weights = {1, 1}, .tau = tau},
      .share = {.rows = 4,
                .features = 4,
                .labels = labels,
                .weights = ones,
                .keys = keys,
                .starts = starts,
                .row_of = row_of,
                .values = ones},
      .bias = (struct pawl_vector *)&bias,
  };
  struct linear_reply reply = {0};
  task_count = 0;
  clocks_left = ticks;
  assert_int_equal(linear_blocks.begin(&worker, &order), PAWL_OK);
  assert_int_equal(linear_blocks.sweep(&worker, &order, &reply), PAWL_NO_MEMORY);
  linear_blocks.end(&worker);
  assert_int_equal(task_count, ticks + 1); /* the step whose tick failed is one of them */
  for (size_t i = 0; i < task_count; i++) assert_true(tasks[i].is_finished);
}

static void test_a_step_whose_tick_fails_is_finished_before_its_arrays_are_freed(void **state) {
  (void)state;
  for (uint32_t tau = 0; tau <= 2; tau++)
    for (size_t ticks = 0; ticks < 4; ticks++) fail_after(ticks, tau);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_step_whose_tick_fails_is_finished_before_its_arrays_are_freed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
