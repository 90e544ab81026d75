/* Workers that join in a round, case by case. job/model_test.c checks the general invariants. */
#include "job/scheduler_test.h"

static struct pwi_scheduler_options open_options(void) {
  struct pwi_scheduler_options options = plain;
  options.join_in_round = true;
  return options;
}

/* A round of workers 1 and 2, with the pieces [0, 4) and [4, 8). */
static void open_round(struct pwi_scheduler_options options) {
  open_scheduler(options);
  join(1);
  join(2);
  want();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
}

static void begin(uint64_t number) {
  join(number);
  advance();
  assert_int_equal(orders[number].kind, PWI_JOB_ORDER_BEGIN);
  answer_as(number, PAWL_OK, 0);
  advance();
}

/* Yields one run of pieces; none if it is empty. */
static void yield(uint64_t number, uint64_t begin, uint64_t end) {
  struct pawl_range run = pawl_range_of(begin, end);
  assert_int_equal(yields[number].kind, PWI_JOB_ORDER_YIELD);
  assert_int_equal(pwi_scheduler_yielded(scheduler, number, &run, begin < end), PAWL_OK);
  yields[number].kind = 0;
  advance();
}

static void lose(uint64_t number) {
  pwi_scheduler_lost(scheduler, number);
  orders[number].kind = yields[number].kind = 0;
  advance();
}

static void expect_report(size_t index, uint64_t number, pawl_status status, uint64_t pieces) {
  size_t count;
  const struct pwi_scheduler_report *reports = pwi_scheduler_reports(scheduler, &count);
  assert_true(index < count);
  assert_int_equal(reports[index].name.number, number);
  assert_int_equal(reports[index].status, status);
  assert_int_equal(reports[index].pieces, pieces);
  assert_false(reports[index].is_open);
}

static void end_round(size_t reports) {
  size_t count;
  work_all(NULL);
  assert_int_equal(close_round(&count), PAWL_OK);
  assert_int_equal(count, reports);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_a_newcomer_works_on_what_the_others_yield(void **state) {
  (void)state;
  open_round(open_options());
  events[PAWL_JOB_MOVED] = 0;
  begin(3);
  assert_int_equal(events[PAWL_JOB_JOINED], 3);
  assert_true(yields[1].rank == 1 && yields[1].workers == 3 && yields[1].piece_count == 0);
  yield(1, 3, 4);
  assert_int_equal(orders[3].kind, 0); /* until all have answered */
  yield(2, 7, 8);
  assert_int_equal(orders[3].kind, PWI_JOB_ORDER_TAKE);
  assert_int_equal(orders[3].piece_count, 2);
  assert_true(orders[3].pieces[0].begin == 3 && orders[3].pieces[1].begin == 7);
  assert_int_equal(events[PAWL_JOB_MOVED], 1);
  assert_int_equal(last.pieces, 2);
  answer_as(3, PAWL_OK, 0);
  advance();
  assert_int_equal(orders[3].kind, PWI_JOB_ORDER_WORK);
  assert_true(orders[3].rank == 2 && orders[3].workers == 3);
  work_all(NULL);
  expect_report(0, 1, PAWL_OK, 3);
  expect_report(1, 2, PAWL_OK, 3);
  expect_report(2, 3, PAWL_OK, 2);
  end_round(3);
  do_round(3); /* nothing has to move */
  assert_int_equal(events[PAWL_JOB_MOVED], 1);
  close_scheduler();
}

static void test_without_the_option_a_newcomer_waits(void **state) {
  (void)state;
  open_round(plain);
  join(3);
  advance();
  assert_int_equal(orders[3].kind, 0);
  end_round(2);
  do_round(3);
  close_scheduler();
}

static void test_no_more_join_than_there_is_room_for(void **state) {
  (void)state;
  struct pwi_scheduler_options options = open_options();
  options.most = 3;
  open_round(options);
  begin(3);
  join(4);
  advance();
  assert_int_equal(orders[4].kind, 0);
  lose(1);
  assert_int_equal(orders[4].kind, PWI_JOB_ORDER_BEGIN); /* it takes the place */
  close_scheduler();
}

static void test_a_newcomer_for_which_nothing_is_left_has_no_report(void **state) {
  (void)state;
  open_round(open_options());
  begin(3);
  yield(1, 0, 0);
  yield(2, 0, 0);
  assert_int_equal(orders[3].kind, 0);
  advance();
  assert_int_equal(yields[1].kind, 0); /* it is asked once */
  end_round(2);
  do_round(3);
  close_scheduler();
}

static void test_a_round_waits_for_pieces_that_may_still_be_yielded(void **state) {
  (void)state;
  open_round(open_options());
  begin(3);
  yield(1, 0, 0);
  work_all(NULL); /* the report of the second one has overtaken what it yielded before */
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  yield(2, 7, 8);
  assert_int_equal(orders[3].kind, PWI_JOB_ORDER_TAKE);
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  answer_as(3, PAWL_OK, 0);
  advance();
  work_all(NULL);
  expect_report(1, 2, PAWL_OK, 3);
  expect_report(2, 3, PAWL_OK, 1);
  end_round(3);
  close_scheduler();
}

static void test_a_worker_that_is_still_beginning_does_not_hold_up_the_round(void **state) {
  (void)state;
  open_round(open_options());
  join(3);
  advance();
  end_round(2);
  assert_int_equal(pwi_scheduler_want(scheduler), PAWL_OK);
  advance();
  assert_int_equal(state_now(), PWI_SCHEDULER_SETTLING); /* the next one waits for it */
  settle();
  end_round(3);
  close_scheduler();
}

static void test_a_worker_that_is_lost_has_yielded_what_it_answered(void **state) {
  (void)state;
  open_round(open_options());
  begin(3);
  yield(1, 2, 4);
  lose(1);
  lose(2);
  answer_as(3, PAWL_OK, 0);
  advance();
  work_all(NULL);
  expect_report(0, 1, PAWL_NODE_GONE, 2);
  expect_report(1, 2, PAWL_NODE_GONE, 4);
  expect_report(2, 3, PAWL_OK, 2);
  end_round(3);
  do_round(1);
  assert_int_equal(pieces_of(0), 8);
  close_scheduler();
}

static void test_pieces_of_a_newcomer_that_is_lost_are_missing_from_the_round(void **state) {
  (void)state;
  open_round(open_options());
  begin(3);
  yield(1, 3, 4);
  lose(3);
  yield(2, 7, 8);
  work_all(NULL);
  expect_report(2, 3, PAWL_NODE_GONE, 2);
  end_round(3);
  want();
  begin(4);
  yield(1, 3, 4);
  yield(2, 7, 8);
  lose(4); /* this one has been ordered to take them */
  work_all(NULL);
  expect_report(2, 4, PAWL_NODE_GONE, 2);
  end_round(3);
  do_round(2);
  assert_int_equal(pieces_of(0) + pieces_of(1), 8);
  close_scheduler();
}

static void test_what_was_yielded_for_one_goes_to_another(void **state) {
  (void)state;
  open_round(open_options());
  join(3);
  join(4);
  advance();
  answer_as(3, PAWL_OK, 0);
  answer_as(4, PAWL_OK, 0);
  advance();
  assert_true(yields[1].rank == 2 && yields[1].workers == 4);
  yield(1, 2, 4);
  lose(3);
  yield(2, 6, 7);
  assert_int_equal(orders[4].kind, PWI_JOB_ORDER_TAKE);
  answer_as(4, PAWL_OK, 0);
  advance();
  work_all(NULL);
  expect_report(2, 4, PAWL_OK, 3);
  end_round(3);
  close_scheduler();
}

/* The second newcomer has begun while the others answer for the first. */
static void test_newcomers_that_come_one_after_the_other_are_asked_for_likewise(void **state) {
  (void)state;
  open_round(open_options());
  begin(3);
  begin(4);
  yield(1, 2, 4);
  yield(2, 0, 0);
  assert_int_equal(orders[3].piece_count, 1);
  assert_int_equal(orders[4].kind, 0);
  assert_int_equal(yields[1].kind, PWI_JOB_ORDER_YIELD);
  assert_int_equal(yields[3].kind, 0); /* it is not at work yet */
  assert_true(yields[1].rank == 1 && yields[1].workers == 3);
  answer_as(3, PAWL_OK, 0);
  yield(1, 1, 2);
  yield(2, 7, 8);
  assert_int_equal(orders[4].kind, PWI_JOB_ORDER_TAKE);
  answer_as(4, PAWL_OK, 0);
  advance();
  assert_true(orders[4].rank == 3 && orders[4].workers == 4);
  end_round(4);
  close_scheduler();
}

static void test_two_newcomers_share_what_is_yielded(void **state) {
  (void)state;
  open_round(open_options());
  join(3);
  join(4);
  advance();
  answer_as(3, PAWL_OK, 0);
  answer_as(4, PAWL_OK, 0);
  advance();
  yield(1, 2, 4);
  yield(2, 7, 8);
  assert_int_equal(orders[3].pieces[0].begin, 2);
  assert_int_equal(orders[3].pieces[0].end, 4);
  assert_int_equal(orders[4].pieces[0].begin, 7);
  answer_as(3, PAWL_OK, 0);
  answer_as(4, PAWL_OK, 0);
  advance();
  end_round(4);
  close_scheduler();
}

static void test_a_newcomer_that_cannot_take_its_pieces_does_not_end_the_round(void **state) {
  (void)state;
  size_t count;
  open_round(open_options());
  begin(3);
  yield(1, 3, 4);
  yield(2, 7, 8);
  answer_as(3, PAWL_IO, 0);
  advance();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  assert_int_equal(events[PAWL_JOB_REFUSED], 1);
  assert_false(pwi_scheduler_has(scheduler, 3));
  work_all(NULL);
  expect_report(2, 3, PAWL_NODE_GONE, 2);
  assert_string_equal(pwi_scheduler_reports(scheduler, &count)[2].text, "no");
  end_round(3);
  close_scheduler();
}

static void test_a_loss_in_a_round_is_replaced_at_once(void **state) {
  (void)state;
  struct pwi_scheduler_options options = open_options();
  options.on_loss = PAWL_LOSS_REPLACE;
  open_round(options);
  assert_int_equal(pwi_scheduler_starts(scheduler), 2);
  lose(2);
  assert_int_equal(pwi_scheduler_starts(scheduler), 1);
  join(3);
  lose(3); /* it has not begun, and is not replaced before the next round */
  assert_int_equal(pwi_scheduler_starts(scheduler), 0);
  begin(4);
  yield(1, 2, 4);
  answer_as(4, PAWL_OK, 0);
  advance();
  work_all(NULL);
  expect_report(1, 2, PAWL_NODE_GONE, 4);
  expect_report(2, 4, PAWL_OK, 2);
  end_round(3);
  do_round(2);
  close_scheduler();
}

/* Though one is missing, which the next round would wait for. */
static void test_a_newcomer_that_cannot_begin_does_not_end_the_round(void **state) {
  (void)state;
  struct pwi_scheduler_options options = open_options();
  options.on_loss = PAWL_LOSS_REPLACE;
  open_round(options);
  lose(2);
  join(3);
  advance();
  answer_as(3, PAWL_IO, 0);
  advance();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  assert_int_equal(events[PAWL_JOB_REFUSED], 1);
  end_round(2);
  close_scheduler();
}

static void test_a_worker_can_yield_its_own_pieces_only(void **state) {
  (void)state;
  struct pawl_range others = {4, 5}, none = {3, 3}, beyond = {3, 5}, own = {3, 4};
  open_round(open_options());
  assert_int_equal(pwi_scheduler_yielded(scheduler, 1, &own, 1), PAWL_OK); /* it was not asked, */
  assert_int_equal(pieces_of(0), 4);                                       /* so nothing happens */
  begin(3);
  assert_int_equal(pwi_scheduler_yielded(scheduler, 1, &others, 1), PAWL_INVALID);
  assert_int_equal(pwi_scheduler_yielded(scheduler, 1, &none, 1), PAWL_INVALID);
  assert_int_equal(pwi_scheduler_yielded(scheduler, 1, &beyond, 1), PAWL_INVALID);
  assert_int_equal(pwi_scheduler_yielded(scheduler, 9, &own, 1), PAWL_OK); /* unknown */
  yield(1, 3, 4);
  close_scheduler();
}

static void test_a_loss_that_ends_the_job_does_so_while_pieces_are_yielded(void **state) {
  (void)state;
  size_t count;
  struct pwi_scheduler_options options = open_options();
  options.on_loss = PAWL_LOSS_STOP;
  open_round(options);
  begin(3);
  yield(1, 3, 4);
  lose(3);
  assert_int_equal(close_round(&count), PAWL_NODE_GONE);
  yield(2, 7, 8); /* too late */
  want();
  assert_int_equal(close_round(&count), PAWL_NODE_GONE);
  close_scheduler();
}

/* --- memory --------------------------------------------------------------------------------------------- */

/* Workers that obey, and yield their last piece. A yield for which there is no memory is a loss. */
static void obey_short(void) {
  for (uint64_t i = 1; i < 32; i++) {
    struct pawl_range tail = {4 * i - 1, 4 * i};
    if (yields[i].kind && pwi_scheduler_yielded(scheduler, i, &tail, i < 3)) lose(i);
    yields[i].kind = 0;
    if (orders[i].kind && orders[i].kind != PWI_JOB_ORDER_WORK) answer_as(i, PAWL_OK, 0);
    advance();
  }
}

static bool run_short(uint64_t n) {
  size_t count;
  struct pwi_worker_name name = {.number = 3, .node = 103};
  open_round(open_options());
  pwi_memory_fail_after(n);
  if (pwi_scheduler_join(scheduler, &name)) assert_int_equal(pwi_scheduler_join(scheduler, &name), PAWL_OK);
  for (int i = 0; i < 8; i++) obey_short();
  work_all(NULL);
  pawl_status verdict = close_round(&count);
  assert_true(verdict == PAWL_OK || verdict == PAWL_NO_MEMORY);
  bool is_all = !pwi_memory_fail_cancel();
  if (is_all) assert_int_equal(count, 3);
  want();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  uint64_t pieces = 0;
  for (size_t i = 0; i < pwi_scheduler_count(scheduler); i++) pieces += pieces_of(i);
  assert_int_equal(pieces, 8);
  close_scheduler();
  return is_all;
}

static void test_memory_that_ends_is_survived(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  for (uint64_t n = 0; !run_short(n); n++) continue;
  assert_int_equal(pwi_memory_counts().live, before.live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_newcomer_works_on_what_the_others_yield),
      cmocka_unit_test(test_without_the_option_a_newcomer_waits),
      cmocka_unit_test(test_no_more_join_than_there_is_room_for),
      cmocka_unit_test(test_a_newcomer_for_which_nothing_is_left_has_no_report),
      cmocka_unit_test(test_a_round_waits_for_pieces_that_may_still_be_yielded),
      cmocka_unit_test(test_a_worker_that_is_still_beginning_does_not_hold_up_the_round),
      cmocka_unit_test(test_a_worker_that_is_lost_has_yielded_what_it_answered),
      cmocka_unit_test(test_pieces_of_a_newcomer_that_is_lost_are_missing_from_the_round),
      cmocka_unit_test(test_what_was_yielded_for_one_goes_to_another),
      cmocka_unit_test(test_newcomers_that_come_one_after_the_other_are_asked_for_likewise),
      cmocka_unit_test(test_two_newcomers_share_what_is_yielded),
      cmocka_unit_test(test_a_newcomer_that_cannot_take_its_pieces_does_not_end_the_round),
      cmocka_unit_test(test_a_loss_in_a_round_is_replaced_at_once),
      cmocka_unit_test(test_a_newcomer_that_cannot_begin_does_not_end_the_round),
      cmocka_unit_test(test_a_worker_can_yield_its_own_pieces_only),
      cmocka_unit_test(test_a_loss_that_ends_the_job_does_so_while_pieces_are_yielded),
      cmocka_unit_test(test_memory_that_ends_is_survived),
  };
  return cmocka_run_group_tests_name("job.join", tests, NULL, NULL);
}
