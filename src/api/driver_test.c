/* The gate and its drivers over a fake net, which answers after a number of polls. Tests wait without a
 * deadline, so that a forgotten thread is noticed.
 * timeout: 120
 */
#include "base/testing.h"
#include "api/driver.h"
#include "host/clock.h"
#include "host/pause.h"
#include "net/net_ops.h"

#define ANSWERS_MAX 64

struct answer {
  struct pwi_event *event;
  int looks_left;
};

/* Everything but `mutex`, `changed` and `is_woken` is used inside the gate only, which is what the tests
 * check. */
struct fake {
  struct pwi_net base;
  struct pwi_driver *driver;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool is_woken;
  atomic_bool is_asleep;
  atomic_int inside; /* threads inside the gate at the moment */
  struct answer answers[ANSWERS_MAX];
  int answer_count;
  struct pwi_work *work; /* posted with the next answer; NULL: none */
  atomic_int polls;
  pthread_t last_poller;
};

static void come_in(struct fake *fake) { assert_int_equal(atomic_fetch_add(&fake->inside, 1), 0); }
static void go_away(struct fake *fake) { assert_int_equal(atomic_fetch_sub(&fake->inside, 1), 1); }

static bool give_answers(struct fake *fake) {
  bool given = false;
  for (int i = 0; i < fake->answer_count;) {
    struct answer *answer = &fake->answers[i];
    if (--answer->looks_left > 0) {
      i++;
      continue;
    }
    pwi_event_set(fake->driver, answer->event);
    if (fake->work) pwi_driver_post(fake->driver, fake->work);
    fake->work = NULL;
    *answer = fake->answers[--fake->answer_count];
    given = true;
  }
  return given;
}

static pawl_status fake_poll(struct pwi_net *net, int64_t deadline) {
  struct fake *fake = (struct fake *)net;
  come_in(fake);
  atomic_fetch_add(&fake->polls, 1);
  fake->last_poller = pthread_self();
  bool given = give_answers(fake);
  struct timespec until = {(time_t)(deadline / PWI_HOST_SECOND), (long)(deadline % PWI_HOST_SECOND)};
  pthread_mutex_lock(&fake->mutex);
  int late = 0;
  while (!given && fake->answer_count == 0 && !fake->is_woken && !late) {
    atomic_store(&fake->is_asleep, true);
    late = deadline == PWI_NET_NEVER ? pthread_cond_wait(&fake->changed, &fake->mutex)
                                     : pthread_cond_timedwait(&fake->changed, &fake->mutex, &until);
  }
  atomic_store(&fake->is_asleep, false);
  fake->is_woken = false;
  pthread_mutex_unlock(&fake->mutex);
  go_away(fake);
  return late ? PAWL_TIMED_OUT : PAWL_OK;
}

static void fake_wake(struct pwi_net *net) {
  struct fake *fake = (struct fake *)net;
  pthread_mutex_lock(&fake->mutex);
  fake->is_woken = true;
  pthread_cond_broadcast(&fake->changed);
  pthread_mutex_unlock(&fake->mutex);
}

static const struct pwi_net_ops fake_ops = {.poll = fake_poll, .wake = fake_wake};

static void setup(struct fake *fake, struct pwi_driver *driver) {
  pthread_condattr_t attributes;
  memset(fake, 0, sizeof *fake);
  fake->base.ops = &fake_ops;
  fake->driver = driver;
  pthread_mutex_init(&fake->mutex, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&fake->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  assert_int_equal(pwi_driver_init(driver, &fake->base), PAWL_OK);
}

static void teardown(struct fake *fake, struct pwi_driver *driver) {
  pwi_driver_stop(driver);
  pwi_driver_fini(driver);
  pthread_cond_destroy(&fake->changed);
  pthread_mutex_destroy(&fake->mutex);
}

/* Like a call: gives the net something that it will answer after so many polls. */
static void ask(struct fake *fake, struct pwi_event *event, int looks) {
  pwi_driver_enter(fake->driver);
  come_in(fake);
  assert_true(fake->answer_count < ANSWERS_MAX);
  fake->answers[fake->answer_count++] = (struct answer){event, looks};
  go_away(fake);
  pwi_driver_leave(fake->driver);
}

static void test_a_thread_that_waits_polls_itself(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct pwi_event event = {0};
  (void)state;
  setup(&fake, &driver);
  ask(&fake, &event, 3);
  assert_true(pwi_driver_wait(&driver, &event, PWI_NET_NEVER));
  assert_int_equal(atomic_load(&fake.polls), 3);
  assert_true(pthread_equal(fake.last_poller, pthread_self()));
  assert_true(pwi_driver_wait(&driver, &event, 0));
  assert_int_equal(atomic_load(&fake.polls), 3); /* an event that has happened costs nothing */
  teardown(&fake, &driver);
}

static void test_a_deadline_that_has_passed_still_looks_once(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct pwi_event event = {0};
  (void)state;
  setup(&fake, &driver);
  ask(&fake, &event, 2);
  assert_false(pwi_driver_wait(&driver, &event, 0));
  assert_int_equal(atomic_load(&fake.polls), 1);
  assert_true(pwi_driver_wait(&driver, &event, 0));
  teardown(&fake, &driver);
}

static void test_waiting_ends_when_the_time_runs_out(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct pwi_event event = {0};
  (void)state;
  setup(&fake, &driver);
  int64_t deadline = pwi_host_now() + 2000000;
  assert_false(pwi_driver_wait(&driver, &event, deadline));
  assert_true(pwi_host_now() >= deadline);
  teardown(&fake, &driver);
}

struct waiter {
  struct fake *fake;
  struct pwi_event event;
  bool came;
  pthread_t thread;
};

static void *wait_in_thread(void *argument) {
  struct waiter *waiter = argument;
  waiter->came = pwi_driver_wait(waiter->fake->driver, &waiter->event, PWI_NET_NEVER);
  return NULL;
}

static void start(struct waiter *waiter, struct fake *fake) {
  *waiter = (struct waiter){.fake = fake};
  assert_int_equal(pthread_create(&waiter->thread, NULL, wait_in_thread, waiter), 0);
}

static void join(struct waiter *waiter) {
  pthread_join(waiter->thread, NULL);
  assert_true(waiter->came);
}

static void let_sleep(struct fake *fake) {
  while (!atomic_load(&fake->is_asleep)) sched_yield();
}

static void test_a_call_gets_in_while_another_thread_sleeps_in_the_net(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct waiter waiter;
  (void)state;
  setup(&fake, &driver);
  start(&waiter, &fake);
  let_sleep(&fake);
  pwi_driver_enter(&driver);
  come_in(&fake);
  pwi_event_set(&driver, &waiter.event);
  go_away(&fake);
  pwi_driver_leave(&driver);
  join(&waiter);
  teardown(&fake, &driver);
}

/* The thread has announced itself when nobody polled yet, so it wakes no net. */
static void test_a_driver_does_not_sleep_while_a_thread_wants_to_enter(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct waiter waiter;
  (void)state;
  setup(&fake, &driver);
  atomic_fetch_add(&driver.wanting, 1);
  start(&waiter, &fake);
  while (atomic_load(&fake.polls) == 0 || atomic_load(&driver.is_held)) sched_yield();
  pwi_driver_enter(&driver);
  atomic_fetch_add(&driver.let_in, 1);
  atomic_fetch_sub(&driver.wanting, 1);
  come_in(&fake);
  pwi_event_set(&driver, &waiter.event);
  go_away(&fake);
  pwi_driver_leave(&driver);
  join(&waiter);
  teardown(&fake, &driver);
}

static void test_the_driver_wakes_sleeping_threads_for_their_events(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct waiter first, second, third;
  (void)state;
  setup(&fake, &driver);
  start(&first, &fake);
  let_sleep(&fake);
  start(&second, &fake);
  start(&third, &fake);
  while (atomic_load(&driver.sleepers) < 2) sched_yield();
  ask(&fake, &second.event, 1);
  join(&second);
  ask(&fake, &third.event, 1);
  join(&third);
  assert_false(pwi_event_is_set(&first.event));
  ask(&fake, &first.event, 1);
  join(&first);
  teardown(&fake, &driver);
}

static void test_a_sleeping_thread_minds_its_deadline(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct waiter waiter;
  struct pwi_event never = {0};
  (void)state;
  setup(&fake, &driver);
  start(&waiter, &fake);
  let_sleep(&fake);
  int64_t deadline = pwi_host_after(PWI_HOST_SECOND / 100);
  assert_false(pwi_driver_wait(&driver, &never, deadline));
  assert_true(pwi_host_now() >= deadline);
  ask(&fake, &waiter.event, 1);
  join(&waiter);
  teardown(&fake, &driver);
}

/* The driver goes back to sleep in the net, and will not tell. */
static void test_a_call_wakes_sleeping_threads_for_their_events(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct waiter first, second;
  (void)state;
  setup(&fake, &driver);
  start(&first, &fake);
  let_sleep(&fake);
  start(&second, &fake);
  while (atomic_load(&driver.sleepers) < 1) sched_yield();
  pwi_driver_enter(&driver);
  pwi_event_set(&driver, &second.event);
  pwi_driver_leave(&driver);
  join(&second);
  ask(&fake, &first.event, 1);
  join(&first);
  teardown(&fake, &driver);
}

static void test_a_sleeper_takes_over_when_the_driver_goes(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct waiter first, second;
  (void)state;
  setup(&fake, &driver);
  start(&first, &fake);
  let_sleep(&fake);
  start(&second, &fake);
  while (atomic_load(&driver.sleepers) < 1) sched_yield();
  ask(&fake, &first.event, 1);
  join(&first);
  let_sleep(&fake);
  assert_true(pthread_equal(fake.last_poller, second.thread));
  ask(&fake, &second.event, 1);
  join(&second);
  teardown(&fake, &driver);
}

static void test_the_own_thread_drives_while_no_thread_waits(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct pwi_event event = {0};
  (void)state;
  setup(&fake, &driver);
  assert_int_equal(pwi_driver_start(&driver), PAWL_OK);
  for (int i = 0; i < 5; i++) {
    atomic_store(&event.is_set, false);
    ask(&fake, &event, 2);
    while (!pwi_event_is_set(&event)) sched_yield();
  }
  teardown(&fake, &driver);
}

struct callback {
  struct pwi_work work;
  atomic_bool has_run;
};

static void note_run(struct pwi_work *work) { atomic_store(&((struct callback *)work)->has_run, true); }

/* An answer has a callback, and no thread comes by that could run it. */
static void test_the_own_thread_leaves_the_net_to_run_work(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct pwi_event event = {0};
  struct callback callback = {.work.run = note_run};
  (void)state;
  setup(&fake, &driver);
  assert_int_equal(pwi_driver_start(&driver), PAWL_OK);
  fake.work = &callback.work;
  ask(&fake, &event, 2);
  while (!atomic_load(&callback.has_run)) sched_yield();
  assert_true(pwi_event_is_set(&event));
  teardown(&fake, &driver);
}

static void test_the_own_thread_drives_again_when_the_last_driver_goes(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct waiter waiter;
  struct pwi_event event = {0};
  (void)state;
  setup(&fake, &driver);
  assert_int_equal(pwi_driver_start(&driver), PAWL_OK);
  start(&waiter, &fake);
  while (!atomic_load(&driver.is_resting)) sched_yield();
  ask(&fake, &waiter.event, 1);
  join(&waiter);
  ask(&fake, &event, 2);
  while (!pwi_event_is_set(&event)) sched_yield();
  teardown(&fake, &driver);
}

/* A driver that lets others in comes back, and is not among the threads that want to enter. If our own
 * thread entered and stayed, as it does while there is no driver, the driver would wait for ever. That
 * happened once in some ten thousand rounds of training. */
static void test_the_own_thread_does_not_stay_when_a_driver_has_yielded_to_it(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  (void)state;
  setup(&fake, &driver);
  atomic_store(&driver.is_yielding, true); /* the state in which yield_gate leaves the driver outside */
  assert_int_equal(pwi_driver_start(&driver), PAWL_OK);
  pwi_driver_hurry(&driver);
  while (atomic_load(&fake.polls) == 0) sched_yield();
  while (atomic_load(&driver.is_held)) sched_yield();
  teardown(&fake, &driver);
}

static void test_calls_without_a_waiting_thread_poll_the_net_themselves(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct pwi_event event = {0};
  (void)state;
  setup(&fake, &driver);
  ask(&fake, &event, 2);
  for (int i = 0; i < 2 * PWI_DRIVER_NUDGE; i++) {
    assert_false(pwi_event_is_set(&event));
    pwi_driver_enter(&driver);
    pwi_driver_nudge(&driver);
    pwi_driver_leave(&driver);
  }
  assert_true(pwi_event_is_set(&event));
  assert_int_equal(atomic_load(&fake.polls), 2);
  teardown(&fake, &driver);
}

struct flood {
  struct fake *fake;
  pthread_t thread;
  atomic_bool is_over;
};

/* Calls that never poll, such as those that return a state: one thread is inside nearly all the time, and the other ones
 * want to enter. */
static void *run_flood(void *context) {
  struct flood *flood = context;
  while (!atomic_load(&flood->is_over)) {
    pwi_driver_enter(flood->fake->driver);
    come_in(flood->fake);
    for (int i = 0; i < 2000; i++) pwi_host_pause();
    go_away(flood->fake);
    pwi_driver_leave(flood->fake->driver);
  }
  return NULL;
}

static void test_a_flood_of_calls_does_not_starve_the_net(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct pwi_event event = {0};
  enum { FLOODS = 3 };
  struct flood floods[FLOODS];
  (void)state;
  setup(&fake, &driver);
  assert_int_equal(pwi_driver_start(&driver), PAWL_OK);
  for (int i = 0; i < FLOODS; i++) {
    floods[i] = (struct flood){.fake = &fake};
    assert_int_equal(pthread_create(&floods[i].thread, NULL, run_flood, &floods[i]), 0);
  }
  ask(&fake, &event, 20);
  while (!pwi_event_is_set(&event)) sched_yield();
  for (int i = 0; i < FLOODS; i++) atomic_store(&floods[i].is_over, true);
  for (int i = 0; i < FLOODS; i++) pthread_join(floods[i].thread, NULL);
  teardown(&fake, &driver);
}

struct job {
  struct pwi_work work;
  struct fake *fake;
  struct pwi_event event;
  int runs;
};

/* Work may do everything that a call may, including waiting. */
static void work_and_wait(struct pwi_work *work) {
  struct job *job = (struct job *)work;
  job->runs++;
  ask(job->fake, &job->event, 2);
  assert_true(pwi_driver_wait(job->fake->driver, &job->event, PWI_NET_NEVER));
}

static void test_work_is_run_outside_the_gate_and_may_wait(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct pwi_event event = {0};
  (void)state;
  setup(&fake, &driver);
  struct job one = {.work.run = work_and_wait, .fake = &fake}, two = {.work.run = work_and_wait, .fake = &fake};
  ask(&fake, &event, 9);
  pwi_driver_enter(&driver);
  pwi_driver_post(&driver, &one.work);
  pwi_driver_post(&driver, &two.work);
  pwi_driver_leave(&driver);
  assert_int_equal(one.runs, 1);
  assert_int_equal(two.runs, 1);
  assert_true(pwi_driver_wait(&driver, &event, PWI_NET_NEVER));
  teardown(&fake, &driver);
}

#define THREADS 4
#define ROUNDS 2000

struct hammer {
  struct fake *fake;
  int *sum; /* guarded by the gate */
  int seed;
  pthread_t thread;
};

static void *hammer(void *argument) {
  struct hammer *hammer = argument;
  struct pwi_driver *driver = hammer->fake->driver;
  for (int i = 0; i < ROUNDS; i++) {
    struct pwi_event event = {0};
    pwi_driver_enter(driver);
    come_in(hammer->fake);
    ++*hammer->sum;
    go_away(hammer->fake);
    pwi_driver_nudge(driver);
    pwi_driver_leave(driver);
    if ((i + hammer->seed) % 4 != 0) continue;
    ask(hammer->fake, &event, 1 + i % 3);
    if (!pwi_driver_wait(driver, &event, PWI_NET_NEVER)) return hammer;
    pwi_driver_enter(driver); /* the event is on our stack: the thread that set it must be done with it */
    pwi_driver_leave(driver);
  }
  return NULL;
}

static void test_many_threads_call_and_wait_and_all_come_through(void **state) {
  struct fake fake;
  struct pwi_driver driver;
  struct hammer hammers[THREADS];
  int sum = 0;
  (void)state;
  setup(&fake, &driver);
  assert_int_equal(pwi_driver_start(&driver), PAWL_OK);
  for (int i = 0; i < THREADS; i++) {
    hammers[i] = (struct hammer){.fake = &fake, .sum = &sum, .seed = i};
    assert_int_equal(pthread_create(&hammers[i].thread, NULL, hammer, &hammers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *stuck;
    pthread_join(hammers[i].thread, &stuck);
    assert_null(stuck);
  }
  assert_int_equal(sum, THREADS * ROUNDS);
  teardown(&fake, &driver);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_thread_that_waits_polls_itself),
      cmocka_unit_test(test_a_deadline_that_has_passed_still_looks_once),
      cmocka_unit_test(test_waiting_ends_when_the_time_runs_out),
      cmocka_unit_test(test_a_call_gets_in_while_another_thread_sleeps_in_the_net),
      cmocka_unit_test(test_a_driver_does_not_sleep_while_a_thread_wants_to_enter),
      cmocka_unit_test(test_the_driver_wakes_sleeping_threads_for_their_events),
      cmocka_unit_test(test_a_sleeping_thread_minds_its_deadline),
      cmocka_unit_test(test_a_call_wakes_sleeping_threads_for_their_events),
      cmocka_unit_test(test_a_sleeper_takes_over_when_the_driver_goes),
      cmocka_unit_test(test_the_own_thread_drives_while_no_thread_waits),
      cmocka_unit_test(test_the_own_thread_leaves_the_net_to_run_work),
      cmocka_unit_test(test_the_own_thread_drives_again_when_the_last_driver_goes),
      cmocka_unit_test(test_the_own_thread_does_not_stay_when_a_driver_has_yielded_to_it),
      cmocka_unit_test(test_calls_without_a_waiting_thread_poll_the_net_themselves),
      cmocka_unit_test(test_a_flood_of_calls_does_not_starve_the_net),
      cmocka_unit_test(test_work_is_run_outside_the_gate_and_may_wait),
      cmocka_unit_test(test_many_threads_call_and_wait_and_all_come_through),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
