#include "graph/graph_testing.h"
#include "graph/optimise.h"
#include "graph/reach.h"

static struct pwi_optimise_options options_of(uint32_t nodes, uint32_t degree, bool is_balanced, uint64_t steps) {
  return (struct pwi_optimise_options){
      .nodes = nodes, .degree = degree, .is_balanced = is_balanced, .steps = steps, .branches = PWI_OPTIMISE_BRANCHES};
}

/* A graph of the right degrees, strongly connected, whose sum is the one that is claimed. */
static struct pwi_optimised optimise(const struct pwi_optimise_options *options) {
  struct pwi_graph_why why = {""};
  struct pwi_optimised best = {0};
  struct pwi_reach reach;
  struct pwi_path_lengths lengths;
  if (pwi_optimise(options, &why, &best)) fail_msg("%s", why.text);
  struct pwi_graph_degrees degrees = pwi_graph_degrees(best.graph);
  assert_int_equal(best.graph->nodes, options->nodes);
  assert_true(degrees.out_min == options->degree && degrees.out_max == options->degree);
  if (options->is_balanced) assert_true(degrees.in_min == options->degree && degrees.in_max == options->degree);
  assert_int_equal(pwi_reach_check(best.graph, &reach), PAWL_OK);
  assert_true(reach.is_strong);
  assert_int_equal(pwi_path_lengths_find(best.graph, &lengths), PAWL_OK);
  assert_int_equal(lengths.sum, best.sum);
  assert_true(best.sum >= best.bound);
  return best;
}

static uint64_t sum_of(const struct pwi_graph *graph) {
  struct pwi_path_lengths lengths;
  assert_int_equal(pwi_path_lengths_find(graph, &lengths), PAWL_OK);
  return lengths.sum;
}

static uint64_t sum_of_start(enum pwi_optimise_start start, const struct pwi_optimise_options *options) {
  struct pwi_graph *graph = NULL;
  assert_int_equal(pwi_optimise_make_start(start, options, NULL, &graph), PAWL_OK);
  uint64_t sum = sum_of(graph);
  pwi_graph_destroy(graph);
  return sum;
}

/* --- the bound ------------------------------------------------------------------------------------------ */

static void test_the_bound_counts_the_nodes_at_each_distance(void **state) {
  (void)state;
  assert_int_equal(pwi_optimise_bound(2, 1), 2);
  assert_int_equal(pwi_optimise_bound(5, 1), 5 * (1 + 2 + 3 + 4));
  assert_int_equal(pwi_optimise_bound(12, 2), 12 * (2 * 1 + 4 * 2 + 5 * 3));
  assert_int_equal(pwi_optimise_bound(1000, 999), 1000 * 999);
  struct pwi_graph *ring = make_named(PWI_TOPOLOGY_RING, 40);
  assert_int_equal(sum_of(ring), pwi_optimise_bound(40, 1));
  pwi_graph_destroy(ring);
}

static void test_the_root_start_is_the_root_graph(void **state) {
  (void)state;
  for (uint32_t nodes = 3; nodes <= 1000; nodes += 71) {
    struct pwi_optimise_options options = options_of(nodes, 2, false, 0);
    struct pwi_graph *root = make_named(PWI_TOPOLOGY_ROOT, nodes);
    assert_int_equal(sum_of_start(PWI_OPTIMISE_ROOT, &options), sum_of(root));
    pwi_graph_destroy(root);
  }
}

/* --- exact ---------------------------------------------------------------------------------------------- */

enum { BRUTE = 7 };

/* The smallest sum, or UINT32_MAX if a node cannot be reached. Ends early once `most` is exceeded. */
static uint32_t brute_sum(const uint32_t *rows, uint32_t nodes, uint32_t most) {
  uint32_t sum = 0, all = (1u << nodes) - 1;
  for (uint32_t source = 0; source < nodes && sum <= most; source++) {
    uint32_t reached = 1u << source;
    for (uint32_t distance = 1; reached != all; distance++) {
      uint32_t next = reached;
      for (uint32_t i = 0; i < nodes; i++)
        if (reached >> i & 1) next |= rows[i];
      if (next == reached) return UINT32_MAX;
      sum += distance * (uint32_t)__builtin_popcount(next & ~reached);
      reached = next;
    }
  }
  return sum;
}

struct brute {
  uint32_t nodes, degree, best;
  bool is_balanced;
  uint32_t rows[BRUTE];
};

static bool is_balanced(const struct brute *brute) {
  for (uint32_t to = 0; to < brute->nodes; to++) {
    uint32_t degree = 0;
    for (uint32_t i = 0; i < brute->nodes; i++) degree += brute->rows[i] >> to & 1;
    if (degree != brute->degree) return false;
  }
  return true;
}

/* Tries every graph in which node 0 sends to the nodes after it. */
static void try_all(struct brute *brute, uint32_t node) {
  if (node == brute->nodes) {
    uint32_t sum = brute_sum(brute->rows, brute->nodes, brute->best);
    if (sum < brute->best && (!brute->is_balanced || is_balanced(brute))) brute->best = sum;
    return;
  }
  for (uint32_t row = 0; row < 1u << brute->nodes; row++) {
    if (row >> node & 1 || (uint32_t)__builtin_popcount(row) != brute->degree) continue;
    if (node == 0 && row != ((1u << brute->degree) - 1) << 1) continue;
    brute->rows[node] = row;
    try_all(brute, node + 1);
  }
}

static void check_brute(uint32_t nodes, uint32_t degree, bool balanced) {
  struct pwi_optimise_options options = options_of(nodes, degree, balanced, 20);
  struct brute brute = {.nodes = nodes, .degree = degree, .best = UINT32_MAX, .is_balanced = balanced};
  struct pwi_optimised best = optimise(&options);
  assert_true(best.is_proven);
  try_all(&brute, 0);
  assert_int_equal(best.sum, brute.best);
  pwi_graph_destroy(best.graph);
}

static void test_small_optima_are_those_of_trying_all_graphs(void **state) {
  (void)state;
  for (uint32_t nodes = 2; nodes <= 5; nodes++)
    for (uint32_t degree = 1; degree < nodes; degree++) {
      check_brute(nodes, degree, false);
      check_brute(nodes, degree, true);
    }
}

/* The least number of nodes whose optimum is above the Moore bound: 74, not 70. No graph is below 74. */
static void test_the_optimum_of_seven_nodes_is_above_the_bound(void **state) {
  (void)state;
  struct pwi_optimise_options options = options_of(7, 2, false, 20);
  struct brute brute = {.nodes = 7, .degree = 2, .best = 74};
  struct pwi_optimised best = optimise(&options);
  assert_true(best.is_proven);
  assert_int_equal(best.sum, 74);
  assert_int_equal(best.bound, 74);
  assert_int_equal(pwi_optimise_bound(7, 2), 70);
  assert_true(best.branches > 0);
  try_all(&brute, 0);
  assert_int_equal(brute.best, 74);
  pwi_graph_destroy(best.graph);
}

/* Two of all numbers of nodes, degrees and balances are left out, because they take seconds: 11 nodes that send to 3
 * and receive from 3 (55 million choices), and 12 nodes that send to 2 (6 million). */
static void test_up_to_twelve_nodes_every_degree_is_proven(void **state) {
  (void)state;
  for (uint32_t nodes = 2; nodes <= PWI_OPTIMISE_EXACT_NODES; nodes++)
    for (uint32_t degree = 1; degree < nodes; degree++)
      for (int balanced = 0; balanced < 2; balanced++) {
        if ((nodes == 11 && degree == 3 && balanced) || (nodes == 12 && degree == 2 && !balanced)) continue;
        struct pwi_optimise_options options = options_of(nodes, degree, balanced, 50000);
        struct pwi_optimised best = optimise(&options);
        assert_true(best.is_proven);
        assert_true(best.branches < PWI_OPTIMISE_BRANCHES / 100);
        assert_true(best.sum <= sum_of_start(PWI_OPTIMISE_ROOT, &options));
        pwi_graph_destroy(best.graph);
      }
}

static void test_branch_and_bound_that_gives_up_proves_nothing(void **state) {
  (void)state;
  struct pwi_optimise_options options = options_of(8, 2, false, 0);
  options.branches = 50;
  struct pwi_optimised best = optimise(&options);
  assert_false(best.is_proven);
  assert_int_equal(best.bound, pwi_optimise_bound(8, 2));
  pwi_graph_destroy(best.graph);
}

/* --- search --------------------------------------------------------------------------------------------- */

static void check_starts(const struct pwi_optimise_options *options, const struct pwi_optimised *best) {
  for (int i = 0; i < PWI_OPTIMISE_STARTS; i++) {
    struct pwi_graph *graph = NULL;
    struct pwi_reach reach;
    assert_int_equal(pwi_optimise_make_start((enum pwi_optimise_start)i, options, NULL, &graph), PAWL_OK);
    struct pwi_graph_degrees degrees = pwi_graph_degrees(graph);
    assert_true(degrees.out_min == options->degree && degrees.out_max == options->degree);
    assert_true(degrees.in_min == options->degree && degrees.in_max == options->degree);
    assert_int_equal(pwi_reach_check(graph, &reach), PAWL_OK);
    assert_true(reach.is_strong);
    assert_true(best->sum <= sum_of(graph));
    pwi_graph_destroy(graph);
  }
}

static void test_no_start_is_better_than_the_result(void **state) {
  (void)state;
  static const uint32_t nodes[] = {13, 14, 29, 121, 300, 1000};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
    for (uint32_t degree = 2; degree <= 10; degree += 4) {
      struct pwi_optimise_options options = options_of(nodes[i], degree, i % 2, 40);
      struct pwi_optimised best = optimise(&options);
      check_starts(&options, &best);
      pwi_graph_destroy(best.graph);
    }
}

/* The Kautz graph of 50 nodes has 10,331. */
static void test_the_search_improves_the_best_start(void **state) {
  (void)state;
  for (int balanced = 0; balanced < 2; balanced++) {
    struct pwi_optimise_options options = options_of(50, 2, balanced, 8000);
    struct pwi_optimised best = optimise(&options), again = optimise(&options);
    assert_true(best.sum < 10100 && best.sum < sum_of_start(PWI_OPTIMISE_KAUTZ, &options));
    assert_int_equal(best.steps, 8000);
    assert_false(best.is_proven);
    assert_memory_equal(best.graph->out, again.graph->out, best.graph->edges * sizeof *best.graph->out);
    pwi_graph_destroy(again.graph);
    options.seed = 1;
    again = optimise(&options);
    assert_memory_not_equal(best.graph->out, again.graph->out, best.graph->edges * sizeof *best.graph->out);
    pwi_graph_destroy(again.graph);
    pwi_graph_destroy(best.graph);
  }
}

struct stopper {
  uint64_t calls, stop_at, last;
};

static bool stop(void *watcher, const struct pwi_optimise_progress *progress) {
  struct stopper *stopper = watcher;
  assert_true(stopper->calls == 0 || progress->sum <= stopper->last);
  stopper->last = progress->sum;
  return ++stopper->calls < stopper->stop_at;
}

static void test_a_watcher_stops_the_search(void **state) {
  (void)state;
  struct stopper stopper = {.stop_at = 5};
  struct pwi_optimise_options options = options_of(40, 2, false, 1000000);
  options.watch = stop;
  options.watcher = &stopper;
  struct pwi_optimised best = optimise(&options);
  assert_true(best.is_stopped && !best.is_proven);
  assert_int_equal(stopper.calls, 5);
  assert_true(best.steps < 5000);
  check_starts(&options, &best);
  pwi_graph_destroy(best.graph);
}

static void test_impossible_graphs_are_refused(void **state) {
  (void)state;
  static const struct {
    uint32_t nodes, degree;
    pawl_status status;
  } wrong[] = {{0, 1, PAWL_INVALID},
               {1, 1, PAWL_INVALID},
               {5, 0, PAWL_INVALID},
               {5, 5, PAWL_INVALID},
               {PWI_OPTIMISE_NODES_MAX + 1, 2, PAWL_TOO_LARGE}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct pwi_optimise_options options = options_of(wrong[i].nodes, wrong[i].degree, false, 0);
    struct pwi_graph_why why = {""};
    struct pwi_optimised best = {0};
    assert_int_equal(pwi_optimise(&options, &why, &best), wrong[i].status);
    assert_true(why.text[0] != 0);
    assert_null(best.graph);
  }
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  struct pwi_optimise_options options = options_of(8, 2, false, 100);
  struct pwi_memory_counts before = pwi_memory_counts();
  int failures = 0;
  for (;; failures++) {
    struct pwi_optimised best = {0};
    pwi_memory_fail_after((uint64_t)failures);
    pawl_status status = pwi_optimise(&options, NULL, &best);
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_graph_destroy(best.graph);
    assert_int_equal(pwi_memory_counts().live, before.live);
    if (!has_failed) break;
  }
  assert_true(failures > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_bound_counts_the_nodes_at_each_distance),
      cmocka_unit_test(test_the_root_start_is_the_root_graph),
      cmocka_unit_test(test_small_optima_are_those_of_trying_all_graphs),
      cmocka_unit_test(test_the_optimum_of_seven_nodes_is_above_the_bound),
      cmocka_unit_test(test_up_to_twelve_nodes_every_degree_is_proven),
      cmocka_unit_test(test_branch_and_bound_that_gives_up_proves_nothing),
      cmocka_unit_test(test_no_start_is_better_than_the_result),
      cmocka_unit_test(test_the_search_improves_the_best_start),
      cmocka_unit_test(test_a_watcher_stops_the_search),
      cmocka_unit_test(test_impossible_graphs_are_refused),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
