#include <complex.h>
#include <math.h>

#include "graph/gap.h"
#include "graph/graph_testing.h"

#define PI 3.14159265358979323846

typedef pawl_status find_gap(const struct pwi_weights *weights, struct pwi_gap *gap_out);

static double gap_of(const struct pwi_graph *graph, enum pwi_weighting weighting, find_gap *find) {
  struct pwi_weights weights;
  struct pwi_gap gap;
  assert_int_equal(pwi_weights_init(&weights, graph, weighting, NULL), PAWL_OK);
  assert_int_equal(find(&weights, &gap), PAWL_OK);
  assert_true(gap.is_exact);
  pwi_weights_fini(&weights);
  return gap.gap;
}

static void near(double value, double expected, double error) {
  if (!(fabs(value - expected) <= error)) fail_msg("%.12g, not %.12g", value, expected);
}

static void test_the_known_values(void **state) {
  (void)state;
  static const struct {
    enum pwi_topology topology;
    uint32_t nodes;
    double gap, error;
  } known[] = {
      {PWI_TOPOLOGY_CHAIN, 25, 0.0021, 5e-5},  {PWI_TOPOLOGY_RING, 25, 0.0079, 5e-5},
      {PWI_TOPOLOGY_COMPLETE, 6, 1, 1e-12},    {PWI_TOPOLOGY_COMPLETE, 25, 1, 1e-12},
      {PWI_TOPOLOGY_ROOT, 6, 1.0 / 3, 1e-12},  {PWI_TOPOLOGY_ROOT, 25, 0.142, 5e-4},
      {PWI_TOPOLOGY_ROOT, 64, 0.060, 5e-4},    {PWI_TOPOLOGY_ROOT, 1024, 0.0041, 5e-5},
      {PWI_TOPOLOGY_STAR, 6, 0.5, 1e-12},      {PWI_TOPOLOGY_STAR, 25, 0.5, 1e-12},
      {PWI_TOPOLOGY_ROOT, 400, 0.01042, 5e-6}, {PWI_TOPOLOGY_ROOT, 1, 1, 0},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct pwi_graph *graph = make_named(known[i].topology, known[i].nodes);
    near(gap_of(graph, PWI_WEIGHTING_EQUAL, pwi_gap_find), known[i].gap, known[i].error);
    near(gap_of(graph, PWI_WEIGHTING_EQUAL, pwi_gap_lanczos), known[i].gap, known[i].error);
    pwi_graph_destroy(graph);
  }
}

/* The other rounding of the square root of 6, which the paper's 0.38 lies between. */
static void test_a_root_graph_of_six_nodes_rounded_up(void **state) {
  (void)state;
  struct pwi_graph_edge edges[12];
  for (uint32_t i = 0; i < 6; i++) {
    edges[2 * i] = (struct pwi_graph_edge){i, (i + 1) % 6};
    edges[2 * i + 1] = (struct pwi_graph_edge){i, (i + 3) % 6};
  }
  struct pwi_graph *graph = make_edges(6, edges, 12);
  near(gap_of(graph, PWI_WEIGHTING_EQUAL, pwi_gap_dense), 0.4226, 5e-5);
  pwi_graph_destroy(graph);
}

/* The Fourier vectors are singular vectors of a circulant matrix. */
static double root_formula(uint32_t nodes) {
  double most = 0, step = pwi_topology_root(nodes), unit = 2 * PI / nodes;
  for (uint32_t k = 1; k < nodes; k++) {
    double value = cabs(1 + cexp(I * (unit * k)) + cexp(I * (unit * fmod(k * step, nodes)))) / 3;
    if (value > most) most = value;
  }
  return 1 - most;
}

static void test_gaps_agree_with_formulas(void **state) {
  (void)state;
  for (uint32_t nodes = 3; nodes < 4000; nodes = nodes * 7 / 4 + 1) {
    struct pwi_graph *graph = make_named(PWI_TOPOLOGY_ROOT, nodes);
    double formula = root_formula(nodes);
    near(gap_of(graph, PWI_WEIGHTING_EQUAL, pwi_gap_find), formula, 1e-6 * formula);
    pwi_graph_destroy(graph);
    graph = make_named(PWI_TOPOLOGY_RING, nodes);
    formula = 1 - cos(PI / nodes);
    near(gap_of(graph, PWI_WEIGHTING_EQUAL, pwi_gap_find), formula, 1e-6 * formula);
    pwi_graph_destroy(graph);
  }
  for (uint32_t dimensions = 1; dimensions <= 13; dimensions++) {
    struct pwi_graph *graph = make_named(PWI_TOPOLOGY_HYPERCUBE, (uint32_t)1 << dimensions);
    near(gap_of(graph, PWI_WEIGHTING_EQUAL, pwi_gap_find), 2.0 / (dimensions + 1), 1e-6);
    pwi_graph_destroy(graph);
  }
}

static void compare(struct pwi_graph *graph, enum pwi_weighting weighting) {
  double dense = gap_of(graph, weighting, pwi_gap_dense);
  near(gap_of(graph, weighting, pwi_gap_lanczos), dense, 1e-6 * fabs(dense) + 1e-12);
}

static void test_lanczos_agrees_with_lapack(void **state) {
  (void)state;
  static const uint32_t sizes[] = {2, 8, 64, 150, 160, 256, 300};
  uint32_t racks[300];
  for (uint32_t i = 0; i < 300; i++) racks[i] = i % 11;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int t = 0; t < PWI_TOPOLOGIES; t++) {
      struct pwi_graph_spec spec = {.topology = (enum pwi_topology)t, .nodes = sizes[s]};
      struct pwi_graph *graph = NULL;
      if (t == PWI_TOPOLOGY_RACKS) spec.racks = racks;
      if (t == PWI_TOPOLOGY_RACKS && sizes[s] < 64) continue;
      pawl_status status = pwi_graph_make(&spec, NULL, &graph);
      if (status == PAWL_INVALID) continue; /* no hypercube or butterfly of this size */
      assert_int_equal(status, PAWL_OK);
      compare(graph, PWI_WEIGHTING_EQUAL);
      if (t != PWI_TOPOLOGY_CHAIN) compare(graph, PWI_WEIGHTING_METROPOLIS);
      pwi_graph_destroy(graph);
    }
}

static void test_lanczos_agrees_with_lapack_on_irregular_graphs(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 30; seed++) {
    struct pwi_graph *graph = make_irregular(20 + 5 * (uint32_t)seed, 0.03 + 0.01 * (double)seed, seed % 2 == 0, seed);
    compare(graph, PWI_WEIGHTING_EQUAL);
    if (seed % 2 == 0) compare(graph, PWI_WEIGHTING_METROPOLIS);
    pwi_graph_destroy(graph);
  }
}

/* Two equal stars, both with the largest singular value: the second is as large as the first. */
static void test_a_graph_of_two_parts(void **state) {
  (void)state;
  struct pwi_graph_edge edges[16];
  for (uint32_t i = 0; i < 8; i++) {
    uint32_t hub = i < 4 ? 0 : 5, leaf = i + 1 + i / 4;
    edges[2 * i] = (struct pwi_graph_edge){hub, leaf};
    edges[2 * i + 1] = (struct pwi_graph_edge){leaf, hub};
  }
  struct pwi_graph *graph = make_edges(10, edges, 16), *star = make_named(PWI_TOPOLOGY_STAR, 5);
  near(gap_of(graph, PWI_WEIGHTING_METROPOLIS, pwi_gap_dense), 0, 1e-12);
  near(gap_of(graph, PWI_WEIGHTING_METROPOLIS, pwi_gap_lanczos), 0, 1e-12);
  compare(graph, PWI_WEIGHTING_EQUAL);
  assert_true(gap_of(graph, PWI_WEIGHTING_EQUAL, pwi_gap_dense) < 0);
  near(gap_of(star, PWI_WEIGHTING_METROPOLIS, pwi_gap_dense), 0.2, 1e-12);
  pwi_graph_destroy(graph);
  pwi_graph_destroy(star);
}

/* In each round the distance from the average shrinks at least by the factor 1 - gap, and by hardly more at the
 * end on a symmetric graph. */
static void test_the_gap_is_the_rate_of_sharing(void **state) {
  (void)state;
  enum { NODES = 64 };
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_HYPERCUBE, NODES);
  struct pwi_weights weights;
  struct pwi_random random;
  double x[NODES], y[NODES], sum = 0, before = 0, factor = 1 - gap_of(graph, PWI_WEIGHTING_EQUAL, pwi_gap_find);
  assert_int_equal(pwi_weights_init(&weights, graph, PWI_WEIGHTING_EQUAL, NULL), PAWL_OK);
  pwi_random_init(&random, 5, 0);
  for (size_t i = 0; i < NODES; i++) sum += x[i] = pwi_random_normal(&random);
  for (int round = 0; round < 40; round++) {
    double distance = 0;
    for (size_t i = 0; i < NODES; i++) distance += (x[i] - sum / NODES) * (x[i] - sum / NODES);
    distance = sqrt(distance);
    if (round > 0) assert_true(distance <= before * factor * (1 + 1e-9));
    if (round == 39) assert_true(distance >= before * factor * 0.999);
    before = distance;
    pwi_weights_apply(&weights, x, y);
    memcpy(x, y, sizeof x);
  }
  pwi_weights_fini(&weights);
  pwi_graph_destroy(graph);
}

static void test_a_computation_that_does_not_end_says_so(void **state) {
  (void)state;
  enum { NODES = 8000 };
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_RING, NODES);
  struct pwi_weights weights;
  struct pwi_gap gap;
  assert_int_equal(pwi_weights_init(&weights, graph, PWI_WEIGHTING_EQUAL, NULL), PAWL_OK);
  assert_int_equal(pwi_gap_find(&weights, &gap), PAWL_OK);
  assert_false(gap.is_exact);
  assert_true(gap.gap >= 1 - cos(PI / NODES) - 1e-14 && gap.gap < 1e-6);
  pwi_weights_fini(&weights);
  pwi_graph_destroy(graph);
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  struct pwi_graph *graph = make_named(PWI_TOPOLOGY_STAR, 9);
  struct pwi_memory_counts before = pwi_memory_counts();
  struct pwi_weights weights;
  struct pwi_gap gap;
  find_gap *const ways[] = {pwi_gap_dense, pwi_gap_lanczos};
  assert_int_equal(pwi_weights_init(&weights, graph, PWI_WEIGHTING_EQUAL, NULL), PAWL_OK);
  for (int way = 0; way < 2; way++) {
    int failures = 0;
    for (;; failures++) {
      pwi_memory_fail_after((uint64_t)failures);
      pawl_status status = ways[way](&weights, &gap);
      bool has_failed = pwi_memory_fail_cancel();
      assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
      assert_int_equal(pwi_memory_counts().live, before.live + 2);
      if (!has_failed) break;
    }
    assert_true(failures >= 4);
  }
  pwi_weights_fini(&weights);
  pwi_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_known_values),
      cmocka_unit_test(test_a_root_graph_of_six_nodes_rounded_up),
      cmocka_unit_test(test_gaps_agree_with_formulas),
      cmocka_unit_test(test_lanczos_agrees_with_lapack),
      cmocka_unit_test(test_lanczos_agrees_with_lapack_on_irregular_graphs),
      cmocka_unit_test(test_a_graph_of_two_parts),
      cmocka_unit_test(test_the_gap_is_the_rate_of_sharing),
      cmocka_unit_test(test_a_computation_that_does_not_end_says_so),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
