#include "api/sketch/sketch_heavy.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/testing.h"

#define SEED 21
#define THINGS 100000

static struct pwi_heavy heavy;
static uint64_t truth[THINGS];

static int clear(void **state) {
  (void)state;
  pwi_heavy_clear(&heavy);
  memset(truth, 0, sizeof truth);
  return 0;
}

static const struct pwi_heavy_thing *find(uint64_t hash) {
  for (size_t i = 0; i < heavy.count; i++)
    if (heavy.things[i].hash == hash) return &heavy.things[i];
  return NULL;
}

static void add(uint64_t thing, uint64_t weight) {
  char name[32];
  int length = snprintf(name, sizeof name, "thing %d", (int)thing);
  pwi_heavy_add(&heavy, pwi_mix64(thing), weight, PWI_TOP_BYTES, name, (size_t)length);
  truth[thing] += weight;
}

/* No count is above the truth, and none is below it by more than allowed; a missing thing counts as 0. */
static void test_nothing_that_weighs_much_is_missed(void **state) {
  (void)state;
  struct pwi_random random;
  uint64_t all = 0;
  pwi_random_init(&random, SEED, 0);
  for (int i = 0; i < 400000; i++) {
    double u = pwi_random_unit(&random);
    uint64_t thing = (uint64_t)((double)THINGS * u * u * u * u), weight = i % 3 ? 1 : 1 + pwi_random_below(&random, 9);
    add(thing, weight);
    all += weight;
  }
  for (uint64_t i = 0; i < THINGS; i++) {
    const struct pwi_heavy_thing *thing = find(pwi_mix64(i));
    uint64_t count = thing ? thing->count : 0;
    char name[32];
    assert_true(count <= truth[i]);
    assert_true(truth[i] - count <= all / PWI_HEAVY_KEPT + all / PWI_HEAVY_DOORKEEPER + 1);
    if (!thing) continue;
    assert_int_equal(thing->length, snprintf(name, sizeof name, "thing %d", (int)i));
    assert_memory_equal(thing->name, name, thing->length);
  }
}

/* In a table that is half full, a thing that comes once stays out; a thing that comes again soon gets in. */
static void test_a_thing_that_comes_once_is_kept_out(void **state) {
  (void)state;
  for (uint64_t i = 0; i < PWI_HEAVY_KEPT; i++) add(i, 1);
  assert_int_equal(heavy.count, PWI_HEAVY_KEPT);
  for (uint64_t i = 10000; i < 11000; i++) add(i, 1);
  assert_true(heavy.count < PWI_HEAVY_KEPT + 50);
  for (uint64_t i = 10000; i < 11000; i++) add(i, 1);
  assert_int_equal(heavy.count, PWI_HEAVY_KEPT + 1000);
}

/* All weights are equal: nothing is heavy, and everything is removed. */
static void test_things_that_weigh_the_same_make_room(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 3 * PWI_HEAVY_ROOM; i++) add(i, 2);
  assert_true(heavy.count <= PWI_HEAVY_ROOM);
  add(5, 1000);
  assert_true(find(pwi_mix64(5))->count >= 1000);
}

static void test_counts_stop_at_the_most(void **state) {
  (void)state;
  add(1, UINT64_MAX);
  add(1, 5);
  assert_int_equal(find(pwi_mix64(1))->count, UINT64_MAX);
}

static void test_names_are_cut_to_the_kept_length(void **state) {
  (void)state;
  char name[300];
  memset(name, 'x', sizeof name);
  pwi_heavy_add(&heavy, 7, 1, PWI_TOP_BYTES, name, sizeof name);
  assert_int_equal(find(7)->length, PWI_TOP_NAME_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_nothing_that_weighs_much_is_missed, clear),
      cmocka_unit_test_setup(test_a_thing_that_comes_once_is_kept_out, clear),
      cmocka_unit_test_setup(test_things_that_weigh_the_same_make_room, clear),
      cmocka_unit_test_setup(test_counts_stop_at_the_most, clear),
      cmocka_unit_test_setup(test_names_are_cut_to_the_kept_length, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
