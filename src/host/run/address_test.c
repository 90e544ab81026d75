

#include "base/testing.h"
#include "host/run/address.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void test_shards_listen_side_by_side(void **state) {
  (void)state;
  static const struct {
    const char *given;
    uint32_t shard;
    const char *wanted;
  } cases[] = {
      {"127.0.0.1:7300", 0, "127.0.0.1:7300"},
      {"127.0.0.1:7300", 1, "tcp://127.0.0.1:7301-65535"},
      {"127.0.0.1:7300", 9, "tcp://127.0.0.1:7301-65535"},
      {"[::1]:7300", 2, "tcp://[::1]:7301-65535"},
      {"tcp://node:0", 3, "tcp://node:0"},
      {"node:7300-7310", 4, "node:7300-7310"},
      {"unix:/run/pawl", 0, "unix:/run/pawl"},
      {"unix:/run/pawl", 2, "unix:/run/pawl.2"},
  };
  for (size_t i = 0; i < LENGTH(cases); i++) {
    char text[PWI_NET_ADDRESS_MAX];
    struct pwi_address parsed;
    assert_int_equal(pwi_run_shard_address(cases[i].given, cases[i].shard, text), PAWL_OK);
    assert_string_equal(text, cases[i].wanted);
    assert_int_equal(pwi_address_parse(text, &parsed), PAWL_OK);
  }
}

static void test_a_text_that_is_no_address_gives_none(void **state) {
  (void)state;
  char text[PWI_NET_ADDRESS_MAX] = "untouched";
  static const char *const bad[] = {"", "node", "node:x", "node:99999", "::1:3", "unix:"};
  for (size_t i = 0; i < LENGTH(bad); i++) {
    assert_int_equal(pwi_run_shard_address(bad[i], 1, text), PAWL_INVALID);
    assert_false(pwi_run_is_wildcard(bad[i]));
    bool loopback;
    assert_int_equal(pwi_run_route(bad[i], text, &loopback), PAWL_INVALID);
  }
  assert_int_equal(pwi_run_shard_address("node:65535", 1, text), PAWL_INVALID);
  assert_int_equal(pwi_run_shard_address("node:65535", 0, text), PAWL_OK);
  assert_string_equal(text, "node:65535");
}

static void test_all_interfaces_are_told_apart(void **state) {
  (void)state;
  assert_true(pwi_run_is_wildcard("0.0.0.0:0"));
  assert_true(pwi_run_is_wildcard("tcp://0.0.0.0:7300-7310"));
  assert_true(pwi_run_is_wildcard("[::]:1"));
  assert_false(pwi_run_is_wildcard("127.0.0.1:0"));
  assert_false(pwi_run_is_wildcard("[::1]:0"));
  assert_false(pwi_run_is_wildcard("node:0"));
  assert_false(pwi_run_is_wildcard("unix:/0.0.0.0:0"));
}

static void test_loopback_is_reached_by_loopback(void **state) {
  (void)state;
  static const char *const peers[] = {"127.0.0.1:7295", "tcp://127.1.2.3:7295", "unix:/run/pawl", "127.0.0.1:0"};
  for (size_t i = 0; i < LENGTH(peers); i++) {
    char host[PWI_NET_ADDRESS_MAX];
    bool loopback = false;
    assert_int_equal(pwi_run_route(peers[i], host, &loopback), PAWL_OK);
    assert_true(loopback);
    assert_int_equal(strncmp(host, "127.", 4), 0);
  }
}

static void test_a_host_that_has_no_address_cannot_be_reached(void **state) {
  (void)state;
  char host[PWI_NET_ADDRESS_MAX];
  bool loopback;
  assert_int_equal(pwi_run_route("300.300.300.300:1", host, &loopback), PAWL_LINK_RESOLVE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shards_listen_side_by_side),
      cmocka_unit_test(test_a_text_that_is_no_address_gives_none),
      cmocka_unit_test(test_all_interfaces_are_told_apart),
      cmocka_unit_test(test_loopback_is_reached_by_loopback),
      cmocka_unit_test(test_a_host_that_has_no_address_cannot_be_reached),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
