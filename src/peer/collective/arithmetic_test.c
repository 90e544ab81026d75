/* The fast loops beside slow ones that combine single values. */
#include "peer/collective/arithmetic.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "base/random.h"
#include "base/testing.h"

#define VALUES_MAX 300 /* many vectors, and a rest */
#define GUARD 64
#define BYTES (VALUES_MAX * 8 + 2 * GUARD)

static unsigned char first[BYTES], second[BYTES], into[BYTES], expected[BYTES];

static const double special[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 INFINITY,
                                 -INFINITY,
                                 (double)FLT_MAX,
                                 -(double)FLT_MAX,
                                 (double)FLT_MIN,
                                 (double)FLT_TRUE_MIN,
                                 -(double)FLT_TRUE_MIN};
#define SPECIALS (sizeof special / sizeof *special)

static size_t size_of(enum pawl_type type) { return type == PAWL_F32 ? 4 : 8; }

static uint64_t get(enum pawl_type type, const unsigned char *values, size_t i) {
  uint64_t bits = 0;
  memcpy(&bits, values + i * size_of(type), size_of(type)); /* values are little-endian, as on every host of pawl */
  return bits;
}

static void put(enum pawl_type type, unsigned char *values, size_t i, uint64_t bits) {
  memcpy(values + i * size_of(type), &bits, size_of(type));
}

static uint64_t bits_of(enum pawl_type type, double value) {
  unsigned char bytes[8];
  float narrow = (float)value;
  if (type == PAWL_F32)
    memcpy(bytes, &narrow, 4);
  else
    memcpy(bytes, &value, 8);
  return get(type, bytes, 0);
}

static double value_of(enum pawl_type type, uint64_t bits) {
  unsigned char bytes[8];
  float narrow;
  double value;
  put(type, bytes, 0, bits);
  memcpy(&narrow, bytes, 4);
  if (type == PAWL_F32) return (double)narrow;
  memcpy(&value, bytes, 8);
  return value;
}

/* Quiet and signalling NaN of both signs, with any payload. */
static uint64_t draw_nan(struct pwi_random *random, enum pawl_type type) {
  uint64_t payload = pwi_random_u64(random);
  if (type == PAWL_F32) return (payload & 0x807fffff) | 0x7f800001;
  return (payload & UINT64_C(0x800fffffffffffff)) | UINT64_C(0x7ff0000000000001);
}

static uint64_t draw(struct pwi_random *random, enum pawl_type type) {
  uint64_t choice = pwi_random_below(random, 4);
  if (choice == 0) return draw_nan(random, type);
  if (choice == 1) return bits_of(type, special[pwi_random_below(random, SPECIALS)]);
  double mantissa = (double)pwi_random_below(random, 1u << 24) / (1u << 24) - 0.5;
  return bits_of(type, ldexp(mantissa, (int)pwi_random_below(random, 40)));
}

/* A sum of two floats in double is exact before it is rounded to float. */
static uint64_t combine_one(enum pawl_collective_operator operator_, enum pawl_type type, uint64_t a, uint64_t b) {
  double x = value_of(type, a), y = value_of(type, b);
  if (operator_ == PAWL_COLLECTIVE_SUM) {
    double sum = x + y;
    if (!isnan(sum)) return bits_of(type, sum);
  }
  if (isnan(x) || isnan(y) || operator_ == PAWL_COLLECTIVE_SUM)
    return type == PAWL_F32 ? COLLECTIVE_NAN_32 : COLLECTIVE_NAN_64;
  if (operator_ == PAWL_COLLECTIVE_MIN) return y < x ? b : a;
  return y > x ? b : a;
}

/* Combines `count` values whose first bytes are at these offsets; `aliased`: the result replaces the first values, the
 * second ones, or neither. Nothing beside the result changes. */
static void play(struct pwi_random *random, enum pawl_collective_operator operator_, enum pawl_type type, size_t count,
                 const size_t offsets[3], int aliased) {
  unsigned char *a = first + GUARD + offsets[0], *b = second + GUARD + offsets[1];
  unsigned char *memory = aliased == 1 ? first : aliased == 2 ? second : into;
  unsigned char *result = aliased == 1 ? a : aliased == 2 ? b : into + GUARD + offsets[2];
  memset(into, 0x5a, sizeof into);
  for (size_t i = 0; i < BYTES; i++) first[i] = second[i] = (unsigned char)i;
  for (size_t i = 0; i < count; i++) {
    put(type, a, i, draw(random, type));
    put(type, b, i, draw(random, type));
  }
  memcpy(expected, memory, sizeof expected);
  for (size_t i = 0; i < count; i++)
    put(type, expected + (result - memory), i, combine_one(operator_, type, get(type, a, i), get(type, b, i)));
  pwi_collective_combine(operator_, type, result, a, b, count);
  assert_memory_equal(memory, expected, sizeof expected);
}

static void test_every_operator_has_the_bits_of_the_reference(void **state) {
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, 5, 0);
  for (size_t round = 0; round < 6000; round++) {
    enum pawl_collective_operator operator_ = (enum pawl_collective_operator)(round % 3);
    enum pawl_type type = round / 3 % 2 ? PAWL_F64 : PAWL_F32;
    size_t offsets[3];
    for (int i = 0; i < 3; i++) offsets[i] = pwi_random_below(&random, 2) ? 0 : pwi_random_below(&random, 16);
    play(&random, operator_, type, pwi_random_below(&random, round % 2 ? 20 : VALUES_MAX), offsets,
         (int)(round / 6 % 3));
  }
}

/* Pointers of an empty combination are not followed: an empty block has none. */
static void test_nothing_is_combined_without_values(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++)
    pwi_collective_combine((enum pawl_collective_operator)(i % 3), i < 3 ? PAWL_F32 : PAWL_F64, NULL, NULL, NULL, 0);
}

static uint64_t combined(enum pawl_collective_operator operator_, enum pawl_type type, double a, double b) {
  put(type, first, 0, bits_of(type, a));
  put(type, second, 0, bits_of(type, b));
  pwi_collective_combine(operator_, type, into, first, second, 1);
  return get(type, into, 0);
}

/* The cases that the header names, in words of its own. */
static void check_named_cases(enum pawl_type type, uint64_t nan) {
  uint64_t zero = bits_of(type, 0.0), minus = bits_of(type, -0.0), large = bits_of(type, INFINITY);
  assert_true(combined(PAWL_COLLECTIVE_MIN, type, 0.0, -0.0) == zero);
  assert_true(combined(PAWL_COLLECTIVE_MIN, type, -0.0, 0.0) == minus);
  assert_true(combined(PAWL_COLLECTIVE_MAX, type, 0.0, -0.0) == zero);
  assert_true(combined(PAWL_COLLECTIVE_MAX, type, -0.0, 0.0) == minus);
  assert_true(combined(PAWL_COLLECTIVE_SUM, type, -0.0, -0.0) == minus);
  assert_true(combined(PAWL_COLLECTIVE_SUM, type, INFINITY, 1) == large);
  assert_true(combined(PAWL_COLLECTIVE_SUM, type, type == PAWL_F32 ? (double)FLT_MAX : DBL_MAX,
                       type == PAWL_F32 ? (double)FLT_MAX : DBL_MAX) == large);
  assert_true(combined(PAWL_COLLECTIVE_MAX, type, -INFINITY, INFINITY) == large);
  assert_true(combined(PAWL_COLLECTIVE_SUM, type, INFINITY, -INFINITY) == nan);
  for (int operator_ = 0; operator_ < 3; operator_++) {
    assert_true(combined((enum pawl_collective_operator)operator_, type, (double)NAN, 1) == nan);
    assert_true(combined((enum pawl_collective_operator)operator_, type, 1, -(double)NAN) == nan);
    assert_true(combined((enum pawl_collective_operator)operator_, type, -(double)NAN, INFINITY) == nan);
  }
}

static void test_zeros_infinities_and_nan(void **state) {
  (void)state;
  check_named_cases(PAWL_F32, 0x7fc00000);
  check_named_cases(PAWL_F64, UINT64_C(0x7ff8000000000000));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operator_has_the_bits_of_the_reference),
      cmocka_unit_test(test_nothing_is_combined_without_values),
      cmocka_unit_test(test_zeros_infinities_and_nan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
