/* Tasks in a partial order: fixed cases, random runs against a model, and failing allocations. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "sync/order.h"

#define MANY 600

static struct pwi_task_order order; /* large: it remembers failures */
static struct pwi_task_end ends[100000];
static uint64_t finished[100000]; /* when, counted from 1; 0: not yet */
static uint64_t clock_now;

static void note(void *context, struct pwi_ordered_task step, void *item, struct pwi_task_end end) {
  assert_ptr_equal(context, &order);
  assert_ptr_equal(item, &ends[step.id]);
  assert_int_equal(finished[step.id], 0); /* once */
  finished[step.id] = ++clock_now;
  ends[step.id] = end;
}

static void start(void) {
  memset(finished, 0, sizeof finished);
  clock_now = 0;
  pwi_task_order_init(&order, note, &order);
}

static struct pwi_ordered_task add_below(struct pwi_ordered_task parent, size_t count,
                                         const struct pwi_ordered_task *after) {
  struct pwi_ordered_task step;
  assert_int_equal(pwi_task_order_add(&order, after, count, parent, &ends[order.last + 1], &step), PAWL_OK);
  return step;
}

#define NOBODY ((struct pwi_ordered_task){0})
#define ADD(...)                                                                                                       \
  add_below(NOBODY, sizeof((struct pwi_ordered_task[]){__VA_ARGS__}) / sizeof(struct pwi_ordered_task),                \
            (struct pwi_ordered_task[]){__VA_ARGS__})

static struct pwi_ordered_task next(void) {
  struct pwi_ordered_task step = {0};
  void *item;
  return pwi_task_order_next(&order, &step, &item) ? step : NOBODY;
}

static void assert_next(struct pwi_ordered_task step) { assert_int_equal(next().id, step.id); }

static void test_tasks_without_order_are_ready_as_they_come(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task a = add_below(NOBODY, 0, NULL), b = add_below(NOBODY, 0, NULL);
  assert_next(a);
  assert_next(b);
  assert_next(NOBODY);
  assert_int_equal(pwi_task_order_open(&order), 2);
  pwi_task_order_end(&order, b, PAWL_OK);
  assert_true(pwi_task_order_is_finished(&order, b, NULL));
  assert_false(pwi_task_order_is_finished(&order, a, NULL));
  pwi_task_order_end(&order, a, PAWL_OK);
  assert_int_equal(pwi_task_order_open(&order), 0);
  pwi_task_order_fini(&order);
}

static void test_a_task_waits_for_all_that_it_comes_after(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task a = add_below(NOBODY, 0, NULL), b = add_below(NOBODY, 0, NULL), c = ADD(a, b, a);
  next();
  next();
  assert_next(NOBODY);
  assert_int_equal(pwi_task_order_waits_for(&order, c).id, a.id);
  pwi_task_order_end(&order, a, PAWL_OK);
  assert_int_equal(pwi_task_order_waits_for(&order, c).id, b.id);
  assert_next(NOBODY);
  pwi_task_order_end(&order, b, PAWL_OK);
  assert_int_equal(pwi_task_order_waits_for(&order, c).id, 0);
  assert_next(c);
  struct pwi_ordered_task d = ADD(a, b); /* they have finished long ago */
  assert_next(d);
  pwi_task_order_fini(&order);
}

static void test_a_task_after_a_failed_one_fails_and_names_it(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task a = add_below(NOBODY, 0, NULL), b = add_below(NOBODY, 0, NULL), c = ADD(a, b), d = ADD(c);
  next();
  next();
  pwi_task_order_end(&order, a, PAWL_NODE_FULL);
  assert_int_equal(finished[c.id], 0); /* b is still in progress */
  pwi_task_order_end(&order, b, PAWL_OK);
  assert_next(NOBODY);
  assert_int_equal(ends[a.id].status, PAWL_NODE_FULL);
  assert_int_equal(ends[c.id].status, PAWL_CANCELLED);
  assert_int_equal(ends[c.id].cause.id, a.id);
  assert_int_equal(ends[d.id].status, PAWL_CANCELLED);
  assert_int_equal(ends[d.id].cause.id, a.id);
  struct pwi_ordered_task late = ADD(b, d);
  assert_true(finished[late.id] > 0);
  assert_int_equal(ends[late.id].cause.id, a.id);
  struct pwi_task_end end;
  assert_true(pwi_task_order_is_finished(&order, d, &end));
  assert_int_equal(end.cause.id, a.id);
  assert_int_equal(pwi_task_order_open(&order), 0);
  pwi_task_order_fini(&order);
}

static void test_a_task_that_runs_anyway_begins_after_a_failure(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task a = add_below(NOBODY, 0, NULL), b = add_below(NOBODY, 0, NULL), c, d;
  struct pwi_ordered_task both[] = {a, b};
  next();
  next();
  assert_int_equal(pwi_task_order_add_anyway(&order, both, 2, NOBODY, &ends[order.last + 1], &c), PAWL_OK);
  pwi_task_order_end(&order, a, PAWL_NODE_FULL);
  assert_next(NOBODY);
  pwi_task_order_end(&order, b, PAWL_OK);
  assert_next(c);
  assert_int_equal(pwi_task_order_add_anyway(&order, &a, 1, NOBODY, &ends[order.last + 1], &d), PAWL_OK);
  assert_next(d);
  pwi_task_order_end(&order, c, PAWL_OK);
  pwi_task_order_end(&order, d, PAWL_OK);
  assert_int_equal(ends[c.id].status, PAWL_OK);
  pwi_task_order_fini(&order);
}

static void test_a_task_has_finished_when_its_subtasks_have(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task a = add_below(NOBODY, 0, NULL), after = ADD(a);
  next();
  struct pwi_ordered_task child = add_below(a, 0, NULL), grandchild = add_below(child, 0, NULL);
  next();
  next();
  pwi_task_order_end(&order, a, PAWL_OK);
  pwi_task_order_end(&order, child, PAWL_OK);
  assert_int_equal(clock_now, 0);
  assert_next(NOBODY);
  pwi_task_order_end(&order, grandchild, PAWL_OK);
  assert_true(finished[grandchild.id] < finished[child.id] && finished[child.id] < finished[a.id]);
  assert_next(after);
  struct pwi_ordered_task step;
  assert_int_equal(pwi_task_order_add(&order, NULL, 0, a, NULL, &step), PAWL_INVALID); /* it is over */
  pwi_task_order_fini(&order);
}

static void test_the_failure_of_a_subtask_is_that_of_the_task(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task a = add_below(NOBODY, 0, NULL);
  next();
  struct pwi_ordered_task child = add_below(a, 0, NULL);
  next();
  pwi_task_order_end(&order, child, PAWL_IO);
  pwi_task_order_end(&order, a, PAWL_OK);
  assert_int_equal(ends[a.id].status, PAWL_IO);
  assert_int_equal(ends[a.id].cause.id, child.id);
  pwi_task_order_fini(&order);
}

/* It has failed before it began. */
static void test_a_task_whose_subtask_has_failed_ends_after_what_it_waits_for(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task before = add_below(NOBODY, 0, NULL), a = ADD(before), child = add_below(a, 0, NULL);
  assert_next(before);
  assert_next(child);
  pwi_task_order_end(&order, child, PAWL_IO);
  assert_int_equal(finished[a.id], 0);
  pwi_task_order_end(&order, before, PAWL_OK);
  assert_true(finished[a.id] > 0);
  assert_int_equal(ends[a.id].status, PAWL_IO);
  pwi_task_order_fini(&order);
}

static void test_an_unknown_predecessor_is_refused(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task a = add_below(NOBODY, 0, NULL), step = {77};
  struct pwi_ordered_task wrong[] = {{0}, {a.id + 1}, {UINT64_MAX}};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(pwi_task_order_add(&order, &wrong[i], 1, NOBODY, NULL, &step), PAWL_INVALID);
    assert_int_equal(pwi_task_order_add(&order, NULL, 0, (struct pwi_ordered_task){a.id + 1 + i}, NULL, &step),
                     PAWL_INVALID);
  }
  assert_int_equal(step.id, 77);
  assert_int_equal(pwi_task_order_open(&order), 1);
  pwi_task_order_fini(&order);
}

static void test_a_long_row_of_failures_needs_no_stack(void **state) {
  (void)state;
  start();
  struct pwi_ordered_task first = add_below(NOBODY, 0, NULL), last = first;
  for (int i = 0; i < 90000; i++) last = ADD(last);
  next();
  pwi_task_order_end(&order, first, PAWL_IO);
  assert_int_equal(pwi_task_order_open(&order), 0);
  assert_int_equal(ends[last.id].cause.id, first.id);
  pwi_task_order_fini(&order);
}

/* Random tasks, results and failures: no task begins too early, none is lost, and failures propagate
 * correctly. */
static void run_model(uint64_t seed) {
  struct pwi_ordered_task after[MANY][4], parents[MANY] = {{0}}, out[MANY];
  size_t counts[MANY] = {0}, out_count = 0;
  bool was_out[MANY] = {0}, failed[MANY] = {0};
  struct pwi_random random;
  pwi_random_init(&random, seed, 0);
  start();
  while (order.last + 1 < MANY || pwi_task_order_open(&order) > 0) {
    uint64_t dice = pwi_random_below(&random, 3);
    struct pwi_ordered_task step;
    if (dice == 0 && order.last + 1 < MANY) {
      uint64_t id = order.last + 1;
      counts[id] = order.last ? pwi_random_below(&random, 4) : 0;
      for (size_t i = 0; i < counts[id]; i++) after[id][i].id = 1 + pwi_random_below(&random, order.last);
      if (out_count > 0 && pwi_random_below(&random, 4) == 0) parents[id] = out[pwi_random_below(&random, out_count)];
      for (size_t i = 0; i < counts[id]; i++) /* a child that comes after its parent would wait for itself */
        if (parents[id].id) counts[id] = 0;
      assert_int_equal(add_below(parents[id], counts[id], after[id]).id, id);
    } else if (dice == 1 && (step = next()).id) {
      for (size_t i = 0; i < counts[step.id]; i++) {
        assert_true(finished[after[step.id][i].id] > 0);
        assert_int_equal(ends[after[step.id][i].id].status, PAWL_OK);
      }
      was_out[step.id] = true;
      out[out_count++] = step;
    } else if (out_count > 0) {
      size_t which = pwi_random_below(&random, out_count);
      step = out[which];
      out[which] = out[--out_count];
      failed[step.id] = pwi_random_below(&random, 8) == 0;
      pwi_task_order_end(&order, step, failed[step.id] ? PAWL_IO : PAWL_OK);
    }
  }
  for (uint64_t id = 1; id < MANY; id++) {
    bool must_fail = failed[id];
    for (size_t i = 0; i < counts[id]; i++) must_fail |= ends[after[id][i].id].status != PAWL_OK;
    for (uint64_t child = id + 1; child < MANY; child++)
      must_fail |= parents[child].id == id && ends[child].status != PAWL_OK;
    assert_true(finished[id] > 0);
    assert_int_equal(ends[id].status != PAWL_OK, must_fail);
    if (must_fail) assert_true(failed[ends[id].cause.id]);
    if (parents[id].id) assert_true(finished[id] < finished[parents[id].id]);
    assert_true(was_out[id] || must_fail);
  }
  pwi_task_order_fini(&order);
}

static void test_random_tasks_keep_their_order(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200; seed++) run_model(seed);
}

static void test_without_memory_nothing_has_happened(void **state) {
  (void)state;
  bool failed = true;
  for (uint64_t n = 0; failed; n++) {
    start();
    struct pwi_ordered_task a = add_below(NOBODY, 0, NULL), b;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_task_order_add(&order, &a, 1, a, &ends[2], &b);
    failed = pwi_memory_fail_cancel() > 0;
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(pwi_task_order_open(&order), failed ? 1 : 2);
    pwi_task_order_fini(&order);
  }
}

/* --- whole graphs --------------------------------------------------------------------------------------- */

static pawl_status check(size_t count, const struct pwi_edge *edges, size_t edge_count, uint32_t *culprit) {
  uint32_t *sorted = pwi_alloc_zero(count + 1, sizeof *sorted);
  if (!sorted) return PAWL_NO_MEMORY;
  *culprit = UINT32_MAX;
  pawl_status status = pwi_task_order_sort(count, edges, edge_count, sorted, culprit);
  pwi_free(sorted);
  return status;
}

static void test_graphs_without_cycles_are_sound(void **state) {
  (void)state;
  uint32_t culprit;
  struct pwi_edge diamond[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}, {0, 1}};
  assert_int_equal(check(0, NULL, 0, &culprit), PAWL_OK);
  assert_int_equal(check(5, NULL, 0, &culprit), PAWL_OK);
  assert_int_equal(check(4, diamond, 6, &culprit), PAWL_OK);
}

static void test_a_cycle_is_found_and_named(void **state) {
  (void)state;
  uint32_t culprit;
  struct pwi_edge self[] = {{1, 1}}, ring[] = {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}};
  assert_int_equal(check(3, self, 1, &culprit), PAWL_INVALID);
  assert_int_equal(culprit, 1);
  assert_int_equal(check(5, ring, 5, &culprit), PAWL_INVALID);
  assert_in_range(culprit, 1, 3);
}

static void test_edges_that_lead_nowhere_are_named(void **state) {
  (void)state;
  uint32_t culprit;
  struct pwi_edge there[] = {{0, 1}, {0, 2}}, back[] = {{9, 0}};
  assert_int_equal(check(2, there, 2, &culprit), PAWL_INVALID);
  assert_int_equal(culprit, 2);
  assert_int_equal(check(2, back, 1, &culprit), PAWL_INVALID);
  assert_int_equal(culprit, 9);
}

static void test_sorting_puts_each_behind_all_that_it_comes_after(void **state) {
  (void)state;
  struct pwi_edge edges[] = {{3, 1}, {3, 2}, {1, 0}, {2, 0}, {3, 0}}, ring[] = {{0, 1}, {1, 0}};
  uint32_t sorted[4], place[4] = {0};
  assert_int_equal(pwi_task_order_sort(4, edges, 5, sorted, NULL), PAWL_OK);
  for (uint32_t i = 0; i < 4; i++) place[sorted[i]] = i;
  for (size_t i = 0; i < 5; i++) assert_true(place[edges[i].from] < place[edges[i].to]);
  assert_int_equal(place[0] + place[1] + place[2] + place[3], 6);
  assert_int_equal(pwi_task_order_sort(2, ring, 2, sorted, NULL), PAWL_INVALID);
}

/* Edges that all lead to larger numbers have no cycle; one back along a path makes one. */
static void test_random_graphs_are_judged_rightly(void **state) {
  (void)state;
  struct pwi_random random;
  struct pwi_edge edges[301];
  uint32_t culprit;
  pwi_random_init(&random, 5, 0);
  for (int round = 0; round < 300; round++) {
    size_t count = 2 + pwi_random_below(&random, 100), edge_count = 1 + pwi_random_below(&random, 300);
    for (size_t i = 0; i < edge_count; i++) {
      edges[i].from = (uint32_t)pwi_random_below(&random, count - 1);
      edges[i].to = edges[i].from + 1 + (uint32_t)pwi_random_below(&random, count - 1 - edges[i].from);
    }
    assert_int_equal(check(count, edges, edge_count, &culprit), PAWL_OK);
    edges[edge_count] = (struct pwi_edge){edges[0].to, edges[0].from};
    assert_int_equal(check(count, edges, edge_count + 1, &culprit), PAWL_INVALID);
    assert_true(culprit >= edges[0].from && culprit <= edges[0].to);
  }
  for (uint64_t n = 0; n < 4; n++) {
    pwi_memory_fail_after(n);
    assert_int_equal(check(4, edges, 0, &culprit), PAWL_NO_MEMORY);
    pwi_memory_fail_cancel();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tasks_without_order_are_ready_as_they_come),
      cmocka_unit_test(test_a_task_waits_for_all_that_it_comes_after),
      cmocka_unit_test(test_a_task_after_a_failed_one_fails_and_names_it),
      cmocka_unit_test(test_a_task_that_runs_anyway_begins_after_a_failure),
      cmocka_unit_test(test_a_task_has_finished_when_its_subtasks_have),
      cmocka_unit_test(test_the_failure_of_a_subtask_is_that_of_the_task),
      cmocka_unit_test(test_a_task_whose_subtask_has_failed_ends_after_what_it_waits_for),
      cmocka_unit_test(test_an_unknown_predecessor_is_refused),
      cmocka_unit_test(test_a_long_row_of_failures_needs_no_stack),
      cmocka_unit_test(test_random_tasks_keep_their_order),
      cmocka_unit_test(test_without_memory_nothing_has_happened),
      cmocka_unit_test(test_graphs_without_cycles_are_sound),
      cmocka_unit_test(test_a_cycle_is_found_and_named),
      cmocka_unit_test(test_edges_that_lead_nowhere_are_named),
      cmocka_unit_test(test_sorting_puts_each_behind_all_that_it_comes_after),
      cmocka_unit_test(test_random_graphs_are_judged_rightly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
