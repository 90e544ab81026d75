/* Linear algebra on arrays, against plain loops. */
#include "store/linear.h"

#include <math.h>

#include "base/random.h"
#include "base/testing.h"

#define SEED 20141
#define MOST 1100

static const size_t lengths[] = {0, 1, 7, 8, 9, 16, 63, 1023, 1024, MOST};
#define LENGTHS (sizeof lengths / sizeof *lengths)

/* Whole numbers, small enough for every sum to be exact in every type. */
static void draw(struct pwi_random *random, enum pwi_scalar type, void *values, size_t count, bool is_signed) {
  for (size_t i = 0; i < count; i++) {
    int32_t value = (int32_t)pwi_random_below(random, 21) - (is_signed ? 10 : 0);
    if (type == PWI_SCALAR_F32)
      ((float *)values)[i] = (float)value;
    else if (type == PWI_SCALAR_F64)
      ((double *)values)[i] = value;
    else if (type == PWI_SCALAR_I32)
      ((int32_t *)values)[i] = value;
    else
      ((int64_t *)values)[i] = value;
  }
}

static double at(enum pwi_scalar type, const void *values, size_t i) {
  if (type == PWI_SCALAR_F32) return (double)((const float *)values)[i];
  if (type == PWI_SCALAR_F64) return ((const double *)values)[i];
  if (type == PWI_SCALAR_I32) return ((const int32_t *)values)[i];
  return (double)((const int64_t *)values)[i];
}

static double changed(enum pwi_linear kind, double a, double x, double y) {
  switch (kind) {
  case PWI_LINEAR_FILL:
    return a;
  case PWI_LINEAR_SCALE:
    return a * y;
  case PWI_LINEAR_AXPY:
    return y + a * x;
  default:
    return x;
  }
}

static double folded(enum pwi_linear kind, enum pwi_scalar type, const void *x, const void *y, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    double a = at(type, x, i), b = at(type, y, i);
    if (kind == PWI_LINEAR_MOST)
      sum = fmax(sum, fabs(a));
    else if (kind == PWI_LINEAR_COUNT)
      sum += a != 0;
    else
      sum += kind == PWI_LINEAR_DOT ? a * b : kind == PWI_LINEAR_ABS ? fabs(a) : a * a;
  }
  return sum;
}

static void test_changes_are_those_of_the_formulas(void **state) {
  _Alignas(64) char x[MOST * 8], y[MOST * 8], before[MOST * 8];
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, SEED, 0);
  for (int type = PWI_SCALAR_F32; type <= PWI_SCALAR_U64; type++)
    for (int kind = PWI_LINEAR_FILL; kind <= PWI_LINEAR_COPY; kind++)
      for (size_t length = 0; length < LENGTHS; length++) {
        enum pwi_scalar scalar = (enum pwi_scalar)type;
        size_t count = lengths[length];
        draw(&random, scalar, x, MOST, true);
        draw(&random, scalar, y, MOST, true);
        memcpy(before, y, sizeof y);
        pwi_linear_change((enum pwi_linear)kind, scalar, 3, x, y, count);
        for (size_t i = 0; i < count; i++)
          assert_true(at(scalar, y, i) == changed((enum pwi_linear)kind, 3, at(scalar, x, i), at(scalar, before, i)));
        size_t done = count * pwi_scalar_size(scalar);
        assert_memory_equal(y + done, before + done, sizeof y - done);
      }
}

static void test_a_vector_can_be_added_to_itself(void **state) {
  double y[] = {1, -2, 3, 4, 5, 6, 7, 8, 9};
  (void)state;
  pwi_linear_change(PWI_LINEAR_AXPY, PWI_SCALAR_F64, 2, y, y, 9);
  assert_true(y[0] == 3 && y[1] == -6 && y[8] == 27);
  pwi_linear_change(PWI_LINEAR_COPY, PWI_SCALAR_F64, 0, y, y, 9);
  assert_true(y[8] == 27);
}

static void test_integers_wrap_around_and_negative_factors_subtract(void **state) {
  uint64_t y[] = {5, UINT64_MAX}, x[] = {7, 1};
  int32_t small[] = {INT32_MAX}, one[] = {1};
  (void)state;
  pwi_linear_change(PWI_LINEAR_AXPY, PWI_SCALAR_U64, 1, x, y, 2);
  assert_true(y[0] == 12 && y[1] == 0);
  pwi_linear_change(PWI_LINEAR_AXPY, PWI_SCALAR_U64, -1, x, y, 2);
  assert_true(y[0] == 5 && y[1] == UINT64_MAX);
  pwi_linear_change(PWI_LINEAR_AXPY, PWI_SCALAR_I32, 1, one, small, 1);
  assert_int_equal(small[0], INT32_MIN);
}

static void test_scalars_are_values_for_the_type(void **state) {
  (void)state;
  assert_true(pwi_linear_takes(PWI_LINEAR_SCALE, PWI_SCALAR_F32, NAN));
  assert_true(pwi_linear_takes(PWI_LINEAR_AXPY, PWI_SCALAR_U64, -3));
  assert_true(pwi_linear_takes(PWI_LINEAR_FILL, PWI_SCALAR_I64, -3));
  assert_true(pwi_linear_takes(PWI_LINEAR_FILL, PWI_SCALAR_I32, INT32_MIN));
  assert_false(pwi_linear_takes(PWI_LINEAR_FILL, PWI_SCALAR_I32, 2147483648.0));
  assert_false(pwi_linear_takes(PWI_LINEAR_FILL, PWI_SCALAR_U64, -1));
  assert_false(pwi_linear_takes(PWI_LINEAR_SCALE, PWI_SCALAR_I64, 0.5));
  assert_false(pwi_linear_takes(PWI_LINEAR_SCALE, PWI_SCALAR_I64, 1e17));
  assert_false(pwi_linear_takes(PWI_LINEAR_SCALE, PWI_SCALAR_I32, NAN));
  assert_false(pwi_linear_takes(PWI_LINEAR_SCALE, PWI_SCALAR_I32, (double)INFINITY));
}

static void test_folds_are_those_of_the_formulas(void **state) {
  _Alignas(64) char x[MOST * 8], y[MOST * 8];
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, SEED, 1);
  for (int type = PWI_SCALAR_F32; type <= PWI_SCALAR_U64; type++)
    for (int kind = PWI_LINEAR_DOT; kind <= PWI_LINEAR_COUNT; kind++)
      for (size_t length = 0; length < LENGTHS; length++) {
        enum pwi_scalar scalar = (enum pwi_scalar)type;
        struct pwi_sum sum = {0};
        draw(&random, scalar, x, MOST, type != PWI_SCALAR_U64);
        draw(&random, scalar, y, MOST, type != PWI_SCALAR_U64);
        pwi_linear_fold((enum pwi_linear)kind, scalar, x, y, lengths[length], &sum);
        assert_true(pwi_sum_value(sum) == folded((enum pwi_linear)kind, scalar, x, y, lengths[length]));
      }
}

/* 1 and many values that are too small to change it, one at a time. */
static void test_a_sum_keeps_what_rounding_would_lose(void **state) {
  struct pwi_sum sum = {1, 0}, halves[2] = {{1, 0}, {0, 0}};
  double little = ldexp(1, -60);
  (void)state;
  for (int i = 0; i < 1 << 10; i++) {
    pwi_linear_fold(PWI_LINEAR_ABS, PWI_SCALAR_F64, &little, NULL, 1, &sum);
    pwi_linear_fold(PWI_LINEAR_ABS, PWI_SCALAR_F64, &little, NULL, 1, &halves[i % 2]);
  }
  assert_true(pwi_sum_value(sum) == 1 + ldexp(1, -50));
  pwi_sum_join(PWI_LINEAR_ABS, &halves[0], halves[1]);
  assert_true(pwi_sum_value(halves[0]) == 1 + ldexp(1, -50));
}

static void test_infinities_and_nans_stay_so(void **state) {
  double values[] = {1, (double)INFINITY, 2, -3}, lost[] = {5, NAN, 9};
  struct pwi_sum sum = {0}, most = {0};
  (void)state;
  pwi_linear_fold(PWI_LINEAR_ABS, PWI_SCALAR_F64, values, NULL, 4, &sum);
  pwi_linear_fold(PWI_LINEAR_ABS, PWI_SCALAR_F64, values, NULL, 1, &sum);
  assert_true(isinf(pwi_sum_value(sum)));
  pwi_linear_fold(PWI_LINEAR_MOST, PWI_SCALAR_F64, lost, NULL, 3, &most);
  pwi_linear_fold(PWI_LINEAR_MOST, PWI_SCALAR_F64, values, NULL, 4, &most);
  assert_true(isnan(pwi_sum_value(most)));
}

static void test_a_count_takes_nan_for_a_value_and_minus_zero_for_none(void **state) {
  double values[] = {0, -0.0, NAN, (double)INFINITY, 1e-310, 0, 0, 0, -1};
  struct pwi_sum sum = {0};
  (void)state;
  pwi_linear_fold(PWI_LINEAR_COUNT, PWI_SCALAR_F64, values, NULL, 9, &sum);
  assert_true(pwi_sum_value(sum) == 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_changes_are_those_of_the_formulas),
      cmocka_unit_test(test_a_vector_can_be_added_to_itself),
      cmocka_unit_test(test_integers_wrap_around_and_negative_factors_subtract),
      cmocka_unit_test(test_scalars_are_values_for_the_type),
      cmocka_unit_test(test_folds_are_those_of_the_formulas),
      cmocka_unit_test(test_a_sum_keeps_what_rounding_would_lose),
      cmocka_unit_test(test_infinities_and_nans_stay_so),
      cmocka_unit_test(test_a_count_takes_nan_for_a_value_and_minus_zero_for_none),
  };
  print_message("seed=%d\n", SEED);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
