/* The lossy codecs: error bounds, values that they keep, and values that they refuse. */
#include <float.h>
#include <math.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "wire/values_testing.h"

static const enum pwi_value_codec lossy[] = {PWI_CODEC_F16, PWI_CODEC_BF16, PWI_CODEC_INT8};

/* Encodes and decodes one value with a lossy codec; f64 and f32 must agree if the value is an f32. */
static double through(enum pwi_value_codec codec, enum pwi_value_type type, double value) {
  char bytes[16];
  size_t size;
  float narrow = (float)value, narrow_back = 0;
  double back = 0;
  const void *in = type == PWI_TYPE_F32 ? (const void *)&narrow : &value;
  void *out = type == PWI_TYPE_F32 ? (void *)&narrow_back : &back;
  assert_int_equal(pwi_values_encode(workspace, codec, type, in, 1, bytes, sizeof bytes, &size), PAWL_OK);
  assert_int_equal(pwi_values_decode(workspace, codec, type, bytes, size, out, 1), PAWL_OK);
  return type == PWI_TYPE_F32 ? (double)narrow_back : back;
}

static void test_narrow_floats_keep_special_values(void **state) {
  (void)state;
  for (size_t t = 0; t < 2; t++) {
    for (size_t c = 0; c < 2; c++) {
      assert_true(through(lossy[c], types[t], (double)INFINITY) == (double)INFINITY);
      assert_true(through(lossy[c], types[t], (double)-INFINITY) == (double)-INFINITY);
      assert_true(isnan(through(lossy[c], types[t], (double)NAN)));
      assert_true(signbit(through(lossy[c], types[t], -0.0)) != 0);
      assert_true(through(lossy[c], types[t], -1.5) == -1.5);
    }
    assert_true(isinf(through(PWI_CODEC_F16, types[t], 65520)));
    assert_true(through(PWI_CODEC_F16, types[t], 65519) == 65504);
    assert_true(through(PWI_CODEC_F16, types[t], 0x1.8p-24) == 0x1p-23);
    assert_true(isinf(through(PWI_CODEC_BF16, types[t], (double)FLT_MAX)));
  }
  assert_true(isinf(through(PWI_CODEC_BF16, PWI_TYPE_F64, 1e300)));
}

static double value_at(enum pwi_value_type type, const void *values, size_t i) {
  return type == PWI_TYPE_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void check_error(enum pwi_value_codec codec, enum pwi_value_type type, size_t count) {
  size_t size;
  void *values = make_floats(type, count, 2.0), *back;
  char *data = encode(codec, type, values, count, &size);
  assert_int_equal(decode(codec, type, data, size, count, &back), PAWL_OK);
  for (size_t i = 0; i < count; i++) {
    double x = value_at(type, values, i), error = fabs(value_at(type, back, i) - x);
    if (codec == PWI_CODEC_F16) assert_true(error <= fabs(x) * 0x1p-11 + 0x1p-25);
    if (codec == PWI_CODEC_BF16) assert_true(error <= fabs(x) * 0x1p-8);
    if (codec == PWI_CODEC_INT8) assert_true(error <= 0.5 / 127 * 1.00001);
  }
  free(back);
  free(data);
  free(values);
}

static void test_lossy_codecs_stay_within_their_error(void **state) {
  (void)state;
  for (size_t c = 0; c < LENGTH(lossy); c++) {
    for (size_t t = 0; t < 2; t++) {
      for (size_t n = 0; n < LENGTH(counts); n++) check_error(lossy[c], types[t], counts[n]);
    }
  }
}

/* A large value coarsens its own block only, and the extremes of the range neither vanish nor overflow. */
static void test_int8_scales_each_block_by_itself(void **state) {
  (void)state;
  float values[512] = {0}, back[512];
  char bytes[520];
  size_t size;
  values[0] = FLT_MAX;
  values[1] = -FLT_MAX;
  values[256] = 1.0f;
  values[257] = -0.5f;
  assert_int_equal(pwi_values_encode(workspace, PWI_CODEC_INT8, PWI_TYPE_F32, values, 512, bytes, 520, &size), PAWL_OK);
  assert_int_equal(pwi_values_decode(workspace, PWI_CODEC_INT8, PWI_TYPE_F32, bytes, size, back, 512), PAWL_OK);
  assert_true(isfinite(back[0]) && back[0] > FLT_MAX * 0.999f && back[1] == -back[0]);
  assert_true(fabsf(back[256] - 1.0f) < 1e-6f);
  assert_true(fabsf(back[257] + 0.5f) <= 0.5f / 127);
  assert_true(back[2] == 0 && back[511] == 0);
}

static void test_int8_holds_tiny_values_to_its_smallest_scale(void **state) {
  (void)state;
  static const double tiny[] = {0, 0x1p-149, 0x1p-130, 0x1p-126, 0x1p-120, 0x1p-119};
  for (size_t i = 0; i < LENGTH(tiny); i++) {
    double back = through(PWI_CODEC_INT8, PWI_TYPE_F32, tiny[i]);
    assert_true(fabs(back - tiny[i]) <= 0x1p-127);
    assert_true(through(PWI_CODEC_INT8, PWI_TYPE_F64, tiny[i]) == back);
  }
}

static void test_int8_refuses_values_that_it_cannot_hold(void **state) {
  (void)state;
  static const double bad[] = {(double)NAN, (double)INFINITY, (double)-INFINITY, 1e39, -1e308};
  char bytes[2048];
  for (size_t i = 0; i < LENGTH(bad); i++) {
    for (size_t at = 0; at < 300; at += 13) {
      double wide[300] = {0};
      float narrow[300] = {0};
      size_t size = 77;
      wide[at] = bad[i];
      narrow[at] = (float)bad[i];
      assert_int_equal(pwi_values_encode(workspace, PWI_CODEC_INT8, PWI_TYPE_F64, wide, 300, bytes, 2048, &size),
                       PAWL_INVALID);
      assert_int_equal(pwi_values_encode(workspace, PWI_CODEC_INT8, PWI_TYPE_F32, narrow, 300, bytes, 2048, &size),
                       PAWL_INVALID);
      assert_int_equal(size, 77);
    }
  }
}

static void test_int8_refuses_an_impossible_scale(void **state) {
  (void)state;
  static const uint32_t bad[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xbf800000, 0x7f7fffff, 0x7c010204};
  for (size_t i = 0; i < LENGTH(bad); i++) {
    char bytes[5] = {0, 0, 0, 0, 1};
    pwi_put_u32(bytes, bad[i]);
    assert_int_equal(decode(PWI_CODEC_INT8, PWI_TYPE_F32, bytes, 5, 1, NULL), PAWL_CORRUPT);
  }
}

static void test_lossy_codecs_allocate_nothing(void **state) {
  (void)state;
  uint64_t before = pwi_memory_counts().allocations;
  for (size_t c = 0; c < LENGTH(lossy); c++) check_error(lossy[c], PWI_TYPE_F64, 100000);
  assert_int_equal(pwi_memory_counts().allocations, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_narrow_floats_keep_special_values),
      cmocka_unit_test(test_lossy_codecs_stay_within_their_error),
      cmocka_unit_test(test_int8_scales_each_block_by_itself),
      cmocka_unit_test(test_int8_holds_tiny_values_to_its_smallest_scale),
      cmocka_unit_test(test_int8_refuses_values_that_it_cannot_hold),
      cmocka_unit_test(test_int8_refuses_an_impossible_scale),
      cmocka_unit_test(test_lossy_codecs_allocate_nothing),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
