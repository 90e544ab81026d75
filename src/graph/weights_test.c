#include <math.h>

#include "graph/graph_testing.h"
#include "graph/weights.h"

static void open_weights(struct pwi_weights *weights, const struct pwi_graph *graph, enum pwi_weighting weighting) {
  struct pwi_graph_why why = {""};
  if (pwi_weights_init(weights, graph, weighting, &why)) fail_msg("%s", why.text);
}

static struct pwi_weights_fault worst_of(const struct pwi_weights *weights) {
  struct pwi_weights_fault worst;
  assert_int_equal(pwi_weights_check(weights, &worst), PAWL_OK);
  return worst;
}

static void near(double value, double expected) {
  if (fabs(value - expected) > 1e-14) fail_msg("%.17g, not %.17g", value, expected);
}

static void test_names_are_found(void **state) {
  (void)state;
  enum pwi_weighting found;
  assert_true(pwi_weighting_find("metropolis", &found) && found == PWI_WEIGHTING_METROPOLIS);
  assert_true(pwi_weighting_find("equal", &found) && found == PWI_WEIGHTING_EQUAL);
  assert_false(pwi_weighting_find("heavy", &found));
}

static void test_equal_weights_average_what_arrives(void **state) {
  (void)state;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_STAR, 4);
  struct pwi_weights weights;
  open_weights(&weights, graph, PWI_WEIGHTING_EQUAL);
  double x[] = {1, 2, 3, 6}, y[4];
  pwi_weights_apply(&weights, x, y);
  near(y[0], 3);
  near(y[1], 1.5);
  near(y[3], 3.5);
  pwi_weights_apply_transposed(&weights, x, y);
  near(y[0], 0.25 + (2 + 3 + 6) / 2.0);
  near(y[1], 0.25 + 1);
  struct pwi_weights_fault worst = worst_of(&weights);
  near(worst.error, 0.25 + 1.5 - 1); /* the column of node 0 */
  near(worst.sum, 1.75);
  assert_int_equal(worst.node, 0);
  assert_false(worst.is_row);
  pwi_weights_fini(&weights);
  pwi_graph_destroy(graph);
}

/* Both are the same on a regular graph, and doubly stochastic. */
static void test_weights_of_regular_graphs(void **state) {
  (void)state;
  static const enum pwi_topology regular[] = {PWI_TOPOLOGY_COMPLETE, PWI_TOPOLOGY_RING,      PWI_TOPOLOGY_ROOT,
                                              PWI_TOPOLOGY_RANDOM,   PWI_TOPOLOGY_HYPERCUBE, PWI_TOPOLOGY_BUTTERFLY};
  for (size_t t = 0; t < sizeof regular / sizeof *regular; t++) {
    struct pwi_graph *graph = make_named(regular[t], 64);
    struct pwi_weights equal, metropolis;
    open_weights(&equal, graph, PWI_WEIGHTING_EQUAL);
    open_weights(&metropolis, graph, PWI_WEIGHTING_METROPOLIS);
    assert_true(worst_of(&equal).error < PWI_WEIGHTS_ERROR && worst_of(&metropolis).error < PWI_WEIGHTS_ERROR);
    for (uint32_t i = 0; i < graph->nodes; i++) near(equal.self[i], metropolis.self[i]);
    for (uint32_t k = 0; k < graph->edges; k++) near(equal.in[k], metropolis.in[k]);
    pwi_weights_fini(&equal);
    pwi_weights_fini(&metropolis);
    pwi_graph_destroy(graph);
  }
}

static void test_metropolis_weights_are_doubly_stochastic(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    struct pwi_graph *graph = make_irregular(30, 0.2, true, seed);
    struct pwi_weights weights;
    open_weights(&weights, graph, PWI_WEIGHTING_EQUAL);
    assert_true(worst_of(&weights).error > 0.01);
    pwi_weights_fini(&weights);
    open_weights(&weights, graph, PWI_WEIGHTING_METROPOLIS);
    assert_true(worst_of(&weights).error < PWI_WEIGHTS_ERROR);
    for (uint32_t i = 0; i < graph->nodes; i++) assert_true(weights.self[i] > 0);
    pwi_weights_fini(&weights);
    pwi_graph_destroy(graph);
  }
}

/* Racks of different sizes have edges that go one way, and nodes of different degrees. */
static void test_metropolis_weights_of_edges_that_go_one_way(void **state) {
  (void)state;
  const uint32_t racks[] = {0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4};
  struct pwi_graph *graph = make_spec(&(struct pwi_graph_spec){PWI_TOPOLOGY_RACKS, 14, 3, 0, racks});
  struct pwi_weights weights;
  open_weights(&weights, graph, PWI_WEIGHTING_METROPOLIS);
  assert_true(worst_of(&weights).error < PWI_WEIGHTS_ERROR);
  for (uint32_t i = 0; i < graph->nodes; i++) assert_true(weights.self[i] > 0);
  pwi_weights_fini(&weights);
  pwi_graph_destroy(graph);
}

static void test_metropolis_weights_need_balance(void **state) {
  (void)state;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_CHAIN, 4);
  struct pwi_weights weights;
  struct pwi_graph_why why;
  assert_int_equal(pwi_weights_init(&weights, graph, PWI_WEIGHTING_METROPOLIS, &why), PAWL_INVALID);
  assert_non_null(strstr(why.text, "node 0 has 1 out and 0 in"));
  pwi_graph_destroy(graph);
}

static void test_the_transpose_is_the_transpose(void **state) {
  (void)state;
  enum { NODES = 25 };
  struct pwi_graph *graph = make_irregular(NODES, 0.3, false, 4);
  struct pwi_weights weights;
  double matrix[NODES][NODES], row[NODES];
  open_weights(&weights, graph, PWI_WEIGHTING_EQUAL);
  for (size_t i = 0; i < NODES; i++) {
    double unit[NODES] = {0};
    unit[i] = 1;
    pwi_weights_apply(&weights, unit, matrix[i]); /* column i of W */
  }
  for (size_t i = 0; i < NODES; i++) {
    double unit[NODES] = {0};
    unit[i] = 1;
    pwi_weights_apply_transposed(&weights, unit, row);
    for (size_t k = 0; k < NODES; k++) near(row[k], matrix[k][i]);
  }
  pwi_weights_fini(&weights);
  pwi_graph_destroy(graph);
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_STAR, 5);
  struct pwi_memory_counts before = pwi_memory_counts();
  int failures = 0;
  for (;; failures++) {
    struct pwi_weights weights = {0};
    struct pwi_weights_fault worst;
    pwi_memory_fail_after((uint64_t)failures);
    pawl_status status = pwi_weights_init(&weights, graph, PWI_WEIGHTING_METROPOLIS, NULL);
    if (!status) status = pwi_weights_check(&weights, &worst);
    bool has_failed = pwi_memory_fail_cancel();
    pwi_weights_fini(&weights);
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(pwi_memory_counts().live, before.live);
    if (!has_failed) break;
  }
  assert_int_equal(failures, 4);
  pwi_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_are_found),
      cmocka_unit_test(test_equal_weights_average_what_arrives),
      cmocka_unit_test(test_weights_of_regular_graphs),
      cmocka_unit_test(test_metropolis_weights_are_doubly_stochastic),
      cmocka_unit_test(test_metropolis_weights_of_edges_that_go_one_way),
      cmocka_unit_test(test_metropolis_weights_need_balance),
      cmocka_unit_test(test_the_transpose_is_the_transpose),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
