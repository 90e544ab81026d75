/* The pace of a worker: finished iterations, the cause of waiting, and the end of ticks. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "sync/pace.h"

static struct pwi_pace pace;

static void start(const char *text, bool has_group, uint64_t tick) {
  struct pwi_policy policy;
  assert_int_equal(pwi_policy_parse(text, &policy, NULL), PAWL_OK);
  pwi_pace_init(&pace, &policy, has_group, tick);
}

static bool next(size_t tasks) {
  if (pwi_pace_ask(&pace).cause != PWI_WAITS_NOT) return false;
  assert_int_equal(pwi_pace_begin(&pace), PAWL_OK);
  while (tasks-- > 0) pwi_pace_add(&pace);
  return true;
}

static bool end(void) { return pwi_pace_end(&pace, 0, 1, 0); }

static void test_an_iteration_has_finished_when_it_was_ended_and_all_its_tasks_are_over(void **state) {
  (void)state;
  start("sequential", false, 0);
  assert_true(next(2));
  pwi_pace_over(&pace, 1);
  end();
  assert_int_equal(pace.finished, 0);
  assert_false(next(1));
  assert_int_equal(pwi_pace_ask(&pace).cause, PWI_WAITS_OWN);
  assert_int_equal(pwi_pace_ask(&pace).until, 1);
  pwi_pace_over(&pace, 1);
  assert_int_equal(pace.finished, 1);
  assert_true(next(0));
  end();
  assert_int_equal(pace.finished, 2);
  pwi_pace_fini(&pace);
}

static void test_a_later_iteration_that_is_over_does_not_count_before_an_earlier_one(void **state) {
  (void)state;
  start("bounded 2", false, 0);
  for (int i = 0; i < 3; i++) {
    assert_true(next(1));
    end();
  }
  assert_false(next(1));
  pwi_pace_over(&pace, 3);
  pwi_pace_over(&pace, 2);
  assert_int_equal(pace.finished, 0);
  assert_int_equal(pwi_pace_ask(&pace).until, 1);
  pwi_pace_over(&pace, 1);
  assert_int_equal(pace.finished, 3);
  assert_true(next(1));
  pwi_pace_fini(&pace);
}

static void test_an_iteration_without_tasks_has_not_finished_before_it_ends(void **state) {
  (void)state;
  start("bounded 2", false, 0);
  assert_true(next(1));
  end();
  assert_true(next(0));
  pwi_pace_over(&pace, 1);
  assert_int_equal(pace.finished, 1);
  end();
  assert_int_equal(pace.finished, 2);
  pwi_pace_fini(&pace);
}

static void test_a_late_member_counts_ticks_as_the_others_do(void **state) {
  (void)state;
  start("ssp 1", true, 7);
  assert_int_equal(pwi_pace_ask(&pace).cause, PWI_WAITS_GROUP); /* iteration 8 needs tick 6 of all members */
  assert_int_equal(pwi_pace_ask(&pace).until, 6);
  pwi_pace_heard(&pace, 6);
  pwi_pace_heard(&pace, 3); /* old news */
  assert_true(next(0));
  assert_int_equal(pace.begun, 8);
  assert_true(end());
  assert_int_equal(pace.ticked, 8);
  assert_int_equal(pwi_pace_ask(&pace).until, 7);
  pwi_pace_fini(&pace);
  start("ssp 1", false, 0); /* alone */
  for (int i = 0; i < 5; i++) {
    assert_true(next(0));
    end();
  }
  pwi_pace_fini(&pace);
}

static void test_several_iterations_are_one_tick_and_their_number_may_change(void **state) {
  (void)state;
  start("a-bsp 3", true, 0);
  for (int i = 0; i < 3; i++) {
    assert_true(next(0));
    assert_int_equal(end(), i == 2);
  }
  assert_int_equal(pace.ticked, 1);
  assert_false(next(0));
  assert_int_equal(pwi_pace_ask(&pace).until, 1);
  pwi_pace_heard(&pace, 1);
  assert_int_equal(pwi_pace_set_bound(&pace, 2), PAWL_OK);
  assert_true(next(0));
  assert_false(end());
  assert_true(next(0)); /* no wait within a tick */
  assert_true(end());
  assert_int_equal(pace.ticked, 2);
  assert_int_equal(pwi_pace_ask(&pace).until, 2);
  assert_int_equal(pwi_pace_set_bound(&pace, 0), PAWL_INVALID);
  pwi_pace_fini(&pace);
}

static void test_a_larger_bound_lets_a_waiting_iteration_go(void **state) {
  (void)state;
  start("bounded 0", false, 0);
  assert_true(next(1));
  end();
  assert_false(next(1));
  assert_int_equal(pwi_pace_set_bound(&pace, 1), PAWL_OK);
  assert_true(next(1));
  end();
  assert_false(next(1));
  pwi_pace_fini(&pace);
}

/* Against the definition: iteration t may begin if and only if all iterations up to t - tau - 1 have
 * finished. */
static void test_random_runs_keep_the_bound_and_every_wait_has_a_cause(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    struct pwi_random random;
    pwi_random_init(&random, seed, 0);
    uint64_t tau = pwi_random_below(&random, 6), left[200] = {0}, begun = 0;
    char text[32];
    snprintf(text, sizeof text, "bounded %u", (unsigned)tau);
    start(text, false, 0);
    while (begun < 150) {
      bool may = true;
      for (uint64_t i = 1; i + tau <= begun; i++) may = may && left[i] == 0;
      uint64_t tasks = pwi_random_below(&random, 4);
      bool did = next((size_t)tasks);
      if (did != may) fail_msg("seed %llu iteration %llu", (unsigned long long)seed, (unsigned long long)begun + 1);
      if (did) {
        left[++begun] = tasks;
        end();
        continue;
      }
      uint64_t which = begun - pwi_random_below(&random, tau + 1);
      if (which > 0 && left[which] > 0) {
        left[which]--;
        pwi_pace_over(&pace, which);
      }
    }
    pwi_pace_fini(&pace);
  }
}

static void test_without_memory_an_iteration_has_not_begun(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  start("eventual", false, 0);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_pace_begin(&pace), PAWL_NO_MEMORY);
  assert_true(pwi_memory_fail_cancel());
  assert_int_equal(pace.begun, 0);
  assert_true(next(1));
  end();
  pwi_pace_fini(&pace);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_iteration_has_finished_when_it_was_ended_and_all_its_tasks_are_over),
      cmocka_unit_test(test_a_later_iteration_that_is_over_does_not_count_before_an_earlier_one),
      cmocka_unit_test(test_an_iteration_without_tasks_has_not_finished_before_it_ends),
      cmocka_unit_test(test_a_late_member_counts_ticks_as_the_others_do),
      cmocka_unit_test(test_several_iterations_are_one_tick_and_their_number_may_change),
      cmocka_unit_test(test_a_larger_bound_lets_a_waiting_iteration_go),
      cmocka_unit_test(test_random_runs_keep_the_bound_and_every_wait_has_a_cause),
      cmocka_unit_test(test_without_memory_an_iteration_has_not_begun),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
