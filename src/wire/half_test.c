/* Sixteen-bit floats against a slow oracle: a search for the nearest value in a sorted table of all values of
 * a format. */
#include <math.h>

#include "base/random.h"
#include "base/testing.h"
#include "wire/half.h"

#define SEED 20240611
#define INFINITE_F16 0x7c00
#define INFINITE_BF16 0x7f80

/* table[i] is the value of the positive bit pattern i. The first infinite pattern has the value that it would
 * have if the exponent range continued. */
struct table {
  uint16_t infinite;
  double values[INFINITE_BF16 + 1];
};

static struct table f16, bf16;

static void fill(struct table *table, uint16_t infinite, int fraction_bits, int bias) {
  table->infinite = infinite;
  for (int i = 0; i <= infinite; i++) {
    int exponent = i >> fraction_bits, fraction = i & ((1 << fraction_bits) - 1);
    int significand = exponent ? fraction | 1 << fraction_bits : fraction;
    table->values[i] = ldexp(significand, (exponent ? exponent : 1) - bias - fraction_bits);
  }
}

static int set_up(void **state) {
  (void)state;
  fill(&f16, INFINITE_F16, 10, 15);
  fill(&bf16, INFINITE_BF16, 7, 127);
  return 0;
}

/* The bit pattern nearest to `value`, which is not NaN. */
static uint16_t nearest(const struct table *table, double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double magnitude = fabs(value);
  unsigned low = 0, high = table->infinite;
  if (magnitude >= table->values[high]) return (uint16_t)(sign | high);
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    if (table->values[middle] <= magnitude)
      low = middle;
    else
      high = middle;
  }
  double half_way = (table->values[low] + table->values[high]) / 2;
  unsigned up = magnitude > half_way || (magnitude == half_way && (low & 1));
  return (uint16_t)(sign | (low + up));
}

static void check_float(float value) {
  uint32_t bits = pwi_float_bits(value);
  if (isnan(value)) {
    assert_true((pwi_f16_from_f32(bits) & 0x7fff) > INFINITE_F16);
    assert_true((pwi_bf16_from_f32(bits) & 0x7fff) > INFINITE_BF16);
    assert_int_equal(pwi_f16_from_f32(bits) >> 15, bits >> 31);
    return;
  }
  assert_int_equal(pwi_f16_from_f32(bits), nearest(&f16, (double)value));
  assert_int_equal(pwi_bf16_from_f32(bits), nearest(&bf16, (double)value));
}

static void check_double(double value) {
  uint32_t odd = pwi_f32_odd_from_f64(value);
  if (isnan(value)) {
    assert_true(isnan(pwi_float_of_bits(odd)));
    return;
  }
  assert_int_equal(pwi_f16_from_f32(odd), nearest(&f16, value));
  assert_int_equal(pwi_bf16_from_f32(odd), nearest(&bf16, value));
}

static void test_every_half_has_the_value_of_its_fields(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 0x10000; i++) {
    uint32_t magnitude = i & 0x7fff;
    float value = pwi_float_of_bits(pwi_f32_from_f16((uint16_t)i));
    assert_int_equal(!!signbit(value), i >> 15);
    if (magnitude < INFINITE_F16) assert_true((double)fabsf(value) == f16.values[magnitude]);
    if (magnitude == INFINITE_F16) assert_true(isinf(value));
    if (magnitude > INFINITE_F16) assert_true(isnan(value));
  }
}

static void test_every_half_survives_a_round_trip(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 0x10000; i++) {
    uint16_t quiet_f16 = (uint16_t)((i & 0x7fff) > INFINITE_F16 ? i | 0x200 : i);
    uint16_t quiet_bf16 = (uint16_t)((i & 0x7fff) > INFINITE_BF16 ? i | 0x40 : i);
    assert_int_equal(pwi_f16_from_f32(pwi_f32_from_f16((uint16_t)i)), quiet_f16);
    assert_int_equal(pwi_bf16_from_f32(pwi_f32_from_bf16((uint16_t)i)), quiet_bf16);
  }
}

static void test_floats_at_and_beside_every_boundary_go_to_the_nearest(void **state) {
  (void)state;
  const struct table *tables[] = {&f16, &bf16};
  for (size_t t = 0; t < 2; t++) {
    for (unsigned i = 0; i < tables[t]->infinite; i++) {
      float half_way = (float)((tables[t]->values[i] + tables[t]->values[i + 1]) / 2);
      float around[] = {half_way, nextafterf(half_way, 0), nextafterf(half_way, INFINITY), (float)tables[t]->values[i]};
      for (size_t k = 0; k < 4; k++) {
        check_float(around[k]);
        check_float(-around[k]);
      }
    }
  }
}

/* Values so near a rounding boundary that rounding to f32 would move them onto it, and the second rounding
 * would go the wrong way. */
static void test_doubles_are_rounded_once(void **state) {
  (void)state;
  const struct table *tables[] = {&f16, &bf16};
  for (size_t t = 0; t < 2; t++) {
    for (unsigned i = 0; i < tables[t]->infinite; i++) {
      double half_way = (tables[t]->values[i] + tables[t]->values[i + 1]) / 2;
      double around[] = {half_way, nextafter(half_way, 0), nextafter(half_way, INFINITY)};
      for (size_t k = 0; k < 3; k++) {
        check_double(around[k]);
        check_double(-around[k]);
      }
    }
  }
}

static void test_rounding_to_odd_is_exact_or_odd(void **state) {
  (void)state;
  assert_int_equal(pwi_f32_odd_from_f64(1.0), 0x3f800000);
  assert_int_equal(pwi_f32_odd_from_f64(-0.0), 0x80000000);
  assert_int_equal(pwi_f32_odd_from_f64(1.0 + 0x1p-40), 0x3f800001);
  assert_int_equal(pwi_f32_odd_from_f64(1.0 - 0x1p-40), 0x3f7fffff);
  assert_int_equal(pwi_f32_odd_from_f64(1.0 + 0x1p-23 + 0x1p-40), 0x3f800001);
  assert_int_equal(pwi_f32_odd_from_f64(0x1p-1000), 0x00000001);
  assert_int_equal(pwi_f32_odd_from_f64(-1e300), 0xff7fffff);
  assert_int_equal(pwi_f32_odd_from_f64((double)INFINITY), 0x7f800000);
}

static void test_random_floats_and_doubles_go_to_the_nearest(void **state) {
  (void)state;
  print_message("seed %d\n", SEED);
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (int i = 0; i < 1000000; i++) {
    uint64_t bits = pwi_random_u64(&random);
    /* Random bits are nearly always out of a half's range: scale every other one into it. */
    double value = ldexp(pwi_random_unit(&random), (int)(bits % 48) - 30);
    check_float(pwi_float_of_bits((uint32_t)bits));
    check_float((float)value);
    check_double(value);
    memcpy(&value, &bits, sizeof value);
    check_double(value);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_half_has_the_value_of_its_fields),
      cmocka_unit_test(test_every_half_survives_a_round_trip),
      cmocka_unit_test(test_floats_at_and_beside_every_boundary_go_to_the_nearest),
      cmocka_unit_test(test_doubles_are_rounded_once),
      cmocka_unit_test(test_rounding_to_odd_is_exact_or_odd),
      cmocka_unit_test(test_random_floats_and_doubles_go_to_the_nearest),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
