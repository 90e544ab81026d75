/* The scheduler, case by case. job/model_test.c checks the general invariants. */
#include "job/scheduler_test.h"

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_plans_that_cannot_be_are_refused(void **state) {
  (void)state;
  struct pwi_scheduler_options options[] = {plain, plain, plain, plain, plain, plain};
  options[0].least = 0;
  options[1].most = 1;
  options[2].drop_slowest = 1;
  options[3].on_loss = (enum pawl_on_loss)7;
  options[4].patience_ns = -1;
  options[5].pieces = PAWL_KEY_END;
  for (size_t i = 0; i < 6; i++) assert_int_equal(pwi_scheduler_create(&options[i], &scheduler), PAWL_INVALID);
  scheduler = NULL;
}

static void test_nothing_is_done_before_a_round_is_wanted(void **state) {
  (void)state;
  open_scheduler(plain);
  assert_int_equal(pwi_scheduler_starts(scheduler), 2);
  assert_int_equal(pwi_scheduler_starts(scheduler), 0);
  join(1);
  join(2);
  advance();
  assert_int_equal(orders[1].kind, 0);
  do_round(2);
  assert_int_equal(events[PAWL_JOB_JOINED], 2);
  assert_int_equal(events[PAWL_JOB_MOVED], 0); /* they had no owner before */
  assert_int_equal(pieces_of(0), 4);
  join(3);
  advance();
  assert_int_equal(orders[3].kind, 0);
  do_round(3);
  assert_int_equal(last.what, PAWL_JOB_MOVED);
  assert_int_equal(last.pieces, 2);
  close_scheduler();
}

static void test_orders_come_one_after_the_other_and_drops_before_takes(void **state) {
  (void)state;
  open_scheduler(plain);
  join(1);
  join(2);
  do_round(2);
  join(3);
  assert_int_equal(pwi_scheduler_want(scheduler), PAWL_OK);
  advance();
  assert_int_equal(orders[3].kind, PWI_JOB_ORDER_BEGIN);
  assert_int_equal(orders[1].kind, 0);
  answer_as(3, PAWL_OK, 0);
  advance();
  assert_int_equal(orders[1].kind, PWI_JOB_ORDER_DROP);
  assert_int_equal(orders[2].kind, PWI_JOB_ORDER_DROP);
  assert_int_equal(orders[3].kind, 0);
  answer_as(1, PAWL_OK, 0);
  advance();
  assert_int_equal(orders[3].kind, 0);
  answer_as(2, PAWL_OK, 0);
  advance();
  assert_int_equal(orders[3].kind, PWI_JOB_ORDER_TAKE);
  assert_int_equal(orders[3].workers, 3);
  assert_int_equal(orders[3].rank, 2);
  close_scheduler();
}

static void test_a_surplus_worker_waits_outside(void **state) {
  (void)state;
  open_scheduler(plain);
  for (uint64_t i = 1; i <= 6; i++) join(i);
  do_round(4);
  assert_int_equal(orders[5].kind, 0);
  pwi_scheduler_lost(scheduler, 2);
  want();
  assert_int_equal(orders[5].kind, PWI_JOB_ORDER_WORK); /* it takes the place */
  assert_int_equal(orders[5].rank, 3);
  assert_int_equal(orders[6].kind, 0);
  pwi_scheduler_lost(scheduler, 6); /* it was not a worker of this job */
  advance();
  assert_int_equal(events[PAWL_JOB_LOST], 1);
  close_scheduler();
}

static void test_a_loss_in_a_round_is_reported_and_the_rest_go_on(void **state) {
  (void)state;
  size_t count;
  open_scheduler(plain);
  join(1);
  join(2);
  want();
  pwi_scheduler_lost(scheduler, 1);
  orders[1].kind = 0;
  advance();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  work_all(NULL);
  const struct pwi_scheduler_report *reports = pwi_scheduler_reports(scheduler, &count);
  assert_int_equal(count, 2);
  assert_int_equal(reports[0].status, PAWL_NODE_GONE);
  assert_int_equal(reports[1].status, PAWL_OK);
  assert_int_equal(close_round(&count), PAWL_OK);
  assert_int_equal(events[PAWL_JOB_LOST], 1);
  assert_int_equal(last.workers, 1);
  do_round(1);
  assert_int_equal(pieces_of(0), 8);
  close_scheduler();
}

/* If no worker is left, the scheduler waits as if it had to be replaced. */
static void test_the_last_one_is_waited_for(void **state) {
  (void)state;
  size_t count;
  open_scheduler(plain);
  join(1);
  join(2);
  do_round(2);
  (void)pwi_scheduler_starts(scheduler);
  pwi_scheduler_lost(scheduler, 1);
  pwi_scheduler_lost(scheduler, 2);
  want();
  assert_int_equal(state_now(), PWI_SCHEDULER_SETTLING);
  assert_int_equal(pwi_scheduler_starts(scheduler), 1);
  join(3);
  settle();
  work_all(NULL);
  assert_int_equal(close_round(&count), PAWL_OK);
  assert_int_equal(count, 1);
  close_scheduler();
}

static void test_a_loss_is_replaced_or_done_without_after_a_while(void **state) {
  (void)state;
  size_t count;
  struct pwi_scheduler_options options = plain;
  options.on_loss = PAWL_LOSS_REPLACE;
  open_scheduler(options);
  for (uint64_t i = 1; i <= 3; i++) join(i);
  do_round(3);
  (void)pwi_scheduler_starts(scheduler);
  pwi_scheduler_lost(scheduler, 3);
  want();
  assert_int_equal(state_now(), PWI_SCHEDULER_SETTLING); /* although there are more than the least number */
  assert_int_equal(pwi_scheduler_starts(scheduler), 1);
  assert_int_equal(pwi_scheduler_wake_at(scheduler), SECOND);
  advance();
  assert_int_equal(pwi_scheduler_starts(scheduler), 0); /* it is requested once */
  join(4);
  settle();
  work_all(NULL);
  assert_int_equal(close_round(&count), PAWL_OK);
  assert_int_equal(count, 3);
  pwi_scheduler_lost(scheduler, 4);
  want();
  for (now = SECOND; now < 10 * SECOND; now += SECOND) advance();
  assert_int_equal(events[PAWL_JOB_WAITING], 9);
  assert_int_equal(state_now(), PWI_SCHEDULER_SETTLING);
  settle();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  work_all(NULL);
  assert_int_equal(close_round(&count), PAWL_OK);
  assert_int_equal(count, 2);
  do_round(2); /* and the scheduler does not wait for it again */
  close_scheduler();
}

static void test_a_loss_can_be_the_end(void **state) {
  (void)state;
  size_t count;
  struct pwi_scheduler_options options = plain;
  options.on_loss = PAWL_LOSS_STOP;
  open_scheduler(options);
  join(1);
  join(2);
  want();
  pwi_scheduler_lost(scheduler, 2);
  advance();
  const char *text;
  assert_int_equal(pwi_scheduler_verdict(scheduler, &text), PAWL_NODE_GONE);
  assert_non_null(strstr(text, "pid 1002 on here"));
  assert_int_equal(close_round(&count), PAWL_NODE_GONE);
  want();
  assert_int_equal(close_round(&count), PAWL_NODE_GONE);
  close_scheduler();
}

static void test_a_job_that_never_had_enough_does_not_begin(void **state) {
  (void)state;
  size_t count;
  open_scheduler(plain);
  join(1);
  want();
  now = 10 * SECOND;
  advance();
  const char *text;
  assert_int_equal(pwi_scheduler_verdict(scheduler, &text), PAWL_NODE_GONE);
  assert_string_equal(text, "1 of 2 workers came within 10 s");
  assert_int_equal(close_round(&count), PAWL_NODE_GONE);
  want(); /* the patience starts anew */
  assert_int_equal(state_now(), PWI_SCHEDULER_SETTLING);
  join(2);
  settle();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  close_scheduler();
}

/* A worker that takes long to begin has come: the deadline is for workers that have not. */
static void test_a_worker_that_is_beginning_is_not_missing(void **state) {
  (void)state;
  open_scheduler(plain);
  join(1);
  join(2);
  assert_int_equal(pwi_scheduler_want(scheduler), PAWL_OK);
  advance();
  now = 100 * SECOND;
  advance();
  assert_int_equal(state_now(), PWI_SCHEDULER_SETTLING);
  assert_int_equal(pwi_scheduler_wake_at(scheduler), PWI_SCHEDULER_NEVER);
  settle();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  close_scheduler();
}

static void test_a_refusal_ends_the_round_unless_the_worker_is_not_needed(void **state) {
  (void)state;
  size_t count;
  const char *text;
  open_scheduler(plain);
  join(1);
  join(2);
  assert_int_equal(pwi_scheduler_want(scheduler), PAWL_OK);
  advance();
  answer_as(1, PAWL_IO, 0);
  advance();
  assert_int_equal(pwi_scheduler_verdict(scheduler, &text), PAWL_REFUSED);
  assert_string_equal(text, "the worker with pid 1001 on here could not begin: no");
  assert_int_equal(close_round(&count), PAWL_REFUSED);
  join(3);
  do_round(2); /* the round waits for the open order to begin */
  join(4);
  assert_int_equal(pwi_scheduler_want(scheduler), PAWL_OK);
  advance();
  answer_as(4, PAWL_IO, 0);
  settle();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  assert_int_equal(events[PAWL_JOB_REFUSED], 2);
  work_all(NULL);
  assert_int_equal(close_round(&count), PAWL_OK);
  pwi_scheduler_lost(scheduler, 2);
  assert_int_equal(pwi_scheduler_want(scheduler), PAWL_OK);
  advance();
  assert_int_equal(orders[3].kind, PWI_JOB_ORDER_TAKE);
  answer_as(3, PAWL_CORRUPT, 0);
  advance();
  assert_int_equal(pwi_scheduler_verdict(scheduler, &text), PAWL_REFUSED);
  assert_non_null(strstr(text, "could not take its pieces: no"));
  close_scheduler();
}

static void test_workers_beyond_the_wanted_number_leave(void **state) {
  (void)state;
  open_scheduler(plain);
  for (uint64_t i = 1; i <= 4; i++) join(i);
  do_round(4);
  assert_int_equal(pwi_scheduler_resize(scheduler, 3, 2), PAWL_INVALID);
  assert_int_equal(pwi_scheduler_resize(scheduler, 1, 2), PAWL_OK);
  assert_int_equal(pwi_scheduler_want(scheduler), PAWL_OK);
  advance();
  assert_int_equal(orders[4].kind, PWI_JOB_ORDER_LEAVE); /* the youngest workers are dismissed, */
  assert_int_equal(orders[3].kind, PWI_JOB_ORDER_LEAVE);
  assert_int_equal(orders[1].kind, 0); /* and no worker takes their pieces before they are gone */
  answer_as(3, PAWL_OK, 0);
  pwi_scheduler_lost(scheduler, 4);
  orders[4].kind = 0;
  settle();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  assert_int_equal(events[PAWL_JOB_LOST], 0);
  assert_int_equal(pieces_of(0), 4);
  assert_false(pwi_scheduler_has(scheduler, 3));
  (void)pwi_scheduler_starts(scheduler);
  work_all(NULL);
  size_t count;
  assert_int_equal(close_round(&count), PAWL_OK);
  assert_int_equal(pwi_scheduler_resize(scheduler, 4, 4), PAWL_OK);
  want();
  assert_int_equal(pwi_scheduler_starts(scheduler), 2);
  close_scheduler();
}

static void test_a_worker_that_is_slow_three_times_in_a_row_is_dropped(void **state) {
  (void)state;
  size_t count;
  struct pwi_scheduler_options options = plain;
  options.drop_slowest = 3;
  open_scheduler(options);
  for (uint64_t i = 1; i <= 3; i++) join(i);
  int64_t slow[32] = {0, 1000, 1100, 9000}, fair[32] = {0, 1000, 1100, 2000};
  const int64_t *rounds[] = {slow, slow, fair, slow, slow, slow};
  for (int i = 0; i < 6; i++) {
    want();
    assert_int_equal(events[PAWL_JOB_DROPPED], 0);
    work_all(rounds[i]);
    assert_int_equal(close_round(&count), PAWL_OK);
    assert_int_equal(count, 3);
  }
  want();
  assert_int_equal(events[PAWL_JOB_DROPPED], 1);
  work_all(NULL);
  assert_int_equal(close_round(&count), PAWL_OK);
  assert_int_equal(count, 2);
  for (int i = 0; i < 5; i++) { /* no worker is dropped if that leaves fewer than the least number, */
    want();
    work_all((int64_t[32]){0, 1000, 90000});
    assert_int_equal(close_round(&count), PAWL_OK);
  }
  assert_int_equal(events[PAWL_JOB_DROPPED], 1);
  for (uint64_t i = 4; i <= 6; i++) join(i); /* unless another waits for the place */
  assert_int_equal(pwi_scheduler_resize(scheduler, 2, 2), PAWL_OK);
  want();
  assert_int_equal(events[PAWL_JOB_DROPPED], 2);
  assert_int_equal(orders[4].kind, PWI_JOB_ORDER_WORK);
  close_scheduler();
}

static void test_the_highest_tick_is_told_to_all(void **state) {
  (void)state;
  open_scheduler(plain);
  join(1);
  join(2);
  want();
  struct pwi_scheduler_answer at_seven = {.tick = 7}, at_five = {.tick = 5};
  pwi_scheduler_answered(scheduler, 1, &at_seven);
  pwi_scheduler_answered(scheduler, 2, &at_five);
  orders[1].kind = orders[2].kind = 0;
  advance();
  size_t count;
  assert_int_equal(close_round(&count), PAWL_OK);
  want();
  assert_int_equal(orders[1].tick, 7);
  assert_int_equal(orders[2].tick, 7);
  close_scheduler();
}

/* --- memory --------------------------------------------------------------------------------------------- */

/* Returns true on success. A call that fails for lack of memory succeeds when it is repeated. */
static bool run_short(uint64_t n) {
  size_t count;
  struct pwi_worker_name name = {.node = 7};
  uint64_t in = 0;
  pwi_memory_fail_after(n);
  for (uint64_t i = 1; in < 3; i++) {
    name.number = i;
    in += pwi_scheduler_join(scheduler, &name) == PAWL_OK;
  }
  for (int rounds = 0; rounds < 2;) {
    want();
    if (state_now() == PWI_SCHEDULER_WORKING) work_all(NULL);
    pawl_status verdict = close_round(&count);
    assert_true(verdict == PAWL_OK || verdict == PAWL_NO_MEMORY);
    rounds += verdict == PAWL_OK;
    if (rounds == 1 && verdict == PAWL_OK) pwi_scheduler_lost(scheduler, 1);
  }
  return !pwi_memory_fail_cancel();
}

static void test_memory_that_ends_is_survived(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  for (uint64_t n = 0;; n++) {
    open_scheduler(plain);
    bool is_all = run_short(n);
    close_scheduler();
    if (is_all) break;
  }
  assert_int_equal(pwi_memory_counts().live, before.live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plans_that_cannot_be_are_refused),
      cmocka_unit_test(test_nothing_is_done_before_a_round_is_wanted),
      cmocka_unit_test(test_orders_come_one_after_the_other_and_drops_before_takes),
      cmocka_unit_test(test_a_surplus_worker_waits_outside),
      cmocka_unit_test(test_a_loss_in_a_round_is_reported_and_the_rest_go_on),
      cmocka_unit_test(test_the_last_one_is_waited_for),
      cmocka_unit_test(test_a_loss_is_replaced_or_done_without_after_a_while),
      cmocka_unit_test(test_a_loss_can_be_the_end),
      cmocka_unit_test(test_a_job_that_never_had_enough_does_not_begin),
      cmocka_unit_test(test_a_worker_that_is_beginning_is_not_missing),
      cmocka_unit_test(test_a_refusal_ends_the_round_unless_the_worker_is_not_needed),
      cmocka_unit_test(test_workers_beyond_the_wanted_number_leave),
      cmocka_unit_test(test_a_worker_that_is_slow_three_times_in_a_row_is_dropped),
      cmocka_unit_test(test_the_highest_tick_is_told_to_all),
      cmocka_unit_test(test_memory_that_ends_is_survived),
  };
  return cmocka_run_group_tests_name("job.scheduler", tests, NULL, NULL);
}
