/* Limits of the memory that one sender can occupy in a shard: refusals, waiting requests, pieces of clocks.
 * Also the exact keys of a refusal. */
#include "shard/testing.h"

#define SIZE 50

struct fixture {
  struct pwi_membership membership;
  struct pwi_shard *shard;
  int64_t ones[SIZE];
  struct iovec values;
};

static size_t told;

static void note(void *context, struct pwi_waiter waiter, const struct pwi_outcome *outcome) {
  (void)context, (void)waiter, (void)outcome;
  told++;
}

static void start(struct fixture *f, uint64_t size) {
  struct pwi_shard_config config = {.memory_max = UINT64_MAX, .answer = note};
  *f = (struct fixture){.membership = membership_of(3), .shard = shard_of(&config)};
  assert_int_equal(pwi_shard_hold(f->shard, WHOLE_RING), PAWL_OK);
  open_vector(f->shard, entry_of(1, PAWL_I64, 1, size, true));
  open_vector(f->shard, group_of(2));
  pwi_shard_set_membership(f->shard, &f->membership);
  for (size_t i = 0; i < SIZE; i++) f->ones[i] = 1;
  f->values = (struct iovec){f->ones, sizeof f->ones};
  told = 0;
}

static void stop(struct fixture *f) {
  pwi_shard_destroy(f->shard);
  pwi_membership_fini(&f->membership);
}

static struct pwi_request push_of(struct fixture *f, struct pawl_range claim, uint64_t prior, uint64_t task) {
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, 1, SIZE);
  request.terms.claim = request.terms.range = claim;
  request.terms.rows = pawl_range_size(claim);
  request.terms.prior = prior;
  request.task = task;
  request.value_type = PAWL_I64;
  f->values.iov_len = pawl_range_size(claim) * sizeof(int64_t);
  request.values = &f->values;
  request.value_parts = 1;
  return request;
}

/* Half of the claim was applied before, and stays. */
static void test_only_the_part_that_was_due_is_refused(void **state) {
  (void)state;
  struct fixture f;
  start(&f, SIZE);
  struct pwi_request half = push_of(&f, pawl_range_of(0, 20), 0, 5);
  assert_served(f.shard, &half, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_request whole = push_of(&f, pawl_range_of(0, SIZE), 0, 5);
  whole.value_parts = 0;
  for (int i = 0; i < 2; i++) { /* and when it comes again */
    struct pwi_served served = serve(f.shard, &whole, NULL);
    assert_int_equal(served.outcome.code, PWI_CODE_REFUSED);
    assert_int_equal(served.outcome.status, PAWL_MISMATCH);
    assert_int_equal(served.outcome.found, 20);
    assert_int_equal(served.outcome.next, SIZE);
  }
  stop(&f);
}

/* Another push was refused where this one was applied. */
static void test_the_keys_of_another_refusal_are_not_among_the_refused_ones(void **state) {
  (void)state;
  struct fixture f;
  start(&f, SIZE);
  struct pwi_request half = push_of(&f, pawl_range_of(0, 20), 0, 5);
  assert_served(f.shard, &half, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_request other = push_of(&f, pawl_range_of(0, 20), 5, 6);
  other.value_parts = 0;
  assert_served(f.shard, &other, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH);
  struct pwi_request whole = push_of(&f, pawl_range_of(0, SIZE), 0, 5);
  whole.value_parts = 0;
  for (int i = 0; i < 2; i++) {
    struct pwi_served served = serve(f.shard, &whole, NULL);
    assert_int_equal(served.outcome.code, PWI_CODE_REFUSED);
    assert_int_equal(served.outcome.found, 20);
    assert_int_equal(served.outcome.next, SIZE);
  }
  stop(&f);
}

static void test_a_sender_that_settles_nothing_is_limited_to_some_refusals(void **state) {
  (void)state;
  struct fixture f;
  start(&f, SIZE);
  uint64_t refused = 0;
  struct pwi_served served;
  for (uint64_t task = 1; task < 100000; task++) {
    struct pwi_request bad = push_of(&f, pawl_range_of(0, SIZE), task - 1, task);
    bad.value_parts = 0;
    served = serve(f.shard, &bad, NULL);
    if (served.outcome.code != PWI_CODE_REFUSED) break;
    refused++;
  }
  assert_int_equal(served.outcome.code, PWI_CODE_FAILED);
  assert_int_equal(served.outcome.status, PAWL_NODE_LIMIT);
  assert_int_equal(refused, 65536);
  struct pwi_request good =
      push_of(&f, pawl_range_of(0, SIZE), refused, refused + 1); /* once it has heard it goes on */
  good.terms.settled = refused;
  assert_served(f.shard, &good, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_request other = push_of(&f, pawl_range_of(0, SIZE), 0, 1); /* and others never noticed */
  other.sender.id = 2;
  other.value_parts = 0;
  assert_served(f.shard, &other, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH);
  stop(&f);
}

static void test_the_waiters_of_one_link_are_bounded(void **state) {
  (void)state;
  struct fixture f;
  start(&f, SIZE);
  uint64_t key = pwi_group_key("test/.g2");
  struct pwi_request await = request_of(PWI_REQUEST_AWAIT, 2, 1);
  await.terms.claim = await.terms.range = pawl_range_of(key, key + 1);
  await.tick = UINT64_MAX;
  uint64_t waiting = 0;
  struct pwi_served served = {.is_deferred = true};
  for (; served.is_deferred && waiting < 100000; waiting += served.is_deferred) {
    await.waiter = (struct pwi_waiter){.owner = 7, .number = waiting + 1};
    served = serve(f.shard, &await, NULL);
  }
  assert_int_equal(waiting, 65536);
  assert_int_equal(served.outcome.code, PWI_CODE_FAILED);
  assert_int_equal(served.outcome.status, PAWL_NODE_LIMIT);
  await.waiter = (struct pwi_waiter){.owner = 8, .number = 1};
  assert_true(serve(f.shard, &await, NULL).is_deferred); /* others may */
  pwi_shard_forget_waiters(f.shard, 7);
  await.waiter = (struct pwi_waiter){.owner = 7, .number = 1};
  assert_true(serve(f.shard, &await, NULL).is_deferred);
  assert_int_equal(told, 0);
  stop(&f);
}

/* Claims of single keys, far apart, without rows, give a clock of ever more pieces. */
static void test_the_pieces_of_a_clock_are_bounded(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_C(1) << 40);
  static const uint64_t none[1];
  struct pwi_served served = {0};
  uint64_t claims = 0;
  for (; claims < 400000; claims++) {
    struct pwi_request request = push_of(&f, pawl_range_of(4 * claims, 4 * claims + 1), 0, claims + 1);
    request.terms.keys = PWI_KEYS_LIST;
    request.terms.rows = 0;
    request.keys = none;
    request.value_parts = 0;
    served = serve(f.shard, &request, NULL);
    if (served.outcome.code != PWI_CODE_OK) break;
  }
  assert_int_equal(served.outcome.code, PWI_CODE_FAILED);
  assert_int_equal(served.outcome.status, PAWL_NODE_LIMIT);
  assert_in_range(claims, 100000, 300000);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_only_the_part_that_was_due_is_refused),
      cmocka_unit_test(test_the_keys_of_another_refusal_are_not_among_the_refused_ones),
      cmocka_unit_test(test_a_sender_that_settles_nothing_is_limited_to_some_refusals),
      cmocka_unit_test(test_the_waiters_of_one_link_are_bounded),
      cmocka_unit_test(test_the_pieces_of_a_clock_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
