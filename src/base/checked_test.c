/* Checked arithmetic: the last value that fits and the first that does not; a failure writes nothing. */
#include "base/checked.h"
#include "base/testing.h"

#define UNTOUCHED 12345

static void test_sums_of_sizes_fit_or_are_refused(void **state) {
  (void)state;
  size_t out = UNTOUCHED;
  assert_true(pwi_add_size(SIZE_MAX - 1, 1, &out));
  assert_int_equal(out, SIZE_MAX);
  assert_true(pwi_add_size(0, 0, &out));
  assert_int_equal(out, 0);
  out = UNTOUCHED;
  assert_false(pwi_add_size(SIZE_MAX, 1, &out));
  assert_false(pwi_add_size(1, SIZE_MAX, &out));
  assert_false(pwi_add_size(SIZE_MAX, SIZE_MAX, &out));
  assert_int_equal(out, UNTOUCHED);
}

static void test_products_of_sizes_fit_or_are_refused(void **state) {
  (void)state;
  size_t out = UNTOUCHED;
  assert_true(pwi_mul_size(SIZE_MAX / 2, 2, &out));
  assert_int_equal(out, SIZE_MAX - 1);
  assert_true(pwi_mul_size(SIZE_MAX, 0, &out));
  assert_int_equal(out, 0);
  out = UNTOUCHED;
  assert_false(pwi_mul_size(SIZE_MAX / 2 + 1, 2, &out));
  assert_false(pwi_mul_size(SIZE_MAX, SIZE_MAX, &out));
  assert_int_equal(out, UNTOUCHED);
}

static void test_sums_and_products_of_64_bits_fit_or_are_refused(void **state) {
  (void)state;
  uint64_t out = UNTOUCHED;
  assert_true(pwi_add_u64(UINT64_MAX - 7, 7, &out));
  assert_int_equal(out, UINT64_MAX);
  assert_true(pwi_mul_u64(UINT32_MAX, UINT64_C(0x100000001), &out));
  assert_int_equal(out, UINT64_MAX);
  out = UNTOUCHED;
  assert_false(pwi_add_u64(UINT64_MAX - 7, 8, &out));
  assert_false(pwi_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
  assert_int_equal(out, UNTOUCHED);
}

static void test_rounding_up_stays_at_multiples_and_never_wraps(void **state) {
  (void)state;
  size_t out = UNTOUCHED;
  assert_true(pwi_round_up(0, 64, &out));
  assert_int_equal(out, 0);
  assert_true(pwi_round_up(1, 64, &out));
  assert_int_equal(out, 64);
  assert_true(pwi_round_up(64, 64, &out));
  assert_int_equal(out, 64);
  assert_true(pwi_round_up(65, 64, &out));
  assert_int_equal(out, 128);
  assert_true(pwi_round_up(77, 1, &out));
  assert_int_equal(out, 77);
  assert_true(pwi_round_up(SIZE_MAX - 63, 64, &out));
  assert_int_equal(out, SIZE_MAX - 63);
  out = UNTOUCHED;
  assert_false(pwi_round_up(SIZE_MAX - 62, 64, &out));
  assert_false(pwi_round_up(SIZE_MAX, 4096, &out));
  assert_int_equal(out, UNTOUCHED);
}

static void test_64_bits_become_a_size_if_they_fit(void **state) {
  (void)state;
  size_t out = UNTOUCHED;
  assert_true(pwi_u64_to_size(SIZE_MAX, &out));
  assert_int_equal(out, SIZE_MAX);
  assert_true(pwi_u64_to_size(0, &out));
  assert_int_equal(out, 0);
}

static void test_spans_lie_inside_or_not(void **state) {
  (void)state;
  assert_true(pwi_span_fits(0, 0, 0));
  assert_true(pwi_span_fits(0, 10, 10));
  assert_true(pwi_span_fits(10, 0, 10));
  assert_true(pwi_span_fits(3, 7, 10));
  assert_false(pwi_span_fits(3, 8, 10));
  assert_false(pwi_span_fits(11, 0, 10));
  assert_false(pwi_span_fits(1, UINT64_MAX, 10)); /* the sum would wrap to 0 */
  assert_false(pwi_span_fits(UINT64_MAX, 1, 10));
  assert_false(pwi_span_fits(UINT64_MAX, UINT64_MAX, 10));
  assert_true(pwi_span_fits(UINT64_MAX, 0, UINT64_MAX));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums_of_sizes_fit_or_are_refused),
      cmocka_unit_test(test_products_of_sizes_fit_or_are_refused),
      cmocka_unit_test(test_sums_and_products_of_64_bits_fit_or_are_refused),
      cmocka_unit_test(test_rounding_up_stays_at_multiples_and_never_wraps),
      cmocka_unit_test(test_64_bits_become_a_size_if_they_fit),
      cmocka_unit_test(test_spans_lie_inside_or_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
