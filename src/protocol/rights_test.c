#include "base/testing.h"
#include "protocol/rights.h"
#include "wire/hello.h"

static const struct pwi_log here = {.node = "here"};

static uint8_t greeted(const struct pwi_rights *rights, uint8_t stated) {
  uint8_t priority = 0;
  assert_int_equal(pwi_rights_greet(rights, stated, "peer", "key:1", &here, &priority), PAWL_OK);
  assert_int_equal(pwi_rights_priority(rights, stated), priority);
  return priority;
}

static void test_the_limit_of_a_key_bounds_the_priority(void **state) {
  (void)state;
  struct pwi_rights limited = {.write = true, .priority = 3}, free = {.write = true};
  assert_int_equal(greeted(&limited, 9), 3);
  assert_int_equal(greeted(&limited, 0), 3);
  assert_int_equal(greeted(&limited, 2), 2);
  assert_int_equal(greeted(&free, 9), 9);
  assert_int_equal(greeted(&free, 0), PWI_PRIORITY_USUAL);
}

static void test_a_priority_that_there_is_not_is_refused(void **state) {
  (void)state;
  struct pwi_rights free = {.write = true};
  uint8_t priority = 77;
  assert_int_equal(pwi_rights_greet(&free, 10, "peer", "key:1", &here, &priority), PAWL_UNSUPPORTED);
  assert_int_equal(priority, 77);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_limit_of_a_key_bounds_the_priority),
      cmocka_unit_test(test_a_priority_that_there_is_not_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
