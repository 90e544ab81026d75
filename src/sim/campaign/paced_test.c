/* The checks of iterations under policies: they find violations, and report nothing else. */
#include "base/testing.h"
#include "sim/campaign/inside.h"

static const char *const policies[] = {"sequential", "bounded 2", "eventual",     "ssp 0",
                                       "ssp 2",      "a-bsp 3",   "adaptive 0 4", "user"};
enum { POLICIES = sizeof policies / sizeof *policies };

static struct pwi_campaign_config config_of(uint64_t seed, const char *policy) {
  struct pwi_campaign_config config;
  pwi_campaign_draw(seed, 1, &config);
  config.crew = 0;
  config.memory_max = 0;
  config.calls = 10;
  config.paced = PACED_MAX;
  config.is_user_policy = strcmp(policy, "user") == 0;
  snprintf(config.policy, sizeof config.policy, "%s", config.is_user_policy ? "eventual" : policy);
  return config;
}

static void calm_down(struct pwi_campaign_config *config) {
  config->gap_nodes_ns = config->gap_kills_ns = config->gap_servers_ns = 0;
  config->gap_manager_ns = config->gap_members_ns = config->gap_moves_ns = 0;
  config->gap_resets_ns = config->gap_outages_ns = 0;
  config->has_long_pause = config->has_starvation = config->has_drift = config->has_small_queues = false;
}

static struct pwi_campaign_result run(const struct pwi_campaign_config *config) {
  struct pwi_campaign_result result;
  pwi_campaign_run(config, &result);
  return result;
}

static void test_without_faults_every_policy_is_kept_and_heard_of_at_once(void **state) {
  (void)state;
  for (size_t i = 0; i < POLICIES; i++)
    for (uint64_t seed = 1; seed <= 3; seed++) {
      struct pwi_campaign_config config = config_of(seed, policies[i]);
      calm_down(&config);
      struct pwi_campaign_result result = run(&config);
      if (result.has_failed) fail_msg("%s seed %llu: %s", policies[i], (unsigned long long)seed, result.failure);
      assert_int_equal(result.figures.iterations, PACED_MAX * 12);
      if (strcmp(policies[i], "eventual") == 0) assert_int_equal(result.figures.waits, 0);
      if (strcmp(policies[i], "ssp 0") == 0) assert_true(result.figures.waits > 12);
    }
}

static void test_with_faults_every_policy_is_kept(void **state) {
  (void)state;
  struct pwi_campaign_figures met = {0};
  for (size_t i = 0; i < POLICIES; i++)
    for (uint64_t seed = 1; seed <= 3; seed++) {
      struct pwi_campaign_config config = config_of(seed, policies[i]);
      struct pwi_campaign_result result = run(&config);
      if (result.has_failed) fail_msg("%s seed %llu: %s", policies[i], (unsigned long long)seed, result.failure);
      pwi_campaign_figures_add(&met, &result.figures);
    }
  assert_true(met.iterations > 0 && met.waits > 0 && met.worker_kills > 0 && met.faults > 0);
}

static bool finds(enum pwi_campaign_paced_bug bug, const char *policy, bool is_calm, const char *words) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    struct pwi_campaign_config config = config_of(seed, policy);
    if (is_calm) calm_down(&config);
    config.paced_bug = bug;
    struct pwi_campaign_result result = run(&config);
    if (result.has_failed && strstr(result.failure, words)) return true;
  }
  return false;
}

static void test_an_iteration_that_begins_too_early_is_found(void **state) {
  (void)state;
  assert_true(finds(PWI_PACED_HASTY, "sequential", false, "before its own iterations permitted it"));
  assert_true(finds(PWI_PACED_HASTY, "bounded 1", false, "before its own iterations permitted it"));
  assert_true(finds(PWI_PACED_HASTY, "ssp 0", true, "before the other members permitted it"));
  assert_true(finds(PWI_PACED_HASTY, "a-bsp 3", true, "before the other members permitted it"));
}

static void test_an_iteration_that_begins_too_late_is_found(void **state) {
  (void)state;
  for (size_t i = 0; i < POLICIES; i++)
    assert_true(finds(PWI_PACED_LAZY, policies[i], true, "later than its policy permitted"));
}

static void test_a_push_that_counts_twice_is_found_in_the_history(void **state) {
  (void)state;
  assert_true(finds(PWI_PACED_TWICE, "ssp 2", true, "rule value: sim/rows"));
}

static void test_a_seed_gives_the_same_run_each_time(void **state) {
  (void)state;
  struct pwi_campaign_config config = config_of(3, "ssp 2");
  assert_int_equal(run(&config).hash, run(&config).hash);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_faults_every_policy_is_kept_and_heard_of_at_once),
      cmocka_unit_test(test_with_faults_every_policy_is_kept),
      cmocka_unit_test(test_an_iteration_that_begins_too_early_is_found),
      cmocka_unit_test(test_an_iteration_that_begins_too_late_is_found),
      cmocka_unit_test(test_a_push_that_counts_twice_is_found_in_the_history),
      cmocka_unit_test(test_a_seed_gives_the_same_run_each_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
