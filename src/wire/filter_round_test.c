/* half and fixed: the codecs encode their output without loss, and on average it equals the input. */
#include <float.h>
#include <math.h>

#include "base/random.h"
#include "base/testing.h"
#include "wire/filters.h"

#define SEED 21
#define COUNT 3000

static uint64_t keys[COUNT];

static int set_up(void **state) {
  (void)state;
  print_message("seed %d\n", SEED);
  for (size_t i = 0; i < COUNT; i++) keys[i] = i;
  return 0;
}

static struct pawl_filters *create(const char *text, enum pawl_type type) {
  struct pawl_filters_options options;
  struct pawl_filters *filters;
  pawl_filters_options_init(&options);
  options.type = type;
  options.seed = SEED;
  assert_int_equal(pawl_filters_create(text, &options, &filters), PAWL_OK);
  return filters;
}

/* Numbers of all magnitudes of the type, and its limits. */
static void fill(enum pawl_type type, void *values) {
  static const double edges[] = {0,       65504,   -65504,     65519,   65520,    1e5,     0x1p-14,  0x1p-24,
                                 0x1p-25, 0x1p-26, 0x1.fep127, FLT_MAX, -FLT_MAX, FLT_MIN, 0x1p-133, 0x1p-149};
  struct pwi_random random;
  pwi_random_init(&random, SEED, (uint64_t)type);
  for (size_t i = 0; i < COUNT; i++) {
    double value = ldexp(pwi_random_unit(&random) * 2 - 1, (int)pwi_random_below(&random, 60) - 40);
    if (i < sizeof edges / sizeof *edges) value = edges[i];
    if (type == PAWL_F32)
      ((float *)values)[i] = (float)value;
    else
      ((double *)values)[i] = value;
  }
  if (type == PAWL_F64) ((double *)values)[100] = DBL_MAX, ((double *)values)[101] = 0x1p-1074;
}

static double value_at(enum pawl_type type, const void *values, size_t at) {
  return type == PAWL_F32 ? (double)((const float *)values)[at] : ((const double *)values)[at];
}

/* Values that are divided at odd places and encoded again stay the same. */
static size_t assert_carried(enum pwi_value_codec codec, const struct pawl_rows *rows, size_t step) {
  static char bytes[COUNT * 9 + 64];
  static double back[COUNT];
  struct pwi_codec *workspace;
  size_t total = 0, value_size = rows->bytes;
  assert_int_equal(pwi_codec_create(&workspace), PAWL_OK);
  for (size_t at = 0; at < rows->count; at += step) {
    size_t count = rows->count - at < step ? rows->count - at : step, size;
    const char *from = (const char *)rows->values + at * value_size;
    enum pwi_value_type type = (enum pwi_value_type)rows->type;
    assert_int_equal(pwi_values_encode(workspace, codec, type, from, count, bytes, sizeof bytes, &size), PAWL_OK);
    assert_int_equal(pwi_values_decode(workspace, codec, type, bytes, size, back, count), PAWL_OK);
    assert_memory_equal(back, from, count * value_size);
    total += size;
  }
  pwi_codec_destroy(workspace);
  return total;
}

static void check_carried(const char *text, enum pawl_type type, enum pwi_value_codec codec) {
  static double values[COUNT];
  struct pawl_filters *filters = create(text, type);
  struct pawl_rows rows = {0};
  fill(type, values);
  assert_int_equal(pawl_filters_run(filters, keys, values, NULL, COUNT, false, &rows), PAWL_OK);
  assert_true(pwi_filters_codecs(filters) >> codec & 1);
  for (size_t i = 0; i < COUNT; i++) assert_true(isfinite(value_at(type, rows.values, i)));
  assert_carried(codec, &rows, COUNT);
  assert_carried(codec, &rows, 77);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

static void test_the_codecs_carry_what_the_filters_leave(void **state) {
  (void)state;
  static const enum pawl_type floats[] = {PAWL_F32, PAWL_F64};
  for (size_t i = 0; i < 2; i++) {
    check_carried("half", floats[i], PWI_CODEC_F16);
    check_carried("half(round=nearest)", floats[i], PWI_CODEC_F16);
    check_carried("half(type=bf16)", floats[i], PWI_CODEC_BF16);
    check_carried("half(type=bf16, round=nearest)", floats[i], PWI_CODEC_BF16);
    check_carried("fixed", floats[i], PWI_CODEC_FIXED);
    check_carried("fixed(bits=2)", floats[i], PWI_CODEC_FIXED);
    check_carried("fixed(bits=16, block=100, round=nearest)", floats[i], PWI_CODEC_FIXED);
  }
}

static void test_fixed_values_take_their_bits_and_no_more(void **state) {
  (void)state;
  static float values[COUNT];
  struct pwi_random random;
  pwi_random_init(&random, SEED, 5);
  for (size_t i = 0; i < COUNT; i++) values[i] = (float)pwi_random_unit(&random) - 0.5f;
  for (unsigned bits = 2; bits <= 16; bits++) {
    char text[32];
    snprintf(text, sizeof text, "fixed(bits=%u)", bits);
    struct pawl_filters *filters = create(text, PAWL_F32);
    struct pawl_rows rows = {0};
    assert_int_equal(pawl_filters_run(filters, keys, values, NULL, COUNT, false, &rows), PAWL_OK);
    size_t size = assert_carried(PWI_CODEC_FIXED, &rows, COUNT);
    assert_true(size <= (COUNT * bits + 7) / 8 + 12 * 4);
    pawl_rows_fini(&rows);
    pawl_filters_destroy(filters);
  }
}

/* Rounding selects one of the two neighbours, so that the error is less than their distance. */
static void test_rounding_is_off_by_less_than_a_step(void **state) {
  (void)state;
  static double values[COUNT];
  struct pawl_filters *half = create("half", PAWL_F64), *brain = create("half(type=bf16)", PAWL_F64);
  struct pawl_rows a = {0}, b = {0};
  fill(PAWL_F64, values);
  assert_int_equal(pawl_filters_run(half, keys, values, NULL, COUNT, false, &a), PAWL_OK);
  assert_int_equal(pawl_filters_run(brain, keys, values, NULL, COUNT, false, &b), PAWL_OK);
  for (size_t i = 0; i < COUNT; i++) {
    double x = values[i], magnitude = fabs(x), h = ((double *)a.values)[i], s = ((double *)b.values)[i];
    if (magnitude <= 65504) assert_true(fabs(h - x) < fmax(magnitude * 0x1p-10, 0x1p-24));
    if (magnitude <= 0x1.fep127) assert_true(fabs(s - x) < fmax(magnitude * 0x1p-7, 0x1p-133));
    if (magnitude > 65504) assert_true(h == copysign(65504, x));
  }
  pawl_rows_fini(&a);
  pawl_rows_fini(&b);
  pawl_filters_destroy(half);
  pawl_filters_destroy(brain);
}

/* A step is large enough for the largest value, also just above a power of two, and no larger than needed. */
static void test_fixed_fits_its_step_to_the_largest_value(void **state) {
  (void)state;
  struct pawl_filters *filters = create("fixed(bits=8, round=nearest)", PAWL_F64);
  struct pawl_rows rows = {0};
  struct pawl_filter_counters counters;
  for (int i = 0; i < 400; i++) {
    double largest = ldexp(64 + 64 * (double)i / 399, i - 200),
           step = ldexp(largest <= ldexp(127, i - 200) ? 1 : 2, i - 200);
    double values[] = {largest, -largest, largest / 3};
    assert_int_equal(pawl_filters_run(filters, keys, values, NULL, 3, false, &rows), PAWL_OK);
    for (size_t k = 0; k < 3; k++) {
      double rounded = ((double *)rows.values)[k];
      assert_true(fabs(rounded - values[k]) <= step / 2 && rounded / step == rint(rounded / step));
    }
  }
  assert_int_equal(pawl_filters_counters(filters, 0, &counters), PAWL_OK);
  assert_int_equal(counters.clamped, 0);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

/* 4000 roundings of one value, 5 standard errors. The variance of one rounding between neighbours at a
 * distance of d, a part f of the way up, is f (1 - f) d^2. */
static void check_unbiased(const char *text, enum pawl_type type, double value, double step) {
  enum { ROWS = 400, RUNS = 10 };
  static double wide[ROWS];
  static float narrow[ROWS];
  struct pawl_filters *filters = create(text, type);
  struct pawl_rows rows = {0};
  double sum = 0;
  for (size_t i = 0; i < ROWS; i++) wide[i] = value, narrow[i] = (float)value;
  narrow[0] = 1, wide[0] = 1; /* gives the step of `fixed`; it is not counted */
  double exact = type == PAWL_F32 ? (double)narrow[1] : wide[1];
  for (int run = 0; run < RUNS; run++) {
    const void *values = type == PAWL_F32 ? (const void *)narrow : wide;
    assert_int_equal(pawl_filters_run(filters, keys, values, NULL, ROWS, false, &rows), PAWL_OK);
    for (size_t i = 1; i < ROWS; i++) sum += value_at(type, rows.values, i);
  }
  double samples = RUNS * (ROWS - 1), part = exact / step - floor(exact / step);
  double error = step * sqrt(part * (1 - part) / samples);
  assert_true(fabs(sum / samples - exact) <= 5 * error + fabs(exact) * 1e-12);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

static void test_random_rounding_is_unbiased(void **state) {
  (void)state;
  static const double parts[] = {0.01, 0.1, 0.3, 0.5, 0.77, 0.999};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      double part = parts[i];
      check_unbiased("half", PAWL_F32, sign * (1 + part * 0x1p-10), 0x1p-10);
      check_unbiased("half", PAWL_F64, sign * (0x1p-20 + part * 0x1p-24), 0x1p-24);
      check_unbiased("half", PAWL_F32, sign * part * 0x1p-24, 0x1p-24);
      check_unbiased("half(type=bf16)", PAWL_F32, sign * (96 + part * 0.5), 0.5);
      check_unbiased("half(type=bf16)", PAWL_F64, sign * (96 + part * 0.5), 0.5);
      check_unbiased("fixed(bits=4, block=400)", PAWL_F32, sign * (0.25 + part / 4), 0.25);
      check_unbiased("fixed(bits=8, block=400)", PAWL_F64, sign * (0.5 + part / 64), 0x1p-6);
    }
  }
}

static void test_nearest_is_what_the_codec_would_give(void **state) {
  (void)state;
  static float values[COUNT], back[COUNT];
  static uint16_t halves[COUNT];
  static const char *const texts[] = {"half(round=nearest)", "half(type=bf16, round=nearest)"};
  static const enum pwi_value_codec codecs[] = {PWI_CODEC_F16, PWI_CODEC_BF16};
  struct pwi_codec *workspace;
  size_t size;
  assert_int_equal(pwi_codec_create(&workspace), PAWL_OK);
  fill(PAWL_F32, values);
  for (size_t k = 0; k < 2; k++) {
    struct pawl_filters *filters = create(texts[k], PAWL_F32);
    struct pawl_rows rows = {0};
    assert_int_equal(pawl_filters_run(filters, keys, values, NULL, COUNT, false, &rows), PAWL_OK);
    assert_int_equal(pwi_values_encode(workspace, codecs[k], PWI_TYPE_F32, values, COUNT, halves, sizeof halves, &size),
                     PAWL_OK);
    assert_int_equal(pwi_values_decode(workspace, codecs[k], PWI_TYPE_F32, halves, size, back, COUNT), PAWL_OK);
    for (size_t i = 0; i < COUNT; i++)
      if (isfinite(back[i])) assert_true(((float *)rows.values)[i] == back[i]);
    pawl_rows_fini(&rows);
    pawl_filters_destroy(filters);
  }
  pwi_codec_destroy(workspace);
}

static void test_values_of_sixteen_bits_are_not_changed(void **state) {
  (void)state;
  static float values[COUNT];
  struct pawl_filters *filters = create("half | half", PAWL_F32), *once = create("half", PAWL_F32);
  struct pawl_rows first = {0}, second = {0};
  fill(PAWL_F32, values);
  assert_int_equal(pawl_filters_run(once, keys, values, NULL, COUNT, false, &first), PAWL_OK);
  assert_int_equal(pawl_filters_run(filters, keys, first.values, NULL, COUNT, false, &second), PAWL_OK);
  assert_memory_equal(first.values, second.values, sizeof values);
  pawl_rows_fini(&first);
  pawl_rows_fini(&second);
  pawl_filters_destroy(filters);
  pawl_filters_destroy(once);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_codecs_carry_what_the_filters_leave),
      cmocka_unit_test(test_fixed_values_take_their_bits_and_no_more),
      cmocka_unit_test(test_rounding_is_off_by_less_than_a_step),
      cmocka_unit_test(test_fixed_fits_its_step_to_the_largest_value),
      cmocka_unit_test(test_random_rounding_is_unbiased),
      cmocka_unit_test(test_nearest_is_what_the_codec_would_give),
      cmocka_unit_test(test_values_of_sixteen_bits_are_not_changed),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
