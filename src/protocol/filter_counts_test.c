/* Counters of filters: summing, and rejection of invalid payloads. */
#include "base/memory.h"
#include "base/testing.h"
#include "protocol/filter_counts.h"

static struct pwi_filter_count count_of(uint64_t vector, uint8_t direction, const char *name, uint64_t scale) {
  struct pwi_filter_count count = {.vector = vector,
                                   .direction = direction,
                                   .runs = scale,
                                   .rows_before = 10 * scale,
                                   .rows_after = 4 * scale,
                                   .bytes_before = 160 * scale,
                                   .bytes_after = 64 * scale,
                                   .clamped = 2 * scale};
  strcpy(count.name, name);
  return count;
}

static void write_counts(struct pwi_writer *writer, const struct pwi_filter_count *counts, uint32_t count) {
  pwi_write_u32(writer, count);
  for (uint32_t i = 0; i < count; i++) pwi_filter_count_write(writer, &counts[i]);
  assert_int_equal(writer->status, PAWL_OK);
}

static void test_totals_are_kept_by_vector_direction_and_filter(void **state) {
  (void)state;
  struct pwi_filter_totals totals = {0};
  struct pwi_filter_count counts[] = {count_of(1, PAWL_ON_PUSH, "kkt", 1), count_of(1, PAWL_ON_PULL, "zeros", 2),
                                      count_of(2, PAWL_ON_PUSH, "kkt", 3), count_of(1, PAWL_ON_PUSH, "kkt", 4)};
  struct pwi_writer writer = {0};
  write_counts(&writer, counts, 4);
  assert_int_equal(pwi_filter_totals_add(&totals, writer.data, writer.size), PAWL_OK);
  assert_int_equal(pwi_filter_totals_add(&totals, writer.data, writer.size), PAWL_OK);
  assert_int_equal(totals.count, 3);
  struct pwi_filter_count wanted = count_of(1, PAWL_ON_PUSH, "kkt", 10);
  assert_memory_equal(&totals.items[0], &wanted, sizeof wanted);
  wanted = count_of(1, PAWL_ON_PULL, "zeros", 4);
  assert_memory_equal(&totals.items[1], &wanted, sizeof wanted);
  pwi_writer_fini(&writer);
  pwi_filter_totals_fini(&totals);
}

static void test_damaged_counters_count_nothing(void **state) {
  (void)state;
  struct pwi_filter_totals totals = {0};
  struct pwi_filter_count counts[] = {count_of(1, PAWL_ON_PUSH, "kkt", 1), count_of(2, PAWL_ON_PULL, "zeros", 2)};
  struct pwi_writer writer = {0};
  write_counts(&writer, counts, 2);
  for (size_t size = 0; size < writer.size; size++)
    assert_int_not_equal(pwi_filter_totals_add(&totals, writer.data, size), PAWL_OK);
  writer.data[4 + 8] = 3; /* no direction */
  assert_int_equal(pwi_filter_totals_add(&totals, writer.data, writer.size), PAWL_CORRUPT);
  writer.data[4 + 8] = 1;
  writer.data[4 + 8 + 1 + 2] = '\n'; /* no letter */
  assert_int_equal(pwi_filter_totals_add(&totals, writer.data, writer.size), PAWL_CORRUPT);
  assert_int_equal(totals.count, 0);
  pwi_writer_fini(&writer);
  pwi_filter_totals_fini(&totals);
}

static void test_without_memory_new_totals_are_left_out(void **state) {
  (void)state;
  struct pwi_filter_totals totals = {0};
  struct pwi_filter_count count = count_of(1, PAWL_ON_PUSH, "kkt", 1);
  struct pwi_writer writer = {0};
  write_counts(&writer, &count, 1);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_filter_totals_add(&totals, writer.data, writer.size), PAWL_OK);
  pwi_memory_fail_cancel();
  assert_int_equal(totals.count, 0);
  assert_int_equal(pwi_filter_totals_add(&totals, writer.data, writer.size), PAWL_OK);
  assert_int_equal(totals.count, 1);
  pwi_writer_fini(&writer);
  pwi_filter_totals_fini(&totals);
}

static void test_the_number_of_listed_totals_is_bounded(void **state) {
  (void)state;
  struct pwi_filter_totals totals = {0};
  for (uint64_t vector = 1; vector <= PWI_FILTER_TOTALS_MAX + 10; vector++) {
    struct pwi_filter_count count = count_of(vector, PAWL_ON_PUSH, "kkt", 1);
    struct pwi_writer writer = {0};
    write_counts(&writer, &count, 1);
    assert_int_equal(pwi_filter_totals_add(&totals, writer.data, writer.size), PAWL_OK);
    pwi_writer_fini(&writer);
  }
  assert_int_equal(totals.count, PWI_FILTER_TOTALS_MAX);
  pwi_filter_totals_fini(&totals);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_totals_are_kept_by_vector_direction_and_filter),
      cmocka_unit_test(test_damaged_counters_count_nothing),
      cmocka_unit_test(test_without_memory_new_totals_are_left_out),
      cmocka_unit_test(test_the_number_of_listed_totals_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
