/* Jobs on an embedded cluster: a scheduler here, and workers that are threads with a session each. */
#include "job_scene.h"

static void test_workers_share_the_pieces_and_report(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[3] = {0};
  struct pawl_job *job = create_job("plain", 3, PAWL_LOSS_STOP, &seen);
  for (int i = 0; i < 3; i++) hire(&hands[i], "plain");
  for (uint32_t round = 0; round < 20; round++) do_round(job, round, 3);
  pawl_job_end(job);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(discharge(&hands[i]), PAWL_OK);
    assert_int_equal(hands[i].begun, 1);
    assert_int_equal(hands[i].ended, 1);
    assert_int_equal(hands[i].took, 4);
  }
  assert_int_equal(seen.count[PAWL_JOB_JOINED], 3);
  assert_int_equal(seen.count[PAWL_JOB_LOST], 0);
}

static void test_a_job_without_a_place_or_a_sound_plan_is_refused(void **state) {
  (void)state;
  struct pawl_job_options options;
  struct pawl_job *job;
  struct pawl_round *round;
  struct hand hand = {0};
  pawl_job_options_init(&options);
  assert_int_equal(pawl_job_create(session, &options, PATIENCE, &job), PAWL_INVALID);
  options.name = "two words";
  must_fail(pawl_job_create(session, &options, PATIENCE, &job), PAWL_INVALID, "two words");
  options.name = "unsound";
  options.least = 3;
  options.most = 2;
  must_fail(pawl_job_create(session, &options, PATIENCE, &job), PAWL_INVALID, "unsound");
  options.least = 1;
  options.drop_slowest = 0.5;
  must_fail(pawl_job_create(session, &options, PATIENCE, &job), PAWL_INVALID, "unsound");
  options.drop_slowest = 0;
  must_fail(pawl_job_create(base, &options, PATIENCE, &job), PAWL_INVALID, "listen");
  must_fail(pawl_worker_run(base, "unsound", &calls, &hand, 0), PAWL_INVALID, "listen");
  must_fail(pawl_worker_run(session, "a/b", &calls, &hand, 0), PAWL_INVALID, "a/b");
  must_fail(pawl_worker_run(session, "unsound", &calls, &hand, 1000000), PAWL_TIMED_OUT, "does not exist");
  options.patience_ns = 1000000;
  must(pawl_job_create(session, &options, PATIENCE, &job));
  assert_int_equal(pawl_job_await(job, 0, &round), PAWL_INVALID);
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_NODE_GONE, "0 of 1 workers");
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_NODE_GONE, "0 of 1 workers");
  pawl_job_end(job);
}

static void test_there_is_one_job_of_a_name_at_a_time(void **state) {
  (void)state;
  struct pawl_job *other, *job = create_job("single", 1, PAWL_LOSS_STOP, NULL);
  struct pawl_session *rival = open_listening(pawl_session_address(base));
  struct pawl_job_options options;
  pawl_job_options_init(&options);
  options.name = "single";
  must_fail(pawl_job_create(session, &options, PATIENCE, &other), PAWL_EXISTS, "single");
  must_fail(pawl_job_create(rival, &options, PATIENCE, &other), PAWL_EXISTS, "single");
  pawl_job_end(job);
  must(pawl_job_create(rival, &options, PATIENCE, &other));
  pawl_job_end(other);
  must(pawl_session_close(rival, PATIENCE));
}

static void test_what_a_job_is_about_can_be_asked_without_joining(void **state) {
  (void)state;
  char spec[8] = "";
  size_t size = 77;
  struct seen seen = {0};
  struct pawl_session *other = open_listening(pawl_session_address(base));
  must_fail(pawl_job_spec(other, "asked", 1000000, spec, sizeof spec, &size), PAWL_TIMED_OUT, "does not exist");
  must_fail(pawl_job_spec(other, "a/b", 0, spec, sizeof spec, &size), PAWL_INVALID, "a/b");
  struct pawl_job *job = create_job("asked", 1, PAWL_LOSS_STOP, &seen);
  must_fail(pawl_job_spec(other, "asked", PATIENCE, spec, 3, &size), PAWL_TOO_LARGE, "asked");
  assert_int_equal(size, 77);
  must(pawl_job_spec(other, "asked", PATIENCE, spec, sizeof spec, &size));
  assert_int_equal(size, 4);
  assert_memory_equal(spec, "spec", 4);
  assert_int_equal(seen.count[PAWL_JOB_JOINED], 0);
  pawl_job_end(job);
  must_fail(pawl_job_spec(other, "asked", 1000000, spec, sizeof spec, &size), PAWL_TIMED_OUT, "does not exist");
  must(pawl_session_close(other, PATIENCE));
}

static pthread_barrier_t all_have_tried;

static void *contend(void *context) {
  struct pawl_job *job = NULL, **won = context;
  struct pawl_job_options options;
  pawl_job_options_init(&options);
  options.name = "contended";
  struct pawl_session *own = open_listening(pawl_session_address(base));
  pawl_status status = pawl_job_create(own, &options, PATIENCE, &job);
  *won = status == PAWL_OK ? job : NULL;
  pthread_barrier_wait(&all_have_tried);
  pawl_job_end(job);
  pawl_session_close(own, PATIENCE);
  return NULL;
}

static void test_of_several_that_want_to_be_the_scheduler_one_is(void **state) {
  (void)state;
  pthread_t threads[4];
  struct pawl_job *won[4];
  int count = 0;
  assert_int_equal(pthread_barrier_init(&all_have_tried, NULL, 4), 0);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, contend, &won[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&all_have_tried);
  for (int i = 0; i < 4; i++) count += won[i] != NULL;
  assert_int_equal(count, 1);
}

static void test_workers_that_come_later_take_over_pieces(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[4] = {0};
  struct pawl_job *job = create_job("growing", 1, PAWL_LOSS_STOP, &seen);
  uint32_t round = 0;
  for (int i = 0; i < 4; i++) {
    hire(&hands[i], "growing");
    struct pawl_round *results = NULL;
    for (size_t count = 0; count < (size_t)i + 1;) { /* it may take a few rounds until it has asked to join */
      must(pawl_job_round(job, NULL, 0, PATIENCE, &results));
      count = pawl_round_count(results);
      pawl_round_destroy(results);
    }
    do_round(job, ++round, (size_t)i + 1);
  }
  assert_int_equal(seen.moved, 6 + 4 + 3); /* no more than the newcomers' shares */
  assert_int_equal(hands[0].dropped, 6 + 2 + 1);
  pawl_job_end(job);
  for (int i = 0; i < 4; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
}

static void test_more_workers_than_pieces_all_take_part(void **state) {
  (void)state;
  struct hand hands[PIECES + 2] = {0};
  struct pawl_job *job = create_job("crowd", PIECES + 2, PAWL_LOSS_STOP, NULL);
  for (int i = 0; i < PIECES + 2; i++) hire(&hands[i], "crowd");
  do_round(job, 1, PIECES + 2);
  pawl_job_end(job);
  for (int i = 0; i < PIECES + 2; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
}

static void test_a_worker_that_refuses_to_begin_is_quoted(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[2] = {{.refuse_begin = PAWL_NOT_FOUND}};
  struct pawl_round *round;
  struct pawl_job *job = create_job("refused", 1, PAWL_LOSS_REPLACE, &seen);
  hire(&hands[0], "refused");
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_REFUSED, "could not begin: there is no data here");
  assert_int_equal(discharge(&hands[0]), PAWL_NOT_FOUND);
  assert_non_null(strstr(hands[0].text, "no data"));
  assert_int_equal(hands[0].ended, 1);
  assert_int_equal(seen.count[PAWL_JOB_REFUSED], 1);
  assert_string_equal(seen.text, "there is no data here");
  hire(&hands[1], "refused");
  do_round(job, 1, 1);
  pawl_job_end(job);
  assert_int_equal(discharge(&hands[1]), PAWL_OK);
}

static void test_a_worker_that_cannot_take_its_pieces_is_quoted(void **state) {
  (void)state;
  struct hand hand = {.refuse_take = PAWL_IO};
  struct pawl_round *round;
  struct pawl_job *job = create_job("unread", 1, PAWL_LOSS_REPLACE, NULL);
  hire(&hand, "unread");
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_REFUSED,
            "could not take its pieces: piece 7 cannot be read");
  assert_int_equal(discharge(&hand), PAWL_IO);
  pawl_job_end(job);
}

static void test_work_that_fails_is_reported_and_the_job_goes_on(void **state) {
  (void)state;
  struct hand hands[2] = {{.fail_work = PAWL_CORRUPT}};
  struct pawl_round *round;
  struct pawl_report report;
  struct pawl_job *job = create_job("wet", 2, PAWL_LOSS_STOP, NULL);
  hire(&hands[0], "wet");
  hire(&hands[1], "wet");
  must(pawl_job_round(job, NULL, 0, PATIENCE, &round));
  assert_false(pawl_round_is_whole(round));
  int failed = 0;
  for (size_t i = 0; i < 2; i++) {
    must(pawl_round_get(round, i, &report));
    if (!report.status) continue;
    failed++;
    assert_int_equal(report.status, PAWL_CORRUPT);
    assert_string_equal(report.text, "the powder is wet");
    assert_int_equal(report.size, sizeof(struct report));
  }
  assert_int_equal(failed, 1);
  pawl_round_destroy(round);
  hands[0].fail_work = PAWL_OK;
  do_round(job, 1, 2);
  pawl_job_end(job);
  for (int i = 0; i < 2; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
}

static pawl_status echo(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  (void)context;
  if (pawl_worker_report(worker, argument, PAWL_JOB_BYTES + 1) != PAWL_TOO_LARGE) return PAWL_CORRUPT;
  pawl_status status =
      pawl_session_flush(pawl_worker_session(worker), PATIENCE); /* which does not wait for the job itself */
  return status ? status : pawl_worker_report(worker, argument, size);
}

static void *parrot(void *context) {
  const struct pawl_worker_calls own = {.work = echo};
  struct pawl_session *other = open_listening(pawl_session_address(base));
  *(pawl_status *)context = pawl_worker_run(other, "large", &own, NULL, PATIENCE);
  pawl_session_close(other, PATIENCE);
  return NULL;
}

static void test_arguments_and_reports_may_be_large(void **state) {
  (void)state;
  static unsigned char bytes[PAWL_JOB_BYTES + 1];
  struct pawl_job *job = create_job("large", 1, PAWL_LOSS_STOP, NULL);
  struct pawl_round *round;
  struct pawl_report report;
  pawl_status outcome = PAWL_INVALID;
  pthread_t thread;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 31 >> 3);
  assert_int_equal(pthread_create(&thread, NULL, parrot, &outcome), 0);
  must_fail(pawl_job_round(job, bytes, sizeof bytes, PATIENCE, &round), PAWL_TOO_LARGE, "large");
  must(pawl_job_round(job, bytes, PAWL_JOB_BYTES, PATIENCE, &round));
  must(pawl_round_get(round, 0, &report));
  assert_int_equal(report.status, PAWL_OK);
  assert_int_equal(report.size, PAWL_JOB_BYTES);
  assert_true(memcmp(report.bytes, bytes, report.size) == 0);
  pawl_round_destroy(round);
  pawl_job_end(job);
  pthread_join(thread, NULL);
  assert_int_equal(outcome, PAWL_OK);
}

/* Begins a round, and returns when the worker works. */
static void begin_round(struct pawl_job *job, struct hand *hand) {
  struct pawl_round *round;
  pawl_status status = pawl_job_round(job, NULL, 0, PAWL_SECOND / 100, &round);
  while (status == PAWL_TIMED_OUT && atomic_load(&hand->working) < 1)
    status = pawl_job_await(job, PAWL_SECOND / 100, &round);
  assert_int_equal(status, PAWL_TIMED_OUT);
}

static void test_a_round_can_be_timed_and_awaited(void **state) {
  (void)state;
  struct hand hand = {.hold = true};
  struct pawl_round *round;
  struct pawl_job *job = create_job("patient", 1, PAWL_LOSS_STOP, NULL);
  hire(&hand, "patient");
  begin_round(job, &hand);
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_INVALID, "under way");
  must_fail(pawl_job_await(job, 1000000, &round), PAWL_TIMED_OUT, "it continues");
  atomic_store(&hand.hold, false);
  must(pawl_job_await(job, PATIENCE, &round));
  assert_true(pawl_round_is_whole(round));
  pawl_round_destroy(round);
  pawl_job_end(job);
  assert_int_equal(discharge(&hand), PAWL_OK);
}

static void test_a_job_that_ends_in_mid_round_makes_its_workers_return(void **state) {
  (void)state;
  struct hand hand = {.hold = true};
  struct pawl_job *job = create_job("cut", 1, PAWL_LOSS_STOP, NULL);
  hire(&hand, "cut");
  begin_round(job, &hand);
  pawl_job_end(job);
  assert_int_equal(discharge(&hand), PAWL_OK); /* it holds until pawl_worker_is_ending */
  assert_int_equal(hand.ended, 1);
}

static void test_a_job_shrinks_and_grows_as_it_is_told(void **state) {
  (void)state;
  struct hand hands[3] = {0};
  struct pawl_job *job = create_job("elastic", 3, PAWL_LOSS_STOP, NULL);
  for (int i = 0; i < 3; i++) hire(&hands[i], "elastic");
  do_round(job, 1, 3);
  must_fail(pawl_job_resize(job, 2, 1), PAWL_INVALID, "elastic");
  must(pawl_job_resize(job, 1, 1));
  do_round(job, 2, 1);
  must(pawl_job_resize(job, 1, 3));
  do_round(job, 3, 1);
  pawl_job_end(job);
  int cancelled = 0, whole = 0;
  for (int i = 0; i < 3; i++) {
    pawl_status outcome = discharge(&hands[i]);
    cancelled += outcome == PAWL_CANCELLED;
    whole += outcome == PAWL_OK;
  }
  assert_int_equal(cancelled, 2);
  assert_int_equal(whole, 1);
}

/* --- slow workers --------------------------------------------------------------------------------------------------------- */

static void test_a_worker_that_stays_slow_is_dropped(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[3] = {{.slow_ns = 1000000}, {.slow_ns = 1000000}, {.slow_ns = 60000000}};
  struct pawl_job_options options;
  struct pawl_job *job;
  pawl_job_options_init(&options);
  options.name = "slow";
  options.spec = "spec";
  options.spec_size = 4;
  options.pieces = PIECES;
  options.drop_slowest = 8;
  options.tell = note;
  options.context = &seen;
  options.least = 3;
  must(pawl_job_create(session, &options, PATIENCE, &job));
  for (int i = 0; i < 3; i++) hire(&hands[i], "slow");
  do_round(job, 1, 3);
  must(pawl_job_resize(job, 2, 3)); /* below its least number nobody is dropped */
  do_round(job, 2, 3);
  do_round(job, 3, 3);
  do_round(job, 4, 2);
  assert_int_equal(seen.count[PAWL_JOB_DROPPED], 1);
  assert_int_equal(discharge(&hands[2]), PAWL_CANCELLED);
  pawl_job_end(job);
  for (int i = 0; i < 2; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_share_the_pieces_and_report),
      cmocka_unit_test(test_a_job_without_a_place_or_a_sound_plan_is_refused),
      cmocka_unit_test(test_there_is_one_job_of_a_name_at_a_time),
      cmocka_unit_test(test_what_a_job_is_about_can_be_asked_without_joining),
      cmocka_unit_test(test_of_several_that_want_to_be_the_scheduler_one_is),
      cmocka_unit_test(test_workers_that_come_later_take_over_pieces),
      cmocka_unit_test(test_more_workers_than_pieces_all_take_part),
      cmocka_unit_test(test_a_worker_that_refuses_to_begin_is_quoted),
      cmocka_unit_test(test_a_worker_that_cannot_take_its_pieces_is_quoted),
      cmocka_unit_test(test_work_that_fails_is_reported_and_the_job_goes_on),
      cmocka_unit_test(test_arguments_and_reports_may_be_large),
      cmocka_unit_test(test_a_round_can_be_timed_and_awaited),
      cmocka_unit_test(test_a_job_that_ends_in_mid_round_makes_its_workers_return),
      cmocka_unit_test(test_a_job_shrinks_and_grows_as_it_is_told),
      cmocka_unit_test(test_a_worker_that_stays_slow_is_dropped),
  };
  return cmocka_run_group_tests_name("api.job", tests, open_cluster, close_cluster);
}
