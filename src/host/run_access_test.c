#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "host/run_rights.h"

#define FULL "pawl1-0000000000000000000000000000000000000000000000000000000000000000"
#define READER "pawl1-1111111111111111111111111111111111111111111111111111111111111111"
#define ADS "pawl1-2222222222222222222222222222222222222222222222222222222222222222"
#define BOTH "pawl1-3333333333333333333333333333333333333333333333333333333333333333"
#define STRANGER "pawl1-4444444444444444444444444444444444444444444444444444444444444444"

static struct pwi_keyring *ring_of(const char *const *lines) {
  struct pwi_keyring *ring;
  assert_int_equal(pwi_keyring_create(&ring), PAWL_OK);
  for (; *lines; lines++) assert_int_equal(pwi_keyring_add(ring, *lines), PAWL_OK);
  return ring;
}

/* What whoever comes with the key of this text is permitted. */
static struct pwi_rights rights_of(struct pwi_keyring *ring, const char *text) {
  struct pwi_key key;
  char identity[64];
  assert_int_equal(pwi_key_parse(text, &key), PAWL_OK);
  snprintf(identity, sizeof identity, "key:%s", key.name);
  return pwi_run_rights(ring, identity);
}

static void test_each_key_permits_what_its_limits_leave(void **state) {
  (void)state;
  struct pwi_keyring *ring =
      ring_of((const char *[]){FULL, READER " read-only", ADS " space=ads", BOTH " space=ads read-only", NULL});
  struct pwi_rights rights = rights_of(ring, FULL);
  assert_true(rights.write);
  assert_string_equal(rights.space, "");
  rights = rights_of(ring, READER);
  assert_false(rights.write);
  assert_string_equal(rights.space, "");
  rights = rights_of(ring, ADS);
  assert_true(rights.write);
  assert_string_equal(rights.space, "ads");
  rights = rights_of(ring, BOTH);
  assert_false(rights.write);
  assert_string_equal(rights.space, "ads");
  pwi_keyring_destroy(ring);
}

static void test_a_key_that_is_not_known_permits_nothing(void **state) {
  (void)state;
  struct pwi_keyring *ring = ring_of((const char *[]){FULL, NULL});
  struct pwi_rights rights = rights_of(ring, STRANGER);
  assert_false(rights.write);
  assert_false(pwi_name_is_in("ads/w", rights.space));
  rights = pwi_run_rights(ring, "key:");
  assert_false(rights.write);
  rights = pwi_run_rights(NULL, "key:0123456789abcdef");
  assert_false(rights.write);
  pwi_keyring_destroy(ring);
}

static void test_other_identities_may_do_everything(void **state) {
  (void)state;
  static const char *const identities[] = {"", "user:0", "user:1000", "cert:node-a", "cert:key:x"};
  struct pwi_keyring *ring = ring_of((const char *[]){READER " read-only", NULL});
  for (size_t i = 0; i < sizeof identities / sizeof *identities; i++) {
    struct pwi_rights rights = pwi_run_rights(i % 2 ? ring : NULL, identities[i]);
    assert_true(rights.write);
    assert_string_equal(rights.space, "");
  }
  pwi_keyring_destroy(ring);
}

static void test_the_first_key_decides_what_a_node_can_do(void **state) {
  (void)state;
  struct pwi_keyring *good = ring_of((const char *[]){FULL, READER " read-only", NULL});
  struct pwi_keyring *reader = ring_of((const char *[]){READER " read-only", FULL, NULL});
  struct pwi_keyring *ads = ring_of((const char *[]){ADS " space=ads", NULL});
  assert_false(pwi_run_rights_are_limited(NULL));
  assert_false(pwi_run_rights_are_limited(good));
  assert_true(pwi_run_rights_are_limited(reader));
  assert_true(pwi_run_rights_are_limited(ads));
  pwi_keyring_destroy(good);
  pwi_keyring_destroy(reader);
  pwi_keyring_destroy(ads);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_key_permits_what_its_limits_leave),
      cmocka_unit_test(test_a_key_that_is_not_known_permits_nothing),
      cmocka_unit_test(test_other_identities_may_do_everything),
      cmocka_unit_test(test_the_first_key_decides_what_a_node_can_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
