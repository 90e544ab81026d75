/* Trainings by workers that send pairs to one another, against trainings in one process. */
#include <unistd.h>

#include "apps/mlr/shared_test.h"

static int open_peers(void **state) {
  opens_peers = true;
  return open_cluster(state);
}

static void test_workers_equal_one_process(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_FACTORS, 1, 70, 10, 1);
  check_equals(PAWL_MATRIX_FACTORS, 2, 90, 16, 1);
  check_equals(PAWL_MATRIX_FACTORS, 4, 61, 13, 0);
}

/* Some workers have no row of a batch, and there are more workers than rows. */
static void test_a_worker_may_have_no_rows(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_FACTORS, 3, 9, 2, 1);
  check_equals(PAWL_MATRIX_FACTORS, 6, 5, 5, 1);
}

/* The factor of the weights would be 0 after some steps of such a penalty. */
static void test_weights_may_shrink_by_any_factor(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_FACTORS, 2, 90, 1, 1e4);
  check_equals(PAWL_MATRIX_FACTORS, 2, 60, 2, 1e15);
}

static void test_all_workers_have_the_same_bits(void **state) {
  (void)state;
  static const struct {
    const char *graph;
    bool forward;
    uint32_t staleness;
  } ways[] = {{NULL, false, 0}, {"ring", true, 0}, {NULL, false, 3}, {"root", true, 2}};
  struct pawl_mlr_rows *rows = make_rows(120, 5, 10);
  struct pawl_mlr_options options = options_of(4, 12);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    struct pawl_matrix_sharing sharing = sharing_of(PAWL_MATRIX_FACTORS, 4);
    sharing.graph = ways[i].graph;
    sharing.forward = ways[i].forward;
    sharing.staleness = ways[i].staleness;
    struct outcome shared = train_shared(rows, &sharing, &options);
    if (shared.status) fail_msg("%zu: %s", i, shared.error);
    if (ways[i].staleness == 0 && !ways[i].graph) {
      assert_true(shared.shared.is_identical);
      for (size_t k = 0; k < 4; k++)
        assert_true(shared.shared.each[k].hash == shared.shared.each[0].hash && shared.shared.each[k].hash != 0);
    }
    assert_int_equal(shared.shared.steps, 40);
    forget(&shared);
  }
  pawl_mlr_rows_destroy(rows);
}

/* Without forwarding, each worker has the updates of its in-neighbours only, and says so. */
static void test_matrices_differ_without_forwarding(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_rows(120, 5, 10);
  struct pawl_mlr_options options = options_of(3, 12);
  struct pawl_matrix_sharing sharing = sharing_of(PAWL_MATRIX_FACTORS, 4);
  sharing.graph = "ring";
  struct outcome shared = train_shared(rows, &sharing, &options);
  if (shared.status) fail_msg("%s", shared.error);
  assert_false(shared.shared.is_identical);
  assert_true(shared.result.objective < 120 * log(5));
  forget(&shared);
  pawl_mlr_rows_destroy(rows);
}

static void test_staleness_leads_to_the_same_end(void **state) {
  (void)state;
  check_staleness(PAWL_MATRIX_FACTORS, 1);
  check_staleness(PAWL_MATRIX_FACTORS, 5);
  check_staleness(PAWL_MATRIX_FACTORS, PAWL_MATRIX_ASYNC);
}

static bool stops;
static void stop_after_four(void *context, const struct pawl_mlr_progress *progress) {
  (void)context;
  stops = progress->epoch == 4;
}
static bool is_stopping(void *context) {
  (void)context;
  return stops;
}

static void test_a_training_goes_on_from_a_checkpoint(void **state) {
  (void)state;
  char path[128];
  struct pawl_mlr_rows *rows = make_rows(80, 4, 12);
  struct pawl_mlr_options options = options_of(6, 10);
  struct pawl_matrix_sharing sharing = sharing_of(PAWL_MATRIX_FACTORS, 2);
  struct outcome whole = train_shared(rows, &sharing, &options);
  snprintf(path, sizeof path, "%s/state", folder);
  options.checkpoint = path;
  options.progress = stop_after_four;
  options.stopping = is_stopping;
  struct outcome first = train_shared(rows, &sharing, &options);
  if (first.status) fail_msg("%s", first.error);
  assert_string_equal(first.result.why, "interrupted");
  options.resume = true;
  stops = false;
  sharing.workers = 3;
  struct outcome resumed = train_shared(rows, &sharing, &options);
  assert_int_equal(resumed.result.resumed, 4);
  assert_true(distance(&whole, &resumed) < CLOSE);
  forget(&whole), forget(&first), forget(&resumed);
  pawl_mlr_rows_destroy(rows);
}

static void test_workers_with_other_rows_are_refused(void **state) {
  (void)state;
  check_other_rows(PAWL_MATRIX_FACTORS);
}

static void test_sdca_finds_the_optimum(void **state) {
  (void)state;
  check_sdca(PAWL_MATRIX_FACTORS, 1, 60, 4);
  check_sdca(PAWL_MATRIX_FACTORS, 3, 101, 4);
  check_sdca(PAWL_MATRIX_FACTORS, 2, 90, 70);
  check_sdca(PAWL_MATRIX_FACTORS, 5, 4, 3);
}

static void test_sdca_refuses_what_it_cannot_do(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_rows(20, 3, 5);
  for (int i = 0; i < 3; i++) {
    struct pawl_mlr_options options = options_of(5, 0);
    struct pawl_matrix_sharing sharing = sharing_of(PAWL_MATRIX_FACTORS, 1);
    struct outcome shared = {.model = NULL};
    options.method = PAWL_MLR_SDCA;
    options.rate = 0;
    if (i == 0) sharing.staleness = 1;
    if (i == 1) sharing.graph = "ring";
    if (i == 2) options.checkpoint = "state";
    shared.status = pawl_mlr_train_shared(session, &sharing, rows, NULL, &options, &shared.model, &shared.result,
                                          &shared.shared, shared.error);
    assert_int_equal(shared.status, PAWL_INVALID);
    assert_non_null(strstr(shared.error, "use sgd"));
    assert_null(shared.model);
  }
  pawl_mlr_rows_destroy(rows);
}

static void test_divergence_is_reported(void **state) {
  (void)state;
  check_divergence(PAWL_MATRIX_FACTORS);
}

static double factors_of(const struct pawl_matrix_costs *costs) { return costs->factors; }

static void test_bytes_are_those_of_the_model(void **state) {
  (void)state;
  check_bytes(PAWL_MATRIX_FACTORS, 2, factors_of);
  check_bytes(PAWL_MATRIX_FACTORS, 4, factors_of);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_equal_one_process),
      cmocka_unit_test(test_a_worker_may_have_no_rows),
      cmocka_unit_test(test_weights_may_shrink_by_any_factor),
      cmocka_unit_test(test_all_workers_have_the_same_bits),
      cmocka_unit_test(test_matrices_differ_without_forwarding),
      cmocka_unit_test(test_staleness_leads_to_the_same_end),
      cmocka_unit_test(test_a_training_goes_on_from_a_checkpoint),
      cmocka_unit_test(test_workers_with_other_rows_are_refused),
      cmocka_unit_test(test_sdca_finds_the_optimum),
      cmocka_unit_test(test_sdca_refuses_what_it_cannot_do),
      cmocka_unit_test(test_divergence_is_reported),
      cmocka_unit_test(test_bytes_are_those_of_the_model),
  };
  return cmocka_run_group_tests_name("apps.mlr.shared_factors", tests, open_peers, close_cluster);
}
