/* Numbers of ids, by an array and by a hash table: both say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/index.h"
#include "apps/linear/inside.h"

#define ENDLESS UINT64_MAX

static void must(pawl_status status) { assert_int_equal(status, PAWL_OK); }

static void test_a_small_span_has_an_array_and_a_large_one_a_table(void **state) {
  (void)state;
  struct linear_index index;
  must(linear_index_init(&index, 1000, 0));
  assert_non_null(index.direct);
  linear_index_fini(&index);
  must(linear_index_init(&index, UINT64_C(1) << 40, 1000));
  assert_null(index.direct);
  assert_non_null(index.slots);
  linear_index_fini(&index);
  must(linear_index_init(&index, 0, 0));
  assert_int_equal(index.count, 0);
  linear_index_fini(&index);
  linear_index_fini(&index); /* a struct of zeros */
}

static void test_ids_are_numbered_in_the_order_in_which_they_come(void **state) {
  (void)state;
  const uint64_t spans[] = {100, ENDLESS};
  for (size_t k = 0; k < 2; k++) {
    struct linear_index index;
    must(linear_index_init(&index, spans[k], 0));
    must(linear_index_count(&index, 99, 1));
    must(linear_index_count(&index, 0, 2));
    must(linear_index_count(&index, 99, 5));
    assert_int_equal(index.count, 2);
    assert_int_equal(linear_index_find(&index, 99), 0);
    assert_int_equal(linear_index_find(&index, 0), 1);
    assert_int_equal(index.ids[0], 99);
    assert_int_equal(index.counts[0], 6);
    assert_int_equal(index.counts[1], 2);
    linear_index_fini(&index);
  }
}

/* Ids that a poor hash would put into one slot: multiples of powers of two, and both ends of the span. */
static uint64_t id_at(uint64_t *random, unsigned shift, uint64_t span) {
  uint64_t id = linear_draw(random) % 5000 << shift;
  return id < span ? id : span - 1 - id % 7;
}

static void check_against_an_array(uint64_t span, unsigned shift, uint64_t seed) {
  enum { DRAWN = 20000 };
  struct linear_index index;
  uint64_t random = seed, *drawn = malloc(DRAWN * sizeof *drawn);
  assert_non_null(drawn);
  must(linear_index_init(&index, span, 0));
  for (size_t i = 0; i < DRAWN; i++) {
    drawn[i] = id_at(&random, shift, span);
    must(linear_index_count(&index, drawn[i], i % 3));
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < index.count; i++) {
    assert_int_equal(linear_index_find(&index, index.ids[i]), i); /* so no id is there twice */
    sum += index.counts[i];
  }
  uint64_t expected = 0;
  for (size_t i = 0; i < DRAWN; i++) expected += i % 3;
  assert_int_equal(sum, expected);
  uint64_t of_first = 0;
  for (size_t i = 0; i < DRAWN; i++) {
    assert_int_equal(index.ids[linear_index_find(&index, drawn[i])], drawn[i]);
    if (drawn[i] == drawn[0]) of_first += i % 3;
  }
  assert_int_equal(index.counts[0], of_first);
  free(drawn);
  linear_index_fini(&index);
}

static void test_many_ids_keep_their_numbers_while_the_table_grows(void **state) {
  (void)state;
  for (unsigned shift = 0; shift < 52; shift += 3) check_against_an_array(ENDLESS, shift, shift);
  check_against_an_array(5000, 0, 1);
  check_against_an_array(UINT64_C(5000) << 40, 40, 2);
}

static void test_what_was_cleared_is_not_there_any_more(void **state) {
  (void)state;
  const uint64_t spans[] = {5000, ENDLESS};
  for (size_t k = 0; k < 2; k++) {
    struct linear_index index;
    must(linear_index_init(&index, spans[k], 0));
    for (uint64_t round = 0; round < 5; round++) {
      for (uint64_t id = round; id < 5000; id += 1 + round) must(linear_index_count(&index, id, 1));
      assert_int_equal(index.ids[0], round);
      for (size_t i = 0; i < index.count; i++) assert_int_equal(index.counts[i], 1);
      linear_index_clear(&index);
      assert_int_equal(index.count, 0);
    }
    linear_index_fini(&index);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_small_span_has_an_array_and_a_large_one_a_table),
      cmocka_unit_test(test_ids_are_numbered_in_the_order_in_which_they_come),
      cmocka_unit_test(test_many_ids_keep_their_numbers_while_the_table_grows),
      cmocka_unit_test(test_what_was_cleared_is_not_there_any_more),
  };
  return cmocka_run_group_tests_name("apps.linear.index", tests, NULL, NULL);
}
