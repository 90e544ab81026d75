#include "graph/distances.h"
#include "graph/graph_testing.h"
#include "graph/reach.h"

/* Distances by the method of Floyd and Warshall. */
static void check_all(const struct pwi_distances *distances) {
  uint32_t nodes = distances->nodes;
  uint32_t *slow = pwi_resize_array(NULL, (size_t)nodes * nodes, sizeof *slow);
  uint64_t sum = 0;
  assert_non_null(slow);
  for (uint32_t i = 0; i < nodes; i++)
    for (uint32_t k = 0; k < nodes; k++)
      slow[i * nodes + k] = i == k ? 0 : pwi_distances_has(distances, i, k) ? 1 : nodes;
  for (uint32_t m = 0; m < nodes; m++)
    for (uint32_t i = 0; i < nodes; i++)
      for (uint32_t k = 0; k < nodes; k++)
        if (slow[i * nodes + m] + slow[m * nodes + k] < slow[i * nodes + k])
          slow[i * nodes + k] = slow[i * nodes + m] + slow[m * nodes + k];
  for (uint32_t i = 0; i < nodes * nodes; i++) {
    assert_int_equal(distances->to[i], slow[i]);
    sum += slow[i];
  }
  assert_int_equal(distances->sum, sum);
  pwi_free(slow);
}

/* An edge that is there, or one that is not. */
static struct pwi_graph_edge draw_edge(const struct pwi_distances *distances, struct pwi_random *random, bool has) {
  for (;;) {
    struct pwi_graph_edge edge = {(uint32_t)pwi_random_below(random, distances->nodes),
                                  (uint32_t)pwi_random_below(random, distances->nodes)};
    if (edge.from != edge.to && pwi_distances_has(distances, edge.from, edge.to) == has) return edge;
  }
}

/* Sparse graphs fall apart and come together again, so nodes without a path are among the cases. */
static void test_changes_give_the_distances_of_a_slow_method(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 12; seed++) {
    struct pwi_random random;
    struct pwi_distances distances;
    struct pwi_graph *graph = make_irregular(17, 0.04 + 0.01 * (double)seed, false, seed);
    uint32_t edges = graph->edges;
    pwi_random_init(&random, seed, 1);
    assert_int_equal(pwi_distances_init(&distances, graph), PAWL_OK);
    check_all(&distances);
    for (int i = 0; i < 150; i++) {
      bool adds = edges < 5 || pwi_random_chance(&random, 0.5);
      struct pwi_graph_edge edge = draw_edge(&distances, &random, !adds);
      if (adds)
        assert_int_equal(pwi_distances_add(&distances, edge.from, edge.to), PAWL_OK);
      else
        assert_int_equal(pwi_distances_remove(&distances, edge.from, edge.to, UINT64_MAX), PAWL_OK);
      edges = adds ? edges + 1 : edges - 1;
      check_all(&distances);
    }
    pwi_distances_fini(&distances);
    pwi_graph_destroy(graph);
  }
}

static void test_undo_returns_to_the_mark(void **state) {
  (void)state;
  struct pwi_random random;
  struct pwi_distances distances;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_ROOT, 30);
  pwi_random_init(&random, 4, 1);
  assert_int_equal(pwi_distances_init(&distances, graph), PAWL_OK);
  for (int i = 0; i < 60; i++) {
    struct pwi_graph_edge added = draw_edge(&distances, &random, false), removed;
    uint64_t before = distances.sum, most = i % 2 ? UINT64_MAX : before - 1;
    pwi_distances_mark(&distances);
    assert_int_equal(pwi_distances_add(&distances, added.from, added.to), PAWL_OK);
    do removed = draw_edge(&distances, &random, true);
    while (removed.from == added.from && removed.to == added.to);
    assert_int_equal(pwi_distances_remove(&distances, removed.from, removed.to, most), PAWL_OK);
    pwi_distances_link(&distances, removed.from, removed.to);
    pwi_distances_cut(&distances, added.from, added.to);
    pwi_distances_undo(&distances);
    assert_int_equal(distances.sum, before);
    check_all(&distances);
  }
  pwi_distances_fini(&distances);
  pwi_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_changes_give_the_distances_of_a_slow_method),
      cmocka_unit_test(test_undo_returns_to_the_mark),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
