/* Trainings whose weights lie on servers, against trainings in one process. */
#include "apps/mlr/shared_test.h"

static void test_workers_equal_one_process(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_WHOLE, 1, 70, 10, 1);
  check_equals(PAWL_MATRIX_WHOLE, 2, 90, 16, 1);
  check_equals(PAWL_MATRIX_WHOLE, 4, 61, 13, 0);
}

static void test_a_worker_may_have_no_rows(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_WHOLE, 3, 9, 2, 1);
  check_equals(PAWL_MATRIX_WHOLE, 6, 5, 5, 1);
}

static void test_weights_may_shrink_by_any_factor(void **state) {
  (void)state;
  check_equals(PAWL_MATRIX_WHOLE, 2, 90, 1, 1e4);
  check_equals(PAWL_MATRIX_WHOLE, 2, 60, 2, 1e15);
}

static void test_staleness_leads_to_the_same_end(void **state) {
  (void)state;
  check_staleness(PAWL_MATRIX_WHOLE, 1);
  check_staleness(PAWL_MATRIX_WHOLE, 5);
  check_staleness(PAWL_MATRIX_WHOLE, PAWL_MATRIX_ASYNC);
}

static void test_workers_with_other_rows_are_refused(void **state) {
  (void)state;
  check_other_rows(PAWL_MATRIX_WHOLE);
}

static void test_sdca_finds_the_optimum(void **state) {
  (void)state;
  check_sdca(PAWL_MATRIX_WHOLE, 1, 60, 4);
  check_sdca(PAWL_MATRIX_WHOLE, 3, 101, 4);
  check_sdca(PAWL_MATRIX_WHOLE, 2, 90, 70);
  check_sdca(PAWL_MATRIX_WHOLE, 5, 4, 3);
}

static void test_divergence_is_reported(void **state) {
  (void)state;
  check_divergence(PAWL_MATRIX_WHOLE);
}

static double whole_of(const struct pawl_matrix_costs *costs) { return costs->whole; }

static void test_bytes_are_those_of_the_model(void **state) {
  (void)state;
  check_bytes(PAWL_MATRIX_WHOLE, 2, whole_of);
  check_bytes(PAWL_MATRIX_WHOLE, 4, whole_of);
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
  return cmocka_run_group_tests_name("apps.mlr.shared_servers", tests, open_cluster, close_cluster);
}
