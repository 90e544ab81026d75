/* Policies: decisions and causes of waiting, monotonicity, and bounds on random runs. */
#include <math.h>

#include "base/random.h"
#include "base/testing.h"
#include "sync/policy.h"

static struct pwi_policy policy_of(const char *text) {
  struct pwi_policy policy;
  char why[PWI_POLICY_TEXT_MAX] = "";
  if (pwi_policy_parse(text, &policy, why)) fail_msg("'%s': %s", text, why);
  return policy;
}

static bool lets(const char *text, uint64_t iteration, uint64_t finished, uint64_t slowest) {
  struct pwi_policy policy = policy_of(text);
  struct pwi_progress progress = {finished, slowest};
  return pwi_policy_ask(&policy, iteration, &progress).cause == PWI_WAITS_NOT;
}

static void test_sequential_waits_for_the_one_before(void **state) {
  (void)state;
  assert_true(lets("sequential", 1, 0, 0));
  assert_false(lets("sequential", 2, 0, 0));
  assert_true(lets("sequential", 2, 1, 0));
  assert_false(lets("sequential", 9, 7, 0));
}

static void test_a_bound_lets_so_many_be_under_way_besides(void **state) {
  (void)state;
  assert_true(lets("bounded 0", 1, 0, 0));
  assert_false(lets("bounded 0", 2, 0, 0));
  assert_true(lets("bounded 4", 5, 0, 0));
  assert_false(lets("bounded 4", 6, 0, 0));
  assert_true(lets("bounded 4", 6, 1, 0));
  assert_true(lets("bounded 4294967296", 4294967297, 0, 0));
}

static bool lets_send(const char *text, uint64_t iteration, uint64_t finished) {
  struct pwi_policy policy = policy_of(text);
  struct pwi_progress progress = {finished, 0};
  return pwi_policy_ask_to_send(&policy, iteration, &progress).cause == PWI_WAITS_NOT;
}

static void test_notify_ack_computes_beside_one_version_and_sends_after_it(void **state) {
  (void)state;
  assert_true(lets("notify-ack", 1, 0, 0) && lets_send("notify-ack", 1, 0));
  assert_true(lets("notify-ack", 2, 0, 0));
  assert_false(lets_send("notify-ack", 2, 0));
  assert_true(lets_send("notify-ack", 2, 1));
  assert_false(lets("notify-ack", 3, 0, 0));
  assert_false(lets_send("notify-ack", 9, 7));
  assert_true(lets_send("bounded 4", 9, 0) && lets_send("eventual", 9, 0) && lets_send("ssp 0", 9, 0));
}

static void test_eventual_never_waits(void **state) {
  (void)state;
  assert_true(lets("eventual", UINT64_MAX, 0, 0));
}

static void test_ssp_waits_for_the_slowest_of_the_group(void **state) {
  (void)state;
  assert_true(lets("ssp 0", 1, 0, 0));
  assert_false(lets("ssp 0", 2, 9, 0));
  assert_true(lets("ssp 0", 2, 0, 1));
  assert_true(lets("ssp 3", 4, 0, 0));
  assert_false(lets("ssp 3", 5, 4, 0));
  assert_true(lets("ssp 3", 5, 4, 1));
  assert_true(lets("ssp 0", 100, 0, UINT64_MAX)); /* there are no other members */
}

static void test_iterations_of_one_tick_do_not_wait_for_others(void **state) {
  (void)state;
  for (uint64_t i = 1; i <= 3; i++) assert_true(lets("a-bsp 3", i, 0, 0));
  for (uint64_t i = 4; i <= 6; i++) {
    assert_false(lets("a-bsp 3", i, 6, 0));
    assert_true(lets("a-bsp 3", i, 0, 1));
  }
  struct pwi_policy policy = policy_of("a-bsp 3");
  assert_int_equal(pwi_policy_tick(&policy, 1), 1);
  assert_int_equal(pwi_policy_tick(&policy, 3), 1);
  assert_int_equal(pwi_policy_tick(&policy, 4), 2);
}

static void test_the_cause_of_waiting_is_reported(void **state) {
  (void)state;
  struct pwi_policy bounded = policy_of("bounded 2"), ssp = policy_of("ssp 1");
  struct pwi_progress progress = {3, 3};
  struct pwi_policy_wait wait = pwi_policy_ask(&bounded, 7, &progress);
  assert_int_equal(wait.cause, PWI_WAITS_OWN);
  assert_int_equal(wait.until, 4);
  wait = pwi_policy_ask(&ssp, 7, &progress);
  assert_int_equal(wait.cause, PWI_WAITS_GROUP);
  assert_int_equal(wait.until, 5);
}

static bool odd_ones(void *context, uint64_t iteration, const struct pwi_progress *progress) {
  (void)progress;
  return iteration % 2 == *(uint64_t *)context;
}

static void test_users_decide_for_themselves(void **state) {
  (void)state;
  uint64_t rest = 1;
  struct pwi_policy policy = {.kind = PWI_POLICY_USER, .lets = odd_ones, .context = &rest};
  struct pwi_progress progress = {0, 0};
  char text[PWI_POLICY_TEXT_MAX];
  assert_int_equal(pwi_policy_ask(&policy, 3, &progress).cause, PWI_WAITS_NOT);
  assert_int_equal(pwi_policy_ask(&policy, 4, &progress).cause, PWI_WAITS_USER);
  pwi_policy_print(&policy, text);
  assert_string_equal(text, "user");
}

/* On random runs every started iteration was permitted by the definition, and permissions persist. */
static void test_bounds_hold_on_any_run_and_minds_do_not_change(void **state) {
  (void)state;
  static const char *const texts[] = {"sequential", "bounded 3", "eventual", "ssp 2", "a-bsp 4"};
  struct pwi_random random;
  for (uint64_t seed = 0; seed < 200; seed++) {
    struct pwi_policy policy = policy_of(texts[seed % 5]);
    struct pwi_progress progress = {0, 0};
    pwi_random_init(&random, seed, 0);
    for (uint64_t iteration = 1; iteration < 200;) {
      bool was_let = pwi_policy_ask(&policy, iteration, &progress).cause == PWI_WAITS_NOT;
      if (was_let) {
        if (seed % 5 == 0) assert_true(progress.finished + 1 >= iteration);
        if (seed % 5 == 1) assert_true(progress.finished + 4 >= iteration);
        if (seed % 5 == 3) assert_true(progress.slowest + 3 >= iteration);
        if (seed % 5 == 4) assert_true(progress.slowest >= (iteration - 1) / 4);
      }
      if (pwi_random_below(&random, 2)) progress.finished += progress.finished + 1 < iteration || was_let;
      if (progress.finished > iteration - 1) progress.finished = iteration - 1;
      progress.slowest += pwi_random_below(&random, 2);
      bool is_let = pwi_policy_ask(&policy, iteration, &progress).cause == PWI_WAITS_NOT;
      assert_true(is_let || !was_let);
      iteration += is_let;
    }
  }
}

static void test_bounds_may_change_on_the_way(void **state) {
  (void)state;
  struct pwi_policy bounded = policy_of("bounded 1"), eventual = policy_of("eventual"), absp = policy_of("a-bsp 2"),
                    adaptive = policy_of("adaptive 1 4");
  struct pwi_progress progress = {2, 0};
  assert_int_equal(pwi_policy_ask(&bounded, 5, &progress).cause, PWI_WAITS_OWN);
  assert_int_equal(pwi_policy_set_bound(&bounded, 2), PAWL_OK);
  assert_int_equal(pwi_policy_ask(&bounded, 5, &progress).cause, PWI_WAITS_NOT);
  assert_int_equal(pwi_policy_set_bound(&eventual, 2), PAWL_INVALID);
  assert_int_equal(pwi_policy_set_bound(&absp, 0), PAWL_INVALID);
  assert_int_equal(pwi_policy_set_bound(&adaptive, 5), PAWL_INVALID);
  assert_int_equal(pwi_policy_set_bound(&adaptive, 0), PAWL_INVALID);
  assert_int_equal(adaptive.bound, 1);
}

static void learn(struct pwi_policy *policy, double waited, double gain) {
  for (int i = 0; i < 64; i++) pwi_policy_learn(policy, waited, 1, gain);
}

/* The objective goes up and down, and falls by this share of all its changes. */
static void learn_unsteadily(struct pwi_policy *policy, double waited, double share) {
  for (int i = 0; i < 64; i++) pwi_policy_learn(policy, waited, 1, i % 2 == 0 ? 1 + share : share - 1);
}

static void test_waiting_raises_an_adaptive_bound_and_losing_lowers_it(void **state) {
  (void)state;
  static const uint64_t up[] = {1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 20, 20}; /* not at two looks in a row */
  struct pwi_policy policy = policy_of("adaptive 0 20");
  for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
    learn(&policy, 0.5, 1);
    assert_int_equal(policy.bound, up[i]);
  }
  learn(&policy, 0.01, 1);
  assert_int_equal(policy.bound, 20);
  learn(&policy, 0.5, -1);
  assert_int_equal(policy.bound, 10);
  for (int i = 0; i < 10; i++) learn(&policy, 0, -1);
  assert_int_equal(policy.bound, 0);
  learn(&policy, NAN, 1);
  learn(&policy, -1, 1);
  learn(&policy, 0.5, NAN);
  assert_int_equal(policy.bound, 1);
  struct pwi_policy narrow = policy_of("adaptive 3 3");
  learn(&narrow, 0.5, 1);
  learn(&narrow, 0.5, -1);
  assert_int_equal(narrow.bound, 3);
}

static void test_an_adaptive_bound_is_raised_only_where_the_objective_falls_steadily(void **state) {
  (void)state;
  struct pwi_policy policy = policy_of("adaptive 0 16");
  learn_unsteadily(&policy, 0.5, 0.6);
  assert_int_equal(policy.bound, 1);
  for (int i = 0; i < 3; i++) learn_unsteadily(&policy, 0.5, 0.4);
  assert_int_equal(policy.bound, 1);
  learn_unsteadily(&policy, 0.5, 0.6);
  assert_int_equal(policy.bound, 2);
  learn_unsteadily(&policy, 0.5, -0.1);
  assert_int_equal(policy.bound, 1);
}

static void test_texts_come_back_as_they_were(void **state) {
  (void)state;
  static const char *const texts[] = {"sequential", "bounded 8",     "eventual",  "ssp 0",
                                      "a-bsp 4",    "adaptive 0 16", "notify-ack"};
  char text[PWI_POLICY_TEXT_MAX];
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct pwi_policy policy = policy_of(texts[i]);
    pwi_policy_print(&policy, text);
    assert_string_equal(text, texts[i]);
  }
}

static void test_texts_that_mean_nothing_are_refused_and_say_why(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",           " ",           "bound",      "bounded",        "bounded -1",
      "bounded 1x", "bounded 1 2", "a-bsp 0",    "adaptive 4",     "adaptive 4 2",
      "eventual 3", "ssp  ",       "Sequential", "ssp 4294967297", "bounded 99999999999999999999"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct pwi_policy policy = {.bound = 77};
    char why[PWI_POLICY_TEXT_MAX] = "";
    assert_int_equal(pwi_policy_parse(texts[i], &policy, why), PAWL_INVALID);
    assert_true(strlen(why) > 0);
    assert_int_equal(policy.bound, 77);
    assert_int_equal(pwi_policy_parse(texts[i], &policy, NULL), PAWL_INVALID);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sequential_waits_for_the_one_before),
      cmocka_unit_test(test_a_bound_lets_so_many_be_under_way_besides),
      cmocka_unit_test(test_notify_ack_computes_beside_one_version_and_sends_after_it),
      cmocka_unit_test(test_eventual_never_waits),
      cmocka_unit_test(test_ssp_waits_for_the_slowest_of_the_group),
      cmocka_unit_test(test_iterations_of_one_tick_do_not_wait_for_others),
      cmocka_unit_test(test_the_cause_of_waiting_is_reported),
      cmocka_unit_test(test_users_decide_for_themselves),
      cmocka_unit_test(test_bounds_hold_on_any_run_and_minds_do_not_change),
      cmocka_unit_test(test_bounds_may_change_on_the_way),
      cmocka_unit_test(test_waiting_raises_an_adaptive_bound_and_losing_lowers_it),
      cmocka_unit_test(test_an_adaptive_bound_is_raised_only_where_the_objective_falls_steadily),
      cmocka_unit_test(test_texts_come_back_as_they_were),
      cmocka_unit_test(test_texts_that_mean_nothing_are_refused_and_say_why),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
