/* Aggregates of relays: they are taken only if every push in them may be taken, and then stand for these pushes. */
#include "protocol/contributors.h"
#include "shard/aggregate_testing.h"

#define RELAY 4

/* An aggregate of the first pushes of these senders, each with number 1, in tick 1. */
static bool take_claim(struct fixture *f, uint64_t first, uint64_t last, struct pawl_range claim,
                       struct pwi_outcome *outcome_out) {
  struct pwi_contributor contributors[5];
  struct push sum;
  size_t count = 0;
  make_push(&sum, RELAY, 1, 1, 10);
  sum.request.terms.claim = claim;
  for (uint64_t id = first; id <= last; id++)
    contributors[count++] = (struct pwi_contributor){.sender = {id}, .task = 1};
  bool is_taken = pwi_shard_serve_relayed(f->shard, &sum.request, contributors, count, outcome_out);
  settle(f);
  return is_taken;
}

static bool take(struct fixture *f, uint64_t first, uint64_t last) {
  struct pwi_outcome outcome;
  return take_claim(f, first, last, pawl_range_of(0, SIZE), &outcome);
}

static void expect_refused(struct fixture *f, uint64_t first, uint64_t last, uint64_t whom) {
  struct pwi_outcome outcome;
  assert_false(take_claim(f, first, last, pawl_range_of(0, SIZE), &outcome));
  assert_int_equal(outcome.code, PWI_CODE_DIRECT);
  assert_int_equal(outcome.next, whom);
  assert_int_equal(told(RELAY), 0);
}

static void test_an_aggregate_stands_for_the_pushes_of_its_contributors(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  assert_true(take(&f, 1, 2));
  assert_stored(&f, 0); /* the third member has not pushed */
  assert_int_equal(answer_count, 0);
  push(&f, 3, 1, 1, 5);
  assert_stored(&f, 15);
  assert_int_equal(f.sums, 1);
  assert_int_equal(told(RELAY), 1);
  assert_int_equal(told(3), 1);
  for (uint64_t id = 1; id <= 3; id++) assert_true(has_task(&f, id, 1));
  stop(&f);
}

/* Its relay was lost, perhaps. */
static void test_a_contributor_that_pushes_again_by_itself_finds_its_push_in_the_sum(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  assert_true(take(&f, 1, 2));
  struct pwi_served served = push(&f, 1, 1, 1, 7);
  assert_waits(&served);
  push(&f, 3, 1, 1, 5);
  assert_stored(&f, 15);
  assert_int_equal(told(1), 1);
  stop(&f);
}

static void test_an_aggregate_is_refused_if_a_push_in_it_waits_here_already(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  push(&f, 2, 1, 1, 1);
  expect_refused(&f, 1, 2, 2);
  assert_true(take(&f, 1, 1));
  push(&f, 3, 1, 1, 5);
  assert_stored(&f, 16);
  stop(&f);
}

static void push_alone(struct fixture *f, uint64_t sender, uint64_t task, struct pawl_range claim) {
  struct push push;
  make_push(&push, sender, task, 0, 1);
  push.request.terms.other = 0;
  push.request.terms.claim = push.request.terms.range = claim;
  push.request.terms.rows = pawl_range_size(claim);
  push.part.iov_len = (size_t)push.request.terms.rows * WIDTH * 8;
  struct pwi_served served = give(f, &push);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
}

static void test_an_aggregate_is_refused_if_a_push_in_it_is_not_due(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  push_alone(&f, 2, 1, pawl_range_of(0, SIZE)); /* it was applied */
  expect_refused(&f, 1, 3, 2);
  stop(&f);
  start(&f, 3);
  push_alone(&f, 3, 1, pawl_range_of(0, SIZE / 2)); /* on some of the keys */
  expect_refused(&f, 1, 3, 3);
  stop(&f);
  start(&f, 3);
  struct push sum;
  struct pwi_outcome outcome;
  struct pwi_contributor late = {.sender = {1}, .task = 2, .prior = 1}; /* an earlier one is not here yet */
  make_push(&sum, RELAY, 1, 1, 10);
  assert_false(pwi_shard_serve_relayed(f.shard, &sum.request, &late, 1, &outcome));
  assert_int_equal(outcome.next, 1);
  stop(&f);
}

static void test_nobody_contributes_who_is_retired_or_no_member(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  assert_false(take(&f, 3, 4));
  assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){2}), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  settle(&f);
  expect_refused(&f, 1, 3, 2);
  assert_true(take(&f, 1, 1));
  push(&f, 3, 1, 1, 5);
  assert_stored(&f, 15);
  stop(&f);
}

/* The head is about to hand its arc over: what it took now would be lost. */
static void test_nothing_is_taken_while_the_keys_are_frozen_or_elsewhere(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  assert_int_equal(pwi_shard_freeze(f.shard, WHOLE_RING), PAWL_OK);
  expect_refused(&f, 1, 3, 0);
  pwi_shard_thaw(f.shard, WHOLE_RING);
  assert_int_equal(pwi_shard_drop(f.shard, WHOLE_RING), PAWL_OK);
  expect_refused(&f, 1, 3, 0);
  assert_int_equal(pwi_shard_hold(f.shard, WHOLE_RING), PAWL_OK);
  assert_true(take(&f, 1, 3));
  assert_stored(&f, 10);
  stop(&f);
}

static void test_rows_that_do_not_add_up_are_refused(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_entry entry = entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, false);
  entry.is.function = PAWL_ASSIGN;
  start_with(&f, 3, entry, UINT64_MAX);
  expect_refused(&f, 1, 3, 0);
  assert_stored(&f, 0);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_aggregate_stands_for_the_pushes_of_its_contributors),
      cmocka_unit_test(test_a_contributor_that_pushes_again_by_itself_finds_its_push_in_the_sum),
      cmocka_unit_test(test_an_aggregate_is_refused_if_a_push_in_it_waits_here_already),
      cmocka_unit_test(test_an_aggregate_is_refused_if_a_push_in_it_is_not_due),
      cmocka_unit_test(test_nobody_contributes_who_is_retired_or_no_member),
      cmocka_unit_test(test_nothing_is_taken_while_the_keys_are_frozen_or_elsewhere),
      cmocka_unit_test(test_rows_that_do_not_add_up_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
