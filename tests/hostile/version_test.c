/* A peer with another protocol version is refused, and the log shows both version ranges, so that an operator
 * knows which side to update. */
#include "base/testing.h"
#include "../faults/attack.h"
#include "base/log.h"
#include "protocol/messenger.h"

static void test_both_ranges_of_the_framing_are_logged(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  scene_begin(&scene, true, NULL);
  scene_attack(&scene, &raw);
  raw_open(&raw, 7, 9);
  scene_check_refused(&scene, &raw, "ours=1..2 theirs=7..9");
  scene_end(&scene);
}

static struct pwi_net *make_net(void) {
  static const struct pwi_actor nobody = {0};
  struct pwi_tcp_config config;
  struct pwi_net *net;
  pwi_tcp_config_init(&config);
  config.plane = PWI_PLANE_OFF;
  assert_int_equal(pwi_tcp_create(&config, &nobody, NULL, &net), PAWL_OK);
  return net;
}

static const struct pwi_log us = {.node = "us"};

static struct pwi_greeting greeting_of(struct pwi_net *net) {
  return (struct pwi_greeting){.role = PWI_ROLE_SERVER, .host = "here", .log = &us, .net = net};
}

/* A client that speaks these versions connects. */
static struct pwi_link_info info_of(uint8_t lowest, uint8_t highest) {
  static uint8_t bytes[PWI_HELLO_MAX];
  struct pwi_hello hello;
  size_t size;
  pwi_hello_init(&hello);
  hello.role = PWI_ROLE_CLIENT;
  hello.lowest = lowest;
  hello.highest = highest;
  assert_int_equal(pwi_hello_encode(&hello, bytes, sizeof bytes, &size), PAWL_OK);
  return (struct pwi_link_info){.peer = "tcp://192.0.2.1:99", .hello = bytes, .hello_size = size};
}

static void test_both_ranges_of_the_protocol_are_logged(void **state) {
  (void)state;
  struct pwi_net *net = make_net();
  struct pwi_greeting ours = greeting_of(net);
  struct pwi_link_info info = info_of(5, 8);
  struct pwi_peering peering;
  kit_log_begin();
  assert_int_equal(pwi_greeting_check(&ours, &info, &peering), PAWL_LINK_VERSION);
  assert_int_equal(kit_log_count("link.version"), 1);
  assert_int_equal(kit_log_count("peer=tcp://192.0.2.1:99"), 1);
  assert_int_equal(kit_log_count("our_versions=1..1"), 1);
  assert_int_equal(kit_log_count("their_versions=5..8"), 1);
  assert_int_equal(kit_log_count("update=us"), 1);
  /* The log is limited. */
  for (int i = 0; i < 1000; i++) (void)!pwi_greeting_check(&ours, &info, &peering);
  assert_true(kit_log_count("link.version") < 500);
  pwi_net_destroy(net);
}

static void test_one_who_speaks_ours_is_not_mentioned(void **state) {
  (void)state;
  struct pwi_net *net = make_net();
  struct pwi_greeting ours = greeting_of(net);
  struct pwi_link_info info = info_of(PWI_PROTOCOL_LOWEST, 8);
  struct pwi_peering peering;
  kit_log_begin();
  assert_int_equal(pwi_greeting_check(&ours, &info, &peering), PAWL_OK);
  assert_int_equal(kit_log_count("link.version"), 0);
  pwi_net_destroy(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_both_ranges_of_the_framing_are_logged),
      cmocka_unit_test(test_both_ranges_of_the_protocol_are_logged),
      cmocka_unit_test(test_one_who_speaks_ours_is_not_mentioned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
