/* Positions: small spans by brute force, large ones by 128-bit arithmetic. */
#include "base/hash.h"
#include "base/random.h"
#include "base/testing.h"
#include "ring/place.h"

#define SEED UINT64_C(64)

static const uint64_t sizes[] = {1,
                                 2,
                                 3,
                                 7,
                                 1000,
                                 1001,
                                 UINT64_C(1) << 20,
                                 (UINT64_C(1) << 32) - 1,
                                 UINT64_C(1) << 32,
                                 (UINT64_C(1) << 32) + 1,
                                 UINT64_C(10000000019),
                                 (UINT64_C(1) << 63) - 1,
                                 UINT64_C(1) << 63,
                                 (UINT64_C(1) << 63) + 1,
                                 UINT64_MAX - 1,
                                 UINT64_MAX};
#define SIZES (sizeof sizes / sizeof *sizes)

static void test_a_place_needs_keys_and_mixing_needs_all_of_them(void **state) {
  (void)state;
  assert_int_equal(pwi_place_check(&(struct pwi_place){0, false}), PAWL_INVALID);
  assert_int_equal(pwi_place_check(&(struct pwi_place){1, false}), PAWL_OK);
  assert_int_equal(pwi_place_check(&(struct pwi_place){1000, true}), PAWL_INVALID);
  assert_int_equal(pwi_place_check(&(struct pwi_place){PAWL_KEY_END, true}), PAWL_OK);
  assert_int_equal(pwi_place_check(&(struct pwi_place){PAWL_KEY_END, false}), PAWL_OK);
}

/* Long division, bit by bit: floor(key * 2^64 / size). */
static uint64_t slow_position(uint64_t key, uint64_t size) {
  unsigned __int128 rest = key;
  uint64_t quotient = 0;
  for (int bit = 0; bit < 64; bit++) {
    rest <<= 1;
    quotient <<= 1;
    if (rest >= size) {
      rest -= size;
      quotient |= 1;
    }
  }
  return quotient;
}

static void test_a_position_is_the_exact_quotient(void **state) {
  (void)state;
  for (size_t i = 0; i < SIZES; i++) {
    const struct pwi_place place = {sizes[i], false};
    for (uint64_t n = 0; n < 200; n++) {
      uint64_t key = pwi_random_at(SEED, i, n) % sizes[i];
      assert_int_equal(pwi_place_position(&place, key), slow_position(key, sizes[i]));
    }
    assert_int_equal(pwi_place_position(&place, 0), 0);
    assert_int_equal(pwi_place_position(&place, sizes[i] - 1), slow_position(sizes[i] - 1, sizes[i]));
  }
}

static void test_the_full_span_is_its_own_position(void **state) {
  (void)state;
  const struct pwi_place place = {PAWL_KEY_END, false};
  for (uint64_t n = 0; n < 1000; n++) {
    uint64_t key = pwi_random_at(SEED, 1, n) % PAWL_KEY_END;
    assert_int_equal(pwi_place_position(&place, key), key);
    assert_int_equal(pwi_place_first_key(&place, key), key);
    assert_int_equal(slow_position(key, PAWL_KEY_END), key);
  }
}

static void test_no_key_lies_at_the_end_of_the_ring(void **state) {
  (void)state;
  for (size_t i = 0; i < SIZES; i++) {
    const struct pwi_place place = {sizes[i], false};
    assert_true(pwi_place_position(&place, sizes[i] - 1) < PWI_RING_END);
    assert_int_equal(pwi_place_first_key(&place, PWI_RING_END), sizes[i]);
    assert_int_equal(pwi_place_first_key(&place, 0), 0);
  }
}

static void test_the_first_key_of_a_position_is_the_first(void **state) {
  (void)state;
  for (size_t i = 0; i < SIZES; i++) {
    const struct pwi_place place = {sizes[i], false};
    for (uint64_t n = 0; n < 500; n++) {
      uint64_t position = pwi_random_at(SEED, 100 + i, n);
      if (n % 2) { /* exactly at a key, one before it, one past it */
        position = pwi_place_position(&place, position % sizes[i]) + n % 3 - 1;
        if (position == UINT64_MAX) continue;
      }
      uint64_t key = pwi_place_first_key(&place, position);
      assert_true(key <= sizes[i]);
      if (key < sizes[i]) assert_true(pwi_place_position(&place, key) >= position);
      if (key > 0) assert_true(pwi_place_position(&place, key - 1) < position);
    }
  }
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* 50 random points cut the ring; every key is counted in each arc that claims it. */
static void test_every_key_of_a_small_span_is_in_exactly_one_arc(void **state) {
  (void)state;
  for (uint64_t size = 1; size <= 600; size += size < 40 ? 1 : 37) {
    const struct pwi_place place = {size, false};
    uint64_t points[52] = {0};
    for (size_t i = 1; i <= 50; i++) points[i] = pwi_random_at(SEED, size, i) % PWI_RING_END;
    points[51] = PWI_RING_END;
    qsort(points, 52, sizeof *points, by_value);
    uint64_t next = 0;
    for (size_t i = 0; i < 51; i++) {
      struct pawl_range keys = pwi_place_keys(&place, pawl_range_of(points[i], points[i + 1]));
      assert_int_equal(keys.begin, next);
      assert_true(keys.end >= keys.begin);
      next = keys.end;
      for (uint64_t key = 0; key < size; key++) {
        uint64_t position = pwi_place_position(&place, key);
        assert_int_equal(pawl_range_has(keys, key), position >= points[i] && position < points[i + 1]);
      }
    }
    assert_int_equal(next, size);
  }
}

static void test_mixing_can_be_undone_and_spares_the_reserved_key(void **state) {
  (void)state;
  uint64_t special[] = {0, 1, pwi_unmix64(PAWL_KEY_END), pwi_mix64(PAWL_KEY_END), PAWL_KEY_END - 1};
  for (size_t i = 0; i < 1000; i++) {
    uint64_t key = i < 5 ? special[i] : pwi_random_at(SEED, 2, i);
    uint64_t mixed = pwi_place_mix(key);
    assert_int_not_equal(mixed, PAWL_KEY_END);
    assert_int_equal(pwi_place_unmix(mixed), key);
    assert_int_equal(pwi_place_mix(pwi_place_unmix(key)), key);
  }
  assert_int_equal(pwi_place_mix(PAWL_KEY_END), PAWL_KEY_END);
  assert_int_equal(pwi_place_unmix(PAWL_KEY_END), PAWL_KEY_END);
  assert_int_equal(pwi_place_mix(12345), pwi_mix64(12345));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_place_needs_keys_and_mixing_needs_all_of_them),
      cmocka_unit_test(test_a_position_is_the_exact_quotient),
      cmocka_unit_test(test_the_full_span_is_its_own_position),
      cmocka_unit_test(test_no_key_lies_at_the_end_of_the_ring),
      cmocka_unit_test(test_the_first_key_of_a_position_is_the_first),
      cmocka_unit_test(test_every_key_of_a_small_span_is_in_exactly_one_arc),
      cmocka_unit_test(test_mixing_can_be_undone_and_spares_the_reserved_key),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
