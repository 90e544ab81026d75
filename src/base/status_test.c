/* Statuses: every code has its text, its name and its group. */
#include <limits.h>

#include <pawl/status.h>

#include "base/testing.h"

static const pawl_status all[] = {
#define LISTED(name, number, text) PAWL_##name,
    PAWL_STATUS_MAP(LISTED)
#undef LISTED
};

#define COUNT (sizeof all / sizeof *all)

static void test_every_status_has_a_text_and_a_name_of_its_own(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT; i++) {
    assert_true(strlen(pawl_status_text(all[i])) > 0);
    assert_string_not_equal(pawl_status_text(all[i]), "unknown status");
    assert_string_not_equal(pawl_status_name(all[i]), "UNKNOWN");
    for (size_t j = 0; j < i; j++) {
      assert_true(all[i] != all[j]);
      assert_string_not_equal(pawl_status_text(all[i]), pawl_status_text(all[j]));
      assert_string_not_equal(pawl_status_name(all[i]), pawl_status_name(all[j]));
    }
  }
}

static void test_success_is_zero_and_failures_are_negative(void **state) {
  (void)state;
  assert_int_equal(PAWL_OK, 0);
  for (size_t i = 0; i < COUNT; i++) assert_true(all[i] == PAWL_OK || (int)all[i] <= -100);
}

static void test_names_and_texts_are_those_of_the_header(void **state) {
  (void)state;
  assert_string_equal(pawl_status_name(PAWL_NO_MEMORY), "NO_MEMORY");
  assert_string_equal(pawl_status_text(PAWL_NO_MEMORY), "out of memory");
  assert_string_equal(pawl_status_text(PAWL_OK), "success");
}

/* Numbers are part of the wire format and must never change. */
static void test_numbers_of_statuses_do_not_change(void **state) {
  (void)state;
  assert_int_equal(PAWL_INVALID, -101);
  assert_int_equal(PAWL_NO_MEMORY, -201);
  assert_int_equal(PAWL_LINK_CLOSED, -301);
  assert_int_equal(PAWL_NODE_LIMIT, -401);
  assert_int_equal(PAWL_CLUSTER_UNKNOWN, -501);
}

static void test_groups_name_the_largest_thing_that_broke(void **state) {
  (void)state;
  static const char *const groups[] = {"none", "argument", "operation", "link", "node", "cluster"};
  for (size_t i = 0; i < COUNT; i++)
    assert_string_equal(pawl_status_group(all[i]), groups[(unsigned)-(int)all[i] / 100]);
  assert_string_equal(pawl_status_group(PAWL_OK), "none");
  assert_string_equal(pawl_status_group(PAWL_FORBIDDEN), "argument");
  assert_string_equal(pawl_status_group(PAWL_IO), "operation");
  assert_string_equal(pawl_status_group(PAWL_LINK_RESET), "link");
  assert_string_equal(pawl_status_group(PAWL_NODE_LIMIT), "node");
  assert_string_equal(pawl_status_group(PAWL_CLUSTER_UNKNOWN), "cluster");
}

/* A number may come from an untrusted peer. */
static void test_unknown_numbers_are_harmless(void **state) {
  (void)state;
  static const int strange[] = {1, 99, 100, 250, -1, -99, -100, -600, -9999, INT_MAX, INT_MIN};
  for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
    assert_string_equal(pawl_status_text((pawl_status)strange[i]), "unknown status");
    assert_string_equal(pawl_status_name((pawl_status)strange[i]), "UNKNOWN");
    if (strange[i] == -100) continue; /* in the group of arguments, though no status has that number */
    assert_string_equal(pawl_status_group((pawl_status)strange[i]), "unknown");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_status_has_a_text_and_a_name_of_its_own),
      cmocka_unit_test(test_success_is_zero_and_failures_are_negative),
      cmocka_unit_test(test_names_and_texts_are_those_of_the_header),
      cmocka_unit_test(test_numbers_of_statuses_do_not_change),
      cmocka_unit_test(test_groups_name_the_largest_thing_that_broke),
      cmocka_unit_test(test_unknown_numbers_are_harmless),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
