/* Results of row functions as bytes. */
#include "protocol/run_result.h"

#include <string.h>

#include "base/testing.h"

static struct pwi_run_result result_of(void) {
  return (struct pwi_run_result){.origin = 5,
                                 .range = {7, 9},
                                 .count = 3,
                                 .combine = {PAWL_ROW_SUM, PAWL_ROW_MOST, PAWL_ROW_LEAST},
                                 .values = {1.5, -2, 3e300}};
}

static pawl_status read_it(const unsigned char *bytes, size_t size, struct pwi_run_result *result) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  pwi_run_result_read(&reader, result);
  return pwi_reader_end(&reader);
}

static void write_it(struct pwi_run_result result, unsigned char bytes[PWI_RUN_RESULT_SIZE]) {
  struct pwi_writer writer = pwi_writer_over(bytes, PWI_RUN_RESULT_SIZE);
  pwi_run_result_write(&writer, &result);
  assert_int_equal(writer.status, PAWL_OK);
  assert_int_equal(writer.size, PWI_RUN_RESULT_SIZE);
}

static void test_a_result_is_read_as_it_was_written(void **state) {
  unsigned char bytes[PWI_RUN_RESULT_SIZE];
  struct pwi_run_result wanted = result_of(), found;
  (void)state;
  write_it(wanted, bytes);
  assert_int_equal(read_it(bytes, sizeof bytes, &found), PAWL_OK);
  assert_true(found.origin == 5 && found.range.begin == 7 && found.range.end == 9 && found.count == 3);
  assert_memory_equal(found.combine, wanted.combine, sizeof found.combine);
  assert_memory_equal(found.values, wanted.values, sizeof found.values);
}

static void test_damaged_results_are_refused(void **state) {
  unsigned char bytes[PWI_RUN_RESULT_SIZE];
  struct pwi_run_result found, empty = result_of();
  (void)state;
  write_it(result_of(), bytes);
  for (size_t size = 0; size < sizeof bytes; size++) assert_int_not_equal(read_it(bytes, size, &found), PAWL_OK);
  bytes[24] = 9; /* more results than there can be */
  assert_int_equal(read_it(bytes, sizeof bytes, &found), PAWL_CORRUPT);
  bytes[24] = 2; /* fewer than there are */
  assert_int_equal(read_it(bytes, sizeof bytes, &found), PAWL_CORRUPT);
  bytes[24] = 3;
  bytes[28] = 3; /* an unknown way to combine */
  assert_int_equal(read_it(bytes, sizeof bytes, &found), PAWL_CORRUPT);
  empty.range.end = empty.range.begin;
  write_it(empty, bytes);
  assert_int_equal(read_it(bytes, sizeof bytes, &found), PAWL_CORRUPT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_result_is_read_as_it_was_written),
      cmocka_unit_test(test_damaged_results_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
