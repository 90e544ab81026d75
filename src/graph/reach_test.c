#include "graph/graph_testing.h"
#include "graph/reach.h"

static struct pwi_reach reach_of(const struct pwi_graph *graph) {
  struct pwi_reach reach;
  assert_int_equal(pwi_reach_check(graph, &reach), PAWL_OK);
  return reach;
}

static struct pwi_diameter diameter_of(const struct pwi_graph *graph, uint64_t limit) {
  struct pwi_diameter diameter;
  assert_int_equal(pwi_diameter_find(graph, limit, &diameter), PAWL_OK);
  return diameter;
}

static void test_a_node_that_cannot_be_reached_is_named(void **state) {
  (void)state;
  const struct pwi_graph_edge forwards[] = {{0, 1}, {1, 2}, {2, 0}, {3, 1}};
  struct pwi_graph *graph = make_edges(4, forwards, 4);
  struct pwi_reach reach = reach_of(graph);
  assert_false(reach.is_strong);
  assert_true(reach.from == 0 && reach.to == 3);
  pwi_graph_destroy(graph);

  const struct pwi_graph_edge backwards[] = {{0, 1}, {1, 2}, {2, 0}, {1, 3}};
  graph = make_edges(4, backwards, 4);
  reach = reach_of(graph);
  assert_false(reach.is_strong);
  assert_true(reach.from == 3 && reach.to == 0);
  pwi_graph_destroy(graph);

  graph = make_edges(1, NULL, 0);
  assert_true(reach_of(graph).is_strong);
  pwi_graph_destroy(graph);
}

/* All distances by the method of Floyd and Warshall. Returns the largest, or NODES if a node cannot be reached. */
enum { NODES = 30 };

static uint32_t slow_diameter(const struct pwi_graph *graph, bool reaches[NODES][NODES]) {
  uint32_t distance[NODES][NODES], most = 0;
  for (uint32_t i = 0; i < NODES; i++)
    for (uint32_t k = 0; k < NODES; k++) distance[i][k] = i == k ? 0 : pwi_graph_has(graph, i, k) ? 1 : NODES;
  for (uint32_t m = 0; m < NODES; m++)
    for (uint32_t i = 0; i < NODES; i++)
      for (uint32_t k = 0; k < NODES; k++)
        if (distance[i][m] + distance[m][k] < distance[i][k]) distance[i][k] = distance[i][m] + distance[m][k];
  for (uint32_t i = 0; i < NODES; i++)
    for (uint32_t k = 0; k < NODES; k++) {
      reaches[i][k] = distance[i][k] < NODES;
      if (distance[i][k] > most) most = distance[i][k];
    }
  return most;
}

static void test_random_graphs_agree_with_a_slow_method(void **state) {
  (void)state;
  int strong = 0, rounds = 300;
  for (int round = 0; round < rounds; round++) {
    bool reaches[NODES][NODES];
    struct pwi_graph *graph = make_irregular(NODES, 0.04 + 0.0005 * round, false, (uint64_t)round);
    struct pwi_reach reach = reach_of(graph);
    uint32_t diameter = slow_diameter(graph, reaches);
    assert_int_equal(reach.is_strong, diameter < NODES);
    if (reach.is_strong) {
      struct pwi_diameter found = diameter_of(graph, PWI_DIAMETER_LIMIT);
      assert_true(found.is_exact);
      assert_int_equal(found.length, diameter);
      strong++;
    } else {
      assert_false(reaches[reach.from][reach.to]);
    }
    pwi_graph_destroy(graph);
  }
  assert_true(strong > 50 && strong < rounds - 50);
}

static void test_known_diameters(void **state) {
  (void)state;
  static const struct {
    enum pwi_topology topology;
    uint32_t nodes, length;
  } known[] = {
      {PWI_TOPOLOGY_COMPLETE, 100, 1}, {PWI_TOPOLOGY_STAR, 100, 2},     {PWI_TOPOLOGY_RING, 100, 99},
      {PWI_TOPOLOGY_ROOT, 25, 8},      {PWI_TOPOLOGY_ROOT, 100, 18},    {PWI_TOPOLOGY_HYPERCUBE, 256, 8},
      {PWI_TOPOLOGY_ROOT, 1, 0},       {PWI_TOPOLOGY_BUTTERFLY, 64, 7},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct pwi_graph *graph = make_named(known[i].topology, known[i].nodes);
    struct pwi_diameter found = diameter_of(graph, PWI_DIAMETER_LIMIT);
    assert_true(found.is_exact);
    assert_int_equal(found.length, known[i].length);
    pwi_graph_destroy(graph);
  }
}

/* A path in both directions: the two searches that the limit allows begin at node 0 and in the middle. */
static void test_a_limit_makes_the_diameter_a_lower_bound(void **state) {
  (void)state;
  struct pwi_graph_edge edges[198];
  for (uint32_t i = 0; i < 99; i++) {
    edges[2 * i] = (struct pwi_graph_edge){i, i + 1};
    edges[2 * i + 1] = (struct pwi_graph_edge){i + 1, i};
  }
  struct pwi_graph *graph = make_edges(100, edges, 198);
  struct pwi_diameter found = diameter_of(graph, 0);
  assert_false(found.is_exact);
  assert_int_equal(found.length, 99); /* from node 0 */
  found = diameter_of(graph, 298 * 100);
  assert_true(found.is_exact);
  assert_int_equal(found.length, 99);
  pwi_graph_destroy(graph);
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_RING, 5);
  struct pwi_memory_counts before = pwi_memory_counts();
  int failures = 0;
  for (;; failures++) {
    struct pwi_reach reach;
    struct pwi_diameter diameter;
    pwi_memory_fail_after((uint64_t)failures);
    pawl_status status = pwi_reach_check(graph, &reach);
    if (!status) status = pwi_diameter_find(graph, 100, &diameter);
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(pwi_memory_counts().live, before.live);
    if (!has_failed) break;
  }
  assert_int_equal(failures, 4);
  pwi_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_node_that_cannot_be_reached_is_named),
      cmocka_unit_test(test_random_graphs_agree_with_a_slow_method),
      cmocka_unit_test(test_known_diameters),
      cmocka_unit_test(test_a_limit_makes_the_diameter_a_lower_bound),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
