/* A barrier waits for its own tick. Somebody who was taken for dead is not waited for, so that the wait for the others may be over
 * before its own tick is in; whoever enters then would enter below the barrier. Here the wait for the others is always over at
 * once: the client's call is replaced. */
#include "client/client.h"

static pawl_status await_of_test(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                 uint64_t tick);
#define pwi_client_await await_of_test
#include "api/group.c"

#include "scene.h"

#define MOMENT (PAWL_SECOND / 5)

/* As if all had come. */
static pawl_status await_of_test(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                 uint64_t tick) {
  (void)client, (void)flow, (void)tick;
  task->status = PAWL_OK;
  task->finished(task);
  return PAWL_OK;
}

static void test_a_barrier_waits_for_its_own_tick(void **state) {
  struct pawl_group *group;
  struct pawl_session *session = open_embedded(1, 1);
  pid_t server = 0;
  (void)state;
  must(pawl_group_join(session, "a/g", 1, PATIENCE, &group));
  must(pawl_group_barrier(group, PATIENCE));
  assert_int_equal(find_children(getpid(), "--join", &server, 1), 1);
  halt(server);
  must(pawl_group_await(group, 2, PATIENCE));                                   /* nobody is waited for, */
  must_fail(pawl_group_barrier(group, MOMENT), PAWL_TIMED_OUT, "clock of a/g"); /* but for our own tick */
  assert_int_equal(kill(server, SIGCONT), 0);
  must(pawl_group_barrier(group, PATIENCE));
  assert_int_equal(pawl_group_tick(group), 3);
  pawl_group_leave(group);
  must(pawl_session_close(session, PATIENCE));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_barrier_waits_for_its_own_tick)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
