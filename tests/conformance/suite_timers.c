/* Timers, the clock, waking, and polling. */
#include <pthread.h>
#include <stdlib.h>

#include "scene.h"
#include "suite.h"

static struct pwi_timer set(struct party *party, int64_t at, uint64_t cookie) {
  struct pwi_timer timer = {0};
  pawl_status status = PARTY_CALL(party, pwi_net_timer_set(party->net, at, cookie, &timer));
  if (status != PAWL_OK || timer.id == 0) party_fault(party, "a timer could not be set");
  return timer;
}

static void cancel(struct party *party, struct pwi_timer timer) {
  party_call_begin(party);
  pwi_net_timer_cancel(party->net, timer);
  party_call_end(party, PAWL_OK);
}

static void test_timers_fire_in_the_order_of_their_times(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  int64_t now = pwi_net_now(here->net);
  static const uint64_t order[] = {5, 2, 8, 1, 9, 3, 7, 0, 4, 6};
  for (size_t i = 0; i < 10; i++) set(here, now + 5 * WORLD_MS + (int64_t)order[i] * WORLD_MS, order[i] + 1);
  SCENE_UNTIL(scene, here->fired_count == 10);
  for (size_t i = 0; i < 10; i++) assert_int_equal(here->fired[i], i + 1);
}

static void test_timers_of_the_same_time_fire_in_the_order_they_were_set(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  int64_t at = pwi_net_now(here->net) + 5 * WORLD_MS;
  for (uint64_t i = 0; i < 100; i++) set(here, at, i);
  SCENE_UNTIL(scene, here->fired_count == 100);
  for (uint64_t i = 0; i < 100; i++) assert_int_equal(here->fired[i], i);
}

#define MANY 10000

/* The cookie is the time: later ones must not come first, and none too early. */
static void check_time(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)link;
  if (event != PARTY_ON_TIMER) return;
  if (pwi_net_now(party->net) < (int64_t)value) party_fault(party, "a timer fired before its time");
  if (party->fired_count > 1 && party->fired[party->fired_count - 2] > value)
    party_fault(party, "a timer fired after a later one");
}

static void test_many_timers_fire_once_each_and_cancelled_ones_do_not(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  here->hook = check_time;
  struct pwi_timer *timers = calloc(MANY, sizeof *timers);
  int64_t now = pwi_net_now(here->net);
  for (size_t i = 0; i < MANY; i++) {
    int64_t at = now + 20 * WORLD_MS + (int64_t)pwi_random_below(&here->random, (uint64_t)(60 * WORLD_MS));
    timers[i] = set(here, at, (uint64_t)at);
  }
  for (size_t i = 0; i < MANY; i += 2) cancel(here, timers[i]);
  SCENE_UNTIL(scene, here->fired_count == MANY / 2);
  scene_idle(scene, 90 * WORLD_MS);
  for (size_t i = 0; i < MANY; i++) cancel(here, timers[i]);
  free(timers);
  assert_int_equal(here->fired_count, MANY / 2);
}

static void test_cancelling_a_timer_that_is_gone_is_ignored(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  struct pwi_timer timer = set(here, pwi_net_now(here->net), 1);
  SCENE_UNTIL(scene, here->fired_count == 1);
  struct pwi_timer next = set(here, pwi_net_now(here->net) + 10 * WORLD_MS, 2);
  assert_int_not_equal(next.id, timer.id);
  cancel(here, timer); /* must not hit the one that took its place */
  cancel(here, timer);
  cancel(here, (struct pwi_timer){0});
  cancel(here, (struct pwi_timer){UINT64_MAX});
  SCENE_UNTIL(scene, here->fired_count == 2);
  assert_int_equal(here->fired[1], 2);
}

static void set_again(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)link;
  if (event == PARTY_ON_TIMER && value > 0) set(party, pwi_net_now(party->net) + (value % 2 ? WORLD_MS : 0), value - 1);
}

static void test_a_timer_set_inside_a_timer_fires(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  here->hook = set_again;
  set(here, pwi_net_now(here->net), 20);
  SCENE_UNTIL(scene, here->fired_count == 21);
  for (size_t i = 0; i <= 20; i++) assert_int_equal(here->fired[i], 20 - i);
}

static void test_a_time_that_has_passed_comes_at_once(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  set(here, pwi_net_now(here->net) - 1000 * WORLD_MS, 1);
  set(here, INT64_MIN, 2);
  set(here, PWI_NET_NEVER, 3);
  SCENE_UNTIL(scene, here->fired_count == 2);
  scene_idle(scene, 10 * WORLD_MS);
  assert_int_equal(here->fired_count, 2);
}

static void cancel_other(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)link;
  struct pwi_timer *timers = party->context;
  if (event == PARTY_ON_TIMER) cancel(party, timers[value ^ 1]);
}

static void test_a_timer_that_is_due_can_still_be_cancelled(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  struct pwi_timer timers[2];
  here->hook = cancel_other;
  here->context = timers;
  int64_t at = pwi_net_now(here->net) + WORLD_MS;
  timers[0] = set(here, at, 0);
  timers[1] = set(here, at, 1);
  SCENE_UNTIL(scene, here->fired_count > 0);
  scene_idle(scene, 10 * WORLD_MS);
  assert_int_equal(here->fired_count, 1);
  assert_int_equal(here->fired[0], 0);
}

static void test_a_woken_actor_hears_of_it(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  scene_idle(scene, 5 * WORLD_MS);
  assert_int_equal(here->woken, 0);
  for (int i = 0; i < 5; i++) {
    party_call_begin(here);
    pwi_net_wake(here->net);
    party_call_end(here, PAWL_OK);
  }
  SCENE_UNTIL(scene, here->woken > 0);
  scene_idle(scene, 5 * WORLD_MS);
  uint64_t woken = here->woken;
  assert_in_range(woken, 1, 5);
  pwi_net_wake(here->net);
  SCENE_UNTIL(scene, here->woken == woken + 1);
}

static void wake_again(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)link, (void)value;
  if (event != PARTY_ON_WOKEN || party->woken >= 10) return;
  party_call_begin(party);
  pwi_net_wake(party->net);
  party_call_end(party, PAWL_OK);
}

static void test_waking_inside_woken_wakes_once_more(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  here->hook = wake_again;
  pwi_net_wake(here->net);
  SCENE_UNTIL(scene, here->woken == 10);
  scene_idle(scene, 5 * WORLD_MS);
  assert_int_equal(here->woken, 10);
}

static void *wake_from_thread(void *net) {
  pwi_net_wake(net);
  return NULL;
}

static void test_another_thread_may_wake(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, wake_from_thread, here->net), 0);
  if (!(scene_kind->traits & WORLD_POLLED)) pthread_join(thread, NULL); /* a simulation has one thread at a time */
  SCENE_UNTIL(scene, here->woken == 1);
  if (scene_kind->traits & WORLD_POLLED) pthread_join(thread, NULL);
}

static void test_polling_ends_at_its_deadline_or_when_something_happened(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  struct pwi_net *net = here->net;
  if (!(scene_kind->traits & WORLD_POLLED)) {
    assert_status(pwi_net_poll(net, pwi_net_now(net)), PAWL_UNSUPPORTED);
    return;
  }
  while (pwi_net_poll(net, pwi_net_now(net)) == PAWL_OK) continue;
  int64_t deadline = pwi_net_now(net) + 3 * WORLD_MS;
  assert_status(pwi_net_poll(net, deadline), PAWL_TIMED_OUT);
  assert_true(pwi_net_now(net) >= deadline);
  assert_status(pwi_net_poll(net, INT64_MIN), PAWL_TIMED_OUT);
  set(here, pwi_net_now(net) + 2 * WORLD_MS, 1);
  while (pwi_net_poll(net, PWI_NET_NEVER) == PAWL_OK && here->fired_count == 0) continue;
  assert_int_equal(here->fired_count, 1);
  pwi_net_wake(net);
  while (pwi_net_poll(net, PWI_NET_NEVER) == PAWL_OK && here->woken == 0) continue;
  assert_int_equal(here->woken, 1);
}

int suite_timers(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_timers_fire_in_the_order_of_their_times),
      SCENE_TEST(test_timers_of_the_same_time_fire_in_the_order_they_were_set),
      SCENE_TEST(test_many_timers_fire_once_each_and_cancelled_ones_do_not),
      SCENE_TEST(test_cancelling_a_timer_that_is_gone_is_ignored),
      SCENE_TEST(test_a_timer_set_inside_a_timer_fires),
      SCENE_TEST(test_a_time_that_has_passed_comes_at_once),
      SCENE_TEST(test_a_timer_that_is_due_can_still_be_cancelled),
      SCENE_TEST(test_a_woken_actor_hears_of_it),
      SCENE_TEST(test_waking_inside_woken_wakes_once_more),
      SCENE_TEST(test_another_thread_may_wake),
      SCENE_TEST(test_polling_ends_at_its_deadline_or_when_something_happened),
  };
  return cmocka_run_group_tests_name("timers", tests, NULL, NULL);
}
