/* A hundred peers are killed in mid-stream, over each transport. kill_test.c is the short form.
 *
 * labels: long
 * alone: yes
 * timeout: 1800
 */
#include "base/testing.h"
#include "kills.h"

static void test_survives_a_hundred_kills_over_tcp(void **state) {
  (void)state;
  kills_survive(STREAM_TCP, 100);
}

static void test_survives_a_hundred_kills_over_the_data_plane(void **state) {
  (void)state;
  kills_survive(STREAM_UCX, 100);
}

static void test_survives_a_hundred_kills_over_tls(void **state) {
  (void)state;
  kills_survive(STREAM_TLS, 100);
}

static void test_survives_a_hundred_kills_over_unix_sockets(void **state) {
  (void)state;
  kills_survive(STREAM_UNIX, 100);
}

int main(int count, char **arguments) {
  stream_be_peer_if_asked(count, arguments);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_survives_a_hundred_kills_over_tcp),
      cmocka_unit_test(test_survives_a_hundred_kills_over_the_data_plane),
      cmocka_unit_test(test_survives_a_hundred_kills_over_tls),
      cmocka_unit_test(test_survives_a_hundred_kills_over_unix_sockets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
