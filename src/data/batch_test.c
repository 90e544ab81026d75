#include "data/batch.h"

#include "data/scene_test.h"

#define SEED 53

/* The reference: inserts entries one after another. */
static size_t plainly(uint64_t *ids, float *values, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t id = ids[i];
    float value = values[i];
    size_t at = 0;
    while (at < kept && ids[at] < id) at++;
    if (at < kept && ids[at] == id) {
      values[at] += value;
      continue;
    }
    memmove(ids + at + 1, ids + at, (kept - at) * sizeof *ids);
    memmove(values + at + 1, values + at, (kept - at) * sizeof *values);
    ids[at] = id;
    values[at] = value;
    kept++;
  }
  return kept;
}

static void test_entries_are_sorted_as_they_are_plainly(void **state) {
  static uint64_t ids[1500], plain_ids[1500];
  static float values[1500], plain_values[1500];
  struct pwi_random random;
  (void)state;
  print_message("seed %d\n", SEED);
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 3000; round++) {
    size_t count = round < 300 ? (size_t)round : pwi_random_below(&random, round % 100 == 0 ? 1500 : 100);
    uint64_t most = round % 3 == 0 ? 50 : round % 3 == 1 ? UINT64_C(1) << 22 : INT64_MAX;
    for (size_t i = 0; i < count; i++) {
      plain_ids[i] = ids[i] = pwi_random_below(&random, most);
      /* sums of floats depend on their order */
      plain_values[i] = values[i] = (float)pwi_random_unit(&random);
    }
    size_t plain_count = plainly(plain_ids, plain_values, count);
    assert_int_equal(pwi_entries_sort(ids, values, &count), PAWL_OK);
    assert_int_equal(count, plain_count);
    assert_memory_equal(ids, plain_ids, count * sizeof *ids);
    assert_memory_equal(values, plain_values, count * sizeof *values);
  }
}

static void test_sums_that_no_float_holds_are_refused(void **state) {
  uint64_t ids[] = {7, 5, 7};
  float values[] = {3e38f, 1, 3e38f};
  size_t count = 3;
  (void)state;
  assert_int_equal(pwi_entries_sort(ids, values, &count), PAWL_OVERFLOW);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_entries_are_sorted_as_they_are_plainly),
      cmocka_unit_test(test_sums_that_no_float_holds_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
