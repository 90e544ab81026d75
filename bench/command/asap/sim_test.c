/* Simulated runs of `pawl-bench asap`, in small sizes. A serial loop that knows nothing of the engine computes
 * what notify-ack must compute. */
#include "base/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asap.h"
#include "base/memory.h"

#define FEATURES 60
#define WORKERS 6

static const struct pwi_asap_shape shape = {
    .examples = 600, .features = FEATURES, .per_example = 8, .topics = 1, .noise = 0.05, .lambda = 5e-3, .seed = 3};

static struct pwi_asap_setup setup_of(enum pwi_topology graph, enum pawl_reduce_mode mode) {
  return (struct pwi_asap_setup){.workers = WORKERS,
                                 .graph = graph,
                                 .mode = mode,
                                 .batch = 5,
                                 .rate = 2,
                                 .tolerance = 0.02,
                                 .look = 5,
                                 .rounds = 2000,
                                 .step_ns = 1000000,
                                 .jitter = 0.1,
                                 .put_ns = 5000,
                                 .slow = 1,
                                 .stall_times = 10,
                                 .seed = 1};
}

static struct pwi_asap_problem *make(void) {
  struct pwi_asap_problem *problem;
  assert_int_equal(pwi_asap_generate(&shape, &problem), PAWL_OK);
  assert_int_equal(pwi_asap_solve(problem, 1e-5, 20000), PAWL_OK);
  return problem;
}

static struct pwi_asap_outcome simulate(const struct pwi_asap_problem *problem, const struct pwi_asap_setup *setup) {
  struct pwi_asap_outcome outcome;
  char why[256];
  pawl_status status = pwi_asap_simulate(problem, setup, &outcome, why, sizeof why);
  if (status) print_message("%s\n", why);
  assert_int_equal(status, PAWL_OK);
  return outcome;
}

/* --- what notify-ack must compute ----------------------------------------------------------------------- */

/* The average of the own model and of those of all workers that send to it, by ascending rank. */
static void average(const struct pwi_graph *graph, float models[][FEATURES], uint32_t to, float *result) {
  uint32_t parts = 0;
  memset(result, 0, FEATURES * sizeof *result);
  for (uint32_t from = 0; from < WORKERS; from++) {
    if (from != to && !pwi_graph_has(graph, from, to)) continue;
    for (size_t j = 0; j < FEATURES; j++) result[j] = parts ? result[j] + models[from][j] : models[from][j];
    parts++;
  }
  for (size_t j = 0; j < FEATURES; j++) result[j] /= (float)parts;
}

/* The worst objective after so many rounds. */
static double compute_alone(const struct pwi_asap_problem *problem, const struct pwi_asap_setup *setup) {
  struct pwi_graph_spec spec = {.topology = setup->graph, .nodes = WORKERS};
  struct pwi_asap_learner learners[WORKERS];
  float models[WORKERS][FEATURES] = {0}, next[WORKERS][FEATURES];
  struct pwi_graph *graph;
  double worst = 0;
  assert_int_equal(pwi_graph_make(&spec, NULL, &graph), PAWL_OK);
  for (uint32_t i = 0; i < WORKERS; i++)
    assert_int_equal(pwi_asap_learner_init(&learners[i], problem, i, WORKERS, setup->rate, setup->seed), PAWL_OK);
  for (uint64_t round = 0; round < setup->rounds; round++) {
    for (uint32_t i = 0; i < WORKERS; i++) pwi_asap_learn(&learners[i], setup->batch, models[i]);
    for (uint32_t i = 0; i < WORKERS; i++) average(graph, models, i, next[i]);
    memcpy(models, next, sizeof models);
  }
  for (uint32_t i = 0; i < WORKERS; i++) {
    double objective = pwi_asap_objective(problem, models[i]);
    worst = objective > worst ? objective : worst;
    pwi_asap_learner_fini(&learners[i]);
  }
  pwi_graph_destroy(graph);
  return worst;
}

static void test_notify_ack_computes_what_a_serial_loop_computes(void **state) {
  (void)state;
  static const enum pwi_topology graphs[] = {PWI_TOPOLOGY_COMPLETE, PWI_TOPOLOGY_ROOT, PWI_TOPOLOGY_RING};
  struct pwi_asap_problem *problem = make();
  for (size_t i = 0; i < 3; i++) {
    struct pwi_asap_setup setup = setup_of(graphs[i], PAWL_REDUCE_NOTIFY_ACK);
    setup.is_whole = true;
    setup.rounds = 40;
    setup.slow = i == 1 ? 3 : 1; /* waiting changes nothing */
    setup.stall = 0.1;
    struct pwi_asap_outcome outcome = simulate(problem, &setup);
    assert_true(outcome.objective == compute_alone(problem, &setup));
    assert_int_equal(outcome.steps, 40 * WORKERS);
    assert_int_equal(outcome.current, outcome.expected);
  }
  pwi_asap_problem_destroy(problem);
}

/* --- figures -------------------------------------------------------------------------------------------- */

static void test_bytes_are_those_of_the_edges(void **state) {
  (void)state;
  struct pwi_asap_problem *problem = make();
  struct pwi_asap_setup setup = setup_of(PWI_TOPOLOGY_COMPLETE, PAWL_REDUCE_NOTIFY_ACK);
  setup.is_whole = true;
  setup.rounds = 20;
  setup.workers = 4;
  struct pwi_asap_outcome all = simulate(problem, &setup);
  setup.graph = PWI_TOPOLOGY_ROOT;
  struct pwi_asap_outcome root = simulate(problem, &setup);
  assert_int_equal(2 * all.bytes, 3 * root.bytes);
  assert_true(root.bytes >= 20 * 4 * 2 * FEATURES * sizeof(float));
  assert_true(root.bytes <= 20 * 4 * 2 * (FEATURES * sizeof(float) + 128));
  pwi_asap_problem_destroy(problem);
}

static void test_every_mode_reaches_the_accuracy_and_a_seed_repeats_it(void **state) {
  (void)state;
  struct pwi_asap_problem *problem = make();
  for (int mode = PAWL_REDUCE_NOTIFY_ACK; mode <= PAWL_REDUCE_ASYNC; mode++) {
    struct pwi_asap_setup setup = setup_of(PWI_TOPOLOGY_ROOT, (enum pawl_reduce_mode)mode);
    struct pwi_asap_outcome one = simulate(problem, &setup), two = simulate(problem, &setup);
    assert_true(one.is_reached && one.objective <= 1.02 * problem->optimum);
    assert_true(one.bytes == two.bytes && one.steps == two.steps && one.seconds == two.seconds);
    assert_true(one.objective == two.objective && one.used == two.used && one.current == two.current);
  }
  pwi_asap_problem_destroy(problem);
}

static void test_an_accuracy_out_of_reach_is_not_reached(void **state) {
  (void)state;
  struct pwi_asap_problem *problem = make();
  struct pwi_asap_setup setup = setup_of(PWI_TOPOLOGY_RING, PAWL_REDUCE_NOTIFY_ACK);
  setup.tolerance = 1e-9;
  setup.rounds = 20;
  struct pwi_asap_outcome outcome = simulate(problem, &setup);
  assert_false(outcome.is_reached);
  assert_int_equal(outcome.rounds, 20);
  pwi_asap_problem_destroy(problem);
}

static void test_a_slow_worker_holds_up_all_but_async(void **state) {
  (void)state;
  struct pwi_asap_problem *problem = make();
  struct pwi_asap_outcome outcomes[3];
  for (int mode = PAWL_REDUCE_NOTIFY_ACK; mode <= PAWL_REDUCE_ASYNC; mode++) {
    struct pwi_asap_setup setup = setup_of(PWI_TOPOLOGY_COMPLETE, (enum pawl_reduce_mode)mode);
    setup.slow = 5;
    setup.seconds = 0.5;
    outcomes[mode] = simulate(problem, &setup);
  }
  assert_int_equal(outcomes[0].by_current[WORKERS - 1], outcomes[0].steps);
  assert_true(outcomes[2].steps > 3 * outcomes[0].steps && outcomes[2].steps > 3 * outcomes[1].steps);
  assert_true(outcomes[2].current < outcomes[2].used);
  pwi_asap_problem_destroy(problem);
}

/* At a slow card the barrier is passed before models have arrived. */
static void test_bsp_misses_models_that_are_late(void **state) {
  (void)state;
  struct pwi_asap_problem *problem = make();
  struct pwi_asap_setup setup = setup_of(PWI_TOPOLOGY_COMPLETE, PAWL_REDUCE_BSP);
  setup.seconds = 0.3;
  setup.put_ns = 100000;
  struct pwi_asap_outcome outcome = simulate(problem, &setup);
  assert_true(outcome.used < outcome.expected);
  assert_int_equal(outcome.used, outcome.current);
  pwi_asap_problem_destroy(problem);
}

static void test_without_memory_a_run_fails_and_frees_everything(void **state) {
  (void)state;
  struct pwi_asap_problem *problem = make();
  uint64_t live = pwi_memory_counts().live;
  struct pwi_asap_setup setup = setup_of(PWI_TOPOLOGY_ROOT, PAWL_REDUCE_NOTIFY_ACK);
  setup.is_whole = true;
  setup.rounds = 2;
  setup.workers = 3;
  for (uint64_t n = 0; n < 300; n++) {
    struct pwi_asap_outcome outcome;
    char why[256];
    pwi_memory_fail_after(n);
    (void)!pwi_asap_simulate(problem, &setup, &outcome, why, sizeof why);
    assert_true(pwi_memory_fail_cancel());
    assert_int_equal(pwi_memory_counts().live, live);
  }
  pwi_asap_problem_destroy(problem);
}

/* --- pictures ------------------------------------------------------------------------------------------- */

static void test_a_picture_has_a_bar_for_each_value(void **state) {
  (void)state;
  char path[] = "/tmp/pawl-asap-XXXXXX", text[8192];
  struct pwi_asap_chart chart = {.title = "Title",
                                 .axis = "axis",
                                 .series = {"one", "two"},
                                 .series_count = 2,
                                 .groups = {"left", "right"},
                                 .values = {{1, 2}, {3, (double)__builtin_nan("")}},
                                 .group_count = 2,
                                 .digits = 1};
  int handle = mkstemp(path);
  assert_true(handle >= 0);
  assert_true(pwi_asap_draw(path, &chart));
  ssize_t size = read(handle, text, sizeof text - 1);
  assert_true(size > 0);
  text[size] = 0;
  for (const char *const *word = (const char *const[]){"Title", "axis", ">one<", ">two<", ">left<", ">right<", ">1.0<",
                                                       ">2.0<", ">3.0<", "</svg>", NULL};
       *word; word++)
    assert_non_null(strstr(text, *word));
  assert_null(strstr(text, "nan"));
  close(handle);
  unlink(path);
  assert_false(pwi_asap_draw("/no/such/folder/picture.svg", &chart));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_notify_ack_computes_what_a_serial_loop_computes),
      cmocka_unit_test(test_bytes_are_those_of_the_edges),
      cmocka_unit_test(test_every_mode_reaches_the_accuracy_and_a_seed_repeats_it),
      cmocka_unit_test(test_an_accuracy_out_of_reach_is_not_reached),
      cmocka_unit_test(test_a_slow_worker_holds_up_all_but_async),
      cmocka_unit_test(test_bsp_misses_models_that_are_late),
      cmocka_unit_test(test_without_memory_a_run_fails_and_frees_everything),
      cmocka_unit_test(test_a_picture_has_a_bar_for_each_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
