/* labels: long nosan
 * timeout: 3000
 *
 * Campaigns from 20,000 seeds (sim/campaign/campaign.h): those of cluster.exactly_once and 19,500 more.
 */
#include "base/testing.h"
#include "seeds.h"

#define SEEDS 20000

static void test_no_seed_of_twenty_thousand_fails(void **state) {
  (void)state;
  run_seeds(1, SEEDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_seed_of_twenty_thousand_fails)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
