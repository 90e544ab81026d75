/* Aggregates: members that come and go, and aggregates that are not applied. */
#include "shard/aggregate_testing.h"

/* --- members come and go -------------------------------------------------------------------------------- */

static void test_an_aggregate_does_not_wait_for_a_member_that_leaves(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  push(&f, 1, 1, 1, 1);
  push(&f, 2, 1, 1, 2);
  assert_int_equal(pwi_membership_leave(&f.membership, (struct pwi_vector_id){GROUP}, (struct pwi_sender){3}), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  settle(&f);
  assert_stored(&f, 3);
  assert_int_equal(answer_count, 2);
  stop(&f);
}

static enum pwi_code collect(struct fixture *f, uint64_t sender) {
  struct pwi_request request = request_of(PWI_REQUEST_COLLECT, VECTOR, SIZE);
  request.sender.id = 5; /* it has no part itself */
  request.terms.other = sender;
  return serve(f->shard, &request, NULL).outcome.code;
}

static void retire(struct fixture *f, uint64_t sender) {
  assert_int_equal(pwi_membership_retire(&f->membership, (struct pwi_sender){sender}), PAWL_OK);
  pwi_shard_set_membership(f->shard, &f->membership);
  settle(f);
}

/* Its client knows the outcome of its first task. */
static bool is_unsettled(const struct fixture *f, uint64_t sender) {
  struct pwi_settle about = {.sender = sender, .settled = 1};
  uint64_t found;
  return pwi_shard_unsettled(f->shard, &about, 1, &found) == 1;
}

/* A COLLECT about the sender is answered only when the outcome of its part is known, and it is not forgotten before. */
static void test_the_part_of_a_retired_sender_is_applied_with_the_others(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  push(&f, 1, 1, 1, 1);
  push(&f, 2, 1, 1, 2);
  retire(&f, 2);
  assert_stored(&f, 0);
  assert_int_equal(collect(&f, 2), PWI_CODE_NOT_HERE);
  assert_true(is_unsettled(&f, 2));
  push(&f, 3, 1, 1, 4);
  assert_stored(&f, 7);
  assert_int_equal(f.sums, 1);
  assert_true(has_task(&f, 2, 1));
  assert_int_equal(collect(&f, 2), PWI_CODE_OK);
  assert_int_equal(told(1), 1);
  push(&f, 1, 2, 2, 8);
  push(&f, 3, 2, 2, 8); /* and is not waited for any more */
  assert_stored(&f, 23);
  stop(&f);
}

/* It returns under a new id with its unsent pushes; the others are ticks ahead, on other keys. */
static void test_a_member_that_comes_back_late_does_not_wait_for_those_ahead(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  retire(&f, 2);
  push(&f, 1, 1, 1, 1);
  push(&f, 3, 1, 1, 2);
  assert_stored(&f, 3);
  assert_int_equal(pwi_membership_join(&f.membership, (struct pwi_vector_id){GROUP}, 3, (struct pwi_sender){4}),
                   PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  struct pwi_served served = push(&f, 4, 1, 1, 4);
  assert_waits(&served);
  assert_stored(&f, 7);
  assert_int_equal(told(4), 1);
  for (uint64_t id = 1; id <= 4; id++)
    if (id != 2) push(&f, id, 2, 2, 1);
  assert_stored(&f, 10);
  assert_int_equal(f.sums, 3);
  stop(&f);
}

/* A group that is not complete may never be. The part of the dead sender is applied at once, and members that
 * join later do not wait for its sender. */
static void test_the_part_of_a_sender_that_dies_before_the_group_is_complete_takes_effect_at_once(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 0);
  for (uint64_t id = 1; id <= 2; id++)
    assert_int_equal(pwi_membership_join(&f.membership, (struct pwi_vector_id){GROUP}, 3, (struct pwi_sender){id}),
                     PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  push(&f, 1, 1, 1, 1);
  push(&f, 2, 1, 1, 2);
  retire(&f, 2);
  assert_stored(&f, 3);
  assert_int_equal(collect(&f, 2), PWI_CODE_OK);
  assert_int_equal(told(1), 1);
  for (uint64_t id = 3; id <= 4; id++)
    assert_int_equal(pwi_membership_join(&f.membership, (struct pwi_vector_id){GROUP}, 3, (struct pwi_sender){id}),
                     PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  push(&f, 3, 1, 1, 4);
  push(&f, 4, 1, 1, 8);
  assert_stored(&f, 15);
  assert_int_equal(f.sums, 2);
  stop(&f);
}

static void test_nothing_is_applied_before_the_group_has_been_complete(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 0);
  assert_int_equal(pwi_membership_join(&f.membership, (struct pwi_vector_id){GROUP}, 2, (struct pwi_sender){1}),
                   PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  push(&f, 1, 1, 1, 1);
  assert_stored(&f, 0);
  assert_int_equal(pwi_membership_join(&f.membership, (struct pwi_vector_id){GROUP}, 2, (struct pwi_sender){2}),
                   PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  settle(&f);
  assert_stored(&f, 0);
  push(&f, 2, 1, 1, 1);
  assert_stored(&f, 2);
  stop(&f);
}

/* --- other ends ----------------------------------------------------------------------------------------- */

static void test_parts_are_sent_elsewhere_when_the_arc_goes(void **state) {
  (void)state;
  for (int how = 0; how < 5; how++) {
    struct fixture f;
    struct pwi_entry loaded = entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, false);
    loaded.incarnation = 1;
    start(&f, 2);
    push(&f, 1, 1, 1, 1);
    if (how == 0) pwi_shard_dismiss(f.shard, pawl_range_of(0, 5));
    if (how == 1) assert_int_equal(pwi_shard_freeze(f.shard, WHOLE_RING), PAWL_OK);
    if (how == 2) assert_int_equal(pwi_shard_drop(f.shard, WHOLE_RING), PAWL_OK);
    if (how == 3) pwi_shard_close(f.shard, (struct pwi_vector_id){VECTOR});
    if (how == 4) assert_int_equal(pwi_shard_renew(f.shard, &loaded), PAWL_OK);
    assert_int_equal(answer_count, 1);
    assert_int_equal(answers[0].outcome.code, how == 3 ? PWI_CODE_FAILED : PWI_CODE_NOT_HERE);
    settle(&f);
    assert_int_equal(f.sums, 0);
    if (how == 0 || how == 4) {
      assert_stored(&f, 0);
      push(&f, 1, 1, 1, 1);
      push(&f, 2, 1, 1, 1);
      assert_stored(&f, 2);
    }
    stop(&f);
  }
}

static void test_an_owner_that_is_gone_gets_no_answer(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2);
  push(&f, 1, 1, 1, 1);
  push(&f, 1, 2, 2, 1); /* early */
  pwi_shard_forget_waiters(f.shard, 1);
  push(&f, 2, 1, 1, 1);
  assert_stored(&f, 2); /* its part stays in */
  push(&f, 2, 2, 2, 1);
  assert_stored(&f, 4);
  assert_int_equal(told(1), 0);
  assert_int_equal(told(2), 2);
  stop(&f);
}

#define CAP 20000
#define CAP_ROWS 2400 /* of 8 bytes, beside which the rows of a push have no room */

/* Fills the memory with rows of another vector. */
static void fill_up(struct fixture *f) {
  static int64_t rows[CAP_ROWS];
  struct iovec part = {rows, sizeof rows};
  open_vector(f->shard, entry_of(2, PAWL_I64, 1, CAP_ROWS, false));
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, 2, CAP_ROWS);
  request.sender.id = 5;
  request.task = 1;
  request.value_type = PAWL_I64;
  request.values = &part;
  request.value_parts = 1;
  assert_served(f->shard, &request, NULL, PWI_CODE_OK, PAWL_OK);
}

static void test_where_memory_is_full_each_is_refused_by_itself(void **state) {
  (void)state;
  struct fixture f;
  start_with(&f, 2, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, false), CAP);
  push(&f, 1, 1, 1, 1);
  fill_up(&f);
  push(&f, 2, 1, 1, 1);
  assert_int_equal(answer_count, 2);
  assert_int_equal(answers[0].outcome.code, PWI_CODE_NOT_HERE);
  for (uint64_t sender = 1; sender <= 2; sender++) { /* and then the next number may follow */
    struct pwi_served served = push(&f, sender, 1, 1, 1);
    assert_false(served.is_deferred);
    assert_int_equal(served.outcome.code, PWI_CODE_REFUSED);
    assert_int_equal(served.outcome.status, PAWL_NODE_FULL);
    served = push(&f, sender, 2, 2, 1);
    assert_int_equal(served.outcome.status, PAWL_NODE_FULL);
  }
  stop(&f);
}

/* A member that pushes ahead of others, or without them, cannot fill the memory with waiting parts. */
static void test_waiting_parts_count_against_the_memory_cap(void **state) {
  (void)state;
  struct fixture f;
  start_with(&f, 2, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, false), CAP);
  struct pwi_served served = push(&f, 1, 1, 1, 1);
  assert_waits(&served);
  size_t kept = 1;
  for (uint64_t task = 2; task <= 10;
       task++) { /* kept until it is their turn, if there is room; else they have to wait */
    served = push(&f, 1, task, task, 1);
    if (served.is_deferred) kept++;
    if (!served.is_deferred) assert_int_equal(served.outcome.code, PWI_CODE_GAP);
  }
  assert_in_range(kept, 2, 4);
  push(&f, 2, 1, 1, 1);
  assert_stored(&f, 2);
  for (uint64_t task = 2; task <= 10; task++) { /* and then there is room again */
    push(&f, 1, task, task, 1);
    push(&f, 2, task, task, 1);
  }
  assert_stored(&f, 20);
  stop(&f);
}

/* A part that is due and has no room is refused, counts as contributed, and uses up its number. */
static void test_a_part_without_room_is_refused_and_not_waited_for(void **state) {
  (void)state;
  struct fixture f;
  start_with(&f, 2, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, false), CAP);
  fill_up(&f);
  struct pwi_served served = push(&f, 1, 1, 1, 1);
  assert_false(served.is_deferred);
  assert_int_equal(served.outcome.code, PWI_CODE_REFUSED);
  assert_int_equal(served.outcome.status, PAWL_NODE_FULL);
  served = push(&f, 1, 1, 1, 1);
  assert_int_equal(served.outcome.status, PAWL_NODE_FULL);
  pwi_shard_close(f.shard, (struct pwi_vector_id){2});
  push(&f, 2, 1, 1, 3);
  assert_int_equal(told(2), 1);
  assert_stored(&f, 3);
  stop(&f);
}

/* Ticks and pieces that wait are counted, not only their bytes. */
static void test_a_member_alone_cannot_open_ticks_without_end(void **state) {
  (void)state;
  enum { MANY = 1100 };
  struct fixture f;
  start_with(&f, 2, entry_of(VECTOR, PAWL_I64, 1, MANY, false), UINT64_MAX);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < MANY; i++) { /* each tick is about another key, so none waits for the one before */
    int64_t value = 1;
    struct iovec part = {&value, sizeof value};
    struct pwi_request request = request_of(PWI_REQUEST_PUSH, VECTOR, MANY);
    request.terms.claim = request.terms.range = pawl_range_of(i, i + 1);
    request.terms.rows = 1;
    request.terms.other = GROUP;
    request.task = i + 1;
    request.tick = i + 1;
    request.waiter = (struct pwi_waiter){.owner = 1, .number = i + 1};
    request.arc = pawl_range_of(0, MANY);
    request.value_type = PAWL_I64;
    request.values = &part;
    request.value_parts = 1;
    struct pwi_served served = serve(f.shard, &request, NULL);
    refused += served.outcome.code == PWI_CODE_REFUSED;
  }
  assert_in_range(refused, MANY - 1024, MANY - 1);
  stop(&f);
}

/* Each piece is one key; the other member never comes. */
static void test_a_member_alone_cannot_send_pieces_of_a_tick_without_end(void **state) {
  (void)state;
  enum { MOST = 1024, MORE = 100 };
  struct fixture f;
  start_with(&f, 2, entry_of(VECTOR, PAWL_I64, 1, MOST + MORE + 1, false), UINT64_MAX);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < MOST + MORE; i++) {
    int64_t value = 1;
    struct iovec part = {&value, sizeof value};
    struct pwi_request request = request_of(PWI_REQUEST_PUSH, VECTOR, MOST + MORE + 1);
    request.terms.claim = request.terms.range = pawl_range_of(i, i + 1);
    request.terms.rows = 1;
    request.terms.other = GROUP;
    request.task = request.tick = 1;
    request.waiter = (struct pwi_waiter){.owner = 1, .number = i + 1};
    request.arc = pawl_range_of(0, MOST + MORE + 1);
    request.value_type = PAWL_I64;
    request.values = &part;
    request.value_parts = 1;
    struct pwi_served served = serve(f.shard, &request, NULL);
    refused += served.outcome.code == PWI_CODE_REFUSED;
  }
  assert_int_equal(refused, MORE);
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, MOST); /* others are served */
  static int64_t out[MOST];
  pull.sender.id = 2;
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

/* Missing values are not waited for, and no memory is kept for them. */
static void test_a_part_that_boasts_of_rows_takes_no_memory(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2);
  struct push boast;
  make_push(&boast, 1, 1, 1, 1);
  boast.request.value_parts = 0;
  struct pwi_served served = serve(f.shard, &boast.request, NULL);
  assert_int_equal(served.outcome.code, PWI_CODE_REFUSED);
  assert_int_equal(served.outcome.status, PAWL_MISMATCH);
  make_push(&boast, 1, 3, 3, 1); /* before its turn */
  boast.request.value_parts = 0;
  served = serve(f.shard, &boast.request, NULL);
  assert_int_equal(served.outcome.code, PWI_CODE_GAP);
  push(&f, 2, 1, 1, 3);
  assert_stored(&f, 3);
  stop(&f);
}

/* If an allocation fails, no part is answered alone, no part waits for ever, and nothing is counted twice. */
static void test_parts_may_be_tried_again_after_memory_has_run_out(void **state) {
  (void)state;
  uint64_t failures = 0;
  for (uint64_t n = 0;; n++) {
    struct fixture f;
    bool failed = false;
    start_with(&f, 2, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, true), UINT64_MAX);
    pwi_memory_fail_after(n);
    for (uint64_t tick = 1; tick <= 3; tick++)
      for (int tries = 0; tries < 3 && !failed && !(has_task(&f, 1, tick) && has_task(&f, 2, tick)); tries++)
        for (uint64_t sender = 1; sender <= 2; sender++)
          failed |= push(&f, sender, tick, tick, 1).outcome.code == PWI_CODE_REFUSED;
    bool was_carried_out = pwi_memory_fail_cancel();
    failures += was_carried_out;
    if (!failed) {
      assert_stored(&f, 6);
      assert_true(has_task(&f, 1, 3) && has_task(&f, 2, 3));
    }
    stop(&f);
    if (!was_carried_out) break;
  }
  assert_true(failures > 5);
}

/* The same with keys that differ: bundles, their union, parts that are early. */
static void test_unions_may_be_tried_again_after_memory_has_run_out(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live, failures = 0;
  for (uint64_t n = 0;; n++) {
    struct fixture f;
    struct push push;
    bool failed = false;
    start_with(&f, 2, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, true), UINT64_MAX);
    pwi_memory_fail_after(n);
    for (int tries = 0; tries < 8 && !failed && !(has_task(&f, 1, 3) && has_task(&f, 2, 3)); tries++)
      for (uint64_t sender = 1; sender <= 2; sender++)
        for (uint64_t tick = 1; tick <= 3; tick++) {
          make_push(&push, sender, tick, tick, 1);
          name_keys(&push, PWI_KEYS_LIST, sender == 1 ? some_keys : other_keys);
          failed |= give(&f, &push).outcome.code == PWI_CODE_REFUSED;
        }
    bool was_carried_out = pwi_memory_fail_cancel();
    failures += was_carried_out;
    if (!failed) {
      struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
      int64_t out[VALUES];
      assert_true(has_task(&f, 1, 3) && has_task(&f, 2, 3));
      assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
      assert_int_equal(out[3 * WIDTH], 6 * WIDTH);
      assert_int_equal(out[17 * WIDTH], 3 * 3 * WIDTH);
      assert_int_equal(out[18 * WIDTH], 3 * 3 * WIDTH);
    }
    stop(&f);
    if (!was_carried_out) break;
  }
  assert_true(failures > 10);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_aggregate_does_not_wait_for_a_member_that_leaves),
      cmocka_unit_test(test_the_part_of_a_retired_sender_is_applied_with_the_others),
      cmocka_unit_test(test_a_member_that_comes_back_late_does_not_wait_for_those_ahead),
      cmocka_unit_test(test_the_part_of_a_sender_that_dies_before_the_group_is_complete_takes_effect_at_once),
      cmocka_unit_test(test_nothing_is_applied_before_the_group_has_been_complete),
      cmocka_unit_test(test_parts_are_sent_elsewhere_when_the_arc_goes),
      cmocka_unit_test(test_an_owner_that_is_gone_gets_no_answer),
      cmocka_unit_test(test_where_memory_is_full_each_is_refused_by_itself),
      cmocka_unit_test(test_waiting_parts_count_against_the_memory_cap),
      cmocka_unit_test(test_a_part_without_room_is_refused_and_not_waited_for),
      cmocka_unit_test(test_a_member_alone_cannot_open_ticks_without_end),
      cmocka_unit_test(test_a_member_alone_cannot_send_pieces_of_a_tick_without_end),
      cmocka_unit_test(test_a_part_that_boasts_of_rows_takes_no_memory),
      cmocka_unit_test(test_parts_may_be_tried_again_after_memory_has_run_out),
      cmocka_unit_test(test_unions_may_be_tried_again_after_memory_has_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
