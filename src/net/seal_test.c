/* Seals: only the owner of the secret can create them, and anyone with the public half can verify them. */
#include "base/testing.h"
#include "net/seal.h"

/* RFC 8032, 7.1, test 2. */
static void test_a_seal_is_that_of_the_standard(void **state) {
  static const uint8_t secret[32] = {0x4c, 0xcd, 0x08, 0x9b, 0x28, 0xff, 0x96, 0xda, 0x9d, 0xb6, 0xc3,
                                     0x46, 0xec, 0x11, 0x4e, 0x0f, 0x5b, 0x8a, 0x31, 0x9f, 0x35, 0xab,
                                     0xa6, 0x24, 0xda, 0x8c, 0xf6, 0xed, 0x4f, 0xb8, 0xa6, 0xfb};
  static const uint8_t known[32] = {0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a, 0x92, 0xb7, 0x0a,
                                    0xa7, 0x4d, 0x1b, 0x7e, 0xbc, 0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4,
                                    0x96, 0x8c, 0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4, 0x66, 0x0c};
  uint8_t public_half[PWI_SEAL_PUBLIC], seal[PWI_SEAL_SIZE];
  (void)state;
  assert_int_equal(pwi_seal_public(secret, public_half), PAWL_OK);
  assert_memory_equal(public_half, known, sizeof known);
  assert_int_equal(pwi_seal_make(secret, "\x72", 1, seal), PAWL_OK);
  assert_int_equal(seal[0], 0x92);
  assert_int_equal(seal[63], 0x00);
  assert_true(pwi_seal_check(public_half, "\x72", 1, seal));
}

static void test_nothing_else_is_a_seal(void **state) {
  uint8_t secret[PWI_SEAL_SECRET], other[PWI_SEAL_SECRET], public_half[PWI_SEAL_PUBLIC], of_other[PWI_SEAL_PUBLIC];
  uint8_t seal[PWI_SEAL_SIZE];
  (void)state;
  assert_int_equal(pwi_seal_draw(secret), PAWL_OK);
  assert_int_equal(pwi_seal_draw(other), PAWL_OK);
  assert_memory_not_equal(secret, other, sizeof secret);
  assert_int_equal(pwi_seal_public(secret, public_half), PAWL_OK);
  assert_int_equal(pwi_seal_public(other, of_other), PAWL_OK);
  assert_int_equal(pwi_seal_make(secret, "text", 4, seal), PAWL_OK);
  assert_true(pwi_seal_check(public_half, "text", 4, seal));
  assert_false(pwi_seal_check(of_other, "text", 4, seal));
  assert_false(pwi_seal_check(public_half, "texT", 4, seal));
  assert_false(pwi_seal_check(public_half, "text", 3, seal));
  for (size_t i = 0; i < sizeof seal; i++) {
    seal[i] ^= 1;
    assert_false(pwi_seal_check(public_half, "text", 4, seal));
    seal[i] ^= 1;
  }
  memset(seal, 0, sizeof seal);
  memset(public_half, 0, sizeof public_half);
  assert_false(pwi_seal_check(public_half, "text", 4, seal));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_seal_is_that_of_the_standard),
      cmocka_unit_test(test_nothing_else_is_a_seal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
