/* Jobs without servers: all sessions are for peers only, and workers are members of a peer group. */
#define JOB_PEERS true
#include "job_scene.h"

static void test_workers_share_the_pieces_without_servers(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[3] = {0};
  struct pawl_job *job = create_job("plain", 3, PAWL_LOSS_STOP, &seen);
  for (int i = 0; i < 3; i++) hire(&hands[i], "plain");
  for (uint32_t round = 0; round < 20; round++) do_round(job, round, 3);
  pawl_job_end(job);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(discharge(&hands[i]), PAWL_OK);
    assert_int_equal(hands[i].took, 4);
  }
  assert_int_equal(seen.count[PAWL_JOB_JOINED], 3);
  assert_int_equal(seen.count[PAWL_JOB_LOST], 0);
}

/* A worker that is not needed any more leaves the peer group, and the other one has its pieces. */
static void test_pieces_move_when_workers_come_and_go(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand first = {0}, second = {0};
  struct pawl_job *job = create_job("moved", 1, PAWL_LOSS_CONTINUE, &seen);
  hire(&first, "moved");
  do_round(job, 1, 1);
  must(pawl_job_resize(job, 2, 2));
  hire(&second, "moved");
  do_round(job, 2, 2);
  must(pawl_job_resize(job, 1, 1));
  do_round(job, 3, 1);
  pawl_job_end(job);
  pawl_status one = discharge(&first), other = discharge(&second);
  assert_true((one == PAWL_OK && other == PAWL_CANCELLED) || (one == PAWL_CANCELLED && other == PAWL_OK));
  assert_true(seen.moved >= PIECES);
}

static void test_there_is_one_job_of_a_name_at_a_time_without_servers(void **state) {
  (void)state;
  struct pawl_job *other, *job = create_job("single", 1, PAWL_LOSS_STOP, NULL);
  struct pawl_session *rival = open_listening(pawl_session_address(base));
  struct pawl_job_options options;
  char spec[8];
  size_t size;
  pawl_job_options_init(&options);
  options.name = "single";
  must_fail(pawl_job_create(rival, &options, PATIENCE, &other), PAWL_EXISTS, "single");
  must(pawl_job_spec(rival, "single", PATIENCE, spec, sizeof spec, &size));
  assert_int_equal(size, 4);
  pawl_job_end(job);
  must(pawl_job_create(rival, &options, PATIENCE, &other));
  pawl_job_end(other);
  must(pawl_session_close(rival, PATIENCE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_share_the_pieces_without_servers),
      cmocka_unit_test(test_pieces_move_when_workers_come_and_go),
      cmocka_unit_test(test_there_is_one_job_of_a_name_at_a_time_without_servers),
  };
  return cmocka_run_group_tests_name("api.job_peers", tests, open_cluster, close_cluster);
}
