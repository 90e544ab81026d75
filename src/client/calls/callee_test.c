/* The callee: which calls run, how often and in which order, and their answers. */
#include "client/calls/callee.h"

#include "base/cursor.h"
#include "base/memory.h"
#include "base/testing.h"

#define ANSWERS 64

static struct pwi_callee *callee;
static struct pwi_membership membership;

/* Calls that were run and have not ended, in order. */
static struct pwi_running *running[ANSWERS];
static size_t running_count, run_count;

static struct {
  uint64_t link, number;
  void *local;
  struct pwi_call_return back;
} answers[ANSWERS];
static size_t answer_count;

static void run(void *context, struct pwi_running *one) {
  (void)context;
  running[running_count++] = one;
  run_count++;
}

static void take_answer(void *context, const struct pwi_callee_answer *answer) {
  (void)context;
  assert_true(answer_count < ANSWERS);
  answers[answer_count].link = answer->link;
  answers[answer_count].number = answer->number;
  answers[answer_count].local = answer->local;
  assert_int_equal(pwi_call_return_decode(answer->payload, answer->size, &answers[answer_count].back), PAWL_OK);
  answer_count++;
}

static void add_sender(uint64_t id) {
  struct pwi_membership_sender sender = {.sender = {id}, .job = "test"};
  assert_int_equal(pwi_membership_add(&membership, &sender), PAWL_OK);
}

static int start(void **state) {
  (void)state;
  memset(&membership, 0, sizeof membership);
  add_sender(7);
  add_sender(8);
  assert_int_equal(pwi_callee_create(take_answer, NULL, &callee), PAWL_OK);
  pwi_callee_set_host(callee, run, NULL);
  return 0;
}

static void forget_answers(void) {
  while (answer_count > 0) pwi_call_return_fini(&answers[--answer_count].back);
}

static int stop(void **state) {
  (void)state;
  pwi_callee_destroy(callee);
  pwi_membership_fini(&membership);
  forget_answers();
  running_count = run_count = 0;
  return 0;
}

static pawl_status send_graph(uint64_t caller, uint64_t number, uint64_t settled, uint64_t link,
                              const struct pawl_graph_call *calls, size_t count, const struct pawl_edge *edges,
                              size_t edge_count) {
  struct pwi_call_graph *graph;
  struct pwi_writer writer = {0};
  uint32_t culprit;
  assert_int_equal(pwi_call_graph_create(calls, count, edges, edge_count, &graph, &culprit), PAWL_OK);
  pwi_call_encode(1, graph, &writer);
  pawl_status status = pwi_callee_take(callee, caller, number, settled, link, writer.data, writer.size);
  pwi_call_graph_destroy(graph);
  pwi_writer_fini(&writer);
  return status;
}

static pawl_status send_call(uint64_t caller, uint64_t number, uint64_t settled, uint64_t link) {
  struct pawl_graph_call one = {"f", "argument", 8};
  return send_graph(caller, number, settled, link, &one, 1, NULL, 0);
}

static void end_at(size_t at, pawl_status status, const char *text) {
  assert_true(at < running_count);
  struct pwi_running *one = running[at];
  memmove(running + at, running + at + 1, (--running_count - at) * sizeof *running);
  char *bytes = text ? pwi_copy_string(text) : NULL;
  pwi_callee_end(callee, one, status, bytes, text ? strlen(text) : 0);
}

/* Ends the oldest running call. */
static void end(pawl_status status, const char *text) { end_at(0, status, text); }

static void end_named(const char *name, pawl_status status, const char *text) {
  size_t at = 0;
  while (at < running_count && strcmp(running[at]->item->name, name) != 0) at++;
  end_at(at, status, text);
}

static void test_a_call_is_run_and_answered(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  assert_int_equal(run_count, 1);
  assert_int_equal(running[0]->caller, 7);
  assert_string_equal(running[0]->item->name, "f");
  assert_memory_equal(running[0]->item->argument, "argument", 8);
  assert_int_equal(answer_count, 0);
  assert_int_equal(pwi_callee_open(callee), 1);
  end(PAWL_OK, "result");
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].link, 100);
  assert_int_equal(answers[0].number, 1);
  assert_int_equal(answers[0].back.code, PWI_CALL_CODE_DONE);
  assert_memory_equal(answers[0].back.results[0].bytes, "result", 6);
  assert_int_equal(pwi_callee_open(callee), 0);
}

static void test_a_call_that_comes_again_is_not_run_again(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  pwi_callee_link_down(callee, 100);
  assert_int_equal(send_call(7, 1, 0, 101), PAWL_OK);
  assert_int_equal(run_count, 1);
  end(PAWL_OK, "once");
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].link, 101);
  pwi_callee_link_down(callee, 101);
  assert_int_equal(send_call(7, 1, 0, 102), PAWL_OK);
  assert_int_equal(run_count, 1);
  assert_int_equal(answer_count, 2);
  assert_int_equal(answers[1].link, 102);
  assert_memory_equal(answers[1].back.results[0].bytes, "once", 4);
  /* Once the caller has the answer, an old copy of the call has no effect. */
  assert_int_equal(send_call(7, 2, 1, 102), PAWL_OK);
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  assert_int_equal(run_count, 2);
  assert_int_equal(answer_count, 2);
  end(PAWL_OK, NULL);
}

/* A callee that was stopped reads the new link before the end of the old one. */
static void test_a_late_copy_over_an_earlier_link_does_not_take_the_answer(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 1, 0, 101), PAWL_OK);
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  pwi_callee_link_down(callee, 100);
  end(PAWL_OK, "once");
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].link, 101);
}

static void test_an_answer_without_a_link_waits_to_be_asked_for(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  pwi_callee_link_down(callee, 100);
  end(PAWL_IO, NULL);
  assert_int_equal(answer_count, 0);
  assert_int_equal(send_call(7, 1, 0, 101), PAWL_OK);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].back.results[0].status, PAWL_IO);
}

static void test_callers_have_numbers_of_their_own(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  assert_int_equal(send_call(8, 1, 0, 200), PAWL_OK);
  assert_int_equal(run_count, 2);
  end(PAWL_OK, "seven");
  end(PAWL_OK, "eight");
  assert_int_equal(answers[0].link, 100);
  assert_int_equal(answers[1].link, 200);
}

static void test_answers_that_the_caller_has_are_forgotten(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t number = 1; number <= 20; number++) {
    assert_int_equal(send_call(7, number, number - 1, 100), PAWL_OK);
    end(PAWL_OK, "some bytes that would add up");
    forget_answers();
  }
  pwi_callee_heard(callee, 7, 0, 20);
  assert_in_range(pwi_memory_counts().live, live, live + 8);
}

/* The answers of later calls are forgotten although an earlier call still runs. */
static void test_answers_that_have_overtaken_others_are_forgotten_one_by_one(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t number = 2; number <= 3 * PWI_CALLEE_UNHEARD; number++) {
    assert_int_equal(send_call(7, number, 0, 100), PAWL_OK);
    assert_int_equal(running_count, 2);
    end_at(1, PAWL_OK, "bytes");
    assert_int_equal(answer_count, 1);
    assert_int_equal(answers[0].back.code, PWI_CALL_CODE_DONE);
    forget_answers();
    pwi_callee_heard(callee, 7, number, 0);
    pwi_callee_heard(callee, 7, number + 5, 0); /* there is no such call */
  }
  assert_in_range(pwi_memory_counts().live, live, live + 8);
  size_t runs = run_count;
  assert_int_equal(send_call(7, 2, 0, 100), PAWL_OK);
  assert_int_equal(run_count, runs);
  assert_int_equal(answer_count, 0);
  end(PAWL_OK, "at last");
  assert_int_equal(answers[0].number, 1);
}

static void test_a_caller_that_is_gone_is_forgotten_and_its_work_goes_on(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  assert_int_equal(send_call(8, 1, 0, 200), PAWL_OK);
  assert_int_equal(pwi_membership_retire(&membership, (struct pwi_sender){7}), PAWL_OK);
  pwi_callee_set_membership(callee, &membership);
  end(PAWL_OK, NULL);
  assert_int_equal(answer_count, 0);
  end(PAWL_OK, NULL);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].link, 200);
}

static void test_a_callee_with_a_new_id_begins_anew(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 5, 4, 100), PAWL_OK);
  pwi_callee_renew(callee);
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  assert_int_equal(run_count, 2);
  end(PAWL_OK, "old");
  assert_int_equal(answer_count, 0);
  end(PAWL_OK, "new");
  assert_int_equal(answer_count, 1);
  assert_memory_equal(answers[0].back.results[0].bytes, "new", 3);
}

static void test_without_a_host_there_are_no_functions(void **state) {
  (void)state;
  pwi_callee_set_host(callee, NULL, NULL);
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].back.results[0].status, PAWL_NOT_FOUND);
}

static void test_a_callee_that_stops_refuses_new_calls(void **state) {
  (void)state;
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  pwi_callee_stop(callee);
  assert_int_equal(send_call(7, 2, 0, 100), PAWL_OK);
  assert_int_equal(run_count, 1);
  assert_int_equal(answers[0].back.code, PWI_CALL_CODE_REFUSED);
  assert_int_equal(answers[0].back.results[0].status, PAWL_NODE_STOPPED);
  end(PAWL_OK, NULL);
  assert_int_equal(answers[1].number, 1);
}

/* --- graphs --------------------------------------------------------------------------------------------- */

static const struct pawl_graph_call four[] = {{"d", NULL, 0}, {"b", NULL, 0}, {"c", NULL, 0}, {"a", NULL, 0}};
static const struct pawl_edge diamond[] = {{3, 1}, {3, 2}, {1, 0}, {2, 0}};

static void test_calls_of_a_graph_wait_for_those_before_them(void **state) {
  (void)state;
  assert_int_equal(send_graph(7, 1, 0, 100, four, 4, diamond, 4), PAWL_OK);
  assert_int_equal(running_count, 1);
  end_named("a", PAWL_OK, "1");
  assert_int_equal(running_count, 2);
  end_named("b", PAWL_OK, "2");
  assert_int_equal(running_count, 1);
  end_named("c", PAWL_OK, "3");
  assert_int_equal(answer_count, 0);
  end_named("d", PAWL_OK, "4");
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].back.count, 4);
  assert_memory_equal(answers[0].back.results[0].bytes, "4", 1);
  assert_memory_equal(answers[0].back.results[3].bytes, "1", 1);
}

static void test_calls_after_a_failed_call_are_not_run_and_name_it(void **state) {
  (void)state;
  assert_int_equal(send_graph(7, 1, 0, 100, four, 4, diamond, 4), PAWL_OK);
  end_named("a", PAWL_OK, NULL);
  end_named("b", PAWL_IO, "why");
  end_named("c", PAWL_OK, NULL);
  assert_int_equal(run_count, 3);
  assert_int_equal(answer_count, 1);
  const struct pwi_call_result *results = answers[0].back.results;
  assert_int_equal(results[0].status, PAWL_CANCELLED);
  assert_int_equal(results[0].cause, 1);
  assert_int_equal(results[1].status, PAWL_IO);
  assert_int_equal(results[1].cause, PAWL_CALL_NONE);
  assert_memory_equal(results[1].bytes, "why", 3);
  assert_int_equal(results[2].status, PAWL_OK);
}

static void test_results_whose_sum_is_too_large_are_not_sent(void **state) {
  (void)state;
  static const struct pawl_graph_call two[] = {{"a", NULL, 0}, {"b", NULL, 0}};
  assert_int_equal(send_graph(7, 1, 0, 100, two, 2, NULL, 0), PAWL_OK);
  for (int i = 0; i < 2; i++) {
    void *bytes = pwi_alloc_zero(PAWL_CALL_BYTES - 1, 1);
    assert_non_null(bytes);
    pwi_callee_end(callee, running[i], PAWL_OK, bytes, PAWL_CALL_BYTES - 1);
  }
  assert_int_equal(answers[0].back.results[0].status, PAWL_OK);
  assert_int_equal(answers[0].back.results[0].size, PAWL_CALL_BYTES - 1);
  assert_int_equal(answers[0].back.results[1].status, PAWL_TOO_LARGE);
  assert_int_equal(answers[0].back.results[1].size, 0);
}

/* --- subtasks ------------------------------------------------------------------------------------------- */

static void test_a_call_waits_for_the_tasks_that_it_issued(void **state) {
  (void)state;
  struct pwi_ordered_task first, second;
  assert_int_equal(send_call(7, 1, 0, 100), PAWL_OK);
  assert_int_equal(pwi_callee_issue(callee, running[0], &first), PAWL_OK);
  assert_int_equal(pwi_callee_issue(callee, running[0], &second), PAWL_OK);
  pwi_callee_issued_end(callee, second, PAWL_OK);
  end(PAWL_OK, "done");
  assert_int_equal(answer_count, 0);
  pwi_callee_issued_end(callee, first, PAWL_OK);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].back.results[0].status, PAWL_OK);
}

static void test_a_failed_subtask_fails_its_call_and_those_after_it_name_the_call(void **state) {
  (void)state;
  static const struct pawl_graph_call two[] = {{"a", NULL, 0}, {"b", NULL, 0}};
  static const struct pawl_edge edge = {0, 1};
  struct pwi_ordered_task step;
  assert_int_equal(send_graph(7, 1, 0, 100, two, 2, &edge, 1), PAWL_OK);
  assert_int_equal(pwi_callee_issue(callee, running[0], &step), PAWL_OK);
  end(PAWL_OK, NULL);
  pwi_callee_issued_end(callee, step, PAWL_NODE_FULL);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].back.results[0].status, PAWL_NODE_FULL);
  assert_int_equal(answers[0].back.results[1].status, PAWL_CANCELLED);
  assert_int_equal(answers[0].back.results[1].cause, 0);
}

static void test_local_calls_are_run_and_answered(void **state) {
  (void)state;
  struct pwi_call_graph *graph;
  struct pawl_graph_call one = {"f", NULL, 0};
  uint32_t culprit;
  int token;
  assert_int_equal(pwi_call_graph_create(&one, 1, NULL, 0, &graph, &culprit), PAWL_OK);
  assert_int_equal(pwi_callee_call_here(callee, 9, &token, graph), PAWL_OK);
  pwi_callee_renew(callee);
  end(PAWL_OK, "here");
  assert_int_equal(answer_count, 1);
  assert_ptr_equal(answers[0].local, &token);
  assert_int_equal(answers[0].link, 0);
}

/* --- bad input, no memory ------------------------------------------------------------------------------- */

static void test_malformed_calls_are_not_run(void **state) {
  (void)state;
  static const unsigned char nonsense[40] = {1, 2, 3};
  assert_int_equal(pwi_callee_take(callee, 7, 1, 0, 100, nonsense, sizeof nonsense), PAWL_CORRUPT);
  assert_int_equal(pwi_callee_take(callee, 7, 1, 0, 100, NULL, 0), PAWL_CORRUPT);
  assert_int_equal(send_call(7, 0, 0, 100), PAWL_CORRUPT);
  assert_int_equal(send_call(0, 1, 0, 100), PAWL_CORRUPT);
  assert_int_equal(send_call(7, 1, 1, 100), PAWL_CORRUPT);
  for (uint64_t number = 1; number <= 40; number++) {
    assert_int_equal(send_call(7, number, 0, 100), PAWL_OK);
    end(PAWL_OK, NULL);
    forget_answers();
  }
  assert_int_equal(run_count, 40);
}

static void test_a_caller_that_never_listens_has_to_wait(void **state) {
  (void)state;
  pwi_callee_set_host(callee, NULL, NULL);
  for (uint64_t number = 1; number <= PWI_CALLEE_UNHEARD; number++) {
    assert_int_equal(send_call(7, number, 0, 100), PAWL_OK);
    forget_answers();
  }
  assert_int_equal(send_call(7, PWI_CALLEE_UNHEARD + 1, 0, 100), PAWL_OK);
  assert_int_equal(answers[0].back.code, PWI_CALL_CODE_LATER);
  assert_int_equal(send_call(7, PWI_CALLEE_UNHEARD + 1, 1, 100), PAWL_OK);
  assert_int_equal(answers[1].back.code, PWI_CALL_CODE_DONE);
}

/* Whichever allocation fails, a call has either run and is answered accordingly, or has not run and may come
 * again. */
static void test_without_memory_a_call_has_run_once_or_not_at_all(void **state) {
  (void)state;
  struct pwi_call_graph *graph;
  struct pwi_writer writer = {0};
  uint32_t culprit;
  bool failed = true;
  assert_int_equal(pwi_call_graph_create(four, 4, diamond, 4, &graph, &culprit), PAWL_OK);
  pwi_call_encode(1, graph, &writer);
  pwi_call_graph_destroy(graph);
  for (uint64_t n = 0; failed; n++) {
    run_count = running_count = 0;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_callee_take(callee, 7, n + 1, n, 100, writer.data, writer.size);
    failed = pwi_memory_fail_cancel() > 0;
    assert_int_equal(status, PAWL_OK);
    if (run_count == 0) {
      assert_int_equal(answer_count, 1);
      assert_int_equal(answers[0].back.code, PWI_CALL_CODE_LATER);
      forget_answers();
      assert_int_equal(pwi_callee_take(callee, 7, n + 1, n, 100, writer.data, writer.size), PAWL_OK);
    }
    while (running_count > 0) end(PAWL_OK, NULL);
    assert_int_equal(run_count, 4);
    assert_int_equal(answer_count, 1);
    assert_int_equal(answers[0].back.code, PWI_CALL_CODE_DONE);
    forget_answers();
  }
  pwi_writer_fini(&writer);
}

static bool expects_plain;

static void take_plain_answer(void *context, const struct pwi_callee_answer *answer) {
  (void)context;
  (void)pwi_memory_fail_cancel();
  take_answer(NULL, answer);
  expects_plain = true;
}

/* The call has run, but there is no memory for its result: the answer says so. */
static void test_without_memory_for_the_answer_the_status_is_sent(void **state) {
  (void)state;
  pwi_callee_destroy(callee);
  assert_int_equal(pwi_callee_create(take_plain_answer, NULL, &callee), PAWL_OK);
  pwi_callee_set_host(callee, run, NULL);
  for (uint64_t n = 0; n < 2; n++) {
    assert_int_equal(send_call(7, n + 1, n, 100), PAWL_OK);
    struct pwi_running *one = running[--running_count];
    char *bytes = pwi_copy_string("result");
    expects_plain = false;
    pwi_memory_fail_after(n);
    pwi_callee_end(callee, one, PAWL_OK, bytes, 6);
    assert_true(expects_plain);
    assert_int_equal(answers[0].back.results[0].status, PAWL_NO_MEMORY);
    forget_answers();
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
  const struct CMUnitTest tests[] = {
      TEST(test_a_call_is_run_and_answered),
      TEST(test_a_call_that_comes_again_is_not_run_again),
      TEST(test_a_late_copy_over_an_earlier_link_does_not_take_the_answer),
      TEST(test_an_answer_without_a_link_waits_to_be_asked_for),
      TEST(test_callers_have_numbers_of_their_own),
      TEST(test_answers_that_the_caller_has_are_forgotten),
      TEST(test_answers_that_have_overtaken_others_are_forgotten_one_by_one),
      TEST(test_a_caller_that_is_gone_is_forgotten_and_its_work_goes_on),
      TEST(test_a_callee_with_a_new_id_begins_anew),
      TEST(test_without_a_host_there_are_no_functions),
      TEST(test_a_callee_that_stops_refuses_new_calls),
      TEST(test_calls_of_a_graph_wait_for_those_before_them),
      TEST(test_calls_after_a_failed_call_are_not_run_and_name_it),
      TEST(test_results_whose_sum_is_too_large_are_not_sent),
      TEST(test_a_call_waits_for_the_tasks_that_it_issued),
      TEST(test_a_failed_subtask_fails_its_call_and_those_after_it_name_the_call),
      TEST(test_local_calls_are_run_and_answered),
      TEST(test_malformed_calls_are_not_run),
      TEST(test_a_caller_that_never_listens_has_to_wait),
      TEST(test_without_memory_a_call_has_run_once_or_not_at_all),
      TEST(test_without_memory_for_the_answer_the_status_is_sent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
