

#include "base/testing.h"
#include "net/places.h"

#define SIZE ((size_t)16)

static const char body[SIZE + 1] = "abcdefghijklmnop";
static char into[SIZE + 1], rest[SIZE + 1];

static void clear(void) {
  memset(into, '.', sizeof into);
  memset(rest, '.', sizeof rest);
}

/* For all step sizes the prefix is in the first buffer, the rest in the second, and nothing outside is
 * written. */
static void test_bytes_are_written_in_order_in_steps_of_any_size(void **state) {
  (void)state;
  for (size_t prefix = 0; prefix <= SIZE + 3; prefix++)
    for (size_t step = 1; step <= SIZE; step++) {
      size_t first = prefix < SIZE ? prefix : SIZE;
      clear();
      struct pwi_places places = pwi_places_two(into, prefix, rest, SIZE);
      for (size_t at = 0; at < SIZE; at += step)
        pwi_places_write(&places, body + at, step < SIZE - at ? step : SIZE - at);
      assert_memory_equal(into, body, first);
      assert_memory_equal(rest, body + first, SIZE - first);
      assert_int_equal(into[first], '.');
      assert_int_equal(rest[SIZE - first], '.');
    }
}

static void test_the_next_bytes_lie_in_as_few_parts_as_can_be(void **state) {
  (void)state;
  struct iovec parts[2];
  struct pwi_places places = pwi_places_two(into, 6, rest, SIZE);
  assert_int_equal(pwi_places_next(&places, 6, parts), 1);
  assert_int_equal(pwi_places_next(&places, 7, parts), 2);
  assert_ptr_equal(parts[0].iov_base, into);
  assert_int_equal(parts[0].iov_len, 6);
  assert_ptr_equal(parts[1].iov_base, rest);
  assert_int_equal(parts[1].iov_len, 1);
  pwi_places_advance(&places, 6);
  assert_int_equal(pwi_places_next(&places, 10, parts), 1);
  assert_ptr_equal(parts[0].iov_base, rest);
  pwi_places_advance(&places, 4);
  assert_int_equal(pwi_places_next(&places, 6, parts), 1);
  assert_ptr_equal(parts[0].iov_base, rest + 4);
  assert_int_equal(pwi_places_next(&places, 0, parts), 0);
}

static void test_a_place_that_gets_nothing_may_be_null(void **state) {
  (void)state;
  clear();
  struct pwi_places places = pwi_places_two(NULL, 0, rest, SIZE);
  pwi_places_write(&places, body, SIZE);
  assert_memory_equal(rest, body, SIZE);
  places = pwi_places_two(into, SIZE, NULL, SIZE);
  pwi_places_write(&places, body, SIZE);
  assert_memory_equal(into, body, SIZE);
  places = pwi_places_two(NULL, 5, NULL, 0);
  pwi_places_write(&places, body, 0);
  places = pwi_places_one(into, 3);
  pwi_places_write(&places, "xyz", 3);
  assert_memory_equal(into, "xyzd", 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes_are_written_in_order_in_steps_of_any_size),
      cmocka_unit_test(test_the_next_bytes_lie_in_as_few_parts_as_can_be),
      cmocka_unit_test(test_a_place_that_gets_nothing_may_be_null),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
