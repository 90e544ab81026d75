/* A session that listens takes in no more than there is room for, however much others send it. */
#include "api/session.h"
#include "scene.h"

static struct pawl_session *open_listening(void) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  pawl_session_options_init(&options);
  options.listen = "127.0.0.1:0";
  options.tcp_only = true;
  must(pawl_session_open(&options, &session));
  return session;
}

static struct pwi_net_counts counts_of(struct pawl_session *session) {
  struct pwi_net_counts counts;
  pwi_driver_enter(&session->driver);
  pwi_net_counts(session->net, &counts);
  pwi_driver_leave(&session->driver);
  return counts;
}

static void test_a_session_has_a_bound_on_what_it_receives(void **state) {
  (void)state;
  struct pawl_session *session = open_listening();
  assert_int_equal(counts_of(session).inbound_max, PWI_SESSION_INBOUND);
  must(pawl_session_close(session, PATIENCE));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_session_has_a_bound_on_what_it_receives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
