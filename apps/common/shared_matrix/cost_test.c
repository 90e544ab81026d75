/* The model of bytes: against the engine's own sizes, the formulas of the paper, and its figures. */
#include "apps/common/shared_matrix/cost.h"

#include <math.h>

#include "apps/common/shared_matrix/options.h"
#include "base/testing.h"
#include "peer/factor/pairs.h"

static struct pawl_matrix_sharing sharing_of(const char *graph, bool forward) {
  struct pawl_matrix_sharing sharing;
  pawl_matrix_sharing_init(&sharing);
  sharing.graph = graph;
  sharing.forward = forward;
  return sharing;
}

static void test_vectors_have_the_sizes_that_the_engine_writes(void **state) {
  (void)state;
  for (int is_double = 0; is_double < 2; is_double++)
    for (uint64_t nonzeros = 0; nonzeros <= 100; nonzeros++) {
      const struct matrix_shape shape = {100, 100, is_double};
      const struct factor_shape engine = {100, 100, is_double, is_double ? FACTOR_F64 : FACTOR_F32};
      assert_int_equal(matrix_vector_bytes(&shape, 100, nonzeros), pwi_factor_vector_bytes(&engine, 100, nonzeros));
    }
}

/* Dense pairs: w P (P - 1) K (J + D) and 2 w P J D, but for words of a few bytes. */
static void test_dense_pairs_cost_what_the_paper_says(void **state) {
  (void)state;
  const double w = 4, p = 8, k = 10, j = 1000, d = 4000;
  const struct matrix_shape shape = {1000, 4000, false};
  const struct matrix_sample sample = {
      .shape = shape,
      .pairs = 80,
      .pairs_per_step = 80,
      .pair_bytes = 80 * (matrix_vector_bytes(&shape, 1000, 1000) + matrix_vector_bytes(&shape, 4000, 4000))};
  const struct pawl_matrix_sharing all = sharing_of(NULL, false);
  struct pawl_matrix_costs costs = matrix_costs(&sample, &all, 8);
  assert_true(fabs(costs.factors / (w * p * (p - 1) * k * (j + d)) - 1) < 1e-3);
  assert_true(fabs(costs.whole / (2 * w * p * j * d) - 1) < 1e-9);
  assert_true(fabs(costs.servers / (w * p * (k * (j + d) + j * d)) - 1) < 1e-3);
  assert_int_equal(pawl_matrix_cheapest(&costs), PAWL_MATRIX_FACTORS);
}

/* Many workers with large batches and a small matrix: the matrix is shorter. */
static void test_the_choice_follows_the_sizes(void **state) {
  (void)state;
  const struct matrix_shape shape = {100, 10, true};
  struct matrix_sample sample = {.shape = shape, .pairs = 1, .pairs_per_step = 64, .pair_bytes = 888};
  const struct pawl_matrix_sharing all = sharing_of("complete", false);
  struct pawl_matrix_costs one = matrix_costs(&sample, &all, 1), many = matrix_costs(&sample, &all, 16);
  assert_true(one.factors == 0);
  assert_int_equal(pawl_matrix_cheapest(&one), PAWL_MATRIX_FACTORS);
  assert_int_equal(pawl_matrix_cheapest(&many), PAWL_MATRIX_SERVERS);
  sample.pairs_per_step = 640;
  many = matrix_costs(&sample, &all, 16);
  assert_int_equal(pawl_matrix_cheapest(&many), PAWL_MATRIX_WHOLE);
  sample.pairs_per_step = 1e8; /* beyond what one push carries */
  many = matrix_costs(&sample, &all, 1);
  assert_true(isnan(many.servers));
}

/* Of sparse rows only the rows of the matrix with changes travel. */
static void test_sparse_rows_of_the_matrix_are_counted(void **state) {
  (void)state;
  struct matrix_sample sample = {.shape = {100000, 20, true},
                                 .is_sparse = true,
                                 .pairs = 10,
                                 .pairs_per_step = 10,
                                 .pair_bytes = 1000,
                                 .rows = 300};
  const struct pawl_matrix_sharing all = sharing_of(NULL, false);
  struct pawl_matrix_costs costs = matrix_costs(&sample, &all, 2);
  assert_true(costs.whole >= 2 * 300 * 160 && costs.whole < 2 * 300 * 170);
  assert_true(fabs(costs.servers - (1000 + costs.whole / 2)) < 1);
  sample.u_nonzeros = 400;
  sample.v_nonzeros = 200;
  costs = matrix_costs(&sample, &all, 2); /* 150 rows with 10 values for two workers' pairs, half of them each */
  double u = 10 * 150 / 8.0 + 400 * 8 + 300 * 1.5, v = 200 * 8; /* v goes to every arc */
  assert_true(fabs(costs.servers - (u + 8 * v) - costs.whole / 2) < 1);
  sample.u_nonzeros = sample.v_nonzeros = 0;
  sample.pairs_per_step = 5; /* steps are smaller than those of the sample */
  assert_true(fabs(matrix_costs(&sample, &all, 2).whole - costs.whole / 2) < 1);
}

static void test_a_graph_counts_if_it_forwards(void **state) {
  (void)state;
  const struct matrix_sample sample = {.shape = {10, 10, true}, .pairs = 1, .pairs_per_step = 1, .pair_bytes = 100};
  const struct pawl_matrix_sharing all = sharing_of(NULL, false), ring = sharing_of("ring", true),
                                   partial = sharing_of("ring", false);
  assert_true(matrix_costs(&sample, &ring, 5).factors == matrix_costs(&sample, &all, 5).factors);
  assert_true(isnan(matrix_costs(&sample, &partial, 5).factors));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vectors_have_the_sizes_that_the_engine_writes),
      cmocka_unit_test(test_dense_pairs_cost_what_the_paper_says),
      cmocka_unit_test(test_the_choice_follows_the_sizes),
      cmocka_unit_test(test_sparse_rows_of_the_matrix_are_counted),
      cmocka_unit_test(test_a_graph_counts_if_it_forwards),
  };
  return cmocka_run_group_tests_name("apps.common.shared_matrix.cost", tests, NULL, NULL);
}
