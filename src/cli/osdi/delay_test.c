/* The numbers of figures 10 and 13 of OSDI'14: gradients against differences, products against sums, and the effect
 * of the bound. */
#include <math.h>

#include "base/memory.h"
#include "base/testing.h"
#include "cli/osdi/wait.h"

static const struct pwi_wait_shape small = {
    .workers = 3, .blocks = 8, .features = 64, .examples = 600, .per_example = 8, .l1 = 1, .rate = 0.6, .seed = 5};

static struct pwi_wait_problem *make(void) {
  struct pwi_wait_problem *problem;
  assert_int_equal(pwi_wait_problem_create(&small, &problem), PAWL_OK);
  return problem;
}

/* The objective without its l1 part. */
static double smooth(const struct pwi_wait_problem *problem, const double *weights) {
  double sum = pwi_wait_objective(problem, weights);
  for (uint32_t f = 0; f < small.features; f++) sum -= small.l1 * fabs(weights[f]);
  return sum;
}

static void test_the_shares_of_the_gradient_add_up_to_the_slope_of_the_objective(void **state) {
  (void)state;
  struct pwi_wait_problem *problem = make();
  uint32_t size = pwi_wait_block_size(&small);
  double weights[64] = {0}, sums[2 * 8] = {0}, pairs[2 * 8], block[8];
  for (uint32_t i = 0; i < size; i++) block[i] = 0.1 * (i + 1) - 0.4;
  for (uint32_t r = 0; r < small.workers; r++) {
    double own[64] = {0}, products[200] = {0};
    pwi_wait_update(problem, r, 3, block, own, products);
    pwi_wait_gradient(problem, r, 3, products, pairs);
    for (uint32_t i = 0; i < 2 * size; i++) sums[i] += pairs[i];
    memcpy(weights, own, sizeof weights);
  }
  for (uint32_t i = 0; i < size; i++) {
    double *at = &weights[3 * size + i], h = 1e-4, before, after, here = smooth(problem, weights);
    assert_true(*at == block[i]);
    *at += h;
    after = smooth(problem, weights);
    *at -= 2 * h;
    before = smooth(problem, weights);
    *at += h;
    assert_true(fabs((after - before) / (2 * h) - sums[2 * i]) < 1e-4);
    assert_true((after - 2 * here + before) / (h * h) <= sums[2 * i + 1] * (1 + 1e-4)); /* u is a bound */
  }
  pwi_wait_problem_destroy(problem);
}

static void test_with_a_bound_workers_wait_less_and_all_reach_the_target(void **state) {
  (void)state;
  struct pwi_wait_problem *problem = make();
  struct pwi_wait_figures none, some, again;
  char why[256];
  assert_int_equal(pwi_wait_run(problem, 0, &none, why, sizeof why), PAWL_OK);
  assert_int_equal(pwi_wait_run(problem, 4, &some, why, sizeof why), PAWL_OK);
  assert_int_equal(pwi_wait_run(problem, 4, &again, why, sizeof why), PAWL_OK);
  assert_true(none.is_reached && some.is_reached);
  assert_true(none.objective <= problem->target && some.objective <= problem->target);
  assert_true(none.wait_pct > 30 && some.wait_pct < none.wait_pct / 2);
  assert_true(some.total_s < none.total_s);
  assert_true(some.total_s == again.total_s && some.objective == again.objective); /* time is virtual */
  pwi_wait_problem_destroy(problem);
}

/* The policy is told neither the bound nor that steps are so long that a bound of 16 does not
 * reach the target at all. */
static void test_an_adaptive_bound_waits_less_than_none(void **state) {
  (void)state;
  static const double rates[] = {0.5, 0.7}, most[] = {0.9, 1.3}; /* of the time without delay */
  struct pwi_wait_shape shape = {
      .workers = 4, .blocks = 24, .features = 768, .examples = 8000, .per_example = 30, .l1 = 2, .seed = 1};
  for (size_t k = 0; k < 2; k++) {
    struct pwi_wait_problem *problem;
    struct pwi_wait_figures none, adaptive, much;
    char why[256];
    double computed = 0;
    shape.rate = rates[k];
    assert_int_equal(pwi_wait_problem_create(&shape, &problem), PAWL_OK);
    assert_int_equal(pwi_wait_run(problem, 0, &none, why, sizeof why), PAWL_OK);
    assert_int_equal(pwi_wait_run(problem, PWI_WAIT_ADAPTIVE, &adaptive, why, sizeof why), PAWL_OK);
    assert_int_equal(pwi_wait_run(problem, 16, &much, why, sizeof why), PAWL_OK);
    printf("rate %g: %.1f s without delay, %.1f s with an adaptive bound\n", rates[k], none.total_s, adaptive.total_s);
    assert_false(much.is_reached);
    assert_true(adaptive.is_reached && adaptive.objective <= problem->target);
    assert_true(adaptive.wait_pct < none.wait_pct && adaptive.bound <= 16);
    assert_true(adaptive.total_s < most[k] * none.total_s);
    for (uint32_t i = 0; i < shape.workers; i++) {
      assert_true(adaptive.computed_s[i] > 0 && adaptive.computed_s[i] <= adaptive.total_s);
      computed += adaptive.computed_s[i] / shape.workers;
    }
    assert_true(fabs(computed - adaptive.compute_s) < 1e-6);
    pwi_wait_problem_destroy(problem);
  }
}

/* System A solves the same problem: it ends at the objective that steps block by block reach. */
static void test_lbfgs_reaches_the_target_and_waits_less_than_blocks_without_delay(void **state) {
  (void)state;
  struct pwi_wait_problem *problem = make();
  struct pwi_wait_figures alone, blocks;
  char why[256];
  assert_int_equal(pwi_wait_lbfgs(problem, &alone), PAWL_OK);
  assert_int_equal(pwi_wait_run(problem, 0, &blocks, why, sizeof why), PAWL_OK);
  assert_true(alone.is_reached && alone.objective <= problem->target);
  assert_true(alone.objective > problem->target / 1.01); /* no objective is far below that of the reference */
  assert_true(alone.iterations > 5 && alone.iterations < 200);
  assert_true(alone.wait_pct > 0 && alone.wait_pct < blocks.wait_pct);
  pwi_wait_problem_destroy(problem);
}

static void test_without_memory_there_is_no_problem_and_no_run(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  struct pwi_wait_shape tiny = small;
  struct pwi_wait_problem *problem = NULL;
  bool has_failed = true;
  tiny.examples = 30;
  for (uint64_t n = 0; has_failed; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_wait_problem_create(&tiny, &problem);
    has_failed = pwi_memory_fail_cancel();
    if (status) assert_int_equal(pwi_memory_counts().live, live);
    if (!status && has_failed) pwi_wait_problem_destroy(problem);
  }
  uint64_t with_it = pwi_memory_counts().live;
  for (uint64_t n = 0; n < 200; n += 7) {
    struct pwi_wait_figures figures;
    char why[256];
    pwi_memory_fail_after(n);
    (void)!pwi_wait_run(problem, 1, &figures, why, sizeof why);
    assert_true(pwi_memory_fail_cancel());
    assert_int_equal(pwi_memory_counts().live, with_it);
  }
  has_failed = true;
  for (uint64_t n = 0; has_failed; n++) {
    struct pwi_wait_figures figures;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_wait_lbfgs(problem, &figures);
    has_failed = pwi_memory_fail_cancel();
    assert_true(!status || status == PAWL_NO_MEMORY);
    assert_int_equal(pwi_memory_counts().live, with_it);
  }
  pwi_wait_problem_destroy(problem);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_shares_of_the_gradient_add_up_to_the_slope_of_the_objective),
      cmocka_unit_test(test_with_a_bound_workers_wait_less_and_all_reach_the_target),
      cmocka_unit_test(test_an_adaptive_bound_waits_less_than_none),
      cmocka_unit_test(test_lbfgs_reaches_the_target_and_waits_less_than_blocks_without_delay),
      cmocka_unit_test(test_without_memory_there_is_no_problem_and_no_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
