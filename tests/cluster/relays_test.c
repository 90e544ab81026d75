/* timeout: 1800
 * cost: 15
 * many: 5000
 *
 * Relays of the pushes and pulls of groups, under faults, from many seeds: kills, partitions, stops, arcs that move while
 * aggregates are under way, relays and members that are declared dead (sim/campaign/campaign.h).
 *
 *   PAWL_SEEDS=n    number of seeds to run
 *
 * A single seed, with its faults and the log of every node: pawl sim faults --relays --seed n.
 */
#include <unistd.h>

#include "base/testing.h"
#include "sim/campaign/campaign.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 60 /* they run at a tenth of the speed */
#else
#define SEEDS 300
#endif

static void run(uint64_t seeds, struct pwi_campaigns_result *result) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  struct pwi_campaigns_config config = {
      .first = 1, .last = seeds, .replicas = -1, .relays = true, .jobs = cores > 0 ? (unsigned)cores : 1};
  assert_int_equal(pwi_campaigns_run(&config, result), PAWL_OK);
}

static void test_no_push_through_a_relay_is_lost_or_counted_twice(void **state) {
  (void)state;
  static struct pwi_campaigns_result result;
  const char *many = getenv("PAWL_SEEDS");
  run(many ? strtoull(many, NULL, 10) : SEEDS, &result);
  const struct pwi_campaign_figures *met = &result.figures;
  printf("seeds=%llu seconds=%.1f group_pushes=%llu group_pulls=%llu relayed=%llu refused=%llu aggregates=%llu "
         "applied=%llu retirements=%llu moves=%llu failovers=%llu\n",
         (unsigned long long)result.seeds, result.seconds, (unsigned long long)met->group_pushes,
         (unsigned long long)met->group_pulls, (unsigned long long)met->relayed,
         (unsigned long long)met->relays_refused, (unsigned long long)met->aggregates,
         (unsigned long long)met->relayed_applied, (unsigned long long)met->retirements, (unsigned long long)met->moves,
         (unsigned long long)met->failovers);
  printf("old_pulls=%llu pulls_relayed=%llu refused=%llu answered=%llu kept=%llu reads=%llu tree_changes=%llu\n",
         (unsigned long long)met->old_pulls, (unsigned long long)met->pulls_relayed,
         (unsigned long long)met->pulls_refused, (unsigned long long)met->pulls_answered,
         (unsigned long long)met->pulls_kept, (unsigned long long)met->relay_reads,
         (unsigned long long)met->tree_changes);
  for (size_t i = 0; i < result.failure_count; i++)
    print_error("seed %llu at %.6f s: %s\n  to see it: pawl sim faults --relays --seed %llu\n",
                (unsigned long long)result.failures[i].seed, (double)result.failures[i].result.time_ns / 1e9,
                result.failures[i].result.failure, (unsigned long long)result.failures[i].seed);
  assert_int_equal(result.failure_count, 0);
  /* Campaigns in which nothing went through relays, or nothing went wrong, prove nothing. */
  assert_true(met->group_pushes > 0 && met->group_pulls > 0 && met->relayed > 0 && met->relays_refused > 0);
  assert_true(met->aggregates > 0 && met->relayed_applied > 0 && met->relayed_applied < met->relayed);
  assert_true(met->old_pulls > 0 && met->pulls_relayed > 0 && met->pulls_refused > 0 && met->pulls_kept > 0);
  assert_true(met->relay_reads > 0 && met->pulls_answered > met->relay_reads);
  assert_true(met->tree_changes > 0);
  assert_true(met->excused_bounds < result.seeds / 2); /* otherwise the bound was hardly checked */
  assert_true(met->worker_kills > 0 && met->retirements > 0 && met->moves > 0 && met->failovers > 0);
}

static void test_a_seed_gives_the_same_run_each_time(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    struct pwi_campaign_config config;
    struct pwi_campaign_result once, again;
    pwi_campaign_draw(seed, -1, &config);
    pwi_campaign_set_relays(&config);
    pwi_campaign_run(&config, &once);
    pwi_campaign_run(&config, &again);
    assert_true(once.hash == again.hash);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_seed_gives_the_same_run_each_time),
      cmocka_unit_test(test_no_push_through_a_relay_is_lost_or_counted_twice),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
