/* Compares each entry of the table for this processor with the portable one. If there is no other table, the
 * test compares the portable table with itself. */
#include "base/random.h"
#include "base/testing.h"
#include "wire/half.h"
#include "wire/values_kernels.h"

#define SEED 7
#define COUNT 100000

static const struct pwi_kernels *best;

static int set_up(void **state) {
  (void)state;
  best = pwi_kernels_best();
  print_message("comparing %s with portable, seed %d\n", best->name, SEED);
  return 0;
}

/* Runs both on blocks of exact size, so that a sanitizer detects overruns, and compares all bytes. */
static void compare(pwi_convert *fast, pwi_convert *slow, const void *from, size_t from_size, size_t to_size,
                    size_t count) {
  void *in = malloc(count * from_size + 1), *one = malloc(count * to_size + 1), *two = malloc(count * to_size + 1);
  assert_true(in && one && two);
  memcpy((char *)in + 1, from, count * from_size); /* and nothing is aligned */
  fast((char *)in + 1, count, (char *)one + 1);
  slow((char *)in + 1, count, (char *)two + 1);
  if (count) assert_memory_equal((char *)one + 1, (char *)two + 1, count * to_size);
  free(two);
  free(one);
  free(in);
}

static void compare_all(const void *from, size_t bytes) {
  const struct pwi_kernels *slow = &pwi_kernels_portable;
  compare(best->f16_from_f32, slow->f16_from_f32, from, 4, 2, bytes / 4);
  compare(best->bf16_from_f32, slow->bf16_from_f32, from, 4, 2, bytes / 4);
  compare(best->f64_from_f32, slow->f64_from_f32, from, 4, 8, bytes / 4);
  compare(best->f32_from_f16, slow->f32_from_f16, from, 2, 4, bytes / 2);
  compare(best->f32_from_bf16, slow->f32_from_bf16, from, 2, 4, bytes / 2);
  compare(best->f32_odd_from_f64, slow->f32_odd_from_f64, from, 8, 4, bytes / 8);
  compare(best->f32_from_f64, slow->f32_from_f64, from, 8, 4, bytes / 8);
  assert_int_equal(best->f32_largest(from, bytes / 4), slow->f32_largest(from, bytes / 4));
}

static void test_all_halves_convert_alike(void **state) {
  (void)state;
  uint16_t *halves = malloc(0x10000 * sizeof *halves);
  assert_non_null(halves);
  for (uint32_t i = 0; i < 0x10000; i++) halves[i] = (uint16_t)i;
  compare(best->f32_from_f16, pwi_kernels_portable.f32_from_f16, halves, 2, 4, 0x10000);
  compare(best->f32_from_bf16, pwi_kernels_portable.f32_from_bf16, halves, 2, 4, 0x10000);
  free(halves);
}

/* Every upper half of a float, with lower halves that lie at, below and above each rounding boundary. */
static void test_edge_floats_convert_alike(void **state) {
  (void)state;
  static const uint16_t lower[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
  uint32_t *floats = malloc(0x10000 * sizeof *floats);
  assert_non_null(floats);
  for (size_t k = 0; k < sizeof lower / sizeof *lower; k++) {
    for (uint32_t i = 0; i < 0x10000; i++) floats[i] = i << 16 | lower[k];
    compare_all(floats, 0x10000 * sizeof *floats);
  }
  free(floats);
}

static void test_random_bits_convert_alike(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  uint64_t *words = malloc(COUNT * sizeof *words);
  assert_non_null(words);
  for (size_t i = 0; i < COUNT; i++) words[i] = pwi_random_u64(&random);
  compare_all(words, COUNT * sizeof *words);
  for (size_t bytes = 0; bytes < 600; bytes += 2) compare_all(words, bytes);
  free(words);
}

static void test_eight_bits_are_made_and_read_alike(void **state) {
  (void)state;
  enum { count = 1003 };
  struct pwi_random random;
  pwi_random_init(&random, SEED, 1);
  float values[count], one_back[count], two_back[count];
  int8_t one[count], two[count];
  for (size_t i = 0; i < count; i++) values[i] = (float)(pwi_random_unit(&random) * 254 - 127);
  for (size_t i = 0; i < 254; i++) values[i] = (float)i - 126.5f; /* every tie */
  best->i8_from_f32(values, count, 1, one);
  pwi_kernels_portable.i8_from_f32(values, count, 1, two);
  assert_memory_equal(one, two, count);
  assert_int_equal(one[0], -126);
  assert_int_equal(one[1], -126);
  assert_int_equal(one[127], 0);
  assert_int_equal(one[128], 2);
  best->f32_from_i8(one, count, 0.37f, one_back);
  pwi_kernels_portable.f32_from_i8(one, count, 0.37f, two_back);
  assert_memory_equal(one_back, two_back, sizeof one_back);
}

static void test_masks_are_found_alike(void **state) {
  (void)state;
  enum { groups = 64 };
  struct pwi_random random;
  pwi_random_init(&random, SEED, 2);
  uint64_t words[groups * 64], one[groups], two[groups];
  for (int round = 0; round < 50; round++) {
    for (size_t i = 0; i < groups * 64; i++) {
      uint64_t bit = UINT64_C(1) << pwi_random_below(&random, 64); /* one bit, anywhere, makes a value */
      words[i] = pwi_random_chance(&random, round / 49.0) ? bit : 0;
    }
    best->masks_of_64(words, groups, one);
    pwi_kernels_portable.masks_of_64(words, groups, two);
    assert_memory_equal(one, two, sizeof one);
    for (size_t i = 0; i < groups * 64; i++) assert_int_equal(one[i / 64] >> i % 64 & 1, words[i] != 0);
    best->masks_of_32(words, groups, one);
    pwi_kernels_portable.masks_of_32(words, groups, two);
    assert_memory_equal(one, two, sizeof one);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_halves_convert_alike),  cmocka_unit_test(test_edge_floats_convert_alike),
      cmocka_unit_test(test_random_bits_convert_alike), cmocka_unit_test(test_eight_bits_are_made_and_read_alike),
      cmocka_unit_test(test_masks_are_found_alike),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
