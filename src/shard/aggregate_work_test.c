/* The cost of a push into an aggregate, counted in steps instead of time. */
#include "shard/aggregate_testing.h"

#include "shard/inside.h"

#define TICKS 1024
#define STEPS_MAX 20000
#define KEYS (UINT64_C(1) << 20)

static void start_wide(struct fixture *f, uint64_t members) {
  start_with(f, members, entry_of(VECTOR, PAWL_I64, 1, KEYS, true), UINT64_MAX);
}

/* A push of one row with this claim. */
static struct pwi_served push_at(struct fixture *f, uint64_t sender, struct pawl_range claim, uint64_t prior,
                                 uint64_t task, uint64_t tick, uint64_t *steps_out) {
  static const int64_t one = 1;
  static struct iovec part;
  uint64_t key = claim.begin, before = f->shard->aggregate_steps;
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, VECTOR, KEYS);
  part = (struct iovec){(void *)&one, sizeof one};
  request.terms.other = GROUP;
  request.terms.prior = prior;
  request.terms.claim = claim;
  request.terms.range = claim;
  request.terms.keys = PWI_KEYS_LIST;
  request.terms.rows = 1;
  request.keys = &key;
  request.sender.id = sender;
  request.task = task;
  request.tick = tick;
  request.waiter = (struct pwi_waiter){.owner = sender, .number = task};
  request.arc = pawl_range_of(0, KEYS);
  request.value_type = PAWL_I64;
  request.values = &part;
  request.value_parts = 1;
  struct pwi_served served = serve(f->shard, &request, NULL);
  *steps_out = f->shard->aggregate_steps - before;
  return served;
}

/* Another claim in each tick: each push leaves a piece in all ticks before it. */
static void test_claims_that_are_scattered_over_many_ticks_cost_little(void **state) {
  (void)state;
  struct fixture f;
  uint64_t steps, most = 0, refused = 0;
  start_wide(&f, 2);
  for (uint64_t tick = 1; tick <= TICKS; tick++) {
    struct pwi_served served = push_at(&f, 1, pawl_range_of(8 * tick, 8 * tick + 1), 0, tick, tick, &steps);
    refused += served.outcome.code == PWI_CODE_REFUSED && served.outcome.status == PAWL_NODE_FULL;
    if (steps > most) most = steps;
  }
  print_message("at most %llu steps in a push, %llu refused\n", (unsigned long long)most, (unsigned long long)refused);
  assert_true(most <= STEPS_MAX);
  assert_true(refused > 0);
  struct pwi_served served = push_at(&f, 2, pawl_range_of(0, KEYS), 0, 1, 1, &steps);
  assert_true(served.is_deferred || served.outcome.code == PWI_CODE_OK);
  stop(&f);
}

/* Members that claim the whole arc, as clients do, may be as far ahead as TICKS_MAX allows. */
static void test_a_member_that_claims_the_arc_may_be_far_ahead(void **state) {
  (void)state;
  struct fixture f;
  uint64_t steps;
  start_wide(&f, 4);
  for (uint64_t tick = 1; tick <= TICKS; tick++)
    for (uint64_t sender = 1; sender <= 3; sender++) {
      struct pwi_served served = push_at(&f, sender, pawl_range_of(0, KEYS), tick - 1, tick, tick, &steps);
      assert_true(served.is_deferred);
    }
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_claims_that_are_scattered_over_many_ticks_cost_little),
      cmocka_unit_test(test_a_member_that_claims_the_arc_may_be_far_ahead),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
