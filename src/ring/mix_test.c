/* Mixing key lists: the result is a sorted permutation, also for keys chosen so that their mixed values are
 * clustered. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "ring/mix.h"
#include "ring/place.h"

#define SEED UINT64_C(11)
#define MOST 200000

static uint64_t keys[MOST];
static unsigned char seen[MOST];

static void assert_mixed(const struct pwi_mixer *mixer, size_t count) {
  assert_int_equal(mixer->count, count);
  for (size_t i = 0; i < count; i++) seen[i] = 0;
  for (size_t i = 0; i < count; i++) {
    assert_true(mixer->order[i] < count);
    assert_false(seen[mixer->order[i]]);
    seen[mixer->order[i]] = 1;
    assert_int_equal(mixer->keys[i], pwi_place_mix(keys[mixer->order[i]]));
    if (i) assert_true(mixer->keys[i] >= mixer->keys[i - 1]);
    if (i && mixer->keys[i] == mixer->keys[i - 1]) assert_true(mixer->order[i] > mixer->order[i - 1]);
  }
}

static void test_lists_of_every_length_come_out_sorted(void **state) {
  (void)state;
  static const size_t lengths[] = {0, 1, 2, 11, 12, 13, 100, 1000, 5000, 65535, 65536, 65537, MOST};
  struct pwi_mixer mixer;
  pwi_mixer_init(&mixer);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    for (size_t n = 0; n < lengths[i]; n++) keys[n] = 3 * n; /* small raw ids */
    assert_int_equal(pwi_mixer_sort(&mixer, keys, lengths[i]), PAWL_OK);
    assert_mixed(&mixer, lengths[i]);
    for (size_t n = 0; n < lengths[i]; n++) keys[n] = pwi_random_at(SEED, i, n);
    assert_int_equal(pwi_mixer_sort(&mixer, keys, lengths[i]), PAWL_OK);
    assert_mixed(&mixer, lengths[i]);
  }
  pwi_mixer_fini(&mixer);
}

/* Mixed keys that agree in all but their lowest bits, or in all but their highest, or altogether. */
static void test_keys_chosen_to_crowd_come_out_sorted(void **state) {
  (void)state;
  struct pwi_mixer mixer = {0};
  for (int shift = 0; shift < 60; shift += 7) {
    for (size_t n = 0; n < MOST; n++) {
      uint64_t draw = pwi_random_at(SEED, 99, n) % 5000;
      keys[n] = pwi_place_unmix((draw << shift) % PAWL_KEY_END);
    }
    assert_int_equal(pwi_mixer_sort(&mixer, keys, MOST), PAWL_OK);
    assert_mixed(&mixer, MOST);
  }
  for (size_t n = 0; n < MOST; n++) keys[n] = 7;
  assert_int_equal(pwi_mixer_sort(&mixer, keys, MOST), PAWL_OK);
  assert_mixed(&mixer, MOST);
  pwi_mixer_fini(&mixer);
}

static void test_a_second_list_needs_no_memory(void **state) {
  (void)state;
  struct pwi_mixer mixer = {0};
  for (size_t n = 0; n < 1000; n++) keys[n] = n;
  assert_int_equal(pwi_mixer_sort(&mixer, keys, 1000), PAWL_OK);
  uint64_t before = pwi_memory_counts().allocations;
  assert_int_equal(pwi_mixer_sort(&mixer, keys, 1000), PAWL_OK);
  assert_int_equal(pwi_mixer_sort(&mixer, keys, 10), PAWL_OK);
  assert_int_equal(pwi_memory_counts().allocations, before);
  pwi_mixer_fini(&mixer);
  assert_int_equal(pwi_memory_counts().live, 0);
}

static void test_without_memory_the_mixer_keeps_what_it_held(void **state) {
  (void)state;
  struct pwi_mixer mixer = {0};
  for (size_t n = 0; n < 1000; n++) keys[n] = n;
  assert_int_equal(pwi_mixer_sort(&mixer, keys, 100), PAWL_OK);
  uint64_t failures = 0;
  for (;; failures++) {
    pwi_memory_fail_after(failures);
    pawl_status status = pwi_mixer_sort(&mixer, keys, 1000);
    if (!pwi_memory_fail_cancel()) break;
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_mixed(&mixer, 100);
  }
  assert_int_equal(failures, 4);
  assert_mixed(&mixer, 1000);
  pwi_mixer_fini(&mixer);
  assert_int_equal(pwi_memory_counts().live, 0);
}

static void test_too_many_keys_are_refused(void **state) {
  (void)state;
  struct pwi_mixer mixer = {0};
  assert_int_equal(pwi_mixer_sort(&mixer, keys, (size_t)UINT32_MAX + 1), PAWL_TOO_LARGE);
  assert_int_equal(pwi_memory_counts().live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists_of_every_length_come_out_sorted),
      cmocka_unit_test(test_keys_chosen_to_crowd_come_out_sorted),
      cmocka_unit_test(test_a_second_list_needs_no_memory),
      cmocka_unit_test(test_without_memory_the_mixer_keeps_what_it_held),
      cmocka_unit_test(test_too_many_keys_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
