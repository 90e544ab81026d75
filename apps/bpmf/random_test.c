/* Random numbers have the moments and the tails of their distributions. Seeds are fixed, so that a test that passes
 * passes always. */
#include "apps/bpmf/random.h"

#include <math.h>

#include "base/testing.h"

#define DRAWS 2000000

/* Within four standard deviations of a mean over DRAWS numbers of this variance. */
static void assert_near(double found, double wanted, double variance) {
  double bound = 4 * sqrt(variance / DRAWS);
  if (fabs(found - wanted) > bound) fail_msg("%.6f is not within %.6f of %.6f", found, bound, wanted);
}

static void test_normal_numbers_have_the_moments_of_the_normal_distribution(void **state) {
  (void)state;
  struct apps_random random = bpmf_random_of(1, BPMF_FOR_ROWS, 0, 0, 0);
  double sums[7] = {0}, beyond = 0, above = 0;
  bpmf_random_prepare();
  for (int i = 0; i < DRAWS; i++) {
    double x = bpmf_normal(&random), power = 1;
    for (int k = 1; k <= 6; k++) sums[k] += (power *= x) / DRAWS;
    beyond += (fabs(x) > 3.442619855899) / (double)DRAWS; /* in the tail of the ziggurat */
    above += (x > 1) / (double)DRAWS;
  }
  assert_near(sums[1], 0, 1);
  assert_near(sums[2], 1, 2);
  assert_near(sums[3], 0, 15);
  assert_near(sums[4], 3, 96);
  assert_near(sums[5], 0, 945);
  assert_near(sums[6], 15, 10170);
  assert_near(beyond, erfc(3.442619855899 / sqrt(2)), erfc(3.442619855899 / sqrt(2)));
  assert_near(above, 0.5 * erfc(1 / sqrt(2)), 0.14);
}

static void check_gamma(double shape) {
  struct apps_random random = bpmf_random_of(2, BPMF_FOR_HYPER, 0, 0, (uint64_t)(100 * shape));
  double sum = 0, squares = 0;
  for (int i = 0; i < DRAWS / 4; i++) {
    double x = bpmf_gamma(&random, shape);
    assert_true(x >= 0);
    sum += x / (DRAWS / 4);
    squares += x * x / (DRAWS / 4);
  }
  assert_near(sum, shape, 4 * shape);
  /* the fourth moment is shape (shape + 1) (shape + 2) (shape + 3) */
  double second = shape * (shape + 1);
  assert_near(squares, second, 4 * second * ((shape + 2) * (shape + 3) - second));
}

static void test_gamma_numbers_have_the_moments_of_the_gamma_distribution(void **state) {
  (void)state;
  bpmf_random_prepare();
  check_gamma(0.5);
  check_gamma(1);
  check_gamma(1.5);
  check_gamma(20);
  check_gamma(5000);
}

/* Streams of neighbours must not resemble one another: the correlation of their first numbers is that of chance. */
static void test_streams_of_neighbours_are_independent(void **state) {
  (void)state;
  double across_rows = 0, across_iterations = 0, across_sides = 0;
  enum { ROWS = 200000 };
  bpmf_random_prepare();
  for (uint64_t row = 0; row < ROWS; row++) {
    struct apps_random here = bpmf_random_of(1, BPMF_FOR_ROWS, 0, 5, row),
                       next = bpmf_random_of(1, BPMF_FOR_ROWS, 0, 5, row + 1),
                       later = bpmf_random_of(1, BPMF_FOR_ROWS, 0, 6, row),
                       other = bpmf_random_of(1, BPMF_FOR_ROWS, 1, 5, row);
    double x = bpmf_normal(&here);
    across_rows += x * bpmf_normal(&next) / ROWS;
    across_iterations += x * bpmf_normal(&later) / ROWS;
    across_sides += x * bpmf_normal(&other) / ROWS;
  }
  assert_true(fabs(across_rows) < 4 / sqrt(ROWS));
  assert_true(fabs(across_iterations) < 4 / sqrt(ROWS));
  assert_true(fabs(across_sides) < 4 / sqrt(ROWS));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_normal_numbers_have_the_moments_of_the_normal_distribution),
      cmocka_unit_test(test_gamma_numbers_have_the_moments_of_the_gamma_distribution),
      cmocka_unit_test(test_streams_of_neighbours_are_independent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
