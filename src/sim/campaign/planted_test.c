/* labels: long nosan
 * timeout: 3000
 * planted: yes
 *
 * Bugs that are planted in the roles on purpose (protocol/planted.h) are found by campaigns, each within
 * 10,000 seeds. How many it took is printed.
 *
 *   PAWL_BUG=name    this one alone
 */
#include <unistd.h>

#include "base/testing.h"
#include "sim/campaign/campaign.h"

#define SEEDS 10000

static unsigned count_cores(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 ? (unsigned)cores : 1;
}

/* A seed that fails without the bug proves nothing. */
static bool fails_anyway(uint64_t seed, int replicas) {
  struct pwi_campaign_config config;
  struct pwi_campaign_result result;
  pwi_planted_set(PWI_PLANTED_NONE);
  pwi_campaign_draw(seed, replicas, &config);
  pwi_campaign_run(&config, &result);
  if (result.has_failed) print_error("seed %llu fails without a bug: %s\n", (unsigned long long)seed, result.failure);
  return result.has_failed;
}

/* The first seed that fails because of the bug; 0: none. */
static uint64_t seed_that_shows(enum pwi_planted bug) {
  static struct pwi_campaigns_result result;
  const struct pwi_planted_about *about = pwi_planted_about(bug);
  struct pwi_campaigns_config config = {.first = 1,
                                        .last = SEEDS,
                                        .replicas = (int)about->replicas,
                                        .jobs = count_cores(),
                                        .bug = bug,
                                        .failures_max = 1};
  double seconds = 0;
  for (uint64_t seed = 0; seed < SEEDS; config.first = seed + 1) {
    assert_int_equal(pwi_campaigns_run(&config, &result), PAWL_OK);
    if (result.failure_count == 0) return 0;
    seconds += result.seconds;
    seed = result.failures[0].seed;
    if (fails_anyway(seed, config.replicas)) continue;
    printf("%-17s found by seed %5llu in %6.1f s: %s\n", about->word, (unsigned long long)seed, seconds,
           result.failures[0].result.failure);
    return seed;
  }
  return 0;
}

static void test_every_planted_bug_is_found(void **state) {
  (void)state;
  const char *only = getenv("PAWL_BUG");
  size_t missed = 0;
  for (int i = PWI_PLANTED_NONE + 1; i < PWI_PLANTED_COUNT; i++) {
    const struct pwi_planted_about *about = pwi_planted_about((enum pwi_planted)i);
    if (only && strcmp(only, about->word) != 0) continue;
    if (!about->is_placed || about->replicas > PWI_CAMPAIGN_REPLICAS) {
      printf("%-17s has no place yet\n", about->word);
      continue;
    }
    if (seed_that_shows((enum pwi_planted)i)) continue;
    print_error("%s is not found within %d seeds: %s\n", about->word, SEEDS, about->text);
    missed++;
  }
  assert_int_equal(missed, 0);
}

static void test_this_library_has_planted_bugs_and_none_of_them_by_itself(void **state) {
  (void)state;
  assert_true(pwi_planted_can());
  pwi_planted_set(PWI_PLANTED_NONE);
  for (int i = PWI_PLANTED_NONE + 1; i < PWI_PLANTED_COUNT; i++) assert_false(pwi_is_planted((enum pwi_planted)i));
  static struct pwi_campaigns_result result;
  struct pwi_campaigns_config config = {.first = 1, .last = 50, .replicas = -1, .jobs = count_cores()};
  assert_int_equal(pwi_campaigns_run(&config, &result), PAWL_OK);
  assert_int_equal(result.failure_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_this_library_has_planted_bugs_and_none_of_them_by_itself),
      cmocka_unit_test(test_every_planted_bug_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
