/* L-BFGS on functions whose least is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/inside.h"
#include "apps/linear/train/lbfgs.h"

enum { COUNT = 30 };

/* f = 1/2 sum c_i (x_i - i)^2, with curvatures from 1 to `spread`. */
static double curvature(size_t i, double spread) { return pow(spread, (double)i / (COUNT - 1)); }

static void gradient_at(const double *x, double spread, double *out) {
  for (size_t i = 0; i < COUNT; i++) out[i] = curvature(i, spread) * (x[i] - (double)i);
}

/* Minimises with exact searches along each direction. Returns the norm of the last gradient as a part of the
 * first. */
static double minimise(double spread, int rounds) {
  struct linear_lbfgs lbfgs;
  double x[COUNT] = {0}, g[COUNT], after[COUNT], d[COUNT];
  assert_int_equal(linear_lbfgs_init(&lbfgs, COUNT), PAWL_OK);
  gradient_at(x, spread, g);
  double first = linear_dot(g, g, COUNT);
  for (int round = 0; round < rounds && linear_dot(g, g, COUNT) > 1e-30 * first; round++) {
    linear_lbfgs_direction(&lbfgs, g, 1 / spread, d);
    double slope = linear_dot(g, d, COUNT), bend = 0;
    assert_true(slope < 0); /* always downhill */
    for (size_t i = 0; i < COUNT; i++) bend += curvature(i, spread) * d[i] * d[i];
    for (size_t i = 0; i < COUNT; i++) x[i] += d[i] *= -slope / bend;
    gradient_at(x, spread, after);
    for (size_t i = 0; i < COUNT; i++) g[i] = after[i] - g[i];
    linear_lbfgs_add(&lbfgs, d, g);
    memcpy(g, after, sizeof g);
  }
  linear_lbfgs_fini(&lbfgs);
  return sqrt(linear_dot(g, g, COUNT) / first);
}

static void test_without_pairs_it_goes_down_the_gradient(void **state) {
  (void)state;
  struct linear_lbfgs lbfgs;
  double g[COUNT], d[COUNT];
  assert_int_equal(linear_lbfgs_init(&lbfgs, COUNT), PAWL_OK);
  for (size_t i = 0; i < COUNT; i++) g[i] = (double)i - 7;
  linear_lbfgs_direction(&lbfgs, g, 0.25, d);
  for (size_t i = 0; i < COUNT; i++) assert_true(d[i] == -0.25 * g[i]);
  linear_lbfgs_fini(&lbfgs);
}

static void test_one_pair_gives_the_secant(void **state) {
  (void)state;
  struct linear_lbfgs lbfgs;
  double s[COUNT], y[COUNT], d[COUNT];
  uint64_t random = 11;
  assert_int_equal(linear_lbfgs_init(&lbfgs, COUNT), PAWL_OK);
  for (size_t i = 0; i < COUNT; i++) {
    s[i] = (double)(linear_draw(&random) >> 11) * 0x1p-53 - 0.5;
    y[i] = curvature(i, 50) * s[i];
  }
  linear_lbfgs_add(&lbfgs, s, y);
  linear_lbfgs_direction(&lbfgs, y, 1, d); /* B y = s */
  for (size_t i = 0; i < COUNT; i++) assert_true(fabs(d[i] + s[i]) < 1e-12);
  linear_lbfgs_fini(&lbfgs);
}

/* With exact searches it is the method of conjugate gradients, which needs as many steps as there are
 * different curvatures; without its pairs it would be steepest descent. */
static void test_it_is_far_faster_than_the_gradient_alone(void **state) {
  (void)state;
  assert_true(minimise(10, 25) < 1e-8);
  assert_true(minimise(1000, 3 * COUNT) < 1e-8);
}

static void test_a_pair_without_curvature_is_left_out(void **state) {
  (void)state;
  struct linear_lbfgs lbfgs;
  double s[COUNT], y[COUNT], zero[COUNT] = {0};
  assert_int_equal(linear_lbfgs_init(&lbfgs, COUNT), PAWL_OK);
  for (size_t i = 0; i < COUNT; i++) s[i] = 1, y[i] = -1;
  linear_lbfgs_add(&lbfgs, s, y);
  linear_lbfgs_add(&lbfgs, zero, zero);
  linear_lbfgs_add(&lbfgs, s, zero);
  y[3] = NAN;
  linear_lbfgs_add(&lbfgs, s, y);
  assert_int_equal(lbfgs.pairs, 0);
  linear_lbfgs_fini(&lbfgs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_pairs_it_goes_down_the_gradient),
      cmocka_unit_test(test_one_pair_gives_the_secant),
      cmocka_unit_test(test_it_is_far_faster_than_the_gradient_alone),
      cmocka_unit_test(test_a_pair_without_curvature_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
