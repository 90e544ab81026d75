/* Softmax and the best distribution of a row: against plain formulas, and at the ends of the range of numbers. */
#include "apps/mlr/softmax.h"

#include "apps/mlr/scene_test.h"

static void test_probabilities_of_huge_scores_are_finite(void **state) {
  (void)state;
  const double scores[] = {1e300, -1e300, 1e300}, small[] = {-800, -801};
  double p[3];
  bool is_alone;
  mlr_probabilities(3, scores, 1e300 + log(2), p);
  assert_true(isfinite(mlr_log_sum(3, scores)) && p[1] == 0);
  double sum = mlr_log_sum(2, small);
  assert_true(fabs(sum - (-800 + log(1 + exp(-1)))) < 1e-10);
  assert_int_equal(mlr_best(3, scores, &is_alone), 0);
  assert_false(is_alone);
  assert_int_equal(mlr_best(2, small, &is_alone), 0);
  assert_true(is_alone);
}

static void test_entropy(void **state) {
  (void)state;
  const double even[] = {0.25, 0.25, 0.25, 0.25}, sure[] = {0, 1, 0};
  assert_true(fabs(mlr_entropy(4, even) - log(4)) < 1e-15);
  assert_true(mlr_entropy(3, sure) == 0);
}

#define MOST 40

static double merit(size_t classes, const double *scores, const double *before, double stiffness, const double *q) {
  double sum = mlr_entropy(classes, q);
  for (size_t j = 0; j < classes; j++) sum += q[j] * scores[j] - stiffness / 2 * pow(q[j] - before[j], 2);
  return sum;
}

/* The optimality conditions: log q + stiffness q - scores - stiffness before is the same for all classes with a share that
 * can be seen; and no random distribution is better. */
static void check_dual(struct apps_random *random, size_t classes, double spread, double stiffness) {
  double scores[MOST], before[MOST], q[MOST], work[2 * MOST], other[MOST], sum = 0, total = 0;
  for (size_t j = 0; j < classes; j++) {
    scores[j] = spread * normal_of(random);
    sum += before[j] = apps_random_below(random, 2) ? exp(4 * normal_of(random)) : 0;
  }
  if (sum == 0) sum = before[0] = 1;
  for (size_t j = 0; j < classes; j++) before[j] /= sum;
  mlr_best_dual(classes, scores, before, stiffness, work, q);
  double low = INFINITY, high = -INFINITY, size = 1;
  for (size_t j = 0; j < classes; j++) {
    assert_true(q[j] >= 0 && q[j] <= 1);
    total += q[j];
    if (q[j] < 1e-200) continue;
    double level = log(q[j]) + stiffness * (q[j] - before[j]) - scores[j];
    size = fmax(size, fabs(scores[j]) + stiffness);
    low = fmin(low, level);
    high = fmax(high, level);
  }
  assert_true(fabs(total - 1) < 1e-12);
  if (!(high - low <= 1e-10 * size)) fail_msg("%zu classes, stiffness %g: %g", classes, stiffness, high - low);
  double best = merit(classes, scores, before, stiffness, q);
  for (int n = 0; n < 20; n++) {
    double share = unit_of(random);
    size_t to = (size_t)apps_random_below(random, classes);
    for (size_t j = 0; j < classes; j++) other[j] = (1 - share) * q[j] + (j == to ? share : 0);
    assert_true(merit(classes, scores, before, stiffness, other) <= best + 1e-10 * size);
  }
}

static void test_the_best_dual_satisfies_the_optimality_conditions(void **state) {
  (void)state;
  struct apps_random random = apps_random_of(1, 1, 1, 1);
  const double stiffnesses[] = {0, 1e-12, 1e-3, 0.5, 1, 30, 1e3, 1e6};
  const double spreads[] = {0, 0.1, 3, 100};
  for (size_t s = 0; s < sizeof stiffnesses / sizeof *stiffnesses; s++)
    for (size_t t = 0; t < sizeof spreads / sizeof *spreads; t++)
      for (int n = 0; n < 50; n++)
        check_dual(&random, 2 + (size_t)apps_random_below(&random, MOST - 2), spreads[t], stiffnesses[s]);
}

static void test_at_the_optimum_the_dual_stays(void **state) {
  (void)state;
  const double scores[] = {1, 2, -3, 0.5};
  double p[4], q[4], work[8];
  mlr_probabilities(4, scores, mlr_log_sum(4, scores), p);
  mlr_best_dual(4, scores, p, 77, work, q);
  for (size_t j = 0; j < 4; j++) assert_true(fabs(p[j] - q[j]) < 1e-14);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_probabilities_of_huge_scores_are_finite),
      cmocka_unit_test(test_entropy),
      cmocka_unit_test(test_the_best_dual_satisfies_the_optimality_conditions),
      cmocka_unit_test(test_at_the_optimum_the_dual_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
