/* labels: long nosan
 * timeout: 3000
 *
 * Larger scopes of the explorer: some are exhausted, the others hold in some ten thousand states of the
 * simplest orders.
 */
#include "sim/explore/scopes_testing.h"

#define MANY 40000
#define FILL_MANY 160000 /* its runs are long */

static void test_small_scopes_hold_in_every_order(void **state) {
  static const struct scope scopes[] = {
      {PWI_EXPLORE_HANDOVER, 2, 1, 0, 0, 0, true, 40000, true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) explore_scope(&scopes[i]);
}

static void test_all_scenarios_hold_in_the_simplest_orders(void **state) {
  (void)state;
  for (int i = 0; i < PWI_EXPLORE_SCENARIOS; i++)
    for (uint32_t early = 0; early < 2; early++) {
      enum pwi_explore_scenario scenario = (enum pwi_explore_scenario)i;
      uint64_t many = scenario == PWI_EXPLORE_FILL ? FILL_MANY : MANY;
      explore_scope(&(struct scope){scenario, 2, 3, 0, 1, early, false, many, false});
      explore_scope(&(struct scope){scenario, 2, 3, 1, 0, early, false, many, false});
      explore_scope(&(struct scope){scenario, 2, 3, 1, 1, early, true, many, false});
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_scopes_hold_in_every_order),
      cmocka_unit_test(test_all_scenarios_hold_in_the_simplest_orders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
