/* timeout: 1800
 * cost: 5
 * planted: yes
 *
 * Bugs that are planted in relays, and in what servers do for them, are found by campaigns of relays. How many seeds it
 * took is printed.
 */
#include "base/testing.h"
#include "sim/campaign/campaign.h"

#define SEEDS 500

/* A seed that fails without the bug proves nothing. */
static bool fails_anyway(uint64_t seed) {
  struct pwi_campaign_config config;
  struct pwi_campaign_result result;
  pwi_planted_set(PWI_PLANTED_NONE);
  pwi_campaign_draw(seed, -1, &config);
  pwi_campaign_set_relays(&config);
  pwi_campaign_run(&config, &result);
  return result.has_failed;
}

static void find(enum pwi_planted bug) {
  static struct pwi_campaigns_result result;
  struct pwi_campaigns_config config = {
      .first = 1, .last = SEEDS, .replicas = -1, .relays = true, .jobs = 2, .bug = bug, .failures_max = 1};
  assert_int_equal(pwi_campaigns_run(&config, &result), PAWL_OK);
  printf("%-16s seed %llu: %s\n", pwi_planted_about(bug)->word, (unsigned long long)result.failures[0].seed,
         result.failure_count ? result.failures[0].result.failure : "not found");
  assert_true(result.failure_count > 0);
  assert_false(fails_anyway(result.failures[0].seed));
}

static void test_an_aggregate_with_a_known_contributor_is_found(void **state) {
  (void)state;
  find(PWI_PLANTED_RELAY_ONE_KNOWN);
}

static void test_an_aggregate_beside_a_resent_push_is_found(void **state) {
  (void)state;
  find(PWI_PLANTED_RELAY_RESENT);
}

static void test_a_relay_that_answers_early_is_found(void **state) {
  (void)state;
  find(PWI_PLANTED_RELAY_EARLY_ACK);
}

static void test_a_relay_that_answers_with_rows_older_than_the_caller_s_own_push_is_found(void **state) {
  (void)state;
  find(PWI_PLANTED_RELAY_OLD_CACHE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_aggregate_with_a_known_contributor_is_found),
      cmocka_unit_test(test_an_aggregate_beside_a_resent_push_is_found),
      cmocka_unit_test(test_a_relay_that_answers_early_is_found),
      cmocka_unit_test(test_a_relay_that_answers_with_rows_older_than_the_caller_s_own_push_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
