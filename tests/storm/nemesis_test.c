/* cost: 35
 *
 * A nemesis (nemesis.h) on a small scale: every kind of fault alone, and a few rounds of several. */
#include "nemesis.h"

#define SECONDS 10
#define LONGEST_MS 2500

/* The account permits k servers in all, or more if all of them come back and none was hit before. */
static void test_the_account_permits_the_loss_of_k_servers_and_no_more(void **state) {
  (void)state;
  assert_true(nemesis_may(0, 0, false, 1));
  assert_true(nemesis_may(0x4, 0, false, 1));
  assert_true(nemesis_may(0, 0x4, true, 1));
  assert_true(nemesis_may(0x4, 0x4, true, 1));
  assert_false(nemesis_may(0x4, 0x8, true, 1));
  assert_false(nemesis_may(0x4, 0x8, false, 1));
  assert_true(nemesis_may(0, 0xc, false, 1));
  assert_false(nemesis_may(0, 0xc, true, 1));
  assert_false(nemesis_may(0xc, 0x4, true, 1));
  assert_true(nemesis_may(0x4, 0x8, true, 2));
  assert_false(nemesis_may(0xc, 0x10, true, 2));
}

static void test_a_nemesis_of_a_cluster_with_one_manager_loses_nothing(void **state) {
  (void)state;
  nemesis_test(false, SECONDS, LONGEST_MS);
}

static void test_a_nemesis_of_a_cluster_with_two_managers_on_etcd_loses_nothing(void **state) {
  (void)state;
  nemesis_test(true, SECONDS, LONGEST_MS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_account_permits_the_loss_of_k_servers_and_no_more),
      cmocka_unit_test_teardown(test_a_nemesis_of_a_cluster_with_one_manager_loses_nothing, nemesis_teardown),
      cmocka_unit_test_teardown(test_a_nemesis_of_a_cluster_with_two_managers_on_etcd_loses_nothing, nemesis_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
