/* Iterations under policies, at an embedded cluster. What keeps an iteration from finishing is a task of the test's own. */
#define SERVERS 1
#define SHARDS 1
#include "session_scene.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/session.h"
#include "host/clock.h"

#define BRIEF (PAWL_SECOND / 50)

static struct pawl_iterations *make(struct pawl_group *group, const char *policy) {
  struct pawl_iterations *iterations;
  must(pawl_iterations_create(session, group, policy, &iterations));
  return iterations;
}

/* An iteration whose only task is the test's own. */
static struct pawl_task *iterate(struct pawl_iterations *iterations, uint64_t wanted) {
  struct pawl_task *task;
  uint64_t number = 0;
  must(pawl_iteration_begin(iterations, PATIENCE, &number));
  assert_int_equal(number, wanted);
  must(pawl_task_begin(session, "step", &task));
  must(pawl_iteration_add(iterations, task));
  must(pawl_iteration_end(iterations, NAN));
  return task;
}

static void end(struct pawl_task *task, pawl_status status) {
  must(pawl_task_end(task, status));
  pawl_task_release(task);
}

/* --- our own iterations --------------------------------------------------------------------------------------------- */

static void test_a_bound_lets_so_many_be_under_way(void **state) {
  (void)state;
  struct pawl_iterations *iterations = make(NULL, "bounded 2");
  struct pawl_iterations_figures figures;
  struct pawl_task *tasks[4];
  for (uint64_t i = 0; i < 3; i++) tasks[i] = iterate(iterations, i + 1);
  must_fail(pawl_iteration_begin(iterations, BRIEF, NULL), PAWL_TIMED_OUT,
            "iteration 4 may not start: policy 'bounded 2' waits for iteration 1 of our own, of which call");
  end(tasks[1], PAWL_OK);
  must_fail(pawl_iteration_begin(iterations, 0, NULL), PAWL_TIMED_OUT, "iteration 1 of our own");
  end(tasks[0], PAWL_OK);
  tasks[3] = iterate(iterations, 4);
  pawl_iterations_figures(iterations, &figures);
  assert_int_equal(figures.begun, 4);
  assert_int_equal(figures.finished, 2);
  assert_int_equal(figures.bound, 2);
  assert_true(figures.waited_ns >= BRIEF);
  assert_true(figures.slowest == UINT64_MAX);
  end(tasks[2], PAWL_OK);
  end(tasks[3], PAWL_OK);
  pawl_iterations_destroy(iterations);
}

/* --- news while an iteration waits ------------------------------------------------------------------------ */

#define UNTOLD PATIENCE /* an iteration that hears of no news looks again only then */

struct waiting {
  struct pawl_iterations *iterations;
  pthread_t thread;
  int64_t late;
  pawl_status status;
};

static void *wait_to_begin(void *context) {
  struct waiting *waiting = context;
  waiting->status = pawl_iteration_begin(waiting->iterations, UNTOLD, NULL);
  return NULL;
}

/* Another thread begins an iteration, which waits as soon as it drives the net. */
static void begin_beside(struct waiting *waiting, struct pawl_iterations *iterations) {
  *waiting = (struct waiting){.iterations = iterations, .late = pwi_host_after(UNTOLD)};
  assert_int_equal(pthread_create(&waiting->thread, NULL, wait_to_begin, waiting), 0);
  while (!atomic_load(&session->driver.is_driven)) sched_yield();
}

static void must_begin(struct waiting *waiting) {
  pthread_join(waiting->thread, NULL);
  must(waiting->status);
  assert_true(pwi_host_now() < waiting->late);
  must(pawl_iteration_end(waiting->iterations, NAN));
}

static void test_an_iteration_that_waits_hears_of_ends_and_of_another_bound(void **state) {
  (void)state;
  struct pawl_iterations *iterations = make(NULL, "bounded 0");
  struct pawl_task *task = iterate(iterations, 1);
  struct waiting waiting;
  begin_beside(&waiting, iterations);
  end(task, PAWL_OK);
  must_begin(&waiting);
  task = iterate(iterations, 3);
  begin_beside(&waiting, iterations);
  must(pawl_iterations_set_bound(iterations, 1));
  must_begin(&waiting);
  end(task, PAWL_OK);
  pawl_iterations_destroy(iterations);
}

/* The worker computes the second iteration while the first one travels, and sends nothing before its ACK. */
static void test_notify_ack_sends_one_version_at_a_time(void **state) {
  (void)state;
  struct pawl_iterations *iterations = make(NULL, "notify-ack");
  struct pawl_task *first, *second;
  must_fail(pawl_iteration_ready(iterations, 0), PAWL_INVALID, "no iteration was begun");
  must_fail(pawl_iteration_ready(NULL, 0), PAWL_INVALID, "iterations is NULL");
  must(pawl_iteration_begin(iterations, PATIENCE, NULL));
  must(pawl_iteration_ready(iterations, 0));
  must(pawl_task_begin(session, "step", &first));
  must(pawl_iteration_add(iterations, first));
  must(pawl_iteration_end(iterations, NAN));
  must(pawl_iteration_begin(iterations, PATIENCE, NULL));
  must_fail(pawl_iteration_ready(iterations, BRIEF), PAWL_TIMED_OUT,
            "iteration 2 may not send: policy 'notify-ack' waits for iteration 1 of our own, of which call");
  end(first, PAWL_IO);
  must_fail(pawl_iteration_ready(iterations, 0), PAWL_IO, "iteration 1: task step: input or output error");
  must(pawl_iteration_ready(iterations, 0));
  must(pawl_task_begin(session, "step", &second));
  must(pawl_iteration_add(iterations, second));
  must(pawl_iteration_end(iterations, NAN));
  end(second, PAWL_OK);
  pawl_iterations_destroy(iterations);
}

static void test_tasks_of_iterations_that_are_gone_go_on(void **state) {
  (void)state;
  struct pawl_iterations *iterations = make(NULL, "eventual");
  struct pawl_task *task = iterate(iterations, 1);
  pawl_iterations_destroy(iterations);
  pawl_iterations_destroy(NULL);
  end(task, PAWL_OK);
}

static void test_a_failure_is_told_once_and_the_next_one_may_start(void **state) {
  (void)state;
  struct pawl_iterations *iterations = make(NULL, "sequential");
  end(iterate(iterations, 1), PAWL_IO);
  must_fail(pawl_iteration_begin(iterations, 0, NULL), PAWL_IO, "iteration 1: task step: input or output error");
  end(iterate(iterations, 2), PAWL_OK);
  pawl_iterations_destroy(iterations);
}

static void test_what_is_called_wrongly_is_refused(void **state) {
  (void)state;
  struct pawl_iterations *iterations = make(NULL, "eventual");
  struct pawl_task *task = iterate(iterations, 1), *other;
  must_fail(pawl_iteration_end(iterations, NAN), PAWL_INVALID, "no iteration was begun");
  must_fail(pawl_iteration_add(iterations, task), PAWL_INVALID, "cannot be added");
  must(pawl_iteration_begin(iterations, 0, NULL));
  must_fail(pawl_iteration_add(iterations, task), PAWL_EXISTS, "cannot be added");
  must_fail(pawl_iteration_begin(iterations, 0, NULL), PAWL_INVALID, "iteration 2 was not ended");
  must_fail(pawl_iterations_set_bound(iterations, 3), PAWL_INVALID, "no bound");
  must_fail(pawl_iterations_create(session, NULL, "ssp 2", &iterations), PAWL_INVALID, "needs a group");
  must_fail(pawl_iterations_create(session, NULL, "sometimes", &iterations), PAWL_INVALID, "policy 'sometimes'");
  must_fail(pawl_iterations_create(session, NULL, "bounded", &iterations), PAWL_INVALID,
            "expected a number of at most 2^32");
  must(pawl_task_begin(session, "done", &other));
  must(pawl_task_end(other, PAWL_OK));
  must(pawl_iteration_add(iterations, other)); /* it has finished already */
  must(pawl_iteration_end(iterations, NAN));
  end(task, PAWL_OK);
  pawl_task_release(other);
  pawl_iterations_destroy(iterations);
}

static void *raise_bound(void *argument) {
  usleep(20000);
  return pawl_iterations_set_bound(argument, 5) ? argument : NULL;
}

static void test_a_larger_bound_wakes_who_waits(void **state) {
  (void)state;
  struct pawl_iterations *iterations = make(NULL, "bounded 0");
  struct pawl_task *first = iterate(iterations, 1);
  pthread_t thread;
  void *result;
  assert_int_equal(pthread_create(&thread, NULL, raise_bound, iterations), 0);
  struct pawl_task *second = iterate(iterations, 2);
  pthread_join(thread, &result);
  assert_null(result);
  end(first, PAWL_OK);
  end(second, PAWL_OK);
  pawl_iterations_destroy(iterations);
}

#define LOOK_EVERY 64 /* iterations (docs/policies.md) */

static void test_an_adaptive_bound_falls_when_the_objective_rises_and_rises_with_waiting(void **state) {
  (void)state;
  struct pawl_iterations *iterations = make(NULL, "adaptive 0 16");
  struct pawl_iterations_figures figures;
  must(pawl_iterations_set_bound(iterations, 8));
  for (int i = 0; i < LOOK_EVERY; i++) {
    must(pawl_iteration_begin(iterations, PATIENCE, NULL));
    must(pawl_iteration_end(iterations, i));
  }
  pawl_iterations_figures(iterations, &figures);
  assert_int_equal(figures.bound, 4);
  must_fail(pawl_iterations_set_bound(iterations, 17), PAWL_INVALID, "17");
  must(pawl_iterations_set_bound(iterations, 0));
  struct pawl_task *slow = iterate(iterations, LOOK_EVERY + 1);
  assert_int_equal(pawl_iteration_begin(iterations, BRIEF, NULL), PAWL_TIMED_OUT);
  end(slow, PAWL_OK);
  for (int i = 1; i < LOOK_EVERY; i++) {
    must(pawl_iteration_begin(iterations, PATIENCE, NULL));
    must(pawl_iteration_end(iterations, -i));
  }
  pawl_iterations_figures(iterations, &figures);
  assert_int_equal(figures.bound, 1); /* more than a twentieth of the time was waiting */
  pawl_iterations_destroy(iterations);
}

/* --- policies of users ---------------------------------------------------------------------------------------------- */

static atomic_int asked;

static bool lets_even(void *context, uint64_t iteration, const struct pawl_progress *progress) {
  atomic_fetch_add(&asked, 1);
  assert_ptr_equal(context, &asked);
  return iteration % 2 == 0 || progress->finished + 1 >= iteration;
}

static bool lets_nothing(void *context, uint64_t iteration, const struct pawl_progress *progress) {
  (void)context, (void)iteration, (void)progress;
  return false;
}

static void test_a_policy_of_the_user_s_decides(void **state) {
  (void)state;
  struct pawl_iterations *iterations;
  must(pawl_iterations_create_user(session, NULL, lets_even, &asked, &iterations));
  struct pawl_task *first = iterate(iterations, 1), *second = iterate(iterations, 2);
  must_fail(pawl_iteration_begin(iterations, BRIEF, NULL), PAWL_TIMED_OUT, "its function to permit it");
  end(second, PAWL_OK);
  end(first, PAWL_OK);
  end(iterate(iterations, 3), PAWL_OK);
  assert_true(atomic_load(&asked) >= 4);
  pawl_iterations_destroy(iterations);
  must(pawl_iterations_create_user(session, NULL, lets_nothing, NULL, &iterations));
  must_fail(pawl_iteration_begin(iterations, BRIEF, NULL), PAWL_TIMED_OUT, "policy 'user'");
  pawl_iterations_destroy(iterations);
}

/* --- with others ---------------------------------------------------------------------------------------------------- */

enum { WORKERS = 3, TICKS = 30 };

struct worker {
  const char *group, *policy;
  uint64_t slack;  /* ticks that others may be behind */
  uint64_t length; /* iterations of a tick */
  pthread_t thread;
  pawl_status status;
};

static atomic_uint_fast64_t done[WORKERS]; /* ticks, from outside */
static atomic_int places;
static atomic_bool is_wrong;

static pawl_status run_iterations(struct pawl_session *own, const struct worker *worker) {
  struct pawl_iterations *iterations;
  struct pawl_group *group;
  int place = atomic_fetch_add(&places, 1);
  pawl_status status = pawl_group_join(own, worker->group, WORKERS, PATIENCE, &group);
  if (!status) status = pawl_iterations_create(own, group, worker->policy, &iterations);
  for (uint64_t i = 1; i <= TICKS * worker->length && !status; i++) {
    status = pawl_iteration_begin(iterations, PATIENCE, NULL);
    uint64_t tick = (i - 1) / worker->length + 1;
    for (int other = 0; other < WORKERS; other++)
      if (atomic_load(&done[other]) + worker->slack + 1 < tick) atomic_store(&is_wrong, true);
    if (i % worker->length == 0) atomic_store(&done[place], tick);
    if (!status) status = pawl_iteration_end(iterations, NAN);
  }
  return status;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  struct pawl_session *own = open_beside(session, false);
  worker->status = run_iterations(own, worker);
  pawl_status status = pawl_session_close(own, PATIENCE);
  if (!worker->status) worker->status = status;
  return NULL;
}

static void run_aggregate(const char *group, const char *policy, uint64_t slack, uint64_t length) {
  struct worker workers[WORKERS];
  atomic_store(&places, 0);
  for (int i = 0; i < WORKERS; i++) atomic_store(&done[i], 0);
  for (int i = 0; i < WORKERS; i++) {
    workers[i] = (struct worker){.group = group, .policy = policy, .slack = slack, .length = length};
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < WORKERS; i++) {
    pthread_join(workers[i].thread, NULL);
    must(workers[i].status);
  }
  assert_false(atomic_load(&is_wrong));
}

static void test_nobody_is_further_ahead_than_the_policy_permits(void **state) {
  (void)state;
  run_aggregate("p/ssp0", "ssp 0", 0, 1);
  run_aggregate("p/ssp3", "ssp 3", 3, 1);
  run_aggregate("p/absp", "a-bsp 4", 0, 4);
}

static void test_who_is_behind_is_named_and_whoever_goes_is_waited_for_no_more(void **state) {
  (void)state;
  struct pawl_session *other = open_beside(session, false);
  struct pawl_group *ours, *theirs;
  char name[80];
  must(pawl_group_join(session, "p/two", 2, PATIENCE, &ours));
  struct pawl_iterations *iterations = make(ours, "ssp 0");
  must(pawl_iteration_begin(iterations, 0, NULL));
  must(pawl_iteration_end(iterations, NAN));
  must_fail(pawl_iteration_begin(iterations, BRIEF, NULL), PAWL_TIMED_OUT, "tick 1 of p/two, which is not complete");
  must(pawl_group_join(other, "p/two", 2, PATIENCE, &theirs));
  snprintf(name, sizeof name, "tick 1 of p/two: node %llu has finished 0",
           (unsigned long long)pawl_session_node(other).id);
  /* A busy server may not have heard of the other member yet, or not answer before the explanation is due. */
  pawl_status status = pawl_iteration_begin(iterations, BRIEF, NULL);
  for (int64_t until = pwi_host_after(PATIENCE);
       status == PAWL_TIMED_OUT && strstr(pawl_error_text(), "which is not complete") && pwi_host_now() < until;)
    status = pawl_iteration_begin(iterations, BRIEF, NULL);
  must_fail(status, PAWL_TIMED_OUT, name);
  must(pawl_session_close(other, PATIENCE));
  must(pawl_iteration_begin(iterations, PATIENCE, NULL));
  must(pawl_iteration_end(iterations, NAN));
  pawl_iterations_destroy(iterations);
  pawl_group_leave(ours);
}

static void test_who_joins_late_begins_where_the_others_are(void **state) {
  (void)state;
  struct pawl_session *other = open_beside(session, false);
  struct pawl_group *ours, *theirs;
  struct pawl_iterations *late;
  uint64_t number = 0;
  must(pawl_group_join(session, "p/late", 1, PATIENCE, &ours));
  struct pawl_iterations *iterations = make(ours, "ssp 1");
  for (int i = 0; i < 5; i++) {
    must(pawl_iteration_begin(iterations, PATIENCE, NULL));
    must(pawl_iteration_end(iterations, NAN));
  }
  must(pawl_session_flush(session, PATIENCE));
  must(pawl_group_join(other, "p/late", 0, PATIENCE, &theirs));
  must(pawl_iterations_create(other, theirs, "ssp 1", &late));
  must(pawl_iteration_begin(late, PATIENCE, &number));
  assert_int_equal(number, 6);
  must(pawl_iteration_end(late, NAN));
  must(pawl_iteration_begin(iterations, PATIENCE, &number));
  assert_int_equal(number, 6);
  must(pawl_iteration_end(iterations, NAN));
  must(pawl_session_close(other, PATIENCE)); /* with its iterations */
  pawl_iterations_destroy(iterations);
  pawl_group_leave(ours);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_bound_lets_so_many_be_under_way),
      cmocka_unit_test(test_an_iteration_that_waits_hears_of_ends_and_of_another_bound),
      cmocka_unit_test(test_notify_ack_sends_one_version_at_a_time),
      cmocka_unit_test(test_tasks_of_iterations_that_are_gone_go_on),
      cmocka_unit_test(test_a_failure_is_told_once_and_the_next_one_may_start),
      cmocka_unit_test(test_what_is_called_wrongly_is_refused),
      cmocka_unit_test(test_a_larger_bound_wakes_who_waits),
      cmocka_unit_test(test_an_adaptive_bound_falls_when_the_objective_rises_and_rises_with_waiting),
      cmocka_unit_test(test_a_policy_of_the_user_s_decides),
      cmocka_unit_test(test_nobody_is_further_ahead_than_the_policy_permits),
      cmocka_unit_test(test_who_is_behind_is_named_and_whoever_goes_is_waited_for_no_more),
      cmocka_unit_test(test_who_joins_late_begins_where_the_others_are),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
