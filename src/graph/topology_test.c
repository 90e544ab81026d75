#include "graph/graph_testing.h"
#include "graph/reach.h"

static void expect_out(const struct pwi_graph *graph, uint32_t node, size_t count, const uint32_t *nodes) {
  struct pwi_graph_row row = pwi_graph_out(graph, node);
  assert_int_equal(row.count, count);
  for (size_t i = 0; i < count; i++) assert_int_equal(row.nodes[i], nodes[i]);
}

static void expect_regular(const struct pwi_graph *graph, uint32_t degree) {
  struct pwi_graph_degrees degrees = pwi_graph_degrees(graph);
  assert_true(degrees.out_min == degree && degrees.out_max == degree);
  assert_true(degrees.in_min == degree && degrees.in_max == degree);
}

static bool is_strong(const struct pwi_graph *graph) {
  struct pwi_reach reach;
  assert_int_equal(pwi_reach_check(graph, &reach), PAWL_OK);
  return reach.is_strong;
}

static void refuses(const struct pwi_graph_spec *spec, pawl_status status, const char *text) {
  struct pwi_graph_why why = {""};
  struct pwi_graph *graph = NULL;
  assert_int_equal(pwi_graph_make(spec, &why, &graph), status);
  if (!strstr(why.text, text)) fail_msg("'%s' is not in '%s'", text, why.text);
  assert_null(graph);
}

static void test_names_are_found(void **state) {
  (void)state;
  enum pwi_topology found;
  for (int i = 0; i < PWI_TOPOLOGIES; i++) {
    assert_true(pwi_topology_find(pwi_topology_info((enum pwi_topology)i)->name, &found));
    assert_int_equal(found, i);
  }
  assert_false(pwi_topology_find("torus", &found));
}

static void test_simple_patterns(void **state) {
  (void)state;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_COMPLETE, 4);
  expect_out(graph, 1, 3, (const uint32_t[]){0, 2, 3});
  expect_regular(graph, 3);
  pwi_graph_destroy(graph);

  graph = make_named(PWI_TOPOLOGY_STAR, 4);
  expect_out(graph, 0, 3, (const uint32_t[]){1, 2, 3});
  expect_out(graph, 2, 1, (const uint32_t[]){0});
  assert_int_equal(graph->edges, 6);
  assert_true(is_strong(graph));
  pwi_graph_destroy(graph);

  graph = make_named(PWI_TOPOLOGY_RING, 3);
  expect_out(graph, 2, 1, (const uint32_t[]){0});
  expect_regular(graph, 1);
  assert_true(is_strong(graph));
  pwi_graph_destroy(graph);

  graph = make_named(PWI_TOPOLOGY_CHAIN, 3);
  expect_out(graph, 1, 1, (const uint32_t[]){2});
  expect_out(graph, 2, 0, NULL);
  assert_int_equal(graph->edges, 2);
  assert_false(is_strong(graph));
  pwi_graph_destroy(graph);
}

static void test_a_root_graph_has_two_neighbours_and_one_of_two_nodes(void **state) {
  (void)state;
  static const uint32_t steps[][2] = {{2, 1},  {3, 2},  {6, 2},  {7, 3},  {12, 3},
                                      {13, 4}, {25, 5}, {30, 5}, {31, 6}, {1024, 32}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    assert_int_equal(pwi_topology_root(steps[i][0]), steps[i][1]);
  for (uint32_t nodes = 1; nodes <= 200; nodes++) {
    struct pwi_graph *graph = make_named(PWI_TOPOLOGY_ROOT, nodes);
    expect_regular(graph, nodes == 1 ? 0 : nodes == 2 ? 1 : 2);
    assert_true(is_strong(graph));
    pwi_graph_destroy(graph);
  }
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_ROOT, 25);
  expect_out(graph, 23, 2, (const uint32_t[]){3, 24});
  pwi_graph_destroy(graph);
}

static void test_a_hypercube_joins_numbers_that_differ_in_a_bit(void **state) {
  (void)state;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_HYPERCUBE, 8);
  expect_out(graph, 5, 3, (const uint32_t[]){1, 4, 7});
  expect_regular(graph, 3);
  pwi_graph_destroy(graph);
  refuses(&(struct pwi_graph_spec){.topology = PWI_TOPOLOGY_HYPERCUBE, .nodes = 12}, PAWL_INVALID,
          "such as 8 or 16, not 12");
}

static void test_a_butterfly_sends_to_the_next_level(void **state) {
  (void)state;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_BUTTERFLY, 24);
  expect_out(graph, 3, 2, (const uint32_t[]){10, 11});     /* level 0 flips bit 0 */
  expect_out(graph, 8 + 3, 2, (const uint32_t[]){17, 19}); /* level 1 flips bit 1 */
  expect_out(graph, 16 + 3, 2, (const uint32_t[]){3, 7});  /* level 2 flips bit 2, and wraps */
  expect_regular(graph, 2);
  assert_true(is_strong(graph));
  pwi_graph_destroy(graph);
  graph = make_named(PWI_TOPOLOGY_BUTTERFLY, 2);
  expect_regular(graph, 1);
  pwi_graph_destroy(graph);
  struct pwi_graph_spec spec = {.topology = PWI_TOPOLOGY_BUTTERFLY, .nodes = 25};
  refuses(&spec, PAWL_INVALID, "such as 24 or 64, not 25");
  spec.nodes = 1;
  refuses(&spec, PAWL_INVALID, "such as 2 or 8, not 1");
}

/* --- random graphs -------------------------------------------------------------------------------------- */

static void test_random_graphs_are_regular_and_connected(void **state) {
  (void)state;
  for (uint32_t nodes = 2; nodes <= 24; nodes++)
    for (uint32_t degree = 1; degree < nodes; degree++)
      for (uint64_t seed = 0; seed < 4; seed++) {
        struct pwi_graph *graph = make_spec(&(struct pwi_graph_spec){PWI_TOPOLOGY_RANDOM, nodes, degree, seed, NULL});
        expect_regular(graph, degree);
        assert_true(is_strong(graph));
        pwi_graph_destroy(graph);
      }
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_RANDOM, 100000);
  expect_regular(graph, PWI_TOPOLOGY_DEGREE);
  assert_true(is_strong(graph));
  pwi_graph_destroy(graph);
}

static bool is_same(const struct pwi_graph *one, const struct pwi_graph *other) {
  return one->nodes == other->nodes && one->edges == other->edges &&
         memcmp(one->out_begin, other->out_begin, (one->nodes + (size_t)1) * sizeof *one->out_begin) == 0 &&
         memcmp(one->out, other->out, one->edges * sizeof *one->out) == 0;
}

static void test_a_seed_gives_one_graph(void **state) {
  (void)state;
  struct pwi_graph_spec spec = {PWI_TOPOLOGY_RANDOM, 64, 3, 5, NULL};
  struct pwi_graph *graph = make_spec(&spec), *again = make_spec(&spec);
  spec.seed++;
  struct pwi_graph *other = make_spec(&spec);
  assert_true(is_same(graph, again));
  assert_false(is_same(graph, other));
  pwi_graph_destroy(graph);
  pwi_graph_destroy(again);
  pwi_graph_destroy(other);
}

/* All machines must make the same graph of a spec, so these rows must never change. */
static void test_the_graph_of_a_seed_stays_the_same(void **state) {
  (void)state;
  struct pwi_graph *graph = make_spec(&(struct pwi_graph_spec){PWI_TOPOLOGY_RANDOM, 10, 2, 1, NULL});
  static const uint32_t rows[10][2] = {{6, 7}, {2, 5}, {1, 3}, {4, 5}, {7, 9}, {0, 4}, {1, 8}, {3, 9}, {0, 2}, {6, 8}};
  for (uint32_t i = 0; i < 10; i++) expect_out(graph, i, 2, rows[i]);
  pwi_graph_destroy(graph);
}

static void test_impossible_degrees_are_refused(void **state) {
  (void)state;
  refuses(&(struct pwi_graph_spec){PWI_TOPOLOGY_RANDOM, 5, 5, 0, NULL}, PAWL_INVALID, "the degree is at most 4");
  refuses(&(struct pwi_graph_spec){PWI_TOPOLOGY_RANDOM, 5000, 2500, 0, NULL}, PAWL_TOO_LARGE,
          "at most 512, or at least 4487, not 2500");
  refuses(&(struct pwi_graph_spec){PWI_TOPOLOGY_RING, 5, 2, 0, NULL}, PAWL_INVALID,
          "degree of topology ring cannot be chosen");
}

/* --- racks ---------------------------------------------------------------------------------------------- */

static size_t links_between(const struct pwi_graph *graph, const uint32_t *racks) {
  size_t links = 0;
  for (uint32_t i = 0; i < graph->nodes; i++) {
    struct pwi_graph_row row = pwi_graph_out(graph, i);
    for (size_t k = 0; k < row.count; k++) links += racks[i] != racks[row.nodes[k]];
  }
  return links;
}

static void test_equal_racks_are_regular(void **state) {
  (void)state;
  uint32_t racks[32];
  for (uint32_t i = 0; i < 32; i++) racks[i] = i / 4;
  struct pwi_graph *graph = make_spec(&(struct pwi_graph_spec){PWI_TOPOLOGY_RACKS, 32, 0, 0, racks});
  expect_regular(graph, 4);
  assert_true(is_strong(graph));
  assert_int_equal(links_between(graph, racks), 32);
  expect_out(graph, 4, 4, (const uint32_t[]){5, 6, 7, 8});     /* member 0 of rack 1, to rack 2 */
  expect_out(graph, 5, 4, (const uint32_t[]){4, 6, 7, 17});    /* member 1, to rack 1 + 3 */
  expect_out(graph, 30, 4, (const uint32_t[]){2, 28, 29, 31}); /* member 2 of rack 7, to rack 0 */
  pwi_graph_destroy(graph);
}

/* The racks of the nodes are drawn; numbers of racks may be unused. */
static void test_racks_of_any_size_are_balanced_and_connected(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 3, 0);
  for (int round = 0; round < 300; round++) {
    uint32_t racks[40], sizes[40] = {0}, nodes = 1 + (uint32_t)pwi_random_below(&random, 40), used = 0, least = 40;
    uint32_t bound = 1 + (uint32_t)pwi_random_below(&random, nodes);
    for (uint32_t i = 0; i < nodes; i++) sizes[racks[i] = (uint32_t)pwi_random_below(&random, bound)]++;
    for (uint32_t a = 0; a < nodes; a++) {
      used += sizes[a] > 0;
      if (sizes[a] && sizes[a] < least) least = sizes[a];
    }
    uint32_t most = used == 1 ? 0 : used == 2 ? least : 2 * least;
    for (uint32_t degree = 0; degree <= most; degree++) {
      struct pwi_graph *graph = make_spec(&(struct pwi_graph_spec){PWI_TOPOLOGY_RACKS, nodes, degree, 0, racks});
      assert_true(is_strong(graph));
      for (uint32_t i = 0; i < nodes; i++)
        assert_int_equal(pwi_graph_out(graph, i).count, pwi_graph_in(graph, i).count);
      if (degree) assert_int_equal(links_between(graph, racks), (size_t)used * degree);
      pwi_graph_destroy(graph);
    }
    refuses(&(struct pwi_graph_spec){PWI_TOPOLOGY_RACKS, nodes, most + 1, 0, racks}, PAWL_INVALID,
            "links out of each rack");
  }
}

static void test_racks_must_be_given_and_small(void **state) {
  (void)state;
  refuses(&(struct pwi_graph_spec){.topology = PWI_TOPOLOGY_RACKS, .nodes = 3}, PAWL_INVALID, "not given");
  const uint32_t racks[] = {0, 1, 3};
  refuses(&(struct pwi_graph_spec){PWI_TOPOLOGY_RACKS, 3, 0, 0, racks}, PAWL_INVALID, "node 2 is in rack 3");
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static void test_a_hundred_thousand_nodes(void **state) {
  (void)state;
  enum { NODES = 100000 };
  uint32_t *racks = pwi_resize_array(NULL, NODES, sizeof *racks);
  assert_non_null(racks);
  for (uint32_t i = 0; i < NODES; i++) racks[i] = i / 20;
  for (int i = PWI_TOPOLOGY_STAR; i < PWI_TOPOLOGIES; i++) {
    struct pwi_graph_spec spec = {.topology = (enum pwi_topology)i, .nodes = NODES};
    if (i == PWI_TOPOLOGY_HYPERCUBE) spec.nodes = 1 << 17;
    if (i == PWI_TOPOLOGY_BUTTERFLY) spec.nodes = 13 << 13;
    if (i == PWI_TOPOLOGY_RACKS) spec.racks = racks;
    struct pwi_graph *graph = make_spec(&spec);
    assert_int_equal(is_strong(graph), i != PWI_TOPOLOGY_CHAIN);
    pwi_graph_destroy(graph);
  }
  pwi_free(racks);
  refuses(&(struct pwi_graph_spec){.topology = PWI_TOPOLOGY_COMPLETE, .nodes = NODES}, PAWL_TOO_LARGE,
          "9999900000 edges");
  refuses(&(struct pwi_graph_spec){.topology = PWI_TOPOLOGY_RING, .nodes = 1 << 21}, PAWL_TOO_LARGE, "2097152 nodes");
  refuses(&(struct pwi_graph_spec){.topology = PWI_TOPOLOGY_RING}, PAWL_INVALID, "at least one node");
  refuses(&(struct pwi_graph_spec){.topology = PWI_TOPOLOGIES, .nodes = 2}, PAWL_INVALID, "unknown topology");
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  const uint32_t racks[] = {0, 0, 1, 1, 2, 2, 3, 3};
  struct pwi_memory_counts before = pwi_memory_counts();
  for (int i = 0; i < PWI_TOPOLOGIES; i++) {
    struct pwi_graph_spec spec = {.topology = (enum pwi_topology)i, .nodes = 8};
    if (i == PWI_TOPOLOGY_RACKS) spec.racks = racks;
    int failures = 0;
    for (;; failures++) {
      struct pwi_graph *graph = NULL;
      pwi_memory_fail_after((uint64_t)failures);
      pawl_status status = pwi_graph_make(&spec, NULL, &graph);
      bool has_failed = pwi_memory_fail_cancel();
      pwi_graph_destroy(graph);
      assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
      assert_int_equal(pwi_memory_counts().live, before.live);
      if (!has_failed) break;
    }
    assert_true(failures >= 6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_are_found),
      cmocka_unit_test(test_simple_patterns),
      cmocka_unit_test(test_a_root_graph_has_two_neighbours_and_one_of_two_nodes),
      cmocka_unit_test(test_a_hypercube_joins_numbers_that_differ_in_a_bit),
      cmocka_unit_test(test_a_butterfly_sends_to_the_next_level),
      cmocka_unit_test(test_random_graphs_are_regular_and_connected),
      cmocka_unit_test(test_a_seed_gives_one_graph),
      cmocka_unit_test(test_the_graph_of_a_seed_stays_the_same),
      cmocka_unit_test(test_impossible_degrees_are_refused),
      cmocka_unit_test(test_equal_racks_are_regular),
      cmocka_unit_test(test_racks_of_any_size_are_balanced_and_connected),
      cmocka_unit_test(test_racks_must_be_given_and_small),
      cmocka_unit_test(test_a_hundred_thousand_nodes),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
