/* labels: long
 * timeout: 3600
 * alone: yes
 *
 * A nemesis (nemesis.h) for ten minutes, or for PAWL_NEMESIS_SECONDS. */
#include "nemesis.h"

#define SECONDS 600
#define LONGEST_MS 12000

static void test_a_long_nemesis_of_a_cluster_with_one_manager_loses_nothing(void **state) {
  (void)state;
  nemesis_test(false, SECONDS, LONGEST_MS);
}

static void test_a_long_nemesis_of_a_cluster_with_two_managers_on_etcd_loses_nothing(void **state) {
  (void)state;
  nemesis_test(true, SECONDS, LONGEST_MS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_a_long_nemesis_of_a_cluster_with_one_manager_loses_nothing, nemesis_teardown),
      cmocka_unit_test_teardown(test_a_long_nemesis_of_a_cluster_with_two_managers_on_etcd_loses_nothing,
                                nemesis_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
