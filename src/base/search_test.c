/* Binary search finds the same element as a scan from the front. */
#include "base/search.h"
#include "base/testing.h"

#define MOST 20

static void test_the_first_key_not_below_is_found_in_arrays_of_every_length(void **state) {
  (void)state;
  uint64_t keys[MOST];
  for (size_t i = 0; i < MOST; i++) keys[i] = 3 * i + 1;
  for (size_t count = 0; count <= MOST; count++)
    for (uint64_t key = 0; key < 3 * MOST + 3; key++) {
      size_t expected = 0;
      while (expected < count && keys[expected] < key) expected++;
      assert_int_equal(pwi_first_not_below(keys, count, key), expected);
    }
}

static void test_an_empty_array_is_not_read(void **state) {
  (void)state;
  assert_int_equal(pwi_first_not_below(NULL, 0, 7), 0);
}

static void test_the_search_ends_where_the_condition_ceases_to_hold(void **state) {
  (void)state;
  for (size_t prefix = 0; prefix <= MOST; prefix++) {
    struct pwi_search search = {.high = MOST};
    while (pwi_search_next(&search)) pwi_search_told(&search, search.middle < prefix);
    assert_int_equal(search.low, prefix);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_first_key_not_below_is_found_in_arrays_of_every_length),
      cmocka_unit_test(test_an_empty_array_is_not_read),
      cmocka_unit_test(test_the_search_ends_where_the_condition_ceases_to_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
