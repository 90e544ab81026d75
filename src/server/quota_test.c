
#include "base/memory.h"
#include "base/testing.h"
#include "server/quota.h"

#define SECOND INT64_C(1000000000)
#define A "key:0123456789abcdef"
#define B "key:fedcba9876543210"

static int leave_nothing(void **state) {
  (void)state;
  return pwi_memory_counts().live != 0;
}

static void test_without_quotas_there_is_no_account(void **state) {
  (void)state;
  struct pwi_quota_accounts accounts = {0};
  struct pwi_rights rights = {.write = true, .space = "ads", .memory = 1};
  struct pwi_quota_account *account;
  for (int i = 0; i < 100; i++) {
    assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &account), PAWL_OK);
    assert_null(account);
  }
  assert_true(pwi_quota_account_may(NULL, 0));
  pwi_quota_account_take(NULL, UINT64_MAX, 0);
  pwi_quota_account_leave(&accounts, NULL);
}

static void test_connections_are_counted_by_identity(void **state) {
  (void)state;
  struct pwi_quota_accounts accounts = {0};
  struct pwi_rights rights = {.connections = 2};
  struct pwi_quota_account *first, *second, *third;
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &first), PAWL_OK);
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &second), PAWL_OK);
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &third), PAWL_QUOTA_LINKS);
  assert_int_equal(pwi_quota_account_enter(&accounts, B, &rights, 0, &third), PAWL_OK);
  pwi_quota_account_leave(&accounts, first);
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &first), PAWL_OK);
  pwi_quota_account_leave(&accounts, first);
  pwi_quota_account_leave(&accounts, second);
  pwi_quota_account_leave(&accounts, third);
  assert_null(accounts.first);
}

/* Its links are up when the quota comes. They stay, and they count. */
static void test_links_that_are_up_count_when_a_quota_comes(void **state) {
  struct pwi_rights rights = {.connections = 1};
  struct pwi_quota_accounts accounts = {0};
  struct pwi_quota_account *links[2] = {0}, *third;
  (void)state;
  for (int i = 0; i < 2; i++)
    assert_int_equal(pwi_quota_account_limit(&accounts, A, &(struct pwi_rights){0}, 0, &links[i]), PAWL_OK);
  assert_null(accounts.first);
  for (int twice = 0; twice < 2; twice++) {
    for (int i = 0; i < 2; i++) assert_int_equal(pwi_quota_account_limit(&accounts, A, &rights, 0, &links[i]), PAWL_OK);
  }
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &third), PAWL_QUOTA_LINKS);
  pwi_quota_account_leave(&accounts, links[0]);
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &third), PAWL_QUOTA_LINKS);
  pwi_quota_account_leave(&accounts, links[1]);
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &third), PAWL_OK);
  pwi_quota_account_leave(&accounts, third);
  assert_null(accounts.first);
}

static void test_a_rate_is_kept_over_time_and_by_all_links_together(void **state) {
  (void)state;
  struct pwi_quota_accounts accounts = {0};
  struct pwi_rights rights = {.rate = 1000};
  struct pwi_quota_account *one, *two;
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &one), PAWL_OK);
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &two), PAWL_OK);
  uint64_t moved = 0;
  for (int64_t now = 0; now <= 100 * SECOND; now += SECOND / 100) {
    struct pwi_quota_account *account = now % 2 ? one : two;
    if (!pwi_quota_account_may(account, now)) continue;
    pwi_quota_account_take(account, 300, now);
    moved += 300;
  }
  assert_in_range(moved, 100000, 102000); /* the rate, plus one second's amount at the beginning */
  pwi_quota_account_leave(&accounts, one);
  pwi_quota_account_leave(&accounts, two);
  pwi_quota_accounts_fini(&accounts);
}

/* Reconnecting does not refill an overdrawn account. */
static void test_an_overdrawn_account_outlives_its_links(void **state) {
  (void)state;
  struct pwi_quota_accounts accounts = {0};
  struct pwi_rights rights = {.rate = 1000};
  struct pwi_quota_account *account;
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, 0, &account), PAWL_OK);
  pwi_quota_account_take(account, 11000, 0);
  pwi_quota_account_leave(&accounts, account);
  assert_int_equal(pwi_quota_account_enter(&accounts, A, &rights, SECOND, &account), PAWL_OK);
  assert_false(pwi_quota_account_may(account, SECOND));
  assert_true(pwi_quota_account_may(account, 11 * SECOND));
  pwi_quota_account_leave(&accounts, account);
  pwi_quota_accounts_fini(&accounts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_quotas_there_is_no_account),
      cmocka_unit_test(test_connections_are_counted_by_identity),
      cmocka_unit_test(test_links_that_are_up_count_when_a_quota_comes),
      cmocka_unit_test(test_a_rate_is_kept_over_time_and_by_all_links_together),
      cmocka_unit_test(test_an_overdrawn_account_outlives_its_links),
  };
  return cmocka_run_group_tests(tests, NULL, leave_nothing);
}
