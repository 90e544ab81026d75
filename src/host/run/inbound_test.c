
#include "base/testing.h"
#include "host/run/inbound.h"

#define MIB ((uint64_t)1 << 20)

static void test_an_eighth_is_set_aside_within_bounds(void **state) {
  (void)state;
  assert_int_equal(pwi_run_inbound(UINT64_MAX), 512 * MIB);
  assert_int_equal(pwi_run_inbound(64 * 1024 * MIB), 512 * MIB);
  assert_int_equal(pwi_run_inbound(2048 * MIB), 256 * MIB);
  assert_int_equal(pwi_run_inbound(64 * MIB), 16 * MIB);
  assert_int_equal(pwi_run_inbound(8 * MIB), 4 * MIB);
  assert_int_equal(pwi_run_inbound(0), 0);
  assert_int_equal(pwi_run_answers(UINT64_MAX), 512 * MIB);
  assert_int_equal(pwi_run_answers(64 * MIB), 16 * MIB);
  assert_int_equal(pwi_run_answers(8 * MIB), 2 * MIB);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_eighth_is_set_aside_within_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
