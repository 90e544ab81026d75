/* Proximal operators against their definition: no other matrix has a smaller step * h(V) + |V - W|^2 / 2. */
#include "base/testing.h"

#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "peer/factor/prox.h"

#define MANY 64

static struct pwi_random drawn;

static void run(const struct factor_prox *prox, size_t rows, size_t columns, double step, double *matrix) {
  double *memory;
  assert_int_equal(pwi_factor_prox_memory(prox->kind, rows, columns, &memory), PAWL_OK);
  assert_int_equal(pwi_factor_prox(prox, rows, columns, true, step, memory, matrix), PAWL_OK);
  pwi_free(memory);
}

static double norm_of_column(const double *matrix, size_t rows, size_t columns, size_t column) {
  double sum = 0;
  for (size_t i = 0; i < rows; i++) sum += matrix[i * columns + column] * matrix[i * columns + column];
  return sqrt(sum);
}

/* h, without the step; the trace norm has a test of its own. */
static double penalty(const struct factor_prox *prox, const double *matrix, size_t rows, size_t columns) {
  double sum = 0;
  for (size_t i = 0; i < rows * columns; i++) {
    double value = matrix[i];
    if (prox->kind == PAWL_FACTOR_L1) sum += prox->weight * fabs(value);
    if (prox->kind == PAWL_FACTOR_L2) sum += prox->weight / 2 * value * value;
    if (prox->kind == PAWL_FACTOR_ELASTIC_NET) sum += prox->weight * fabs(value) + prox->weight2 / 2 * value * value;
    if (prox->kind == PAWL_FACTOR_NONNEGATIVE && value < 0) return (double)INFINITY;
  }
  for (size_t j = 0; prox->kind == PAWL_FACTOR_UNIT_COLUMNS && j < columns; j++)
    if (norm_of_column(matrix, rows, columns, j) > 1 + 1e-12) return (double)INFINITY;
  return sum;
}

static double distance(const double *a, const double *b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / 2;
}

static void test_nothing_near_the_result_is_better(void **state) {
  static const enum pawl_factor_prox kinds[] = {PAWL_FACTOR_NO_PROX,     PAWL_FACTOR_L1,
                                                PAWL_FACTOR_L2,          PAWL_FACTOR_ELASTIC_NET,
                                                PAWL_FACTOR_NONNEGATIVE, PAWL_FACTOR_UNIT_COLUMNS};
  (void)state;
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
    for (int tries = 0; tries < 30; tries++) {
      const struct factor_prox prox = {.kind = kinds[kind], .weight = 0.7, .weight2 = 1.3};
      size_t rows = 1 + pwi_random_below(&drawn, 8), columns = 1 + pwi_random_below(&drawn, 8), count = rows * columns;
      double before[MANY], after[MANY], other[MANY], step = pwi_random_unit(&drawn) * 2;
      for (size_t i = 0; i < count; i++) before[i] = after[i] = pwi_random_normal(&drawn);
      run(&prox, rows, columns, step, after);
      double best = step * penalty(&prox, after, rows, columns) + distance(before, after, count);
      assert_true(isfinite(best));
      for (int k = 0; k < 50; k++) {
        double width = k % 2 ? 1e-3 : 0.3;
        for (size_t i = 0; i < count; i++) other[i] = after[i] + width * pwi_random_normal(&drawn);
        assert_true(step * penalty(&prox, other, rows, columns) + distance(before, other, count) >= best - 1e-12);
      }
    }
}

/* A product of matrices with orthonormal columns, and given singular values between them. */
static void orthonormal(double *matrix, size_t rows, size_t columns) {
  for (size_t j = 0; j < columns; j++) {
    for (size_t i = 0; i < rows; i++) matrix[i * columns + j] = pwi_random_normal(&drawn);
    for (int twice = 0; twice < 2; twice++)
      for (size_t k = 0; k < j; k++) {
        double product = 0;
        for (size_t i = 0; i < rows; i++) product += matrix[i * columns + j] * matrix[i * columns + k];
        for (size_t i = 0; i < rows; i++) matrix[i * columns + j] -= product * matrix[i * columns + k];
      }
    double norm = norm_of_column(matrix, rows, columns, j);
    for (size_t i = 0; i < rows; i++) matrix[i * columns + j] /= norm;
  }
}

static void compose(const double *left, const double *right, const double *values, size_t rows, size_t columns,
                    size_t rank, double *matrix_out) {
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      double sum = 0;
      for (size_t k = 0; k < rank; k++) sum += left[i * rank + k] * values[k] * right[j * rank + k];
      matrix_out[i * columns + j] = sum;
    }
}

static void test_the_trace_norm_shortens_every_singular_value(void **state) {
  static const size_t shapes[][3] = {{8, 8, 8}, {20, 5, 5}, {5, 20, 5},  {12, 30, 3},
                                     {1, 9, 1}, {9, 1, 1},  {30, 30, 30}};
  static double left[900], right[900], matrix[900], expected[900];
  (void)state;
  for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
    for (int power = -100; power <= 100; power += 100) {
      size_t rows = shapes[shape][0], columns = shapes[shape][1], rank = shapes[shape][2];
      double values[30], shortened[30], unit = ldexp(1, power);
      orthonormal(left, rows, rank);
      orthonormal(right, columns, rank);
      for (size_t k = 0; k < rank; k++) {
        values[k] = unit * (k % 3 == 2 ? 1 : pwi_random_unit(&drawn) * 3); /* also equal ones */
        shortened[k] = values[k] > 0.8 * unit ? values[k] - 0.8 * unit : 0;
      }
      compose(left, right, values, rows, columns, rank, matrix);
      compose(left, right, shortened, rows, columns, rank, expected);
      run(&(struct factor_prox){.kind = PAWL_FACTOR_TRACE_NORM, .weight = 0.4}, rows, columns, 2 * unit, matrix);
      for (size_t i = 0; i < rows * columns; i++) assert_true(fabs(matrix[i] - expected[i]) < 1e-12 * unit);
    }
}

static void test_the_trace_norm_of_nan_is_refused_and_of_zero_is_zero(void **state) {
  double memory[100], zeros[6] = {0}, bad[6] = {1, (double)NAN, 2}, same[6];
  (void)state;
  memcpy(same, bad, sizeof bad);
  assert_int_equal(pwi_factor_trace(2, 3, true, 1, memory, zeros), PAWL_OK);
  for (size_t i = 0; i < 6; i++) assert_true(zeros[i] == 0);
  assert_int_equal(pwi_factor_trace(2, 3, true, 1, memory, bad), PAWL_DIVERGED);
  assert_memory_equal(same, bad, sizeof bad);
}

static void test_float_matrices_have_the_rounded_results(void **state) {
  static const enum pawl_factor_prox kinds[] = {PAWL_FACTOR_L1,           PAWL_FACTOR_L2,
                                                PAWL_FACTOR_ELASTIC_NET,  PAWL_FACTOR_NONNEGATIVE,
                                                PAWL_FACTOR_UNIT_COLUMNS, PAWL_FACTOR_TRACE_NORM};
  (void)state;
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    const struct factor_prox prox = {.kind = kinds[kind], .weight = 0.5, .weight2 = 0.25};
    double exact[35], *memory;
    float rounded[35];
    for (size_t i = 0; i < 35; i++) exact[i] = (double)(rounded[i] = (float)pwi_random_normal(&drawn));
    run(&prox, 7, 5, 0.5, exact);
    assert_int_equal(pwi_factor_prox_memory(prox.kind, 7, 5, &memory), PAWL_OK);
    assert_int_equal(pwi_factor_prox(&prox, 7, 5, false, 0.5, memory, rounded), PAWL_OK);
    pwi_free(memory);
    for (size_t i = 0; i < 35; i++) assert_true(fabs((double)rounded[i] - exact[i]) < 1e-6);
  }
}

static pawl_status double_all(void *context, void *matrix, size_t rows, size_t columns, double step) {
  for (size_t i = 0; i < rows * columns; i++) ((double *)matrix)[i] *= 2 * step;
  return *(pawl_status *)context;
}

static void test_a_program_has_its_own_operator(void **state) {
  pawl_status answer = PAWL_OK;
  const struct factor_prox prox = {.kind = PAWL_FACTOR_CALL, .call = double_all, .context = &answer};
  double matrix[4] = {1, 2, 3, 4};
  (void)state;
  run(&prox, 2, 2, 1.5, matrix);
  assert_true(matrix[3] == 12);
  answer = PAWL_CANCELLED;
  assert_int_equal(pwi_factor_prox(&prox, 2, 2, true, 1, NULL, matrix), PAWL_CANCELLED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_near_the_result_is_better),
      cmocka_unit_test(test_the_trace_norm_shortens_every_singular_value),
      cmocka_unit_test(test_the_trace_norm_of_nan_is_refused_and_of_zero_is_zero),
      cmocka_unit_test(test_float_matrices_have_the_rounded_results),
      cmocka_unit_test(test_a_program_has_its_own_operator),
  };
  pwi_random_init(&drawn, 17, 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
