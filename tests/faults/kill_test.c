/* A peer is killed in mid-stream, and the other side continues. kill_hundred_test.c does the same for longer. */
#include "base/testing.h"
#include "kills.h"

static void test_a_busy_link_is_not_taken_for_a_silent_one(void **state) {
  (void)state;
  kills_stream_in_peace(STREAM_TCP, 700);
}

/* Regression: the data plane never ran dry, so heartbeats were not read. */
static void test_a_busy_data_plane_does_not_hide_heartbeats(void **state) {
  (void)state;
  kills_stream_in_peace(STREAM_UCX, 700);
}

static void test_survives_kills_over_tcp(void **state) {
  (void)state;
  kills_survive(STREAM_TCP, 15);
}

static void test_survives_kills_over_the_data_plane(void **state) {
  (void)state;
  kills_survive(STREAM_UCX, 15);
}

static void test_survives_kills_over_tls(void **state) {
  (void)state;
  kills_survive(STREAM_TLS, 8);
}

static void test_survives_kills_over_unix_sockets(void **state) {
  (void)state;
  kills_survive(STREAM_UNIX, 8);
}

int main(int count, char **arguments) {
  stream_be_peer_if_asked(count, arguments);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_busy_link_is_not_taken_for_a_silent_one),
      cmocka_unit_test(test_a_busy_data_plane_does_not_hide_heartbeats),
      cmocka_unit_test(test_survives_kills_over_tcp),
      cmocka_unit_test(test_survives_kills_over_the_data_plane),
      cmocka_unit_test(test_survives_kills_over_tls),
      cmocka_unit_test(test_survives_kills_over_unix_sockets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
