/* The fast loops beside slow ones that add and divide single values. */
#include "peer/reduce/arithmetic.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "base/random.h"
#include "base/testing.h"

#define VALUES_MAX 5000 /* more than two blocks of either type */
#define SOURCES_MAX 7

static unsigned char memory[SOURCES_MAX + 1][VALUES_MAX * 8 + 64];

static size_t size_of(enum pawl_type type) { return type == PAWL_F32 ? 4 : 8; }

static void put(enum pawl_type type, void *values, size_t i, double value) {
  float narrow = (float)value;
  if (type == PAWL_F32)
    memcpy((char *)values + 4 * i, &narrow, 4);
  else
    memcpy((char *)values + 8 * i, &value, 8);
}

/* Values of all sizes, with zeros of both signs and denormals. */
static double draw(struct pwi_random *random, enum pawl_type type) {
  double value =
      ldexp((double)pwi_random_below(random, 1u << 24) / (1u << 24) - 0.5, (int)pwi_random_below(random, 40));
  switch (pwi_random_below(random, 16)) {
  case 0:
    return pwi_random_below(random, 2) ? 0.0 : -0.0;
  case 1:
    return type == PAWL_F32 ? (double)FLT_TRUE_MIN * 3 : DBL_TRUE_MIN * 3;
  case 2:
    return type == PAWL_F32 ? -(double)FLT_MIN / 4 : -DBL_MIN / 4;
  case 3:
    return type == PAWL_F32 ? (double)FLT_MAX / 8 : DBL_MAX / 8;
  default:
    return value;
  }
}

static void average_slowly(enum pawl_type type, void *into, const void *const *sources, size_t source_count,
                           size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (type == PAWL_F32) {
      volatile float sum = 0;
      for (size_t k = 0; k < source_count; k++) {
        float value;
        memcpy(&value, (const char *)sources[k] + 4 * i, 4);
        sum = k == 0 ? value : sum + value;
      }
      put(type, into, i, (double)(float)(sum / (float)source_count));
    } else {
      volatile double sum = 0;
      for (size_t k = 0; k < source_count; k++) {
        double value;
        memcpy(&value, (const char *)sources[k] + 8 * i, 8);
        sum = k == 0 ? value : sum + value;
      }
      put(type, into, i, sum / (double)source_count);
    }
  }
}

static void test_an_average_has_the_bits_of_a_slow_loop(void **state) {
  static unsigned char expected[VALUES_MAX * 8];
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, 5, 0);
  for (int round = 0; round < 400; round++) {
    enum pawl_type type = round % 2 ? PAWL_F32 : PAWL_F64;
    size_t sources = 1 + pwi_random_below(&random, SOURCES_MAX);
    size_t count = pwi_random_below(&random, round % 5 ? 70 : VALUES_MAX),
           into = pwi_random_below(&random, sources + 1);
    const void *places[SOURCES_MAX];
    for (size_t k = 0; k < sources; k++) {
      unsigned char *place = memory[k] + (round % 3 ? 0 : pwi_random_below(&random, 17)); /* any alignment */
      for (size_t i = 0; i < count; i++) put(type, place, i, draw(&random, type));
      places[k] = place;
    }
    average_slowly(type, expected, places, sources, count);
    void *to = into < sources ? (void *)(uintptr_t)places[into] : memory[SOURCES_MAX]; /* in place, or elsewhere */
    assert_true(pwi_reduce_average(type, to, places, sources, count));
    assert_memory_equal(to, expected, count * size_of(type));
  }
}

static void test_a_copy_is_exact_and_stays_in_its_bounds(void **state) {
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, 6, 0);
  for (int round = 0; round < 400; round++) {
    enum pawl_type type = round % 2 ? PAWL_F32 : PAWL_F64;
    size_t count = pwi_random_below(&random, round % 5 ? 70 : VALUES_MAX), size = count * size_of(type);
    unsigned char *from = memory[0] + pwi_random_below(&random, 17),
                  *to = memory[1] + 1 + pwi_random_below(&random, 17);
    for (size_t i = 0; i < count; i++) put(type, from, i, draw(&random, type));
    memset(memory[1], 0xa5, sizeof memory[1]);
    assert_true(pwi_reduce_copy_finite(type, to, from, count));
    assert_memory_equal(to, from, size);
    assert_int_equal(to[-1], 0xa5);
    assert_int_equal(to[size], 0xa5);
  }
}

/* At every place of a block and its tail, and at some of larger tensors. */
static void test_nan_and_infinities_are_found_at_every_position(void **state) {
  static const double bad[] = {(double)NAN, (double)INFINITY, (double)-INFINITY, (double)-NAN};
  static const size_t counts[] = {1, 2, 3, 7, 8, 15, 16, 17, 33, 63, 64, 65, 100, VALUES_MAX};
  (void)state;
  for (enum pawl_type type = PAWL_F32; type <= PAWL_F64; type++)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      size_t count = counts[c], step = count > 1000 ? 37 : 1;
      for (size_t i = 0; i < count; i++) {
        put(type, memory[0], i, type == PAWL_F32 ? (double)FLT_MAX / 4 : DBL_MAX / 4);
        put(type, memory[1], i, -1.5);
      }
      const void *both[] = {memory[0], memory[1]}, *three[] = {memory[1], memory[1], memory[0]};
      for (size_t at = 0; at < count; at += at + step < count || at == count - 1 ? step : count - 1 - at) {
        put(type, memory[0], at, bad[at % 4]);
        assert_false(pwi_reduce_is_finite(type, memory[0], count));
        assert_false(pwi_reduce_copy_finite(type, memory[2], memory[0], count));
        assert_false(pwi_reduce_average(type, memory[2], both, 2, count));
        assert_false(pwi_reduce_average(type, memory[2], three, 3, count));
        assert_false(pwi_reduce_average(type, memory[2], both, 1, count));
        assert_false(pwi_reduce_average(type, memory[0], both, 1, count));
        put(type, memory[0], at, 1);
        assert_true(pwi_reduce_is_finite(type, memory[0], count));
        assert_true(pwi_reduce_average(type, memory[2], both, 2, count));
      }
    }
}

/* Finite inputs whose sum is not. */
static void test_a_sum_that_overflows_is_found(void **state) {
  (void)state;
  for (enum pawl_type type = PAWL_F32; type <= PAWL_F64; type++) {
    const void *both[] = {memory[0], memory[1]};
    for (size_t i = 0; i < 40; i++) {
      put(type, memory[0], i, 1);
      put(type, memory[1], i, 1);
    }
    put(type, memory[0], 20, type == PAWL_F32 ? (double)FLT_MAX : DBL_MAX);
    put(type, memory[1], 20, type == PAWL_F32 ? (double)FLT_MAX : DBL_MAX);
    assert_true(pwi_reduce_is_finite(type, memory[0], 40));
    assert_false(pwi_reduce_average(type, memory[0], both, 2, 40));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_average_has_the_bits_of_a_slow_loop),
      cmocka_unit_test(test_a_copy_is_exact_and_stays_in_its_bounds),
      cmocka_unit_test(test_nan_and_infinities_are_found_at_every_position),
      cmocka_unit_test(test_a_sum_that_overflows_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
