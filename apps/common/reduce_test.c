/* What workers that average share, with a peer group, a reduce and a job that the test plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pawl/job.h>
#include <pawl/peer.h>
#include <pawl/reduce.h>
#include <pawl/task.h>

static char a_worker, a_group, a_reduce; /* only their addresses matter */
static bool has_group, is_ending;
static uint64_t group_number;          /* number of the peer group */
static unsigned late;                  /* calls that time out before the next one succeeds */
static unsigned calls, ends_after = 0; /* the job ends after so many calls; 0: never */
static uint32_t rank;
static char told[64], opened[PAWL_REDUCE_NAME_MAX + 1];
static size_t told_size;
static pawl_status outcome; /* of a step that does not time out */

static struct pawl_worker *worker(void) { return (struct pawl_worker *)&a_worker; }

static pawl_status come_late(void) {
  calls++;
  if (ends_after > 0 && calls >= ends_after) is_ending = true;
  if (late == 0) return PAWL_OK;
  late--;
  return PAWL_TIMED_OUT;
}

static struct pawl_peers *peers_of_test(const struct pawl_worker *is) {
  assert_ptr_equal(is, &a_worker);
  return has_group ? (struct pawl_peers *)&a_group : NULL;
}

static uint64_t number_of_test(const struct pawl_peers *peers) {
  assert_ptr_equal(peers, &a_group);
  return group_number;
}

static pawl_status await_of_test(struct pawl_peers *peers, uint64_t number, int64_t timeout_ns) {
  assert_ptr_equal(peers, &a_group);
  assert_int_equal(number, group_number);
  assert_true(timeout_ns > 0 && timeout_ns < PAWL_FOREVER);
  pawl_status status = come_late();
  if (!status) group_number++;
  return status;
}

static pawl_status open_of_test(struct pawl_peers *peers, const char *name, const struct pawl_tensor *tensors,
                                size_t count, const struct pawl_reduce_options *options, int64_t timeout_ns,
                                struct pawl_reduce **reduce_out) {
  (void)options, (void)timeout_ns;
  assert_ptr_equal(peers, &a_group);
  assert_int_equal(count, 1);
  assert_int_equal(tensors->count, 7);
  snprintf(opened, sizeof opened, "%s", name);
  *reduce_out = (struct pawl_reduce *)&a_reduce;
  return PAWL_OK;
}

static pawl_status step_of_test(struct pawl_reduce *reduce, int64_t timeout_ns, struct pawl_reduce_report *report) {
  assert_ptr_equal(reduce, &a_reduce);
  assert_true(timeout_ns > 0 && timeout_ns < PAWL_FOREVER);
  pawl_status status = come_late();
  if (!status && !outcome && report) report->iteration = 5;
  return status ? status : outcome;
}

static void close_of_test(struct pawl_reduce *reduce) {
  if (reduce) calls++;
}

static bool ending_of_test(const struct pawl_worker *is) {
  assert_ptr_equal(is, &a_worker);
  return is_ending;
}

static uint32_t rank_of_test(const struct pawl_worker *is) {
  assert_ptr_equal(is, &a_worker);
  return rank;
}

static pawl_status report_of_test(struct pawl_worker *is, const void *bytes, size_t size) {
  assert_ptr_equal(is, &a_worker);
  assert_true(size <= sizeof told);
  memcpy(told, bytes, size);
  told_size = size;
  return PAWL_OK;
}

#define pawl_worker_peers peers_of_test
#define pawl_peers_number number_of_test
#define pawl_peers_await await_of_test
#define pawl_reduce_open open_of_test
#define pawl_reduce_step step_of_test
#define pawl_reduce_close close_of_test
#define pawl_worker_is_ending ending_of_test
#define pawl_worker_rank rank_of_test
#define pawl_worker_report report_of_test
#define apps_reduce_number apps_reduce_number_of_test
#define apps_reduce_await apps_reduce_await_of_test
#define apps_reduce_open apps_reduce_open_of_test
#define apps_reduce_step apps_reduce_step_of_test
#define apps_reduce_close apps_reduce_close_of_test
#define apps_reduce_mean apps_reduce_mean_of_test
#define apps_reduce_check_graph apps_reduce_check_graph_of_test
#define apps_reduce_give apps_reduce_give_of_test
#define apps_reduce_receive apps_reduce_receive_of_test
#include "apps/common/reduce.c"

static int begin(void **state) {
  (void)state;
  has_group = true;
  is_ending = false;
  group_number = 3;
  late = calls = ends_after = 0;
  rank = 0;
  told_size = 0;
  outcome = PAWL_OK;
  return 0;
}

static void test_waits_for_the_number_that_the_scheduler_names(void **state) {
  (void)state;
  late = 2;
  assert_int_equal(apps_reduce_await(worker(), 5), PAWL_OK);
  assert_int_equal(group_number, 5);
  assert_int_equal(calls, 4); /* two that time out, and one for each change */
  assert_int_equal(apps_reduce_await(worker(), 4), PAWL_OK);
  assert_int_equal(calls, 4);
}

static void test_a_job_that_ends_ends_the_waiting(void **state) {
  (void)state;
  late = 100;
  ends_after = 3;
  assert_int_equal(apps_reduce_await(worker(), 5), PAWL_CANCELLED);
  assert_int_equal(calls, 3);
}

static void test_a_worker_without_peers_is_refused(void **state) {
  (void)state;
  uint64_t number = 99;
  has_group = false;
  assert_int_equal(apps_reduce_number(worker(), &number), PAWL_MISMATCH);
  assert_int_equal(apps_reduce_await(worker(), 1), PAWL_MISMATCH);
  assert_int_equal(number, 99);
}

static void test_a_step_goes_on_after_each_look(void **state) {
  (void)state;
  struct pawl_reduce_report report = {0};
  late = 4;
  assert_int_equal(apps_reduce_step(worker(), (struct pawl_reduce *)&a_reduce, &report), PAWL_OK);
  assert_int_equal(calls, 5);
  assert_int_equal(report.iteration, 5);
  outcome = PAWL_DIVERGED;
  assert_int_equal(apps_reduce_step(worker(), (struct pawl_reduce *)&a_reduce, NULL), PAWL_DIVERGED);
}

static void test_a_job_that_ends_ends_a_step(void **state) {
  (void)state;
  late = 100;
  ends_after = 2;
  assert_int_equal(apps_reduce_step(worker(), (struct pawl_reduce *)&a_reduce, NULL), PAWL_TIMED_OUT);
  assert_int_equal(calls, 2);
}

static void test_every_round_has_a_reduce_of_its_own(void **state) {
  (void)state;
  struct pawl_reduce *reduce = NULL;
  struct pawl_tensor tensor = {.count = 7};
  apps_reduce_close(&reduce);
  assert_int_equal(calls, 0);
  assert_int_equal(apps_reduce_open(worker(), "steps", UINT64_MAX, tensor, NULL, &reduce), PAWL_OK);
  assert_string_equal(opened, "steps.18446744073709551615");
  apps_reduce_close(&reduce);
  assert_int_equal(calls, 1);
  assert_null(reduce);
}

/* Workers that cannot agree have no mean; the round goes on all the same. */
static void test_a_mean_that_workers_do_not_agree_on_is_not_there(void **state) {
  (void)state;
  struct pawl_reduce *reduce = NULL;
  struct pawl_tensor tensor = {.count = 7};
  bool is_there = false;
  assert_int_equal(apps_reduce_mean(worker(), 5, 8, tensor, 2, &reduce, &is_there), PAWL_OK);
  assert_true(is_there);
  assert_string_equal(opened, "mean.8");
  late = 100;
  is_ending = true; /* or the time limit of a step */
  assert_int_equal(apps_reduce_mean(worker(), 5, 9, tensor, 2, &reduce, &is_there), PAWL_OK);
  assert_false(is_there);
  late = 0;
  outcome = PAWL_CORRUPT;
  assert_int_equal(apps_reduce_mean(worker(), 5, 10, tensor, 2, &reduce, &is_there), PAWL_CORRUPT);
  assert_false(is_there);
}

static void test_the_first_worker_gives_a_part_of_the_mean(void **state) {
  (void)state;
  static const uint16_t values[] = {1, 2, 3, 4};
  assert_int_equal(apps_reduce_give(worker(), values, 4, 2, 1, 3), PAWL_OK);
  assert_int_equal(told_size, 4);
  assert_memory_equal(told, values + 1, 4);
  told_size = 0;
  assert_int_equal(apps_reduce_give(worker(), values, 4, 2, 3, 5), PAWL_CORRUPT);
  assert_int_equal(apps_reduce_give(worker(), values, 4, 2, 3, 2), PAWL_CORRUPT);
  assert_int_equal(apps_reduce_give(worker(), NULL, 4, 2, 1, 3), PAWL_OK);
  rank = 1;
  assert_int_equal(apps_reduce_give(worker(), values, 4, 2, 1, 3), PAWL_OK);
  assert_int_equal(told_size, 0);
}

/* The text of the first failure is kept. */
static void test_a_graph_is_refused_with_advice(void **state) {
  (void)state;
  char error[APPS_TEXT_MAX] = "";
  struct apps_run run = {.error = error};
  assert_int_equal(apps_reduce_check_graph(&run, "ring", 2, 4), PAWL_OK);
  assert_int_equal(apps_reduce_check_graph(&run, NULL, 1, 1), PAWL_OK);
  assert_string_equal(error, "");
  assert_int_equal(apps_reduce_check_graph(&run, "hypercube", 3, 3), PAWL_INVALID);
  assert_non_null(strstr(error, "graph hypercube"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_waits_for_the_number_that_the_scheduler_names, begin),
      cmocka_unit_test_setup(test_a_job_that_ends_ends_the_waiting, begin),
      cmocka_unit_test_setup(test_a_worker_without_peers_is_refused, begin),
      cmocka_unit_test_setup(test_a_step_goes_on_after_each_look, begin),
      cmocka_unit_test_setup(test_a_job_that_ends_ends_a_step, begin),
      cmocka_unit_test_setup(test_every_round_has_a_reduce_of_its_own, begin),
      cmocka_unit_test_setup(test_a_mean_that_workers_do_not_agree_on_is_not_there, begin),
      cmocka_unit_test_setup(test_the_first_worker_gives_a_part_of_the_mean, begin),
      cmocka_unit_test(test_a_graph_is_refused_with_advice),
  };
  return cmocka_run_group_tests_name("apps.common.reduce", tests, NULL, NULL);
}
