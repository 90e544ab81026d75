/* The policy of priorities, on a clock that the test moves. */
#include "base/testing.h"
#include "base/random.h"
#include "server/turns.h"

#define MS INT64_C(1000000)

static struct pwi_turns make(void) {
  struct pwi_turns turns;
  pwi_turns_init(&turns);
  return turns;
}

static bool is_held(const struct pwi_turns *turns, unsigned priority) { return turns->levels[priority].is_held; }

static void test_a_level_waits_while_a_higher_one_is_under_way(void **state) {
  (void)state;
  struct pwi_turns turns = make();
  pwi_turns_enter(&turns, 5);
  pwi_turns_enter(&turns, 8);
  assert_int_equal(pwi_turns_update(&turns, 0), 0);
  pwi_turns_begin(&turns, 8, 1 * MS);
  assert_int_equal(pwi_turns_update(&turns, 1 * MS), 1u << 5);
  assert_true(is_held(&turns, 5) && !is_held(&turns, 8));
  pwi_turns_end(&turns, 8, 3 * MS);
  assert_int_equal(pwi_turns_update(&turns, 3 * MS), 0); /* the next message may come soon */
  assert_int_equal(pwi_turns_next(&turns, 3 * MS), 23 * MS);
  assert_int_equal(pwi_turns_update(&turns, 23 * MS), 1u << 5);
  assert_false(is_held(&turns, 5));
  assert_int_equal(pwi_turns_next(&turns, 23 * MS), INT64_MAX);
}

static void test_a_higher_level_never_waits_for_a_lower_one(void **state) {
  (void)state;
  struct pwi_turns turns = make();
  pwi_turns_enter(&turns, 5);
  pwi_turns_enter(&turns, 8);
  pwi_turns_begin(&turns, 5, 0);
  assert_int_equal(pwi_turns_update(&turns, 0), 0);
  assert_false(is_held(&turns, 8));
}

static void test_equals_do_not_wait_for_one_another(void **state) {
  (void)state;
  struct pwi_turns turns = make();
  pwi_turns_enter(&turns, 5);
  pwi_turns_enter(&turns, 5);
  pwi_turns_begin(&turns, 5, 0);
  assert_int_equal(pwi_turns_update(&turns, 0), 0);
  assert_int_equal(turns.in_use, 1);
}

static void test_a_level_that_was_held_long_has_a_turn(void **state) {
  (void)state;
  struct pwi_turns turns = make();
  pwi_turns_enter(&turns, 2);
  pwi_turns_enter(&turns, 9);
  pwi_turns_begin(&turns, 9, 0);
  assert_int_equal(pwi_turns_update(&turns, 0), 1u << 2);
  assert_int_equal(pwi_turns_next(&turns, 0), 2000 * MS);
  assert_int_equal(pwi_turns_update(&turns, 1999 * MS), 0);
  assert_int_equal(pwi_turns_update(&turns, 2000 * MS), 1u << 2);
  assert_int_equal(pwi_turns_next(&turns, 2000 * MS), 2100 * MS);
  assert_int_equal(pwi_turns_update(&turns, 2100 * MS), 1u << 2);
  assert_true(is_held(&turns, 2));
  assert_int_equal(pwi_turns_next(&turns, 2100 * MS), 4100 * MS);
}

static void test_the_end_of_a_client_ends_its_claim(void **state) {
  (void)state;
  struct pwi_turns turns = make();
  pwi_turns_enter(&turns, 4);
  pwi_turns_enter(&turns, 7);
  pwi_turns_begin(&turns, 7, 0);
  pwi_turns_update(&turns, 0);
  assert_true(is_held(&turns, 4));
  pwi_turns_end(&turns, 7, 1 * MS);
  pwi_turns_leave(&turns, 7);
  assert_int_equal(pwi_turns_update(&turns, 1 * MS), 1u << 4);
  pwi_turns_leave(&turns, 4);
  assert_int_equal(turns.in_use, 0);
}

/* In any sequence: no level is held without a reason, none longer than the bound, and the time to decide
 * again is never missed. */
static void test_nobody_starves_in_any_sequence(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    struct pwi_random random;
    struct pwi_turns turns = make();
    int64_t now = 0, held_since[PWI_PRIORITY_HIGHEST + 1] = {0};
    pwi_random_init(&random, seed, 0);
    for (unsigned i = 0; i < 6; i++) pwi_turns_enter(&turns, 1 + (unsigned)pwi_random_below(&random, 9));
    for (int step = 0; step < 2000; step++) {
      unsigned level = 1 + (unsigned)pwi_random_below(&random, 9);
      int64_t next = pwi_turns_next(&turns, now), later = now + (int64_t)pwi_random_below(&random, 60) * MS;
      now = next < later ? next : later;
      if (now < later || turns.levels[level].links == 0) level = 0;
      if (level && !is_held(&turns, level)) pwi_turns_begin(&turns, level, now);
      if (level && pwi_random_chance(&random, 0.6)) pwi_turns_end(&turns, level, now);
      pwi_turns_update(&turns, now);
      for (unsigned i = 1; i <= 9; i++) {
        if (!is_held(&turns, i)) held_since[i] = now;
        if (now - held_since[i] > turns.wait_ns + turns.turn_ns)
          fail_msg("seed %llu: level %u starves", (unsigned long long)seed, i);
      }
      if (is_held(&turns, 9) || (turns.levels[8].links && !turns.levels[9].links && is_held(&turns, 8)))
        fail_msg("seed %llu: the highest level is held", (unsigned long long)seed);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_level_waits_while_a_higher_one_is_under_way),
      cmocka_unit_test(test_a_higher_level_never_waits_for_a_lower_one),
      cmocka_unit_test(test_equals_do_not_wait_for_one_another),
      cmocka_unit_test(test_a_level_that_was_held_long_has_a_turn),
      cmocka_unit_test(test_the_end_of_a_client_ends_its_claim),
      cmocka_unit_test(test_nobody_starves_in_any_sequence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
