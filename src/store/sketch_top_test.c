#include "store/sketch_top.h"

#include <math.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/testing.h"
#include "store/sketch_distinct.h"

#define SEED 3
#define ENTRIES 200

static uint64_t stored[PWI_TOP_WIDTH], other[PWI_TOP_WIDTH], pushed[PWI_TOP_WIDTH];

static pawl_status push(uint64_t *to) {
  struct pawl_function_call call = {.width = PWI_TOP_WIDTH, .count = 1, .pushed = pushed, .stored = to};
  pawl_status status = pwi_sketch_top.check(&call);
  if (status == PAWL_OK) pwi_sketch_top.apply(&call);
  return status;
}

static int clear(void **state) {
  (void)state;
  memset(stored, 0, sizeof stored);
  memset(other, 0, sizeof other);
  memset(pushed, 0, sizeof pushed);
  return 0;
}

/* One entry of many, as its place in the list decides: hashes come back with other estimates. */
static struct pwi_top_slot entry_at(uint64_t i) {
  struct pwi_top_slot slot;
  char name[20];
  uint64_t hash = i % 60, estimate = 1 + pwi_mix64(i) % 500;
  int length = snprintf(name, sizeof name, "thing %d", (int)hash);
  pwi_top_slot_init(&slot, hash, estimate, PWI_TOP_BYTES, name, (size_t)length);
  return slot;
}

/* Hands in all entries in this order, a few to a push. */
static void push_in_order(uint64_t *to, const uint64_t order[ENTRIES], size_t at_once) {
  for (size_t at = 0; at < ENTRIES; at += at_once) {
    memset(pushed, 0, sizeof pushed);
    for (size_t i = at; i < at + at_once && i < ENTRIES; i++) pwi_top_slots(pushed)[i - at] = entry_at(order[i]);
    assert_int_equal(push(to), PAWL_OK);
  }
}

static void test_the_order_of_writers_does_not_show(void **state) {
  (void)state;
  struct pwi_random random;
  uint64_t order[ENTRIES];
  pwi_random_init(&random, SEED, 0);
  for (uint64_t i = 0; i < ENTRIES; i++) order[i] = i;
  push_in_order(stored, order, 5);
  for (int round = 0; round < 50; round++) {
    pwi_random_shuffle(&random, order, ENTRIES, sizeof *order);
    memset(other, 0, sizeof other);
    push_in_order(other, order, 1 + (size_t)round % PWI_TOP_SLOTS);
    if (round % 2) push_in_order(other, order, 3); /* once more */
    assert_memory_equal(stored, other, sizeof stored);
  }
}

static void test_the_largest_of_each_thing_are_kept(void **state) {
  (void)state;
  uint64_t order[ENTRIES], best[60] = {0};
  for (uint64_t i = 0; i < ENTRIES; i++) {
    struct pwi_top_slot slot = entry_at(order[i] = i);
    if (slot.estimate > best[slot.hash]) best[slot.hash] = slot.estimate;
  }
  push_in_order(stored, order, 7);
  for (int i = 0; i < PWI_TOP_SLOTS; i++) {
    const struct pwi_top_slot *slot = &pwi_top_slots(stored)[i];
    int larger = 0;
    for (int k = 0; k < 60; k++) larger += best[k] > slot->estimate;
    assert_int_equal(slot->estimate, best[slot->hash]);
    assert_true(larger <= i);
    assert_true(i == 0 || slot[-1].estimate >= slot->estimate);
  }
}

static void test_buckets_merge_with_buckets(void **state) {
  (void)state;
  uint64_t order[ENTRIES];
  for (uint64_t i = 0; i < ENTRIES; i++) order[i] = i;
  push_in_order(stored, order, 1);
  memcpy(pushed, stored, sizeof pushed);
  assert_int_equal(push(other), PAWL_OK);
  assert_int_equal(push(stored), PAWL_OK);
  assert_memory_equal(stored, other, sizeof stored);
}

static void test_an_invalid_bucket_is_refused(void **state) {
  (void)state;
  struct pwi_top_slot *slot = pwi_top_slots(pushed);
  pwi_top_slot_init(slot, 1, 5, PWI_TOP_BYTES, "abc", 3);
  slot->about = 105;
  assert_int_equal(push(stored), PAWL_REFUSED);
  slot->about = 3 | 2 << 8;
  assert_int_equal(push(stored), PAWL_REFUSED);
  slot->about = 2; /* and a character after the name */
  assert_int_equal(push(stored), PAWL_REFUSED);
  slot->about = 3 | PWI_TOP_NUMBER << 8;
  assert_int_equal(push(stored), PAWL_REFUSED);
  slot->about = 3;
  pushed[1] = 1;
  assert_int_equal(push(stored), PAWL_REFUSED);
  pushed[1] = 0;
  struct pawl_function_call call = {.width = PWI_TOP_WIDTH - 1, .count = 1, .pushed = pushed, .stored = stored};
  assert_int_equal(pwi_sketch_top.check(&call), PAWL_REFUSED);
  assert_memory_equal(stored, other, sizeof stored);
  assert_int_equal(push(stored), PAWL_OK);
}

static void test_long_names_are_cut(void **state) {
  (void)state;
  struct pwi_top_slot slot;
  char name[300];
  memset(name, 'n', sizeof name);
  pwi_top_slot_init(&slot, 1, 5, PWI_TOP_BYTES, name, sizeof name);
  assert_int_equal(slot.about, PWI_TOP_NAME_MAX);
  pwi_top_slots(pushed)[0] = slot;
  assert_int_equal(push(stored), PAWL_OK);
}

static void test_windows_replace_one_another(void **state) {
  (void)state;
  struct pwi_top_slot *slot = pwi_top_slots(pushed);
  pwi_top_slot_init(slot, 1, 500, PWI_TOP_NUMBER, NULL, 0);
  pushed[0] = 3;
  assert_int_equal(push(stored), PAWL_OK);
  pwi_top_slot_init(slot, 2, 5, PWI_TOP_NUMBER, NULL, 0);
  pushed[0] = 4;
  assert_int_equal(push(stored), PAWL_OK);
  pushed[0] = 2;
  assert_int_equal(push(stored), PAWL_OK);
  assert_int_equal(stored[0], 4);
  assert_int_equal(pwi_top_slots(stored)[0].hash, 2);
  assert_int_equal(pwi_top_slots(stored)[1].estimate, 0);
}

/* --- distinct ------------------------------------------------------------------------------------------- */

static uint8_t registers[PWI_DISTINCT_REGISTERS];

static void see(uint64_t hash) {
  uint8_t rank = pwi_distinct_rank(hash), *is = &registers[pwi_distinct_register(hash)];
  if (rank > *is) *is = rank;
}

/* The estimate is within four standard errors from 0 to a million; repeated items do not count. */
static void test_different_things_are_counted(void **state) {
  (void)state;
  static const uint64_t steps[] = {1, 10, 100, 1000, 10000, 30000, 50000, 100000, 300000, 1000000};
  uint64_t seen = 0;
  memset(registers, 0, sizeof registers);
  assert_true(pwi_distinct_estimate(registers) == 0);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    for (; seen < steps[i]; seen++) see(pwi_mix64(seen + SEED)), see(pwi_mix64(SEED));
    double estimate = pwi_distinct_estimate(registers);
    assert_true(fabs(estimate - (double)steps[i]) <= 0.5 + 4 * PWI_DISTINCT_ERROR * (double)steps[i]);
  }
}

static void test_ranks_fit_their_bits(void **state) {
  (void)state;
  assert_int_equal(pwi_distinct_rank(0), 51);
  assert_int_equal(pwi_distinct_rank(UINT64_MAX), 1);
  assert_int_equal(pwi_distinct_rank(UINT64_C(1) << 14), 50);
  memset(registers, 51, sizeof registers);
  assert_true(isinf(pwi_distinct_estimate(registers)) || pwi_distinct_estimate(registers) > 1e15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_the_order_of_writers_does_not_show, clear),
      cmocka_unit_test_setup(test_the_largest_of_each_thing_are_kept, clear),
      cmocka_unit_test_setup(test_buckets_merge_with_buckets, clear),
      cmocka_unit_test_setup(test_an_invalid_bucket_is_refused, clear),
      cmocka_unit_test_setup(test_long_names_are_cut, clear),
      cmocka_unit_test_setup(test_windows_replace_one_another, clear),
      cmocka_unit_test(test_different_things_are_counted),
      cmocka_unit_test(test_ranks_fit_their_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
