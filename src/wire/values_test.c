
#include <math.h>

#include <zstd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "wire/values_testing.h"

static const enum pwi_value_codec lossless[] = {PWI_CODEC_RAW, PWI_CODEC_BITMAP, PWI_CODEC_LZ4, PWI_CODEC_ZSTD,
                                                PWI_CODEC_FIXED};
static const enum pwi_value_codec lossy[] = {PWI_CODEC_F16, PWI_CODEC_BF16, PWI_CODEC_INT8};

enum kind { ALL_ZERO, NO_ZERO, MOSTLY_ZERO, LONG_RUNS, ALTERNATING, RANDOM_BITS, DENORMAL, NAN_PAYLOADS, KINDS };

static uint64_t value_bits(enum kind kind, enum pwi_value_type type, size_t i, struct pwi_random *random) {
  uint64_t bits = pwi_random_u64(random);
  bool narrow = pwi_value_size(type) == 4;
  switch (kind) {
  case ALL_ZERO:
    return 0;
  case NO_ZERO:
    return bits | 1;
  case MOSTLY_ZERO:
    return bits % 50 ? 0 : bits | 1;
  case LONG_RUNS:
    return i / 700 % 2 ? bits | 1 : 0;
  case ALTERNATING:
    return i % 2 ? bits | 1 : 0;
  case DENORMAL:
    return bits & (narrow ? UINT64_C(0x807fffff) : UINT64_C(0x800fffffffffffff));
  case NAN_PAYLOADS:
    return bits | (narrow ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000));
  case RANDOM_BITS:
  case KINDS:
    break;
  }
  return bits;
}

static void *make_values(enum kind kind, enum pwi_value_type type, size_t count) {
  struct pwi_random random;
  pwi_random_init(&random, SEED, (uint64_t)kind);
  size_t size = pwi_value_size(type);
  char *values = malloc(count * size);
  for (size_t i = 0; i < count; i++) {
    uint64_t bits = value_bits(kind, type, i, &random);
    memcpy(values + i * size, &bits, size);
  }
  return values;
}

static void check_round_trip(enum pwi_value_codec codec, enum pwi_value_type type, enum kind kind, size_t count) {
  size_t size;
  void *values = make_values(kind, type, count), *back;
  char *data = encode(codec, type, values, count, &size);
  assert_int_equal(decode(codec, type, data, size, count, &back), PAWL_OK);
  if (count) assert_memory_equal(back, values, count * pwi_value_size(type));
  if (!count) assert_int_equal(size, 0);
  free(back);
  free(data);
  free(values);
}

static void test_lossless_codecs_return_every_bit(void **state) {
  (void)state;
  for (size_t c = 0; c < LENGTH(lossless); c++) {
    for (size_t t = 0; t < LENGTH(types); t++) {
      for (int kind = 0; kind < KINDS; kind++) {
        for (size_t n = 0; n < LENGTH(counts); n++) check_round_trip(lossless[c], types[t], (enum kind)kind, counts[n]);
      }
    }
  }
}

static void test_lz4_goes_on_past_its_first_block(void **state) {
  (void)state;
  check_round_trip(PWI_CODEC_LZ4, PWI_TYPE_F32, MOSTLY_ZERO, 600000);
  check_round_trip(PWI_CODEC_LZ4, PWI_TYPE_F64, RANDOM_BITS, 300000);
  check_round_trip(PWI_CODEC_LZ4, PWI_TYPE_F64, LONG_RUNS, 262144);
}

static void test_minus_zero_is_not_zero(void **state) {
  (void)state;
  size_t size;
  float values[3] = {0.0f, -0.0f, 0.0f}, back[3];
  char *data = encode(PWI_CODEC_BITMAP, PWI_TYPE_F32, values, 3, &size);
  assert_int_equal(size, 8 + 8 + 4);
  assert_int_equal(pwi_get_u64(data), 1);
  assert_int_equal(pwi_get_u64(data + 8), 2);
  assert_int_equal(pwi_values_decode(workspace, PWI_CODEC_BITMAP, PWI_TYPE_F32, data, size, back, 3), PAWL_OK);
  assert_memory_equal(back, values, sizeof values);
  free(data);
}

static void test_bitmap_costs_what_its_layout_says(void **state) {
  (void)state;
  size_t size;
  void *zeros = make_values(ALL_ZERO, PWI_TYPE_F32, 9001), *dense = make_values(NO_ZERO, PWI_TYPE_F32, 4096);
  free(encode(PWI_CODEC_BITMAP, PWI_TYPE_F32, zeros, 9001, &size));
  assert_int_equal(size, 3 * 8);
  free(encode(PWI_CODEC_BITMAP, PWI_TYPE_F32, dense, 4096, &size));
  assert_int_equal(size, 4096 * 4 + 520);
  free(dense);
  free(zeros);
}

/* Known bytes of each layout that is ours: they must not change. */
static void test_layouts_are_as_documented(void **state) {
  (void)state;
  const float values[3] = {1.0f, -2.0f, 0.0f};
  static const struct {
    enum pwi_value_codec codec;
    size_t size;
    unsigned char bytes[24];
  } known[] = {
      {PWI_CODEC_RAW, 12, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0}},
      {PWI_CODEC_BITMAP, 24, {1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
      {PWI_CODEC_F16, 6, {0, 0x3c, 0, 0xc0, 0, 0}},
      {PWI_CODEC_BF16, 6, {0x80, 0x3f, 0, 0xc0, 0, 0}},
      {PWI_CODEC_INT8, 7, {0x04, 0x02, 0x81, 0x3c, 64, 0x81, 0}},
      {PWI_CODEC_LZ4, 16, {12, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0}},
  };
  for (size_t i = 0; i < LENGTH(known); i++) {
    size_t size;
    char *data = encode(known[i].codec, PWI_TYPE_F32, values, 3, &size);
    assert_int_equal(size, known[i].size);
    assert_memory_equal(data, known[i].bytes, size);
    free(data);
  }
}

/* Values that every codec of the type accepts. */
static void *tame_values(enum pwi_value_type type, size_t count) {
  if (!pwi_value_type_is_float(type)) return make_values(MOSTLY_ZERO, type, count);
  void *values = make_floats(type, count, 2.0);
  size_t size = pwi_value_size(type);
  for (size_t i = 0; i < count; i++) {
    if (i % 3) memset((char *)values + i * size, 0, size);
  }
  return values;
}

static void check_truncation(enum pwi_value_codec codec, enum pwi_value_type type, size_t count) {
  size_t size;
  void *values = tame_values(type, count);
  char *data = encode(codec, type, values, count, &size);
  for (size_t cut = 0; cut < size; cut++) {
    char *shorter = malloc(cut ? cut : 1);
    memcpy(shorter, data, cut);
    pawl_status status = decode(codec, type, shorter, cut, count, NULL);
    assert_true(status == PAWL_TRUNCATED || status == PAWL_CORRUPT);
    free(shorter);
  }
  char *longer = calloc(1, size + 1);
  memcpy(longer, data, size);
  assert_int_equal(decode(codec, type, longer, size + 1, count, NULL), PAWL_CORRUPT);
  free(longer);
  free(data);
  free(values);
}

static void test_bytes_missing_or_left_over_are_refused(void **state) {
  (void)state;
  for (int codec = 0; codec < PWI_CODEC_COUNT; codec++) {
    for (size_t t = 0; t < LENGTH(types); t++) {
      if (pwi_value_codec_is_lossy((enum pwi_value_codec)codec) && !pwi_value_type_is_float(types[t])) continue;
      check_truncation((enum pwi_value_codec)codec, types[t], 1);
      check_truncation((enum pwi_value_codec)codec, types[t], 300);
    }
    assert_int_equal(decode((enum pwi_value_codec)codec, PWI_TYPE_F32, "x", 1, 0, NULL), PAWL_CORRUPT);
  }
}

static void test_a_wrong_count_is_refused(void **state) {
  (void)state;
  for (int codec = 0; codec < PWI_CODEC_COUNT; codec++) {
    size_t size;
    void *values = tame_values(PWI_TYPE_F32, 300);
    char *data = encode((enum pwi_value_codec)codec, PWI_TYPE_F32, values, 300, &size);
    static const size_t wrong[] = {0, 1, 128, 10000};
    for (size_t i = 0; i < LENGTH(wrong); i++) {
      pawl_status status = decode((enum pwi_value_codec)codec, PWI_TYPE_F32, data, size, wrong[i], NULL);
      assert_true(status == PAWL_TRUNCATED || status == PAWL_CORRUPT);
    }
    free(data);
    free(values);
  }
}

static bool is_expected(pawl_status status) {
  return status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED;
}

static void test_a_flipped_bit_does_no_harm(void **state) {
  (void)state;
  for (int codec = 0; codec < PWI_CODEC_COUNT; codec++) {
    for (size_t t = 0; t < 2; t++) {
      size_t size;
      void *values = tame_values(types[t], 300);
      char *data = encode((enum pwi_value_codec)codec, types[t], values, 300, &size);
      for (size_t bit = 0; bit < size * 8; bit++) {
        data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
        assert_true(is_expected(decode((enum pwi_value_codec)codec, types[t], data, size, 300, NULL)));
        data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
      }
      assert_int_equal(decode((enum pwi_value_codec)codec, types[t], data, size, 300, NULL), PAWL_OK);
      free(data);
      free(values);
    }
  }
}

static void test_random_bytes_do_no_harm(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 200);
  for (int round = 0; round < 20000; round++) {
    size_t size = (size_t)pwi_random_below(&random, 200), count = (size_t)pwi_random_below(&random, 5000);
    unsigned char *bytes = malloc(size ? size : 1);
    bool sparse = pwi_random_chance(&random, 0.5); /* few bits set: summaries and lengths that lead
                                                      somewhere */
    for (size_t i = 0; i < size; i++) {
      bytes[i] = (unsigned char)(pwi_random_u64(&random) & (sparse ? pwi_random_u64(&random) & 0x11 : 0xff));
    }
    if (round % 3 == 0 && size >= 4) pwi_put_u32(bytes, ZSTD_MAGICNUMBER);
    enum pwi_value_codec codec = (enum pwi_value_codec)(round % PWI_CODEC_COUNT);
    assert_true(is_expected(decode(codec, types[round % 2], bytes, size, count, NULL)));
    free(bytes);
  }
}

static void test_bitmap_refuses_bits_that_stand_for_nothing(void **state) {
  (void)state;
  unsigned char bytes[20] = {0};
  pwi_put_u64(bytes, 2); /* group 1 of a chunk of 64 values */
  pwi_put_u64(bytes + 8, 1);
  assert_int_equal(decode(PWI_CODEC_BITMAP, PWI_TYPE_F32, bytes, 20, 64, NULL), PAWL_CORRUPT);
  assert_int_equal(decode(PWI_CODEC_BITMAP, PWI_TYPE_F32, bytes, 20, 65, NULL), PAWL_OK);
  pwi_put_u64(bytes + 8, 2); /* value 65 of 65 */
  assert_int_equal(decode(PWI_CODEC_BITMAP, PWI_TYPE_F32, bytes, 20, 65, NULL), PAWL_CORRUPT);
  pwi_put_u64(bytes + 8, 0); /* an empty mask */
  assert_int_equal(decode(PWI_CODEC_BITMAP, PWI_TYPE_F32, bytes, 16, 65, NULL), PAWL_CORRUPT);
}

static void test_zstd_takes_one_plain_frame_only(void **state) {
  (void)state;
  size_t first_size, second_size;
  void *values = tame_values(PWI_TYPE_F32, 100);
  char *first = encode(PWI_CODEC_ZSTD, PWI_TYPE_F32, values, 50, &first_size);
  char *second = encode(PWI_CODEC_ZSTD, PWI_TYPE_F32, (char *)values + 200, 50, &second_size);
  char *both = malloc(first_size + second_size);
  memcpy(both, first, first_size);
  memcpy(both + first_size, second, second_size);
  assert_int_equal(decode(PWI_CODEC_ZSTD, PWI_TYPE_F32, both, first_size + second_size, 100, NULL), PAWL_CORRUPT);
  const unsigned char skippable[8] = {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0};
  assert_int_equal(decode(PWI_CODEC_ZSTD, PWI_TYPE_F32, skippable, 8, 1, NULL), PAWL_CORRUPT);
  free(both);
  free(second);
  free(first);
  free(values);
}

static void test_unknown_numbers_are_unsupported(void **state) {
  (void)state;
  size_t size = 0;
  double value = 1, back;
  static const int bad[] = {PWI_CODEC_COUNT, 99, 255, -1};
  for (size_t i = 0; i < LENGTH(bad); i++) {
    enum pwi_value_codec codec = (enum pwi_value_codec)bad[i];
    enum pwi_value_type type = (enum pwi_value_type)bad[i];
    assert_int_equal(pwi_values_bound(codec, PWI_TYPE_F64, 1, &size), PAWL_UNSUPPORTED);
    assert_int_equal(pwi_values_bound(PWI_CODEC_RAW, type, 1, &size), PAWL_UNSUPPORTED);
    assert_int_equal(pwi_values_encode(workspace, codec, PWI_TYPE_F64, &value, 1, &back, 8, &size), PAWL_UNSUPPORTED);
    assert_int_equal(pwi_values_decode(workspace, codec, PWI_TYPE_F64, &value, 8, &back, 1), PAWL_UNSUPPORTED);
    assert_int_equal(pwi_values_decode(workspace, PWI_CODEC_RAW, type, &value, 8, &back, 1), PAWL_UNSUPPORTED);
    assert_string_equal(pwi_value_codec_name(codec), "unknown");
  }
  assert_int_equal(pwi_values_bound(PWI_CODEC_RAW, (enum pwi_value_type)0, 1, &size), PAWL_UNSUPPORTED);
  assert_string_equal(pwi_value_codec_name(PWI_CODEC_BITMAP), "bitmap");
}

static void test_integers_are_never_lossy(void **state) {
  (void)state;
  size_t size;
  int64_t value = 1, back;
  for (size_t c = 0; c < LENGTH(lossy); c++) {
    assert_true(pwi_value_codec_is_lossy(lossy[c]));
    for (size_t t = 2; t < LENGTH(types); t++) {
      assert_int_equal(pwi_values_bound(lossy[c], types[t], 1, &size), PAWL_INVALID);
      assert_int_equal(pwi_values_encode(workspace, lossy[c], types[t], &value, 1, &back, 8, &size), PAWL_INVALID);
      assert_int_equal(pwi_values_decode(workspace, lossy[c], types[t], &value, 8, &back, 1), PAWL_CORRUPT);
    }
  }
}

static void test_counts_that_do_not_fit_are_refused(void **state) {
  (void)state;
  static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 4 + 1, SIZE_MAX / 2};
  for (int codec = 0; codec < PWI_CODEC_COUNT; codec++) {
    for (size_t i = 0; i < LENGTH(huge); i++) {
      size_t bound = 77;
      float value = 1, back = 0;
      enum pwi_value_codec number = (enum pwi_value_codec)codec;
      assert_int_equal(pwi_values_bound(number, PWI_TYPE_F32, huge[i], &bound), PAWL_OVERFLOW);
      assert_int_equal(bound, 77);
      assert_int_equal(pwi_values_encode(workspace, number, PWI_TYPE_F32, &value, huge[i], &back, 4, &bound),
                       PAWL_OVERFLOW);
      assert_int_equal(pwi_values_decode(workspace, number, PWI_TYPE_F32, &value, 4, &back, huge[i]), PAWL_CORRUPT);
    }
  }
  size_t bound;
  assert_int_equal(pwi_values_bound(PWI_CODEC_RAW, PWI_TYPE_F32, SIZE_MAX / 4, &bound), PAWL_OK);
  assert_int_equal(pwi_values_bound(PWI_CODEC_BITMAP, PWI_TYPE_F32, SIZE_MAX / 4, &bound), PAWL_OVERFLOW);
  assert_int_equal(pwi_values_bound(PWI_CODEC_LZ4, PWI_TYPE_F32, SIZE_MAX / 4, &bound), PAWL_OVERFLOW);
  assert_int_equal(pwi_values_bound(PWI_CODEC_ZSTD, PWI_TYPE_F32, SIZE_MAX / 4, &bound), PAWL_OVERFLOW);
}

static void test_the_bound_of_zstd_is_no_less_than_its_own(void **state) {
  (void)state;
  for (size_t count = 1; count < 1000000; count += 1 + count / 3) {
    size_t bound;
    assert_int_equal(pwi_values_bound(PWI_CODEC_ZSTD, PWI_TYPE_F32, count, &bound), PAWL_OK);
    assert_true(bound >= ZSTD_compressBound(count * 4));
  }
}

static void test_too_little_room_is_refused(void **state) {
  (void)state;
  char buffer[4096];
  for (int codec = 0; codec < PWI_CODEC_COUNT; codec++) {
    size_t bound, size = 77;
    float values[10] = {0};
    assert_int_equal(pwi_values_bound((enum pwi_value_codec)codec, PWI_TYPE_F32, 10, &bound), PAWL_OK);
    assert_int_equal(
        pwi_values_encode(workspace, (enum pwi_value_codec)codec, PWI_TYPE_F32, values, 10, buffer, bound - 1, &size),
        PAWL_INVALID);
    assert_int_equal(size, 77);
  }
}

static void test_lossless_codecs_allocate_nothing(void **state) {
  (void)state;
  uint64_t before = pwi_memory_counts().allocations;
  for (size_t c = 0; c < LENGTH(lossless); c++) check_round_trip(lossless[c], PWI_TYPE_F32, LONG_RUNS, 300000);
  assert_int_equal(pwi_memory_counts().allocations, before);
}

static void test_create_survives_every_failing_allocation(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pwi_codec *codec = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_codec_create(&codec);
    int failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (failed) assert_null(codec);
    pwi_codec_destroy(codec);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!failed) {
      assert_true(n >= 4);
      return;
    }
  }
}

static void test_the_sampler_comes_near_the_part_of_zeros(void **state) {
  (void)state;
  for (size_t t = 0; t < LENGTH(types); t++) {
    for (size_t n = 1; n < LENGTH(counts); n++) {
      void *none = make_values(NO_ZERO, types[t], counts[n]), *all = make_values(ALL_ZERO, types[t], counts[n]);
      assert_true(pwi_values_zero_fraction(types[t], none, counts[n]) == 0);
      assert_true(pwi_values_zero_fraction(types[t], all, counts[n]) == 1);
      free(all);
      free(none);
    }
    void *mostly = make_values(MOSTLY_ZERO, types[t], 100000), *every_other = make_values(ALTERNATING, types[t], 65536);
    assert_true(pwi_values_zero_fraction(types[t], mostly, 100000) > 0.94);
    assert_true(fabs(pwi_values_zero_fraction(types[t], every_other, 65536) - 0.5) < 0.1);
    assert_true(pwi_values_zero_fraction(types[t], every_other, 2) == 0.5);
    assert_true(pwi_values_zero_fraction(types[t], NULL, 0) == 0);
    free(every_other);
    free(mostly);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lossless_codecs_return_every_bit),
      cmocka_unit_test(test_lz4_goes_on_past_its_first_block),
      cmocka_unit_test(test_minus_zero_is_not_zero),
      cmocka_unit_test(test_bitmap_costs_what_its_layout_says),
      cmocka_unit_test(test_layouts_are_as_documented),
      cmocka_unit_test(test_bytes_missing_or_left_over_are_refused),
      cmocka_unit_test(test_a_wrong_count_is_refused),
      cmocka_unit_test(test_a_flipped_bit_does_no_harm),
      cmocka_unit_test(test_random_bytes_do_no_harm),
      cmocka_unit_test(test_bitmap_refuses_bits_that_stand_for_nothing),
      cmocka_unit_test(test_zstd_takes_one_plain_frame_only),
      cmocka_unit_test(test_unknown_numbers_are_unsupported),
      cmocka_unit_test(test_integers_are_never_lossy),
      cmocka_unit_test(test_counts_that_do_not_fit_are_refused),
      cmocka_unit_test(test_the_bound_of_zstd_is_no_less_than_its_own),
      cmocka_unit_test(test_too_little_room_is_refused),
      cmocka_unit_test(test_lossless_codecs_allocate_nothing),
      cmocka_unit_test(test_create_survives_every_failing_allocation),
      cmocka_unit_test(test_the_sampler_comes_near_the_part_of_zeros),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
