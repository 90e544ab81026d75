/* FIXED, in addition to the tests of all lossless codecs in values_test.c. */
#include <float.h>
#include <math.h>

#include "base/bytes.h"
#include "base/testing.h"
#include "wire/values_testing.h"

static void test_the_layout_is_what_is_documented(void **state) {
  (void)state;
  const float values[] = {0.5f, -1.5f, 0, 2}; /* multiples 1, -3, 0, 4 of 2^-1: three bits and a sign */
  const uint8_t expected[] = {4, 0xff, 0xff, 0x72, 0x80};
  size_t size;
  char *data = encode(PWI_CODEC_FIXED, PWI_TYPE_F32, values, 4, &size);
  assert_int_equal(size, sizeof expected);
  assert_memory_equal(data, expected, size);
  free(data);
}

static void check_size(enum pwi_value_type type, const void *values, size_t count, size_t expected) {
  size_t size;
  void *back;
  char *data = encode(PWI_CODEC_FIXED, type, values, count, &size);
  assert_int_equal(size, expected);
  assert_int_equal(decode(PWI_CODEC_FIXED, type, data, size, count, &back), PAWL_OK);
  assert_memory_equal(back, values, count * pwi_value_size(type));
  free(back);
  free(data);
}

static void test_blocks_take_what_their_values_need(void **state) {
  (void)state;
  static float floats[256];
  static double doubles[256];
  static int32_t ints[256];
  static int64_t longs[256];
  static uint64_t words[256];
  check_size(PWI_TYPE_F32, floats, 256, 1);
  for (size_t i = 0; i < 256; i++) {
    floats[i] = (float)i * 0x1p-149f;
    doubles[i] = (i % 2 ? 1 : -1) * 0x1p1000;
    ints[i] = i % 2 ? INT32_MIN : 0;
    longs[i] = (int64_t)i << 50;
    words[i] = UINT64_C(1) << 63;
  }
  check_size(PWI_TYPE_F32, floats, 256, 3 + 256 * 9 / 8);
  check_size(PWI_TYPE_F64, doubles, 256, 3 + 256 * 2 / 8);
  check_size(PWI_TYPE_I32, ints, 256, 3 + 256 * 2 / 8);
  check_size(PWI_TYPE_I64, longs, 256, 3 + 256 * 9 / 8);
  check_size(PWI_TYPE_U64, words, 256, 3 + 256 * 2 / 8);
  ints[3] = 1; /* and 2^31 beside it: too far apart */
  check_size(PWI_TYPE_I32, ints, 256, 1 + 256 * 4);
}

static void test_blocks_with_values_that_fixed_cannot_represent_are_raw(void **state) {
  (void)state;
  const double odd[] = {-0.0, INFINITY, -INFINITY, NAN, DBL_MAX, 0x1p-1074};
  for (size_t i = 0; i < LENGTH(odd); i++) {
    double values[64] = {1, 2, 3};
    values[10] = odd[i];
    check_size(PWI_TYPE_F64, values, 64, 1 + 64 * 8);
  }
}

/* Values rounded to fewer bits take fewer bytes, and survive encoding exactly. */
static void test_rounded_values_come_back_the_smaller_the_rounder(void **state) {
  (void)state;
  double *values = make_floats(PWI_TYPE_F64, 1000, 2);
  size_t before = SIZE_MAX;
  for (int bits = 20; bits > 0; bits -= 4) {
    size_t size;
    void *back;
    for (size_t i = 0; i < 1000; i++) values[i] = rint(ldexp(values[i], bits)) / ldexp(1, bits) + 0.0;
    char *data = encode(PWI_CODEC_FIXED, PWI_TYPE_F64, values, 1000, &size);
    assert_true(size < before);
    before = size;
    assert_int_equal(decode(PWI_CODEC_FIXED, PWI_TYPE_F64, data, size, 1000, &back), PAWL_OK);
    assert_memory_equal(back, values, 1000 * sizeof *values);
    free(back);
    free(data);
  }
  free(values);
}

/* One value of type `type`, of `width` and `exponent`. */
static pawl_status decode_one(enum pwi_value_type type, uint8_t width, int exponent, uint32_t number, void *value_out) {
  uint8_t data[40] = {width};
  void *back;
  pwi_put_u16(data + 1, (uint16_t)exponent);
  pwi_put_u32(data + 3, number);
  pawl_status status = decode(PWI_CODEC_FIXED, type, data, 3 + (size_t)(width + 7) / 8, 1, &back);
  if (status == PAWL_OK) memcpy(value_out, back, pwi_value_size(type));
  free(back);
  return status;
}

static void test_every_number_that_is_accepted_is_finite(void **state) {
  (void)state;
  static const struct {
    enum pwi_value_type type;
    int least, top; /* top: exponent + width at most */
  } limits[] = {{PWI_TYPE_F32, -149, 129},
                {PWI_TYPE_F64, -1074, 1025},
                {PWI_TYPE_I32, 0, 33},
                {PWI_TYPE_I64, 0, 65},
                {PWI_TYPE_U64, 0, 65}};
  union {
    float narrow;
    double wide;
  } value;
  for (size_t i = 0; i < LENGTH(limits); i++) {
    for (uint8_t width = 2; width <= 25; width++) {
      uint32_t largest = (UINT32_C(1) << width) - 1;
      int most = limits[i].top - width;
      assert_int_equal(decode_one(limits[i].type, width, most, largest, &value), PAWL_OK);
      if (limits[i].type == PWI_TYPE_F32) assert_true(isfinite(value.narrow) && value.narrow < 0);
      if (limits[i].type == PWI_TYPE_F64) assert_true(isfinite(value.wide) && value.wide < 0);
      assert_int_equal(decode_one(limits[i].type, width, limits[i].least, largest, &value), PAWL_OK);
      assert_int_equal(decode_one(limits[i].type, width, most + 1, largest, &value), PAWL_CORRUPT);
      assert_int_equal(decode_one(limits[i].type, width, limits[i].least - 1, largest, &value), PAWL_CORRUPT);
    }
    assert_int_equal(decode_one(limits[i].type, 1, 0, 0, &value), PAWL_CORRUPT);
    assert_int_equal(decode_one(limits[i].type, 26, 0, 0, &value), PAWL_CORRUPT);
    assert_int_equal(decode_one(limits[i].type, 254, 0, 0, &value), PAWL_CORRUPT);
  }
}

static void test_bits_left_over_are_refused(void **state) {
  (void)state;
  uint64_t value;
  assert_int_equal(decode_one(PWI_TYPE_I64, 3, 0, 6, &value), PAWL_OK);
  assert_int_equal(value, 3);
  assert_int_equal(decode_one(PWI_TYPE_I64, 3, 0, 6 | 8, &value), PAWL_CORRUPT);
  assert_int_equal(decode_one(PWI_TYPE_I64, 3, 0, 6 | 128, &value), PAWL_CORRUPT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_layout_is_what_is_documented),
      cmocka_unit_test(test_blocks_take_what_their_values_need),
      cmocka_unit_test(test_blocks_with_values_that_fixed_cannot_represent_are_raw),
      cmocka_unit_test(test_rounded_values_come_back_the_smaller_the_rounder),
      cmocka_unit_test(test_every_number_that_is_accepted_is_finite),
      cmocka_unit_test(test_bits_left_over_are_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
