/* timeout: 1800
 * cost: 20
 *
 * Exactly once, under faults: manager, servers and clients in the simulator, from very many seeds
 * (sim/campaign/campaign.h).
 *
 *   PAWL_SEEDS=n    number of seeds to run
 *
 * A single seed, with its faults and the log of every node: pawl sim faults --seed n.
 */
#include "base/memory.h"
#include "base/testing.h"
#include "seeds.h"
#include "sim/campaign/campaign.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 150 /* they run at a tenth of the speed */
#else
#define SEEDS MANY_SEEDS
#endif

static void test_no_push_is_lost_or_counted_twice_whatever_happens(void **state) {
  (void)state;
  const char *many = getenv("PAWL_SEEDS");
  run_seeds(1, many ? strtoull(many, NULL, 10) : SEEDS);
}

static struct pwi_campaign_result run_seed(uint64_t seed) {
  struct pwi_campaign_config config;
  struct pwi_campaign_result result;
  pwi_campaign_draw(seed, -1, &config);
  pwi_campaign_run(&config, &result);
  return result;
}

static void test_a_seed_gives_the_same_run_each_time(void **state) {
  (void)state;
  for (uint64_t seed = 3; seed <= 12; seed++) {
    struct pwi_campaign_result once = run_seed(seed), again = run_seed(seed);
    assert_true(once.hash == again.hash);
    assert_memory_equal(&once.figures, &again.figures, sizeof once.figures);
  }
}

static void test_nothing_leaks(void **state) {
  (void)state;
  uint64_t before = pwi_memory_counts().live;
  for (uint64_t seed = 7; seed <= 12; seed++) run_seed(seed);
  assert_int_equal(pwi_memory_counts().live, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_seed_gives_the_same_run_each_time),
      cmocka_unit_test(test_nothing_leaks),
      cmocka_unit_test(test_no_push_is_lost_or_counted_twice_whatever_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
