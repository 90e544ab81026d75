/* Quadratics with a penalty whose least is known, or is checked by its own conditions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/inside.h"
#include "apps/linear/train/quadratic.h"

enum { MOST = 24 };

static double hessian[MOST * MOST], g[MOST], w[MOST], step[MOST];

/* H = X' X of as many random rows as are asked for: fewer rows than columns leave directions without
 * curvature. */
static void draw(size_t count, size_t rows, uint64_t seed, double spread) {
  uint64_t random = seed;
  memset(hessian, 0, sizeof hessian);
  for (size_t i = 0; i < rows; i++) {
    double x[MOST];
    for (size_t j = 0; j < count; j++)
      x[j] = ((double)(linear_draw(&random) >> 11) * 0x1p-53 - 0.5) * pow(10, spread * (double)j / (double)count);
    for (size_t j = 0; j < count; j++)
      for (size_t k = 0; k < count; k++) hessian[j * count + k] += x[j] * x[k];
  }
  for (size_t j = 0; j < count; j++) {
    double sum = 0; /* in the range of H, so that there is a least */
    for (size_t k = 0; k < count; k++) sum += hessian[j * count + k] * (k % 3 ? -0.5 : 1);
    g[j] = sum;
    w[j] = j % 4 == 1 ? 0.5 : 0;
  }
}

/* Of v = w + step: |slope| of each variable beyond what the penalty holds, as a part of the first one. */
static void check(size_t count, double l1, double l2) {
  struct linear_quadratic quadratic = {count, hessian, g, w, l1, l2, 0};
  double fall = 0, first = 0, most = 0;
  assert_int_equal(linear_quadratic_solve(&quadratic, step, &fall), PAWL_OK);
  for (size_t j = 0; j < count; j++) {
    double is_penalised = j + 1 < count, v = w[j] + step[j], slope = g[j] + is_penalised * l2 * v;
    for (size_t k = 0; k < count; k++) slope += hessian[j * count + k] * step[k];
    double held = is_penalised * l1, off = v != 0 ? fabs(slope + (v > 0 ? held : -held)) : fmax(0, fabs(slope) - held);
    first = fmax(first, fabs(g[j]));
    most = fmax(most, off);
  }
  if (!(most <= 1e-5 * first)) fail_msg("%g is left of %g", most, first);
  assert_true(fall >= 0);
}

static void test_the_optimality_conditions_hold_at_the_solution(void **state) {
  (void)state;
  static const double penalties[][2] = {{0, 1}, {0.1, 0}, {0.3, 0.2}, {5, 0}, {0, 1e-6}};
  for (uint64_t seed = 1; seed <= 40; seed++)
    for (size_t p = 0; p < 5; p++) {
      size_t count = 2 + seed % (MOST - 2);
      draw(count, seed % 3 ? 3 * count : count / 2 + 1, seed, seed % 4 ? 0 : 3);
      check(count, penalties[p][0], penalties[p][1]);
    }
}

static void test_a_weight_without_curvature_goes_to_zero_if_it_is_penalised(void **state) {
  (void)state;
  memset(hessian, 0, sizeof hessian);
  hessian[4] = hessian[8] = 1; /* of three variables: the first has none */
  g[0] = g[1] = g[2] = 0;
  w[0] = 2;
  w[1] = w[2] = 0;
  struct linear_quadratic quadratic = {3, hessian, g, w, 0.1, 0, 0};
  double fall;
  assert_int_equal(linear_quadratic_solve(&quadratic, step, &fall), PAWL_OK);
  assert_true(step[0] == -2 && fabs(fall - 0.2) < 1e-12);
  quadratic.l1 = 0;
  assert_int_equal(linear_quadratic_solve(&quadratic, step, &fall), PAWL_OK);
  assert_true(step[0] == 0 && fall == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_optimality_conditions_hold_at_the_solution),
      cmocka_unit_test(test_a_weight_without_curvature_goes_to_zero_if_it_is_penalised),
  };
  return cmocka_run_group_tests_name("apps.linear.train.quadratic", tests, NULL, NULL);
}
