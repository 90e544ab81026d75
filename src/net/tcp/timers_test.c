/* Timers against a plain list that is searched for the earliest one. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "net/tcp/timers.h"

#define SEED UINT64_C(20210317)
#define MODEL_MAX 512

struct model_timer {
  int64_t at;
  uint64_t id, cookie;
};

/* In the order of setting. */
struct model {
  struct model_timer timers[MODEL_MAX];
  size_t count;
};

static size_t model_first(const struct model *model) {
  size_t first = 0;
  for (size_t i = 1; i < model->count; i++)
    if (model->timers[i].at < model->timers[first].at) first = i;
  return first;
}

static void model_remove(struct model *model, size_t index) {
  for (size_t i = index + 1; i < model->count; i++) model->timers[i - 1] = model->timers[i];
  model->count--;
}

static void set_one(struct pwi_timers *timers, struct model *model, struct pwi_random *random, int64_t now) {
  if (model->count == MODEL_MAX) return;
  struct model_timer timer = {.cookie = pwi_random_u64(random)};
  timer.at = now + (int64_t)pwi_random_below(random, 40) - 5; /* many at the same time, some in the past */
  assert_int_equal(pwi_timers_set(timers, timer.at, timer.cookie, &timer.id), PAWL_OK);
  for (size_t i = 0; i < model->count; i++) assert_int_not_equal(model->timers[i].id, timer.id);
  assert_int_not_equal(timer.id, 0);
  model->timers[model->count++] = timer;
}

static void cancel_one(struct pwi_timers *timers, struct model *model, struct pwi_random *random) {
  if (model->count == 0) return;
  size_t index = (size_t)pwi_random_below(random, model->count);
  pwi_timers_cancel(timers, model->timers[index].id);
  pwi_timers_cancel(timers, model->timers[index].id); /* the second time it is ignored */
  model_remove(model, index);
}

static void take_all(struct pwi_timers *timers, struct model *model, int64_t now) {
  uint64_t id = 0, cookie = 0;
  while (pwi_timers_take(timers, now, &id, &cookie)) {
    assert_true(model->count > 0);
    size_t first = model_first(model);
    assert_int_equal(id, model->timers[first].id);
    assert_int_equal(cookie, model->timers[first].cookie);
    assert_true(model->timers[first].at <= now);
    model_remove(model, first);
    pwi_timers_cancel(timers, id); /* one that has fired is ignored */
  }
}

static void check_next(const struct pwi_timers *timers, const struct model *model) {
  int64_t expected = model->count ? model->timers[model_first(model)].at : INT64_MAX;
  assert_int_equal(pwi_timers_next(timers), expected);
  assert_int_equal(timers->count, model->count);
}

/* `sets` of 10 steps set a timer: with many the heap grows, with few it runs empty again and again. */
static void run_against_model(uint64_t stream, uint64_t sets) {
  static struct model model;
  struct pwi_timers timers;
  struct pwi_random random;
  int64_t now = INT64_C(1000000);
  model.count = 0;
  pwi_timers_init(&timers);
  pwi_random_init(&random, SEED, stream);
  for (int step = 0; step < 20000; step++) {
    uint64_t choice = pwi_random_below(&random, 10);
    if (choice < sets) {
      set_one(&timers, &model, &random, now);
    } else if (choice < 9) {
      cancel_one(&timers, &model, &random);
    } else {
      now += (int64_t)pwi_random_below(&random, 12);
      take_all(&timers, &model, now);
    }
    check_next(&timers, &model);
  }
  take_all(&timers, &model, INT64_MAX);
  assert_int_equal(model.count, 0);
  pwi_timers_fini(&timers);
}

static void test_timers_do_what_a_list_does(void **state) {
  (void)state;
  print_message("seed %llu\n", (unsigned long long)SEED);
  for (uint64_t sets = 4; sets <= 8; sets++) run_against_model(sets, sets);
}

static void test_timers_of_one_time_fire_in_the_order_of_setting(void **state) {
  (void)state;
  struct pwi_timers timers;
  uint64_t id, cookie, ids[300];
  pwi_timers_init(&timers);
  for (uint64_t i = 0; i < 300; i++) assert_int_equal(pwi_timers_set(&timers, 5, i, &ids[i]), PAWL_OK);
  for (size_t i = 0; i < 300; i += 3) pwi_timers_cancel(&timers, ids[i]);
  for (uint64_t i = 0; i < 300; i++) {
    if (i % 3 == 0) continue;
    assert_true(pwi_timers_take(&timers, 5, &id, &cookie));
    assert_int_equal(cookie, i);
  }
  assert_false(pwi_timers_take(&timers, INT64_MAX, &id, &cookie));
  pwi_timers_fini(&timers);
}

static void test_a_timer_fires_at_its_time_and_not_before(void **state) {
  (void)state;
  struct pwi_timers timers;
  uint64_t id, cookie = 77;
  pwi_timers_init(&timers);
  assert_int_equal(pwi_timers_next(&timers), INT64_MAX);
  assert_int_equal(pwi_timers_set(&timers, 100, 1, &id), PAWL_OK);
  assert_int_equal(pwi_timers_set(&timers, INT64_MIN, 2, &id), PAWL_OK);
  assert_int_equal(pwi_timers_set(&timers, INT64_MAX, 3, &id), PAWL_OK);
  assert_int_equal(pwi_timers_next(&timers), INT64_MIN);
  assert_true(pwi_timers_take(&timers, INT64_MIN, &id, &cookie));
  assert_int_equal(cookie, 2);
  assert_false(pwi_timers_take(&timers, 99, &id, &cookie));
  assert_int_equal(cookie, 2);
  assert_true(pwi_timers_take(&timers, 100, &id, &cookie));
  assert_int_equal(cookie, 1);
  assert_false(pwi_timers_take(&timers, INT64_MAX - 1, &id, &cookie));
  pwi_timers_fini(&timers);
}

static void test_cancelling_an_unknown_timer_is_ignored(void **state) {
  (void)state;
  struct pwi_timers timers;
  uint64_t id, cookie;
  pwi_timers_init(&timers);
  pwi_timers_cancel(&timers, 0);
  pwi_timers_cancel(&timers, 1);
  assert_int_equal(pwi_timers_set(&timers, 1, 9, &id), PAWL_OK);
  pwi_timers_cancel(&timers, 0);
  pwi_timers_cancel(&timers, id + 1);
  pwi_timers_cancel(&timers, UINT64_MAX);
  assert_true(pwi_timers_take(&timers, 1, &id, &cookie));
  pwi_timers_cancel(&timers, id);
  pwi_timers_fini(&timers);
}

static void test_no_memory_leaves_the_timers_as_they_were(void **state) {
  (void)state;
  struct pwi_timers timers;
  uint64_t id = 0, cookie, live = pwi_memory_counts().live, failures = 0;
  pwi_timers_init(&timers);
  for (uint64_t i = 0; i < 200;) { /* each growth fails at its first allocation, then at its second */
    uint64_t before = id;
    pwi_memory_fail_after(failures % 2);
    pawl_status status = pwi_timers_set(&timers, (int64_t)(i % 17), i, &id);
    if (pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_NO_MEMORY);
      assert_int_equal(id, before);
      assert_int_equal(timers.count, i);
      if (++failures % 2 == 0) { /* now let it grow */
        assert_int_equal(pwi_timers_set(&timers, (int64_t)(i % 17), i, &id), PAWL_OK);
        i++;
      }
    } else {
      assert_int_equal(status, PAWL_OK);
      i++;
    }
  }
  assert_true(failures >= 8);
  int64_t last = 0;
  for (uint64_t i = 0; i < 200; i++) {
    assert_true(pwi_timers_next(&timers) >= last);
    last = pwi_timers_next(&timers);
    assert_true(pwi_timers_take(&timers, last, &id, &cookie));
    assert_int_equal(cookie % 17, last);
  }
  pwi_timers_fini(&timers);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_timers_do_what_a_list_does),
      cmocka_unit_test(test_timers_of_one_time_fire_in_the_order_of_setting),
      cmocka_unit_test(test_a_timer_fires_at_its_time_and_not_before),
      cmocka_unit_test(test_cancelling_an_unknown_timer_is_ignored),
      cmocka_unit_test(test_no_memory_leaves_the_timers_as_they_were),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
