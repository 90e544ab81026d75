/* Thousands of storms over a manager (manager/storm_testing.h), and longer ones.
 *
 * labels: long
 * timeout: 1800
 */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/storm_testing.h"

static void test_storms_pass(void **state) {
  (void)state;
  brave(3000, 10, 80);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_storms_pass)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
