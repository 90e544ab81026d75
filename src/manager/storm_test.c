/* A few hundred storms over a manager (manager/storm_testing.h). */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/storm_testing.h"

static void test_storms_pass(void **state) {
  (void)state;
  brave(200, 6, 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_storms_pass)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
