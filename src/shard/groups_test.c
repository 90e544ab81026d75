/* Groups of a shard: ticks, entering, and waiting for the slowest. */
#include "shard/testing.h"

#define ANSWERS_MAX 32

static struct {
  struct pwi_waiter waiter;
  struct pwi_outcome outcome;
} answers[ANSWERS_MAX];
static size_t answer_count;

static void note_answer(void *context, struct pwi_waiter waiter, const struct pwi_outcome *outcome) {
  (void)context;
  assert_true(answer_count < ANSWERS_MAX);
  answers[answer_count].waiter = waiter;
  answers[answer_count++].outcome = *outcome;
}

struct fixture {
  struct pwi_membership membership;
  struct pwi_shard *shard;
  struct pwi_entry group;
  uint64_t key;
  uint64_t tasks[8]; /* of each sender, the last */
};

/* Creates group 1 with size `size`; senders 1 to `members` have joined. */
static void start(struct fixture *fixture, uint32_t size, uint64_t members) {
  struct pwi_shard_config config = {.memory_max = UINT64_MAX, .answer = note_answer};
  *fixture = (struct fixture){.membership = membership_of(6), .shard = shard_of(&config), .group = group_of(1)};
  fixture->key = pwi_group_key(fixture->group.name);
  answer_count = 0;
  assert_int_equal(pwi_shard_hold(fixture->shard, WHOLE_RING), PAWL_OK);
  open_vector(fixture->shard, fixture->group);
  for (uint64_t id = 1; id <= members; id++)
    assert_int_equal(pwi_membership_join(&fixture->membership, fixture->group.id, size, (struct pwi_sender){id}),
                     PAWL_OK);
  pwi_shard_set_membership(fixture->shard, &fixture->membership);
}

static void stop(struct fixture *fixture) {
  pwi_shard_destroy(fixture->shard);
  pwi_membership_fini(&fixture->membership);
}

/* Adds a member to the membership of the shard. */
static void join(struct fixture *fixture, uint64_t sender) {
  assert_int_equal(pwi_membership_join(&fixture->membership, fixture->group.id, 0, (struct pwi_sender){sender}),
                   PAWL_OK);
  pwi_shard_set_membership(fixture->shard, &fixture->membership);
}

static struct pwi_request ask(enum pwi_request_kind kind, uint64_t sender, uint64_t tick) {
  struct pwi_request request = request_of(kind, 1, PAWL_KEY_END);
  request.sender.id = sender;
  request.tick = tick;
  return request;
}

/* Executes the next task of the sender; returns the answer's `found`. */
static uint64_t step(struct fixture *fixture, enum pwi_request_kind kind, uint64_t sender, uint64_t tick) {
  struct pwi_request request = ask(kind, sender, tick);
  request.terms.prior = fixture->tasks[sender];
  request.task = ++fixture->tasks[sender];
  struct pwi_served served = serve(fixture->shard, &request, NULL);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  return served.outcome.found;
}

/* Returns true if the request is deferred. */
static bool await(struct fixture *fixture, uint64_t owner, uint64_t number, uint64_t tick) {
  struct pwi_request request = ask(PWI_REQUEST_AWAIT, 1, tick);
  request.waiter = (struct pwi_waiter){.owner = owner, .number = number};
  struct pwi_served served = serve(fixture->shard, &request, NULL);
  if (!served.is_deferred) assert_int_equal(served.outcome.code, PWI_CODE_OK);
  return served.is_deferred;
}

static void test_waiting_ends_when_the_slowest_member_arrives(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3, 3);
  step(&f, PWI_REQUEST_TICK, 1, 4);
  step(&f, PWI_REQUEST_TICK, 2, 7);
  assert_true(await(&f, 11, 1, 3));
  assert_true(await(&f, 12, 2, 5));
  step(&f, PWI_REQUEST_TICK, 3, 2);
  assert_int_equal(answer_count, 0);
  step(&f, PWI_REQUEST_TICK, 3, 4);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].waiter.owner, 11);
  assert_int_equal(answers[0].outcome.code, PWI_CODE_OK);
  assert_int_equal(answers[0].outcome.found, 4);
  step(&f, PWI_REQUEST_TICK, 3, 9);
  step(&f, PWI_REQUEST_TICK, 1, 5);
  assert_int_equal(answer_count, 2);
  assert_int_equal(answers[1].waiter.number, 2);
  assert_false(await(&f, 11, 3, 5));
  stop(&f);
}

static void test_no_member_passes_before_the_group_was_complete(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 1);
  step(&f, PWI_REQUEST_TICK, 1, 1);
  assert_true(await(&f, 11, 1, 1));
  assert_true(await(&f, 11, 2, 2));
  step(&f, PWI_REQUEST_TICK, 1, 2);
  assert_int_equal(answer_count, 0);
  join(&f, 2);
  assert_int_equal(answer_count, 0);
  step(&f, PWI_REQUEST_TICK, 2, 1);
  assert_int_equal(answer_count, 1);
  stop(&f);
}

static void test_a_member_that_leaves_is_not_waited_for(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 2);
  step(&f, PWI_REQUEST_TICK, 1, 1);
  assert_true(await(&f, 11, 1, 1));
  assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){2}), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].outcome.found, 1);
  stop(&f);
}

static void test_a_member_that_joins_a_complete_group_begins_at_the_highest_tick(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 2);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 1, 0), 0);
  step(&f, PWI_REQUEST_TICK, 1, 5);
  step(&f, PWI_REQUEST_TICK, 2, 3);
  join(&f, 3);
  assert_true(await(&f, 11, 1, 4));
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 3, 0), 5);
  assert_int_equal(answer_count, 0);
  step(&f, PWI_REQUEST_TICK, 2, 4);
  assert_int_equal(answer_count, 1);
  stop(&f);
}

static void test_founders_begin_together_though_one_has_ticked(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3, 1);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 1, 0), 0);
  step(&f, PWI_REQUEST_TICK, 1, 4);
  join(&f, 2);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 2, 0), 0);
  join(&f, 3); /* complete */
  join(&f, 4);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 4, 0), 4);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 3, 0), 0); /* even if another member joined first */
  assert_true(await(&f, 11, 1, 1));
  step(&f, PWI_REQUEST_TICK, 2, 1);
  assert_int_equal(answer_count, 0);
  step(&f, PWI_REQUEST_TICK, 3, 1);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].outcome.found, 1);
  stop(&f);
}

static void test_a_founder_enters_no_lower_than_it_stands(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 2);
  step(&f, PWI_REQUEST_TICK, 1, 4);
  step(&f, PWI_REQUEST_TICK, 2, 7);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 1, 0), 4);
  stop(&f);
}

static void test_a_founder_that_left_and_comes_back_begins_where_the_foremost_is(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 2);
  step(&f, PWI_REQUEST_ENTER, 2, 0);
  step(&f, PWI_REQUEST_TICK, 2, 2);
  assert_int_equal(pwi_membership_leave(&f.membership, f.group.id, (struct pwi_sender){2}), PAWL_OK);
  step(&f, PWI_REQUEST_TICK, 1, 5);
  join(&f, 2);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 2, 0), 5);
  assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){2}), PAWL_OK);
  join(&f, 3); /* its next incarnation */
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 3, 0), 5);
  stop(&f);
}

/* Regression: the last tick of a client that was declared dead had counted under its old id. It began one
 * tick behind, and all members waited for a tick that it had finished already. */
static void test_a_member_that_returns_under_a_new_id_begins_no_lower_than_before(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 2);
  step(&f, PWI_REQUEST_TICK, 1, 7);
  step(&f, PWI_REQUEST_TICK, 2, 8);
  assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){2}), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  join(&f, 3);
  assert_true(await(&f, 11, 1, 8));
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 3, 8), 8);
  step(&f, PWI_REQUEST_TICK, 1, 8);
  assert_int_equal(answer_count, 1);
  join(&f, 4);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 4, 2), 8); /* nor lower than the foremost */
  stop(&f);
}

static void test_an_enter_that_is_repeated_tells_the_senders_present_tick(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 2);
  step(&f, PWI_REQUEST_TICK, 1, 5);
  join(&f, 3);
  assert_int_equal(step(&f, PWI_REQUEST_ENTER, 3, 0), 5);
  step(&f, PWI_REQUEST_TICK, 1, 9);
  struct pwi_request again = ask(PWI_REQUEST_ENTER, 3, 0);
  again.task = 1;
  struct pwi_served served = serve(f.shard, &again, NULL);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  assert_int_equal(served.outcome.found, 5);
  stop(&f);
}

static void test_an_enter_that_came_in_pieces_counts_once(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2, 2);
  step(&f, PWI_REQUEST_TICK, 1, 5);
  join(&f, 3);
  struct pwi_request enter = ask(PWI_REQUEST_ENTER, 3, 0);
  enter.task = 1;
  enter.terms.claim = enter.terms.range = pawl_range_of(0, f.key + 1); /* an arc that was cut meanwhile */
  assert_int_equal(serve(f.shard, &enter, NULL).outcome.found, 5);
  step(&f, PWI_REQUEST_TICK, 1, 9);
  enter.terms.claim = enter.terms.range = pawl_range_of(0, PAWL_KEY_END);
  assert_int_equal(serve(f.shard, &enter, NULL).outcome.found, 5);
  stop(&f);
}

static void test_a_tick_is_numbered_and_finds_gaps(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 1, 1);
  struct pwi_request tick = ask(PWI_REQUEST_TICK, 1, 3);
  tick.terms.prior = 2;
  tick.task = 3;
  assert_served(f.shard, &tick, NULL, PWI_CODE_GAP, PAWL_OK);
  assert_true(await(&f, 11, 1, 3));
  tick.sender.id = 9;
  assert_served(f.shard, &tick, NULL, PWI_CODE_RETIRED, PAWL_OK);
  tick.sender.id = 1;
  tick.terms.claim = tick.terms.range = pawl_range_of(f.key + 1, PAWL_KEY_END);
  assert_served(f.shard, &tick, NULL, PWI_CODE_FAILED, PAWL_INVALID); /* the group is not there */
  stop(&f);
}

static void test_waiters_are_told_when_the_group_freezes_moves_or_ends(void **state) {
  (void)state;
  struct fixture f;
  struct pawl_range elsewhere = {0, 1}, here;
  start(&f, 2, 2);
  here = pawl_range_of(f.key, f.key + 1);
  await(&f, 11, 1, 1);
  assert_int_equal(pwi_shard_freeze(f.shard, elsewhere), PAWL_OK);
  assert_int_equal(answer_count, 0);
  assert_int_equal(pwi_shard_freeze(f.shard, here), PAWL_OK);
  assert_int_equal(answer_count, 1);
  assert_int_equal(answers[0].outcome.code, PWI_CODE_NOT_HERE);
  pwi_shard_thaw(f.shard, here);
  struct pwi_request request = ask(PWI_REQUEST_AWAIT, 1, 1);
  assert_served(f.shard, &request, NULL, PWI_CODE_NOT_HERE, PAWL_OK); /* part of the claim is frozen */
  pwi_shard_thaw(f.shard, elsewhere);
  await(&f, 11, 2, 1);
  assert_int_equal(pwi_shard_drop(f.shard, here), PAWL_OK);
  assert_int_equal(answer_count, 2);
  assert_int_equal(answers[1].outcome.code, PWI_CODE_NOT_HERE);
  assert_int_equal(pwi_shard_hold(f.shard, here), PAWL_OK);
  await(&f, 11, 3, 1);
  await(&f, 12, 4, 1);
  pwi_shard_forget_waiters(f.shard, 12);
  pwi_shard_close(f.shard, f.group.id);
  assert_int_equal(answer_count, 3);
  assert_int_equal(answers[2].waiter.number, 3);
  assert_int_equal(answers[2].outcome.code, PWI_CODE_FAILED);
  assert_int_equal(answers[2].outcome.status, PAWL_NOT_FOUND);
  stop(&f);
}

static void move(struct pwi_shard *from, struct pwi_shard *to, struct pawl_range positions) {
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  assert_int_equal(pwi_shard_freeze(from, positions), PAWL_OK);
  pwi_copying_init(&copying, positions);
  while (more) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(from, &copying, 100, &writer, &more), PAWL_OK);
    if (more) assert_int_equal(pwi_shard_take(to, writer.data, writer.size), PAWL_OK);
  }
  pwi_writer_fini(&writer);
  assert_int_equal(pwi_shard_adopt(to, positions), PAWL_OK);
  assert_int_equal(pwi_shard_drop(from, positions), PAWL_OK);
}

static void test_ticks_go_where_the_group_goes(void **state) {
  (void)state;
  struct fixture f, target;
  start(&f, 2, 2);
  start(&target, 2, 2);
  assert_int_equal(pwi_shard_drop(target.shard, WHOLE_RING), PAWL_OK);
  step(&f, PWI_REQUEST_TICK, 1, 5);
  step(&f, PWI_REQUEST_TICK, 2, 3);
  move(f.shard, target.shard, WHOLE_RING);
  memcpy(target.tasks, f.tasks, sizeof f.tasks);
  assert_false(await(&target, 11, 1, 3));
  assert_true(await(&target, 11, 2, 4));
  step(&target, PWI_REQUEST_TICK, 2, 4);
  assert_int_equal(answer_count, 1);
  stop(&f);
  stop(&target);
}

/* A head that handed over follows the next one, and takes over again later. */
static void test_a_head_that_followed_another_one_knows_the_slowest_member(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_outcome outcome;
  start(&f, 2, 2);
  for (uint64_t id = 1; id <= 2; id++) step(&f, PWI_REQUEST_TICK, id, 1);
  assert_true(await(&f, 11, 1, 2));
  pwi_shard_dismiss(f.shard, WHOLE_RING);
  for (uint64_t id = 1; id <= 2; id++) {
    struct pwi_change change = {.effect = PWI_EFFECT_TICK, .request = ask(PWI_REQUEST_TICK, id, 2)};
    change.request.task = ++f.tasks[id];
    pwi_shard_follow(f.shard, &change, WHOLE_RING, &outcome);
    assert_int_equal(outcome.code, PWI_CODE_OK);
  }
  assert_false(await(&f, 11, 2, 2));
  stop(&f);
}

static struct pwi_request about(enum pwi_request_kind kind, const struct pwi_entry *group, uint64_t sender) {
  struct pwi_request request = ask(kind, sender, 1);
  uint64_t key = pwi_group_key(group->name);
  request.terms.vector = group->id;
  request.terms.claim = request.terms.range = pawl_range_of(key, key + 1);
  request.waiter = (struct pwi_waiter){.owner = 11, .number = group->id.id};
  return request;
}

static struct pawl_range position_of(const struct pwi_entry *group) {
  struct pwi_place place = pwi_entry_place(group);
  uint64_t at = pwi_place_position(&place, pwi_group_key(group->name));
  return pawl_range_of(at, at + 1);
}

/* The shard has one group, for which a request waits, and is filled with another one. */
static void test_a_group_that_moves_here_brings_its_slowest_member(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_entry other = group_of(2);
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  start(&f, 2, 2);
  open_vector(f.shard, other);
  for (uint64_t id = 1; id <= 2; id++) {
    struct pwi_request tick = about(PWI_REQUEST_TICK, &other, id);
    tick.task = 1;
    assert_int_equal(pwi_membership_join(&f.membership, other.id, 2, tick.sender), PAWL_OK);
    assert_served(f.shard, &tick, NULL, PWI_CODE_OK, PAWL_OK);
  }
  struct pwi_shard *to = shard_of(&(struct pwi_shard_config){.memory_max = UINT64_MAX, .answer = note_answer});
  pwi_shard_set_membership(to, &f.membership);
  open_vector(to, f.group);
  open_vector(to, other);
  assert_int_equal(pwi_shard_hold(to, position_of(&f.group)), PAWL_OK);
  struct pwi_request waits = about(PWI_REQUEST_AWAIT, &f.group, 1), passes = about(PWI_REQUEST_AWAIT, &other, 1);
  assert_true(serve(to, &waits, NULL).is_deferred);
  pwi_shard_membership_changed(to);
  pwi_copying_init(&copying, position_of(&other));
  while (more) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(f.shard, &copying, 4096, &writer, &more), PAWL_OK);
    if (more) assert_int_equal(pwi_shard_take(to, writer.data, writer.size), PAWL_OK);
  }
  assert_int_equal(pwi_shard_adopt(to, position_of(&other)), PAWL_OK);
  assert_served(to, &passes, NULL, PWI_CODE_OK, PAWL_OK);
  assert_false(serve(to, &passes, NULL).is_deferred);
  pwi_writer_fini(&writer);
  pwi_shard_destroy(to);
  stop(&f);
}

static void test_out_of_memory_leaves_a_tick_counted_or_undone(void **state) {
  (void)state;
  int failed = 1;
  for (uint64_t n = 0; failed; n++) {
    struct fixture f;
    start(&f, 1, 1);
    struct pwi_request tick = ask(PWI_REQUEST_TICK, 1, 3);
    tick.task = 1;
    pwi_memory_fail_after(n);
    struct pwi_served served = serve(f.shard, &tick, NULL);
    failed = pwi_memory_fail_cancel();
    bool counted = served.outcome.code == PWI_CODE_OK;
    assert_int_equal(await(&f, 11, 1, 3), !counted);
    if (served.outcome.code == PWI_CODE_FAILED) assert_served(f.shard, &tick, NULL, PWI_CODE_OK, PAWL_OK);
    stop(&f);
  }
}

static void test_a_large_group_is_waited_for_in_any_order(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_random random;
  start(&f, 6, 6);
  pwi_random_init(&random, 7, 0);
  for (uint64_t tick = 1; tick <= 200; tick++) {
    uint64_t order[6] = {1, 2, 3, 4, 5, 6};
    pwi_random_shuffle(&random, order, 6, sizeof *order);
    answer_count = 0;
    for (size_t i = 0; i < 6; i++) {
      assert_int_equal(answer_count, 0);
      step(&f, PWI_REQUEST_TICK, order[i], tick);
      if (i < 5) assert_true(await(&f, order[i], tick, tick));
    }
    assert_int_equal(answer_count, 5);
  }
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_waiting_ends_when_the_slowest_member_arrives),
      cmocka_unit_test(test_no_member_passes_before_the_group_was_complete),
      cmocka_unit_test(test_a_member_that_leaves_is_not_waited_for),
      cmocka_unit_test(test_a_member_that_joins_a_complete_group_begins_at_the_highest_tick),
      cmocka_unit_test(test_founders_begin_together_though_one_has_ticked),
      cmocka_unit_test(test_a_founder_enters_no_lower_than_it_stands),
      cmocka_unit_test(test_a_founder_that_left_and_comes_back_begins_where_the_foremost_is),
      cmocka_unit_test(test_a_member_that_returns_under_a_new_id_begins_no_lower_than_before),
      cmocka_unit_test(test_an_enter_that_is_repeated_tells_the_senders_present_tick),
      cmocka_unit_test(test_an_enter_that_came_in_pieces_counts_once),
      cmocka_unit_test(test_a_tick_is_numbered_and_finds_gaps),
      cmocka_unit_test(test_waiters_are_told_when_the_group_freezes_moves_or_ends),
      cmocka_unit_test(test_ticks_go_where_the_group_goes),
      cmocka_unit_test(test_a_head_that_followed_another_one_knows_the_slowest_member),
      cmocka_unit_test(test_a_group_that_moves_here_brings_its_slowest_member),
      cmocka_unit_test(test_out_of_memory_leaves_a_tick_counted_or_undone),
      cmocka_unit_test(test_a_large_group_is_waited_for_in_any_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
