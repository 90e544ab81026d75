/* How stale an update may be after it was passed on along a path (SFB, sections 3 and 4).
 *
 * A discrete simulation of workers under the waiting rule of the paper. A worker that has computed c updates computes
 * the next only if it has received at least c - s updates from each in-neighbour. A message is an update of its
 * sender, with the updates of all others that the sender had when it computed it. Messages of a link arrive in
 * order. */
#include "graph/graph_testing.h"
#include "graph/optimise.h"

enum { WORKERS = 16, CLOCKS = 80 };

struct workers {
  const struct pwi_graph *graph;
  uint32_t staleness;
  uint32_t distance[WORKERS][WORKERS];     /* of shortest paths */
  uint32_t clock[WORKERS];                 /* updates that a worker has computed */
  uint32_t has[WORKERS][WORKERS];          /* has[i][j]: updates of j that i has */
  uint32_t heard[WORKERS][WORKERS];        /* heard[i][j]: messages that i has received from its in-neighbour j */
  uint32_t sent[CLOCKS][WORKERS][WORKERS]; /* sent[k][i]: what message k of worker i holds */
  uint32_t worst[WORKERS][WORKERS];        /* the most updates of j that i lacked when it computed one */
};

static void find_distances(struct workers *workers) {
  uint32_t nodes = workers->graph->nodes;
  for (uint32_t i = 0; i < nodes; i++)
    for (uint32_t k = 0; k < nodes; k++)
      workers->distance[i][k] = i == k ? 0 : pwi_graph_has(workers->graph, i, k) ? 1 : nodes;
  for (uint32_t m = 0; m < nodes; m++)
    for (uint32_t i = 0; i < nodes; i++)
      for (uint32_t k = 0; k < nodes; k++)
        if (workers->distance[i][m] + workers->distance[m][k] < workers->distance[i][k])
          workers->distance[i][k] = workers->distance[i][m] + workers->distance[m][k];
}

static void open_workers(struct workers *workers, const struct pwi_graph *graph, uint32_t staleness) {
  assert_true(graph->nodes <= WORKERS);
  memset(workers, 0, sizeof *workers);
  workers->graph = graph;
  workers->staleness = staleness;
  find_distances(workers);
}

/* The in-neighbour that keeps a worker waiting, or the worker itself if it may go on. */
static uint32_t awaited(const struct workers *workers, uint32_t worker) {
  struct pwi_graph_row row = pwi_graph_in(workers->graph, worker);
  for (size_t k = 0; k < row.count; k++)
    if (workers->clock[worker] > workers->heard[worker][row.nodes[k]] + workers->staleness) return row.nodes[k];
  return worker;
}

static bool can_deliver(const struct workers *workers, uint32_t from, uint32_t to) {
  return workers->heard[to][from] < workers->clock[from];
}

static void deliver(struct workers *workers, uint32_t from, uint32_t to) {
  const uint32_t *message = workers->sent[workers->heard[to][from]++][from];
  for (uint32_t j = 0; j < workers->graph->nodes; j++)
    if (message[j] > workers->has[to][j] && j != to) workers->has[to][j] = message[j];
}

static void compute(struct workers *workers, uint32_t worker) {
  uint32_t clock = workers->clock[worker]++, *message = workers->sent[clock][worker];
  for (uint32_t j = 0; j < workers->graph->nodes; j++) {
    uint32_t has = workers->has[worker][j];
    if (j != worker && clock > has && clock - has > workers->worst[worker][j]) workers->worst[worker][j] = clock - has;
  }
  workers->has[worker][worker] = clock + 1;
  memcpy(message, workers->has[worker], sizeof workers->has[worker]);
}

/* --- schedules ------------------------------------------------------------------------------------------ */

/* Every message is late: a worker receives one only when it could not go on without it. */
static void run_late(struct workers *workers) {
  for (uint32_t round = 0; round < CLOCKS; round++)
    for (uint32_t i = 0; i < workers->graph->nodes; i++) {
      for (uint32_t from; (from = awaited(workers, i)) != i;) {
        assert_true(can_deliver(workers, from, i)); /* no deadlock: the others are at most a clock behind */
        deliver(workers, from, i);
      }
      compute(workers, i);
    }
}

/* Computes and delivers in random order; a link or worker in a hurry is drawn more often. */
static void run_random(struct workers *workers, uint64_t seed) {
  struct pwi_random random;
  uint32_t nodes = workers->graph->nodes, done = 0, slow;
  pwi_random_init(&random, seed, 0);
  slow = (uint32_t)pwi_random_below(&random, nodes);
  double late = pwi_random_unit(&random);
  while (done < nodes) {
    uint32_t i = (uint32_t)pwi_random_below(&random, nodes);
    struct pwi_graph_row row = pwi_graph_in(workers->graph, i);
    uint32_t from = row.nodes[pwi_random_below(&random, row.count)];
    if (can_deliver(workers, from, i) && !pwi_random_chance(&random, from == slow ? 0.95 : late))
      deliver(workers, from, i);
    if (workers->clock[i] == CLOCKS || awaited(workers, i) != i) continue;
    compute(workers, i);
    done += workers->clock[i] == CLOCKS;
  }
}

/* Returns how many pairs reach the bound. */
static uint32_t check_bound(const struct workers *workers) {
  uint32_t nodes = workers->graph->nodes, reached = 0;
  for (uint32_t i = 0; i < nodes; i++)
    for (uint32_t j = 0; j < nodes; j++) {
      uint64_t bound = pwi_optimise_staleness(workers->staleness, workers->distance[j][i]);
      if (workers->worst[i][j] > bound)
        fail_msg("worker %u lacked %u updates of %u, and the bound is %u", i, workers->worst[i][j], j, (unsigned)bound);
      reached += i != j && workers->worst[i][j] == bound;
    }
  return reached;
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void check_graph(const struct pwi_graph *graph) {
  static struct workers workers;
  uint32_t pairs = graph->nodes * (graph->nodes - 1);
  for (uint32_t staleness = 0; staleness <= 3; staleness++) {
    open_workers(&workers, graph, staleness);
    run_late(&workers);
    assert_int_equal(check_bound(&workers), pairs);
    for (uint64_t seed = 0; seed < 25; seed++) {
      open_workers(&workers, graph, staleness);
      run_random(&workers, seed);
      check_bound(&workers);
    }
  }
}

static void test_the_bound_holds_and_late_messages_reach_it(void **state) {
  (void)state;
  struct pwi_graph *ring = make_named(PWI_TOPOLOGY_RING, 6), *root = make_named(PWI_TOPOLOGY_ROOT, 16);
  struct pwi_graph *random = make_spec(&(struct pwi_graph_spec){PWI_TOPOLOGY_RANDOM, 13, 3, 5, NULL});
  check_graph(ring);
  check_graph(root);
  check_graph(random);
  pwi_graph_destroy(ring);
  pwi_graph_destroy(root);
  pwi_graph_destroy(random);
}

static void test_the_bound_holds_on_optimised_graphs(void **state) {
  (void)state;
  for (uint32_t nodes = 5; nodes <= WORKERS; nodes += 4) {
    struct pwi_optimise_options options = {.nodes = nodes, .degree = 2, .steps = 500};
    struct pwi_optimised best;
    assert_int_equal(pwi_optimise(&options, NULL, &best), PAWL_OK);
    check_graph(best.graph);
    pwi_graph_destroy(best.graph);
  }
}

/* The bound that the paper gives, staleness times length, is exceeded: with a staleness of 0 an update needs as many
 * clocks as the path has edges. */
static void test_the_bound_of_the_paper_is_too_small(void **state) {
  (void)state;
  static struct workers workers;
  struct pwi_graph *ring = make_named(PWI_TOPOLOGY_RING, 6);
  for (uint32_t staleness = 0; staleness <= 2; staleness++) {
    open_workers(&workers, ring, staleness);
    run_late(&workers);
    assert_int_equal(workers.worst[5][0], staleness * 5 + 4);
    assert_int_equal(workers.worst[1][0], staleness);
  }
  pwi_graph_destroy(ring);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_bound_holds_and_late_messages_reach_it),
      cmocka_unit_test(test_the_bound_holds_on_optimised_graphs),
      cmocka_unit_test(test_the_bound_of_the_paper_is_too_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
