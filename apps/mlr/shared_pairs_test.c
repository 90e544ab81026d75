/* Trainings whose pairs go to servers, which add them up, against trainings in one process. */
#include "apps/mlr/shared_test.h"

static void test_workers_equal_one_process(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_SERVERS, 1, 70, 10, 1);
  check_equals(PAWL_MATRIX_SERVERS, 2, 90, 16, 1);
  check_equals(PAWL_MATRIX_SERVERS, 4, 61, 13, 0);
}

static void test_a_worker_may_have_no_rows(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_SERVERS, 3, 9, 2, 1);
  check_equals(PAWL_MATRIX_SERVERS, 6, 5, 5, 1);
}

static void test_weights_may_shrink_by_any_factor(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_SERVERS, 2, 90, 1, 1e4);
  check_equals(PAWL_MATRIX_SERVERS, 2, 60, 2, 1e15);
}

static void test_staleness_leads_to_the_same_end(void **state) {
  (void)state;
  check_staleness(PAWL_MATRIX_SERVERS, 1);
  check_staleness(PAWL_MATRIX_SERVERS, 5);
  check_staleness(PAWL_MATRIX_SERVERS, PAWL_MATRIX_ASYNC);
}

static void test_workers_with_other_rows_are_refused(void **state) {
  (void)state;
  check_other_rows(PAWL_MATRIX_SERVERS);
}

static void test_sdca_finds_the_optimum(void **state) {
  (void)state;
  check_sdca(PAWL_MATRIX_SERVERS, 1, 60, 4);
  check_sdca(PAWL_MATRIX_SERVERS, 3, 101, 4);
  check_sdca(PAWL_MATRIX_SERVERS, 2, 90, 70);
  check_sdca(PAWL_MATRIX_SERVERS, 5, 4, 3);
}

static void test_divergence_is_reported(void **state) {
  (void)state;
  check_divergence(PAWL_MATRIX_SERVERS);
}

static double servers_of(const struct pawl_matrix_costs *costs) { return costs->servers; }

static void test_bytes_are_those_of_the_model(void **state) {
  (void)state;
  check_bytes(PAWL_MATRIX_SERVERS, 2, servers_of);
  check_bytes(PAWL_MATRIX_SERVERS, 4, servers_of);
}

/* Values in shared memory are not packed, so bytes are those of a network. */
static int open_network(void **state) {
  opens_tcp = true;
  return open_cluster(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_equal_one_process),
      cmocka_unit_test(test_a_worker_may_have_no_rows),
      cmocka_unit_test(test_weights_may_shrink_by_any_factor),
      cmocka_unit_test(test_staleness_leads_to_the_same_end),
      cmocka_unit_test(test_workers_with_other_rows_are_refused),
      cmocka_unit_test(test_sdca_finds_the_optimum),
      cmocka_unit_test(test_divergence_is_reported),
      cmocka_unit_test(test_bytes_are_those_of_the_model),
  };
  return cmocka_run_group_tests_name("apps.mlr.shared_pairs", tests, open_network, close_cluster);
}
