#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "graph/graph.h"

static struct pwi_graph *make(size_t nodes, const struct pwi_graph_edge *edges, size_t count) {
  struct pwi_graph *graph = NULL;
  assert_int_equal(pwi_graph_create(nodes, edges, count, NULL, &graph), PAWL_OK);
  return graph;
}

static void expect_row(struct pwi_graph_row row, size_t count, const uint32_t *nodes) {
  assert_int_equal(row.count, count);
  for (size_t i = 0; i < count; i++) assert_int_equal(row.nodes[i], nodes[i]);
}

static void test_rows_in_both_directions_ascend(void **state) {
  (void)state;
  const struct pwi_graph_edge edges[] = {{3, 0}, {0, 2}, {2, 1}, {0, 1}, {3, 1}, {1, 3}};
  struct pwi_graph *graph = make(5, edges, 6);
  assert_int_equal(graph->nodes, 5);
  assert_int_equal(graph->edges, 6);
  expect_row(pwi_graph_out(graph, 0), 2, (const uint32_t[]){1, 2});
  expect_row(pwi_graph_out(graph, 1), 1, (const uint32_t[]){3});
  expect_row(pwi_graph_out(graph, 3), 2, (const uint32_t[]){0, 1});
  expect_row(pwi_graph_in(graph, 1), 3, (const uint32_t[]){0, 2, 3});
  expect_row(pwi_graph_in(graph, 0), 1, (const uint32_t[]){3});
  expect_row(pwi_graph_in(graph, 4), 0, NULL);
  expect_row(pwi_graph_out(graph, 4), 0, NULL);
  assert_true(pwi_graph_has(graph, 0, 2) && pwi_graph_has(graph, 1, 3));
  assert_false(pwi_graph_has(graph, 2, 0) || pwi_graph_has(graph, 0, 3) || pwi_graph_has(graph, 4, 0));
  struct pwi_graph_degrees degrees = pwi_graph_degrees(graph);
  assert_int_equal(degrees.out_min, 0);
  assert_int_equal(degrees.out_max, 2);
  assert_int_equal(degrees.in_min, 0);
  assert_int_equal(degrees.in_max, 3);
  pwi_graph_destroy(graph);
}

/* Random graphs beside a full matrix. */
static void test_rows_agree_with_a_matrix(void **state) {
  (void)state;
  enum { NODES = 40 };
  struct pwi_random random;
  pwi_random_init(&random, 7, 0);
  for (int round = 0; round < 50; round++) {
    bool matrix[NODES][NODES] = {{false}};
    struct pwi_graph_edge edges[NODES * NODES];
    size_t count = 0;
    double density = pwi_random_unit(&random);
    for (uint32_t i = 0; i < NODES; i++)
      for (uint32_t k = 0; k < NODES; k++) {
        matrix[i][k] = i != k && pwi_random_chance(&random, density);
        if (matrix[i][k]) edges[count++] = (struct pwi_graph_edge){i, k};
      }
    pwi_random_shuffle(&random, edges, count, sizeof *edges);
    struct pwi_graph *graph = make(NODES, edges, count);
    size_t out = 0, in = 0;
    for (uint32_t i = 0; i < NODES; i++) {
      out += pwi_graph_out(graph, i).count;
      in += pwi_graph_in(graph, i).count;
      for (size_t k = 0; k < pwi_graph_in(graph, i).count; k++) assert_true(matrix[pwi_graph_in(graph, i).nodes[k]][i]);
      for (uint32_t k = 0; k < NODES; k++) assert_int_equal(pwi_graph_has(graph, i, k), matrix[i][k]);
    }
    assert_true(out == count && in == count);
    pwi_graph_destroy(graph);
  }
}

static void refuses(size_t nodes, struct pwi_graph_edge edge, struct pwi_graph_edge second, size_t count,
                    pawl_status status, const char *text) {
  struct pwi_graph_why why;
  struct pwi_graph *graph = NULL;
  const struct pwi_graph_edge edges[] = {edge, second};
  assert_int_equal(pwi_graph_create(nodes, edges, count, &why, &graph), status);
  assert_non_null(strstr(why.text, text));
  assert_null(graph);
}

static void test_wrong_edges_are_refused(void **state) {
  (void)state;
  struct pwi_graph_edge fine = {0, 1};
  refuses(0, fine, fine, 0, PAWL_INVALID, "at least one node");
  refuses(2, fine, (struct pwi_graph_edge){1, 2}, 2, PAWL_INVALID, "from 1 to 2 names a node that does not exist");
  refuses(2, (struct pwi_graph_edge){2, 0}, fine, 1, PAWL_INVALID, "from 2 to 0 names a node");
  refuses(2, fine, (struct pwi_graph_edge){1, 1}, 2, PAWL_INVALID, "node 1 sends to itself");
  refuses(2, fine, fine, 2, PAWL_EXISTS, "from 0 to 1 occurs twice");
  refuses((size_t)PWI_GRAPH_NODES_MAX + 1, fine, fine, 1, PAWL_TOO_LARGE, "1048577 nodes");
}

static void test_too_many_edges_are_refused_before_they_are_read(void **state) {
  (void)state;
  struct pwi_graph_why why;
  struct pwi_graph *graph = NULL;
  assert_int_equal(pwi_graph_create(2, NULL, (size_t)PWI_GRAPH_EDGES_MAX + 1, &why, &graph), PAWL_TOO_LARGE);
  assert_non_null(strstr(why.text, "67108865 edges"));
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  const struct pwi_graph_edge edges[] = {{0, 1}, {1, 2}, {2, 0}};
  struct pwi_memory_counts before = pwi_memory_counts();
  int failures = 0;
  for (;; failures++) {
    struct pwi_graph *graph = NULL;
    pwi_memory_fail_after((uint64_t)failures);
    pawl_status status = pwi_graph_create(3, edges, 3, NULL, &graph);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_OK);
      pwi_graph_destroy(graph);
      break;
    }
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_null(graph);
    assert_int_equal(pwi_memory_counts().live, before.live);
  }
  assert_true(failures >= 5);
  assert_int_equal(pwi_memory_counts().live, before.live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_in_both_directions_ascend),
      cmocka_unit_test(test_rows_agree_with_a_matrix),
      cmocka_unit_test(test_wrong_edges_are_refused),
      cmocka_unit_test(test_too_many_edges_are_refused_before_they_are_read),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
