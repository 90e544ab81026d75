/* <pawl/range.h>: every pair of ranges in a small universe, against counting keys one by one; then the
 * edges. */
#include <pawl/range.h>

#include "base/testing.h"

#define UNIVERSE 8

/* The keys of a range as bits, straight from the definition. */
static unsigned bits_of(struct pawl_range range) {
  unsigned bits = 0;
  for (uint64_t key = 0; key < UNIVERSE; key++)
    if (range.begin <= key && key < range.end) bits |= 1u << key;
  return bits;
}

static void check_pair(struct pawl_range a, struct pawl_range b) {
  struct pawl_range common = pawl_range_common(a, b);
  assert_int_equal(bits_of(common), bits_of(a) & bits_of(b));
  assert_int_equal(pawl_range_is_empty(common), (bits_of(a) & bits_of(b)) == 0);
  assert_true(common.end >= common.begin);
  assert_int_equal(pawl_range_contains(a, b), (bits_of(b) & ~bits_of(a)) == 0);
}

static void check_one(struct pawl_range range) {
  assert_int_equal(pawl_range_is_empty(range), bits_of(range) == 0);
  assert_int_equal(pawl_range_size(range), (unsigned)__builtin_popcount(bits_of(range)));
  for (uint64_t key = 0; key < UNIVERSE; key++) assert_int_equal(pawl_range_has(range, key), bits_of(range) >> key & 1);
}

static void test_every_small_range_agrees_with_counting(void **state) {
  (void)state;
  for (uint64_t a = 0; a <= UNIVERSE; a++)
    for (uint64_t b = 0; b <= UNIVERSE; b++) {
      check_one(pawl_range_of(a, b));
      for (uint64_t c = 0; c <= UNIVERSE; c++)
        for (uint64_t d = 0; d <= UNIVERSE; d++) check_pair(pawl_range_of(a, b), pawl_range_of(c, d));
    }
}

static void test_the_range_of_every_key_has_all_but_the_reserved_one(void **state) {
  (void)state;
  struct pawl_range all = pawl_range_of(0, PAWL_KEY_END);
  assert_int_equal(pawl_range_size(all), UINT64_MAX);
  assert_true(pawl_range_has(all, 0));
  assert_true(pawl_range_has(all, UINT64_MAX - 1));
  assert_false(pawl_range_has(all, UINT64_MAX));
  assert_true(pawl_range_contains(all, pawl_range_of(UINT64_MAX - 1, UINT64_MAX)));
}

static void test_an_inverted_range_is_empty(void **state) {
  (void)state;
  struct pawl_range inverted = pawl_range_of(PAWL_KEY_END, 0);
  assert_true(pawl_range_is_empty(inverted));
  assert_int_equal(pawl_range_size(inverted), 0);
  assert_true(pawl_range_contains(pawl_range_of(5, 5), inverted));
  assert_false(pawl_range_contains(inverted, pawl_range_of(1, 2)));
  assert_true(pawl_range_is_empty(pawl_range_common(inverted, pawl_range_of(0, PAWL_KEY_END))));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_small_range_agrees_with_counting),
      cmocka_unit_test(test_the_range_of_every_key_has_all_but_the_reserved_one),
      cmocka_unit_test(test_an_inverted_range_is_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
