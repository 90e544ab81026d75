/* How often a round wakes up without an event of the job.
 *
 * The test compiles run.c with a job of its own. The time of this job passes only during its waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pawl/job.h>
#include <pawl/session.h>
#include <pawl/task.h>

enum { ROUND_SECONDS = 10 };

static int64_t clock_ns;      /* time of the job */
static size_t fencing_left;   /* how often the job gives up waiting for the manager */
static size_t waits;          /* calls that waited for the round */
static char the_round, a_job; /* only their addresses matter */

static pawl_status await_of_test(struct pawl_job *job, int64_t timeout_ns, struct pawl_round **round_out) {
  const int64_t end = ROUND_SECONDS * PAWL_SECOND;
  assert_ptr_equal(job, &a_job);
  waits++;
  if (fencing_left > 0) {
    fencing_left--;
    return PAWL_TIMED_OUT;
  }
  if (timeout_ns != PAWL_FOREVER && timeout_ns < end - clock_ns) {
    clock_ns += timeout_ns;
    return PAWL_TIMED_OUT;
  }
  clock_ns = end;
  *round_out = (struct pawl_round *)&the_round;
  return PAWL_OK;
}

static pawl_status round_of_test(struct pawl_job *job, const void *argument, size_t size, int64_t timeout_ns,
                                 struct pawl_round **round_out) {
  assert_memory_equal(argument, "{}", size);
  return await_of_test(job, timeout_ns, round_out);
}

#define pawl_job_round round_of_test
#define pawl_job_await await_of_test
#define apps_fail apps_fail_of_test
#define apps_fail_as_said apps_fail_as_said_of_test
#define apps_tell apps_tell_of_test
#define apps_is_stopping apps_is_stopping_of_test
#define apps_job_create apps_job_create_of_test
#define apps_round apps_round_of_test
#define apps_round_bytes apps_round_bytes_of_test
#define apps_reports apps_reports_of_test
#include "apps/common/run.c"

static size_t ticks, asked, stop_at; /* stop_at 0: never */

static bool tick(void *application) {
  ticks++;
  return apps_is_stopping(application);
}

static bool stopping(void *context) {
  (void)context;
  return ++asked == stop_at;
}

static pawl_status run_round(struct apps_run *run) {
  static char error[APPS_TEXT_MAX];
  struct pawl_round *round = NULL;
  clock_ns = 0;
  waits = ticks = asked = 0;
  *error = 0;
  run->job = (struct pawl_job *)&a_job;
  run->tick = tick;
  run->application = run;
  run->error = error;
  pawl_status status = apps_round(run, strdup("{}"), &round);
  assert_ptr_equal(round, status ? NULL : &the_round);
  return status;
}

static void test_a_round_that_nobody_watches_waits_only_for_the_job(void **state) {
  struct apps_run run = {0};
  (void)state;
  assert_int_equal(run_round(&run), PAWL_OK);
  assert_int_equal(waits, 1);
  assert_int_equal(ticks, 0);
}

static void test_a_stopping_callback_is_asked_once_a_second(void **state) {
  struct apps_run run = {.stopping = stopping};
  (void)state;
  assert_int_equal(run_round(&run), PAWL_OK);
  assert_int_equal(asked, ROUND_SECONDS - 1);
}

static void test_a_round_is_left_when_the_callback_wants_to_stop(void **state) {
  struct apps_run run = {.stopping = stopping};
  (void)state;
  stop_at = 3;
  assert_int_equal(run_round(&run), PAWL_CANCELLED);
  stop_at = 0;
  assert_int_equal(asked, 3);
  assert_int_equal(clock_ns, 3 * PAWL_SECOND);
}

static void test_progress_is_displayed_once_a_second(void **state) {
  struct apps_run run = {.shows_progress = true};
  (void)state;
  assert_int_equal(run_round(&run), PAWL_OK);
  assert_int_equal(ticks, ROUND_SECONDS - 1);
}

static void test_a_round_continues_while_a_lost_worker_is_not_declared_dead(void **state) {
  struct apps_run run = {0};
  (void)state;
  fencing_left = 2;
  assert_int_equal(run_round(&run), PAWL_OK);
  assert_int_equal(waits, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_round_that_nobody_watches_waits_only_for_the_job),
      cmocka_unit_test(test_a_stopping_callback_is_asked_once_a_second),
      cmocka_unit_test(test_a_round_is_left_when_the_callback_wants_to_stop),
      cmocka_unit_test(test_progress_is_displayed_once_a_second),
      cmocka_unit_test(test_a_round_continues_while_a_lost_worker_is_not_declared_dead),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
