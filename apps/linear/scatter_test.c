/* Keys and ids: for each a partner, and neighbours far apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/inside.h"

enum { SMALL = 2000 };

static void test_every_id_of_a_small_span_has_a_key_of_its_own(void **state) {
  (void)state;
  struct linear_scatter scatter;
  for (uint64_t size = 1; size <= SMALL; size++) {
    bool is_taken[SMALL] = {0};
    linear_scatter_init(&scatter, size);
    assert_int_equal(scatter.size, size);
    for (uint64_t id = 0; id < size; id++) {
      uint64_t key = linear_key(&scatter, id);
      assert_true(key < size);
      assert_false(is_taken[key]);
      is_taken[key] = true;
      assert_int_equal(linear_id(&scatter, key), id);
    }
  }
}

/* Sizes of all lengths, and those beside powers of two; ids at both ends and between. */
static void check_large(uint64_t size, uint64_t *random) {
  struct linear_scatter scatter;
  linear_scatter_init(&scatter, size);
  for (int i = 0; i < 200; i++) {
    uint64_t id = i == 0 ? 0 : i == 1 ? size - 1 : linear_draw(random) % size, key = linear_key(&scatter, id);
    assert_true(key < size);
    if (linear_id(&scatter, key) != id)
      fail_msg("size %llu, id %llu", (unsigned long long)size, (unsigned long long)id);
    assert_int_equal(linear_key(&scatter, linear_id(&scatter, id)), id);
  }
}

static void test_keys_of_large_spans_lead_back_to_their_ids(void **state) {
  (void)state;
  uint64_t random = 20261115;
  for (unsigned bits = 11; bits < 63; bits++) {
    check_large((UINT64_C(1) << bits) - 1, &random);
    check_large(UINT64_C(1) << bits, &random);
    check_large((UINT64_C(1) << bits) + 1, &random);
    for (int i = 0; i < 20; i++) check_large((UINT64_C(1) << bits) + (linear_draw(&random) >> (64 - bits)), &random);
  }
  check_large(UINT64_C(1) << 63, &random);
  check_large(PAWL_ID_MAX, &random);
}

static void test_products_do_not_overflow(void **state) {
  (void)state;
  const uint64_t size = UINT64_C(1) << 63;
  assert_int_equal(linear_times(size - 1, size - 1, size), 1); /* (-1)^2 */
  assert_int_equal(linear_times(size - 2, 3, size), size - 6);
  assert_int_equal(linear_times(UINT32_MAX - 1, UINT32_MAX - 1, UINT32_MAX), 1);
  assert_int_equal(linear_times(UINT32_MAX, UINT32_MAX, UINT64_C(1) << 32), 1);
  assert_int_equal(linear_times(5, 7, 1), 0);
}

/* The distance of two keys on the circle that the span is. */
static uint64_t between(uint64_t a, uint64_t b, uint64_t size) {
  uint64_t straight = a < b ? b - a : a - b;
  return straight < size - straight ? straight : size - straight;
}

/* Of `steps` in a row no two are in the same part of the span. */
static void check_distance(uint64_t size, uint64_t steps, uint64_t parts) {
  struct linear_scatter scatter;
  linear_scatter_init(&scatter, size);
  for (uint64_t id = 0; id + steps < size && id < 10000; id++)
    for (uint64_t step = 1; step <= steps; step++)
      assert_true(between(linear_key(&scatter, id), linear_key(&scatter, id + step), size) >= size / parts);
}

static void test_neighbours_lie_far_apart(void **state) {
  (void)state;
  const uint64_t large[] = {1000, 47237, 65536, 1000003, UINT64_C(1) << 40, PAWL_ID_MAX, UINT64_C(1) << 63};
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) check_distance(large[i], 8, 32);
  for (uint64_t size = 100; size < 1000; size++) check_distance(size, 3, 20);
}

static void test_a_block_of_keys_is_an_even_sample_of_the_ids(void **state) {
  (void)state;
  enum { SIZE = 47237, BLOCKS = 64 };
  struct linear_scatter scatter;
  linear_scatter_init(&scatter, SIZE);
  size_t first_tenth[BLOCKS] = {0};
  for (uint64_t id = 0; id < SIZE / 10; id++) first_tenth[linear_key(&scatter, id) * BLOCKS / SIZE]++;
  for (size_t i = 0; i < BLOCKS; i++) assert_in_range(first_tenth[i], SIZE / 10 / BLOCKS - 8, SIZE / 10 / BLOCKS + 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_id_of_a_small_span_has_a_key_of_its_own),
      cmocka_unit_test(test_keys_of_large_spans_lead_back_to_their_ids),
      cmocka_unit_test(test_products_do_not_overflow),
      cmocka_unit_test(test_neighbours_lie_far_apart),
      cmocka_unit_test(test_a_block_of_keys_is_an_even_sample_of_the_ids),
  };
  return cmocka_run_group_tests_name("apps.linear.scatter", tests, NULL, NULL);
}
