#include "graph/choose.h"
#include "graph/gap.h"
#include "graph/graph_testing.h"

static double gap_of(const struct pwi_graph_spec *spec) {
  struct pwi_graph *graph = make_spec(spec);
  struct pwi_weights weights;
  struct pwi_gap gap;
  assert_int_equal(pwi_weights_init(&weights, graph, PWI_WEIGHTING_EQUAL, NULL), PAWL_OK);
  assert_int_equal(pwi_gap_find(&weights, &gap), PAWL_OK);
  pwi_weights_fini(&weights);
  pwi_graph_destroy(graph);
  return gap.gap;
}

static void test_small_groups_use_the_root_graph(void **state) {
  (void)state;
  for (uint32_t nodes = 1; nodes <= PWI_CHOOSE_ROOT_MAX; nodes += 57) {
    struct pwi_graph_spec spec;
    assert_int_equal(pwi_choose_default(nodes, 9, NULL, &spec), PAWL_OK);
    assert_int_equal(spec.topology, PWI_TOPOLOGY_ROOT);
    assert_int_equal(spec.nodes, nodes);
  }
}

static void test_large_groups_use_a_random_graph_with_a_good_gap(void **state) {
  (void)state;
  struct pwi_graph_spec spec, other = {.topology = PWI_TOPOLOGY_ROOT, .nodes = PWI_CHOOSE_ROOT_MAX + 1};
  assert_int_equal(pwi_choose_default(PWI_CHOOSE_ROOT_MAX + 1, 9, NULL, &spec), PAWL_OK);
  assert_int_equal(spec.topology, PWI_TOPOLOGY_RANDOM);
  assert_int_equal(spec.degree, 2);
  assert_true(spec.seed >= 9 && spec.seed < 9 + PWI_CHOOSE_TRIES);
  assert_true(gap_of(&spec) > 0.06 && gap_of(&other) < 0.0105);
}

static void test_the_best_seed_is_chosen(void **state) {
  (void)state;
  struct pwi_graph_spec spec = {PWI_TOPOLOGY_RANDOM, 300, 3, 20, NULL}, tried = spec;
  assert_int_equal(pwi_choose_seed(&spec, 8, NULL), PAWL_OK);
  double best = gap_of(&spec);
  bool has_worse = false;
  for (tried.seed = 20; tried.seed < 28; tried.seed++) {
    assert_true(gap_of(&tried) <= best);
    has_worse |= gap_of(&tried) < best;
  }
  assert_true(has_worse && spec.seed >= 20 && spec.seed < 28);
}

static void test_errors_are_passed_on(void **state) {
  (void)state;
  struct pwi_graph_spec spec = {PWI_TOPOLOGY_RANDOM, 4, 4, 0, NULL};
  struct pwi_graph_why why;
  assert_int_equal(pwi_choose_seed(&spec, 2, &why), PAWL_INVALID);
  assert_non_null(strstr(why.text, "the degree is at most 3"));
  assert_int_equal(pwi_choose_default(PWI_GRAPH_NODES_MAX + 1, 0, &why, &spec), PAWL_TOO_LARGE);
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  int failures = 0;
  for (;; failures++) {
    struct pwi_graph_spec spec = {PWI_TOPOLOGY_RANDOM, 12, 2, 0, NULL};
    pwi_memory_fail_after((uint64_t)failures);
    pawl_status status = pwi_choose_seed(&spec, 2, NULL);
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(pwi_memory_counts().live, before.live);
    if (!has_failed) break;
  }
  assert_true(failures >= 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_groups_use_the_root_graph),
      cmocka_unit_test(test_large_groups_use_a_random_graph_with_a_good_gap),
      cmocka_unit_test(test_the_best_seed_is_chosen),
      cmocka_unit_test(test_errors_are_passed_on),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
